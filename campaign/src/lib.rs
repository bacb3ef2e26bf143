//! Work whose amount is known exactly, for measuring the tools that measure.
//!
//! Two tasks of the same code that differ in their amount alone take times whose ratio is the ratio of the amounts. All
//! tools get the same tasks, from here.

#![forbid(unsafe_code)]

pub mod chain;
mod duration;
pub mod random;
pub mod statistics;
pub mod sweep;
mod task;
pub mod truth;

pub use duration::duration;
pub use task::{Code, Task, TaskError, Workload};

/// The function that most tasks call.
pub const ORIGINAL: u8 = 0;

/// The same function at another address.
pub const COPY: u8 = 1;
