//! One output element from one element of each input: bound by memory as soon as the data leaves the cache.

use kbench::prelude::*;
use rayon::prelude::*;

const SOURCE: Source = Source::new(include_str!("../cuda/elementwise.cu")).named("elementwise.cu");

/// Elements that one task handles: long enough to hide the cost of a task, short enough to share a cache level.
const GRAIN: usize = 1 << 14;

/// y ← a·x + y
#[kernel_bench(
    sizes = [1 << 10, 1 << 14, 1 << 18, 1 << 22],
    inputs = |n| (0.5, uniform(n), uniform(n)),
    in_place = reuse,
    flops = |n| 2 * n,
    bytes = |n| 12 * n,
    reference = saxpy_f64,
)]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// [`saxpy`] on all cores.
#[kernel_bench(of = saxpy, parallel, threshold = tuned(160_000))]
pub fn saxpy_rayon(a: f32, x: &[f32], y: &mut [f32]) {
    y.par_chunks_mut(GRAIN).zip(x.par_chunks(GRAIN)).for_each(|(y, x)| saxpy(a, x, y));
}

/// [`saxpy`] on a GPU, four elements per thread.
#[kernel_bench(of = saxpy, cuda)]
pub fn saxpy_cuda(
    gpu: &Gpu,
    a: f32,
    x: &DeviceSlice<f32>,
    y: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let n = x.len();
    gpu.kernel(SOURCE, "saxpy")?.over(n.div_ceil(4), 256).arg(a).arg(x).arg(y).arg(n).launch()
}

fn saxpy_f64(a: f64, x: &[f64], y: &mut [f64]) {
    for i in 0..y.len() {
        y[i] += a * x[i];
    }
}

/// out ← x + y
#[kernel_bench(
    sizes = [1 << 10, 1 << 14, 1 << 18, 1 << 22],
    inputs = |n| (uniform(n), uniform(n), zeros(n)),
    flops = |n| n,
    bytes = |n| 12 * n,
    reference = add_f64,
)]
pub fn add(x: &[f32], y: &[f32], out: &mut [f32]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = x + y;
    }
}

/// [`add`] on all cores.
#[kernel_bench(of = add, parallel, threshold = tuned(140_000))]
pub fn add_rayon(x: &[f32], y: &[f32], out: &mut [f32]) {
    out.par_chunks_mut(GRAIN)
        .zip(x.par_chunks(GRAIN))
        .zip(y.par_chunks(GRAIN))
        .for_each(|((out, x), y)| add(x, y, out));
}

/// [`add`] on a GPU, four elements per thread.
#[kernel_bench(of = add, cuda)]
pub fn add_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    y: &DeviceSlice<f32>,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let n = x.len();
    gpu.kernel(SOURCE, "add")?.over(n.div_ceil(4), 256).arg(x).arg(y).arg(out).arg(n).launch()
}

fn add_f64(x: &[f64], y: &[f64], out: &mut [f64]) {
    for i in 0..out.len() {
        out[i] = x[i] + y[i];
    }
}
