//! Findings by what they are about: a report of many kernels is gone through once, and not once for each of them.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::RowReport;

/// Some of many, found by a key.
pub(super) struct Index<'a, K, T>(HashMap<K, Vec<&'a T>>);

impl<'a, K: Hash + Eq, T> Index<'a, K, T> {
    /// All of them, in their order under each key.
    pub(super) fn new(all: impl IntoIterator<Item = &'a T>, key: impl Fn(&'a T) -> K) -> Self {
        let mut found: HashMap<K, Vec<&'a T>> = HashMap::new();
        for one in all {
            found.entry(key(one)).or_default().push(one);
        }
        Index(found)
    }

    /// Those of a key.
    pub(super) fn of(&self, key: &K) -> &[&'a T] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }
}

/// The last row of every variant that has rows of some kind, in the order of the rows.
pub(super) fn last_of_variants(
    rows: &[RowReport],
    is_meant: impl Fn(&RowReport) -> bool,
) -> Vec<&RowReport> {
    let mut seen = HashSet::new();
    let from_the_end = rows.iter().rev().filter(|row| is_meant(row));
    let mut last: Vec<&RowReport> =
        from_the_end.filter(|row| seen.insert(row.variant.as_str())).collect();
    last.reverse();
    last
}
