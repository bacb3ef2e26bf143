//! One query against rows of keys and values, with vectors that run along the rows.

use crate::shared::math::exp;

/// Partial results of a sum: enough vectors of any width to hide how long an addition takes.
const LANES: usize = 64;

/// Σ a·b.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    for ((lane, a), b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane += a * b;
    }
    joined(lanes)
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
    joined(lanes)
}

/// The sum of partial results, pairwise.
#[inline(always)]
fn joined(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
    }
    lanes[0]
}
