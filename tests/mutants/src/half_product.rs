//! Products of matrices in half precision, with sums in `f32`: c (m × n) ← a (m × k) · b (k × n).

use kbench::prelude::*;
use rayon::prelude::*;

/// Parts that the sums are divided into.
const SPLITS: usize = 32;

/// c ← a · b
#[kernel_bench(
    sizes = { m: [8], n: [16], k: [3072, 4096] },
    inputs = |m, n, k| (uniform(m * k), uniform(k * n), [m, n, k], zeros(m * n)),
)]
fn half_product(a: &[f16], b: &[f16], [_, n, k]: [usize; 3], c: &mut [f16]) {
    for (i, c) in c.iter_mut().enumerate() {
        *c = f16::from_f32(part(a, b, [i, n, k], 0, k));
    }
}

/// A part of the sum of one element.
fn part(a: &[f16], b: &[f16], [i, n, k]: [usize; 3], start: usize, end: usize) -> f32 {
    let a = &a[i / n * k..][..k];
    (start.min(k)..end.min(k)).map(|l| a[l].to_f32() * b[l * n + i % n].to_f32()).sum()
}

mod right {
    use super::*;

    /// Partial sums, which are added up in `f32`.
    #[kernel_bench(of = half_product, parallel)]
    fn split_sums(a: &[f16], b: &[f16], [_, n, k]: [usize; 3], c: &mut [f16]) {
        let share = k.div_ceil(SPLITS);
        c.par_iter_mut().enumerate().for_each(|(i, c)| {
            let parts = (0..SPLITS).map(|s| part(a, b, [i, n, k], s * share, (s + 1) * share));
            *c = f16::from_f32(parts.sum());
        });
    }

    /// Products in pairs, as matrix units add them up.
    #[kernel_bench(of = half_product)]
    fn pairs_of_products(a: &[f16], b: &[f16], [_, n, k]: [usize; 3], c: &mut [f16]) {
        for (i, c) in c.iter_mut().enumerate() {
            let pairs = (0..k).step_by(2).map(|l| part(a, b, [i, n, k], l, l + 2));
            *c = f16::from_f32(pairs.sum());
        }
    }
}

mod wrong {
    use super::*;

    /// One of 32 partial sums is lost.
    #[kernel_bench(of = half_product, parallel)]
    fn loses_a_split(a: &[f16], b: &[f16], [_, n, k]: [usize; 3], c: &mut [f16]) {
        let share = k.div_ceil(SPLITS);
        c.par_iter_mut().enumerate().for_each(|(i, c)| {
            let parts = (0..SPLITS - 1).map(|s| part(a, b, [i, n, k], s * share, (s + 1) * share));
            *c = f16::from_f32(parts.sum());
        });
    }

    /// Sums in half precision, which do not grow beyond 2048 times a term.
    #[kernel_bench(of = half_product)]
    fn sums_in_f16(a: &[f16], b: &[f16], [_, n, k]: [usize; 3], c: &mut [f16]) {
        for (i, c) in c.iter_mut().enumerate() {
            let terms = (0..k).map(|l| f16::from_f32(part(a, b, [i, n, k], l, l + 1)));
            *c = terms.fold(f16::ZERO, |sum, term| sum + term);
        }
    }

    /// Pairs of products, without the last one of an odd number.
    #[kernel_bench(of = half_product)]
    fn even_number_of_products(a: &[f16], b: &[f16], [_, n, k]: [usize; 3], c: &mut [f16]) {
        for (i, c) in c.iter_mut().enumerate() {
            *c = f16::from_f32(part(a, b, [i, n, k], 0, k & !1));
        }
    }
}
