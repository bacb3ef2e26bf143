//! Arithmetic on floats, element by element.

use kbench::prelude::*;
use rayon::prelude::*;

/// out ← √(x² + y²)
#[kernel_bench(sizes = [256, 4096], inputs = |n| (normal(n), normal(n), zeros(n)))]
fn hypot(x: &[f32], y: &[f32], out: &mut [f32]) {
    x.iter().zip(y).zip(out).for_each(|((x, y), out)| *out = x.hypot(*y));
}

/// out ← the lengths of vectors.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (points(n), zeros(n)))]
fn lengths(points: &[[f32; 3]], out: &mut [f32]) {
    for (point, out) in points.iter().zip(out) {
        *out = point.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32;
    }
}

fn points(n: usize) -> Vec<[f32; 3]> {
    let numbers: Vec<f32> = uniform(3 * n);
    numbers.chunks_exact(3).map(|x| [x[0], x[1], x[2]]).collect()
}

/// out ← 1 / √x
#[kernel_bench(sizes = [256, 4096], inputs = |n| (range(n, 0.5..2.0), zeros(n)))]
fn inverse_root(x: &[f32], out: &mut [f32]) {
    x.iter().zip(out).for_each(|(x, out)| *out = 1.0 / x.sqrt());
}

/// 1 / √x by the bits of x and so many of Newton's steps.
fn newton(x: f32, steps: usize) -> f32 {
    let guess = f32::from_bits(0x5f37_59df - (x.to_bits() >> 1));
    (0..steps).fold(guess, |y, _| y * (1.5 - 0.5 * x * y * y))
}

/// out ← x, limited to a range.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), -1.0, 1.0, zeros(n)))]
fn limit(x: &[f32], low: f32, high: f32, out: &mut [f32]) {
    x.iter().zip(out).for_each(|(x, out)| *out = x.clamp(low, high));
}

/// out ← Σ x^k / (k + 1) up to k = 7
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn polynomial(x: &[f32], out: &mut [f32]) {
    for (x, out) in x.iter().zip(out) {
        *out = (1..=8).rev().fold(0.0, |sum, k| sum * f64::from(*x) + 1.0 / f64::from(k)) as f32;
    }
}

/// Products of complex numbers, whose parts lie apart.
#[kernel_bench(
    sizes = [256, 4096],
    inputs = |n| (uniform(n), uniform(n), uniform(n), uniform(n), zeros(n), zeros(n)),
)]
fn complex_product(
    a: &[f32],
    b: &[f32],
    c: &[f32],
    d: &[f32],
    real: &mut [f32],
    imaginary: &mut [f32],
) {
    complex([a, b, c, d], real, imaginary, |[a, b, c, d]| (a * c - b * d, a * d + b * c));
}

/// Applies f to (a + bi, c + di), in `f64`, where no product overflows.
fn complex(
    [a, b, c, d]: [&[f32]; 4],
    real: &mut [f32],
    imaginary: &mut [f32],
    f: impl Fn([f64; 4]) -> (f64, f64),
) {
    for i in 0..a.len() {
        let (re, im) = f([a[i], b[i], c[i], d[i]].map(f64::from));
        (real[i], imaginary[i]) = (re as f32, im as f32);
    }
}

mod right {
    use super::*;

    /// By the quotient of the smaller and the larger one.
    #[kernel_bench(of = hypot)]
    fn scaled(x: &[f32], y: &[f32], out: &mut [f32]) {
        for ((x, y), out) in x.iter().zip(y).zip(out) {
            let (small, large) = (x.abs().min(y.abs()), x.abs().max(y.abs()));
            let quotient = if large == 0.0 { 0.0 } else { small / large };
            *out = large * (1.0 + quotient * quotient).sqrt();
        }
    }

    /// In `f64`, whose range has room for squares.
    #[kernel_bench(of = hypot, parallel)]
    fn in_f64(x: &[f32], y: &[f32], out: &mut [f32]) {
        out.par_iter_mut().zip(x).zip(y).for_each(|((out, x), y)| {
            let (x, y) = (f64::from(*x), f64::from(*y));
            *out = x.mul_add(x, y * y).sqrt() as f32;
        });
    }

    /// Divided by the largest component first.
    #[kernel_bench(of = lengths)]
    fn scaled_lengths(points: &[[f32; 3]], out: &mut [f32]) {
        for (point, out) in points.iter().zip(out) {
            let large = point.iter().fold(0.0f32, |large, x| large.max(x.abs()));
            let square = |x: &f32| (x / large) * (x / large);
            let rest = || large * point.iter().map(square).sum::<f32>().sqrt();
            *out = if large == 0.0 { 0.0 } else { rest() };
        }
    }

    /// Newton's method, and the processor's root for what has no usual bits.
    #[kernel_bench(of = inverse_root)]
    fn four_newton_steps(x: &[f32], out: &mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            let is_usual = x.is_normal() && *x > 0.0;
            *out = if is_usual { newton(*x, 4) } else { 1.0 / x.sqrt() };
        }
    }

    /// By comparisons.
    #[kernel_bench(of = limit)]
    fn limited_by_branches(x: &[f32], low: f32, high: f32, out: &mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            *out = if *x < low {
                low
            } else if *x > high {
                high
            } else {
                *x
            };
        }
    }

    /// By Estrin's scheme.
    #[kernel_bench(of = polynomial)]
    fn estrin(x: &[f32], out: &mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            let x = f64::from(*x);
            let pair = |k: f64| 1.0 / k + x / (k + 1.0);
            let (low, high) = (pair(1.0) + x * x * pair(3.0), pair(5.0) + x * x * pair(7.0));
            *out = (low + x.powi(4) * high) as f32;
        }
    }

    /// By three products in place of four.
    #[kernel_bench(of = complex_product)]
    fn three_products(
        a: &[f32],
        b: &[f32],
        c: &[f32],
        d: &[f32],
        real: &mut [f32],
        imaginary: &mut [f32],
    ) {
        complex([a, b, c, d], real, imaginary, |[a, b, c, d]| {
            let (low, high, all) = (a * c, b * d, (a + b) * (c + d));
            (low - high, all - low - high)
        });
    }
}

mod wrong {
    use super::*;

    /// The squares of large numbers are infinite, and those of small ones 0.
    #[kernel_bench(of = hypot)]
    fn overflowing_squares(x: &[f32], y: &[f32], out: &mut [f32]) {
        x.iter().zip(y).zip(out).for_each(|((x, y), out)| *out = (x * x + y * y).sqrt());
    }

    /// The squares of large numbers are infinite, and those of small ones 0.
    #[kernel_bench(of = lengths)]
    fn overflowing_lengths(points: &[[f32; 3]], out: &mut [f32]) {
        for (point, out) in points.iter().zip(out) {
            *out = point.iter().map(|x| x * x).sum::<f32>().sqrt();
        }
    }

    /// One of Newton's steps leaves an error of a fifth of a percent.
    #[kernel_bench(of = inverse_root)]
    fn one_newton_step(x: &[f32], out: &mut [f32]) {
        x.iter().zip(out).for_each(|(x, out)| *out = newton(*x, 1));
    }

    /// The limits are exchanged.
    #[kernel_bench(of = limit)]
    fn exchanged_limits(x: &[f32], low: f32, high: f32, out: &mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            *out = if *x > high {
                low
            } else if *x < low {
                high
            } else {
                *x
            };
        }
    }

    /// i² is taken for 1.
    #[kernel_bench(of = complex_product)]
    fn wrong_sign(
        a: &[f32],
        b: &[f32],
        c: &[f32],
        d: &[f32],
        real: &mut [f32],
        imaginary: &mut [f32],
    ) {
        complex([a, b, c, d], real, imaginary, |[a, b, c, d]| (a * c + b * d, a * d + b * c));
    }
}

fn small_numbers(n: usize) -> Vec<f32> {
    let numbers: Vec<f32> = uniform(n);
    assert!(numbers.iter().all(|x| x.abs() <= 1.0), "larger than 1");
    numbers
}

/// Its inputs refuse what it is not for.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (small_numbers(n), zeros(n)))]
fn complement(x: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(x).for_each(|(out, x)| *out = (1.0 - x * x).sqrt());
}
