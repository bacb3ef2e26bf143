//! Floats of 8 bits: one for the numbers of a forward pass, one with the range of half precision.
//!
//! The formats are those of the Open Compute Project's "8-bit Floating Point Specification", revision 1.0:
//!
//! | | [`F8E4M3`] | [`F8E5M2`] |
//! |---|---|---|
//! | exponent, mantissa | 4 bits with bias 7, 3 bits | 5 bits with bias 15, 2 bits |
//! | largest | 448 | 57344 |
//! | smallest normal, smallest | 2^-6, 2^-9 | 2^-14, 2^-16 |
//! | infinity | none | `S.11111.00` |
//! | NaN | `S.1111.111` | `S.11111.{01, 10, 11}` |
//!
//! Nothing is computed in them: a kernel widens, computes, and narrows its result once. Narrowing is that of CUDA's
//! `__NV_SATFINITE`: to the nearest value, ties to the even one, and what is too large, infinity included, becomes the
//! largest finite value of its sign.

use std::cmp::Ordering;
use std::fmt;

use super::{Element, Poison};

/// Mantissa and exponent of `f64`, from which values are narrowed without a stop in between: rounding twice is not
/// rounding to the nearest.
const F64_MANTISSA_BITS: u32 = 52;
const F64_BIAS: u64 = 1023;

const SIGN: u8 = 0x80;

/// What every NaN of a wider type becomes, without its sign: the language does not say which sign a computed NaN has, and
/// results would differ in bits between machines.
const NAN: u8 = 0x7f;

/// What tells one format from the other.
struct Format {
    mantissa_bits: u32,
    bias: u64,
    /// The largest finite value; what is above it is infinity or NaN.
    largest: u8,
    /// Infinity, where there is one.
    infinity: Option<u8>,
}

const E4M3: Format = Format { mantissa_bits: 3, bias: 7, largest: 0x7e, infinity: None };

const E5M2: Format = Format { mantissa_bits: 2, bias: 15, largest: 0x7b, infinity: Some(0x7c) };

impl Format {
    /// The nearest value, ties to even; too large is the largest, and NaN is NaN.
    const fn narrow(&self, value: f64) -> u8 {
        if value.is_nan() {
            return NAN;
        }
        let sign = if value.is_sign_negative() { SIGN } else { 0 };
        let magnitude = value.abs().to_bits();
        let exponent = magnitude >> F64_MANTISSA_BITS;
        // The exponent, as `f64` writes it, of the smallest normal value here.
        let smallest = F64_BIAS + 1 - self.bias;
        let dropped = F64_MANTISSA_BITS - self.mantissa_bits;
        let rounded = if exponent >= smallest {
            // Exponent and mantissa are rounded as one number: a carry out of the mantissa is the next exponent.
            nearest_even(magnitude - ((smallest - 1) << F64_MANTISSA_BITS), dropped)
        } else if smallest - exponent <= self.mantissa_bits as u64 + 1 {
            // Subnormal: the leading one is written out, and moves to the right for every exponent that is missing.
            let leading_one = 1 << F64_MANTISSA_BITS;
            let significand = (magnitude & (leading_one - 1)) | leading_one;
            nearest_even(significand, dropped + (smallest - exponent) as u32)
        } else {
            // Less than half of the smallest value.
            0
        };
        let largest = self.largest as u64;
        sign | if rounded < largest { rounded as u8 } else { self.largest }
    }

    /// The same number; every value of both formats is one of `f32`.
    const fn widen(&self, bits: u8) -> f32 {
        let magnitude = bits & !SIGN;
        let exponent = (magnitude >> self.mantissa_bits) as i32;
        let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
        let value = if magnitude <= self.largest {
            // Counted in units of the last place, which is the same for subnormal values and the first exponent.
            let leading_one = if exponent > 0 { 1 << self.mantissa_bits } else { 0 };
            let steps = if exponent > 1 { exponent - 1 } else { 0 };
            let unit = 1 - self.bias as i32 - self.mantissa_bits as i32 + steps;
            (leading_one + mantissa as i32) as f32 * power_of_two(unit)
        } else {
            match self.infinity {
                Some(infinity) if infinity == magnitude => f32::INFINITY,
                _ => f32::NAN,
            }
        };
        if bits & SIGN == 0 { value } else { -value }
    }

    /// All values, by their bits.
    const fn values(&self) -> [f32; 256] {
        let mut values = [0.0; 256];
        let mut bits = 0;
        while bits < values.len() {
            values[bits] = self.widen(bits as u8);
            bits += 1;
        }
        values
    }
}

/// `value` without its lowest `dropped` bits, rounded to nearest, ties to even.
const fn nearest_even(value: u64, dropped: u32) -> u64 {
    let is_odd = (value >> dropped) & 1;
    (value + (1 << (dropped - 1)) - 1 + is_odd) >> dropped
}

/// 2^exponent, for exponents of normal values of `f32`.
const fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

macro_rules! float8 {
    ($(
        $(#[$documentation:meta])*
        $type:ident: $format:ident, $name:literal, $roundoff:expr, $first:literal, $second:literal;
    )*) => {$(
        $(#[$documentation])*
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $type(u8);

        impl $type {
            /// The largest finite value.
            pub const MAX: Self = $type($format.largest);
            /// The NaN that narrowing makes.
            pub const NAN: Self = $type(NAN);

            /// The value with these bits.
            #[inline]
            pub const fn from_bits(bits: u8) -> Self {
                $type(bits)
            }

            /// Its bits: sign, exponent, mantissa.
            #[inline]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest value, ties to even; too large is [`MAX`](Self::MAX), and NaN is NaN.
            #[inline]
            pub const fn from_f32(value: f32) -> Self {
                Self::from_f64(value as f64)
            }

            /// The same number as `f32`.
            #[inline]
            pub const fn to_f32(self) -> f32 {
                // A table: widening is what a kernel does for every element.
                static VALUES: [f32; 256] = $format.values();
                VALUES[self.0 as usize]
            }

            /// The nearest value, ties to even; too large is [`MAX`](Self::MAX), and NaN is NaN.
            #[inline]
            pub const fn from_f64(value: f64) -> Self {
                $type($format.narrow(value))
            }

            /// The same number as `f64`.
            #[inline]
            pub const fn to_f64(self) -> f64 {
                self.to_f32() as f64
            }

            /// Whether it is no number.
            #[inline]
            pub const fn is_nan(self) -> bool {
                self.to_f32().is_nan()
            }
        }

        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }

        impl Element for $type {
            const NAME: &'static str = $name;
            const ROUNDOFF: f64 = $roundoff;
            #[inline]
            fn from_f64(value: f64) -> Self {
                $type::from_f64(value)
            }
            #[inline]
            fn to_f64(self) -> f64 {
                $type::to_f64(self)
            }
            #[inline]
            fn bits(self) -> u64 {
                u64::from(self.0)
            }
            fn poison(poison: Poison) -> Self {
                match poison {
                    Poison::First => $type($first),
                    Poison::Second => $type($second),
                }
            }
            #[inline]
            fn from_bits(bits: u64) -> Option<Self> {
                Some($type(bits as u8))
            }
        }
    )*};
}

// The patterns are NaNs. E4M3 has no others than these two; those of E5M2 are signalling, which no conversion makes.
float8! {
    /// An 8-bit float with 4 bits of exponent and 3 of mantissa: up to 448, and without infinity (also "e4m3fn").
    ///
    /// It is a type to keep numbers in; widen with [`to_f32`](Self::to_f32) to compute.
    ///
    /// ```
    /// # use kbench_worker::value::F8E4M3;
    /// assert_eq!(F8E4M3::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(F8E4M3::from_f32(1000.0).to_f32(), 448.0);
    /// ```
    F8E4M3: E4M3, "e4m3", 0.0625, 0x7f, 0xff;
    /// An 8-bit float with 5 bits of exponent and 2 of mantissa: up to 57344, with infinities.
    ///
    /// It is a type to keep numbers in; widen with [`to_f32`](Self::to_f32) to compute. Narrowing never makes an infinity.
    ///
    /// ```
    /// # use kbench_worker::value::F8E5M2;
    /// assert_eq!(F8E5M2::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(F8E5M2::from_f32(1e6).to_f32(), 57344.0);
    /// ```
    F8E5M2: E5M2, "e5m2", 0.125, 0x7d, 0xfd;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both formats, as functions.
    #[derive(Clone, Copy)]
    struct Case {
        name: &'static str,
        from_f64: fn(f64) -> u8,
        from_f32: fn(f32) -> u8,
        to_f64: fn(u8) -> f64,
        largest: u8,
    }

    const CASES: [Case; 2] = [
        Case {
            name: "e4m3",
            from_f64: |value| F8E4M3::from_f64(value).to_bits(),
            from_f32: |value| F8E4M3::from_f32(value).to_bits(),
            to_f64: |bits| F8E4M3::from_bits(bits).to_f64(),
            largest: 0x7e,
        },
        Case {
            name: "e5m2",
            from_f64: |value| F8E5M2::from_f64(value).to_bits(),
            from_f32: |value| F8E5M2::from_f32(value).to_bits(),
            to_f64: |bits| F8E5M2::from_bits(bits).to_f64(),
            largest: 0x7b,
        },
    ];

    #[test]
    fn values_are_those_of_the_specification() {
        let e4m3 = |bits| F8E4M3::from_bits(bits).to_f64();
        assert_eq!([e4m3(0x00), e4m3(0x01), e4m3(0x07)], [0.0, 2f64.powi(-9), 0.875 / 64.0]);
        assert_eq!([e4m3(0x08), e4m3(0x38), e4m3(0x7e)], [2f64.powi(-6), 1.0, 448.0]);
        assert_eq!([e4m3(0xb8), e4m3(0xfe), e4m3(0x78)], [-1.0, -448.0, 256.0]);
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());

        let e5m2 = |bits| F8E5M2::from_bits(bits).to_f64();
        assert_eq!([e5m2(0x00), e5m2(0x01), e5m2(0x03)], [0.0, 2f64.powi(-16), 3.0 / 65536.0]);
        assert_eq!([e5m2(0x04), e5m2(0x3c), e5m2(0x7b)], [2f64.powi(-14), 1.0, 57344.0]);
        assert_eq!([e5m2(0x7c), e5m2(0xfc)], [f64::INFINITY, f64::NEG_INFINITY]);
        assert!([0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff].into_iter().all(|bits| e5m2(bits).is_nan()));
    }

    #[test]
    fn e5m2_is_the_upper_half_of_half_precision() {
        for bits in 0..=u8::MAX {
            let half = half::f16::from_bits(u16::from(bits) << 8).to_f32();
            let value = F8E5M2::from_bits(bits).to_f32();
            assert!(value == half || (value.is_nan() && half.is_nan()), "{bits:#04x}");
        }
    }

    #[test]
    fn every_finite_pattern_comes_back_and_nans_stay_nans() {
        for Case { name, from_f64, from_f32, to_f64, largest } in CASES {
            for bits in 0..=u8::MAX {
                let value = to_f64(bits);
                let back = from_f64(value);
                assert_eq!(back, from_f32(value as f32), "{name} {bits:#04x}");
                if value.is_finite() {
                    assert_eq!(back, bits, "{name} {value}");
                } else if value.is_nan() {
                    assert_eq!(back, NAN, "{name} {bits:#04x}");
                    assert!(to_f64(back).is_nan(), "{name}");
                } else {
                    assert_eq!(back, largest | bits & SIGN, "{name} {value}");
                }
            }
        }
    }

    #[test]
    fn midpoints_go_to_the_even_neighbour_and_all_else_to_the_nearer_one() {
        for Case { name, from_f64, from_f32, to_f64, largest } in CASES {
            for lower in 0..largest {
                let upper = lower + 1;
                let even = if lower % 2 == 0 { lower } else { upper };
                // Exact: both neighbours have few bits.
                let middle = (to_f64(lower) + to_f64(upper)) / 2.0;
                for (value, expected) in
                    [(middle, even), (middle.next_down(), lower), (middle.next_up(), upper)]
                {
                    assert_eq!(from_f64(value), expected, "{name} {value:e}");
                    assert_eq!(from_f64(-value), expected | SIGN, "{name} -{value:e}");
                }
                let narrow = middle as f32;
                assert_eq!(from_f32(narrow), even, "{name} {narrow:e}");
                assert_eq!(from_f32(narrow.next_down()), lower, "{name} {narrow:e}");
                assert_eq!(from_f32(narrow.next_up()), upper, "{name} {narrow:e}");
            }
        }
    }

    #[test]
    fn what_is_too_large_is_the_largest_finite_value() {
        for Case { name, from_f64, from_f32, to_f64, largest } in CASES {
            let limit = to_f64(largest);
            let beyond = [limit.next_up(), limit * 1.0625, limit * 2.0, f64::MAX, f64::INFINITY];
            for value in beyond {
                assert_eq!(from_f64(value), largest, "{name} {value:e}");
                assert_eq!(from_f64(-value), largest | SIGN, "{name} -{value:e}");
                assert_eq!(from_f32(value as f32), largest, "{name} {value:e}");
            }
        }
    }

    #[test]
    fn what_is_too_small_is_zero_with_its_sign() {
        for Case { name, from_f64, to_f64, .. } in CASES {
            let half = to_f64(1) / 2.0;
            for value in
                [half, half / 2.0, half / 1024.0, f64::MIN_POSITIVE, f64::from_bits(1), 0.0]
            {
                assert_eq!(from_f64(value), 0, "{name} {value:e}");
                assert_eq!(from_f64(-value), SIGN, "{name} -{value:e}");
            }
        }
    }

    #[test]
    fn a_wide_value_is_rounded_once() {
        // Just above a midpoint by less than `f32` can see: on the way through `f32` it would go down to the even one.
        let above = 1.0625 + 1e-12;
        assert_eq!(F8E4M3::from_f64(above).to_f64(), 1.125);
        assert_eq!(F8E4M3::from_f32(above as f32).to_f64(), 1.0);
    }

    #[test]
    fn comparisons_and_texts_are_those_of_the_number() {
        let [zero, minus_zero] = [0x00, 0x80].map(F8E4M3::from_bits);
        assert_eq!(zero, minus_zero);
        assert_ne!(F8E4M3::NAN, F8E4M3::NAN);
        assert!(
            F8E5M2::from_f32(-2.0) < F8E5M2::default()
                && F8E5M2::NAN.partial_cmp(&F8E5M2::MAX).is_none()
        );
        assert_eq!(
            format!("{} {:?} {:.1}", F8E4M3::MAX, F8E4M3::MAX, F8E5M2::from_f32(1.25)),
            "448 448.0 1.2"
        );
    }

    #[test]
    fn roundoff_is_half_the_distance_from_one_to_the_next() {
        assert_eq!(F8E4M3::ROUNDOFF, (F8E4M3::from_bits(0x39).to_f64() - 1.0) / 2.0);
        assert_eq!(F8E5M2::ROUNDOFF, (F8E5M2::from_bits(0x3d).to_f64() - 1.0) / 2.0);
    }
}
