//! The same in `f64`, query by query.

use rayon::prelude::*;

use crate::shared::vectorise;

/// Attention of `queries` queries per head against `seq` keys; query i sees `visible(i)` of them.
pub(super) fn attention_f64(
    (q, k, v): (&[f64], &[f64], &[f64]),
    (queries, seq, head_dim): (usize, usize, usize),
    visible: impl Fn(usize) -> usize + Sync,
    out: &mut [f64],
) {
    let group = (q.len() * seq) / (k.len() * queries);
    let row = |scores: &mut Vec<f64>, (index, out): (usize, &mut [f64])| {
        let (head, query) = (index / queries / group * seq * head_dim, index % queries);
        let keys = visible(query) * head_dim;
        let q = &q[index * head_dim..][..head_dim];
        scores.resize(visible(query), 0.0);
        one_query(q, &k[head..][..keys], &v[head..][..keys], scores, out);
    };
    out.par_chunks_exact_mut(head_dim).enumerate().for_each_init(Vec::new, row);
}

// One query, with the keys that it sees.
vectorise! {
    fn one_query(q: &[f64], k: &[f64], v: &[f64], scores: &mut [f64], out: &mut [f64]) {
        let scale = 1.0 / (q.len() as f64).sqrt();
        for (score, k) in scores.iter_mut().zip(k.chunks_exact(q.len())) {
            *score = scale * dot_f64(q, k);
        }
        let maximum = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        out.fill(0.0);
        for (score, v) in scores.iter().zip(v.chunks_exact(q.len())) {
            let weight = (score - maximum).exp();
            sum += weight;
            out.iter_mut().zip(v).for_each(|(out, v)| *out += weight * v);
        }
        out.iter_mut().for_each(|out| *out /= sum);
    }
}

/// In eight partial sums, which fit a vector.
#[inline(always)]
fn dot_f64(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}
