//! Products of 8-bit integers with exact sums and a factor for every row of either matrix, as quantised weights and
//! activations are multiplied. The second matrix is stored transposed.

#![allow(unsafe_code)] // instructions of the processor, once it is known that they are there

use kbench::prelude::*;
use rayon::prelude::*;

use super::packed::{self, Second, Shape};
use super::reference::product_f64;
use super::tensor::{Entries, Product};
use crate::shared::{COMMON, vectorised};

const SOURCE: Source =
    Source::new(include_str!("../../cuda/matmul_int8.cu")).named("matmul_int8.cu").headers(COMMON);

const ENTRIES: Entries = Entries {
    wide: "matmul_int8_wide",
    square: "matmul_int8_square",
    plain: "matmul_int8_plain",
};

/// Rows of a and of b whose products are summed up together: as many sums as half of the vector registers.
const TILE: usize = 4;
/// Bytes of a that stay in the second-level cache while all of b goes by.
const BLOCK_BYTES: usize = 256 << 10;
/// Rows of c, or columns of a single row, that make a task.
const TASK_ROWS: usize = 8 * TILE;
const TASK_COLUMNS: usize = 64 * TILE;

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
    if vnni::is_there() {
        // SAFETY: the machine has these instructions.
        return unsafe { vnni::multiply(left, right, c) };
    }
    vectorised(multiply::<Portable>, (left, right, c));
}

/// [`matmul_int8`] on all cores.
#[kernel_bench(of = matmul_int8, parallel, threshold = tuned(1_000_000))]
pub fn matmul_int8_parallel(
    a: &[i8],
    b: &[i8],
    scale_a: &[f32],
    scale_b: &[f32],
    c: &mut [f32],
) {
    let (m, n) = (scale_a.len(), scale_b.len());
    let k = b.len() / n;
    if m >= TASK_ROWS {
        let rows = a.par_chunks(TASK_ROWS * k).zip(scale_a.par_chunks(TASK_ROWS));
        let tasks = rows.zip(c.par_chunks_mut(TASK_ROWS * n));
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
        to.iter_mut().zip(from).for_each(|(to, from)| *to = f32::from(*from) * scales[row]);
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
    fn tile(self, first: usize) -> [&'a [i8]; TILE] {
        let row = |i: usize| &self.elements[i.min(self.count() - 1) * self.k..][..self.k];
        std::array::from_fn(|i| row(first + i))
    }
}

/// Sums of products of rows.
trait Dots {
    /// Something about rows of b that is the same for all rows of a.
    fn offsets(b: [&[i8]; TILE]) -> [i32; TILE];

    /// What rows of a multiplied by rows of b sum up to, plus the offset of the row of b.
    fn dots(a: [&[i8]; TILE], b: [&[i8]; TILE]) -> [[i32; TILE]; TILE];
}

#[inline(always)]
fn multiply<D: Dots>(a: Rows<'_>, b: Rows<'_>, c: &mut [f32]) {
    let (m, n) = (a.count(), b.count());
    let block = (BLOCK_BYTES / a.k.max(1)).next_multiple_of(TILE);
    for top in (0..m).step_by(block) {
        for column in (0..n).step_by(TILE) {
            let right = b.tile(column);
            let offsets = D::offsets(right);
            for row in (top..m.min(top + block)).step_by(TILE) {
                let dots = D::dots(a.tile(row), right);
                for (i, dots) in dots.iter().enumerate().take(m - row) {
                    let c = &mut c[(row + i) * n + column..][..TILE.min(n - column)];
                    for (j, c) in c.iter_mut().enumerate() {
                        let sum = dots[j].wrapping_sub(offsets[j]) as f32;
                        *c = sum * a.scales[row + i] * b.scales[column + j];
                    }
                }
            }
        }
    }
}

/// Loops that the compiler vectorises.
struct Portable;

impl Dots for Portable {
    #[inline(always)]
    fn offsets(_: [&[i8]; TILE]) -> [i32; TILE] {
        [0; TILE]
    }

    #[inline(always)]
    fn dots(a: [&[i8]; TILE], b: [&[i8]; TILE]) -> [[i32; TILE]; TILE] {
        let dot = |a: &[i8], b: &[i8]| -> i32 {
            a.iter().zip(b).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum()
        };
        a.map(|a| b.map(|b| dot(a, b)))
    }
}

#[cfg(target_arch = "x86_64")]
mod vnni {
    //! AVX-512 VNNI, which multiplies bytes and adds up four products in one instruction. It takes a's bytes as unsigned:
    //! they get 128 added, which makes every sum too large by 128 times the sum of b's row, its offset.

    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::*;

    use super::{Dots, Rows, TILE};

    /// Bytes of a vector.
    const WIDTH: usize = 64;

    pub(super) fn is_there() -> bool {
        has!("avx512f") && has!("avx512bw") && has!("avx512vnni")
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn multiply(a: Rows<'_>, b: Rows<'_>, c: &mut [f32]) {
        super::multiply::<Vnni>(a, b, c);
    }

    struct Vnni;

    impl Dots for Vnni {
        #[inline(always)]
        fn offsets(b: [&[i8]; TILE]) -> [i32; TILE] {
            // SAFETY: `multiply` is called where the machine has these instructions.
            unsafe { offsets(b) }
        }

        #[inline(always)]
        fn dots(a: [&[i8]; TILE], b: [&[i8]; TILE]) -> [[i32; TILE]; TILE] {
            // SAFETY: `multiply` is called where the machine has these instructions.
            unsafe { dots(a, b) }
        }
    }

    /// The next bytes of rows, with zeros behind their end.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn load(rows: [&[i8]; TILE], first: usize) -> [__m512i; TILE] {
        let mut vectors = [_mm512_setzero_si512(); TILE];
        for (vector, row) in vectors.iter_mut().zip(rows) {
            let row = &row[first..];
            *vector = if row.len() >= WIDTH {
                // SAFETY: the row has so many bytes.
                unsafe { _mm512_loadu_si512(row.as_ptr().cast()) }
            } else {
                // SAFETY: bytes behind the end of the row are masked out.
                unsafe { _mm512_maskz_loadu_epi8((1 << row.len()) - 1, row.as_ptr()) }
            };
        }
        vectors
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn offsets(b: [&[i8]; TILE]) -> [i32; TILE] {
        let factors = _mm512_set1_epi8(i8::MIN);
        let mut sums = [_mm512_setzero_si512(); TILE];
        for first in (0..b[0].len()).step_by(WIDTH) {
            let right = load(b, first);
            for j in 0..TILE {
                sums[j] = _mm512_dpbusd_epi32(sums[j], factors, right[j]);
            }
        }
        let mut offsets = [0; TILE];
        for j in 0..TILE {
            offsets[j] = _mm512_reduce_add_epi32(sums[j]);
        }
        offsets
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn dots(a: [&[i8]; TILE], b: [&[i8]; TILE]) -> [[i32; TILE]; TILE] {
        let top = _mm512_set1_epi8(i8::MIN);
        let mut sums = [[_mm512_setzero_si512(); TILE]; TILE];
        for first in (0..b[0].len()).step_by(WIDTH) {
            let (left, right) = (load(a, first), load(b, first));
            for i in 0..TILE {
                let left = _mm512_xor_si512(left[i], top);
                for j in 0..TILE {
                    sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], left, right[j]);
                }
            }
        }
        let mut dots = [[0; TILE]; TILE];
        for i in 0..TILE {
            for j in 0..TILE {
                dots[i][j] = _mm512_reduce_add_epi32(sums[i][j]);
            }
        }
        dots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_values_give_exact_sums_whatever_the_instructions_are() {
        let k = 1000;
        for (x, y) in [(-128, -128), (127, 127), (-128, 127), (127, -128)] {
            let (a, b) = (vec![x; 3 * k], vec![y; 5 * k]);
            let expected = (i32::from(x) * i32::from(y) * k as i32) as f32;
            let mut c = [0.0; 15];
            matmul_int8(&a, &b, &[1.0; 3], &[1.0; 5], &mut c);
            assert_eq!(c, [expected; 15], "{x} × {y}");
            let (left, right) = (
                Rows { elements: &a, k, scales: &[1.0; 3] },
                Rows { elements: &b, k, scales: &[1.0; 5] },
            );
            multiply::<Portable>(left, right, &mut c);
            assert_eq!(c, [expected; 15], "{x} × {y}, portable");
        }
    }
}
