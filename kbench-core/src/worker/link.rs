//! Between a controller and a worker.

use std::io;

use super::Worker;
use super::protocol::{Done, Reply, Request};

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
}

/// Why a worker does not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The process could not be started.
    #[error(
        "a worker process cannot be started: {0}; may this program be started again, and as many processes?"
    )]
    Start(#[source] io::Error),
    /// It ended in the middle of a request.
    #[error("the worker process ended while it was measuring ({0})")]
    Ended(String),
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
    /// Whether the process ended, by whatever it was doing.
    pub fn is_end(&self) -> bool {
        matches!(self, LinkError::Ended(_))
    }
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
        let mut last = None;
        self.answer(request, &mut |reply| {
            if reply.is_last() { last = Some(reply) } else { hear(reply) }
        });
        last.map_or_else(|| Ok(Done::default()), conclude)
    }
}
