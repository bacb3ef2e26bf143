//! Many elements, one result.
//!
//! Floats do not add up to the same bits in another order. Here every order is fixed: chunks of 4096 elements are added up in
//! 64 partial sums, and joined in `f64`; tasks and blocks of device code are joined in the same order on every call. So all
//! results are deterministic. On the processor their error does not grow with the length; on a device it does, slowly: each
//! of its threads, of which there are as many as run at once, adds up its share in `f32`.

use kbench::prelude::*;
use rayon::prelude::*;

use crate::shared::float::BUFFER;
use crate::shared::lanes::{LANES, fold, fold_pairs, join, larger};
use crate::shared::tasks::GRAIN;
use crate::shared::{BLOCK, COMMON, Float, MOST_BLOCKS, entry, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../cuda/reductions.cu")).named("reductions.cu").headers(COMMON);

/// Elements that are joined in `f32` at most: 64 for each lane.
const CHUNK: usize = 64 * LANES;

/// Elements among which the largest is searched for, where it is larger than all before.
const SEARCHED: usize = 1024;

/// Elements of a task: twice the usual, as all that a task does with one is an addition.
const STRETCH: usize = 2 * GRAIN;

/// Blocks of device code for each multiprocessor: enough to keep memory busy, and no more to be joined than that.
const BLOCKS_PER_MULTIPROCESSOR: usize = 4;

/// Times the second-level cache: less than that is read past it, so that what others have written there need not make
/// room. More than that makes room in any case, and is faster without.
const CACHES: usize = 4;

/// Threads of a block of device code.
const THREADS: usize = 256;

/// out ← Σ x
#[kernel_bench(
    sizes = ["tiny" => (n = 1 << 12), "small" => (n = 1 << 16), "medium" => (n = 1 << 20), "large" => (n = 1 << 23)],
    inputs = |n| (range(n, 0.0..1.0), zeros(1)),
    flops = |n| n,
    reference = sum_f64,
    // Sixteen times the round-off. All terms are of one sign; a lane adds up 64 of them in f32, whatever n is, and a thread
    // of a device n / threads of them, in four sums.
    tolerance = 1e-6,
    types = [f32, f16, bf16],
)]
pub fn sum<T: Float>(x: &[T], out: &mut [f32]) {
    out[0] = sum_wide(x) as f32;
}

vectorise! {
    fn sum_wide<T: Float>(x: &[T]) -> f64 {
        let mut total = 0.0;
        let mut buffer = BUFFER;
        for chunk in x.chunks(CHUNK) {
            let mut sums = [0.0; LANES];
            for block in chunk.chunks(T::one_of([CHUNK, BLOCK, BLOCK])) {
                sums = fold(sums, T::read(block, &mut buffer), 0.0, |sum, x| sum + x);
            }
            total += f64::from(join(sums, |a, b| a + b));
        }
        total
    }
}

/// [`sum`] on all cores.
#[kernel_bench(of = sum, parallel, threshold = tuned(300_000), types = [f32, f16, bf16])]
pub fn sum_rayon<T: Float>(x: &[T], out: &mut [f32]) {
    fn halves<T: Float>(x: &[T]) -> f64 {
        let Some(middle) = middle(x.len()) else { return sum_wide(x) };
        let (low, high) = rayon::join(|| halves(&x[..middle]), || halves(&x[middle..]));
        low + high
    }
    out[0] = halves(x) as f32;
}

/// [`sum`] one element after the other, without vectors: the compiler may not use them, as floats add up to other bits in
/// another order.
#[kernel_bench(of = sum, types = [f32, f16, bf16])]
pub fn sum_scalar<T: Float>(x: &[T], out: &mut [f32]) {
    out[0] = x.iter().map(|x| f64::from(x.to_f32())).sum::<f64>() as f32;
}

/// [`sum`] on a GPU.
#[kernel_bench(of = sum, cuda, types = [f32, f16, bf16])]
pub fn sum_cuda<T: Float>(
    gpu: &Gpu,
    x: &DeviceSlice<T>,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let kernel =
        gpu.kernel(SOURCE, entry!(T, "sum"))?.grid(blocks::<T>(gpu, x.len())).block(THREADS);
    kernel.arg(x).arg(out).arg(x.len()).arg(past_cache(gpu, x.len() * size_of::<T>())).launch()
}

fn sum_f64(x: &[f64], out: &mut [f64]) {
    out[0] = x.iter().sum();
}

/// out ← Σ x·y
#[kernel_bench(
    sizes = ["tiny" => (n = 1 << 12), "small" => (n = 1 << 16), "medium" => (n = 1 << 20), "large" => (n = 1 << 22)],
    inputs = |n| (range(n, 0.0..1.0), range(n, 0.0..1.0), zeros(1)),
    flops = |n| 2 * n,
    reference = dot_f64,
    tolerance = 1e-6, // as for a sum, with one more rounding for each product
    types = [f32, f16, bf16],
)]
pub fn dot<T: Float>(x: &[T], y: &[T], out: &mut [f32]) {
    out[0] = dot_wide(x, y) as f32;
}

vectorise! {
    fn dot_wide<T: Float>(x: &[T], y: &[T]) -> f64 {
        let mut total = 0.0;
        let (mut left, mut right) = (BUFFER, BUFFER);
        for (x, y) in x.chunks(CHUNK).zip(y.chunks(CHUNK)) {
            let mut sums = [0.0; LANES];
            let block = T::one_of([CHUNK, BLOCK, BLOCK]);
            for (x, y) in x.chunks(block).zip(y.chunks(block)) {
                let (x, y) = (T::read(x, &mut left), T::read(y, &mut right));
                sums = fold_pairs(sums, x, y, 0.0, |sum, x, y| sum + x * y);
            }
            total += f64::from(join(sums, |a, b| a + b));
        }
        total
    }
}

/// [`dot`] on all cores.
#[kernel_bench(of = dot, parallel, threshold = tuned(200_000), types = [f32, f16, bf16])]
pub fn dot_rayon<T: Float>(x: &[T], y: &[T], out: &mut [f32]) {
    fn halves<T: Float>(x: &[T], y: &[T]) -> f64 {
        let Some(middle) = middle(x.len()) else { return dot_wide(x, y) };
        let low = || halves(&x[..middle], &y[..middle]);
        let high = || halves(&x[middle..], &y[middle..]);
        let (low, high) = rayon::join(low, high);
        low + high
    }
    out[0] = halves(x, y) as f32;
}

/// [`dot`] one product after the other, as [`sum_scalar`].
#[kernel_bench(of = dot, types = [f32, f16, bf16])]
pub fn dot_scalar<T: Float>(x: &[T], y: &[T], out: &mut [f32]) {
    let products = x.iter().zip(y).map(|(x, y)| f64::from(x.to_f32()) * f64::from(y.to_f32()));
    out[0] = products.sum::<f64>() as f32;
}

/// [`dot`] on a GPU.
#[kernel_bench(of = dot, cuda, types = [f32, f16, bf16])]
pub fn dot_cuda<T: Float>(
    gpu: &Gpu,
    x: &DeviceSlice<T>,
    y: &DeviceSlice<T>,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let kernel =
        gpu.kernel(SOURCE, entry!(T, "dot"))?.grid(blocks::<T>(gpu, x.len())).block(THREADS);
    kernel
        .arg(x)
        .arg(y)
        .arg(out)
        .arg(x.len())
        .arg(past_cache(gpu, 2 * x.len() * size_of::<T>()))
        .launch()
}

fn dot_f64(x: &[f64], y: &[f64], out: &mut [f64]) {
    out[0] = x.iter().zip(y).map(|(x, y)| x * y).sum();
}

/// value ← the largest `x[i]`, index ← the first i with it; NaN counts as −∞.
#[kernel_bench(
    sizes = ["tiny" => (n = 1 << 12), "small" => (n = 1 << 16), "medium" => (n = 1 << 20), "large" => (n = 1 << 23)],
    inputs = |n| (normal(n), zeros(1), zeros(1)),
    flops = |n| n,
    reference = argmax_f64,
    tolerance = 0.0, // nothing is rounded
)]
pub fn argmax(x: &[f32], value: &mut [f32], index: &mut [u32]) {
    (value[0], index[0]) = argmax_body(x);
}

// The largest of a chunk is found in vectors. Where in the chunk it is matters only when it is larger than all before, which
// it seldom is.
vectorise! {
    fn argmax_body(x: &[f32]) -> (f32, u32) {
        let mut best = (f32::NEG_INFINITY, 0);
        for (number, chunk) in x.chunks(SEARCHED).enumerate() {
            let largest = fold([f32::NEG_INFINITY; LANES], chunk, f32::NEG_INFINITY, larger);
            let largest = join(largest, larger);
            if largest > best.0 {
                let position = position_of(chunk, largest);
                best = (largest, (number * SEARCHED + position) as u32);
            }
        }
        best
    }
}

/// Where a value is first: in which vector, then where in that.
#[inline(always)]
fn position_of(x: &[f32], value: f32) -> usize {
    let has_value = |vector: &[f32]| vector.iter().fold(false, |has, x| has | (*x == value));
    let vector = x.chunks(LANES).position(has_value).unwrap_or(0);
    let within = x[vector * LANES..].iter().position(|x| *x == value);
    vector * LANES + within.unwrap_or(0)
}

/// [`argmax`] on all cores.
#[kernel_bench(of = argmax, parallel, threshold = tuned(300_000))]
pub fn argmax_rayon(x: &[f32], value: &mut [f32], index: &mut [u32]) {
    let of_task = |(number, x): (usize, &[f32])| {
        let (value, index) = argmax_body(x);
        (value, index + (number * STRETCH) as u32)
    };
    // In whatever order two are joined, it is the first of the largest that stays.
    let first_largest = |a: (f32, u32), b: (f32, u32)| {
        if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
    };
    let tasks = x.par_chunks(STRETCH).enumerate().map(of_task);
    (value[0], index[0]) = tasks.reduce(|| (f32::NEG_INFINITY, u32::MAX), first_largest);
}

/// [`argmax`] on a GPU.
#[kernel_bench(of = argmax, cuda)]
pub fn argmax_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    value: &mut DeviceSlice<f32>,
    index: &mut DeviceSlice<u32>,
) -> GpuResult<()> {
    let kernel = gpu.kernel(SOURCE, "argmax_f32")?.grid(blocks::<f32>(gpu, x.len())).block(THREADS);
    kernel
        .arg(x)
        .arg(value)
        .arg(index)
        .arg(x.len())
        .arg(past_cache(gpu, size_of::<f32>() * x.len()))
        .launch()
}

fn argmax_f64(x: &[f64], value: &mut [f64], index: &mut [u32]) {
    (value[0], index[0]) = (f64::NEG_INFINITY, 0);
    for (i, x) in x.iter().enumerate() {
        if *x > value[0] {
            (value[0], index[0]) = (*x, i as u32);
        }
    }
}

/// Where work of a length is cut in two, at a multiple of [`STRETCH`]; none when it is a task already.
fn middle(length: usize) -> Option<usize> {
    let tasks = length.div_ceil(STRETCH);
    (tasks > 1).then_some(tasks / 2 * STRETCH)
}

/// Blocks of device code for a length: no more than there is work for, and no more than run at once.
fn blocks<T>(gpu: &Gpu, length: usize) -> usize {
    let fitting = gpu.info().multiprocessors as usize * BLOCKS_PER_MULTIPROCESSOR;
    let packs = length.div_ceil(16 / size_of::<T>());
    packs.div_ceil(THREADS).clamp(1, fitting.min(MOST_BLOCKS))
}

/// Whether device code should read so many bytes past the cache: 1 or 0.
fn past_cache(gpu: &Gpu, bytes: usize) -> u32 {
    u32::from(bytes < CACHES * gpu.info().l2_bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_is_found_and_nan_never() {
        let mut x = vec![0.0; 3 * STRETCH + 5];
        (x[0], x[7], x[9]) = (f32::NAN, f32::NAN, 2.0);
        (x[STRETCH + 1], x[2 * STRETCH]) = (3.0, 3.0);
        for (x, largest) in [
            (x, (3.0, STRETCH as u32 + 1)),
            (vec![f32::NAN, -1.0, -2.0], (-1.0, 1)),
            (vec![f32::NAN; STRETCH + 1], (f32::NEG_INFINITY, 0)),
        ] {
            for function in [argmax, argmax_rayon, argmax_by_reference] {
                let (mut value, mut index) = ([0.0], [u32::MAX]);
                function(&x, &mut value, &mut index);
                assert_eq!((value[0], index[0]), largest);
            }
        }
    }

    fn argmax_by_reference(x: &[f32], value: &mut [f32], index: &mut [u32]) {
        let x: Vec<f64> = x.iter().copied().map(f64::from).collect();
        let mut wide = [0.0];
        argmax_f64(&x, &mut wide, index);
        value[0] = wide[0] as f32;
    }

    #[test]
    fn a_sum_stays_within_its_tolerance_however_long_and_with_errors_of_one_sign() {
        let x = vec![0.1; 10_000_001];
        let exact = f64::from(0.1f32) * x.len() as f64;
        for function in [sum::<f32>, sum_rayon::<f32>] {
            let mut out = [0.0];
            function(&x, &mut out);
            assert!((f64::from(out[0]) / exact - 1.0).abs() < 1e-6, "{} {exact}", out[0]);
        }
    }
}
