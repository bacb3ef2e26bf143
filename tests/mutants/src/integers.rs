//! Arithmetic and bits of integers, and floats that become integers.

use std::sync::OnceLock;

use kbench::prelude::*;

use crate::SOURCE;

/// out ← |a − b|
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), uniform(n), zeros(n)))]
fn distance(a: &[u8], b: &[u8], out: &mut [u8]) {
    map_two(a, b, out, |a, b| a.abs_diff(b));
}

fn map<X: Copy, Y>(x: &[X], out: &mut [Y], f: impl Fn(X) -> Y) {
    x.iter().zip(out).for_each(|(x, out)| *out = f(*x));
}

fn map_two<X: Copy>(a: &[X], b: &[X], out: &mut [X], f: impl Fn(X, X) -> X) {
    a.iter().zip(b).zip(out).for_each(|((a, b), out)| *out = f(*a, *b));
}

/// out ← |x|, at most the largest number of the type.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn magnitude(x: &[i32], out: &mut [i32]) {
    map(x, out, i32::saturating_abs);
}

/// The same of bytes.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (normal(n), zeros(n)))]
fn byte_magnitude(x: &[i8], out: &mut [i8]) {
    map(x, out, i8::saturating_abs);
}

/// out ← (a + b) / 2, rounded down.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), uniform(n), zeros(n)))]
fn average(a: &[u32], b: &[u32], out: &mut [u32]) {
    map_two(a, b, out, |a, b| ((u64::from(a) + u64::from(b)) / 2) as u32);
}

/// out ← x / scale, to the nearest integer (ties to even) from −127 to 127.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (normal(n), 0.0625, zeros(n)))]
fn quantise(x: &[f32], scale: f32, out: &mut [i8]) {
    map(x, out, |x| (x / scale).round_ties_even().clamp(-127.0, 127.0) as i8);
}

/// out ← the number of zeros above the highest bit of x.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn leading_zeros(x: &[u32], out: &mut [u32]) {
    map(x, out, u32::leading_zeros);
}

/// out ← the number of ones in x.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn ones(x: &[u32], out: &mut [u32]) {
    map(x, out, u32::count_ones);
}

/// out ← the bits of x from the last to the first.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn reversed_bits(x: &[u32], out: &mut [u32]) {
    map(x, out, u32::reverse_bits);
}

/// out ← x / d, rounded down; d is positive.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), 7, zeros(n)))]
fn floor_division(x: &[i32], d: i32, out: &mut [i32]) {
    map(x, out, |x| x.div_euclid(d));
}

/// out ← ⌊√x⌋
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn square_root(x: &[u64], out: &mut [u64]) {
    map(x, out, u64::isqrt);
}

/// A sum that has more digits than `f64`, and of how many terms.
#[derive(Clone, Operand)]
struct Total {
    sum: u64,
    terms: u32,
}

/// Σ x·y of numbers of 24 bits.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (integers(n, 0..1 << 24), integers(n, 0..1 << 24)))]
fn wide_product(x: &[u32], y: &[u32]) -> Total {
    let sum = x.iter().zip(y).map(|(x, y)| u64::from(*x) * u64::from(*y)).sum();
    Total { sum, terms: x.len() as u32 }
}

mod right {
    use super::*;

    /// The root in floating point, and one more or less where it is rounded.
    #[kernel_bench(of = square_root)]
    fn rounded_and_corrected(x: &[u64], out: &mut [u64]) {
        map(x, out, |x| {
            let root = ((x as f64).sqrt() as u64).min(u64::from(u32::MAX));
            let is_above = root * root > x;
            let is_below = root < u64::from(u32::MAX) && (root + 1) * (root + 1) <= x;
            root - u64::from(is_above) + u64::from(is_below)
        });
    }

    /// In halves of 12 bits.
    #[kernel_bench(of = wide_product)]
    fn in_halves(x: &[u32], y: &[u32]) -> Total {
        let (mut low, mut high) = (0, 0);
        for (x, y) in x.iter().zip(y) {
            low += u64::from(x & 0xfff) * u64::from(*y);
            high += u64::from(x >> 12) * u64::from(*y);
        }
        Total { sum: (high << 12) + low, terms: x.len() as u32 }
    }

    /// The larger one minus the smaller one.
    #[kernel_bench(of = distance)]
    fn larger_minus_smaller(a: &[u8], b: &[u8], out: &mut [u8]) {
        map_two(a, b, out, |a, b| a.max(b) - a.min(b));
    }

    /// A grid that is smaller than the data goes over it in strides.
    #[kernel_bench(of = distance, cuda)]
    fn grid_stride(
        gpu: &Gpu,
        a: &DeviceSlice<u8>,
        b: &DeviceSlice<u8>,
        out: &mut DeviceSlice<u8>,
    ) -> GpuResult<()> {
        gpu.kernel(SOURCE, "distance")?
            .grid(4)
            .block(64)
            .arg(a)
            .arg(b)
            .arg(out)
            .arg(a.len())
            .launch()
    }

    /// By a mask of the sign.
    #[kernel_bench(of = magnitude)]
    fn by_sign_mask(x: &[i32], out: &mut [i32]) {
        map(x, out, |x| {
            let mask = x >> 31;
            let magnitude = (x ^ mask).wrapping_sub(mask);
            magnitude ^ (magnitude >> 31)
        });
    }

    /// Common bits, and half of those that differ.
    #[kernel_bench(of = average)]
    fn common_bits(a: &[u32], b: &[u32], out: &mut [u32]) {
        map_two(a, b, out, |a, b| (a & b) + ((a ^ b) >> 1));
    }

    /// The sum with 1.5 · 2²³ has the integer in its last bits.
    #[kernel_bench(of = quantise)]
    fn by_bias(x: &[f32], scale: f32, out: &mut [i8]) {
        const BIAS: f32 = 12_582_912.0;
        map(x, out, |x| ((x / scale).clamp(-127.0, 127.0) + BIAS).to_bits() as i8);
    }

    /// Conversions of Rust saturate: one limit is left.
    #[kernel_bench(of = quantise)]
    fn by_saturation(x: &[f32], scale: f32, out: &mut [i8]) {
        map(x, out, |x| ((x / scale).round_ties_even() as i8).max(-127));
    }

    /// Rounded and limited as on the processor.
    #[kernel_bench(of = quantise, cuda)]
    fn quantise_limited(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        scale: f32,
        out: &mut DeviceSlice<i8>,
    ) -> GpuResult<()> {
        let kernel = gpu.kernel(SOURCE, "quantise_limited")?.over(x.len(), 256);
        kernel.arg(x).arg(scale).arg(out).arg(x.len()).launch()
    }

    /// By halving the range.
    #[kernel_bench(of = leading_zeros)]
    fn by_halves(x: &[u32], out: &mut [u32]) {
        map(x, out, |x| {
            let (mut zeros, mut rest) = (32, x);
            for shift in [16, 8, 4, 2, 1] {
                if rest >> shift != 0 {
                    (zeros, rest) = (zeros - shift, rest >> shift);
                }
            }
            zeros - rest
        });
    }

    /// By a table of all bytes, which is made once.
    #[kernel_bench(of = ones)]
    fn by_table(x: &[u32], out: &mut [u32]) {
        static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
        let table = TABLE.get_or_init(|| (0..=u8::MAX).map(|x| x.count_ones() as u8).collect());
        let count =
            |x: u32| x.to_le_bytes().iter().map(|x| u32::from(table[usize::from(*x)])).sum();
        map(x, out, count);
    }

    /// By a table of all bytes, which is made once.
    #[kernel_bench(of = reversed_bits)]
    fn by_reversed_bytes(x: &[u32], out: &mut [u32]) {
        static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
        let table = TABLE.get_or_init(|| (0..=u8::MAX).map(u8::reverse_bits).collect());
        let reversed = |x: u8| table[usize::from(x)];
        map(x, out, |x| u32::from_be_bytes(x.to_le_bytes().map(reversed)));
    }

    /// By exchanging neighbours, pairs, and so on.
    #[kernel_bench(of = reversed_bits)]
    fn by_exchanges(x: &[u32], out: &mut [u32]) {
        const MASKS: [(u32, u32); 4] =
            [(1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0f0f_0f0f), (8, 0x00ff_00ff)];
        map(x, out, |x| {
            let exchange = |x: u32, (by, mask)| ((x >> by) & mask) | ((x & mask) << by);
            MASKS.into_iter().fold(x, exchange).rotate_left(16)
        });
    }

    /// Truncated, and one less where there is a negative rest.
    #[kernel_bench(of = floor_division)]
    fn truncated_and_corrected(x: &[i32], d: i32, out: &mut [i32]) {
        map(x, out, |x| x / d - i32::from(x % d < 0));
    }
}

mod wrong {
    use super::*;

    /// The number is rounded before its root is taken.
    #[kernel_bench(of = square_root)]
    fn root_in_f64(x: &[u64], out: &mut [u64]) {
        map(x, out, |x| (x as f64).sqrt() as u64);
    }

    /// Sums are kept as `f64`, and lose their last digits.
    #[kernel_bench(of = wide_product)]
    fn kept_as_f64(x: &[u32], y: &[u32]) -> Total {
        let Total { sum, terms } = wide_product(x, y);
        Total { sum: sum as f64 as u64, terms }
    }

    /// A negative difference wraps.
    #[kernel_bench(of = distance)]
    fn wrapping_difference(a: &[u8], b: &[u8], out: &mut [u8]) {
        map_two(a, b, out, u8::wrapping_sub);
    }

    /// A negative difference wraps.
    #[kernel_bench(of = distance, cuda)]
    fn wrapping_difference_cuda(
        gpu: &Gpu,
        a: &DeviceSlice<u8>,
        b: &DeviceSlice<u8>,
        out: &mut DeviceSlice<u8>,
    ) -> GpuResult<()> {
        let kernel = gpu.kernel(SOURCE, "wrapping_difference")?.over(a.len(), 256);
        kernel.arg(a).arg(b).arg(out).arg(a.len()).launch()
    }

    /// The smallest number stays negative.
    #[kernel_bench(of = magnitude)]
    fn wrapping_magnitude(x: &[i32], out: &mut [i32]) {
        map(x, out, i32::wrapping_abs);
    }

    /// The smallest number stays negative.
    #[kernel_bench(of = byte_magnitude)]
    fn wrapping_byte_magnitude(x: &[i8], out: &mut [i8]) {
        map(x, out, i8::wrapping_abs);
    }

    /// The sum of large numbers wraps.
    #[kernel_bench(of = average)]
    fn wrapping_average(a: &[u32], b: &[u32], out: &mut [u32]) {
        map_two(a, b, out, |a, b| a.wrapping_add(b) / 2);
    }

    /// Large numbers are not limited, and wrap.
    #[kernel_bench(of = quantise)]
    fn without_limits(x: &[f32], scale: f32, out: &mut [i8]) {
        map(x, out, |x| (x / scale).round_ties_even() as i32 as i8);
    }

    /// Cut off at the point.
    #[kernel_bench(of = quantise)]
    fn cut_off(x: &[f32], scale: f32, out: &mut [i8]) {
        map(x, out, |x| (x / scale).clamp(-127.0, 127.0) as i8);
    }

    /// Large numbers are not limited, and wrap.
    #[kernel_bench(of = quantise, cuda)]
    fn without_limits_cuda(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        scale: f32,
        out: &mut DeviceSlice<i8>,
    ) -> GpuResult<()> {
        let kernel = gpu.kernel(SOURCE, "quantise_without_limits")?.over(x.len(), 256);
        kernel.arg(x).arg(scale).arg(out).arg(x.len()).launch()
    }

    /// 0 has one zero too few.
    #[kernel_bench(of = leading_zeros)]
    fn one_bit_at_least(x: &[u32], out: &mut [u32]) {
        map(x, out, |x| {
            let (mut zeros, mut rest) = (0, x);
            for shift in [16, 8, 4, 2, 1] {
                if rest >> (32 - shift) == 0 {
                    (zeros, rest) = (zeros + shift, rest << shift);
                }
            }
            zeros
        });
    }

    /// A loop that counts before it looks: 0 has one.
    #[kernel_bench(of = ones)]
    fn counts_first(x: &[u32], out: &mut [u32]) {
        map(x, out, |x| {
            let (mut rest, mut count) = (x, 0);
            loop {
                rest &= rest.wrapping_sub(1);
                count += 1;
                if rest == 0 {
                    return count;
                }
            }
        });
    }

    /// Negative numbers are rounded towards 0.
    #[kernel_bench(of = floor_division)]
    fn truncated_division(x: &[i32], d: i32, out: &mut [i32]) {
        map(x, out, |x| x / d);
    }
}
