//! One output element from one element of each input: bound by memory as soon as the data leaves the cache.
//!
//! Most operations differ in their formula alone, so `unary!` and `binary!` make the kernels: each with a version for one
//! core, one for all cores, one for a GPU and a reference in f64. On the CPU a block of elements is widened to f32,
//! computed and narrowed while it is in the first-level cache; f32 itself is read and written in place.

pub mod saxpy;
pub mod scalar;

use kbench::prelude::*;
use rayon::prelude::*;

use crate::shared::float::BUFFER;
use crate::shared::streaming::{Results, is_large};
use crate::shared::tasks::GRAIN;
use crate::shared::{COMMON, Float, entry, math, stored, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../cuda/elementwise.cu")).named("elementwise.cu").headers(COMMON);

/// Elements that are asked for in advance when a large result is written: so many as a page of `f32`, at whose end processors
/// stop doing so by themselves.
const AHEAD: usize = 1024;

/// Threads of a block of device code.
const THREADS: usize = 128;

/// Vectors of 16 bytes of each array that a thread of device code handles: PACKS there.
const PACKS: usize = 2;

/// Threads of device code that n elements take.
fn threads<T>(n: usize) -> usize {
    n.div_ceil(PACKS * 16 / size_of::<T>())
}

/// A function of one element as a kernel: its names, its operations, the size from which on all cores are claimed to be
/// faster than one, and its formula in f32 and in f64.
macro_rules! unary {
    (
        $(#[$documentation:meta])*
        $kernel:ident, $blocks:ident, $rayon:ident, $cuda:ident = $entry:literal, $reference:ident;
        flops = $flops:literal, parallel from $threshold:literal;
        f32 |$x:ident| $single:expr;
        f64 |$wide:ident| $double:expr;
    ) => {
        $(#[$documentation])*
        #[kernel_bench(
            sizes = [
                "tiny" => (n = 1 << 12),
                "small" => (n = 1 << 16),
                "medium" => (n = 1 << 20),
                "large" => (n = 1 << 22),
            ],
            inputs = |n| (normal(n), zeros(n)),
            flops = |n| $flops * n,
            reference = $reference,
            types = [f32, f16, bf16],
        )]
        pub fn $kernel<T: Float>(x: &[T], out: &mut [T]) {
            stored!(is_large(out), $blocks::<T>(x, out));
        }

        vectorise! {
            fn $blocks<T: Float, const STREAMED: bool>(x: &[T], out: &mut [T]) {
                let (mut inputs, mut outputs) = (BUFFER, BUFFER);
                for block in Results::<STREAMED>::blocks(out, T::BLOCK) {
                    Results::<STREAMED>::read_ahead(&x[block.clone()], AHEAD);
                    let (x, out) = (T::read(&x[block.clone()], &mut inputs), &mut out[block]);
                    let results = Results::<STREAMED>::output(out, &mut outputs);
                    for (out, &$x) in results.iter_mut().zip(x) {
                        *out = $single;
                    }
                    Results::<STREAMED>::flush(&outputs, out);
                }
            }
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on all cores.")]
        #[kernel_bench(of = $kernel, parallel, threshold = tuned($threshold), types = [f32, f16, bf16])]
        pub fn $rayon<T: Float>(x: &[T], out: &mut [T]) {
            let is_large = is_large(out);
            let tasks = out.par_chunks_mut(GRAIN).zip(x.par_chunks(GRAIN));
            tasks.for_each(|(out, x)| stored!(is_large, $blocks::<T>(x, out)));
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on a GPU.")]
        #[kernel_bench(of = $kernel, cuda, types = [f32, f16, bf16])]
        pub fn $cuda<T: Float>(
            gpu: &Gpu,
            x: &DeviceSlice<T>,
            out: &mut DeviceSlice<T>,
        ) -> GpuResult<()> {
            let n = x.len();
            let kernel = gpu.kernel(SOURCE, entry!(T, $entry))?.over(threads::<T>(n), THREADS);
            kernel.arg(x).arg(out).arg(n).launch()
        }

        fn $reference(x: &[f64], out: &mut [f64]) {
            for (out, &$wide) in out.iter_mut().zip(x) {
                *out = $double;
            }
        }
    };
}

/// A function of two elements as a kernel, as [`unary`]; the second ones are uniform in a range.
macro_rules! binary {
    (
        $(#[$documentation:meta])*
        $kernel:ident, $blocks:ident, $rayon:ident, $cuda:ident = $entry:literal, $reference:ident;
        second = $range:expr, parallel from $threshold:literal;
        |$x:ident, $y:ident| $value:expr;
    ) => {
        $(#[$documentation])*
        #[kernel_bench(
            sizes = [
                "tiny" => (n = 1 << 12),
                "small" => (n = 1 << 16),
                "medium" => (n = 1 << 20),
                "large" => (n = 1 << 22),
            ],
            inputs = |n| (normal(n), range(n, $range), zeros(n)),
            flops = |n| n,
            reference = $reference,
            types = [f32, f16, bf16],
        )]
        pub fn $kernel<T: Float>(x: &[T], y: &[T], out: &mut [T]) {
            stored!(is_large(out), $blocks::<T>(x, y, out));
        }

        vectorise! {
            fn $blocks<T: Float, const STREAMED: bool>(x: &[T], y: &[T], out: &mut [T]) {
                let [mut first, mut second, mut outputs] = [BUFFER; 3];
                for block in Results::<STREAMED>::blocks(out, T::BLOCK) {
                    Results::<STREAMED>::read_ahead(&x[block.clone()], AHEAD);
                    Results::<STREAMED>::read_ahead(&y[block.clone()], AHEAD);
                    let x = T::read(&x[block.clone()], &mut first);
                    let y = T::read(&y[block.clone()], &mut second);
                    let out = &mut out[block];
                    let results = Results::<STREAMED>::output(out, &mut outputs);
                    for ((out, &$x), &$y) in results.iter_mut().zip(x).zip(y) {
                        *out = $value;
                    }
                    Results::<STREAMED>::flush(&outputs, out);
                }
            }
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on all cores.")]
        #[kernel_bench(of = $kernel, parallel, threshold = tuned($threshold), types = [f32, f16, bf16])]
        pub fn $rayon<T: Float>(x: &[T], y: &[T], out: &mut [T]) {
            let is_large = is_large(out);
            let inputs = x.par_chunks(GRAIN).zip(y.par_chunks(GRAIN));
            let tasks = out.par_chunks_mut(GRAIN).zip(inputs);
            tasks.for_each(|(out, (x, y))| stored!(is_large, $blocks::<T>(x, y, out)));
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on a GPU.")]
        #[kernel_bench(of = $kernel, cuda, types = [f32, f16, bf16])]
        pub fn $cuda<T: Float>(
            gpu: &Gpu,
            x: &DeviceSlice<T>,
            y: &DeviceSlice<T>,
            out: &mut DeviceSlice<T>,
        ) -> GpuResult<()> {
            let n = x.len();
            let kernel = gpu.kernel(SOURCE, entry!(T, $entry))?.over(threads::<T>(n), THREADS);
            kernel.arg(x).arg(y).arg(out).arg(n).launch()
        }

        fn $reference(x: &[f64], y: &[f64], out: &mut [f64]) {
            for ((out, &$x), &$y) in out.iter_mut().zip(x).zip(y) {
                *out = $value;
            }
        }
    };
}

binary! {
    /// out ← x + y
    add, add_blocks, add_rayon, add_cuda = "add", add_f64;
    second = -1.0..1.0, parallel from 160_000;
    |x, y| x + y;
}

binary! {
    /// out ← x · y
    mul, mul_blocks, mul_rayon, mul_cuda = "mul", mul_f64;
    second = -1.0..1.0, parallel from 160_000;
    |x, y| x * y;
}

binary! {
    /// out ← x / y
    div, div_blocks, div_rayon, div_cuda = "div", div_f64;
    second = 0.5..2.0, parallel from 140_000;
    |x, y| x / y;
}

unary! {
    /// out ← max(x, 0)
    relu, relu_blocks, relu_rayon, relu_cuda = "relu", relu_f64;
    flops = 1, parallel from 140_000;
    f32 |x| if x < 0.0 { 0.0 } else { x };
    f64 |x| x.max(0.0);
}

unary! {
    /// out ← x · (1 + erf(x / √2)) / 2, the Gaussian error linear unit
    gelu, gelu_blocks, gelu_rayon, gelu_cuda = "gelu", gelu_f64;
    flops = 20, parallel from 40_000; // of the operations, 17 are the error function
    f32 |x| math::gelu(x);
    f64 |x| 0.5 * x * (1.0 + erf_f64(x / 2f64.sqrt()));
}

unary! {
    /// out ← x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2, which is nearly [`gelu`]
    gelu_tanh, gelu_tanh_blocks, gelu_tanh_rayon, gelu_tanh_cuda = "gelu_tanh", gelu_tanh_f64;
    flops = 8, parallel from 50_000; // the exponential and the quotient count as one each
    f32 |x| math::gated(x, x * (x * x).mul_add(GELU_SCALE * 0.044_715, GELU_SCALE));
    f64 |x| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh());
}

unary! {
    /// out ← x / (1 + e^−x), also called swish
    silu, silu_blocks, silu_rayon, silu_cuda = "silu", silu_f64;
    flops = 4, parallel from 50_000;
    f32 |x| math::gated(x, x);
    f64 |x| x / (1.0 + (-x).exp());
}

/// 2·√(2/π): (1 + tanh u) / 2 is the sigmoid of 2u, which needs no case for small u.
const GELU_SCALE: f32 = 1.595_769;

/// The error function by its series without changes of sign, 2/√π · e^−x² · Σ 2ⁿ·x^(2n+1) / (1·3·…·(2n+1)), in which nothing
/// cancels (Abramowitz and Stegun, 7.1.6).
fn erf_f64(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::shared::streaming::assert_same_both_ways;

    fn results_are_the_same<T: Float>() {
        for n in [0, 1, 15, 16, 17, 255, 256, 257, 1000] {
            let x: Vec<T> = (0..n).map(|i| T::from_f32((i % 97) as f32 / 16.0 - 3.0)).collect();
            let y: Vec<T> = (0..n).map(|i| T::from_f32((i % 89) as f32 / 16.0 + 0.5)).collect();
            assert_same_both_ways(n, |out: &mut [T], is_large| {
                stored!(is_large, div_blocks::<T>(&x, &y, out));
            });
            assert_same_both_ways(n, |out: &mut [T], is_large| {
                stored!(is_large, gelu_blocks::<T>(&x, out));
            });
        }
    }

    #[test]
    fn results_are_the_same_when_they_are_stored_past_the_caches() {
        results_are_the_same::<f32>();
        results_are_the_same::<f16>();
        results_are_the_same::<bf16>();
    }

    #[test]
    fn a_large_result_is_that_of_small_ones() {
        let n = (8 << 20) + 5;
        let x: Vec<f32> = (0..n).map(|i| (i % 1009) as f32 - 500.0).collect();
        let mut small = vec![0.0; n];
        for (x, out) in x.chunks(10_007).zip(small.chunks_mut(10_007)) {
            relu(x, out);
        }
        for kernel in [relu, relu_rayon] {
            let mut large = vec![0.0; n];
            kernel(&x, &mut large);
            assert!(large == small);
        }
    }

    #[test]
    fn the_reference_of_the_error_function_has_its_known_values() {
        // Abramowitz and Stegun, table 7.1.
        let known = [
            (0.0, 0.0),
            (0.1, 0.112_462_916_0),
            (0.5, 0.520_499_877_8),
            (1.0, 0.842_700_792_9),
            (2.0, 0.995_322_265_0),
        ];
        for (x, value) in known {
            assert!((erf_f64(x) - value).abs() < 1e-10, "{x}");
            assert!((erf_f64(-x) + value).abs() < 1e-10, "-{x}");
        }
        assert_eq!([erf_f64(7.0), erf_f64(f64::NEG_INFINITY)], [1.0, -1.0]);
    }
}
