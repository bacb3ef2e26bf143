//! Rotary position embedding (Su et al. 2021): pairs of elements turned by an angle that grows with the position.
//!
//! Pair i of a head turns by BASE^(−2i / head_dim) radians per position. The angles come from tables that were computed
//! before, or are computed on the fly: memory against arithmetic.

use kbench::prelude::*;
use rayon::prelude::*;

use crate::shared::float::{BUFFER, Buffer};
use crate::shared::tasks::rows_per_task;
use crate::shared::{BLOCK, COMMON, Float, entry, math, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../cuda/position.cu")).named("position.cu").headers(COMMON);

/// What the slowest pair approaches in positions per radian.
const BASE: f64 = 10_000.0;

/// Turns every head of every position by the angles of `cos` and `sin`, which hold `head_dim / 2` values per position:
/// (a, b) ← (a·cos − b·sin, a·sin + b·cos).
///
/// `x` is sequence × heads × head_dim; element i of a head is paired with element i + head_dim / 2. The tables are `f32`
/// whatever `x` is: they are small beside it.
#[kernel_bench(
    sizes = [
        "tiny" => (seq = 1, heads = 32, head_dim = 128),
        "small" => (seq = 16, heads = 8, head_dim = 64),
        "medium" => (seq = 128, heads = 8, head_dim = 128),
        "large" => (seq = 1024, heads = 32, head_dim = 128),
    ],
    inputs = |seq, heads, head_dim| (
        normal(seq * heads * head_dim),
        table(seq, head_dim, f64::cos),
        table(seq, head_dim, f64::sin),
        head_dim,
    ),
    in_place = reuse, // a rotation keeps the length: the result is as good an input as any
    valid = head_dim.is_multiple_of(2),
    flops = |seq, heads, head_dim| 3 * seq * heads * head_dim,
    reference = rope_f64,
    types = [f32, f16, bf16],
)]
pub fn rope<T: Float>(x: &mut [T], cos: &[f32], sin: &[f32], head_dim: usize) {
    rope_positions(x, cos, sin, head_dim);
}

vectorise! {
    fn rope_positions<T: Float>(x: &mut [T], cos: &[f32], sin: &[f32], head_dim: usize) {
        let (half, heads) = (head_dim / 2, heads(x.len(), cos.len()));
        let angles = cos.chunks_exact(half).zip(sin.chunks_exact(half));
        let mut buffers = [BUFFER; 2];
        for (position, (cos, sin)) in x.chunks_exact_mut(heads * head_dim).zip(angles) {
            for (block, (cos, sin)) in cos.chunks(BLOCK).zip(sin.chunks(BLOCK)).enumerate() {
                rotate(position, head_dim, block * BLOCK, cos, sin, &mut buffers);
            }
        }
    }
}

/// [`rope`] with positions shared among all cores.
#[kernel_bench(of = rope, parallel, threshold = tuned(160_000), types = [f32, f16, bf16])]
pub fn rope_rayon<T: Float>(x: &mut [T], cos: &[f32], sin: &[f32], head_dim: usize) {
    let (half, length) = (head_dim / 2, heads(x.len(), cos.len()) * head_dim);
    let positions = rows_per_task(length);
    x.par_chunks_mut(positions * length)
        .zip(cos.par_chunks(positions * half))
        .zip(sin.par_chunks(positions * half))
        .for_each(|((x, cos), sin)| rope(x, cos, sin, head_dim));
}

/// [`rope`] on a GPU.
#[kernel_bench(of = rope, cuda, types = [f32, f16, bf16])]
pub fn rope_cuda<T: Float>(
    gpu: &Gpu,
    x: &mut DeviceSlice<T>,
    cos: &DeviceSlice<f32>,
    sin: &DeviceSlice<f32>,
    head_dim: usize,
) -> GpuResult<()> {
    let Threads { count, length } = Threads::new::<T>(x.len(), cos.len(), head_dim, 1);
    let (half, heads) = (head_dim / 2, heads(x.len(), cos.len()));
    let kernel = gpu.kernel(SOURCE, entry!(T, "rope"))?.over(count, Threads::BLOCK);
    kernel.arg(x).arg(cos).arg(sin).arg(count).arg(half).arg(heads).arg(length).launch()
}

/// [`rope`] with angles computed on the fly, once for all heads of a position; of the tables, only the length counts.
#[kernel_bench(
    of = rope,
    name = "on_the_fly",
    bytes = |seq, heads, head_dim| 2 * size_of::<T>() * seq * heads * head_dim,
    types = [f32, f16, bf16],
)]
pub fn rope_on_the_fly<T: Float>(x: &mut [T], cos: &[f32], _sin: &[f32], head_dim: usize) {
    let heads = heads(x.len(), cos.len());
    on_the_fly(x, 0, heads, head_dim);
}

/// [`rope_on_the_fly`] with positions shared among all cores.
#[kernel_bench(
    of = rope,
    name = "on_the_fly_rayon",
    parallel,
    threshold = tuned(100_000),
    bytes = |seq, heads, head_dim| 2 * size_of::<T>() * seq * heads * head_dim,
    types = [f32, f16, bf16],
)]
pub fn rope_on_the_fly_rayon<T: Float>(x: &mut [T], cos: &[f32], _sin: &[f32], head_dim: usize) {
    let heads = heads(x.len(), cos.len());
    let positions = rows_per_task(heads * head_dim);
    x.par_chunks_mut(positions * heads * head_dim).enumerate().for_each(|(task, x)| {
        on_the_fly(x, task * positions, heads, head_dim);
    });
}

/// [`rope_on_the_fly`] on a GPU.
#[kernel_bench(
    of = rope,
    name = "on_the_fly_cuda",
    cuda,
    bytes = |seq, heads, head_dim| 2 * size_of::<T>() * seq * heads * head_dim,
    types = [f32, f16, bf16],
)]
pub fn rope_on_the_fly_cuda<T: Float>(
    gpu: &Gpu,
    x: &mut DeviceSlice<T>,
    cos: &DeviceSlice<f32>,
    _sin: &DeviceSlice<f32>,
    head_dim: usize,
) -> GpuResult<()> {
    let Threads { count, length } = Threads::new::<T>(x.len(), cos.len(), head_dim, 2);
    let (half, heads) = (head_dim / 2, heads(x.len(), cos.len()));
    let kernel = gpu.kernel(SOURCE, entry!(T, "rope_on_the_fly"))?.over(count, Threads::BLOCK);
    kernel.arg(x).arg(ratio(head_dim)).arg(count).arg(half).arg(heads).arg(length).launch()
}

/// Heads of a position: the tables have half a head per position.
fn heads(elements: usize, angles: usize) -> usize {
    elements / (2 * angles)
}

/// How much more slowly than pair i pair i + 1 turns.
fn ratio(head_dim: usize) -> f64 {
    BASE.powf(-2.0 / head_dim as f64)
}

/// Turns the pairs from `start` on of all heads of one position; at most [`BLOCK`] of them.
#[inline(always)]
fn rotate<T: Float>(
    position: &mut [T],
    head_dim: usize,
    start: usize,
    cos: &[f32],
    sin: &[f32],
    [first_buffer, second_buffer]: &mut [Buffer; 2],
) {
    if 2 * cos.len() == head_dim && head_dim <= BLOCK {
        // As many heads at a time as there is room for: it takes longer to begin a block than to turn a head.
        for heads in position.chunks_mut(BLOCK / head_dim * head_dim) {
            for head in T::edit(heads, first_buffer).chunks_exact_mut(head_dim) {
                let (first, second) = head.split_at_mut(cos.len());
                rotate_pairs(first, second, cos, sin);
            }
            T::flush(first_buffer, heads);
        }
        return;
    }
    for head in position.chunks_exact_mut(head_dim) {
        let (first, second) = head.split_at_mut(head_dim / 2);
        let (first, second) = (&mut first[start..][..cos.len()], &mut second[start..][..cos.len()]);
        rotate_pairs(T::edit(first, first_buffer), T::edit(second, second_buffer), cos, sin);
        T::flush(first_buffer, first);
        T::flush(second_buffer, second);
    }
}

#[inline(always)]
fn rotate_pairs(first: &mut [f32], second: &mut [f32], cos: &[f32], sin: &[f32]) {
    for (((a, b), cos), sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
        (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
    }
}

vectorise! {
    /// Turns positions from `first` on, with angles computed here.
    ///
    /// At position 32768 an angle of as many radians has to be known to 2⁻²⁴, which takes 39 bits: more than `f32` has. So a
    /// frequency is the fraction of a turn per position, as an integer in units of 2⁻⁶⁴. Its product with the position wraps
    /// around as angles do: what is left is the fraction of the last turn, good to 2⁻³⁷ there, as `f64` has 53 bits. The tables
    /// are no better, so the tolerance is theirs.
    fn on_the_fly<T: Float>(x: &mut [T], first: usize, heads: usize, head_dim: usize) {
        const UNITS_PER_RADIAN: f64 = 18_446_744_073_709_551_616.0 / std::f64::consts::TAU;
        let (half, ratio) = (head_dim / 2, ratio(head_dim));
        let (mut cos, mut sin, mut frequencies) = (BUFFER, BUFFER, [0; BLOCK]);
        let mut buffers = [BUFFER; 2];
        let mut frequency = UNITS_PER_RADIAN;
        for start in (0..half).step_by(BLOCK) {
            let pairs = BLOCK.min(half - start);
            for unit in &mut frequencies[..pairs] {
                *unit = frequency as u64;
                frequency *= ratio;
            }
            for (position, x) in (first..).zip(x.chunks_exact_mut(heads * head_dim)) {
                turns(position as u64, &frequencies[..pairs], &mut cos, &mut sin);
                rotate(x, head_dim, start, &cos[..pairs], &sin[..pairs], &mut buffers);
            }
        }
    }
}

/// Cosines and sines of position · frequency.
#[inline(always)]
fn turns(position: u64, frequencies: &[u64], cos: &mut Buffer, sin: &mut Buffer) {
    for ((frequency, cos), sin) in frequencies.iter().zip(cos.iter_mut()).zip(sin.iter_mut()) {
        let turn = position.wrapping_mul(*frequency);
        (*sin, *cos) = math::sin_cos_of_turn((turn >> 32) as u32);
    }
}

/// The threads of a GPU: one for each position, group of heads, and vector of pairs.
struct Threads {
    count: usize,
    /// Pairs in a vector.
    length: usize,
}

impl Threads {
    /// Threads of a block.
    const BLOCK: usize = 128;

    /// For threads that turn so many heads each: Angles::HEADS of the device code.
    fn new<T>(elements: usize, angles: usize, head_dim: usize, heads_per_thread: usize) -> Self {
        let (half, groups) = (head_dim / 2, heads(elements, angles).div_ceil(heads_per_thread));
        let pack = 16 / size_of::<T>();
        let length = if half.is_multiple_of(pack) { pack } else { 1 };
        Threads { count: angles / half * groups * (half / length), length }
    }
}

/// The table of one function of the angle position · BASE^(−2i / head_dim).
fn table(seq: usize, head_dim: usize, function: fn(f64) -> f64) -> Vec<f32> {
    let frequencies = (0..head_dim / 2).map(|i| BASE.powf(-2.0 * i as f64 / head_dim as f64));
    let frequencies: Vec<f64> = frequencies.collect();
    let angle = |position: usize| frequencies.iter().map(move |f| position as f64 * f);
    (0..seq).flat_map(angle).map(|angle| function(angle) as f32).collect()
}

fn rope_f64(x: &mut [f64], cos: &[f64], sin: &[f64], head_dim: usize) {
    let half = head_dim / 2;
    let heads = x.len() / (2 * cos.len());
    for pair in 0..x.len() / 2 {
        let (head, i) = (pair / half, pair % half);
        let angle = head / heads * half + i;
        let (a, b) = (head * head_dim + i, head * head_dim + i + half);
        let turned = (x[a] * cos[angle] - x[b] * sin[angle], x[a] * sin[angle] + x[b] * cos[angle]);
        (x[a], x[b]) = turned;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_of_far_positions_are_as_exact_as_those_of_near_ones() {
        let (head_dim, first) = (128, 32_000);
        let mut x = vec![1.0f32; head_dim];
        x[head_dim / 2..].fill(0.0);
        // The last of many positions, so that what is left of (1, 0) is (cos, sin).
        let mut all = x.repeat(768);
        on_the_fly(&mut all, first, 1, head_dim);
        for (place, x) in (first..).zip(all.chunks_exact(head_dim)) {
            for i in 0..head_dim / 2 {
                let angle = place as f64 * BASE.powf(-2.0 * i as f64 / head_dim as f64);
                let error = (f64::from(x[i]) - angle.cos()).abs();
                let error = error.max((f64::from(x[i + head_dim / 2]) - angle.sin()).abs());
                assert!(error < 1.2e-7, "position {place}, pair {i}: {error}");
            }
        }
    }

    #[test]
    fn heads_longer_than_a_block_are_turned_like_short_ones() {
        let (seq, heads, head_dim) = (3, 2, 4 * BLOCK + 6);
        let (cos, sin) = (table(seq, head_dim, f64::cos), table(seq, head_dim, f64::sin));
        let x: Vec<f32> = (0..seq * heads * head_dim).map(|i| (i % 97) as f32 / 97.0).collect();
        let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let mut expected = wide(&x);
        rope_f64(&mut expected, &wide(&cos), &wide(&sin), head_dim);
        for kernel in [rope::<f32>, rope_on_the_fly::<f32>, rope_on_the_fly_rayon::<f32>] {
            let mut x = x.clone();
            kernel(&mut x, &cos, &sin, head_dim);
            assert!(x.iter().zip(&expected).all(|(x, y)| (f64::from(*x) - y).abs() < 1e-6));
        }
    }
}
