//! The stopping rule, as the measuring stage sees it: an object that can be replaced.

use super::Measurement;
use crate::plan::Cell;

/// One of the looks at the figures that are planned in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Looks that are planned before the last one.
    pub interim: u32,
    /// Whether this is the last one.
    pub is_last: bool,
}

impl Look {
    /// The only look at figures that nobody looks at before.
    pub const ONLY: Look = Look { interim: 0, is_last: true };
}

/// What can be said of a row, or of a whole cell, before all its samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outlook {
    /// Every difference is there and known well enough: no more samples are needed.
    Decided,
    /// Equal to what it is compared with, or different from it: more time than planned is not needed.
    Settled,
    /// More time helps.
    Open,
}

/// All comparisons of a report.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// How many there are.
    pub comparisons: usize,
    /// How many of them are decided already.
    pub decided: usize,
}

/// Where the variance of a cell's log-ratios comes from, as standard deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Between blocks of one launch.
    pub blocks: f64,
    /// Between launches, beyond what the blocks explain.
    pub launches: f64,
}

/// A cell that may want more samples.
pub struct OpenCell<'a> {
    /// Its index in the plan.
    pub index: usize,
    /// The cell.
    pub cell: &'a Cell,
    /// Its rows that are still being measured: the others have failed, and nothing waits for them.
    pub rows: Vec<usize>,
}

impl OpenCell<'_> {
    /// Rows, each behind the one that it is compared with: its base, and its former self. None whose counterpart is not
    /// there or has failed.
    pub fn compared(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let now = self.rows.iter().copied().filter(|row| *row < self.cell.rows.len());
        let pairs = |row: usize| {
            let base = self.cell.base_of(row).filter(|base| *base != row);
            [base, Some(self.cell.past_of(row))].into_iter().flatten().map(move |with| (with, row))
        };
        now.flat_map(pairs).filter(|(with, _)| self.rows.contains(with))
    }
}

/// Whoever looks at the figures between launches.
pub trait Judge {
    /// What can be said of each row of some cells, in the order of their rows.
    fn outlooks(
        &self,
        measurement: &Measurement,
        cells: &[OpenCell<'_>],
        look: Look,
        family: Family,
    ) -> Vec<Vec<Outlook>>;

    /// Where the variance of each of some cells comes from; none before there is enough to tell.
    fn spreads(&self, measurement: &Measurement, cells: &[OpenCell<'_>]) -> Vec<Option<Spread>>;
}

/// Never stops early.
impl Judge for () {
    fn outlooks(
        &self,
        _: &Measurement,
        cells: &[OpenCell<'_>],
        _: Look,
        _: Family,
    ) -> Vec<Vec<Outlook>> {
        cells.iter().map(|open| vec![Outlook::Open; open.rows.len()]).collect()
    }

    fn spreads(&self, _: &Measurement, cells: &[OpenCell<'_>]) -> Vec<Option<Spread>> {
        vec![None; cells.len()]
    }
}
