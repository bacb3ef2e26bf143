//! Normalisation by rows.

use kbench::prelude::*;
use rayon::prelude::*;

const EPSILON: f64 = 1e-5;

/// Each row of `out` ← x / √(mean(x²) + ε)
#[kernel_bench(
    sizes = { rows: [4, 16], dim: [64, 1000] },
    inputs = |rows, dim| (normal(rows * dim), dim, zeros(rows * dim)),
)]
fn rms_norm(x: &[f32], dim: usize, out: &mut [f32]) {
    rows(x, dim, out, |x, out| {
        let squares: f64 = x.iter().map(|x| f64::from(*x).powi(2)).sum();
        scale(x, 0.0, 1.0 / (squares / x.len() as f64 + EPSILON).sqrt(), out);
    });
}

/// Each row of `out` ← (x − mean(x)) / √(var(x) + ε)
#[kernel_bench(
    sizes = { rows: [4, 16], dim: [64, 1000] },
    inputs = |rows, dim| (normal(rows * dim), dim, zeros(rows * dim)),
)]
fn layer_norm(x: &[f32], dim: usize, out: &mut [f32]) {
    rows(x, dim, out, |x, out| {
        let n = x.len() as f64;
        let mean = x.iter().copied().map(f64::from).sum::<f64>() / n;
        let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n;
        scale(x, mean, 1.0 / (variance + EPSILON).sqrt(), out);
    });
}

fn rows(x: &[f32], dim: usize, out: &mut [f32], row: impl Fn(&[f32], &mut [f32])) {
    x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)).for_each(|(x, out)| row(x, out));
}

fn scale(x: &[f32], mean: f64, factor: f64, out: &mut [f32]) {
    x.iter().zip(out).for_each(|(x, out)| *out = ((f64::from(*x) - mean) * factor) as f32);
}

mod right {
    use super::*;

    /// Squares in four sums, and rows on all cores.
    #[kernel_bench(of = rms_norm, parallel)]
    fn fused(x: &[f32], dim: usize, out: &mut [f32]) {
        x.par_chunks_exact(dim).zip(out.par_chunks_exact_mut(dim)).for_each(|(x, out)| {
            let mut sums = [0.0; 4];
            for (i, x) in x.iter().enumerate() {
                sums[i % 4] = f64::from(*x).mul_add(f64::from(*x), sums[i % 4]);
            }
            let mean = sums.iter().sum::<f64>() / dim as f64;
            scale(x, 0.0, (mean + EPSILON).sqrt().recip(), out);
        });
    }

    /// In `f32`, relative to the largest number, so that no square is out of range.
    #[kernel_bench(of = rms_norm)]
    fn relative_to_largest(x: &[f32], dim: usize, out: &mut [f32]) {
        rows(x, dim, out, |x, out| {
            let large = x.iter().fold(1.0f32, |large, x| large.max(x.abs()));
            let squares: f32 = x.iter().map(|x| (x / large) * (x / large)).sum();
            let epsilon = EPSILON as f32 / large / large;
            let root = (squares / dim as f32 + epsilon).sqrt();
            out.iter_mut().zip(x).for_each(|(out, x)| *out = x / large / root);
        });
    }

    /// Mean and variance in one pass, by Welford's method.
    #[kernel_bench(of = layer_norm)]
    fn welford(x: &[f32], dim: usize, out: &mut [f32]) {
        rows(x, dim, out, |x, out| {
            let (mut mean, mut squares) = (0.0, 0.0);
            for (x, n) in x.iter().zip(1..) {
                let delta = f64::from(*x) - mean;
                mean += delta / f64::from(n);
                squares += delta * (f64::from(*x) - mean);
            }
            scale(x, mean, 1.0 / (squares / dim as f64 + EPSILON).sqrt(), out);
        });
    }

    /// Moments relative to the first number of the row.
    #[kernel_bench(of = layer_norm, parallel)]
    fn relative_to_first(x: &[f32], dim: usize, out: &mut [f32]) {
        x.par_chunks_exact(dim).zip(out.par_chunks_exact_mut(dim)).for_each(|(x, out)| {
            let first = f64::from(x[0]);
            let shifted = || x.iter().map(|x| f64::from(*x) - first);
            let mean = shifted().sum::<f64>() / dim as f64;
            let square = shifted().map(|x| x * x).sum::<f64>() / dim as f64;
            let variance = (square - mean * mean).max(0.0);
            scale(x, first + mean, 1.0 / (variance + EPSILON).sqrt(), out);
        });
    }
}

mod wrong {
    use super::*;

    /// ε is added to the root, where it counts twice as much, or far less if x is small.
    #[kernel_bench(of = rms_norm)]
    fn epsilon_outside(x: &[f32], dim: usize, out: &mut [f32]) {
        rows(x, dim, out, |x, out| {
            let squares: f64 = x.iter().map(|x| f64::from(*x).powi(2)).sum();
            scale(x, 0.0, 1.0 / ((squares / x.len() as f64).sqrt() + EPSILON), out);
        });
    }

    /// The sum of the squares of large numbers is infinite.
    #[kernel_bench(of = rms_norm)]
    fn overflowing_mean_square(x: &[f32], dim: usize, out: &mut [f32]) {
        rows(x, dim, out, |x, out| {
            let squares: f32 = x.iter().map(|x| x * x).sum();
            scale(x, 0.0, 1.0 / (f64::from(squares) / x.len() as f64 + EPSILON).sqrt(), out);
        });
    }

    /// The variance of a sample, with n − 1.
    #[kernel_bench(of = layer_norm)]
    fn sample_variance(x: &[f32], dim: usize, out: &mut [f32]) {
        rows(x, dim, out, |x, out| {
            let mean = x.iter().copied().map(f64::from).sum::<f64>() / dim as f64;
            let squares = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
            let variance = squares / dim.saturating_sub(1).max(1) as f64;
            scale(x, mean, 1.0 / (variance + EPSILON).sqrt(), out);
        });
    }

    /// E(x²) − E(x)² cancels where the mean is large.
    #[kernel_bench(of = layer_norm)]
    fn cancelling_variance(x: &[f32], dim: usize, out: &mut [f32]) {
        rows(x, dim, out, |x, out| {
            let mean = x.iter().sum::<f32>() / dim as f32;
            let square = x.iter().map(|x| x * x).sum::<f32>() / dim as f32;
            let variance = f64::from((square - mean * mean).max(0.0));
            scale(x, f64::from(mean), 1.0 / (variance + EPSILON).sqrt(), out);
        });
    }
}
