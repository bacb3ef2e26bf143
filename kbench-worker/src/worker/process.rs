//! Workers that are processes: this executable, started again.
//!
//! Requests and replies go through a socket that is the worker's standard input. Its standard output and error are free
//! for what kernels print; both end up on the controller's standard error.
//!
//! Whatever a worker does, its controller gets an answer: it reads with one eye on the clock and one on the user, and a
//! worker that ends, hangs or talks nonsense is ended with all that it has started.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::Error;

use super::link::{Launcher, Link, LinkError, conclude};
use super::protocol::{Done, ForeignRequest, Reply, Request};
use super::watchdog::USUAL_TIMEOUT;
use crate::environment::{free_memory, this_program};
use crate::system::descriptors::hand_down;
use crate::system::{Heard, Lines, Output, ProcessGroup, ending, interrupted, is_pause};
use crate::value::SplitMix;

/// Bytes by which the environment, and with it the stack, of one launch may be shifted against that of another
/// (Mytkowicz et al. 2009).
const ENVIRONMENT_SHIFT: u64 = 4096;

/// The variable that shifts it.
const PADDING: &str = "KBENCH_WORKER_PADDING";

/// The variable that says how many bytes a worker may take.
pub(super) const MEMORY: &str = "KBENCH_WORKER_MEMORY";

/// Share of the free memory that a worker may take: the rest is for the controller, and for whoever else is there.
const MEMORY_SHARE: f64 = 0.9;

/// A worker may take this many bytes however little seems to be free: with less it could not even say so.
const LEAST_MEMORY: usize = 256 << 20;

/// A worker that runs beside others has room for the data of a usual kernel: rather fewer workers than less for each.
const ROOM_BESIDE_OTHERS: usize = 1 << 30;

/// Workers that run side by side at most; the second Ctrl-C ends them all.
const MOST_SIDE_BY_SIDE: usize = 128;

/// Who asks for no more than this part of what a process may take, and does not get it, is not the one who has taken it all.
const MODEST: usize = 16;

/// A worker that has nothing more to do ends by itself within this time, or is ended.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// How long the last words of a worker that has ended may be on their way.
const ECHO: Duration = Duration::from_millis(200);

/// Time between two looks at the clock and at the user, while a worker is silent.
const TICK: Duration = Duration::from_millis(250);

/// A worker that is to stop has this long to tell what it has measured.
const LAST_REPLIES: Duration = Duration::from_secs(3);

/// No reply is as long as this: whoever sends one has lost its way, and would fill the memory of the controller.
const LONGEST_REPLY: usize = 64 << 20;

/// Starts a program again and again, with an argument that makes it a worker.
#[derive(Clone, Debug)]
pub struct Processes {
    program: PathBuf,
    argument: &'static str,
    seed: u64,
    /// What foreign workers implement, which every worker is told first.
    foreign: Option<ForeignRequest>,
    /// Bytes that each may take beside others; alone it may take its share of what is free.
    memory: Option<usize>,
}

/// Bytes that a worker may take which is alone; none where the system does not tell.
fn memory_of_one() -> Option<usize> {
    free_memory().map(|bytes| ((bytes as f64 * MEMORY_SHARE) as usize).max(LEAST_MEMORY))
}

/// Bytes that each of at most so many workers may take which run side by side; none where no limit is known.
fn shares_of(all: Option<usize>, most: usize) -> Vec<Option<usize>> {
    let most = all.map_or(most, |bytes| most.min(bytes / ROOM_BESIDE_OTHERS));
    let count = most.min(MOST_SIDE_BY_SIDE);
    vec![all.and_then(|bytes| bytes.checked_div(count)); count]
}

impl Processes {
    /// Workers of a program; its `main` must serve when it is given `argument`.
    pub fn of(program: PathBuf, argument: &'static str, seed: u64) -> Self {
        Processes { program, argument, seed, foreign: None, memory: None }
    }

    /// Workers of the executable that is running; its `main` must serve when it is given `argument`.
    pub fn of_this_program(argument: &'static str, seed: u64) -> io::Result<Self> {
        Ok(Processes::of(this_program()?, argument, seed))
    }

    /// Workers that know of foreign ones.
    pub fn knowing(self, foreign: Option<ForeignRequest>) -> Self {
        Processes { foreign, ..self }
    }

    /// A worker that has just been started.
    fn start(&self, launch: u64) -> io::Result<Process> {
        let mut draw = SplitMix(self.seed ^ launch.rotate_left(32));
        let padding = "x".repeat(draw.below(ENVIRONMENT_SHIFT) as usize);
        let memory = self.memory.or_else(memory_of_one);
        let (requests, theirs) = UnixStream::pair()?;
        requests.set_read_timeout(Some(TICK))?;
        requests.set_write_timeout(Some(TICK))?;
        let replies = Lines::of(requests.try_clone()?);
        let (pipe, printed) = io::pipe()?;
        let mut command = Command::new(&self.program);
        command.arg(self.argument).env(PADDING, padding);
        memory.map(|bytes| command.env(MEMORY, bytes.to_string()));
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(printed.try_clone()?).stderr(printed);
        let workers = self.foreign.iter().flat_map(|foreign| &foreign.workers);
        let servers: Vec<i32> = workers.filter_map(|worker| worker.server).collect();
        if !servers.is_empty() {
            hand_down(&mut command, servers);
        }
        let group = ProcessGroup::start(&mut command)?;
        let output = Output::of(pipe);
        let timeout = USUAL_TIMEOUT;
        Ok(Process { group, requests, replies, output, memory, timeout })
    }
}

impl Launcher for Processes {
    fn launch(&self, launch: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        if std::env::var_os(PADDING).is_some() {
            let advice = "it was started as a worker and did not serve: begin its main with `Workers::here()`";
            return Err(LinkError::Start(io::Error::other(advice)));
        }
        if let Some(interrupt) = interrupted() {
            return Err(LinkError::Interrupted(interrupt));
        }
        let mut process = self.start(launch).map_err(LinkError::Start)?;
        if let Some(foreign) = &self.foreign {
            process.ask(&Request::Enlist(foreign.clone()), &mut |_| {})?;
        }
        Ok(Box::new(process))
    }

    fn is_fresh(&self) -> bool {
        true
    }

    fn side_by_side(&self, most: usize) -> Vec<Box<dyn Launcher + Send + '_>> {
        let shares = shares_of(memory_of_one(), most).into_iter();
        let beside = |memory| Box::new(Processes { memory, ..self.clone() }) as Box<_>;
        shares.map(beside).collect()
    }
}

/// One worker process.
struct Process {
    group: ProcessGroup,
    requests: UnixStream,
    replies: Lines,
    output: Output,
    /// Bytes that it may take.
    memory: Option<usize>,
    /// How long a call may take in it.
    timeout: Duration,
}

impl Link for Process {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        self.timeout = request.timeout().unwrap_or(self.timeout);
        let silence = request.longest_silence(self.timeout);
        let mut line = serde_json::to_string(request).map_err(io::Error::from)?;
        line.push('\n');
        self.send(line.as_bytes(), silence)?;
        loop {
            let reply = self.reply(silence, hear)?;
            if reply.is_last() {
                return conclude(reply);
            }
            let error = LinkError::of(&reply);
            hear(reply);
            if let Some(error) = error {
                return Err(error);
            }
        }
    }
}

impl Process {
    /// Sends a request, which a worker that does not read may not have room for.
    fn send(&mut self, mut bytes: &[u8], silence: Duration) -> Result<(), LinkError> {
        let asked = Instant::now();
        while !bytes.is_empty() {
            match self.requests.write(bytes) {
                Ok(taken) => bytes = &bytes[taken..],
                Err(error) if is_pause(error.kind()) => {
                    if let Some(interrupt) = interrupted() {
                        return Err(LinkError::Interrupted(interrupt));
                    }
                    self.check_silence(asked, silence)?;
                }
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    /// Ends a worker that has been silent for too long.
    fn check_silence(&mut self, since: Instant, longest: Duration) -> Result<(), LinkError> {
        if since.elapsed() < longest {
            return Ok(());
        }
        self.group.kill();
        Err(LinkError::Silent { seconds: since.elapsed().as_secs_f64() })
    }

    /// The next reply, before the worker has been silent for too long.
    fn reply(
        &mut self,
        silence: Duration,
        hear: &mut dyn FnMut(Reply),
    ) -> Result<Reply, LinkError> {
        let asked = Instant::now();
        loop {
            if let Some(interrupt) = interrupted() {
                self.hear_out(hear);
                return Err(LinkError::Interrupted(interrupt));
            }
            match self.next_reply()? {
                Some(reply) => return Ok(reply),
                None => self.check_silence(asked, silence)?,
            }
        }
    }

    /// Lets a worker stop, and hears what it has measured.
    fn hear_out(&mut self, hear: &mut dyn FnMut(Reply)) {
        let _ = self.requests.shutdown(Shutdown::Write);
        let begun = Instant::now();
        while begun.elapsed() < LAST_REPLIES {
            match self.next_reply() {
                Ok(Some(reply)) if reply.is_last() => return,
                Ok(Some(reply)) => hear(reply),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    /// The next reply; none when it is not there after a moment.
    fn next_reply(&mut self) -> Result<Option<Reply>, LinkError> {
        match self.replies.next(LONGEST_REPLY) {
            Heard::Line(line) => parse(&line).map(Some),
            Heard::Part => Ok(None),
            // Processes that a kernel has started may keep the channel open.
            Heard::Nothing if !self.group.has_ended() => Ok(None),
            Heard::Nothing | Heard::End => Err(self.ended()),
        }
    }

    /// How the process ended; it is ended if it has only closed the channel.
    fn ended(&mut self) -> LinkError {
        let status = self.part();
        let words = self.output.last_words(ECHO);
        let how = match status {
            Some(status) => ending::of_status(status),
            None => "it closed its channel, went on, and was killed".to_owned(),
        };
        let is_short = words.as_deref().and_then(failed_allocation).zip(self.memory);
        let is_short = is_short.is_some_and(|(wanted, all)| wanted < all / MODEST);
        let by_others = status.is_some_and(ending::is_by_others) || is_short;
        LinkError::Ended { how: how + &self.shortage(words.as_deref()), by_others, words }
    }

    /// What memory has to do with it.
    fn shortage(&self, words: Option<&str>) -> String {
        match (words, self.memory) {
            (Some(words), Some(bytes)) if words.contains("memory allocation of") => {
                let share = (MEMORY_SHARE * 100.0).round();
                let gibibytes = bytes as f64 / (1u64 << 30) as f64;
                format!(" (a process may take {gibibytes:.1} GiB here, {share} % of what is free)")
            }
            _ => String::new(),
        }
    }

    /// Closes the channel and waits for the end of the process, which is ended if it takes too long; gives how it ended
    /// by itself.
    fn part(&mut self) -> Option<std::process::ExitStatus> {
        let _ = self.requests.shutdown(Shutdown::Both);
        let status = self.group.wait(SHUTDOWN_GRACE);
        self.group.kill();
        status
    }
}

/// No worker outlives its controller's interest in it.
impl Drop for Process {
    fn drop(&mut self) {
        self.part();
    }
}

/// Bytes that could not be had, by the words of Rust's standard library.
fn failed_allocation(words: &str) -> Option<usize> {
    let (_, rest) = words.split_once("memory allocation of ")?;
    rest.split_once(" bytes failed")?.0.parse().ok()
}

fn parse(line: &[u8]) -> Result<Reply, LinkError> {
    let text = std::str::from_utf8(line).map_err(serde_json::Error::custom);
    text.and_then(Reply::from_json).map_err(|error| {
        let line = String::from_utf8_lossy(&line[..line.len().min(1000)]);
        LinkError::Nonsense { line: line.trim_end().chars().take(200).collect(), error }
    })
}

#[cfg(test)]
mod tests {
    use super::super::Review;
    use super::*;

    #[test]
    fn the_size_of_an_allocation_that_failed_is_known() {
        let words = "x / memory allocation of 320000 bytes failed / memory allocation of 5 bytes";
        assert_eq!(failed_allocation(words), Some(320_000));
        assert_eq!(failed_allocation("memory allocation of many bytes failed"), None);
        assert_eq!(failed_allocation("killed"), None);
    }

    #[test]
    fn workers_that_run_side_by_side_share_the_memory_and_have_room() {
        let gibibyte = 1 << 30;
        assert_eq!(shares_of(Some(12 * gibibyte), 4), [Some(3 * gibibyte); 4]);
        assert_eq!(shares_of(Some(3 * gibibyte), 16), [Some(gibibyte); 3]);
        assert_eq!(shares_of(Some(gibibyte / 2), 16), []);
        assert_eq!(shares_of(None, 2), [None; 2]);
        assert_eq!(shares_of(None, 1000).len(), MOST_SIDE_BY_SIDE);
    }

    /// A worker that reads nothing, and the other end of the channel.
    fn deaf(command: &mut Command) -> (Process, UnixStream) {
        let (requests, theirs) = UnixStream::pair().expect("a socket");
        requests.set_write_timeout(Some(Duration::from_millis(20))).expect("a time");
        let replies = Lines::of(requests.try_clone().expect("a socket"));
        let group = ProcessGroup::start(command).expect("a process");
        let (pipe, _) = io::pipe().expect("a pipe");
        let (output, memory, timeout) = (Output::of(pipe), None, USUAL_TIMEOUT);
        (Process { group, requests, replies, output, memory, timeout }, theirs)
    }

    /// A worker that says something and ends.
    fn last_words(words: &str) -> LinkError {
        let (mut process, mut theirs) = deaf(&mut Command::new("true"));
        theirs.write_all(words.as_bytes()).expect("room for a line");
        // The request is read by nobody, but finds the channel open; then the channel ends.
        theirs.shutdown(Shutdown::Write).expect("open");
        process.ask(&Request::Recheck(Review::OF_RESULTS), &mut |_| {}).expect_err("no last reply")
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

    #[test]
    fn a_worker_that_does_not_read_is_not_waited_for_without_end() {
        let (mut process, _theirs) = deaf(Command::new("sleep").arg("600"));
        let request = vec![b' '; 16 << 20];
        let error = process.send(&request, Duration::from_millis(100)).expect_err("no room");
        assert!(matches!(error, LinkError::Silent { .. }), "{error}");
        assert!(process.group.has_ended());
    }
}
