//! Between a controller and a worker.

use std::io;

use super::Worker;
use super::protocol::{Done, Reply, Request};
use crate::system::{Interrupt, interrupted};

/// A worker, as its controller sees it.
pub trait Link {
    /// Asks for something, and hears all replies but the last one; gives the last one.
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError>;
}

/// Where workers come from.
pub trait Launcher {
    /// Starts a worker for a launch.
    fn launch(&self, launch: u64) -> Result<Box<dyn Link + '_>, LinkError>;

    /// Whether every worker is a process of its own, so that another launch has another placement.
    fn is_fresh(&self) -> bool;

    /// Launchers whose workers may run side by side, at most so many, each with its share of the memory; none where one
    /// worker follows the other.
    fn side_by_side(&self, most: usize) -> Vec<Box<dyn Launcher + Send + '_>> {
        let _ = most;
        Vec::new()
    }
}

/// A row whose process was ended by somebody else is called again, this often; then it looks as if it were its own fault.
pub const MOST_PARDONS: u32 = 2;

/// Why a worker does not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The process could not be started.
    #[error(
        "a worker process cannot be started: {0}; may this program be started again, and as many processes?"
    )]
    Start(#[source] io::Error),
    /// It ended in the middle of a request.
    #[error("ended its process: {how}{}", last_words(words))]
    Ended {
        /// What the system says.
        how: String,
        /// Whether somebody else may have ended it, by a signal that no kernel raises.
        by_others: bool,
        /// What it printed last.
        words: Option<String>,
    },
    /// A call took longer than it may, and the process was ended.
    #[error(
        "did not return within {seconds:.1} s, so its process was ended: does it hang, or wait for a thread? \
         (--timeout sets how long a call may take)"
    )]
    Overdue {
        /// How long it was waited for.
        seconds: f64,
    },
    /// The process did not say anything any more, and was ended.
    #[error("was not heard of for {seconds:.0} s, so its process was ended")]
    Silent {
        /// How long it was waited for.
        seconds: f64,
    },
    /// Somebody wants the run to end.
    #[error("the run was interrupted by {0}")]
    Interrupted(Interrupt),
    /// It broke something that it cannot do without, and has said which row did it.
    #[error("the worker process gave up")]
    Resigned,
    /// It prepared nothing of what it was asked for, and did not say why.
    #[error("the worker process prepared none of the cells that it was asked for")]
    Idle,
    /// It said something that makes no sense.
    #[error("the worker process answered `{line}`, which is not a reply of the protocol: {error}")]
    Nonsense {
        /// What it said.
        line: String,
        /// Why it makes no sense.
        error: serde_json::Error,
    },
    /// It cannot do it.
    #[error("the worker process refused: {0}")]
    Refused(String),
    /// It could not be reached.
    #[error("the worker process cannot be reached: {0}")]
    Channel(#[from] io::Error),
}

impl LinkError {
    /// What a reply means that is no answer but an end.
    pub fn of(reply: &Reply) -> Option<Self> {
        match reply {
            Reply::Failed(failed) if failed.ends => Some(LinkError::Resigned),
            Reply::Overdue(overdue) => Some(LinkError::Overdue { seconds: overdue.seconds }),
            _ => None,
        }
    }

    /// Whether the process ended, by whatever it was doing, or lost its mind.
    pub fn is_end(&self) -> bool {
        matches!(
            self,
            LinkError::Ended { .. }
                | LinkError::Overdue { .. }
                | LinkError::Silent { .. }
                | LinkError::Nonsense { .. }
        )
    }

    /// Whether somebody else may have ended the process: whoever was being called deserves another chance.
    pub fn is_by_others(&self) -> bool {
        matches!(self, LinkError::Ended { by_others: true, .. })
    }

    /// Whether the process ended because of the time that it took.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self, LinkError::Overdue { .. } | LinkError::Silent { .. })
    }

    /// Who wants the run to end.
    pub fn interrupt(&self) -> Option<Interrupt> {
        match self {
            LinkError::Interrupted(interrupt) => Some(*interrupt),
            _ => None,
        }
    }
}

fn last_words(words: &Option<String>) -> String {
    words.as_ref().map_or_else(String::new, |words| format!("; its last words: {words}"))
}

/// What the last reply to a request means.
pub(super) fn conclude(reply: Reply) -> Result<Done, LinkError> {
    match reply {
        Reply::Refused { reason } => Err(LinkError::Refused(reason)),
        Reply::Done(done) => Ok(done),
        other => unreachable!("{other:?} is no last reply"),
    }
}

/// Measures in this very process, for those whose program cannot start itself again.
pub struct SameProcess<'r>(pub &'r crate::registry::Registry);

impl Launcher for SameProcess<'_> {
    fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        Ok(Box::new(Worker::new(self.0)))
    }

    fn is_fresh(&self) -> bool {
        false
    }
}

impl Link for Worker<'_> {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        if let Some(interrupt) = interrupted() {
            return Err(LinkError::Interrupted(interrupt));
        }
        let mut last = None;
        self.answer(request, &mut |reply| {
            if reply.is_last() { last = Some(reply) } else { hear(reply) }
        });
        last.map_or_else(|| Ok(Done::default()), conclude)
    }
}
