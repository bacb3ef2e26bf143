//! Losses: all of the data becomes one number.
//!
//! One sum of 10⁷ terms in f32 would lose half of its digits. On the CPU, stretches of the data are summed in f32, each in
//! many lanes, and the stretches in f64; on a GPU every thread has few terms, and threads and blocks are joined as a tree.
//! The order of all sums is fixed, or they are of whole numbers, so a result has the same bits in every call; but for losses of
//! many thousands on a GPU, which are added as they come.

use std::ops::Range;

use kbench::prelude::*;

use crate::shared::float::BUFFER;
use crate::shared::lanes::{self, LANES};
use crate::shared::scratch::with_scratch;
use crate::shared::tasks::{GRAIN, rows_per_task};
use crate::shared::{COMMON, Float, MOST_BLOCKS, MOST_TALLIED, entry, math, reduce, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../cuda/loss.cu")).named("loss.cu").headers(COMMON);

/// Threads and blocks that a multiprocessor holds at once, on most devices.
const RESIDENT_THREADS: usize = 2048;
const RESIDENT_BLOCKS: usize = 32;

/// out ← mean((x − y)²)
#[kernel_bench(
    sizes = [
        "tiny" => (batch = 1, seq = 64, dim = 64),
        "small" => (batch = 4, seq = 128, dim = 128),
        "medium" => (batch = 16, seq = 256, dim = 256),
        "large" => (batch = 16, seq = 512, dim = 512),
    ],
    inputs = |batch, seq, dim| (normal(batch * seq * dim), normal(batch * seq * dim), zeros(1)),
    flops = |batch, seq, dim| 3 * batch * seq * dim,
    reference = mse_f64,
    tolerance = 1e-6, // three roundings of f32 in each term, which average out, and sums that add few of their own
    types = [f32, f16, bf16],
)]
pub fn mse<T: Float>(x: &[T], y: &[T], out: &mut [f32]) {
    out.fill((sum_of_squares(x, y) / x.len() as f64) as f32);
}

/// [`mse`] on all cores.
#[kernel_bench(of = mse, parallel, threshold = tuned(100_000), types = [f32, f16, bf16])]
pub fn mse_rayon<T: Float>(x: &[T], y: &[T], out: &mut [f32]) {
    let part = |range: Range<usize>| sum_of_squares(&x[range.clone()], &y[range]);
    out.fill((sum_on_all_cores(0..x.len(), GRAIN, &part) / x.len() as f64) as f32);
}

/// [`mse`] on a GPU: as many blocks as it holds at once, of which one adds up what all have found.
#[kernel_bench(of = mse, cuda, types = [f32, f16, bf16])]
pub fn mse_cuda<T: Float>(
    gpu: &Gpu,
    x: &DeviceSlice<T>,
    y: &DeviceSlice<T>,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    const THREADS: usize = 512;
    let n = x.len();
    let blocks = resident_blocks(gpu, THREADS).min(n.div_ceil(THREADS * 16 / size_of::<T>()));
    let kernel = gpu.kernel(SOURCE, entry!(T, "mse"))?.grid(blocks.max(1)).block(THREADS);
    kernel.arg(x).arg(y).arg(out).arg(n).launch()
}

/// Σ (x − y)²
fn sum_of_squares<T: Float>(x: &[T], y: &[T]) -> f64 {
    vectorise! {
        fn body<T: Float>(x: &[T], y: &[T]) -> f64 {
            let (mut first, mut second) = (BUFFER, BUFFER);
            let mut sums = [0.0; LANES];
            for (x, y) in x.chunks(T::BLOCK).zip(y.chunks(T::BLOCK)) {
                let (x, y) = (T::read(x, &mut first), T::read(y, &mut second));
                let step = |sum, x: f32, y: f32| (x - y).mul_add(x - y, sum);
                sums = lanes::fold_pairs(sums, x, y, 0.0, step);
            }
            sums.iter().copied().map(f64::from).sum()
        }
    }
    x.chunks(GRAIN).zip(y.chunks(GRAIN)).map(|(x, y)| body(x, y)).sum()
}

fn mse_f64(x: &[f64], y: &[f64], out: &mut [f64]) {
    let mut sum = 0.0;
    for i in 0..x.len() {
        sum += (x[i] - y[i]).powi(2);
    }
    out[0] = sum / x.len() as f64;
}

/// out ← mean over rows of ln Σ exp(logits) − logits\[target\]; a target that is no class gives NaN.
///
/// Each row is read once: the sum is of exponentials below the largest logit so far, and when a block of the row has a
/// larger one, the sum is scaled (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
#[kernel_bench(
    sizes = [
        "tiny" => (rows = 8, classes = 512),
        "small" => (rows = 64, classes = 1024),
        "medium" => (rows = 256, classes = 4096),
        "large" => (rows = 128, classes = 32_000),
    ],
    inputs = |rows, classes| (
        normal(rows * classes),
        integers(rows, 0..classes as i64),
        zeros(1),
    ),
    flops = |rows, classes| 4 * rows * classes, // difference, exponential, sum and maximum
    reference = cross_entropy_f64,
    tolerance = 2e-6, // exponentials are good to a few units in the last place, and so is the logarithm of their sum
    types = [f32, f16, bf16],
)]
pub fn cross_entropy<T: Float>(logits: &[T], targets: &[u32], out: &mut [f32]) {
    out.fill((sum_of_losses(logits, targets) / targets.len() as f64) as f32);
}

/// [`cross_entropy`] with rows shared among all cores.
#[kernel_bench(of = cross_entropy, parallel, threshold = tuned(30_000), types = [f32, f16, bf16])]
pub fn cross_entropy_rayon<T: Float>(logits: &[T], targets: &[u32], out: &mut [f32]) {
    let rows = targets.len();
    let classes = logits.len() / rows;
    let part = |range: Range<usize>| {
        sum_of_losses(&logits[range.start * classes..range.end * classes], &targets[range])
    };
    let sum = sum_on_all_cores(0..rows, rows_per_task(classes), &part);
    out.fill((sum / rows as f64) as f32);
}

/// [`cross_entropy`] in two steps, as frameworks without fusion do it: the logarithm of softmax for all classes is
/// written to memory, and the mean of those of the targets is taken from there.
#[kernel_bench(of = cross_entropy, types = [f32, f16, bf16])]
pub fn cross_entropy_unfused<T: Float>(logits: &[T], targets: &[u32], out: &mut [f32]) {
    let classes = logits.len() / targets.len();
    with_scratch([logits.len()], |[log_probabilities]| {
        let rows = logits.chunks_exact(classes).zip(log_probabilities.chunks_exact_mut(classes));
        rows.for_each(|(logits, out)| log_softmax(logits, out));
        let rows = log_probabilities.chunks_exact(classes).zip(targets);
        let sum: f64 = rows.map(|(row, &target)| f64::from(class(row, target))).sum();
        out.fill((-sum / targets.len() as f64) as f32);
    });
}

/// [`cross_entropy`] on a GPU: a warp for a row at a time, or a block where rows are few and long; one of the blocks adds up what
/// all have found.
#[kernel_bench(of = cross_entropy, cuda, types = [f32, f16, bf16])]
pub fn cross_entropy_cuda<T: Float>(
    gpu: &Gpu,
    logits: &DeviceSlice<T>,
    targets: &DeviceSlice<u32>,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let rows = targets.len();
    let classes = logits.len() / rows;
    let (entry, blocks, threads) = match Warps::of_rows::<T>(gpu, rows, classes) {
        Some(Warps { blocks, threads }) => (entry!(T, "cross_entropy_by_warps"), blocks, threads),
        None => {
            let threads = threads_for_row::<T>(classes);
            (entry!(T, "cross_entropy"), resident_blocks(gpu, threads).min(rows), threads)
        }
    };
    let kernel = gpu.kernel(SOURCE, entry)?.grid(blocks).block(threads);
    kernel.arg(logits).arg(targets).arg(out).arg(rows).arg(classes).launch()
}

/// [`cross_entropy_unfused`] on a GPU.
#[kernel_bench(of = cross_entropy, cuda, types = [f32, f16, bf16])]
pub fn cross_entropy_unfused_cuda<T: Float>(
    gpu: &Gpu,
    logits: &DeviceSlice<T>,
    targets: &DeviceSlice<u32>,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let rows = targets.len();
    let classes = logits.len() / rows;
    let log_probabilities = gpu.scratch::<f32>(logits.len())?;
    let threads = threads_for_row::<T>(classes);
    let kernel = gpu.kernel(SOURCE, entry!(T, "log_probabilities"))?.grid(rows).block(threads);
    kernel.arg(logits).arg(&log_probabilities).arg(classes).launch()?;
    let blocks = rows.div_ceil(256).min(resident_blocks(gpu, 256));
    let kernel = gpu.kernel(SOURCE, "mean_of_targets")?.grid(blocks).block(256);
    kernel.arg(&log_probabilities).arg(targets).arg(out).arg(rows).arg(classes).launch()
}

/// Σ over rows of ln Σ exp(logits) − logits\[target\]
fn sum_of_losses<T: Float>(logits: &[T], targets: &[u32]) -> f64 {
    let classes = (logits.len() / targets.len().max(1)).max(1);
    let rows = logits.chunks_exact(classes).zip(targets);
    rows.map(|(row, &target)| {
        let [max, sum] = max_and_sum(row);
        f64::from(max + sum.ln() - class(row, target))
    })
    .sum()
}

/// The logit, or what else there is, of a class.
fn class<T: Float>(row: &[T], target: u32) -> f32 {
    row.get(target as usize).map_or(f32::NAN, |logit| logit.to_f32())
}

/// The largest logit m of a row, and Σ exp(logits − m).
fn max_and_sum<T: Float>(row: &[T]) -> [f32; 2] {
    /// Elements that are looked at for the largest one before their exponentials are taken: they stay in the cache.
    const STRETCH: usize = 4096;
    vectorise! {
        fn body<T: Float>(row: &[T]) -> [f32; 2] {
            let mut buffer = BUFFER;
            let mut max = f32::NEG_INFINITY;
            let mut sums = [0.0; LANES];
            for block in row.chunks(STRETCH.min(T::BLOCK)) {
                let block = T::read(block, &mut buffer);
                let largest = reduce::max(block);
                // Rarely so: the next exponentials need not wait for the largest one of their block.
                if largest > max {
                    let shrink = math::exp_of_negative(max - largest);
                    sums.iter_mut().for_each(|sum| *sum *= shrink);
                    max = largest;
                }
                sums = lanes::fold(
                    sums,
                    block,
                    f32::NEG_INFINITY,
                    #[inline(always)]
                    |sum, x| sum + math::exp_of_negative(x - max),
                );
            }
            [max, lanes::join(sums, |a, b| a + b)]
        }
    }
    body(row)
}

/// out ← logits − ln Σ exp(logits)
fn log_softmax<T: Float>(logits: &[T], out: &mut [f32]) {
    vectorise! {
        fn subtract<T: Float>(logits: &[T], shift: f32, out: &mut [f32]) {
            let mut buffer = BUFFER;
            for (logits, out) in logits.chunks(T::BLOCK).zip(out.chunks_mut(T::BLOCK)) {
                for (out, logit) in out.iter_mut().zip(T::read(logits, &mut buffer)) {
                    *out = logit - shift;
                }
            }
        }
    }
    let [max, sum] = max_and_sum(logits);
    subtract(logits, max + sum.ln(), out);
}

fn cross_entropy_f64(logits: &[f64], targets: &[u32], out: &mut [f64]) {
    let classes = logits.len() / targets.len();
    let mut sum = 0.0;
    for (row, &target) in targets.iter().enumerate() {
        let row = &logits[row * classes..][..classes];
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let probability = (row[target as usize] - max).exp()
            / row.iter().map(|logit| (logit - max).exp()).sum::<f64>();
        sum -= probability.ln();
    }
    out[0] = sum / targets.len() as f64;
}

/// The sum of the parts of a range, at most `grain` long: halves are halved until they are short enough, so the order of
/// the sums does not depend on which core does what.
fn sum_on_all_cores(
    range: Range<usize>,
    grain: usize,
    part: &(impl Fn(Range<usize>) -> f64 + Sync),
) -> f64 {
    if range.len() <= grain {
        return part(range);
    }
    let middle = range.start + range.len() / 2;
    let (left, right) = rayon::join(
        || sum_on_all_cores(range.start..middle, grain, part),
        || sum_on_all_cores(middle..range.end, grain, part),
    );
    left + right
}

/// Blocks of so many threads that a device holds at once, when nothing but their threads limits it.
fn resident_blocks(gpu: &Gpu, threads: usize) -> usize {
    let of_multiprocessor = (RESIDENT_THREADS / threads).min(RESIDENT_BLOCKS);
    let resident = gpu.info().multiprocessors as usize * of_multiprocessor;
    resident.min(MOST_BLOCKS).min(MOST_TALLIED / threads.div_ceil(Warps::WIDTH))
}

/// Blocks of device code whose warps have a row at a time each.
struct Warps {
    blocks: usize,
    threads: usize,
}

impl Warps {
    /// Threads of a warp.
    const WIDTH: usize = 32;
    /// Warps of a block at most, of which a multiprocessor holds one: the bounds of the device code.
    const MOST: usize = 32;
    /// Bytes that a warp reads in a moment.
    const SHORT: usize = 4096;

    /// None where a row is no whole vectors of 16 bytes, or where rows are long and too few for all warps.
    fn of_rows<T>(gpu: &Gpu, rows: usize, classes: usize) -> Option<Self> {
        let multiprocessors = gpu.info().multiprocessors as usize;
        let bytes = classes * size_of::<T>();
        let are_many = rows >= Self::MOST * multiprocessors;
        let is_suited = bytes.is_multiple_of(16) && (are_many || bytes <= Self::SHORT);
        // Few rows are spread over all multiprocessors: the first warp of every block has one.
        let warps = rows.div_ceil(multiprocessors).clamp(1, Self::MOST);
        let blocks = rows.min(multiprocessors);
        is_suited.then_some(Warps { blocks, threads: Self::WIDTH * warps })
    }
}

/// Threads that read a row of 16 bytes at a time, several times each.
fn threads_for_row<T>(classes: usize) -> usize {
    let packs = classes * size_of::<T>() / 16;
    (packs / 4).next_power_of_two().clamp(32, 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_no_class_gives_nan() {
        let mut out = [0.0];
        for kernel in [cross_entropy::<f32>, cross_entropy_rayon, cross_entropy_unfused] {
            kernel(&[1.0, 2.0, 3.0, 4.0], &[0, 2], &mut out);
            assert!(out[0].is_nan());
        }
    }

    #[test]
    fn the_lowest_numbers_count_as_nothing() {
        for mask in [-1e4, -1e10, -1e30, f32::MIN, f32::NEG_INFINITY] {
            let mut logits = [mask; 300];
            logits[..2].copy_from_slice(&[1.0, 1.0]);
            let mut out = [0.0];
            for kernel in [cross_entropy::<f32>, cross_entropy_rayon, cross_entropy_unfused] {
                kernel(&logits, &[1], &mut out);
                assert!((out[0] - std::f32::consts::LN_2).abs() < 1e-6, "{mask}: {}", out[0]);
            }
        }
    }

    #[test]
    fn large_logits_do_not_overflow() {
        let mut out = [0.0];
        for kernel in [cross_entropy::<f32>, cross_entropy_rayon, cross_entropy_unfused] {
            kernel(&[1000.0, 0.0, -1000.0, 1000.0], &[0, 1], &mut out);
            assert_eq!(out, [0.0]);
        }
    }
}
