//! Wishes from outside that a run should end: Ctrl-C, `kill`, a terminal that is closed.
//!
//! The first one is noted, and whoever measures looks at the note: what is finished is then kept and reported. The second
//! one ends everything at once. A handler of signals can reach nothing but statics, so there are two here: the note, and
//! the processes that must not outlive this one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A wish that a run should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// The terminal it was started from is gone.
    HangUp,
    /// Ctrl-C.
    Keyboard,
    /// Somebody, or a machine that goes down, has asked it to end.
    Termination,
}

impl Interrupt {
    const ALL: [Interrupt; 3] = [Interrupt::HangUp, Interrupt::Keyboard, Interrupt::Termination];

    /// The number of the signal.
    fn signal(self) -> u8 {
        match self {
            Interrupt::HangUp => 1,
            Interrupt::Keyboard => 2,
            Interrupt::Termination => 15,
        }
    }

    /// The exit code that shells know it by.
    pub fn exit_code(self) -> u8 {
        128 + self.signal()
    }
}

impl fmt::Display for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interrupt::HangUp => "the end of its terminal (SIGHUP)",
            Interrupt::Keyboard => "Ctrl-C",
            Interrupt::Termination => "SIGTERM",
        })
    }
}

#[cfg(unix)]
pub(super) use unix::{forget_group, note_group};
#[cfg(unix)]
pub use unix::{interrupted, listen};

/// Nobody listens here.
#[cfg(not(unix))]
pub fn listen() {}

/// Nobody listens here.
#[cfg(not(unix))]
pub fn interrupted() -> Option<Interrupt> {
    None
}

#[cfg(unix)]
#[allow(unsafe_code)] // signals are handled by functions of C
mod unix {
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicI32, Ordering};

    use super::Interrupt;

    /// The first signal that came; 0 before.
    static NOTED: AtomicI32 = AtomicI32::new(0);

    /// Groups of processes that are running; 0 is a free place. There is room for more than are checked side by side.
    static GROUPS: [AtomicI32; 256] = [const { AtomicI32::new(0) }; 256];

    /// What is to be ended, if anything.
    pub fn interrupted() -> Option<Interrupt> {
        let noted = NOTED.load(Ordering::SeqCst);
        Interrupt::ALL.into_iter().find(|interrupt| c_int::from(interrupt.signal()) == noted)
    }

    /// Takes note of signals from now on, unless whoever started this program wants them to be ignored, as `nohup` does. How
    /// processes end that this one has started is told, also where its parent did not want to know that of its own.
    pub fn listen() {
        // SAFETY: a signal gets the treatment back that every program has by default.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        for interrupt in Interrupt::ALL {
            let signal = c_int::from(interrupt.signal());
            let handler = note as extern "C" fn(c_int) as libc::sighandler_t;
            // SAFETY: the handler has the signature of one; it touches atomics, and calls `kill` and `_exit`, all of which a
            // handler may do.
            unsafe {
                if libc::signal(signal, handler) == libc::SIG_IGN {
                    libc::signal(signal, libc::SIG_IGN);
                }
            }
        }
    }

    /// The handler. The second signal ends this process and its workers, whatever they are doing.
    extern "C" fn note(signal: c_int) {
        if NOTED.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return;
        }
        for group in &GROUPS {
            let group = group.load(Ordering::SeqCst);
            if group > 0 {
                // SAFETY: a signal to processes of our own: they are noted here until just before they are waited for.
                unsafe { libc::kill(-group, libc::SIGKILL) };
            }
        }
        // SAFETY: it does not return, and runs nothing of this process.
        unsafe { libc::_exit(128 + signal) }
    }

    /// A group that must not outlive this process.
    pub(in crate::system) fn note_group(group: i32) {
        replace(0, group);
    }

    /// A group that is no more.
    pub(in crate::system) fn forget_group(group: i32) {
        replace(group, 0);
    }

    fn replace(old: i32, new: i32) {
        let is_replaced = |place: &AtomicI32| {
            place.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        let _ = GROUPS.iter().any(is_replaced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_that_shells_give() {
        let codes = Interrupt::ALL.map(Interrupt::exit_code);
        assert_eq!(codes, [129, 130, 143]);
    }

    #[test]
    fn nobody_has_interrupted_a_test() {
        assert_eq!(interrupted(), None);
    }
}
