//! Memory for blocks, rows and scores, which a thread allocates once and keeps.

use std::cell::RefCell;

thread_local! {
    static SHELF: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Elements of a line of the cache: no array begins within one, as vectors across two of them take twice as long.
const LINE: usize = 16;

/// Lends `N` arrays of these lengths, whose content is whatever was left there.
///
/// A thread that waits for others may be given their tasks meanwhile, which then get arrays of their own.
pub fn with_scratch<const N: usize, R>(
    lengths: [usize; N],
    run: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    let mut whole = SHELF.with_borrow_mut(Vec::pop).unwrap_or_default();
    let length = lengths.iter().map(|length| length.next_multiple_of(LINE)).sum::<usize>() + LINE;
    if whole.len() < length {
        whole.resize(length, 0.0);
    }
    let start = whole.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
    let mut rest = &mut whole[start..];
    let parts = lengths.map(|length| {
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(length.next_multiple_of(LINE));
        rest = behind;
        &mut part[..length]
    });
    let result = run(parts);
    SHELF.with_borrow_mut(|shelf| shelf.push(whole));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_within_a_call_has_memory_of_its_own() {
        with_scratch([3, 2], |[a, b]| {
            a.fill(1.0);
            b.fill(2.0);
            with_scratch([5], |[inner]| inner.fill(3.0));
            assert_eq!((&*a, &*b), (&[1.0; 3][..], &[2.0; 2][..]));
        });
    }

    #[test]
    fn every_array_begins_with_a_line_of_the_cache() {
        with_scratch([1, 17, 16], |parts| {
            assert!(parts.iter().all(|part| part.as_ptr().addr().is_multiple_of(64)));
        });
    }
}
