//! Floats of 32 and 16 bits, all of them computed with in `f32`.

use std::ops::{Deref, DerefMut};

use half::{bf16, f16};
use kbench::{DeviceElement, Element};

use self::sealed::Sealed;
use super::simd::{narrow_f16, widen_f16};

/// Elements that are widened at a time: their `f32` stay in the first-level cache.
pub const BLOCK: usize = 256;

/// The `f32` of a block of elements, at an address where no vector of them lies across two lines of the cache.
#[derive(Clone)]
#[repr(align(64))]
pub struct Buffer([f32; BLOCK]);

/// An empty buffer.
pub const BUFFER: Buffer = Buffer([0.0; BLOCK]);

impl Deref for Buffer {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl DerefMut for Buffer {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

/// f32, f16 or bf16: a kernel over any of them reads and writes blocks of `f32`, which cost nothing when they are that
/// already.
///
/// ```
/// # use kernels::shared::Float;
/// # use kernels::shared::float::BUFFER;
/// fn double<T: Float>(x: &[T], out: &mut [T]) {
///     let (mut wide_x, mut wide_out) = (BUFFER, BUFFER);
///     for (x, out) in x.chunks(T::BLOCK).zip(out.chunks_mut(T::BLOCK)) {
///         let x = T::read(x, &mut wide_x);
///         for (out, x) in T::output(out, &mut wide_out).iter_mut().zip(x) {
///             *out = 2.0 * x;
///         }
///         T::flush(&wide_out, out);
///     }
/// }
/// # let mut out = [0.0; 2];
/// # double(&[1.0f32, 2.0], &mut out);
/// # assert_eq!(out, [2.0, 4.0]);
/// ```
///
/// No other type can be one: elements are moved as vectors of `f32`, and padding must not be read as a number.
///
/// ```compile_fail
/// # use kbench::{DeviceElement, Element, Poison};
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Padded(u8, u16);
/// # // SAFETY: any bits are two numbers, in the layout of C.
/// # unsafe impl DeviceElement for Padded {}
/// # impl Element for Padded {
/// #     const NAME: &'static str = "padded";
/// #     const ROUNDOFF: f64 = 0.0;
/// #     fn from_f64(_: f64) -> Self { Padded(0, 0) }
/// #     fn to_f64(self) -> f64 { 0.0 }
/// #     fn bits(self) -> u64 { 0 }
/// #     fn poison(_: Poison) -> Self { Padded(0, 0) }
/// # }
///
/// impl kernels::shared::Float for Padded {
///     // ..
/// #   fn one_of<C>([first, ..]: [C; 3]) -> C { first }
/// #   fn to_f32(self) -> f32 { 0.0 }
/// #   fn from_f32(_: f32) -> Self { Padded(0, 0) }
/// #   fn widen(_: &[Self], _: &mut [f32]) {}
/// #   fn narrow(_: &[f32], _: &mut [Self]) {}
/// }
/// ```
pub trait Float: Element + DeviceElement + Sealed {
    /// Elements that are read or written at a time: [`BLOCK`], or all of them where no buffer is needed.
    const BLOCK: usize = BLOCK;

    /// Elements of the buffer that so many of them need.
    #[inline(always)]
    fn buffered(length: usize) -> usize {
        length
    }

    /// The first of three for f32, the second for f16, the third for bf16: one of the entry points of device code.
    fn one_of<C>(choices: [C; 3]) -> C;

    /// The same number.
    fn to_f32(self) -> f32;

    /// The nearest number, ties to even.
    fn from_f32(value: f32) -> Self;

    /// The same numbers; both sides have the same length.
    fn widen(from: &[Self], to: &mut [f32]);

    /// The nearest numbers, ties to even; both sides have the same length.
    fn narrow(from: &[f32], to: &mut [Self]);

    /// Elements as `f32`; the buffer is at least as long.
    #[inline(always)]
    fn read<'a>(from: &'a [Self], buffer: &'a mut [f32]) -> &'a [f32] {
        let buffer = &mut buffer[..from.len()];
        Self::widen(from, buffer);
        buffer
    }

    /// Where to write elements as `f32`, before [`flush`](Self::flush); what is there is of no meaning.
    #[inline(always)]
    fn output<'a>(to: &'a mut [Self], buffer: &'a mut [f32]) -> &'a mut [f32] {
        &mut buffer[..to.len()]
    }

    /// Elements as `f32` to be changed, before [`flush`](Self::flush).
    #[inline(always)]
    fn edit<'a>(at: &'a mut [Self], buffer: &'a mut [f32]) -> &'a mut [f32] {
        let buffer = &mut buffer[..at.len()];
        Self::widen(at, buffer);
        buffer
    }

    /// Gives elements what was written to their [`output`](Self::output) or [`edit`](Self::edit).
    #[inline(always)]
    fn flush(buffer: &[f32], to: &mut [Self]) {
        Self::narrow(&buffer[..to.len()], to);
    }

    /// The nearest numbers, ties to even; the buffer is at least as long.
    #[inline(always)]
    fn narrowed<'a>(from: &'a [f32], buffer: &'a mut [Self]) -> &'a [Self] {
        let buffer = &mut buffer[..from.len()];
        Self::narrow(from, buffer);
        buffer
    }
}

mod sealed {
    /// Keeps other types from being a [`Float`](super::Float).
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

/// Nothing is copied: what is read and written are the elements themselves.
impl Float for f32 {
    const BLOCK: usize = usize::MAX;

    #[inline(always)]
    fn buffered(_: usize) -> usize {
        0
    }

    #[inline(always)]
    fn one_of<C>([first, ..]: [C; 3]) -> C {
        first
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn widen(from: &[Self], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    #[inline(always)]
    fn narrow(from: &[f32], to: &mut [Self]) {
        to.copy_from_slice(from);
    }

    #[inline(always)]
    fn read<'a>(from: &'a [Self], _: &'a mut [f32]) -> &'a [f32] {
        from
    }

    #[inline(always)]
    fn output<'a>(to: &'a mut [Self], _: &'a mut [f32]) -> &'a mut [f32] {
        to
    }

    #[inline(always)]
    fn edit<'a>(at: &'a mut [Self], _: &'a mut [f32]) -> &'a mut [f32] {
        at
    }

    #[inline(always)]
    fn flush(_: &[f32], _: &mut [Self]) {}

    #[inline(always)]
    fn narrowed<'a>(from: &'a [f32], _: &'a mut [Self]) -> &'a [Self] {
        from
    }
}

impl Float for f16 {
    #[inline(always)]
    fn one_of<C>([_, second, _]: [C; 3]) -> C {
        second
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        f16::from_f32(value)
    }

    #[inline(always)]
    fn widen(from: &[Self], to: &mut [f32]) {
        widen_f16(from, to);
    }

    #[inline(always)]
    fn narrow(from: &[f32], to: &mut [Self]) {
        narrow_f16(from, to);
    }
}

impl Float for bf16 {
    #[inline(always)]
    fn one_of<C>([_, _, third]: [C; 3]) -> C {
        third
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    /// Without a branch, so that loops over it are vectorised.
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        // A NaN keeps its sign and becomes a quiet one; rounding could carry it into infinity.
        let nan = (bits >> 16) | 0x40;
        bf16::from_bits(if value.is_nan() { nan } else { rounded } as u16)
    }

    #[inline(always)]
    fn widen(from: &[Self], to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = Float::to_f32(*from);
        }
    }

    #[inline(always)]
    fn narrow(from: &[f32], to: &mut [Self]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = Float::from_f32(*from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_is_rounded_as_the_crate_half_does() {
        for i in 0..=u16::MAX {
            for low in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits(u32::from(i) << 16 | low);
                let (ours, theirs) = (<bf16 as Float>::from_f32(value), bf16::from_f32(value));
                let is_same = ours.to_bits() == theirs.to_bits();
                assert!(is_same || ours.is_nan() && theirs.is_nan(), "{value}");
            }
        }
    }

    fn bits<T: Float>(values: &[T]) -> Vec<u64> {
        values.iter().map(|value| value.bits()).collect()
    }

    fn comes_back<T: Float>() {
        let values: Vec<T> = (0..100).map(|i| T::from_f64(f64::from(i) - 50.0)).collect();
        let (mut read, mut written) = (BUFFER, BUFFER);
        let mut copy = vec![T::from_f64(0.0); 100];
        T::output(&mut copy, &mut written).copy_from_slice(T::read(&values, &mut read));
        T::flush(&written, &mut copy);
        assert_eq!(bits(&copy), bits(&values), "{}", T::NAME);
        for value in T::edit(&mut copy, &mut written) {
            *value = -*value;
        }
        T::flush(&written, &mut copy);
        let negated: Vec<T> = values.iter().map(|value| T::from_f32(-value.to_f32())).collect();
        assert_eq!(bits(&copy), bits(&negated), "{}", T::NAME);
    }

    #[test]
    fn what_is_read_and_written_is_the_same() {
        comes_back::<f32>();
        comes_back::<f16>();
        comes_back::<bf16>();
    }
}
