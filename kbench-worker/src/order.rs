//! Sorting without a sort of its own for every type.
//!
//! The standard library's sorts are compiled for each type and comparison: fifty of them took a tenth of the time in which the
//! controller is compiled. These sort positions, by one routine, and then move the values; lists are short here.

use std::cmp::Ordering;

/// The positions `0..length` in sorted order; equal ones keep theirs.
pub fn positions(length: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..length).collect();
    positions.sort_by(|a, b| compare(*a, *b));
    positions
}

/// Sorts by a comparison; equal values keep their order.
pub fn sort_by<T>(values: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let sorted = positions(values.len(), &|a, b| compare(&values[a], &values[b]));
    for (a, b) in swaps(sorted) {
        values.swap(a, b);
    }
}

/// Sorts by a key; values of equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(values: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(values, |a, b| key(a).cmp(&key(b)));
}

/// Sorts from the least to the greatest.
pub fn sort<T: Ord>(values: &mut [T]) {
    sort_by(values, T::cmp);
}

/// Each value once, from the least to the greatest.
pub fn distinct<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    sort(&mut values);
    values.dedup();
    values
}

/// The swaps that bring the values of these positions to the places `0, 1, 2, …`.
fn swaps(mut positions: Vec<usize>) -> Vec<(usize, usize)> {
    let mut swaps = Vec::new();
    for start in 0..positions.len() {
        let mut place = start;
        while positions[place] != start {
            let from = std::mem::replace(&mut positions[place], place);
            swaps.push((place, from));
            place = from;
        }
        positions[place] = place;
    }
    swaps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in no order, many of them twice.
    fn numbers(count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60, i)).collect()
    }

    #[test]
    fn values_are_sorted_as_by_the_standard_library() {
        for count in [0, 1, 2, 3, 20, 21, 1000] {
            let (mut ours, mut theirs) = (numbers(count), numbers(count));
            sort_by(&mut ours, |a, b| b.0.cmp(&a.0));
            theirs.sort_by_key(|value| std::cmp::Reverse(value.0));
            assert_eq!(ours, theirs);
            sort(&mut ours);
            theirs.sort();
            assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn equal_keys_keep_their_order() {
        let mut words = ["bb", "a", "cc", "ddd", "e"];
        sort_by_key(&mut words, |word| word.len());
        assert_eq!(words, ["a", "e", "bb", "cc", "ddd"]);
    }

    #[test]
    fn each_value_is_there_once() {
        assert_eq!(distinct(["b", "a", "b", "c", "a"]), ["a", "b", "c"]);
        assert!(distinct(Vec::<u8>::new()).is_empty());
    }
}
