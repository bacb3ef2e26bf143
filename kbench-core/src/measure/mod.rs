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
pub use judge::{Judge, Look, OpenCell, Outlook, Spread};
pub use stage::{
    Assignment, Isolation, Measured, Onlooker, Pass, RowMeasured, Spent, measure_plan,
};

use crate::worker::{Block, chain_of, quiet_level};

/// Everything that was measured, launch by launch.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// One record for every process that measured.
    pub launches: Vec<Launch>,
}

impl Measurement {
    /// All blocks of all launches.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.launches.iter().flat_map(|launch| launch.cells.iter().flatten())
    }

    /// Nanoseconds of the chain when nobody else is on the machine, as far as this can be told.
    pub fn quiet_level(&self) -> Option<f64> {
        quiet_level(&self.blocks().map(chain_of).collect::<Vec<_>>())
    }

    /// Whether there is any sample of a row.
    pub fn has(&self, cell: usize, row: usize) -> bool {
        let mut blocks = self.launches.iter().flat_map(|launch| &launch.cells[cell]);
        blocks.any(|block| block.samples.iter().any(|sample| sample.row == row))
    }
}

/// What one process measured.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Blocks of every cell, in the order of the plan.
    pub cells: Vec<Vec<Block>>,
}

#[cfg(test)]
mod tests;
