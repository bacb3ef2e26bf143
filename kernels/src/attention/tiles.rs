//! Blocks of queries against blocks of keys, with vectors that run along the queries.
//!
//! A block of [`QUERIES`] queries is transposed once, so that element i of all of them is one vector. Then a key is a row of
//! numbers that are spread over such vectors, its scores are a vector, and maximum, exponential and sum need no steps across
//! lanes. Both products are the same function: rows of [`QUERIES`] numbers added up with factors from a matrix.

use super::dot::fused;
use crate::shared::float::BUFFER;
use crate::shared::scratch::with_scratch;
use crate::shared::simd::{Level, level};
use crate::shared::{BLOCK, Float, math, vectorise};

/// Queries of a block: two vectors of 64 bytes, or four of 32.
pub(super) const QUERIES: usize = 32;

/// Keys of a block: with values and results they stay in the second-level cache.
const KEYS: usize = 64;

/// Rows of a product that are added up at a time, in registers.
const ROWS: usize = 4;

/// A number for each query of a block.
type Lanes = [f32; QUERIES];

/// What one block of queries needs to know.
#[derive(Clone, Copy)]
pub(super) struct Block<'a, T> {
    /// Queries of the block, at most [`QUERIES`] rows.
    pub q: &'a [T],
    /// Keys of the head.
    pub k: &'a [T],
    /// Values of the head.
    pub v: &'a [T],
    /// Length of a row.
    pub head_dim: usize,
    /// Position of the first query when none may see a key behind its own.
    pub causal_from: Option<usize>,
}

/// Results of one block of queries.
pub(super) fn attend_block<T: Float>(block: Block<'_, T>, out: &mut [T]) {
    let floats = block.head_dim * QUERIES;
    // Only floats of 16 bits are widened.
    let rows = KEYS * block.head_dim * usize::from(size_of::<T>() < size_of::<f32>());
    with_scratch([floats, floats, KEYS * QUERIES, rows], |scratch| match level() >= Level::Avx2 {
        true => attend::<T, true>(block, scratch, out),
        false => attend::<T, false>(block, scratch, out),
    });
}

vectorise! {
    /// A block of queries with the memory that it takes: transposed queries, sums, scores, and widened rows.
    ///
    /// `FUSED`: products are added without rounding them first, by an instruction that the machine has.
    fn attend<T: Float, const FUSED: bool>(
        block: Block<'_, T>,
        scratch: [&mut [f32]; 4],
        out: &mut [T],
    ) {
        let [q, sums, scores, rows] = scratch;
        let Block { head_dim, .. } = block;
        let (q, _) = q.as_chunks_mut::<QUERIES>();
        let (sums, _) = sums.as_chunks_mut::<QUERIES>();
        let (scores, _) = scores.as_chunks_mut::<QUERIES>();
        transpose_queries(block.q, head_dim, q);
        sums.as_flattened_mut().fill(0.0);
        let mut maximum = [f32::NEG_INFINITY; QUERIES];
        let mut total = [0.0; QUERIES];
        let queries = block.q.len() / head_dim;
        let visible = block.causal_from.map_or(block.k.len(), |first| (first + queries) * head_dim);
        let (k, v) = (&block.k[..visible], &block.v[..visible]);
        let blocks = k.chunks(KEYS * head_dim).zip(v.chunks(KEYS * head_dim));
        for (index, (k, v)) in blocks.enumerate() {
            let scores = &mut scores[..k.len() / head_dim];
            let k = T::read(k, rows);
            for (k, scores) in k.chunks(ROWS * head_dim).zip(scores.chunks_mut(ROWS)) {
                scores.as_flattened_mut().fill(0.0);
                match scores.len() {
                    ROWS => add_rows::<ROWS, FUSED>(|i, t| k[i * head_dim + t], q, scores),
                    _ => add_each::<FUSED>(|i, t| k[i * head_dim + t], q, scores),
                }
            }
            if let Some(first) = block.causal_from {
                mask(scores, index * KEYS, first);
            }
            let shrink = weigh(scores, &mut maximum, &mut total);
            let v = T::read(v, rows);
            for (column, sums) in (0..).step_by(ROWS).zip(sums.chunks_mut(ROWS)) {
                for sums in &mut *sums {
                    sums.iter_mut().zip(&shrink).for_each(|(sum, shrink)| *sum *= shrink);
                }
                match sums.len() {
                    ROWS => add_rows::<ROWS, FUSED>(|i, t| v[t * head_dim + column + i], scores, sums),
                    _ => add_each::<FUSED>(|i, t| v[t * head_dim + column + i], scores, sums),
                }
            }
        }
        let mut buffer = BUFFER;
        for (query, out) in out.chunks_exact_mut(head_dim).enumerate() {
            for (column, out) in out.chunks_mut(BLOCK).enumerate() {
                let sums = &sums[column * BLOCK..][..out.len()];
                for (out, sums) in T::output(out, &mut buffer).iter_mut().zip(sums) {
                    *out = sums[query] / total[query];
                }
                T::flush(&buffer, out);
            }
        }
    }
}

/// Element i of all queries side by side, and scaled; queries that do not exist are zeros.
#[inline(always)]
fn transpose_queries<T: Float>(q: &[T], head_dim: usize, to: &mut [Lanes]) {
    let scale = 1.0 / (head_dim as f32).sqrt();
    if q.len() < QUERIES * head_dim {
        to.as_flattened_mut().fill(0.0);
    }
    let mut buffer = BUFFER;
    for (query, q) in q.chunks_exact(head_dim).enumerate() {
        for (column, q) in q.chunks(BLOCK).enumerate() {
            for (to, q) in to[column * BLOCK..].iter_mut().zip(T::read(q, &mut buffer)) {
                to[query] = q * scale;
            }
        }
    }
}

/// sums[i] ← sums[i] + Σ factor(i, t)·rows[t] for a few i at a time.
#[inline(always)]
fn add_rows<const COUNT: usize, const FUSED: bool>(
    factor: impl Fn(usize, usize) -> f32,
    rows: &[Lanes],
    sums: &mut [Lanes],
) {
    let mut registers = [[0.0; QUERIES]; COUNT];
    registers.copy_from_slice(sums);
    for (t, row) in rows.iter().enumerate() {
        for (i, sum) in registers.iter_mut().enumerate() {
            let factor = factor(i, t);
            for (sum, &row) in sum.iter_mut().zip(row) {
                *sum = fused::<FUSED>(factor, row, *sum);
            }
        }
    }
    sums.copy_from_slice(&registers);
}

/// [`add_rows`] one by one, for the rest.
#[inline(always)]
fn add_each<const FUSED: bool>(
    factor: impl Fn(usize, usize) -> f32,
    rows: &[Lanes],
    sums: &mut [Lanes],
) {
    for (i, sums) in sums.chunks_exact_mut(1).enumerate() {
        add_rows::<1, FUSED>(|_, t| factor(i, t), rows, sums);
    }
}

/// Keys behind a query have no weight.
#[inline(always)]
fn mask(scores: &mut [Lanes], first_key: usize, first_query: usize) {
    for (key, scores) in (first_key..).zip(scores) {
        for score in &mut scores[..QUERIES.min(key.saturating_sub(first_query))] {
            *score = f32::NEG_INFINITY;
        }
    }
}

/// Scores become weights under the largest score that is known by now; returned is what earlier sums are worth under it.
#[inline(always)]
fn weigh(scores: &mut [Lanes], maximum: &mut Lanes, total: &mut Lanes) -> Lanes {
    let mut larger = *maximum;
    for scores in &*scores {
        for (larger, &score) in larger.iter_mut().zip(scores) {
            *larger = if score > *larger { score } else { *larger };
        }
    }
    let mut shrink = [0.0; QUERIES];
    for lane in 0..QUERIES {
        shrink[lane] = math::exp(maximum[lane] - larger[lane]);
        total[lane] *= shrink[lane];
    }
    for scores in scores {
        for lane in 0..QUERIES {
            scores[lane] = math::exp(scores[lane] - larger[lane]);
            total[lane] += scores[lane];
        }
    }
    *maximum = larger;
    shrink
}
