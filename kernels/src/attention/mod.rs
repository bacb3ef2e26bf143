//! Attention: every query takes the mean of all values, weighted by how well it agrees with their keys.
//!
//! out ← softmax(q·kᵀ / √head_dim)·v for each head. `q` and `out` are batch × heads × queries × head_dim, `k` and `v`
//! batch × kv_heads × seq × head_dim; heads / kv_heads neighbouring query heads share keys and values (Ainslie et al.
//! 2023). As batch and heads are the outermost axes, query head h of all batch · heads uses head h / (heads / kv_heads) of
//! all batch · kv_heads, and the lengths of the slices tell the rest.
//!
//! No variant but the naive ones has all scores in memory: keys and values pass by in blocks, and of every query a running
//! maximum and a running sum of weights are kept (Milakov and Gimelshein 2018; Dao et al. 2022). When a block has a larger
//! score, what was added up before is scaled down.

mod decode;
mod device;
mod dot;
mod prefill;
mod reference;
mod tiles;

pub use decode::*;
pub use prefill::*;

use crate::shared::Float;

/// The mean of values for one query as a textbook has it: all scores, their softmax, then the weighted sum.
fn weighted_mean<T: Float>(
    q: &[T],
    (k, v): (&[T], &[T]),
    (scores, sums): (&mut [f32], &mut [f32]),
    out: &mut [T],
) {
    let scale = 1.0 / (q.len() as f32).sqrt();
    for (score, k) in scores.iter_mut().zip(k.chunks_exact(q.len())) {
        *score = scale * q.iter().zip(k).map(|(q, k)| q.to_f32() * k.to_f32()).sum::<f32>();
    }
    let maximum = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - maximum).exp());
    let share = 1.0 / scores.iter().sum::<f32>();
    sums.fill(0.0);
    for (weight, v) in scores.iter().zip(v.chunks_exact(q.len())) {
        sums.iter_mut().zip(v).for_each(|(sum, v)| *sum += weight * share * v.to_f32());
    }
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::from_f32(*sum));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look like chance.
    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f32 / 504.5 - 1.0).collect()
    }

    #[test]
    fn a_query_that_agrees_with_one_key_alone_takes_its_value() {
        let (seq, head_dim) = (100, 16);
        let mut k = vec![0.0; seq * head_dim];
        k[70 * head_dim] = 1000.0;
        let v = numbers(seq * head_dim, 1);
        let q: Vec<f32> = [1.0].into_iter().chain(vec![0.0; head_dim - 1]).collect();
        let mut out = vec![0.0; head_dim];
        attention_decode(&q, &k, &v, seq, head_dim, &mut out);
        assert_eq!(out, v[70 * head_dim..][..head_dim]);
    }

    #[test]
    fn with_a_causal_mask_later_keys_and_values_make_no_difference() {
        let (seq, head_dim, first) = (77, 8, 40 * 8);
        let (q, k, v) = (numbers(seq * 8, 1), numbers(seq * 8, 2), numbers(seq * 8, 3));
        let (mut other_k, mut other_v) = (k.clone(), v.clone());
        other_k[first..].fill(1000.0);
        other_v[first..].fill(-1000.0);
        let (mut out, mut other_out) = (vec![0.0; seq * head_dim], vec![0.0; seq * head_dim]);
        attention_causal(&q, &k, &v, seq, head_dim, &mut out);
        attention_causal(&q, &other_k, &other_v, seq, head_dim, &mut other_out);
        assert_eq!(out[..first], other_out[..first]);
        assert_ne!(out[first..], other_out[first..]);
        assert_eq!(out[..head_dim], v[..head_dim]);
    }

    #[test]
    fn one_query_is_the_last_of_many_with_a_causal_mask() {
        let (seq, head_dim, heads, group) = (300, 20, 6, 3);
        let matrix = seq * head_dim;
        let (q, k) = (numbers(heads * matrix, 1), numbers(heads / group * matrix, 2));
        let v = numbers(k.len(), 3);
        let mut many = vec![0.0; q.len()];
        attention_causal(&q, &k, &v, seq, head_dim, &mut many);
        let last = |x: &[f32]| -> Vec<f32> {
            x.chunks(matrix).flat_map(|head| head[matrix - head_dim..].to_vec()).collect()
        };
        let mut one = vec![0.0; heads * head_dim];
        for decode in [attention_decode, attention_decode_rayon, attention_decode_naive] {
            decode(&last(&q), &k, &v, seq, head_dim, &mut one);
            let apart = one.iter().zip(last(&many)).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f32::max) < 1e-6);
        }
    }
}
