//! Matrix product of row-major matrices: the kernel where order of access decides everything.

use kbench::prelude::*;
use rayon::prelude::*;

const SOURCE: Source = Source::new(include_str!("../../cuda/matmul.cu")).named("matmul.cu");

/// Rows of `b` that are used while they are in the first-level cache.
const DEPTH_TILE: usize = 64;
/// Columns of `b` and `c` that are used together.
const WIDTH_TILE: usize = 256;
/// Rows of `c` that make a task.
const TASK_ROWS: usize = 16;

/// c ← a·b for a of m × k and b of k × n, element by element.
#[kernel_bench(
    sizes = [
        "tiny" => (m = 16, n = 16, k = 16),
        "small" => (m = 64, n = 64, k = 64),
        "medium" => (m = 192, n = 192, k = 192),
        "large" => (m = 384, n = 384, k = 384),
    ],
    inputs = |m, n, k| (uniform(m * k), uniform(k * n), n, zeros(m * n)),
    flops = |m, n, k| 2 * m * n * k,
    bytes = |m, n, k| 4 * (m * k + k * n + m * n),
    reference = matmul_f64,
)]
pub fn matmul(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
    let k = b.len() / n;
    for (row, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
        for (j, c) in c.iter_mut().enumerate() {
            let mut sum = 0.0;
            for (p, a) in row.iter().enumerate() {
                sum += a * b[p * n + j];
            }
            *c = sum;
        }
    }
}

/// [`matmul`] in tiles, rows of `b` added to rows of `c`.
#[kernel_bench(of = matmul)]
pub fn matmul_blocked(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
    let k = b.len() / n;
    c.fill(0.0);
    for depth in (0..k).step_by(DEPTH_TILE) {
        let depths = depth..(depth + DEPTH_TILE).min(k);
        for width in (0..n).step_by(WIDTH_TILE) {
            let widths = width..(width + WIDTH_TILE).min(n);
            for (row, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
                let c = &mut c[widths.clone()];
                for p in depths.clone() {
                    let b = &b[p * n..][widths.clone()];
                    c.iter_mut().zip(b).for_each(|(c, b)| *c += row[p] * b);
                }
            }
        }
    }
}

/// [`matmul_blocked`] with rows of the result shared among all cores.
#[kernel_bench(of = matmul, parallel, threshold = tuned(50_000))]
pub fn matmul_rayon(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
    let k = b.len() / n;
    a.par_chunks(TASK_ROWS * k)
        .zip(c.par_chunks_mut(TASK_ROWS * n))
        .for_each(|(a, c)| matmul_blocked(a, b, n, c));
}

/// [`matmul`] on a GPU, one thread per element.
#[kernel_bench(of = matmul, cuda)]
pub fn matmul_cuda_naive(
    gpu: &Gpu,
    a: &DeviceSlice<f32>,
    b: &DeviceSlice<f32>,
    n: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (m, k) = (c.len() / n, b.len() / n);
    let kernel = gpu.kernel(SOURCE, "matmul_naive")?.grid((n.div_ceil(16), m.div_ceil(16)));
    kernel.block((16, 16)).arg(a).arg(b).arg(c).arg(m).arg(n).arg(k).launch()
}

/// [`matmul`] on a GPU, in tiles of 64 by 64 in shared memory.
#[kernel_bench(of = matmul, cuda)]
pub fn matmul_cuda_tiled(
    gpu: &Gpu,
    a: &DeviceSlice<f32>,
    b: &DeviceSlice<f32>,
    n: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (m, k) = (c.len() / n, b.len() / n);
    let kernel = gpu.kernel(SOURCE, "matmul_tiled")?.grid((n.div_ceil(64), m.div_ceil(64)));
    kernel.block((16, 16)).arg(a).arg(b).arg(c).arg(m).arg(n).arg(k).launch()
}

/// [`matmul`] by the vendor's library, the yardstick.
#[kernel_bench(of = matmul, cuda)]
pub fn matmul_cublas(
    gpu: &Gpu,
    a: &DeviceSlice<f32>,
    b: &DeviceSlice<f32>,
    n: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (m, k) = (c.len() / n, b.len() / n);
    gpu.blas_lt()?.multiply(&MatrixProduct::new(m, n, k), a, b, c)
}

fn matmul_f64(a: &[f64], b: &[f64], n: usize, c: &mut [f64]) {
    let k = b.len() / n;
    for i in 0..a.len() / k {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        }
    }
}
