//! A process with all that it starts: nobody of it is left behind.
#![cfg(unix)]
#![allow(unsafe_code)] // groups of processes are known to the system's own interface alone

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use super::interrupt::{forget_group, note_group};

/// How long one waits between two looks at a process.
const TICK: Duration = Duration::from_micros(200);

/// How long one waits for a process that was killed: one that waits for a driver ends when the driver does.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// A process that leads a group of its own: a Ctrl-C at the terminal is not meant for it, and what it starts can be ended
/// with it.
pub(crate) struct ProcessGroup {
    child: Child,
    /// How it ended, once that is known.
    ended: Option<ExitStatus>,
    /// Whether it was ended with all that it has started: from then on its number may be somebody else's.
    is_swept: bool,
}

impl ProcessGroup {
    /// Starts a command.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let group = ProcessGroup { child, ended: None, is_swept: false };
        note_group(group.number());
        Ok(group)
    }

    /// Starts a command whose process the system ends with the thread that starts it, where it can. Not even a process that is
    /// killed leaves it behind.
    pub(crate) fn start_bound(command: &mut Command) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        // SAFETY: between fork and exec the process calls nothing but `prctl`, which may be called there.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
                Ok(())
            });
        }
        ProcessGroup::start(command)
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the process, and ends what it leaves behind; none when it takes longer than one would wait.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        if !self.ends_within(patience) {
            return None;
        }
        self.sweep();
        self.ended
    }

    fn ends_within(&self, patience: Duration) -> bool {
        let start = Instant::now();
        while !self.has_ended() {
            if start.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(TICK);
        }
        true
    }

    /// Ends the process and all that it has started.
    pub(crate) fn kill(&mut self) {
        self.sweep();
    }

    fn number(&self) -> i32 {
        self.child.id() as i32
    }

    /// Whether the process has ended, whatever goes on that it has started. It is not waited for here: until then its number
    /// stays its own, and so does that of its group.
    pub(crate) fn has_ended(&self) -> bool {
        if self.is_swept {
            return true;
        }
        // SAFETY: the structure is plain numbers, so zeroes are one, and the system writes no more than it.
        unsafe {
            let mut found: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let asked = libc::waitid(libc::P_PID, self.child.id(), &mut found, flags);
            // Who cannot be asked for is not there.
            asked != 0 || found.si_signo != 0
        }
    }

    fn sweep(&mut self) {
        if self.is_swept {
            return;
        }
        // SAFETY: numbers in and out. The leader has not been waited for, so the number is still its own; where SIGCHLD is ignored
        // and the system does not wait for anybody, the number of a group that has ended may be that of another one.
        unsafe { libc::kill(-self.number(), libc::SIGKILL) };
        forget_group(self.number());
        if self.ends_within(LAST_WAIT) {
            self.ended = self.child.wait().ok();
        }
        self.is_swept = true;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.sweep();
    }
}

/// The number of this process's group.
pub(crate) fn own_group() -> i32 {
    // SAFETY: a number out.
    unsafe { libc::getpgrp() }
}

/// The user whose rights this process has.
pub(crate) fn user() -> u32 {
    // SAFETY: a number out.
    unsafe { libc::geteuid() }
}

/// Asks all other processes of this one's group to end, if it leads one: those that a kernel has started.
pub(crate) fn end_others_of_own_group() {
    // SAFETY: numbers in and out; this process ignores the signal that it sends to its group.
    unsafe {
        if libc::getpgrp() == libc::getpid() {
            libc::signal(libc::SIGTERM, libc::SIG_IGN);
            libc::kill(0, libc::SIGTERM);
        }
    }
}

/// Waits for processes that this one has started, and that are about to end: their time counts as this one's from then on.
pub(crate) fn wait_for_children(patience: Duration) {
    let start = Instant::now();
    // SAFETY: numbers in, a number out. Another thread that waits for one of them meanwhile is told that it is gone.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } >= 0 {
        if start.elapsed() >= patience {
            return;
        }
        std::thread::sleep(TICK);
    }
}

/// Gives standard input to nobody: what is there is not meant for kernels, nor for processes that they start.
pub(crate) fn release_stdin() -> io::Result<()> {
    let nothing = File::open("/dev/null")?;
    // SAFETY: both are open, and standard input is nobody's to close.
    match unsafe { libc::dup2(nothing.as_raw_fd(), libc::STDIN_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Ends this process without running anything more of it: a kernel that hangs may hold what an orderly end waits for.
pub(crate) fn exit_at_once() -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> ProcessGroup {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped()).stdin(Stdio::null());
        ProcessGroup::start(&mut command).expect("a shell")
    }

    /// Whether there is such a process that has not ended.
    #[cfg(target_os = "linux")]
    fn lives(number: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{number}/status"));
        status.is_ok_and(|status| !status.contains("State:\tZ"))
    }

    #[test]
    fn the_end_of_a_process_is_told_as_it_was() {
        let patience = Duration::from_secs(20);
        let code = shell("exit 3").wait(patience).expect("ended").code();
        assert_eq!(code, Some(3));
        let signal = shell("kill -SEGV $$").wait(patience).expect("ended").signal();
        assert_eq!(signal, Some(libc::SIGSEGV));
        assert!(shell("sleep 60").wait(Duration::from_millis(20)).is_none());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_process_leaves_behind_ends_with_it() {
        let mut group = shell("sleep 600 & echo $!; exit 0");
        let mut number = String::new();
        let stdout = group.child.stdout.take().expect("a pipe");
        // The pipe ends when nobody holds it any more: the shell, and what it has started.
        let reader = std::thread::spawn(move || {
            let mut stdout = stdout;
            stdout.read_to_string(&mut number).map(|_| number)
        });
        assert!(group.wait(Duration::from_secs(20)).expect("ended").success());
        let number = reader.join().expect("a reader").expect("a number");
        assert!(!number.trim().is_empty());
        // Whoever is killed closes its files a moment before it is gone.
        let begun = Instant::now();
        while lives(number.trim()) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{number} goes on");
            std::thread::sleep(TICK);
        }
    }
}
