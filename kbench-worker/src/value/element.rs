//! Numbers that kernels compute with.

use std::ops::Range;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::generator::RUN;

/// Which of two fill patterns an output is poisoned with.
///
/// One pattern cannot tell "never written" from "written with that very value"; an element that holds the first pattern
/// after the first call and the second after the second call was not written by either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poison {
    /// The pattern before the first call.
    First,
    /// The pattern before the second call.
    Second,
}

/// A number type of kernels: what the correctness gate and the data generators need to know about it.
///
/// It is implemented for all primitive numbers, `half::f16`, `half::bf16`, [`F8E4M3`](super::F8E4M3) and
/// [`F8E5M2`](super::F8E5M2); a type of your own needs six lines.
pub trait Element: Copy + Send + Sync + 'static {
    /// The name in reports and on the command line.
    const NAME: &'static str;
    /// Largest relative rounding error of one operation; 0 for exact (integer) types.
    const ROUNDOFF: f64;
    /// What [`uniform`](super::uniform) covers: the whole range of an exact type.
    const RANGE: Range<f64> = -1.0..1.0;
    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// Values of this type near some numbers, of which there are at most 1024: a whole run of random data at once.
    fn fill(values: &mut [Self], numbers: &[f64]) {
        for (value, number) in values.iter_mut().zip(numbers) {
            *value = Self::from_f64(*number);
        }
    }
    /// The value as `f64`; 64-bit integers are exact up to 2^53.
    fn to_f64(self) -> f64;
    /// Whether there are values that `f64` cannot hold: whole numbers of 64 bits.
    #[doc(hidden)]
    const IS_WIDER: bool = false;
    /// By how much the value is more than what [`to_f64`](Self::to_f64) gives.
    #[doc(hidden)]
    fn rest(self) -> f64 {
        0.0
    }
    /// The bits, for comparisons that must see every difference.
    fn bits(self) -> u64;
    /// A value that no correct kernel leaves behind by accident.
    fn poison(poison: Poison) -> Self;
    /// The value of some bits; none for a type that programs in other languages cannot write.
    fn from_bits(bits: u64) -> Option<Self> {
        let _ = bits;
        None
    }
}

macro_rules! float_element {
    ($($type:ident: $bits:ty, $roundoff:expr, $from:expr, $fill:expr, $to:expr, $first:expr, $second:expr;)*) => {$(
        impl Element for $type {
            const NAME: &'static str = stringify!($type);
            const ROUNDOFF: f64 = $roundoff;
            #[inline]
            fn from_f64(value: f64) -> Self {
                ($from)(value)
            }
            fn fill(values: &mut [Self], numbers: &[f64]) {
                ($fill)(values, numbers);
            }
            #[inline]
            fn to_f64(self) -> f64 {
                ($to)(self)
            }
            #[inline]
            fn bits(self) -> u64 {
                self.to_bits() as u64
            }
            fn poison(poison: Poison) -> Self {
                let bits: $bits = match poison {
                    Poison::First => $first,
                    Poison::Second => $second,
                };
                <$type>::from_bits(bits)
            }
            #[inline]
            fn from_bits(bits: u64) -> Option<Self> {
                Some(<$type>::from_bits(bits as $bits))
            }
        }
    )*};
}

// The patterns are quiet NaNs with a payload of our own: arithmetic on them stays NaN, so a kernel that reads its output
// before writing it is caught as well. Round-off is half a unit in the last place: 2^-(mantissa bits + 1).
float_element! {
    f32: u32, 5.960_464_477_539_063e-8, |v: f64| v as f32, each, |v: f32| v as f64, 0x7fed_beef, 0x7fed_cafe;
    f64: u64, 1.110_223_024_625_156_5e-16, |v: f64| v, each, |v: f64| v, 0x7ffd_dead_beef_0001, 0x7ffd_dead_cafe_0002;
    f16: u16, 4.882_812_5e-4, f16::from_f64, by_way_of_f32, f16::to_f64, 0x7eb1, 0x7eb2;
    bf16: u16, 3.906_25e-3, bf16::from_f64, by_way_of_f32, bf16::to_f64, 0x7fd1, 0x7fd2;
}

fn each<T: Element>(values: &mut [T], numbers: &[f64]) {
    values.iter_mut().zip(numbers).for_each(|(value, number)| *value = T::from_f64(*number));
}

/// Processors convert `f32` to half precision, and no `f64`. Rounding twice is as good for random data.
fn by_way_of_f32<T: Element>(values: &mut [T], numbers: &[f64])
where
    [T]: HalfFloatSliceExt,
{
    let mut singles = [0.0; RUN];
    for (single, number) in singles.iter_mut().zip(numbers) {
        *single = *number as f32;
    }
    let count = values.len().min(numbers.len());
    values[..count].convert_from_f32_slice(&singles[..count]);
}

macro_rules! integer_element {
    ($($type:ident)*) => {$(
        impl Element for $type {
            const NAME: &'static str = stringify!($type);
            const ROUNDOFF: f64 = 0.0;
            const RANGE: Range<f64> = $type::MIN as f64..$type::MAX as f64 + 1.0;
            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }
            const IS_WIDER: bool = size_of::<$type>() > 4;
            fn rest(self) -> f64 {
                (self as i128 - self.to_f64() as i128) as f64
            }
            #[inline]
            fn bits(self) -> u64 {
                self as u64
            }
            fn poison(poison: Poison) -> Self {
                match poison {
                    Poison::First => 0x5a5a_a5a5_5a5a_a5a5_u64 as $type,
                    Poison::Second => 0x3c3c_c3c3_3c3c_c3c3_u64 as $type,
                }
            }
            #[inline]
            fn from_bits(bits: u64) -> Option<Self> {
                Some(bits as $type)
            }
        }
    )*};
}

integer_element! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

impl Element for bool {
    const NAME: &'static str = "bool";
    const ROUNDOFF: f64 = 0.0;
    const RANGE: Range<f64> = 0.0..2.0;
    fn from_f64(value: f64) -> Self {
        value != 0.0
    }
    fn to_f64(self) -> f64 {
        self as u8 as f64
    }
    fn bits(self) -> u64 {
        self as u64
    }
    fn poison(poison: Poison) -> Self {
        poison == Poison::First
    }
    fn from_bits(bits: u64) -> Option<Self> {
        Some(bits & 0xff != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{F8E4M3, F8E5M2};

    fn poison_is_distinct<T: Element>() {
        assert_ne!(
            T::poison(Poison::First).bits(),
            T::poison(Poison::Second).bits(),
            "{}",
            T::NAME
        );
    }

    #[test]
    fn the_two_poisons_differ_in_every_type() {
        poison_is_distinct::<f32>();
        poison_is_distinct::<f64>();
        poison_is_distinct::<f16>();
        poison_is_distinct::<bf16>();
        poison_is_distinct::<F8E4M3>();
        poison_is_distinct::<F8E5M2>();
        poison_is_distinct::<i8>();
        poison_is_distinct::<u8>();
        poison_is_distinct::<i32>();
        poison_is_distinct::<u64>();
        poison_is_distinct::<bool>();
    }

    #[test]
    fn float_poison_is_nan_and_survives_arithmetic() {
        assert!(f32::poison(Poison::First).is_nan());
        assert!((f64::poison(Poison::Second) + 1.0).is_nan());
        assert!(f16::poison(Poison::First).is_nan());
        assert!(bf16::poison(Poison::Second).is_nan());
        for poison in [Poison::First, Poison::Second] {
            assert!(F8E4M3::poison(poison).is_nan() && F8E5M2::poison(poison).is_nan());
        }
    }

    #[test]
    fn a_run_of_numbers_is_as_near_as_one_by_one() {
        let numbers: Vec<f64> = (0..RUN).map(|i| (i as f64 - 500.0) / 77.0).collect();
        fn farthest<T: Element>(numbers: &[f64]) -> f64 {
            let mut values = vec![T::from_f64(0.0); numbers.len() - 3];
            T::fill(&mut values, numbers);
            let off = |(value, number): (&T, &f64)| (value.to_f64() - number).abs() / number.abs();
            let found = values.iter().zip(numbers).filter(|(_, number)| **number != 0.0);
            found.map(off).fold(0.0, f64::max) / T::ROUNDOFF
        }
        let found = [farthest::<f16>, farthest::<bf16>, farthest::<f32>].map(|of| of(&numbers));
        assert!(found.iter().all(|off| *off < 1.001), "{found:?}");
    }

    #[test]
    fn roundoff_is_half_a_unit_in_the_last_place() {
        assert_eq!(f32::ROUNDOFF, f32::EPSILON as f64 / 2.0);
        assert_eq!(f64::ROUNDOFF, f64::EPSILON / 2.0);
        assert_eq!(f16::ROUNDOFF, f16::EPSILON.to_f64() / 2.0);
        assert_eq!(bf16::ROUNDOFF, bf16::EPSILON.to_f64() / 2.0);
    }
}
