//! Floats as integers of 8 bits with a scale, and what that costs in accuracy.
//!
//! A row's scale is max|x| / 127, and a value the integer nearest to x · (127 / max|x|), ties to even. The factor is rounded
//! once and the product once more, on a processor and on a device alike, so that all variants give the same integers;
//! x / scale, which is near, would give others here and there. An element is off by at most half a scale, and by the
//! rounding of the factor.

use kbench::prelude::*;
use rayon::prelude::*;

use crate::shared::lanes::{LANES, fold, join, larger};
use crate::shared::tasks::rows_per_task;
use crate::shared::{COMMON, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../cuda/quantisation.cu")).named("quantisation.cu").headers(COMMON);

/// The largest integer. −128 is left out, so that both signs have the same range.
const LARGEST: f32 = 127.0;

/// A row whose largest element is below becomes zeros: the factor would not be finite.
const NEXT_TO_NOTHING: f32 = 1e-36;

/// Elements with a scale of their own in [`quantise_round_trip_groups`].
const GROUP: usize = 64;

/// values ← round(x / scale), scales ← max|x| / 127, row by row; there are as many rows as scales.
#[kernel_bench(
    sizes = [
        "tiny" => (rows = 4, dim = 1024),
        "small" => (rows = 64, dim = 1024),
        "medium" => (rows = 256, dim = 4096),
        "large" => (rows = 2048, dim = 4096),
    ],
    inputs = |rows, dim| (normal(rows * dim), zeros(rows * dim), zeros(rows)),
    flops = |rows, dim| 3 * rows * dim, // magnitude and maximum, product; rounding is part of the conversion
    reference = quantise_rows, // integers must be the same, so that it rounds where the kernel does
)]
pub fn quantise(x: &[f32], values: &mut [i8], scales: &mut [f32]) {
    quantise_body(x, values, scales);
}

vectorise! {
    fn quantise_body(x: &[f32], values: &mut [i8], scales: &mut [f32]) {
        let dim = x.len() / scales.len();
        let rows = x.chunks_exact(dim).zip(values.chunks_exact_mut(dim));
        for ((x, values), scale) in rows.zip(scales) {
            let max = largest_magnitude(x);
            *scale = max / LARGEST;
            let factor = factor(max);
            for (value, x) in values.iter_mut().zip(x) {
                *value = rounded(x * factor);
            }
        }
    }
}

/// [`quantise`] on all cores.
#[kernel_bench(of = quantise, parallel, threshold = tuned(100_000))]
pub fn quantise_rayon(x: &[f32], values: &mut [i8], scales: &mut [f32]) {
    let dim = x.len() / scales.len();
    let rows = rows_per_task(dim);
    let tasks = x.par_chunks(rows * dim).zip(values.par_chunks_mut(rows * dim));
    let tasks = tasks.zip(scales.par_chunks_mut(rows));
    tasks.for_each(|((x, values), scales)| quantise(x, values, scales));
}

/// [`quantise`] on a GPU, one block for each row, which is read once.
#[kernel_bench(of = quantise, cuda)]
pub fn quantise_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    values: &mut DeviceSlice<i8>,
    scales: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (rows, dim) = (scales.len(), x.len() / scales.len());
    let kernel = gpu.kernel(SOURCE, "quantise")?.grid(rows).block(threads_per_row(dim));
    kernel.arg(x).arg(values).arg(scales).arg(dim).launch()
}

fn quantise_rows(x: &[f32], values: &mut [i8], scales: &mut [f32]) {
    let dim = x.len() / scales.len();
    for row in 0..scales.len() {
        let max = (0..dim).map(|i| x[row * dim + i].abs()).fold(0.0, f32::max);
        scales[row] = max / 127.0;
        for i in row * dim..(row + 1) * dim {
            values[i] =
                if max < 1e-36 { 0 } else { (x[i] * (127.0 / max)).round_ties_even() as i8 };
        }
    }
}

/// out ← values · scale, row by row; there are as many rows as scales.
#[kernel_bench(
    sizes = [
        "tiny" => (rows = 4, dim = 1024),
        "small" => (rows = 64, dim = 1024),
        "medium" => (rows = 256, dim = 4096),
        "large" => (rows = 2048, dim = 4096),
    ],
    inputs = |rows, dim| (integers(rows * dim, -127..128), range(rows, 0.01..0.04), zeros(rows * dim)),
    flops = |rows, dim| rows * dim,
    reference = dequantise_f64,
)]
pub fn dequantise(values: &[i8], scales: &[f32], out: &mut [f32]) {
    dequantise_body(values, scales, out);
}

vectorise! {
    fn dequantise_body(values: &[i8], scales: &[f32], out: &mut [f32]) {
        let dim = values.len() / scales.len();
        let rows = values.chunks_exact(dim).zip(out.chunks_exact_mut(dim));
        for ((values, out), scale) in rows.zip(scales) {
            for (out, value) in out.iter_mut().zip(values) {
                *out = f32::from(*value) * scale;
            }
        }
    }
}

/// [`dequantise`] on all cores.
#[kernel_bench(of = dequantise, parallel, threshold = tuned(200_000))]
pub fn dequantise_rayon(values: &[i8], scales: &[f32], out: &mut [f32]) {
    let dim = values.len() / scales.len();
    let rows = rows_per_task(dim);
    let tasks = values.par_chunks(rows * dim).zip(out.par_chunks_mut(rows * dim));
    let tasks = tasks.zip(scales.par_chunks(rows));
    tasks.for_each(|((values, out), scales)| dequantise(values, scales, out));
}

/// [`dequantise`] on a GPU.
#[kernel_bench(of = dequantise, cuda)]
pub fn dequantise_cuda(
    gpu: &Gpu,
    values: &DeviceSlice<i8>,
    scales: &DeviceSlice<f32>,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (rows, dim) = (scales.len(), values.len() / scales.len());
    let threads = threads_per_row(dim);
    let blocks_per_row = dim.div_ceil(threads * ELEMENTS_PER_THREAD);
    let kernel = gpu.kernel(SOURCE, "dequantise")?.grid((rows, blocks_per_row)).block(threads);
    kernel.arg(values).arg(scales).arg(out).arg(dim).launch()
}

fn dequantise_f64(values: &[f64], scales: &[f64], out: &mut [f64]) {
    let dim = values.len() / scales.len();
    for i in 0..values.len() {
        out[i] = values[i] * scales[i / dim];
    }
}

/// out ← x quantised and dequantised, row by row.
///
/// Its reference is x itself: the error in reports is that of quantisation.
#[kernel_bench(
    sizes = [
        "tiny" => (rows = 4, dim = 1024),
        "small" => (rows = 64, dim = 1024),
        "medium" => (rows = 256, dim = 4096),
        "large" => (rows = 2048, dim = 4096),
    ],
    inputs = |rows, dim| (normal(rows * dim), dim, zeros(rows * dim)),
    flops = |rows, dim| 4 * rows * dim,
    reference = unchanged,
    // Half a scale is max|x| / 254, max|x| of so many normal numbers is below six standard deviations, and errors are uniform.
    tolerance = 6.0 / 254.0 / 1.732,
)]
pub fn quantise_round_trip(x: &[f32], dim: usize, out: &mut [f32]) {
    round_trip_body(x, dim, out);
}

vectorise! {
    fn round_trip_body(x: &[f32], dim: usize, out: &mut [f32]) {
        for (x, out) in x.chunks(dim).zip(out.chunks_mut(dim)) {
            let max = largest_magnitude(x);
            let (scale, factor) = (max / LARGEST, factor(max));
            for (out, x) in out.iter_mut().zip(x) {
                *out = f32::from(rounded(x * factor)) * scale;
            }
        }
    }
}

/// [`quantise_round_trip`] on all cores.
#[kernel_bench(of = quantise_round_trip, parallel, threshold = tuned(100_000))]
pub fn quantise_round_trip_rayon(x: &[f32], dim: usize, out: &mut [f32]) {
    let task = rows_per_task(dim) * dim;
    let tasks = x.par_chunks(task).zip(out.par_chunks_mut(task));
    tasks.for_each(|(x, out)| quantise_round_trip(x, dim, out));
}

/// [`quantise_round_trip`] with one scale for all rows: the largest error, and the least to keep.
#[kernel_bench(of = quantise_round_trip)]
pub fn quantise_round_trip_tensor(x: &[f32], _dim: usize, out: &mut [f32]) {
    quantise_round_trip(x, x.len(), out);
}

/// [`quantise_round_trip`] with a scale for every 64 elements: the smallest error, for 6 % more to keep.
#[kernel_bench(of = quantise_round_trip)]
pub fn quantise_round_trip_groups(x: &[f32], dim: usize, out: &mut [f32]) {
    for (x, out) in x.chunks(dim).zip(out.chunks_mut(dim)) {
        quantise_round_trip(x, GROUP, out);
    }
}

/// [`quantise_round_trip`] on a GPU, one block for each row, which is read once.
#[kernel_bench(of = quantise_round_trip, cuda)]
pub fn quantise_round_trip_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    dim: usize,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let kernel = gpu.kernel(SOURCE, "quantise_round_trip")?;
    let kernel = kernel.grid(x.len() / dim).block(threads_per_row(dim));
    kernel.arg(x).arg(out).arg(dim).launch()
}

fn unchanged(x: &[f64], _dim: usize, out: &mut [f64]) {
    out.copy_from_slice(x);
}

/// The largest |x|; NaN is never that.
#[inline(always)]
fn largest_magnitude(x: &[f32]) -> f32 {
    join(fold([0.0; LANES], x, 0.0, |max, x| larger(max, x.abs())), larger)
}

/// What makes 127 of the largest element of a row.
#[inline(always)]
fn factor(max: f32) -> f32 {
    if max < NEXT_TO_NOTHING { 0.0 } else { LARGEST / max }
}

/// The nearest integer, ties to even, of a number between −128 and 127.
///
/// 1.5·2²³ + x has no digits behind the point, and the integer in its low bits: an addition instead of a conversion.
#[inline(always)]
fn rounded(x: f32) -> i8 {
    const SHIFT: f32 = 12_582_912.0;
    (x + SHIFT).to_bits() as i8
}

/// Elements that a thread of device code handles at once: QUANTISATION_PACKS times 16 bytes of floats.
const ELEMENTS_PER_THREAD: usize = 4 * 4;

/// Threads of device code for a row: whole warps, as many as keep it in their registers. More than 512 would wait for each
/// other longer than it takes to read the rest of the row again.
fn threads_per_row(dim: usize) -> usize {
    dim.div_ceil(ELEMENTS_PER_THREAD).next_multiple_of(32).clamp(32, 512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_even() {
        for i in -12_800..=12_700 {
            let x = i as f32 / 100.0;
            assert_eq!(rounded(x), x.round_ties_even() as i8, "{x}");
        }
    }

    #[test]
    fn rows_of_nothing_and_of_next_to_nothing_become_zeros() {
        let (mut values, mut scales) = ([1i8; 6], [1.0; 3]);
        quantise(&[0.0, -0.0, 1e-40, -1e-40, -2.0, 1.0], &mut values, &mut scales);
        assert_eq!(values, [0, 0, 0, 0, -127, 64]);
        assert_eq!(scales, [0.0, 1e-40 / 127.0, 2.0 / 127.0]);
    }
}
