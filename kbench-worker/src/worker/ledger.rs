//! Who takes memory and does not give it back.
//!
//! Rows of many kernels share a process, and the one that asks for memory when there is none left need not be the one that
//! has taken it. So what the process has is read after the calls of every row, and the difference is put down to it. Long before
//! memory is gone, the row with the longest bill leaves.

use std::collections::BTreeMap;

use crate::system::memory;

/// Share of what a process may take at which somebody has to leave.
const ENOUGH: f64 = 0.5;

/// A row as the controller numbers it: its cell, and its place among the rows of the cell.
type Numbers = (usize, usize);

/// What rows have taken.
#[derive(Default)]
pub(super) struct Ledger {
    /// Bytes that the process may take; none when nobody counts.
    allowed: Option<usize>,
    /// What the process had when it was last looked at.
    last: usize,
    /// What every row has taken.
    taken: BTreeMap<Numbers, i64>,
}

/// A row that has taken too much.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leak {
    pub(super) row: Numbers,
    pub(super) bytes: usize,
}

impl Ledger {
    /// A ledger of a process that may take so much.
    pub(super) fn new(allowed: Option<usize>) -> Self {
        Ledger { allowed, ..Ledger::default() }
    }

    /// Other rows are called from now on.
    pub(super) fn clear(&mut self) {
        self.taken.clear();
    }

    /// What the process has now is nobody's fault.
    pub(super) fn settle(&mut self) {
        if self.allowed.is_some() {
            self.last = memory::in_use().unwrap_or(self.last);
        }
    }

    /// What has come since the last look is a row's.
    pub(super) fn note(&mut self, row: Numbers) {
        if self.allowed.is_some()
            && let Some(now) = memory::in_use()
        {
            self.add(row, now);
        }
    }

    fn add(&mut self, row: Numbers, now: usize) {
        *self.taken.entry(row).or_default() += now as i64 - self.last as i64;
        self.last = now;
    }

    /// The row that has to leave, if one has.
    pub(super) fn leak(&self) -> Option<Leak> {
        let enough = self.allowed? as f64 * ENOUGH;
        let (row, bytes) = self.taken.iter().max_by_key(|(_, bytes)| **bytes)?;
        let is_enough = *bytes as f64 > enough;
        is_enough.then_some(Leak { row: *row, bytes: usize::try_from(*bytes).unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_with_the_longest_bill_leaves_and_no_other() {
        let mut ledger = Ledger { allowed: Some(1000), last: 100, ..Ledger::default() };
        for _ in 0..10 {
            let last = ledger.last;
            // One takes 45 and gives 40 back, one takes 60 and keeps them.
            ledger.add((0, 0), last + 45);
            ledger.add((0, 0), last + 5);
            assert_eq!(ledger.leak(), None);
            ledger.add((0, 1), last + 65);
            if ledger.leak().is_some() {
                break;
            }
        }
        assert_eq!(ledger.leak(), Some(Leak { row: (0, 1), bytes: 540 }));
        ledger.clear();
        assert_eq!(ledger.leak(), None);
    }

    #[test]
    fn where_nobody_counts_nobody_leaves() {
        let mut ledger = Ledger::new(None);
        ledger.note((0, 0));
        ledger.add((0, 0), usize::MAX / 4);
        assert_eq!(ledger.leak(), None);
    }
}
