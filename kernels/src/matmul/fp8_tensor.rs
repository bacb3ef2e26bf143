//! Products of 8-bit floats (e4m3) with one factor for each matrix, which vendors' libraries have, too. The second matrix is
//! stored transposed.

use kbench::prelude::*;

use super::fp8::{SOURCE, STAGE, matmul_fp8, matmul_fp8_cuda_specialised, matmul_fp8_rayon};
use super::reference::product_f64;
use super::tensor::{Entries, Product};

/// c ← s_a·s_b·(a·bᵗ) for a of m rows of k and b of n rows of k, with one factor for each matrix.
#[kernel_bench(
    sizes = [
        "tiny" => (m = 16, n = 16, k = 16),
        "small" => (m = 64, n = 64, k = 64),
        "ragged" => (m = 150, n = 170, k = 304),
        "medium" => (m = 192, n = 192, k = 192),
        "large" => (m = 512, n = 512, k = 512),
    ],
    inputs = |m, n, k| (uniform(m * k), uniform(n * k), range(1, 0.5..2.0), range(1, 0.5..2.0), k, zeros(m * n)),
    flops = |m, n, k| 2 * m * n * k,
    reference = matmul_fp8_tensor_f64,
    // On the CPU sums are in f32. The matrix units of a GPU keep about 14 bits of a sum; what they cut off adds up, to
    // 1.2e-3 of the norm for 4096 products of random numbers.
    tolerance = 4e-3,
)]
pub fn matmul_fp8_tensor(
    a: &[F8E4M3],
    b: &[F8E4M3],
    scale_a: &[f32],
    scale_b: &[f32],
    k: usize,
    c: &mut [f32],
) {
    matmul_fp8(a, b, scale_a, scale_b, k, usize::MAX, c);
}

/// [`matmul_fp8_tensor`] on all cores.
#[kernel_bench(of = matmul_fp8_tensor, parallel, threshold = tuned(8_000_000))]
pub fn matmul_fp8_tensor_rayon(
    a: &[F8E4M3],
    b: &[F8E4M3],
    scale_a: &[f32],
    scale_b: &[f32],
    k: usize,
    c: &mut [f32],
) {
    matmul_fp8_rayon(a, b, scale_a, scale_b, k, usize::MAX, c);
}

/// [`matmul_fp8_tensor`] in the matrix units of a GPU, which keep the sums.
#[kernel_bench(of = matmul_fp8_tensor, cuda)]
pub fn matmul_fp8_tensor_cuda(
    gpu: &Gpu,
    a: &DeviceSlice<F8E4M3>,
    b: &DeviceSlice<F8E4M3>,
    scale_a: &DeviceSlice<f32>,
    scale_b: &DeviceSlice<f32>,
    k: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    const ENTRIES: Entries = Entries {
        wide: "matmul_fp8_tensor_wide",
        square: "matmul_fp8_tensor_square",
        slim: "matmul_fp8_tensor_slim",
        plain: "matmul_fp8_tensor_plain",
    };
    let (m, n) = (a.len() / k, b.len() / k);
    let kernel = ENTRIES.launch(gpu, SOURCE, Product { m, n, row_bytes: k })?;
    kernel.arg(a).arg(b).arg(scale_a).arg(scale_b).arg(c).arg(m).arg(n).arg(k).launch()
}

/// [`matmul_fp8_tensor`] in the matrix units of a GPU, with sums of 128 products added up in f32, as the vendor's library
/// does it: the third version of [`matmul_fp8`] with a single block.
#[kernel_bench(of = matmul_fp8_tensor, cuda, tolerance = 5e-4)]
pub fn matmul_fp8_tensor_cuda_promoted(
    gpu: &Gpu,
    a: &DeviceSlice<F8E4M3>,
    b: &DeviceSlice<F8E4M3>,
    scale_a: &DeviceSlice<f32>,
    scale_b: &DeviceSlice<f32>,
    k: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let quant = (a.len() / k).max(b.len() / k).max(k).next_multiple_of(STAGE);
    matmul_fp8_cuda_specialised(gpu, a, b, scale_a, scale_b, k, quant, c)
}

/// [`matmul_fp8_tensor`] by the vendor's library, the yardstick.
#[kernel_bench(of = matmul_fp8_tensor, cuda, valid = m % 16 == 0 && n % 16 == 0 && k % 16 == 0)]
pub fn matmul_fp8_tensor_cublas(
    gpu: &Gpu,
    a: &DeviceSlice<F8E4M3>,
    b: &DeviceSlice<F8E4M3>,
    scale_a: &DeviceSlice<f32>,
    scale_b: &DeviceSlice<f32>,
    k: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let product = MatrixProduct::new(a.len() / k, b.len() / k, k).transposed();
    gpu.blas_lt()?.multiply_scaled(&product, (a, Some(scale_a)), (b, Some(scale_b)), c)
}

fn matmul_fp8_tensor_f64(
    a: &[f64],
    b: &[f64],
    scale_a: &[f64],
    scale_b: &[f64],
    k: usize,
    c: &mut [f64],
) {
    product_f64((a, b, k), c, |_, _, sum| sum * scale_a[0] * scale_b[0]);
}
