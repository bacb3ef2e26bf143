//! The kernels that device times are compared on, under kbench: those of `gpu/timed.cu`, launched as `gpu/yardstick.cu` does it
//! in plain CUDA C++, at the same sizes. The versions on the host are there to check them.

use kbench::prelude::*;

const SOURCE: Source = Source::new(include_str!("../../gpu/timed.cu")).named("timed.cu");

/// Threads of a block.
const THREADS: usize = 256;

/// Elements of a thread of saxpy.
const VECTOR: usize = 4;

/// Rows and columns that a block of the matrix product computes, and its threads along each of them.
const TILE: usize = 64;
const SIDE: usize = 16;

/// y ← a·x + y
#[kernel_bench(
    sizes = [1 << 10, 1 << 16, 1 << 20, 1 << 22, 1 << 24],
    inputs = |n| (0.5, uniform(n), uniform(n)),
    in_place = reuse,
    flops = |n| 2 * n,
    bytes = |n| 12 * n,
)]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
}

/// [`saxpy`] on a GPU.
#[kernel_bench(of = saxpy, cuda)]
fn saxpy_cuda(gpu: &Gpu, a: f32, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
    let kernel = gpu.kernel(SOURCE, "saxpy")?.over(x.len().div_ceil(VECTOR), THREADS);
    kernel.arg(a).arg(x).arg(y).arg(x.len()).launch()
}

/// out ← x · w / √(mean(x²) + ε), row by row; the length of a row is that of `w`.
#[kernel_bench(
    sizes = [
        "row" => (rows = 1, dim = 1024),
        "rows" => (rows = 16, dim = 1024),
        "small" => (rows = 64, dim = 4096),
        "medium" => (rows = 512, dim = 4096),
        "large" => (rows = 8192, dim = 4096),
    ],
    inputs = |rows, dim| (normal(rows * dim), normal(dim), 1e-5, zeros(rows * dim)),
    flops = |rows, dim| 4 * rows * dim,
    bytes = |rows, dim| 8 * rows * dim + 4 * dim,
    tolerance = 1e-6, // sums are taken in f64 here and by many threads there: neither drifts with the length of a row
)]
fn rms_norm(x: &[f32], w: &[f32], eps: f32, out: &mut [f32]) {
    for (x, out) in x.chunks_exact(w.len()).zip(out.chunks_exact_mut(w.len())) {
        let squares: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
        let scale = 1.0 / (squares / x.len() as f64 + f64::from(eps)).sqrt();
        for ((out, x), w) in out.iter_mut().zip(x).zip(w) {
            *out = x * scale as f32 * w;
        }
    }
}

/// [`rms_norm`] on a GPU.
#[kernel_bench(of = rms_norm, cuda)]
fn rms_norm_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    w: &DeviceSlice<f32>,
    eps: f32,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let kernel = gpu.kernel(SOURCE, "rms_norm")?.grid(x.len() / w.len()).block(THREADS);
    kernel.arg(x).arg(w).arg(eps).arg(out).arg(w.len()).launch()
}

/// out ← exp(x − max x) / Σ exp(x − max x), for rows of `dim` elements.
#[kernel_bench(
    sizes = [
        "row" => (rows = 1, dim = 1024),
        "rows" => (rows = 16, dim = 1024),
        "small" => (rows = 64, dim = 4096),
        "medium" => (rows = 512, dim = 4096),
        "large" => (rows = 8192, dim = 4096),
    ],
    inputs = |rows, dim| (normal(rows * dim), dim, zeros(rows * dim)),
    flops = |rows, dim| 5 * rows * dim,
    bytes = |rows, dim| 8 * rows * dim,
    tolerance = 1e-6, // as above, and exp is good to two units in the last place
)]
fn softmax(x: &[f32], dim: usize, out: &mut [f32]) {
    for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
        let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        out.iter_mut().zip(x).for_each(|(out, x)| *out = (x - max).exp());
        let sum: f64 = out.iter().copied().map(f64::from).sum();
        out.iter_mut().for_each(|out| *out /= sum as f32);
    }
}

/// [`softmax`] on a GPU.
#[kernel_bench(of = softmax, cuda)]
fn softmax_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    dim: usize,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let kernel = gpu.kernel(SOURCE, "softmax")?.grid(x.len() / dim).block(THREADS);
    kernel.arg(x).arg(out).arg(dim).launch()
}

/// c ← a·b for a of m × k and b of k × n, all row by row.
#[kernel_bench(
    sizes = [
        "small" => (m = 64, n = 64, k = 64),
        "medium" => (m = 384, n = 384, k = 384),
        "large" => (m = 1024, n = 1024, k = 1024),
    ],
    inputs = |m, n, k| (uniform(m * k), uniform(k * n), n, zeros(m * n)),
    flops = |m, n, k| 2 * m * n * k,
    bytes = |m, n, k| 4 * (m * k + k * n + m * n),
)]
fn matmul(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
    c.fill(0.0);
    for (row, c) in a.chunks_exact(b.len() / n).zip(c.chunks_exact_mut(n)) {
        for (a, b) in row.iter().zip(b.chunks_exact(n)) {
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    }
}

/// [`matmul`] on a GPU, in tiles.
#[kernel_bench(of = matmul, cuda)]
fn matmul_cuda_tiled(
    gpu: &Gpu,
    a: &DeviceSlice<f32>,
    b: &DeviceSlice<f32>,
    n: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (m, k) = (c.len() / n, b.len() / n);
    let kernel = gpu.kernel(SOURCE, "matmul_tiled")?.grid((n.div_ceil(TILE), m.div_ceil(TILE)));
    kernel.block((SIDE, SIDE)).arg(a).arg(b).arg(c).arg(m).arg(n).arg(k).launch()
}

kbench::main!(measure);
