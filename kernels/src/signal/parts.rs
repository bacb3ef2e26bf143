//! Slices that tasks write parts of.

#![allow(unsafe_code)] // parts that lie between each other cannot be split off

use std::marker::PhantomData;
use std::ops::Range;

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
