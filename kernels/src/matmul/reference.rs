//! Products of a with a transposed b in `f64`, the oracle of kernels with few bits.

use rayon::prelude::*;

use crate::shared::vectorise;

/// Sums that are added up side by side, so that the compiler can use vectors.
const LANES: usize = 32;
/// Rows of a that a row of b is multiplied with while it is in the cache.
const ROWS: usize = 16;

/// c ← finish(i, j, Σ a(i, p)·b(j, p)) for rows of a and b of length k.
pub(super) fn product_f64(
    (a, b, k): (&[f64], &[f64], usize),
    c: &mut [f64],
    finish: impl Fn(usize, usize, f64) -> f64 + Sync,
) {
    let n = b.len() / k;
    c.par_chunks_mut(ROWS * n).zip(a.par_chunks(ROWS * k)).enumerate().for_each(
        |(task, (c, a))| {
            for (j, b) in b.chunks(k).enumerate() {
                for (i, a) in a.chunks(k).enumerate() {
                    let sum = vectorise!(dot_f64, (a, b));
                    c[i * n + j] = finish(task * ROWS + i, j, sum);
                }
            }
        },
    );
}

#[inline(always)]
fn dot_f64(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}
