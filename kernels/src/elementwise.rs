//! One output element from one element of each input: bound by memory as soon as the data leaves the cache.

use kbench::prelude::*;
use rayon::prelude::*;

use crate::shared::float::BUFFER;
use crate::shared::tasks::GRAIN;
use crate::shared::{BLOCK, COMMON, Float, entry, math, vectorised};

const SOURCE: Source =
    Source::new(include_str!("../cuda/elementwise.cu")).named("elementwise.cu").headers(COMMON);

/// y ← a·x + y
#[kernel_bench(
    sizes = ["tiny" => (n = 1 << 12), "small" => (n = 1 << 16), "medium" => (n = 1 << 20), "large" => (n = 1 << 22)],
    inputs = |n| (0.5, uniform(n), uniform(n)),
    in_place = reuse,
    flops = |n| 2 * n,
    reference = saxpy_f64,
)]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    vectorised(saxpy_body, (a, x, y));
}

#[inline(always)]
fn saxpy_body(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// [`saxpy`] on all cores.
#[kernel_bench(of = saxpy, parallel, threshold = tuned(160_000))]
pub fn saxpy_rayon(a: f32, x: &[f32], y: &mut [f32]) {
    y.par_chunks_mut(GRAIN).zip(x.par_chunks(GRAIN)).for_each(|(y, x)| saxpy(a, x, y));
}

/// [`saxpy`] on a GPU.
#[kernel_bench(of = saxpy, cuda)]
pub fn saxpy_cuda(
    gpu: &Gpu,
    a: f32,
    x: &DeviceSlice<f32>,
    y: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let n = x.len();
    let threads = n.div_ceil(elements_per_thread::<f32>());
    gpu.kernel(SOURCE, "saxpy")?.over(threads, 256).arg(a).arg(x).arg(y).arg(n).launch()
}

fn saxpy_f64(a: f64, x: &[f64], y: &mut [f64]) {
    for i in 0..y.len() {
        y[i] += a * x[i];
    }
}

/// Elements that a thread of device code handles: ELEMENTWISE_PACKS times 16 bytes.
fn elements_per_thread<T>() -> usize {
    2 * 16 / size_of::<T>()
}

/// A function of one element as a kernel: in order, on all cores, on a GPU, and in f64.
macro_rules! unary {
    ($(#[$documentation:meta])* $kernel:ident, $rayon:ident, $cuda:ident, $device:literal, $exact:ident: flops = $flops:literal, |$x:ident| $value:expr, f64: $wide:expr) => {
        $(#[$documentation])*
        #[kernel_bench(
            sizes = ["tiny" => (n = 1 << 12), "small" => (n = 1 << 16), "medium" => (n = 1 << 20), "large" => (n = 1 << 22)],
            inputs = |n| (normal(n), zeros(n)),
            flops = |n| $flops * n,
            reference = $exact,
            types = [f32, f16, bf16],
        )]
        pub fn $kernel<T: Float>(x: &[T], out: &mut [T]) {
            #[inline(always)]
            fn body<T: Float>(x: &[T], out: &mut [T]) {
                let mut buffer = BUFFER;
                for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                    let x = T::read(x, &mut buffer);
                    T::write(out, |out| {
                        for (out, &$x) in out.iter_mut().zip(x) {
                            *out = $value;
                        }
                    });
                }
            }
            vectorised(body::<T>, (x, out));
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on all cores.")]
        #[kernel_bench(of = $kernel, parallel, threshold = tuned(140_000), types = [f32, f16, bf16])]
        pub fn $rayon<T: Float>(x: &[T], out: &mut [T]) {
            out.par_chunks_mut(GRAIN).zip(x.par_chunks(GRAIN)).for_each(|(out, x)| $kernel(x, out));
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on a GPU.")]
        #[kernel_bench(of = $kernel, cuda, types = [f32, f16, bf16])]
        pub fn $cuda<T: Float>(gpu: &Gpu, x: &DeviceSlice<T>, out: &mut DeviceSlice<T>) -> GpuResult<()> {
            let n = x.len();
            let threads = n.div_ceil(elements_per_thread::<T>());
            gpu.kernel(SOURCE, entry!(T, $device))?.over(threads, 256).arg(x).arg(out).arg(n).launch()
        }

        fn $exact(x: &[f64], out: &mut [f64]) {
            for (out, &$x) in out.iter_mut().zip(x) {
                *out = $wide;
            }
        }
    };
}

unary! {
    /// out ← max(x, 0)
    relu, relu_rayon, relu_cuda, "relu", relu_f64: flops = 1, |x| if x < 0.0 { 0.0 } else { x },
    f64: x.max(0.0)
}
unary! {
    /// out ← x / (1 + e^−x), also called swish
    silu, silu_rayon, silu_cuda, "silu", silu_f64: flops = 4, |x| x * math::sigmoid(x),
    f64: x / (1.0 + (-x).exp())
}
