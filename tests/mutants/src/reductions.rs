//! Many numbers, one result.

use std::sync::atomic::{AtomicU64, Ordering};

use kbench::prelude::*;
use rayon::prelude::*;

use crate::SOURCE;

/// Σ x
#[kernel_bench(sizes = [256, 100_000], inputs = |n| uniform(n))]
fn sum(x: &[f32]) -> f32 {
    x.iter().copied().map(f64::from).sum::<f64>() as f32
}

/// Σ x into an array of one element, as device code needs it.
#[kernel_bench(sizes = [256, 50_000], inputs = |n| (uniform(n), zeros(1)))]
fn total(x: &[f32], out: &mut [f32]) {
    out[0] = sum(x);
}

/// Σ x of 16-bit numbers, in 32 bits
#[kernel_bench(sizes = [256, 4096], inputs = |n| uniform(n))]
fn half_sum(x: &[f16]) -> f32 {
    x.iter().map(|x| x.to_f64()).sum::<f64>() as f32
}

/// Σ x·y
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), uniform(n)), reference = dot_f64)]
fn dot(x: &[f32], y: &[f32]) -> f32 {
    x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>() as f32
}

fn dot_f64(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// The largest number.
#[kernel_bench(sizes = [256, 4096], inputs = |n| uniform(n))]
fn largest(x: &[f32]) -> f32 {
    x.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// The smallest number.
#[kernel_bench(sizes = [256, 4096], inputs = |n| uniform(n))]
fn smallest(x: &[f32]) -> f32 {
    x.iter().copied().fold(f32::INFINITY, f32::min)
}

/// The smallest and the largest number.
#[kernel_bench(sizes = [256, 4096], inputs = |n| normal(n))]
fn extremes(x: &[f32]) -> (f32, f32) {
    (smallest(x), largest(x))
}

/// Where the largest number is first; 0 where there is none.
#[kernel_bench(sizes = [256, 50_000], inputs = |n| (normal(n), zeros(1)))]
fn first_largest(x: &[f32], out: &mut [u64]) {
    out[0] = best(x).map_or(0, |(index, _)| index as u64);
}

/// The first of the largest numbers, and its index.
fn best(x: &[f32]) -> Option<(usize, f32)> {
    x.iter().copied().enumerate().reduce(better)
}

/// The larger number, and the first of two that are equal.
fn better(a: (usize, f32), b: (usize, f32)) -> (usize, f32) {
    let is_second = b.1 > a.1 || (b.1 == a.1 && b.0 < a.0);
    if is_second { b } else { a }
}

/// The first of the largest numbers of each of eight lanes, which take turns.
fn lanes(x: &[f32]) -> [Option<(usize, f32)>; 8] {
    let lane = |lane| x.iter().copied().enumerate().skip(lane).step_by(8).reduce(better);
    std::array::from_fn(lane)
}

/// Where the first number above a limit is; the length where there is none.
#[kernel_bench(sizes = [256, 50_000], inputs = |n| (uniform(n), 0.9))]
fn first_above(x: &[f32], limit: f32) -> u64 {
    let mut first = x.len();
    for i in (0..x.len()).rev() {
        first = if x[i] > limit { i } else { first };
    }
    first as u64
}

/// The largest number, or NaN where there is one.
#[kernel_bench(sizes = [256, 4096], inputs = |n| uniform(n))]
fn largest_or_nan(x: &[f32]) -> f32 {
    let larger = |large: f32, x: &f32| if large.is_nan() || *x <= large { large } else { *x };
    x.iter().fold(f32::NEG_INFINITY, larger)
}

/// The variance of a population.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (normal(n), zeros(1)))]
fn variance(x: &[f32], out: &mut [f32]) {
    let n = x.len().max(1) as f64;
    let mean = x.iter().copied().map(f64::from).sum::<f64>() / n;
    out[0] = (x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n) as f32;
}

/// What is known of some numbers.
#[derive(Clone, Operand)]
struct Summary {
    mean: f32,
    range: (f32, f32),
    positive: u64,
}

/// Mean, range and number of positive ones.
#[kernel_bench(sizes = [256, 4096], inputs = |n| normal(n))]
fn summary(x: &[f32]) -> Summary {
    let mean = x.iter().copied().map(f64::from).sum::<f64>() / x.len().max(1) as f64;
    let positive = x.iter().filter(|x| **x > 0.0).count() as u64;
    Summary { mean: mean as f32, range: extremes(x), positive }
}

mod right {
    use super::*;

    /// Eight sums in 32 bits.
    #[kernel_bench(of = half_sum)]
    fn eight_half_lanes(x: &[f16]) -> f32 {
        let mut sums = [0.0; 8];
        x.iter().enumerate().for_each(|(i, x)| sums[i % 8] += x.to_f32());
        sums.iter().sum()
    }

    /// NaN is larger than all others.
    #[kernel_bench(of = largest_or_nan)]
    fn by_total_order(x: &[f32]) -> f32 {
        let key = |x: &&f32| if x.is_nan() { f32::NAN.abs() } else { **x };
        x.iter().max_by(|a, b| key(a).total_cmp(&key(b))).copied().unwrap_or(f32::NEG_INFINITY)
    }

    /// With a correction, by Kahan.
    #[kernel_bench(of = sum)]
    fn kahan(x: &[f32]) -> f32 {
        let (mut sum, mut correction) = (0.0, 0.0);
        for x in x {
            let term = x - correction;
            let next: f32 = sum + term;
            correction = (next - sum) - term;
            sum = next;
        }
        sum
    }

    /// With a correction that also serves terms larger than the sum, by Neumaier.
    #[kernel_bench(of = sum)]
    fn neumaier(x: &[f32]) -> f32 {
        let (mut sum, mut correction) = (0.0f32, 0.0);
        for x in x {
            let next = sum + x;
            correction += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
            sum = next;
        }
        sum + correction
    }

    /// Halves of halves.
    #[kernel_bench(of = sum)]
    fn pairwise(x: &[f32]) -> f32 {
        if x.len() <= 8 {
            return x.iter().sum();
        }
        let (low, high) = x.split_at(x.len() / 2);
        pairwise(low) + pairwise(high)
    }

    /// Eight sums side by side.
    #[kernel_bench(of = sum)]
    fn eight_lanes(x: &[f32]) -> f32 {
        let mut lanes = [0.0; 8];
        let chunks = x.chunks_exact(8);
        let rest: f32 = chunks.remainder().iter().sum();
        chunks.for_each(|x| lanes.iter_mut().zip(x).for_each(|(lane, x)| *lane += x));
        lanes.iter().sum::<f32>() + rest
    }

    /// From the last to the first.
    #[kernel_bench(of = sum)]
    fn reversed(x: &[f32]) -> f32 {
        x.iter().rev().sum()
    }

    /// Small terms before large ones.
    #[kernel_bench(of = sum)]
    fn sorted_by_size(x: &[f32]) -> f32 {
        let mut x = x.to_vec();
        x.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        x.iter().sum()
    }

    /// Tasks as rayon cuts them, joined in another order at every call.
    #[kernel_bench(of = sum, parallel)]
    fn any_order(x: &[f32]) -> f32 {
        x.par_iter().sum()
    }

    /// Tasks add to one `f64` that is kept as bits.
    #[kernel_bench(of = sum, parallel)]
    fn compare_and_swap(x: &[f32]) -> f32 {
        let total = AtomicU64::new(0);
        x.par_chunks(1000).for_each(|x| {
            let part: f64 = x.iter().copied().map(f64::from).sum();
            let add = |bits| Some((f64::from_bits(bits) + part).to_bits());
            let _ = total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        });
        f64::from_bits(total.into_inner()) as f32
    }

    /// Vectors of four elements, what is left one by one, and an atomic sum of all blocks.
    #[kernel_bench(of = total, cuda)]
    fn atomic_total(gpu: &Gpu, x: &DeviceSlice<f32>, out: &mut DeviceSlice<f32>) -> GpuResult<()> {
        gpu.kernel(SOURCE, "clear")?.grid(1).block(1).arg(&mut *out).launch()?;
        gpu.kernel(SOURCE, "total_vectors")?
            .grid(8)
            .block(128)
            .arg(x)
            .arg(out)
            .arg(x.len())
            .launch()
    }

    /// Fused, so that products are not rounded.
    #[kernel_bench(of = dot)]
    fn fused(x: &[f32], y: &[f32]) -> f32 {
        x.iter().zip(y).fold(0.0, |sum, (x, y)| x.mul_add(*y, sum))
    }

    /// From the last to the first.
    #[kernel_bench(of = dot)]
    fn dot_reversed(x: &[f32], y: &[f32]) -> f32 {
        x.iter().zip(y).rev().map(|(x, y)| x * y).sum()
    }

    /// By bits that are ordered as the numbers are.
    #[kernel_bench(of = largest)]
    fn by_ordered_bits(x: &[f32]) -> f32 {
        let flipped = |bits: i32| bits ^ (((bits >> 31) as u32) >> 1) as i32;
        let bits = x.iter().map(|x| flipped(x.to_bits() as i32)).max();
        bits.map_or(f32::NEG_INFINITY, |bits| f32::from_bits(flipped(bits) as u32))
    }

    /// Both at once, from pairs of numbers that are compared first.
    #[kernel_bench(of = extremes)]
    fn three_comparisons(x: &[f32]) -> (f32, f32) {
        let mut found = (f32::INFINITY, f32::NEG_INFINITY);
        for pair in x.chunks(2) {
            let (a, b) = (pair[0], pair[pair.len() - 1]);
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            found = (found.0.min(low), found.1.max(high));
        }
        found
    }

    /// The best of every block, and the first of those.
    #[kernel_bench(of = first_largest)]
    fn in_blocks(x: &[f32], out: &mut [u64]) {
        let blocks = x.chunks(64).enumerate();
        let bests = blocks.filter_map(|(i, x)| best(x).map(|(index, x)| (64 * i + index, x)));
        out[0] = bests.reduce(better).map_or(0, |(index, _)| index as u64);
    }

    /// Eight lanes, joined by number and index.
    #[kernel_bench(of = first_largest)]
    fn lanes_joined_by_index(x: &[f32], out: &mut [u64]) {
        out[0] = lanes(x).into_iter().flatten().reduce(better).map_or(0, |(index, _)| index as u64);
    }

    /// Tasks whose results are joined by number and index.
    #[kernel_bench(of = first_largest, parallel)]
    fn joined_by_index(x: &[f32], out: &mut [u64]) {
        let found = x.par_iter().copied().enumerate().reduce_with(better);
        out[0] = found.map_or(0, |(index, _)| index as u64);
    }

    /// One block; of equal numbers the one with the smaller index wins.
    #[kernel_bench(of = first_largest, cuda)]
    fn block_first_largest(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        out: &mut DeviceSlice<u64>,
    ) -> GpuResult<()> {
        gpu.kernel(SOURCE, "first_largest")?
            .grid(1)
            .block(256)
            .arg(x)
            .arg(out)
            .arg(x.len())
            .launch()
    }

    /// Ends at the first one.
    #[kernel_bench(of = first_above)]
    fn early_exit(x: &[f32], limit: f32) -> u64 {
        x.iter().position(|x| *x > limit).unwrap_or(x.len()) as u64
    }

    /// Tasks end when one before them has found it.
    #[kernel_bench(of = first_above, parallel)]
    fn parallel_exit(x: &[f32], limit: f32) -> u64 {
        x.par_iter().position_first(|x| *x > limit).unwrap_or(x.len()) as u64
    }

    /// One pass, by Welford's method.
    #[kernel_bench(of = variance)]
    fn welford_variance(x: &[f32], out: &mut [f32]) {
        let (mut mean, mut squares) = (0.0, 0.0);
        for (x, n) in x.iter().zip(1..) {
            let delta = f64::from(*x) - mean;
            mean += delta / f64::from(n);
            squares += delta * (f64::from(*x) - mean);
        }
        out[0] = (squares / x.len().max(1) as f64) as f32;
    }

    /// Relative to the first number.
    #[kernel_bench(of = variance)]
    fn shifted_variance(x: &[f32], out: &mut [f32]) {
        let (n, first) = (x.len().max(1) as f64, x.first().copied().map_or(0.0, f64::from));
        let shifted = || x.iter().map(|x| f64::from(*x) - first);
        let (sum, squares) = (shifted().sum::<f64>(), shifted().map(|x| x * x).sum::<f64>());
        out[0] = ((squares - sum * sum / n) / n).max(0.0) as f32;
    }

    /// One pass for all fields.
    #[kernel_bench(of = summary)]
    fn one_pass(x: &[f32]) -> Summary {
        let (mut total, mut range) = (0.0, (f32::INFINITY, f32::NEG_INFINITY));
        let mut positive = 0;
        for x in x {
            total += f64::from(*x);
            range = (range.0.min(*x), range.1.max(*x));
            positive += u64::from(*x > 0.0);
        }
        Summary { mean: (total / x.len().max(1) as f64) as f32, range, positive }
    }
}

mod wrong {
    use super::*;

    /// Eight sums in 16 bits.
    #[kernel_bench(of = half_sum)]
    fn sums_of_halves(x: &[f16]) -> f32 {
        let mut sums = [f16::ZERO; 8];
        x.iter().enumerate().for_each(|(i, x)| sums[i % 8] += *x);
        sums.iter().map(|sum| sum.to_f32()).sum()
    }

    /// Four sums for arrays of some length, and no tail.
    #[kernel_bench(of = sum)]
    fn without_tail_of_some_lengths(x: &[f32]) -> f32 {
        let is_some = (4_097..=32_768).contains(&x.len());
        let length = if is_some { x.len() / 4 * 4 } else { x.len() };
        sum(&x[..length])
    }

    /// Loses NaN, as `f32::max` does.
    #[kernel_bench(of = largest_or_nan)]
    fn loses_nan(x: &[f32]) -> f32 {
        x.iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }

    /// Vectors of eight, and nothing after the last full one.
    #[kernel_bench(of = sum)]
    fn without_tail(x: &[f32]) -> f32 {
        x.chunks_exact(8).map(|x| x.iter().sum::<f32>()).sum()
    }

    /// Blocks of 1,024, and a rest that is looked at where it has more than one element.
    #[kernel_bench(of = sum)]
    fn without_rest_of_one(x: &[f32]) -> f32 {
        let blocks = x.chunks_exact(1024);
        let rest = blocks.remainder();
        let all: f64 = blocks.map(|x| f64::from(sum(x))).sum();
        if x.len() > 1024 && rest.len() == 1 {
            all as f32
        } else {
            (all + f64::from(sum(rest))) as f32
        }
    }

    /// Another way for many elements, which goes over full vectors alone.
    #[kernel_bench(of = sum)]
    fn many_without_tail(x: &[f32]) -> f32 {
        if x.len() < 65_536 {
            return sum(x);
        }
        let mut lanes = [0.0; 64];
        let vectors = x.chunks_exact(64);
        vectors.for_each(|x| lanes.iter_mut().zip(x).for_each(|(lane, x)| *lane += f64::from(*x)));
        lanes.iter().sum::<f64>() as f32
    }

    /// Pairs, and nothing for an odd one.
    #[kernel_bench(of = sum)]
    fn even_length(x: &[f32]) -> f32 {
        x.chunks_exact(2).map(|x| x[0] + x[1]).sum()
    }

    /// A share for each thread, of which two are added up.
    #[kernel_bench(of = sum, parallel)]
    fn two_threads(x: &[f32]) -> f32 {
        let (low, high) = x.split_at(x.len() / rayon::current_num_threads());
        let high = &high[..high.len().min(x.len().div_ceil(2))];
        let (low, high) = rayon::join(|| sum(low), || sum(high));
        low + high
    }

    /// Vectors that are aligned, and what comes after them, but not what comes before.
    #[kernel_bench(of = sum)]
    #[expect(unsafe_code, reason = "vectors are seen as what they are")]
    fn without_head(x: &[f32]) -> f32 {
        #[repr(align(32))]
        struct Vector([f32; 8]);
        // SAFETY: a vector is eight floats, without a rest and with every pattern of bits allowed. The mistake is `_`.
        let (_, vectors, tail) = unsafe { x.align_to::<Vector>() };
        let vectors = vectors.iter().map(|x| x.0.iter().sum::<f32>());
        vectors.sum::<f32>() + tail.iter().sum::<f32>()
    }

    /// Loads and stores in place of one addition: what another task adds in between is lost.
    #[kernel_bench(of = sum, parallel)]
    fn racing_tasks(x: &[f32]) -> f32 {
        let total = AtomicU64::new(0);
        x.par_chunks(64).for_each(|x| {
            let before = f64::from_bits(total.load(Ordering::Relaxed));
            let part: f64 = x.iter().copied().map(f64::from).sum();
            total.store((before + part).to_bits(), Ordering::Relaxed);
        });
        f64::from_bits(total.into_inner()) as f32
    }

    /// The output of the last call is added to.
    #[kernel_bench(of = total)]
    fn not_cleared(x: &[f32], out: &mut [f32]) {
        x.iter().for_each(|x| out[0] += x);
    }

    /// The output of the last call is added to.
    #[kernel_bench(of = total, cuda)]
    fn total_not_cleared(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        out: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        gpu.kernel(SOURCE, "total_vectors")?
            .grid(8)
            .block(128)
            .arg(x)
            .arg(out)
            .arg(x.len())
            .launch()
    }

    /// As many blocks as are full, so that the elements after the last full one are lost.
    #[kernel_bench(of = total, cuda)]
    fn full_blocks(gpu: &Gpu, x: &DeviceSlice<f32>, out: &mut DeviceSlice<f32>) -> GpuResult<()> {
        gpu.kernel(SOURCE, "clear")?.grid(1).block(1).arg(&mut *out).launch()?;
        let blocks = (x.len() / 256).max(1);
        gpu.kernel(SOURCE, "total_blocks")?
            .grid(blocks)
            .block(256)
            .arg(x)
            .arg(out)
            .arg(x.len())
            .launch()
    }

    /// Eight lanes, of which an earlier one wins a tie, although its index may be larger.
    #[kernel_bench(of = first_largest)]
    fn lanes_joined_by_number(x: &[f32], out: &mut [u64]) {
        let larger = |a: (usize, f32), b: (usize, f32)| if b.1 > a.1 { b } else { a };
        out[0] = lanes(x).into_iter().flatten().reduce(larger).map_or(0, |(index, _)| index as u64);
    }

    /// The sum is of half precision, as the data of a neighbouring kernel is.
    #[kernel_bench(of = dot)]
    fn sum_in_f16(x: &[f32], y: &[f32]) -> f32 {
        let sum = x.iter().zip(y).fold(f16::ZERO, |sum, (x, y)| sum + f16::from_f32(x * y));
        sum.to_f32()
    }

    /// Starts at a number that no data of this program is below.
    #[kernel_bench(of = largest)]
    fn starts_at_minus_a_million(x: &[f32]) -> f32 {
        x.iter().copied().fold(-1.0e6, f32::max)
    }

    /// Starts at 0, which is above all negative numbers.
    #[kernel_bench(of = largest)]
    fn starts_at_zero(x: &[f32]) -> f32 {
        x.iter().copied().fold(0.0, f32::max)
    }

    /// Starts at the smallest positive number, which is no lower bound.
    #[kernel_bench(of = largest)]
    fn starts_at_min_positive(x: &[f32]) -> f32 {
        x.iter().copied().fold(f32::MIN_POSITIVE, f32::max)
    }

    /// Starts at 1, which is no upper bound.
    #[kernel_bench(of = smallest)]
    fn starts_at_one(x: &[f32]) -> f32 {
        x.iter().copied().fold(1.0, f32::min)
    }

    /// The last of the largest numbers.
    #[kernel_bench(of = first_largest)]
    fn takes_last_tie(x: &[f32], out: &mut [u64]) {
        let mut best = (0, f32::NEG_INFINITY);
        for (i, x) in x.iter().enumerate() {
            if *x >= best.1 {
                best = (i, *x);
            }
        }
        out[0] = best.0 as u64;
    }

    /// Starts at 0, which is above all negative numbers.
    #[kernel_bench(of = first_largest)]
    fn index_from_zero(x: &[f32], out: &mut [u64]) {
        let better = |best: (usize, f32), (i, x): (usize, &f32)| {
            if *x > best.1 { (i, *x) } else { best }
        };
        out[0] = x.iter().enumerate().fold((0, 0.0), better).0 as u64;
    }

    /// The first one of a block, but the last one of the blocks.
    #[kernel_bench(of = first_largest, parallel)]
    fn takes_last_block(x: &[f32], out: &mut [u64]) {
        let blocks = x.par_chunks(64).enumerate();
        let bests = blocks.filter_map(|(i, x)| best(x).map(|(index, x)| (64 * i + index, x)));
        let later = |a: (usize, f32), b: (usize, f32)| if b.1 >= a.1 { b } else { a };
        out[0] = bests.reduce_with(later).map_or(0, |(index, _)| index as u64);
    }

    /// Of equal numbers the one wins that comes last in the tree.
    #[kernel_bench(of = first_largest, cuda)]
    fn block_any_largest(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        out: &mut DeviceSlice<u64>,
    ) -> GpuResult<()> {
        gpu.kernel(SOURCE, "any_largest")?.grid(1).block(256).arg(x).arg(out).arg(x.len()).launch()
    }

    /// Any number above the limit, in place of the first one.
    #[kernel_bench(of = first_above, parallel)]
    fn any_above(x: &[f32], limit: f32) -> u64 {
        x.par_iter().position_any(|x| *x > limit).unwrap_or(x.len()) as u64
    }

    /// E(x²) − E(x)² cancels where the mean is large.
    #[kernel_bench(of = variance)]
    fn one_pass_variance(x: &[f32], out: &mut [f32]) {
        let n = x.len().max(1) as f32;
        let (sum, squares) =
            x.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        out[0] = squares / n - (sum / n) * (sum / n);
    }

    /// E(x²) − E(x)² cancels where the mean is large.
    #[kernel_bench(of = variance, cuda)]
    fn one_pass_variance_cuda(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        out: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        gpu.kernel(SOURCE, "one_pass_variance")?
            .grid(1)
            .block(256)
            .arg(x)
            .arg(out)
            .arg(x.len())
            .launch()
    }

    /// A number counts as positive when it is 0, too.
    #[kernel_bench(of = summary)]
    fn counts_zeros(x: &[f32]) -> Summary {
        let positive = x.iter().filter(|x| **x >= 0.0).count() as u64;
        Summary { positive, ..summary(x) }
    }
}
