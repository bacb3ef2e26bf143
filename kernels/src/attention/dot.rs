//! One query against rows of keys and values, with vectors that run along the rows.

use crate::shared::math::exp;

/// Partial results of a sum: a vector of the widest kind.
const LANES: usize = 16;

/// a·b + c; `FUSED`: without rounding the product first, by an instruction that the machine must have.
#[inline(always)]
pub(super) fn fused<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Σ a·b for four b at a time: their additions do not wait for one another.
#[inline(always)]
pub(super) fn dots<const FUSED: bool>(a: &[f32], [b, c, d, e]: [&[f32]; 4]) -> [f32; 4] {
    let mut sums = [[0.0; LANES]; 4];
    let [b_sums, c_sums, d_sums, e_sums] = &mut sums;
    let (a, a_rest) = a.as_chunks();
    let ((b, b_rest), (c, c_rest)) = (b.as_chunks(), c.as_chunks());
    let ((d, d_rest), (e, e_rest)) = (d.as_chunks(), e.as_chunks());
    for ((((a, b), c), d), e) in a.iter().zip(b).zip(c).zip(d).zip(e) {
        take::<FUSED>(b_sums, a, b);
        take::<FUSED>(c_sums, a, c);
        take::<FUSED>(d_sums, a, d);
        take::<FUSED>(e_sums, a, e);
    }
    let rests = [b_rest, c_rest, d_rest, e_rest];
    let mut dots = [0.0; 4];
    for ((dot, sums), rest) in dots.iter_mut().zip(sums).zip(rests) {
        *dot = joined(sums);
        a_rest.iter().zip(rest).for_each(|(a, b)| *dot += a * b);
    }
    dots
}

/// Takes a vector of products into partial sums.
#[inline(always)]
fn take<const FUSED: bool>(sums: &mut [f32; LANES], a: &[f32; LANES], b: &[f32; LANES]) {
    for lane in 0..LANES {
        sums[lane] = fused::<FUSED>(a[lane], b[lane], sums[lane]);
    }
}

/// The largest of some scores, or −∞ if there is none.
#[inline(always)]
pub(super) fn largest(scores: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for scores in scores.chunks(LANES) {
        for (lane, &score) in lanes.iter_mut().zip(scores) {
            *lane = if score > *lane { score } else { *lane };
        }
    }
    let mut largest = f32::NEG_INFINITY;
    for lane in lanes {
        largest = if lane > largest { lane } else { largest };
    }
    largest
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
