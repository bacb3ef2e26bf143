//! Memory for what lies between two steps, which a thread allocates once and keeps.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Arrays that a thread keeps from call to call.
///
/// There may be several: a thread that waits for others may be given their tasks meanwhile, which then get arrays of their own.
pub(crate) struct Shelf<T>(RefCell<Vec<Vec<T>>>);

impl<T> Shelf<T> {
    pub(crate) const fn new() -> Self {
        Shelf(RefCell::new(Vec::new()))
    }
}

/// Lends an array of this thread, whose content is whatever was left there; a new one is full of `empty`.
pub(crate) fn with_array<T: Copy, R>(
    shelf: &'static LocalKey<Shelf<T>>,
    length: usize,
    empty: T,
    run: impl FnOnce(&mut [T]) -> R,
) -> R {
    let mut array = shelf.with(|Shelf(kept)| kept.borrow_mut().pop()).unwrap_or_default();
    if array.len() < length {
        array = vec![empty; length];
    }
    let result = run(&mut array[..length]);
    shelf.with(|Shelf(kept)| kept.borrow_mut().push(array));
    result
}

thread_local! {
    static NUMBERS: Shelf<f32> = const { Shelf::new() };
}

/// Elements of a line of the cache: no array begins within one, as vectors across two of them take twice as long.
const LINE: usize = 16;

/// Lends `N` arrays of these lengths, each beginning with a line of the cache.
pub fn with_scratch<const N: usize, R>(
    lengths: [usize; N],
    run: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    let length = lengths.iter().map(|length| length.next_multiple_of(LINE)).sum::<usize>() + LINE;
    with_array(&NUMBERS, length, 0.0, |whole| {
        let start = whole.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let mut rest = &mut whole[start..];
        run(lengths.map(|length| {
            let (part, behind) =
                std::mem::take(&mut rest).split_at_mut(length.next_multiple_of(LINE));
            rest = behind;
            &mut part[..length]
        }))
    })
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
    fn an_array_is_kept_for_the_next_call() {
        thread_local! {
            static WORDS: Shelf<u64> = const { Shelf::new() };
        }
        let first = with_array(&WORDS, 100, 7, |words| {
            assert_eq!(words, [7; 100]);
            words[0] = 8;
            words.as_ptr()
        });
        with_array(&WORDS, 50, 7, |words| assert_eq!((words.as_ptr(), words[0]), (first, 8)));
    }

    #[test]
    fn every_array_begins_with_a_line_of_the_cache() {
        with_scratch([1, 17, 16], |parts| {
            assert!(parts.iter().all(|part| part.as_ptr().addr().is_multiple_of(64)));
        });
    }
}
