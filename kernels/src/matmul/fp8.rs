//! Products of 8-bit floats (e4m3) with a factor for every block of either matrix. The second matrix is stored transposed.

#![allow(clippy::too_many_arguments)] // a CUDA variant takes what its kernel takes, and the device

use kbench::prelude::*;

use super::packed::{self, Second, Shape};
use super::reference::product_f64;
use super::tensor::{BUFFERS, COPIERS, MULTIPLIERS, Product, SQUARE, TALL, Tile};
use crate::shared::scratch::with_scratch;
use crate::shared::{COMMON, needs_hopper, vectorise};

pub(super) const SOURCE: Source =
    Source::new(include_str!("../../cuda/matmul_fp8.cu")).named("matmul_fp8.cu").headers(COMMON);

/// Depth of a stage of device code, which must not go over the end of a block.
pub(super) const STAGE: usize = 128;
/// Shared memory that device code has for factors.
const MOST_FACTOR_BYTES: usize = 32 << 10;

/// c ← (s_a·a)·(s_b·b)ᵗ for a of m rows of k and b of n rows of k, with a factor for every block of quant × quant elements:
/// factors are multiplied in while operands are packed.
#[kernel_bench(
    sizes = [
        "tiny" => (m = 32, n = 32, k = 128, quant = 128),
        "small" => (m = 128, n = 128, k = 128, quant = 128),
        "ragged" => (m = 150, n = 170, k = 304, quant = 128),
        "medium" => (m = 512, n = 512, k = 512, quant = 128),
        "large" => (m = 1024, n = 1024, k = 1024, quant = 256),
    ],
    inputs = |m, n, k, quant| (
        uniform(m * k), uniform(n * k), range(blocks(m, k, quant), 0.5..2.0), range(blocks(n, k, quant), 0.5..2.0),
        k, quant, zeros(m * n),
    ),
    work = |m, n, k, quant| m * n * k,
    flops = |m, n, k, quant| 2 * m * n * k,
    reference = matmul_fp8_f64,
    // On the CPU sums are in f32. The matrix units of a GPU keep about 14 bits of a sum of 128 products, so 2⁻¹³ at worst.
    tolerance = 5e-4,
)]
pub fn matmul_fp8(
    a: &[F8E4M3],
    b: &[F8E4M3],
    scale_a: &[f32],
    scale_b: &[f32],
    k: usize,
    quant: usize,
    c: &mut [f32],
) {
    let b = Blocks::new(b, scale_b, k, quant);
    let a = Blocks::new(a, scale_a, k, quant);
    let shape = Shape { m: a.rows(), n: b.rows(), k };
    packed::multiply(shape, a.scaled(), Second::Transposed(b.scaled()), c);
}

/// [`matmul_fp8`] on all cores.
#[kernel_bench(of = matmul_fp8, parallel, threshold = tuned(6_000_000))]
pub fn matmul_fp8_rayon(
    a: &[F8E4M3],
    b: &[F8E4M3],
    scale_a: &[f32],
    scale_b: &[f32],
    k: usize,
    quant: usize,
    c: &mut [f32],
) {
    let b = Blocks::new(b, scale_b, k, quant);
    let a = Blocks::new(a, scale_a, k, quant);
    let shape = Shape { m: a.rows(), n: b.rows(), k };
    packed::multiply_parallel(shape, a.scaled(), Second::Transposed(b.scaled()), c);
}

/// [`matmul_fp8`] in two passes: both matrices become f32, and are multiplied then.
#[kernel_bench(of = matmul_fp8)]
pub fn matmul_fp8_dequantised(
    a: &[F8E4M3],
    b: &[F8E4M3],
    scale_a: &[f32],
    scale_b: &[f32],
    k: usize,
    quant: usize,
    c: &mut [f32],
) {
    let b = Blocks::new(b, scale_b, k, quant);
    let a = Blocks::new(a, scale_a, k, quant);
    let shape = Shape { m: a.rows(), n: b.rows(), k };
    with_scratch([shape.m * k, shape.n * k], |[wide_a, wide_b]| {
        vectorise!(Blocks::dequantise, (a, wide_a));
        vectorise!(Blocks::dequantise, (b, wide_b));
        let b = Second::Transposed(packed::rows(wide_b, k));
        packed::multiply(shape, packed::rows(wide_a, k), b, c);
    });
}

/// [`matmul_fp8`] block by block: products of blocks are multiplied by their factor when they are added up, as device code
/// does it.
#[kernel_bench(of = matmul_fp8, valid = quant >= 16 || m * n * k <= 100_000)]
pub fn matmul_fp8_blockwise(
    a: &[F8E4M3],
    b: &[F8E4M3],
    scale_a: &[f32],
    scale_b: &[f32],
    k: usize,
    quant: usize,
    c: &mut [f32],
) {
    let b = Blocks::new(b, scale_b, k, quant);
    let a = Blocks::new(a, scale_a, k, quant);
    let (m, n) = (a.rows(), b.rows());
    c.fill(0.0);
    with_scratch([quant * quant], |[sums]| {
        for (row, column, depth) in corners(m, n, k, quant) {
            let (rows, columns) = (quant.min(m - row), quant.min(n - column));
            let shape = Shape { m: rows, n: columns, k: quant.min(k - depth) };
            let (left, right) = (a.from(row, depth), b.from(column, depth));
            let sums = &mut sums[..rows * columns];
            packed::multiply(shape, left, Second::Transposed(right), sums);
            let scale = a.scale(row, depth) * b.scale(column, depth);
            for (i, sums) in sums.chunks(columns).enumerate() {
                let c = &mut c[(row + i) * n + column..][..columns];
                c.iter_mut().zip(sums).for_each(|(c, sum)| *c += scale * sum);
            }
        }
    });
}

/// [`matmul_fp8`] on a GPU, the first version: two buffers, the next stage goes through registers while one is multiplied.
/// Devices other than Hopper, for which there is no later version, multiply without their matrix units.
#[kernel_bench(of = matmul_fp8, cuda)]
pub fn matmul_fp8_cuda_double_buffered(
    gpu: &Gpu,
    a: &DeviceSlice<F8E4M3>,
    b: &DeviceSlice<F8E4M3>,
    scale_a: &DeviceSlice<f32>,
    scale_b: &DeviceSlice<f32>,
    k: usize,
    quant: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let version =
        Version { tile: BUFFERS, name: "matmul_fp8_double_buffered", threads: MULTIPLIERS };
    version.multiply(gpu, Operands { a, b, scale_a, scale_b, k, quant }, c)
}

/// [`matmul_fp8`] on a GPU, the second version: asynchronous copies, several stages ahead.
#[kernel_bench(of = matmul_fp8, cuda)]
pub fn matmul_fp8_cuda_pipelined(
    gpu: &Gpu,
    a: &DeviceSlice<F8E4M3>,
    b: &DeviceSlice<F8E4M3>,
    scale_a: &DeviceSlice<f32>,
    scale_b: &DeviceSlice<f32>,
    k: usize,
    quant: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    needs_hopper(gpu)?;
    let version = Version { tile: SQUARE, name: "matmul_fp8_pipelined", threads: MULTIPLIERS };
    version.multiply(gpu, Operands { a, b, scale_a, scale_b, k, quant }, c)
}

/// [`matmul_fp8`] on a GPU, the third version: threads that copy and threads that multiply, factors in shared memory, and
/// larger tiles where there are enough of them.
#[kernel_bench(of = matmul_fp8, cuda)]
pub fn matmul_fp8_cuda_specialised(
    gpu: &Gpu,
    a: &DeviceSlice<F8E4M3>,
    b: &DeviceSlice<F8E4M3>,
    scale_a: &DeviceSlice<f32>,
    scale_b: &DeviceSlice<f32>,
    k: usize,
    quant: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    needs_hopper(gpu)?;
    let product = Product { m: a.len() / k, n: b.len() / k, row_bytes: k };
    let tall = (TALL, "matmul_fp8_specialised_tall");
    let square = (SQUARE, "matmul_fp8_specialised_square");
    let (tile, name) = product.best_of(gpu, [tall, square]);
    let version = Version { tile, name, threads: MULTIPLIERS + COPIERS };
    version.multiply(gpu, Operands { a, b, scale_a, scale_b, k, quant }, c)
}

/// What a product takes on the device.
struct Operands<'a> {
    a: &'a DeviceSlice<F8E4M3>,
    b: &'a DeviceSlice<F8E4M3>,
    scale_a: &'a DeviceSlice<f32>,
    scale_b: &'a DeviceSlice<f32>,
    k: usize,
    quant: usize,
}

/// Device code of a version.
struct Version {
    tile: Tile,
    name: &'static str,
    threads: usize,
}

impl Version {
    fn multiply(
        self,
        gpu: &Gpu,
        operands: Operands<'_>,
        c: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        let Operands { a, b, scale_a, scale_b, k, quant } = operands;
        let product = Product { m: a.len() / k, n: b.len() / k, row_bytes: k };
        // Those of the rows of each of two groups of threads.
        let factor_bytes = 2 * k.div_ceil(quant) * size_of::<f32>();
        let suits =
            product.suits(gpu) && quant.is_multiple_of(STAGE) && factor_bytes <= MOST_FACTOR_BYTES;
        let kernel = if suits {
            self.tile.cover(gpu.kernel(SOURCE, self.name)?, product, self.threads, factor_bytes)
        } else {
            product.plain(gpu, SOURCE, "matmul_fp8_plain")?
        };
        let kernel = kernel.arg(a).arg(b).arg(scale_a).arg(scale_b).arg(c);
        kernel.arg(product.m).arg(product.n).arg(k).arg(quant).launch()
    }
}

fn matmul_fp8_f64(
    a: &[f64],
    b: &[f64],
    scale_a: &[f64],
    scale_b: &[f64],
    k: usize,
    quant: usize,
    c: &mut [f64],
) {
    let across = k.div_ceil(quant);
    let scaled = |matrix: &[f64], scales: &[f64]| -> Vec<f64> {
        let factor = |i: usize| scales[i / k / quant * across + i % k / quant];
        matrix.iter().enumerate().map(|(i, value)| value * factor(i)).collect()
    };
    product_f64((&scaled(a, scale_a), &scaled(b, scale_b), k), c, |_, _, sum| sum);
}

/// Blocks of a matrix; those at its end may be smaller.
fn blocks(rows: usize, columns: usize, quant: usize) -> usize {
    rows.div_ceil(quant) * columns.div_ceil(quant)
}

/// The first row, column and depth of every product of two blocks.
fn corners(
    m: usize,
    n: usize,
    k: usize,
    quant: usize,
) -> impl Iterator<Item = (usize, usize, usize)> {
    let steps = move |end: usize| (0..end).step_by(quant);
    steps(m).flat_map(move |row| {
        steps(n).flat_map(move |column| steps(k).map(move |depth| (row, column, depth)))
    })
}

/// A matrix of rows of k elements, with a factor for each of its blocks.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    elements: &'a [F8E4M3],
    scales: &'a [f32],
    k: usize,
    quant: usize,
    /// Blocks of a row.
    across: usize,
}

impl<'a> Blocks<'a> {
    fn new(elements: &'a [F8E4M3], scales: &'a [f32], k: usize, quant: usize) -> Self {
        Blocks { elements, scales, k, quant, across: k.div_ceil(quant) }
    }

    fn rows(self) -> usize {
        self.elements.len() / self.k
    }

    /// The factor of the block that an element is in.
    #[inline(always)]
    fn scale(self, row: usize, column: usize) -> f32 {
        self.scales[row / self.quant * self.across + column / self.quant]
    }

    /// Elements of a row, without their factors.
    #[inline(always)]
    fn read(self, row: usize, column: usize, to: &mut [f32]) {
        widen(&self.elements[row * self.k + column..][..to.len()], to);
    }

    /// Elements of a row, each with its factor.
    #[inline(always)]
    fn read_scaled(self, row: usize, column: usize, to: &mut [f32]) {
        self.read(row, column, to);
        let scales = &self.scales[row / self.quant * self.across..];
        let (mut first, mut block) = (0, column / self.quant);
        while first < to.len() {
            let end = to.len().min((block + 1).saturating_mul(self.quant) - column);
            to[first..end].iter_mut().for_each(|to| *to *= scales[block]);
            (first, block) = (end, block + 1);
        }
    }

    /// All elements, each with its factor.
    #[inline(always)]
    fn dequantise(self, to: &mut [f32]) {
        for (row, to) in to.chunks_mut(self.k).enumerate() {
            self.read_scaled(row, 0, to);
        }
    }

    /// As what the packed engine reads, from a corner on and without factors.
    fn from(self, first_row: usize, first_column: usize) -> impl packed::Read + 'a {
        #[inline(always)]
        move |row, column, to: &mut [f32]| self.read(first_row + row, first_column + column, to)
    }

    /// As what the packed engine reads, with factors.
    fn scaled(self) -> impl packed::Read + 'a {
        #[inline(always)]
        move |row, column, to: &mut [f32]| self.read_scaled(row, column, to)
    }
}

/// Widens 8-bit floats.
#[inline(always)]
fn widen(from: &[F8E4M3], to: &mut [f32]) {
    from.iter().zip(to).for_each(|(from, to)| *to = to_f32(*from));
}

/// The same number, without a table, so that loops over it are vectorised.
#[inline(always)]
fn to_f32(value: F8E4M3) -> f32 {
    /// The difference of the biases of both exponents, and the distance of the mantissas.
    const BIAS: u32 = 127 - 7;
    const MOVED: u32 = 23 - 3;
    const NAN: u32 = 0x7f;
    const SMALLEST_NORMAL: u32 = 0x08;
    let bits = u32::from(value.to_bits());
    let (sign, magnitude) = (bits >> 7 << 31, bits & 0x7f);
    let normal = f32::from_bits((magnitude << MOVED) + (BIAS << 23));
    let subnormal = magnitude as f32 * (1.0 / 512.0);
    let number = if magnitude < SMALLEST_NORMAL { subnormal } else { normal };
    let number = if magnitude == NAN { f32::NAN } else { number };
    f32::from_bits(number.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_8_bit_float_is_widened_to_the_same_number() {
        let all: Vec<F8E4M3> = (0..=u8::MAX).map(F8E4M3::from_bits).collect();
        let mut wide = vec![0.0; all.len()];
        widen(&all, &mut wide);
        for (narrow, wide) in all.iter().zip(wide) {
            let expected = narrow.to_f32();
            assert!(expected.to_bits() == wide.to_bits() || expected.is_nan() && wide.is_nan());
        }
    }

    #[test]
    fn rows_that_begin_within_a_block_get_the_factors_of_their_blocks() {
        let elements = vec![F8E4M3::from_f32(1.0); 3 * 7];
        let scales = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let matrix = Blocks::new(&elements, &scales, 7, 3);
        let mut row = [0.0; 5];
        matrix.read_scaled(2, 1, &mut row);
        assert_eq!(row, [1.0, 1.0, 2.0, 2.0, 2.0]);
    }
}
