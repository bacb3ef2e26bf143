//! A multiple of one vector added to another.

use kbench::prelude::*;
use rayon::prelude::*;

use crate::shared::tasks::GRAIN;
use crate::shared::{COMMON, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../../cuda/elementwise.cu")).named("elementwise.cu").headers(COMMON);

/// y ← a·x + y
#[kernel_bench(
    sizes = [
        "tiny" => (n = 1 << 12),
        "small" => (n = 1 << 16),
        "medium" => (n = 1 << 20),
        "large" => (n = 1 << 22),
    ],
    inputs = |n| (0.5, uniform(n), uniform(n)),
    in_place = reuse,
    flops = |n| 2 * n,
    reference = saxpy_f64,
)]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    vectorise! {
        fn body(a: f32, x: &[f32], y: &mut [f32]) {
            for (y, x) in y.iter_mut().zip(x) {
                *y += a * x;
            }
        }
    }
    body(a, x, y);
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
    /// Elements of a thread: PACKS of the device code, which is 2, vectors of 16 bytes.
    const ELEMENTS: usize = 2 * 16 / size_of::<f32>();
    let n = x.len();
    let kernel = gpu.kernel(SOURCE, "saxpy")?.over(n.div_ceil(ELEMENTS), 128);
    kernel.arg(a).arg(x).arg(y).arg(n).launch()
}

fn saxpy_f64(a: f64, x: &[f64], y: &mut [f64]) {
    for i in 0..y.len() {
        y[i] += a * x[i];
    }
}
