//! Functions of one number, as layers of networks apply them.

use kbench::prelude::*;
use rayon::prelude::*;

use crate::SOURCE;

/// out ← f(x), element by element.
fn map(x: &[f32], out: &mut [f32], f: impl Fn(f32) -> f32) {
    x.iter().zip(out).for_each(|(x, out)| *out = f(*x));
}

/// out ← tanh(x)
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn tanh(x: &[f32], out: &mut [f32]) {
    map(x, out, f32::tanh);
}

/// out ← 1 / (1 + exp(−x))
#[kernel_bench(sizes = [256, 4096], inputs = |n| (normal(n), zeros(n)))]
fn sigmoid(x: &[f32], out: &mut [f32]) {
    map(x, out, logistic);
}

fn logistic(x: f32) -> f32 {
    if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
}

/// out ← ln(1 + exp(x))
#[kernel_bench(sizes = [256, 4096], inputs = |n| (normal(n), zeros(n)))]
fn softplus(x: &[f32], out: &mut [f32]) {
    map(x, out, |x| x.max(0.0) + (-x.abs()).exp().ln_1p());
}

/// out ← x · (1 + tanh(√(2/π) · (x + 0.044715 x³))) / 2
#[kernel_bench(sizes = [256, 4096], inputs = |n| (normal(n), zeros(n)))]
fn gelu(x: &[f32], out: &mut [f32]) {
    map(x, out, |x| gelu_with(x, 0.044_715));
}

/// By the exponential, as 1 + tanh would cancel where x is negative; in `f64`, so that the cube does not overflow.
fn gelu_with(x: f32, cubic: f64) -> f32 {
    let x = f64::from(x);
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + cubic * x * x * x);
    (x / (1.0 + (-2.0 * inner).exp())) as f32
}

/// out ← x · Φ(x), where Φ is the normal distribution.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (normal(n), zeros(n)))]
fn gelu_exact(x: &[f32], out: &mut [f32]) {
    map(x, out, |x| (f64::from(x) * normal_distribution(f64::from(x))) as f32);
}

/// Φ by its power series near 0, and by its continued fraction elsewhere.
fn normal_distribution(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let size = x.abs();
    if size < 3.0 {
        let (mut term, mut sum) = (x, x);
        for k in 1..60 {
            term *= x * x / f64::from(2 * k + 1);
            sum += term;
        }
        return 0.5 + density * sum;
    }
    let fraction = (1..60).rev().fold(size, |below, k| size + f64::from(k) / below);
    let tail = density / fraction;
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// out ← exp(x)
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn exp(x: &[f32], out: &mut [f32]) {
    map(x, out, f32::exp);
}

/// exp(x) as a polynomial on ±ln(2)/2, and the power of two that it is to be multiplied with.
fn exp_parts(x: f32) -> (f32, i32) {
    let n = (x * std::f32::consts::LOG2_E).round();
    // ln 2 in two parts, of which the first has few digits: its product with n is exact.
    let r = n.mul_add(-355.0 / 512.0, x);
    let r = n.mul_add(2.121_944_4e-4, r);
    let factorials = [5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0_f32];
    (factorials.iter().fold(0.0, |sum: f32, f| sum.mul_add(r, 1.0 / f)), n as i32)
}

/// 2^n by its bits.
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((127i32.wrapping_add(n) << 23) as u32)
}

/// x ← max(x, 0), in place.
#[kernel_bench(sizes = [256, 50_000], inputs = |n| normal(n), in_place = reuse)]
fn relu(x: &mut [f32]) {
    x.iter_mut().filter(|x| **x < 0.0).for_each(|x| *x = 0.0);
}

/// out ← sin(π x), which no digit of a very large number tells.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)), reference = wave_f64)]
fn wave(x: &[f32], out: &mut [f32]) {
    map(x, out, |x| (std::f32::consts::PI * x).sin());
}

fn wave_f64(x: &[f64], out: &mut [f64]) {
    x.iter().zip(out).for_each(|(x, out)| *out = (std::f64::consts::PI * x).sin());
}

/// out ← exp(20 x), of which most are far smaller than the largest.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn steep(x: &[f32], out: &mut [f32]) {
    map(x, out, |x| (20.0 * x).exp());
}

/// out ← 1 / (x² + 1/1024), which is below the smallest normal number where x² is near the largest one.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)), reference = bump_f64)]
fn bump(x: &[f32], out: &mut [f32]) {
    map(x, out, |x| 1.0 / (x * x + 1.0 / 1024.0));
}

fn bump_f64(x: &[f64], out: &mut [f64]) {
    x.iter().zip(out).for_each(|(x, out)| *out = 1.0 / (x * x + 1.0 / 1024.0));
}

mod right {
    use super::*;

    /// Whole turns are taken away before.
    #[kernel_bench(of = wave)]
    fn wave_of_the_rest(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| (std::f32::consts::PI * (x - 2.0 * (0.5 * x).round())).sin());
    }

    /// The fourth power of a smaller exponential.
    #[kernel_bench(of = steep)]
    fn steep_by_squares(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| {
            let square = |x: f32| x * x;
            square(square((5.0 * x).exp()))
        });
    }

    /// Fused, so that the square is not rounded.
    #[kernel_bench(of = bump)]
    fn fused_bump(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| x.mul_add(x, 1.0 / 1024.0).recip());
    }

    /// By exp(2x) − 1 of a number that is limited.
    #[kernel_bench(of = tanh)]
    fn limited_expm1(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| {
            let e = (2.0 * x.abs().min(10.0)).exp_m1();
            (e / (e + 2.0)).copysign(x)
        });
    }

    /// By exp(−2|x|) − 1, which cannot overflow.
    #[kernel_bench(of = tanh)]
    fn negative_expm1(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| {
            let e = (-2.0 * x.abs()).exp_m1();
            (-e / (e + 2.0)).copysign(x)
        });
    }

    /// By the hyperbolic tangent, but where that would cancel.
    #[kernel_bench(of = sigmoid)]
    fn by_tanh(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| if x < -4.0 { logistic(x) } else { 0.5 + 0.5 * (0.5 * x).tanh() });
    }

    /// The argument itself where the exponential is large.
    #[kernel_bench(of = softplus)]
    fn linear_above_twenty(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| if x > 20.0 { x } else { x.exp().ln_1p() });
    }

    /// By a power of two.
    #[kernel_bench(of = gelu)]
    fn gelu_by_power_of_two(x: &[f32], out: &mut [f32]) {
        let factor = -2.0 * (2.0 / std::f64::consts::PI).sqrt() * std::f64::consts::LOG2_E;
        map(x, out, |x| {
            let x = f64::from(x);
            (x / (1.0 + (factor * x * (1.0 + 0.044_715 * x * x)).exp2())) as f32
        });
    }

    /// The distribution by formula 7.1.26 of Abramowitz and Stegun, which is good to 1.5e-7.
    #[kernel_bench(of = gelu_exact)]
    fn gelu_by_rational_erf(x: &[f32], out: &mut [f32]) {
        const TERMS: [f64; 5] =
            [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
        map(x, out, |x| {
            let x = f64::from(x);
            let size = x.abs() * std::f64::consts::FRAC_1_SQRT_2;
            let t = 1.0 / (1.0 + 0.327_591_1 * size);
            let tail = 0.5 * TERMS.iter().fold(0.0, |sum, a| (sum + a) * t) * (-size * size).exp();
            (x * if x < 0.0 { tail } else { 1.0 - tail }) as f32
        });
    }

    /// By a polynomial and a power of two in two factors, so that neither is out of range.
    #[kernel_bench(of = exp)]
    fn reduced_polynomial(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| {
            let (polynomial, n) = exp_parts(x.clamp(-110.0, 100.0));
            polynomial * power_of_two(n / 2) * power_of_two(n - n / 2)
        });
    }

    /// On all cores.
    #[kernel_bench(of = relu, parallel)]
    fn relu_in_chunks(x: &mut [f32]) {
        x.par_chunks_mut(1000).for_each(relu);
    }

    /// By the sign bit, without a comparison.
    #[kernel_bench(of = relu)]
    fn relu_by_mask(x: &mut [f32]) {
        x.iter_mut().for_each(|x| {
            let bits = x.to_bits();
            *x = f32::from_bits(bits & !(((bits as i32) >> 31) as u32));
        });
    }
}

mod wrong {
    use super::*;

    /// The quotient of two infinities where x is large.
    #[kernel_bench(of = tanh)]
    fn overflowing_quotient(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| ((2.0 * x).exp() - 1.0) / ((2.0 * x).exp() + 1.0));
    }

    /// The quotient of two infinities where x is large.
    #[kernel_bench(of = sigmoid)]
    fn overflowing_exponential(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| x.exp() / (1.0 + x.exp()));
    }

    /// The logarithm of infinity where x is large.
    #[kernel_bench(of = softplus)]
    fn overflowing_logarithm(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| (1.0 + x.exp()).ln());
    }

    /// The argument itself from 5 on, where the exponential is not large enough.
    #[kernel_bench(of = softplus)]
    fn linear_above_five(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| if x > 5.0 { x } else { x.exp().ln_1p() });
    }

    /// Two digits of the constant are missing.
    #[kernel_bench(of = gelu)]
    fn rounded_constant(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| gelu_with(x, 0.044));
    }

    /// The quick formula x · σ(1.702 x), which is off by up to 0.02.
    #[kernel_bench(of = gelu_exact)]
    fn quick_formula(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| x * logistic(1.702 * x));
    }

    /// A power series that is cut off, and right near 0 alone.
    #[kernel_bench(of = exp)]
    fn without_range_reduction(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| (1..14).rev().fold(1.0, |sum, k| 1.0 + x / k as f32 * sum));
    }

    /// The exponent runs into the sign where the result is out of range.
    #[kernel_bench(of = exp)]
    fn exponent_wraps(x: &[f32], out: &mut [f32]) {
        map(x, out, |x| {
            let (polynomial, n) = exp_parts(x);
            polynomial * power_of_two(n)
        });
    }

    /// Threads are for vectors of four elements, and none is for those after the last.
    #[kernel_bench(of = relu, cuda)]
    fn relu_without_tail_cuda(gpu: &Gpu, x: &mut DeviceSlice<f32>) -> GpuResult<()> {
        let vectors = x.len() / 4;
        gpu.kernel(SOURCE, "relu_vectors")?.over(vectors.max(1), 256).arg(x).arg(vectors).launch()
    }
}
