//! Attention: every query takes the mean of all values, weighted by how well it agrees with their keys.
//!
//! out ← softmax(q·kᵀ / √head_dim)·v for each head. `q` and `out` are batch × heads × queries × head_dim, `k` and `v`
//! batch × kv_heads × seq × head_dim; heads / kv_heads neighbouring query heads share keys and values (Ainslie et al.
//! 2023). As batch and heads are the outermost axes, query head h of all batch · heads uses head h / (heads / kv_heads) of
//! all batch · kv_heads, and the lengths of the slices tell the rest.
//!
//! No variant but the naive ones has all scores in memory: keys and values pass by in blocks, and of every query a running
//! maximum and a running sum of weights are kept (Milakov and Gimelshein 2018; Dao et al. 2022). When a block has a larger
//! score, what was added up before is scaled down. The amount of work is the number of scores.

mod decode;
mod device;
mod dot;
mod prefill;
mod reference;
mod scratch;
mod tiles;

pub use decode::*;
pub use prefill::*;

use crate::shared::Float;

/// The mean of values for one query, with all its scores in memory.
#[inline(always)]
fn weighted_mean<T: Float>(q: &[T], k: &[T], v: &[T], scores: &mut [f32], out: &mut [T]) {
    let scale = 1.0 / (q.len() as f32).sqrt();
    for (score, k) in scores.iter_mut().zip(k.chunks_exact(q.len())) {
        *score = scale * q.iter().zip(k).map(|(q, k)| q.to_f32() * k.to_f32()).sum::<f32>();
    }
    let maximum = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum = dot::exponentiate(scores, maximum);
    for (column, out) in out.iter_mut().enumerate() {
        let values = v[column..].iter().step_by(q.len());
        let mean: f32 = scores.iter().zip(values).map(|(weight, v)| weight * v.to_f32()).sum();
        *out = T::from_f32(mean / sum);
    }
}
