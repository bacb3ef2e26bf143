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

/// Values in groups of one key each: groups in the order of their first values, values in their own order.
pub(super) fn grouped<K: Hash + Eq, T>(
    all: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut known: HashMap<K, usize> = HashMap::new();
    for one in all {
        let group = *known.entry(key(&one)).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(one);
    }
    groups
}

/// Keys that occur with several values.
pub(super) fn with_several<K: Hash + Eq + Copy, V: PartialEq>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> HashSet<K> {
    let mut first: HashMap<K, V> = HashMap::new();
    let mut several = HashSet::new();
    for (key, value) in pairs {
        match first.get(&key) {
            Some(known) if *known != value => _ = several.insert(key),
            Some(_) => {}
            None => _ = first.insert(key, value),
        }
    }
    several
}

/// Keys that occur more than once.
pub(super) fn repeated<K: Hash + Eq + Copy>(keys: impl IntoIterator<Item = K>) -> HashSet<K> {
    with_several(keys.into_iter().enumerate().map(|(position, key)| (key, position)))
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
