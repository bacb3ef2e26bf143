//! A process that a program forks for this one, after it has loaded everything.
//!
//! The program has a *control* socket, on which each request comes with three descriptors: the channel and the standard output
//! of the new process, and its *lifeline*. On the lifeline the program tells that the process is there and how it ended; when this
//! end of it is closed, the program ends the process.

use std::io::{self, PipeWriter};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::json::{parse, read, word};
use crate::system::{Heard, Lines, descriptors, ending, interrupted, memory, own_group};

/// A program that has loaded everything forks within this time, or is not asked again.
const PATIENCE: Duration = Duration::from_secs(10);

/// The patience of one look at the lifeline.
const TICK: Duration = Duration::from_millis(250);

/// No line is as long as this.
const LONGEST_LINE: usize = 64 << 10;

/// What the program is asked for.
#[derive(Serialize)]
#[serde(tag = "request", rename = "fork")]
struct Fork {
    /// The process group of the new process: that of this one, with which it ends.
    group: i32,
    /// Bytes that it may take; none when there is no limit.
    memory: Option<u64>,
}

/// What the program says on the lifeline.
enum Told {
    Forked,
    Ended(ExitStatus),
}

#[derive(Deserialize)]
struct End {
    code: Option<i32>,
    signal: Option<i32>,
}

#[derive(Deserialize)]
struct Failure {
    failure: String,
}

impl Told {
    fn from_bytes(line: &[u8]) -> io::Result<Self> {
        let line = parse(&String::from_utf8_lossy(line))?;
        match word(&line, "reply")? {
            "forked" => Ok(Told::Forked),
            "ended" => {
                let End { code, signal } = read(&line)?;
                // As the system tells it: the signal, or the code in the byte above.
                let status = signal.unwrap_or_else(|| (code.unwrap_or(0) & 0xff) << 8);
                Ok(Told::Ended(ExitStatus::from_raw(status)))
            }
            "failed" => {
                let Failure { failure } = read(&line)?;
                Err(io::Error::other(failure))
            }
            other => Err(io::Error::other(format!("answered `{other}`"))),
        }
    }
}

/// A process that was forked.
pub(super) struct Forked {
    lifeline: UnixStream,
    told: Lines,
    /// How it ended, once that is known.
    ended: Option<String>,
}

impl Forked {
    /// Asks a program for a process with a channel and a place to print to, and waits until it is there.
    pub(super) fn of(
        control: &UnixStream,
        channel: UnixStream,
        printed: PipeWriter,
    ) -> io::Result<Self> {
        let (lifeline, theirs) = UnixStream::pair()?;
        lifeline.set_read_timeout(Some(TICK))?;
        let mut message =
            serde_json::to_vec(&Fork { group: own_group(), memory: memory::limit() })?;
        message.push(b'\n');
        descriptors::send(control, &message, [channel.as_fd(), printed.as_fd(), theirs.as_fd()])?;
        drop((channel, printed, theirs));
        let mut told = Lines::of(lifeline.try_clone()?);
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE && interrupted().is_none() {
            match told.next(LONGEST_LINE) {
                Heard::Line(line) => match Told::from_bytes(&line)? {
                    Told::Forked => {
                        lifeline.set_nonblocking(true)?;
                        return Ok(Forked { lifeline, told, ended: None });
                    }
                    Told::Ended(status) => return Err(io::Error::other(ending::of_status(status))),
                },
                Heard::Part | Heard::Nothing => {}
                Heard::End => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            }
        }
        Err(io::Error::from(io::ErrorKind::TimedOut))
    }

    /// How the process ended; none while it runs.
    pub(super) fn ended(&mut self) -> Option<&str> {
        if self.ended.is_none() {
            self.ended = match self.told.next(LONGEST_LINE) {
                Heard::Part | Heard::Nothing => None,
                Heard::Line(line) => Some(match Told::from_bytes(&line) {
                    Ok(Told::Ended(status)) => ending::of_status(status),
                    Ok(Told::Forked) => "its program forked it twice".to_owned(),
                    Err(error) => error.to_string(),
                }),
                Heard::End => Some("the program that forked it has ended".to_owned()),
            };
        }
        self.ended.as_deref()
    }

    /// Has the process ended.
    pub(super) fn kill(&self) {
        let _ = self.lifeline.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_process_ended_is_told_as_it_was() {
        let ended = |line: &str| match Told::from_bytes(line.as_bytes()) {
            Ok(Told::Ended(status)) => ending::of_status(status),
            Ok(Told::Forked) => "it did not".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(ended(r#"{"reply":"ended","code":7}"#), "it called `exit(7)`");
        let text = ended(r#"{"reply":"ended","signal":6}"#);
        assert!(text.starts_with("SIGABRT (signal 6)"), "{text}");
        assert_eq!(ended(r#"{"reply":"failed","failure":"no memory"}"#), "no memory");
        assert_eq!(ended(r#"{"reply":"danced"}"#), "answered `danced`");
        assert_eq!(ended(r#"{"reply":"forked"}"#), "it did not");
        assert!(ended("hello").contains("expected value"));
    }
}
