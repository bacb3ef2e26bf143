//! One product of f32 matrices: from three loops to the packed engine, on all cores, on a GPU, and as vendors do it.

use kbench::prelude::*;
use rayon::prelude::*;

use super::packed::{self, Second, Shape};
use super::tiled::{self, SOURCE};
use crate::shared::{needs_ampere, vectorise};

/// Rows of `b` that are used while they are in the first-level cache.
const DEPTH_TILE: usize = 64;
/// Columns of `b` and `c` that are used together.
const WIDTH_TILE: usize = 256;

/// c ← a·b for a of m × k and b of k × n, by the packed engine.
#[kernel_bench(
    sizes = [
        "tiny" => (m = 16, n = 16, k = 16),
        "small" => (m = 64, n = 64, k = 64),
        "medium" => (m = 192, n = 192, k = 192),
        "large" => (m = 512, n = 512, k = 512),
    ],
    inputs = |m, n, k| (uniform(m * k), uniform(k * n), n, zeros(m * n)),
    flops = |m, n, k| 2 * m * n * k,
    bytes = |m, n, k| 4 * (m * k + k * n + m * n),
    reference = matmul_f64,
)]
pub fn matmul(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
    let (m, k) = (c.len() / n, b.len() / n);
    packed::multiply(Shape { m, n, k }, packed::rows(a, k), Second::AsIs(packed::rows(b, n)), c);
}

/// [`matmul`] on all cores.
#[kernel_bench(of = matmul, parallel, threshold = tuned(5_000_000))]
pub fn matmul_rayon(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
    let (m, k) = (c.len() / n, b.len() / n);
    let b = Second::AsIs(packed::rows(b, n));
    packed::multiply_parallel(Shape { m, n, k }, packed::rows(a, k), b, c);
}

/// [`matmul`] element by element: three loops as they are in books.
#[kernel_bench(of = matmul, valid = m * n * k <= 1 << 24)]
pub fn matmul_naive(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
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

/// [`matmul`] in tiles that fit into caches, rows of `b` added to rows of `c`.
#[kernel_bench(of = matmul)]
pub fn matmul_blocked(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
    vectorise!(blocked_body, (a, b, n, c));
}

#[inline(always)]
fn blocked_body(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
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

/// [`matmul`] by the crate `gemm`, a yardstick.
#[cfg(feature = "vendor")]
#[kernel_bench(of = matmul)]
pub fn matmul_gemm(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
    kernels_vendor::multiply(a, b, n, c, kernels_vendor::Parallelism::None);
}

/// [`matmul`] by the crate `gemm` on all cores, a yardstick.
#[cfg(feature = "vendor")]
#[kernel_bench(of = matmul, parallel)]
pub fn matmul_gemm_rayon(a: &[f32], b: &[f32], n: usize, c: &mut [f32]) {
    kernels_vendor::multiply(a, b, n, c, kernels_vendor::Parallelism::Rayon(0));
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
    needs_ampere(gpu)?; // as others in its source do
    let (m, k) = (c.len() / n, b.len() / n);
    let kernel = gpu.kernel(SOURCE, "matmul_naive")?.grid((n.div_ceil(16), m.div_ceil(16)));
    kernel.block((16, 16)).arg(a).arg(b).arg(c).arg(m).arg(n).arg(k).launch()
}

/// [`matmul`] on a GPU, in tiles that are copied ahead to shared memory.
#[kernel_bench(of = matmul, cuda)]
pub fn matmul_cuda_tiled(
    gpu: &Gpu,
    a: &DeviceSlice<f32>,
    b: &DeviceSlice<f32>,
    n: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (m, k) = (c.len() / n, b.len() / n);
    tiled::multiply(gpu, Shape { m, n, k }, 1, a, b, c)
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

/// Rows of b times numbers of a, added up: another order than any of the variants has.
fn matmul_f64(a: &[f64], b: &[f64], n: usize, c: &mut [f64]) {
    let k = b.len() / n;
    c.par_chunks_mut(n).zip(a.par_chunks(k)).for_each(|(c, a)| {
        c.fill(0.0);
        for (a, b) in a.iter().zip(b.chunks(n)) {
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    });
}
