//! Floats of 32 and 16 bits, all of them computed with in `f32`.

use half::{bf16, f16};
use kbench::{DeviceElement, Element};

use super::simd::{narrow_f16, widen_f16};

/// Elements that are widened at a time: their `f32` stay in the first-level cache.
pub const BLOCK: usize = 256;

/// The `f32` of a block of elements.
pub type Buffer = [f32; BLOCK];

/// An empty buffer.
pub const BUFFER: Buffer = [0.0; BLOCK];

/// f32, f16 or bf16: a kernel over any of them reads and writes blocks of `f32`, which cost nothing when they are that already.
pub trait Float: Element + DeviceElement {
    /// The first of three for f32, the second for f16, the third for bf16: one of the entry points of device code.
    fn one_of<C>(choices: [C; 3]) -> C;

    /// The same number.
    fn to_f32(self) -> f32;

    /// The nearest number, ties to even.
    fn from_f32(value: f32) -> Self;

    /// Any number of elements as `f32`: where they are, or in the first part of `buffer`.
    fn read_all<'a>(from: &'a [Self], buffer: &'a mut [f32]) -> &'a [f32];

    /// At most [`BLOCK`] elements as `f32`.
    fn read<'a>(from: &'a [Self], buffer: &'a mut Buffer) -> &'a [f32];

    /// Gives at most [`BLOCK`] elements what `compute` writes; what it finds there is of no meaning.
    fn write(to: &mut [Self], compute: impl FnOnce(&mut [f32]));
}

impl Float for f32 {
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
    fn read_all<'a>(from: &'a [Self], _: &'a mut [f32]) -> &'a [f32] {
        from
    }

    #[inline(always)]
    fn read<'a>(from: &'a [Self], _: &'a mut Buffer) -> &'a [f32] {
        from
    }

    #[inline(always)]
    fn write(to: &mut [Self], compute: impl FnOnce(&mut [f32])) {
        compute(to);
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
    fn read_all<'a>(from: &'a [Self], buffer: &'a mut [f32]) -> &'a [f32] {
        let buffer = &mut buffer[..from.len()];
        widen_f16(from, buffer);
        buffer
    }

    #[inline(always)]
    fn read<'a>(from: &'a [Self], buffer: &'a mut Buffer) -> &'a [f32] {
        Self::read_all(from, buffer)
    }

    #[inline(always)]
    fn write(to: &mut [Self], compute: impl FnOnce(&mut [f32])) {
        let mut buffer = BUFFER;
        let buffer = &mut buffer[..to.len()];
        compute(buffer);
        narrow_f16(buffer, to);
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
    fn read_all<'a>(from: &'a [Self], buffer: &'a mut [f32]) -> &'a [f32] {
        let buffer = &mut buffer[..from.len()];
        buffer.iter_mut().zip(from).for_each(|(to, from)| *to = Float::to_f32(*from));
        buffer
    }

    #[inline(always)]
    fn read<'a>(from: &'a [Self], buffer: &'a mut Buffer) -> &'a [f32] {
        Self::read_all(from, buffer)
    }

    #[inline(always)]
    fn write(to: &mut [Self], compute: impl FnOnce(&mut [f32])) {
        let mut buffer = BUFFER;
        let buffer = &mut buffer[..to.len()];
        compute(buffer);
        to.iter_mut().zip(buffer).for_each(|(to, from)| *to = Float::from_f32(*from));
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

    fn comes_back<T: Float>() {
        let values: Vec<T> = (0..100).map(|i| T::from_f64(f64::from(i) - 50.0)).collect();
        let mut buffer = BUFFER;
        let mut copy = vec![T::from_f64(0.0); 100];
        let wide = T::read(&values, &mut buffer);
        T::write(&mut copy, |copy| copy.copy_from_slice(wide));
        assert!(values.iter().map(|v| v.bits()).eq(copy.iter().map(|v| v.bits())), "{}", T::NAME);
    }

    #[test]
    fn what_is_read_and_written_is_the_same() {
        comes_back::<f32>();
        comes_back::<f16>();
        comes_back::<bf16>();
    }
}
