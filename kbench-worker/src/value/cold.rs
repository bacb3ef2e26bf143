//! Emptying the processor's caches of some elements.

#![allow(unsafe_code)] // the instruction takes an address

/// Whether elements can be removed from the caches of this kind of processor.
pub const CAN_EVICT: bool = cfg!(target_arch = "x86_64");

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Writes some elements back to memory, and removes them from the caches of all cores.
///
/// Their address translations stay in the TLB.
#[cfg(target_arch = "x86_64")]
pub(super) fn evict<T>(elements: &[T]) {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};
    let bytes: *const u8 = elements.as_ptr().cast();
    let length = size_of_val(elements);
    for offset in (0..length).step_by(LINE).chain(length.checked_sub(1)) {
        // SAFETY: every x86-64 processor has the instruction. It changes no content, and the byte is one of the slice.
        unsafe { _mm_clflush(bytes.add(offset)) };
    }
    // SAFETY: every x86-64 processor has the instruction, which waits until all lines are gone.
    unsafe { _mm_mfence() };
}

/// Does nothing: other processors have other instructions.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn evict<T>(_: &[T]) {}
