//! Measuring: from a checked plan to samples, launch by launch.
//!
//! Every cell is calibrated once. Then the time of the whole run is shared out among all cells: how many launches each has,
//! and how many blocks in each, follows from what its launches cost and from where its variance is. Launches of all cells
//! take turns, so that what changes over minutes is sampled by each. Between rounds the figures are looked at: cells that
//! are decided leave, and their time goes to those that are not.

mod cell;
mod effort;
mod judge;
mod launch;
mod roster;
mod run;
mod schedule;
mod session;
mod stage;

pub use effort::{Budget, Effort};
pub use judge::{Family, Judge, Look, OpenCell, Outlook, Spread};
pub use stage::{
    Assignment, Isolation, Measured, Onlooker, Pass, RowMeasured, Spent, go_on, measure_plan,
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

    /// Nanoseconds of the chain beside the rows of a cell when nothing else runs, as far as this can be told. What the rows
    /// themselves do to the clock rate is part of it, so that it never selects blocks.
    pub fn quiet_level(&self, cell: usize) -> Option<f64> {
        let blocks = self.launches.iter().flat_map(|launch| &launch.cells[cell]);
        quiet_level(&blocks.map(chain_of).collect::<Vec<_>>())
    }

    /// Nanoseconds of the short chain on all threads of a parallel row when nothing else runs; none for other rows.
    pub fn crew_level(&self, cell: usize, row: usize) -> Option<f64> {
        let blocks = self.launches.iter().flat_map(|launch| &launch.cells[cell]);
        let samples = blocks.flat_map(|block| &block.samples).filter(|sample| sample.row == row);
        quiet_level(&samples.filter_map(|sample| sample.crew).collect::<Vec<_>>())
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
