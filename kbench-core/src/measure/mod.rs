//! Measuring: from a checked plan to samples, launch by launch.
//!
//! The controller calibrates once, in the first worker, and shares what it found with all launches. How many launches
//! there are, and how many blocks each takes, follows from what a launch costs and from where the variance is. Between
//! launches it looks at the figures: cells that are decided leave, and their time goes to those that are not.

mod effort;
mod group;
mod judge;
mod launch;
mod roster;
mod schedule;
mod session;
mod stage;
mod timetable;

pub use effort::Effort;
pub use judge::{Indexed, Judge, Look, Outlook, Spread};
pub use stage::{Assignment, Isolation, Measured, RowMeasured, Spent, measure_plan};

use crate::worker::Block;

/// Everything that was measured, launch by launch.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// One record for every process that measured.
    pub launches: Vec<Launch>,
}

/// What one process measured.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Blocks of every cell, in the order of the plan.
    pub cells: Vec<Vec<Block>>,
}

#[cfg(test)]
mod tests;
