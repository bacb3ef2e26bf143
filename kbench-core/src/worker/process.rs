//! Workers that are processes: this executable, started again.
//!
//! Requests and replies go through a socket that is the worker's standard input. Its standard output and error are free
//! for what kernels print; both end up on the controller's standard error.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::Worker;
use super::link::{Launcher, Link, LinkError, conclude};
use super::protocol::{Done, Reply, Request};
use crate::environment::this_program;
use crate::registry::Registry;
use crate::value::SplitMix;

/// Bytes by which the environment, and with it the stack, of one launch may be shifted against that of another
/// (Mytkowicz et al. 2009).
const ENVIRONMENT_SHIFT: u64 = 4096;

/// The variable that shifts it.
const PADDING: &str = "KBENCH_WORKER_PADDING";

/// Replies wait in the worker until there are this many bytes: a controller that wakes up for every block would disturb
/// the next one.
const REPLY_BUFFER: usize = 1 << 20;

/// A worker that has nothing more to do ends by itself within this time, or is ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// Starts a program again and again, with an argument that makes it a worker.
#[derive(Clone, Debug)]
pub struct Processes {
    program: PathBuf,
    argument: &'static str,
    seed: u64,
}

impl Processes {
    /// Workers of a program; its `main` must serve when it is given `argument`.
    pub fn of(program: PathBuf, argument: &'static str, seed: u64) -> Self {
        Processes { program, argument, seed }
    }

    /// Workers of the executable that is running; its `main` must serve when it is given `argument`.
    pub fn of_this_program(argument: &'static str, seed: u64) -> io::Result<Self> {
        Ok(Processes::of(this_program()?, argument, seed))
    }
}

impl Launcher for Processes {
    fn launch(&self, launch: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        if std::env::var_os(PADDING).is_some() {
            let advice = "it was started as a worker and did not serve: begin its main with `Workers::here()`";
            return Err(LinkError::Start(io::Error::other(advice)));
        }
        let mut draw = SplitMix(self.seed ^ launch.rotate_left(32));
        let padding = "x".repeat(draw.below(ENVIRONMENT_SHIFT) as usize);
        let (requests, theirs) = UnixStream::pair().map_err(LinkError::Start)?;
        let replies = BufReader::new(requests.try_clone().map_err(LinkError::Start)?);
        let child = Command::new(&self.program)
            .arg(self.argument)
            .env(PADDING, padding)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(io::stderr()))
            .spawn()
            .map_err(LinkError::Start)?;
        Ok(Box::new(Process { child, requests, replies }))
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

/// One worker process.
struct Process {
    child: Child,
    requests: UnixStream,
    replies: BufReader<UnixStream>,
}

impl Link for Process {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let mut line = serde_json::to_string(request).map_err(io::Error::from)?;
        line.push('\n');
        if self.requests.write_all(line.as_bytes()).is_err() {
            return Err(self.ended());
        }
        loop {
            line.clear();
            match self.replies.read_line(&mut line) {
                Ok(_) if line.ends_with('\n') => {}
                // Nothing, or a line that it did not live to finish.
                Ok(_) | Err(_) => return Err(self.ended()),
            }
            let reply: Reply = serde_json::from_str(&line).map_err(|error| {
                let line = line.trim_end().chars().take(200).collect();
                LinkError::Nonsense { line, error }
            })?;
            if reply.is_last() {
                return conclude(reply);
            }
            let resigns = matches!(&reply, Reply::Failed(failed) if failed.ends);
            hear(reply);
            if resigns {
                return Err(LinkError::Resigned);
            }
        }
    }
}

impl Process {
    fn ended(&mut self) -> LinkError {
        match self.part() {
            Some(status) => LinkError::Ended(status.to_string()),
            None => LinkError::Ended("it went silent and was ended".to_owned()),
        }
    }

    /// Closes the channel and waits for the end of the process, which is ended if it takes too long; gives how it ended
    /// by itself.
    fn part(&mut self) -> Option<ExitStatus> {
        let _ = self.requests.shutdown(Shutdown::Both);
        let start = Instant::now();
        while start.elapsed() < FAREWELL {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

/// No worker outlives its controller's interest in it.
impl Drop for Process {
    fn drop(&mut self) {
        self.part();
    }
}

/// Serves the controller at the other end of standard input until it has no more requests.
pub fn serve(registry: &Registry) -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Somebody at a terminal has no socket there, and is told so.
    socket.peer_addr()?;
    let requests = BufReader::new(socket.try_clone()?);
    let mut replies = BufWriter::with_capacity(REPLY_BUFFER, socket);
    let (sender, receiver) = mpsc::channel();
    // A thread of its own sees the end of the channel at once, whatever the kernels are doing: nobody wants the rest.
    std::thread::spawn(move || {
        for line in requests.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0)
    });
    let mut worker = Worker::new(registry);
    for line in receiver {
        let (mut outcome, mut resigned) = (Ok(()), false);
        let mut say = |reply: Reply| {
            if outcome.is_ok() && !resigned {
                outcome = serde_json::to_writer(&mut replies, &reply)
                    .map_err(io::Error::from)
                    .and_then(|()| replies.write_all(b"\n"));
                // Everything but a block comes when nothing is being timed, and must be known if this process ends.
                if outcome.is_ok() && !matches!(reply, Reply::Block(_)) {
                    outcome = replies.flush();
                }
                resigned = matches!(reply, Reply::Failed(failed) if failed.ends);
            }
        };
        match serde_json::from_str::<Request>(&line) {
            Ok(request) => worker.answer(&request, &mut say),
            Err(error) => say(Reply::Refused { reason: format!("not a request: {error}") }),
        }
        if resigned {
            // The controller knows, and closes the channel, at which the other thread ends this process.
            loop {
                std::thread::park();
            }
        }
        outcome?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker that says something and ends.
    fn last_words(words: &str) -> LinkError {
        let (requests, mut theirs) = UnixStream::pair().expect("a socket");
        let replies = BufReader::new(requests.try_clone().expect("a socket"));
        let child = Command::new("true").spawn().expect("a process");
        theirs.write_all(words.as_bytes()).expect("room for a line");
        // The request is read by nobody, but finds the channel open; then the channel ends.
        let mut process = Process { child, requests, replies };
        theirs.shutdown(Shutdown::Write).expect("open");
        process.ask(&Request::Recheck, &mut |_| {}).expect_err("no last reply")
    }

    #[test]
    fn a_reply_that_a_worker_did_not_live_to_finish_is_its_end_and_no_nonsense() {
        for words in ["", "{\"reply\":\"called\"}\n", "{\"reply\":\"blo"] {
            let error = last_words(words);
            assert!(error.is_end(), "`{words}`: {error}");
        }
        let error = last_words("hello\n");
        assert!(matches!(error, LinkError::Nonsense { .. }), "{error}");
    }
}
