//! Rows brought to a common scale: two passes over each row, the first of them a reduction.

use kbench::prelude::*;
use rayon::prelude::*;

const SOURCE: Source =
    Source::new(include_str!("../cuda/normalisation.cu")).named("normalisation.cu");

/// Independent partial results of a reduction, so that the compiler can keep them in vector registers.
const LANES: usize = 16;

/// out ← x · w / √(mean(x²) + ε), row by row; the length of a row is that of `w`.
#[kernel_bench(
    sizes = [
        "small" => (rows = 1, dim = 1024),
        "batch" => (rows = 16, dim = 1024),
        "medium" => (rows = 64, dim = 4096),
        "large" => (rows = 512, dim = 4096),
    ],
    inputs = |rows, dim| (normal(rows * dim), normal(dim), 1e-5, zeros(rows * dim)),
    flops = |rows, dim| 4 * rows * dim,
    bytes = |rows, dim| 8 * rows * dim + 4 * dim,
    reference = rms_norm_f64,
    tolerance = 1e-6, // the sum of squares has LANES partial sums, so its error stays near the round-off of f32
)]
pub fn rms_norm(x: &[f32], w: &[f32], eps: f32, out: &mut [f32]) {
    for (x, out) in x.chunks_exact(w.len()).zip(out.chunks_exact_mut(w.len())) {
        rms_norm_row(x, w, eps, out);
    }
}

/// [`rms_norm`] with rows shared among all cores.
#[kernel_bench(of = rms_norm, parallel, threshold = tuned(100_000))]
pub fn rms_norm_rayon(x: &[f32], w: &[f32], eps: f32, out: &mut [f32]) {
    let rows = rows_per_task(w.len());
    x.par_chunks(rows * w.len())
        .zip(out.par_chunks_mut(rows * w.len()))
        .for_each(|(x, out)| rms_norm(x, w, eps, out));
}

/// [`rms_norm`] on a GPU, one block per row.
#[kernel_bench(of = rms_norm, cuda)]
pub fn rms_norm_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    w: &DeviceSlice<f32>,
    eps: f32,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let kernel = gpu.kernel(SOURCE, "rms_norm")?.grid(x.len() / w.len()).block(256);
    kernel.arg(x).arg(w).arg(eps).arg(out).arg(w.len()).launch()
}

fn rms_norm_row(x: &[f32], w: &[f32], eps: f32, out: &mut [f32]) {
    let squares = reduce(x, 0.0, |sum, x| sum + x * x, |a, b| a + b);
    let scale = 1.0 / (squares / x.len() as f32 + eps).sqrt();
    for ((out, x), w) in out.iter_mut().zip(x).zip(w) {
        *out = x * scale * w;
    }
}

fn rms_norm_f64(x: &[f64], w: &[f64], eps: f64, out: &mut [f64]) {
    let dim = w.len();
    for row in 0..x.len() / dim {
        let x = &x[row * dim..][..dim];
        let mean = x.iter().map(|v| v * v).sum::<f64>() / dim as f64;
        for i in 0..dim {
            out[row * dim + i] = x[i] * w[i] / (mean + eps).sqrt();
        }
    }
}

/// out ← exp(x − max x) / Σ exp(x − max x), for rows of `dim` elements.
#[kernel_bench(
    sizes = [
        "small" => (rows = 1, dim = 1024),
        "batch" => (rows = 16, dim = 1024),
        "medium" => (rows = 64, dim = 2048),
        "large" => (rows = 256, dim = 4096),
    ],
    inputs = |rows, dim| (normal(rows * dim), dim, zeros(rows * dim)),
    flops = |rows, dim| 5 * rows * dim,
    bytes = |rows, dim| 8 * rows * dim,
    reference = softmax_f64,
    tolerance = 1e-6, // exp of the platform is good to a unit in the last place, and the sum has LANES partial sums
)]
pub fn softmax(x: &[f32], dim: usize, out: &mut [f32]) {
    for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
        softmax_row(x, out);
    }
}

/// [`softmax`] with rows shared among all cores.
#[kernel_bench(of = softmax, parallel, threshold = tuned(1 << 13))]
pub fn softmax_rayon(x: &[f32], dim: usize, out: &mut [f32]) {
    let rows = rows_per_task(dim);
    x.par_chunks(rows * dim)
        .zip(out.par_chunks_mut(rows * dim))
        .for_each(|(x, out)| softmax(x, dim, out));
}

/// [`softmax`] on a GPU, one block per row.
#[kernel_bench(of = softmax, cuda)]
pub fn softmax_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    dim: usize,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let kernel = gpu.kernel(SOURCE, "softmax")?.grid(x.len() / dim).block(256);
    kernel.arg(x).arg(out).arg(dim).launch()
}

fn softmax_row(x: &[f32], out: &mut [f32]) {
    let max = reduce(x, f32::NEG_INFINITY, f32::max, f32::max);
    for (out, x) in out.iter_mut().zip(x) {
        *out = (x - max).exp();
    }
    let scale = 1.0 / reduce(out, 0.0, |sum, x| sum + x, |a, b| a + b);
    out.iter_mut().for_each(|out| *out *= scale);
}

fn softmax_f64(x: &[f64], dim: usize, out: &mut [f64]) {
    for row in 0..x.len() / dim {
        let x = &x[row * dim..][..dim];
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = x.iter().map(|v| (v - max).exp()).sum();
        for i in 0..dim {
            out[row * dim + i] = (x[i] - max).exp() / sum;
        }
    }
}

/// Rows that make a task of about 4096 elements.
fn rows_per_task(dim: usize) -> usize {
    (4096 / dim).max(1)
}

/// Reduces a row in [`LANES`] partial results, joined pairwise.
fn reduce(
    row: &[f32],
    start: f32,
    step: impl Fn(f32, f32) -> f32,
    join: impl Fn(f32, f32) -> f32,
) -> f32 {
    let mut lanes = [start; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = step(*lane, x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, x);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = join(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}
