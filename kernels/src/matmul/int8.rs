//! Products of 8-bit integers with exact sums and a factor for every row of either matrix, as quantised weights and
//! activations are multiplied. The second matrix is stored transposed.

#[cfg(target_arch = "x86_64")]
mod vnni;

use kbench::prelude::*;
use rayon::prelude::*;

use super::packed::{self, Second, Shape};
use super::reference::product_f64;
use super::tensor::{Entries, Product};
use crate::shared::{COMMON, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../../cuda/matmul_int8.cu")).named("matmul_int8.cu").headers(COMMON);

const ENTRIES: Entries = Entries {
    wide: "matmul_int8_wide",
    square: "matmul_int8_square",
    slim: "matmul_int8_slim",
    plain: "matmul_int8_plain",
};

/// Rows of a and of b that are used together while they are in the first-level cache.
const TILE: usize = 4;
/// Bytes of a that stay in the second-level cache while all of b goes by.
const BLOCK_BYTES: usize = 256 << 10;
/// Rows of c that make a task at least; and columns, where there are few rows.
const TASK_ROWS: usize = 12;
const TASK_COLUMNS: usize = 256;

/// c ← (a·bᵗ)·scale_a·scale_bᵗ for a of m rows of k and b of n rows of k, of 8-bit integers with a factor for each row.
#[kernel_bench(
    sizes = [
        "tiny" => (m = 16, n = 16, k = 16),
        "small" => (m = 64, n = 64, k = 64),
        "ragged" => (m = 150, n = 170, k = 304),
        "medium" => (m = 256, n = 256, k = 256),
        "large" => (m = 1024, n = 1024, k = 1024),
    ],
    inputs = |m, n, k| (
        integers(m * k, -127..128), integers(n * k, -127..128), range(m, 0.001..0.01), range(n, 0.001..0.01), zeros(m * n),
    ),
    flops = |m, n, k| 2 * m * n * k,
    reference = matmul_int8_f64,
    // The sum is exact; it is rounded to f32, and so are its two products with factors: three times 2⁻²⁴.
    tolerance = 2e-7,
)]
pub fn matmul_int8(a: &[i8], b: &[i8], scale_a: &[f32], scale_b: &[f32], c: &mut [f32]) {
    let k = b.len() / scale_b.len();
    let left = Rows { elements: a, k, scales: scale_a };
    let right = Rows { elements: b, k, scales: scale_b };
    #[cfg(target_arch = "x86_64")]
    if vnni::try_multiply(left, right, c) {
        return;
    }
    vectorise!(multiply_rows, (left, right, c));
}

/// [`matmul_int8`] on all cores.
#[kernel_bench(of = matmul_int8, parallel, threshold = tuned(8_000_000))]
pub fn matmul_int8_rayon(a: &[i8], b: &[i8], scale_a: &[f32], scale_b: &[f32], c: &mut [f32]) {
    let (m, n) = (scale_a.len(), scale_b.len());
    let k = b.len() / n;
    if m >= 2 * TASK_ROWS {
        // One task for each thread, as every task packs b.
        let share = m.div_ceil(rayon::current_num_threads()).max(TASK_ROWS);
        let rows = a.par_chunks(share * k).zip(scale_a.par_chunks(share));
        let tasks = rows.zip(c.par_chunks_mut(share * n));
        return tasks.for_each(|((a, scale_a), c)| matmul_int8(a, b, scale_a, scale_b, c));
    }
    // Few rows, as when one token is decoded: tasks are parts of a row.
    for ((a, scale_a), c) in a.chunks(k).zip(scale_a.chunks(1)).zip(c.chunks_mut(n)) {
        let columns = b.par_chunks(TASK_COLUMNS * k).zip(scale_b.par_chunks(TASK_COLUMNS));
        let tasks = columns.zip(c.par_chunks_mut(TASK_COLUMNS));
        tasks.for_each(|((b, scale_b), c)| matmul_int8(a, b, scale_a, scale_b, c));
    }
}

/// [`matmul_int8`] by way of f32: factors are multiplied in while operands are packed, and what is left is a product of
/// f32. What integers gain shows against this.
// Sums of up to 1024 products in f32: 8·2⁻²⁴·√1024.
#[kernel_bench(of = matmul_int8, tolerance = 1.6e-5)]
pub fn matmul_int8_dequantised(
    a: &[i8],
    b: &[i8],
    scale_a: &[f32],
    scale_b: &[f32],
    c: &mut [f32],
) {
    let (m, n) = (scale_a.len(), scale_b.len());
    let k = b.len() / n;
    let b = Second::Transposed(dequantised(b, k, scale_b));
    packed::multiply(Shape { m, n, k }, dequantised(a, k, scale_a), b, c);
}

/// Reads rows as f32, each with its factor.
fn dequantised<'a>(elements: &'a [i8], k: usize, scales: &'a [f32]) -> impl packed::Read + 'a {
    #[inline(always)]
    move |row, column, to| {
        let from = &elements[row * k + column..][..to.len()];
        let scale = scales[row];
        to.iter_mut().zip(from).for_each(|(to, from)| *to = f32::from(*from) * scale);
    }
}

/// [`matmul_int8`] in the matrix units of a GPU.
#[kernel_bench(of = matmul_int8, cuda)]
pub fn matmul_int8_cuda(
    gpu: &Gpu,
    a: &DeviceSlice<i8>,
    b: &DeviceSlice<i8>,
    scale_a: &DeviceSlice<f32>,
    scale_b: &DeviceSlice<f32>,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (m, n) = (scale_a.len(), scale_b.len());
    let k = b.len() / n;
    let kernel = ENTRIES.launch(gpu, SOURCE, Product { m, n, row_bytes: k })?;
    kernel.arg(a).arg(b).arg(scale_a).arg(scale_b).arg(c).arg(m).arg(n).arg(k).launch()
}

/// [`matmul_int8`] by the vendor's library, which makes the sums, and a kernel that multiplies them by their factors.
#[kernel_bench(of = matmul_int8, cuda, valid = m % 16 == 0 && n % 16 == 0 && k % 16 == 0)]
pub fn matmul_int8_cublas(
    gpu: &Gpu,
    a: &DeviceSlice<i8>,
    b: &DeviceSlice<i8>,
    scale_a: &DeviceSlice<f32>,
    scale_b: &DeviceSlice<f32>,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (m, n) = (scale_a.len(), scale_b.len());
    let product = MatrixProduct::new(m, n, b.len() / n).transposed();
    let mut sums = gpu.scratch::<i32>(m * n)?;
    gpu.blas_lt()?.multiply(&product, a, b, &mut sums)?;
    let kernel = gpu.kernel(SOURCE, "matmul_int8_scale")?.grid((m, n.div_ceil(256))).block(256);
    kernel.arg(&sums).arg(scale_a).arg(scale_b).arg(c).arg(n).launch()
}

fn matmul_int8_f64(a: &[f64], b: &[f64], scale_a: &[f64], scale_b: &[f64], c: &mut [f64]) {
    let k = b.len() / scale_b.len();
    product_f64((a, b, k), c, |i, j, sum| sum * scale_a[i] * scale_b[j]);
}

/// Rows of k integers with a factor each.
#[derive(Clone, Copy)]
struct Rows<'a> {
    elements: &'a [i8],
    k: usize,
    scales: &'a [f32],
}

impl<'a> Rows<'a> {
    fn count(self) -> usize {
        self.scales.len()
    }

    /// Rows from `first` on; behind the end, the last one again.
    #[inline(always)]
    fn tile<const ROWS: usize>(self, first: usize) -> [&'a [i8]; ROWS] {
        let row = |i: usize| &self.elements[i.min(self.count() - 1) * self.k..][..self.k];
        std::array::from_fn(|i| row(first + i))
    }
}

/// Row by row, with loops that the compiler vectorises.
#[inline(always)]
fn multiply_rows(a: Rows<'_>, b: Rows<'_>, c: &mut [f32]) {
    let (m, n) = (a.count(), b.count());
    let block = (BLOCK_BYTES / a.k.max(1)).next_multiple_of(TILE);
    for top in (0..m).step_by(block) {
        for column in (0..n).step_by(TILE) {
            let right = b.tile::<TILE>(column);
            for row in (top..m.min(top + block)).step_by(TILE) {
                for (i, left) in a.tile::<TILE>(row).into_iter().enumerate().take(m - row) {
                    let to = &mut c[(row + i) * n + column..][..TILE.min(n - column)];
                    for ((to, right), scale) in to.iter_mut().zip(right).zip(&b.scales[column..]) {
                        *to = dot(left, right) as f32 * a.scales[row + i] * scale;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn dot(a: &[i8], b: &[i8]) -> i32 {
    // Looking for an overflow would keep the compiler from using vectors.
    a.iter().zip(b).fold(0, |sum: i32, (a, b)| {
        sum.wrapping_add(i32::from(i16::from(*a).wrapping_mul(i16::from(*b))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_values_give_exact_sums_whatever_the_instructions_are() {
        let k = 1001;
        for (x, y) in [(-128, -128), (127, 127), (-128, 127), (127, -128)] {
            let (a, b) = (vec![x; 13 * k], vec![y; 3 * k]);
            let expected = (i32::from(x) * i32::from(y) * k as i32) as f32;
            let mut c = [0.0; 39];
            matmul_int8(&a, &b, &[1.0; 13], &[1.0; 3], &mut c);
            assert_eq!(c, [expected; 39], "{x} × {y}");
            let left = Rows { elements: &a, k, scales: &[1.0; 13] };
            let right = Rows { elements: &b, k, scales: &[1.0; 3] };
            multiply_rows(left, right, &mut c);
            assert_eq!(c, [expected; 39], "{x} × {y}, row by row");
        }
    }
}
