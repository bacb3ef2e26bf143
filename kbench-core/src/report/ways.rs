//! Ways through the sizes, found by the sizes that are on them.

use std::collections::{BTreeMap, HashMap};

use crate::order;

/// Several ways, each by the axes that it holds. A size is looked up once for every choice of axes, and not once for every
/// way.
pub(super) struct Ways<'a> {
    /// Axes that are held by some way.
    choices: Vec<Vec<&'a str>>,
    /// The position of the first way that holds some values.
    positions: HashMap<Vec<(&'a str, usize)>, usize>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(ways: impl IntoIterator<Item = &'a BTreeMap<String, usize>>) -> Self {
        let mut positions = HashMap::new();
        for (position, held) in ways.into_iter().enumerate() {
            let held = held.iter().map(|(axis, value)| (axis.as_str(), *value));
            positions.entry(held.collect()).or_insert(position);
        }
        let axes = |held: &Vec<(&'a str, usize)>| held.iter().map(|(axis, _)| *axis).collect();
        let choices = order::distinct(positions.keys().map(axes));
        Ways { choices, positions }
    }

    /// Positions of the ways that a size with these axes is on; of ways that hold the same, the first.
    pub(super) fn of(&self, axes: &BTreeMap<String, usize>) -> impl Iterator<Item = usize> {
        self.choices.iter().filter_map(|choice| {
            let held = choice.iter().map(|axis| Some((*axis, *axes.get(*axis)?)));
            self.positions.get(&held.collect::<Option<Vec<_>>>()?).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(values: &[(&str, usize)]) -> BTreeMap<String, usize> {
        values.iter().map(|(axis, value)| ((*axis).to_owned(), *value)).collect()
    }

    #[test]
    fn a_size_is_on_the_ways_whose_axes_it_has() {
        let all = [&[("m", 1)][..], &[("m", 2)], &[("m", 1)], &[("k", 3), ("m", 1)], &[]].map(axes);
        let ways = Ways::new(&all);
        let of = |size: &[(&str, usize)]| order::distinct(ways.of(&axes(size)));
        assert_eq!(of(&[("k", 3), ("m", 1), ("n", 9)]), [0, 3, 4]);
        assert_eq!(of(&[("k", 4), ("m", 2)]), [1, 4]);
        assert_eq!(of(&[("n", 1)]), [4]);
    }
}
