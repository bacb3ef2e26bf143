//! Measuring: from a checked plan to samples.
//!
//! A launch visits its cells round-robin. One visit is a *block*: every row of the cell in random order and then in the
//! reverse of that order, so that a drift of the machine hits all rows alike and the seed, not the clock, decides who
//! comes first. Before each sample the same row runs untimed for a while, so that it finds the caches as it leaves them.
//!
//! The number of calls in a sample is found once (calibration) and stays fixed for the run.

mod calibrate;
mod effort;
mod launch;
mod order;
mod stage;

pub use calibrate::{Calibration, MEMORY_CAP, RowCalibration, calibrate};
pub use effort::Effort;
pub use launch::{Failure, Limits, Subject, SubjectRow, run_launch};
pub use order::Order;
pub use stage::{Measured, RowMeasured, measure_plan};

/// Everything that was measured, launch by launch.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// One record for every process that measured; one for now.
    pub launches: Vec<Launch>,
}

/// What one process measured.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Blocks of every cell, in the order of the plan.
    pub cells: Vec<Vec<Block>>,
}

/// One visit to all rows of a cell.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// In the order in which they were taken.
    pub samples: Vec<Sample>,
}

/// The time of one sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Index of the row in its cell.
    pub row: usize,
    /// Nanoseconds per call, without the overhead of the clock.
    pub nanoseconds: f64,
}
