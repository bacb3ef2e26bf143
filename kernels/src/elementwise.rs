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
use crate::shared::tasks::GRAIN;
use crate::shared::{COMMON, Float, entry, math, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../cuda/elementwise.cu")).named("elementwise.cu").headers(COMMON);

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
        $kernel:ident, $rayon:ident, $cuda:ident = $entry:literal, $reference:ident;
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
            vectorise! {
                fn body<T: Float>(x: &[T], out: &mut [T]) {
                    let (mut inputs, mut outputs) = (BUFFER, BUFFER);
                    for (x, out) in x.chunks(T::BLOCK).zip(out.chunks_mut(T::BLOCK)) {
                        let x = T::read(x, &mut inputs);
                        for (out, &$x) in T::output(out, &mut outputs).iter_mut().zip(x) {
                            *out = $single;
                        }
                        T::flush(&outputs, out);
                    }
                }
            }
            body(x, out);
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on all cores.")]
        #[kernel_bench(of = $kernel, parallel, threshold = tuned($threshold), types = [f32, f16, bf16])]
        pub fn $rayon<T: Float>(x: &[T], out: &mut [T]) {
            let blocks = out.par_chunks_mut(GRAIN).zip(x.par_chunks(GRAIN));
            blocks.for_each(|(out, x)| $kernel(x, out));
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
        $kernel:ident, $rayon:ident, $cuda:ident = $entry:literal, $reference:ident;
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
            vectorise! {
                fn body<T: Float>(x: &[T], y: &[T], out: &mut [T]) {
                    let [mut first, mut second, mut outputs] = [BUFFER; 3];
                    let inputs = x.chunks(T::BLOCK).zip(y.chunks(T::BLOCK));
                    for ((x, y), out) in inputs.zip(out.chunks_mut(T::BLOCK)) {
                        let (x, y) = (T::read(x, &mut first), T::read(y, &mut second));
                        let results = T::output(out, &mut outputs);
                        for ((out, &$x), &$y) in results.iter_mut().zip(x).zip(y) {
                            *out = $value;
                        }
                        T::flush(&outputs, out);
                    }
                }
            }
            body(x, y, out);
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on all cores.")]
        #[kernel_bench(of = $kernel, parallel, threshold = tuned($threshold), types = [f32, f16, bf16])]
        pub fn $rayon<T: Float>(x: &[T], y: &[T], out: &mut [T]) {
            let inputs = x.par_chunks(GRAIN).zip(y.par_chunks(GRAIN));
            let blocks = out.par_chunks_mut(GRAIN).zip(inputs);
            blocks.for_each(|(out, (x, y))| $kernel(x, y, out));
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
    add, add_rayon, add_cuda = "add", add_f64;
    second = -1.0..1.0, parallel from 160_000;
    |x, y| x + y;
}

binary! {
    /// out ← x · y
    mul, mul_rayon, mul_cuda = "mul", mul_f64;
    second = -1.0..1.0, parallel from 160_000;
    |x, y| x * y;
}

binary! {
    /// out ← x / y
    div, div_rayon, div_cuda = "div", div_f64;
    second = 0.5..2.0, parallel from 140_000;
    |x, y| x / y;
}

unary! {
    /// out ← max(x, 0)
    relu, relu_rayon, relu_cuda = "relu", relu_f64;
    flops = 1, parallel from 140_000;
    f32 |x| if x < 0.0 { 0.0 } else { x };
    f64 |x| x.max(0.0);
}

unary! {
    /// out ← x · (1 + erf(x / √2)) / 2, the Gaussian error linear unit
    gelu, gelu_rayon, gelu_cuda = "gelu", gelu_f64;
    flops = 20, parallel from 40_000; // of the operations, 17 are the error function
    f32 |x| math::gelu(x);
    f64 |x| 0.5 * x * (1.0 + erf_f64(x / 2f64.sqrt()));
}

unary! {
    /// out ← x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2, which is nearly [`gelu`]
    gelu_tanh, gelu_tanh_rayon, gelu_tanh_cuda = "gelu_tanh", gelu_tanh_f64;
    flops = 8, parallel from 50_000; // the exponential and the quotient count as one each
    f32 |x| math::gated(x, x * (x * x).mul_add(GELU_SCALE * 0.044_715, GELU_SCALE));
    f64 |x| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh());
}

unary! {
    /// out ← x / (1 + e^−x), also called swish
    silu, silu_rayon, silu_cuda = "silu", silu_f64;
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
    use super::erf_f64;

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
