//! The process of a foreign worker, and the channel to it.

use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::ForeignProgram;
use super::message::{Answer, Ask};
use crate::system::{Heard, Lines, Output, ending, interrupted};

/// The argument that makes a program a worker.
const ARGUMENT: &str = "--worker";

/// The patience of one look at the channel.
const TICK: Duration = Duration::from_millis(250);

/// A foreign worker whose channel is closed ends by itself within this time, or is ended.
const FAREWELL: Duration = Duration::from_millis(500);

/// What a process printed last may take this long to arrive.
const ECHO: Duration = Duration::from_millis(500);

/// No answer is as long as this.
const LONGEST_ANSWER: usize = 16 << 20;

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
    Silent(Duration),
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

/// A foreign worker that was started.
pub(super) struct Partner {
    child: Child,
    asks: UnixStream,
    answers: Lines,
    output: Output,
}

impl Partner {
    /// Starts the program, which finds no device where all are left alone. It belongs to the group of this process, and ends
    /// with it.
    pub(super) fn start(program: &ForeignProgram, off: bool) -> Result<Self, Trouble> {
        let start = || -> io::Result<Self> {
            let (word, rest) = program
                .command
                .split_first()
                .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "its command is empty"))?;
            let (asks, theirs) = UnixStream::pair()?;
            asks.set_read_timeout(Some(TICK))?;
            let answers = Lines::of(asks.try_clone()?);
            let (pipe, printed) = io::pipe()?;
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
            let child = command.spawn().map_err(named)?;
            drop(command);
            let output = Output::of(pipe);
            Ok(Partner { child, asks, answers, output })
        };
        start().map_err(Trouble::Start)
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
        loop {
            match self.next_line()? {
                Some(line) => {
                    let answer = self.parse(ask, &line)?;
                    if answer.is_last() {
                        return Ok(answer);
                    }
                    hear(answer);
                }
                None if interrupted().is_some() => return Err(Trouble::Interrupted),
                None if patience.is_some_and(|patience| begun.elapsed() > patience) => {
                    return Err(Trouble::Silent(begun.elapsed()));
                }
                None => {}
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
            // Processes that it has started may keep the channel open.
            Heard::Nothing if matches!(self.child.try_wait(), Ok(None)) => Ok(None),
            Heard::Nothing | Heard::End => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> Trouble {
        let status = self.part();
        let how = match status {
            Some(status) => ending::of_status(status),
            None => "it closed its channel, went on, and was killed".to_owned(),
        };
        Trouble::Ended { how, words: self.output.last_words(ECHO) }
    }

    /// Closes the channel and waits for the end of the process, which is ended if it takes too long; gives how it ended by
    /// itself.
    fn part(&mut self) -> Option<std::process::ExitStatus> {
        let _ = self.asks.shutdown(Shutdown::Both);
        let begun = Instant::now();
        while begun.elapsed() < FAREWELL {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.part();
    }
}
