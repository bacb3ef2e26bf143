//! Arrays on the device, each between two guard zones.
//!
//! A guard zone holds a pattern that no kernel has any business to write: one that writes past the end of its output, or
//! before its beginning, is found by the pattern that is missing, and told by the array that it ran out of.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, result};

use crate::value::{F8E4M3, F8E5M2};

/// Bytes on either side of an array.
///
/// Arrays take up whole multiples of it, and so begin at multiples of it, as large ones do that others allocate. Where they
/// begin matters: a softmax over rows of 16 KiB took 7 % longer when they began at any multiple of 512 bytes.
pub(super) const GUARD: usize = 16 << 10;

/// Bytes of an array together with its guard zones; nothing when there are too many.
pub(super) fn guarded(bytes: usize) -> Option<usize> {
    bytes.checked_add(2 * GUARD)?.checked_next_multiple_of(GUARD)
}

/// What guard zones are filled with.
pub(super) const PATTERN: u8 = 0xa7;

/// An element of arrays in device memory: a number, an array of numbers, or a struct of them with `#[repr(C)]` and
/// `#[operand(element)]`, which is the only way to implement it that also holds without the feature `run` of kbench.
///
/// # Safety
///
/// Any bits that a kernel leaves behind must be a value of the type, and its layout must be that of C.
pub unsafe trait DeviceElement: Copy + Send + Sync + 'static {}

// SAFETY: its items, one behind the other.
unsafe impl<T: DeviceElement, const N: usize> DeviceElement for [T; N] {}

macro_rules! device_element {
    ($($type:ty)*) => {$(
        // SAFETY: every pattern of bits is such a number.
        unsafe impl DeviceElement for $type {}
    )*};
}

device_element! { f32 f64 half::f16 half::bf16 F8E4M3 F8E5M2 i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

/// All arrays of one device that exist.
#[derive(Default)]
pub(crate) struct Ledger {
    live: RefCell<BTreeMap<u64, Zone>>,
    next: Cell<u64>,
    bytes: Cell<usize>,
    peak: Cell<usize>,
}

/// Where an array lies, without its guard zones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    pub(super) start: CUdeviceptr,
    pub(super) bytes: usize,
}

impl Ledger {
    /// The number of the array that is entered next.
    pub(super) fn next(&self) -> u64 {
        self.next.get()
    }

    /// Bytes of all arrays.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Most bytes since the last [`mark`](Self::mark).
    pub(crate) fn peak(&self) -> usize {
        self.peak.get()
    }

    /// Begins to look for a peak.
    pub(crate) fn mark(&self) {
        self.peak.set(self.bytes.get());
    }

    /// All arrays, in the order in which they were made.
    pub(super) fn zones(&self) -> Vec<(u64, Zone)> {
        self.live.borrow().iter().map(|(number, zone)| (*number, *zone)).collect()
    }

    fn enter(&self, zone: Zone) -> u64 {
        let number = self.next.replace(self.next.get() + 1);
        self.live.borrow_mut().insert(number, zone);
        self.bytes.set(self.bytes.get() + zone.bytes);
        self.peak.set(self.peak.get().max(self.bytes.get()));
        number
    }

    fn leave(&self, number: u64) {
        if let Some(zone) = self.live.borrow_mut().remove(&number) {
            self.bytes.set(self.bytes.get() - zone.bytes);
        }
    }
}

/// Memory that belongs to one array.
pub(super) struct Allocation {
    zone: Zone,
    pub(super) number: u64,
    ledger: Rc<Ledger>,
    stream: Arc<CudaStream>,
}

impl Allocation {
    /// Takes over memory of `bytes` between two guard zones that begins at `base`.
    pub(super) fn new(
        base: CUdeviceptr,
        bytes: usize,
        ledger: Rc<Ledger>,
        stream: Arc<CudaStream>,
    ) -> Self {
        let zone = Zone { start: base + GUARD as u64, bytes };
        Allocation { zone, number: ledger.enter(zone), ledger, stream }
    }
}

/// Memory that nobody uses, kept for the next who asks for exactly as much: guard zones begin right behind the last byte.
#[derive(Default)]
pub(super) struct Shelf(RefCell<Vec<Allocation>>);

impl Shelf {
    /// Memory of so many bytes, if there is some.
    pub(super) fn take(&self, bytes: usize) -> Option<Allocation> {
        let mut shelved = self.0.borrow_mut();
        let position = shelved.iter().position(|allocation| allocation.zone.bytes == bytes)?;
        let mut allocation = shelved.swap_remove(position);
        allocation.number = allocation.ledger.enter(allocation.zone);
        Some(allocation)
    }

    /// Keeps memory; it counts for no variant meanwhile.
    pub(super) fn put(&self, allocation: Allocation) {
        allocation.ledger.leave(allocation.number);
        self.0.borrow_mut().push(allocation);
    }

    /// Gives all of it back.
    pub(super) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.ledger.leave(self.number);
        let base = self.zone.start - GUARD as u64;
        // SAFETY: nobody else has this memory. In a context that was lost this fails, and nothing is to be done.
        let _ = unsafe { result::free_async(base, self.stream.cu_stream()) };
    }
}

/// An array on a device: what a `Vec<T>` of the kernel's inputs becomes for a CUDA variant.
pub struct DeviceSlice<T> {
    pub(super) allocation: Allocation,
    len: usize,
    element: PhantomData<T>,
}

impl<T> DeviceSlice<T> {
    pub(super) fn new(allocation: Allocation, len: usize) -> Self {
        DeviceSlice { allocation, len, element: PhantomData }
    }

    pub(super) fn into_allocation(self) -> Allocation {
        self.allocation
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address on the device, for libraries of the vendor's.
    pub fn device_pointer(&self) -> u64 {
        self.allocation.zone.start
    }

    /// Some of its elements, to be read.
    ///
    /// # Panics
    ///
    /// When the range is not within the array.
    pub fn view(&self, range: impl RangeBounds<usize>) -> DeviceView<'_, T> {
        let (pointer, len) = self.part(range);
        DeviceView { pointer, len, owner: PhantomData }
    }

    /// Some of its elements, to be written.
    ///
    /// # Panics
    ///
    /// When the range is not within the array.
    pub fn view_mut(&mut self, range: impl RangeBounds<usize>) -> DeviceViewMut<'_, T> {
        let (pointer, len) = self.part(range);
        DeviceViewMut { pointer, len, owner: PhantomData }
    }

    /// Both sides of an index, to be written.
    ///
    /// # Panics
    ///
    /// When the index is beyond the array.
    pub fn split_at_mut(&mut self, middle: usize) -> (DeviceViewMut<'_, T>, DeviceViewMut<'_, T>) {
        let (first, last) = (self.part(0..middle), self.part(middle..self.len));
        let view = |(pointer, len)| DeviceViewMut { pointer, len, owner: PhantomData };
        (view(first), view(last))
    }

    fn part(&self, range: impl RangeBounds<usize>) -> (u64, usize) {
        let Range { start, end } = within(range, self.len);
        (self.device_pointer() + (start * size_of::<T>()) as u64, end - start)
    }
}

/// The elements that a range means in an array of some length.
fn within(range: impl RangeBounds<usize>, len: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(first) => *first,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => len,
    };
    assert!(start <= end && end <= len, "elements {start}..{end} of an array that has {len}");
    start..end
}

impl<T> std::fmt::Debug for DeviceSlice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = std::any::type_name::<T>();
        write!(f, "DeviceSlice<{kind}>({} at {:#x})", self.len, self.device_pointer())
    }
}

/// Elements of an array on a device, to be read.
#[derive(Clone, Copy, Debug)]
pub struct DeviceView<'a, T> {
    pointer: u64,
    len: usize,
    owner: PhantomData<&'a T>,
}

/// Elements of an array on a device, to be written.
#[derive(Debug)]
pub struct DeviceViewMut<'a, T> {
    pointer: u64,
    len: usize,
    owner: PhantomData<&'a mut T>,
}

macro_rules! view {
    ($($name:ident)*) => {$(
        impl<T> $name<'_, T> {
            /// Number of elements.
            pub fn len(&self) -> usize {
                self.len
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// The address on the device, for libraries of the vendor's.
            pub fn device_pointer(&self) -> u64 {
                self.pointer
            }
        }
    )*};
}

view! { DeviceView DeviceViewMut }

#[cfg(test)]
mod tests {
    use super::{GUARD, guarded, within};

    #[test]
    fn arrays_take_up_whole_multiples_of_a_guard_zone() {
        assert_eq!(guarded(0), Some(2 * GUARD));
        assert_eq!(guarded(1), Some(3 * GUARD));
        assert_eq!(guarded(GUARD), Some(3 * GUARD));
        assert_eq!([guarded(usize::MAX), guarded(usize::MAX - 2 * GUARD)], [None, None]);
    }

    #[test]
    fn every_kind_of_range_is_within_an_array() {
        assert_eq!((within(2..5, 8), within(3.., 8), within(..3, 8)), (2..5, 3..8, 0..3));
        assert_eq!((within(.., 8), within(2..=7, 8), within(8..8, 8)), (0..8, 2..8, 8..8));
    }

    #[test]
    #[should_panic(expected = "elements 4..9 of an array that has 8")]
    fn a_range_beyond_the_array_is_told() {
        within(4..=8, 8);
    }
}
