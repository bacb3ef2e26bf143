//! Memory: slices that tasks write parts of, and scratch memory that threads keep.

#![allow(unsafe_code)] // parts that lie between each other cannot be split off

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Range;
use std::thread::LocalKey;

/// A slice of which tasks write parts that do not overlap, though they lie between each other.
pub(super) struct Shared<'a, T> {
    first: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: it gives nothing but parts of a slice, which `part` lets nobody share.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        Shared { first: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// A part of the slice.
    ///
    /// # Safety
    ///
    /// Nothing else may read or write these elements while the part is in use.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // that is what it is for
    pub(super) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "a part of the slice");
        // SAFETY: the range is within the slice, and the caller has it alone.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(range.start), range.len()) }
    }
}

/// Calls a function with scratch memory of this thread, which is made once and kept; its content is of no meaning.
pub(super) fn with_scratch<T: Copy, R>(
    kept: &'static LocalKey<RefCell<Vec<T>>>,
    len: usize,
    empty: T,
    function: impl FnOnce(&mut [T]) -> R,
) -> R {
    let mut memory = kept.take();
    if memory.len() < len {
        memory.resize(len, empty);
    }
    let result = function(&mut memory[..len]);
    kept.replace(memory);
    result
}
