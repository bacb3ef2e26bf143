//! One query against rows of keys and values, with vectors that run along the rows.

use crate::shared::lanes;
use crate::shared::math::exp;

/// Partial results of a sum: a vector of the widest kind.
const LANES: usize = 16;

/// a·b + c; `FUSED`: without rounding the product first, by an instruction that the machine must have.
#[inline(always)]
pub(super) fn fused<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Scores of one query against rows of keys, at most `KEYS`: all products first, in partial sums, which are joined then.
///
/// In one loop the compiler would join sums of several keys in short vectors, at the cost of the products.
#[inline(always)]
pub(super) fn score<const KEYS: usize, const FUSED: bool>(
    q: &[f32],
    k: &[f32],
    scale: f32,
    scores: &mut [f32; KEYS],
) {
    let mut partial = [[0.0; LANES]; KEYS];
    for (partial, k) in partial.iter_mut().zip(k.chunks_exact(q.len())) {
        *partial = partial_dot::<FUSED>(q, k);
    }
    for (score, partial) in scores.iter_mut().zip(partial) {
        *score = sum(partial) * scale;
    }
}

/// Partial sums of Σ a·b.
#[inline(always)]
fn partial_dot<const FUSED: bool>(a: &[f32], b: &[f32]) -> [f32; LANES] {
    let mut sums = [0.0; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] = fused::<FUSED>(a[lane], b[lane], sums[lane]);
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *sum += a * b;
    }
    sums
}

/// The largest of some scores, or −∞ if there is none.
#[inline(always)]
pub(super) fn largest(scores: &[f32]) -> f32 {
    let least = f32::NEG_INFINITY;
    lanes::join(lanes::fold([least; LANES], scores, least, lanes::larger), lanes::larger)
}

/// Scores become e^(score − maximum); returned is the sum of these.
#[inline(always)]
pub(super) fn exponentiate(scores: &mut [f32], maximum: f32) -> f32 {
    let mut lanes = [0.0; LANES];
    for scores in scores.chunks_mut(LANES) {
        for (lane, score) in lanes.iter_mut().zip(scores) {
            *score = exp(*score - maximum);
            *lane += *score;
        }
    }
    sum(lanes)
}

#[inline(always)]
fn sum(partial: [f32; LANES]) -> f32 {
    lanes::join(partial, |a, b| a + b)
}
