//! Products of 16-bit floats with sums in f32. The second matrix is stored transposed, as weights are.

use kbench::prelude::*;
use rayon::prelude::*;

use super::packed::{self, Second, Shape};
use super::reference::product_f64;
use super::tensor::{Entries, Product};
use crate::shared::scratch::with_scratch;
use crate::shared::tasks::GRAIN;
use crate::shared::{COMMON, Float, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../../cuda/matmul_half.cu")).named("matmul_half.cu").headers(COMMON);

/// f16 or bf16.
pub trait Half: Float {
    /// Entry points of device code.
    #[doc(hidden)]
    const ENTRIES: HalfEntries;
}

/// Names that are of no interest outside of this file.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct HalfEntries(Entries);

impl Half for f16 {
    const ENTRIES: HalfEntries = HalfEntries(Entries {
        wide: "matmul_half_wide_f16",
        square: "matmul_half_square_f16",
        slim: "matmul_half_slim_f16",
        plain: "matmul_half_plain_f16",
    });
}

impl Half for bf16 {
    const ENTRIES: HalfEntries = HalfEntries(Entries {
        wide: "matmul_half_wide_bf16",
        square: "matmul_half_square_bf16",
        slim: "matmul_half_slim_bf16",
        plain: "matmul_half_plain_bf16",
    });
}

/// c ← a·bᵗ for a of m rows of k and b of n rows of k, of 16-bit floats that become f32 while they are packed.
#[kernel_bench(
    sizes = [
        "tiny" => (m = 16, n = 16, k = 16),
        "small" => (m = 64, n = 64, k = 64),
        "medium" => (m = 192, n = 192, k = 192),
        "ragged" => (m = 150, n = 170, k = 304),
        "large" => (m = 512, n = 512, k = 512),
    ],
    inputs = |m, n, k| (uniform(m * k), uniform(n * k), n, zeros(m * n)),
    flops = |m, n, k| 2 * m * n * k,
    bytes = |m, n, k| 2 * (m * k + n * k + m * n),
    reference = matmul_half_f64,
    // Sums are in f32: what counts is the rounding of the result, at most 2⁻⁹ for bf16 (and 2⁻¹² for f16).
    tolerance = 4e-3,
    types = [f16, bf16],
)]
pub fn matmul_half<T: Half>(a: &[T], b: &[T], n: usize, c: &mut [T]) {
    let (m, k) = (c.len() / n, b.len() / n);
    with_scratch([c.len()], |[sums]| {
        let b = Second::Transposed(widened(b, k));
        packed::multiply(Shape { m, n, k }, widened(a, k), b, sums);
        narrow(sums, c);
    });
}

/// [`matmul_half`] on all cores.
#[kernel_bench(of = matmul_half, parallel, threshold = tuned(10_000_000), types = [f16, bf16])]
pub fn matmul_half_rayon<T: Half>(a: &[T], b: &[T], n: usize, c: &mut [T]) {
    let (m, k) = (c.len() / n, b.len() / n);
    with_scratch([c.len()], |[sums]| {
        let b = Second::Transposed(widened(b, k));
        packed::multiply_parallel(Shape { m, n, k }, widened(a, k), b, sums);
        let tasks = sums.par_chunks(GRAIN).zip(c.par_chunks_mut(GRAIN));
        tasks.for_each(|(sums, c)| narrow(sums, c));
    });
}

/// [`matmul_half`] in the matrix units of a GPU.
#[kernel_bench(of = matmul_half, cuda, types = [f16, bf16])]
pub fn matmul_half_cuda<T: Half>(
    gpu: &Gpu,
    a: &DeviceSlice<T>,
    b: &DeviceSlice<T>,
    n: usize,
    c: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    let (m, k) = (c.len() / n, b.len() / n);
    let product = Product { m, n, row_bytes: k * size_of::<T>() };
    let kernel = T::ENTRIES.0.launch(gpu, SOURCE, product)?;
    kernel.arg(a).arg(b).arg(c).arg(m).arg(n).arg(k).launch()
}

/// [`matmul_half`] by the vendor's library, the yardstick.
#[kernel_bench(of = matmul_half, cuda, types = [f16, bf16])]
pub fn matmul_half_cublas<T: Half>(
    gpu: &Gpu,
    a: &DeviceSlice<T>,
    b: &DeviceSlice<T>,
    n: usize,
    c: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    let (m, k) = (c.len() / n, b.len() / n);
    gpu.blas_lt()?.multiply(&MatrixProduct::new(m, n, k).transposed(), a, b, c)
}

fn matmul_half_f64(a: &[f64], b: &[f64], n: usize, c: &mut [f64]) {
    product_f64((a, b, b.len() / n), c, |_, _, sum| sum);
}

/// Reads rows as f32.
fn widened<T: Half>(matrix: &[T], k: usize) -> impl packed::Read + '_ {
    #[inline(always)]
    move |row, column, to: &mut [f32]| T::widen(&matrix[row * k + column..][..to.len()], to)
}

// Rounds sums to the nearest, ties to even.
vectorise! {
    fn narrow<T: Float>(sums: &[f32], c: &mut [T]) {
        T::narrow(sums, c);
    }
}
