//! The worker's end of the channel.
//!
//! Three threads: one calls kernels, one hears the controller, one looks at the clock. Whoever has something to say takes
//! the lock of the replies, which is never held while a kernel runs.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::Worker;
use super::process::MEMORY;
use super::protocol::{OverdueReply, Reply, Request};
use super::watchdog::{Overdue, Vigil, watch_over};
use crate::kernel::note_panics_for_controller;
use crate::registry::Registry;
use crate::system::{
    end_others_of_own_group, exit_at_once, memory, release_stdin, wait_for_children,
};

/// Replies wait in the worker until there are this many bytes: a controller that wakes up for every block would disturb
/// the next one.
const REPLY_BUFFER: usize = 1 << 20;

/// Processes that were asked to end have ended after this long, or are ended by the controller.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// When nobody wants the rest, the current block is still finished and told of, unless it takes longer than this.
const LAST_BLOCK: Duration = Duration::from_secs(1);

/// Serves the controller at the other end of standard input until it has no more requests.
pub fn serve(registry: &Registry) -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Somebody at a terminal has no socket there, and is told so.
    socket.peer_addr()?;
    release_stdin()?;
    let memory = std::env::var(MEMORY).ok().and_then(|bytes| bytes.parse().ok());
    memory.inspect(|bytes| memory::confine(*bytes));
    note_panics_for_controller();
    let requests = BufReader::new(socket.try_clone()?);
    let replies = Replies(Arc::new(Mutex::new(BufWriter::with_capacity(REPLY_BUFFER, socket))));
    let vigil = Vigil::of_process();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn({
        let (vigil, replies) = (vigil.clone(), replies.clone());
        move || hear(requests, sender, &vigil, &replies)
    });
    std::thread::spawn({
        let (vigil, replies) = (vigil.clone(), replies.clone());
        move || end_when_overdue(&vigil, &replies)
    });
    let outcome =
        answer(Worker::watched(registry, vigil.clone(), memory), &vigil, receiver, &replies);
    end_others();
    outcome
}

/// Ends what was started here, and waits for it: whose time is not known would look as if others had used the machine.
fn end_others() {
    end_others_of_own_group();
    wait_for_children(LAST_BREATH);
}

/// Answers one request after the other.
fn answer(
    mut worker: Worker<'_>,
    vigil: &Vigil,
    requests: Receiver<String>,
    replies: &Replies,
) -> io::Result<()> {
    for line in requests {
        let (mut outcome, mut resigned) = (Ok(()), false);
        let mut say = |reply: Reply| {
            if outcome.is_ok() && !resigned {
                outcome = replies.say(&reply);
                resigned = matches!(reply, Reply::Failed(failed) if failed.ends);
            }
        };
        vigil.set_busy(true);
        match Request::from_json(&line) {
            Ok(request) => worker.answer(&request, &mut say),
            Err(error) => say(Reply::Refused { reason: format!("not a request: {error}") }),
        }
        vigil.set_busy(false);
        if resigned {
            // The controller knows, and closes the channel, at which another thread ends this process.
            loop {
                std::thread::park();
            }
        }
        outcome?;
    }
    Ok(())
}

/// Hands requests on. The end of the channel is seen at once, whatever the kernels are doing: nobody wants the rest, and
/// this process ends.
fn hear(requests: BufReader<UnixStream>, sender: Sender<String>, vigil: &Vigil, replies: &Replies) {
    for line in requests.lines().map_while(Result::ok) {
        if sender.send(line).is_err() {
            break;
        }
    }
    drop(sender);
    vigil.stop();
    // The other thread ends the process when it is done with its block. A kernel may keep it for ever.
    let stopped = Instant::now();
    while vigil.is_busy() && stopped.elapsed() < LAST_BLOCK {
        std::thread::sleep(Duration::from_millis(1));
    }
    replies.flush();
    end_others();
    if vigil.is_busy() { exit_at_once() } else { std::process::exit(0) }
}

/// Tells of a call that does not return, and ends the process.
fn end_when_overdue(vigil: &Vigil, replies: &Replies) {
    let Overdue { place, waited } = watch_over(vigil);
    let seconds = waited.as_secs_f64();
    let _ = replies.say(&Reply::Overdue(OverdueReply { place, seconds }));
    end_others_of_own_group();
    exit_at_once()
}

/// Where replies go.
#[derive(Clone)]
struct Replies(Arc<Mutex<BufWriter<UnixStream>>>);

impl Replies {
    fn say(&self, reply: &Reply) -> io::Result<()> {
        let mut line = serde_json::to_vec(reply)?;
        line.push(b'\n');
        let mut writer = self.lock();
        writer.write_all(&line)?;
        // Everything but a block comes when nothing is being timed, and must be known if this process ends.
        if matches!(reply, Reply::Block(_)) { Ok(()) } else { writer.flush() }
    }

    /// Tells what waits, if anybody hears it.
    fn flush(&self) {
        let _ = self.lock().flush();
    }

    fn lock(&self) -> MutexGuard<'_, BufWriter<UnixStream>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
