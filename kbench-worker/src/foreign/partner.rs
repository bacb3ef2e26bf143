//! The process of a foreign worker, and the channel to it.

use std::io::{self, ErrorKind, PipeWriter, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::forked::Forked;
use super::message::{Answer, Ask};
use super::{ForeignProgram, Place};
use crate::system::descriptors::handed_down;
use crate::system::{Heard, Lines, Output, ProcessGroup, ending, interrupted};

/// The argument that makes a program a worker.
const ARGUMENT: &str = "--worker";

/// The patience of one look at the channel.
const TICK: Duration = Duration::from_millis(250);

/// A foreign worker whose channel is closed ends by itself within this time, or is ended.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

/// What a process printed last may take this long to arrive.
const ECHO: Duration = Duration::from_millis(500);

/// The most bytes of an answer.
const LONGEST_ANSWER: usize = 16 << 20;

/// The most lines of an answer to `announce`.
const MOST_ANSWERS: usize = 10_000;

/// Why a foreign worker does not answer as it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// It could not be started.
    #[error("cannot be started: {0}")]
    Start(#[source] io::Error),
    /// It ended.
    #[error("ended: {how}{}", words.as_ref().map_or_else(String::new, |words| format!("; its last words: {words}")))]
    Ended { how: String, words: Option<String> },
    /// It took too long to begin.
    #[error("was not ready within {0:.0?} (--timeout sets how long it may take)")]
    Late(Duration),
    /// It answers without end.
    #[error(
        "answered more than {MOST_ANSWERS} lines or {} MiB to `{asked}`",
        LONGEST_ANSWER >> 20
    )]
    Flood { asked: &'static str },
    /// Nobody wants to know any more.
    #[error("was not waited for, as the run was interrupted")]
    Interrupted,
    /// It could not do what was asked for.
    #[error("failed to {asked}: {failure}")]
    Failed { asked: &'static str, failure: String },
    /// It said something that makes no sense.
    #[error("answered `{line}` to `{asked}`, which is no answer of the protocol{}", error.as_ref().map_or_else(String::new, |error| format!(": {error}")))]
    Nonsense { asked: &'static str, line: String, error: Option<serde_json::Error> },
}

/// A program that has loaded everything, and forks a process for each of its users.
pub(super) struct Server(UnixStream);

impl Server {
    /// The one whose socket this process has by a number.
    pub(super) fn handed_down(number: i32) -> Option<Self> {
        handed_down(number).ok().map(Server)
    }
}

/// The process of a foreign worker.
enum Body {
    /// A child in the group of this process.
    Child(Child),
    /// A child that leads a group of its own.
    Group(ProcessGroup),
    /// A process that its program has forked, in the group of this one.
    Forked(Forked),
}

impl Body {
    /// How it ended; none while it runs.
    fn ended(&mut self) -> Option<String> {
        let words = |status: ExitStatus| ending::of_status(status);
        match self {
            Body::Child(child) => child.try_wait().ok().flatten().map(words),
            Body::Group(group) => group.wait(Duration::ZERO).map(words),
            Body::Forked(forked) => forked.ended().map(str::to_owned),
        }
    }

    fn kill(&mut self) {
        match self {
            Body::Child(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Body::Group(group) => group.kill(),
            Body::Forked(forked) => forked.kill(),
        }
    }
}

/// A foreign worker that was started.
pub(super) struct Partner {
    body: Body,
    asks: UnixStream,
    answers: Lines,
    output: Output,
}

impl Partner {
    /// Starts the program, which finds no device where all are left alone.
    pub(super) fn start(
        program: &ForeignProgram,
        off: bool,
        place: Place,
    ) -> Result<Self, Trouble> {
        let start = |theirs: UnixStream, printed: PipeWriter| -> io::Result<Body> {
            let (word, rest) = program
                .command
                .split_first()
                .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "its command is empty"))?;
            let mut command = Command::new(word);
            command.args(rest).arg(ARGUMENT).stdin(Stdio::from(OwnedFd::from(theirs)));
            command.stdout(printed.try_clone()?).stderr(printed);
            if off {
                command.env("CUDA_VISIBLE_DEVICES", "");
            }
            program.folder.iter().for_each(|folder| {
                command.current_dir(folder);
            });
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("`{word}`: {error}"));
            match place {
                Place::Within => command.spawn().map(Body::Child),
                Place::Apart => ProcessGroup::start_bound(&mut command).map(Body::Group),
            }
            .map_err(named)
        };
        Partner::with(start).map_err(Trouble::Start)
    }

    /// Has a process forked by a program.
    pub(super) fn fork(server: &Server) -> io::Result<Self> {
        Partner::with(|theirs, printed| Forked::of(&server.0, theirs, printed).map(Body::Forked))
    }

    /// A process that is given a channel and a place to print to.
    fn with(start: impl FnOnce(UnixStream, PipeWriter) -> io::Result<Body>) -> io::Result<Self> {
        let (asks, theirs) = UnixStream::pair()?;
        asks.set_read_timeout(Some(TICK))?;
        let answers = Lines::of(asks.try_clone()?);
        let (pipe, printed) = io::pipe()?;
        let body = start(theirs, printed)?;
        Ok(Partner { body, asks, answers, output: Output::of(pipe) })
    }

    /// The number of the channel to it in this process.
    pub(super) fn descriptor(&self) -> i32 {
        self.asks.as_raw_fd()
    }

    /// The number of its process, where it leads a group.
    pub(super) fn leader(&self) -> Option<u32> {
        match &self.body {
            Body::Group(group) => Some(group.id()),
            Body::Child(_) | Body::Forked(_) => None,
        }
    }

    /// Asks for something, and hears all answers but the last one; gives the last one.
    pub(super) fn ask(
        &mut self,
        ask: &Ask<'_>,
        patience: Option<Duration>,
        hear: &mut dyn FnMut(Answer),
    ) -> Result<Answer, Trouble> {
        let mut line = serde_json::to_vec(ask).map_err(|error| Trouble::Start(error.into()))?;
        line.push(b'\n');
        if self.asks.write_all(&line).is_err() {
            return Err(self.ended());
        }
        let begun = Instant::now();
        let (mut answers, mut bytes) = (0, 0);
        loop {
            if let Some(line) = self.next_line()? {
                let answer = self.parse(ask, &line)?;
                if answer.is_last() {
                    return Ok(answer);
                }
                if !matches!(ask, Ask::Announce) {
                    return Err(Trouble::Nonsense {
                        asked: ask.name(),
                        line: answer.name().to_owned(),
                        error: None,
                    });
                }
                (answers, bytes) = (answers + 1, bytes + line.len());
                if answers > MOST_ANSWERS || bytes > LONGEST_ANSWER {
                    return Err(Trouble::Flood { asked: ask.name() });
                }
                hear(answer);
            }
            // A worker that sends without end also reaches the deadline.
            if interrupted().is_some() {
                return Err(Trouble::Interrupted);
            }
            if patience.is_some_and(|patience| begun.elapsed() > patience) {
                return Err(Trouble::Late(begun.elapsed()));
            }
        }
    }

    fn parse(&self, ask: &Ask<'_>, line: &[u8]) -> Result<Answer, Trouble> {
        Answer::from_bytes(line).map_err(|error| {
            let line = String::from_utf8_lossy(&line[..line.len().min(1000)]);
            let line = line.trim_end().chars().take(200).collect();
            Trouble::Nonsense { asked: ask.name(), line, error: Some(error) }
        })
    }

    /// The next line; none when it is not there after a moment.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        match self.answers.next(LONGEST_ANSWER) {
            Heard::Line(line) => Ok(Some(line)),
            Heard::Part => Ok(None),
            // Processes that it has started may keep the channel open.
            Heard::Nothing if self.body.ended().is_none() => Ok(None),
            Heard::Nothing | Heard::End => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> Trouble {
        let killed = || "it closed its channel, went on, and was killed".to_owned();
        let how = self.part().unwrap_or_else(killed);
        Trouble::Ended { how, words: self.output.last_words(ECHO) }
    }

    /// Closes the channel and waits for the end of the process, which is ended if it takes too long; gives how it ended by
    /// itself.
    fn part(&mut self) -> Option<String> {
        let _ = self.asks.shutdown(Shutdown::Both);
        let begun = Instant::now();
        while begun.elapsed() < SHUTDOWN_GRACE {
            if let Some(how) = self.body.ended() {
                return Some(how);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.body.kill();
        None
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.part();
    }
}
