//! Elementary functions of `f32` without branches or calls, so that loops over them are vectorised.
//!
//! Each is good to a few units in the last place on its whole range, NaN included; the tests hold them against `f64`. All
//! polynomials and fractions are fitted to `f64` so that the largest relative error is the least possible.
//!
//! Products and sums are fused (`mul_add`): one instruction and one rounding in the vector versions of a loop. On x86-64
//! without FMA, that is before 2013, each is a call: slow, but right.

/// e^x. Below −87.7 the result is 0, above 88.4 infinity.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // NaN passes both comparisons.
    let x = if x < SMALLEST { SMALLEST } else { x };
    let x = if x > LARGEST { LARGEST } else { x };
    exp_inside(x, 1.0)
}

/// e^x of x that is not positive, which [`exp`] gives as well, with less to check.
#[inline(always)]
pub fn exp_of_negative(x: f32) -> f32 {
    exp_inside(if x < SMALLEST { SMALLEST } else { x }, 1.0)
}

/// Rounded to a multiple of ln 2 this is −127·ln 2, whose power is taken for 0.
const SMALLEST: f32 = -87.7;

/// Rounded to a multiple of ln 2 this is 128·ln 2, whose power is taken for infinity.
const LARGEST: f32 = 88.7;

/// e^±x for ±x from [`SMALLEST`] to [`LARGEST`]; the sign goes into the constants.
///
/// x = n·ln 2 + r with |r| ≤ ½·ln 2 (Cody and Waite: ln 2 in two parts, so that r loses nothing), e^r by a polynomial with
/// an error below 2⁻²³ and 2^n by its bits.
#[inline(always)]
fn exp_inside(x: f32, sign: f32) -> f32 {
    const LN_2_HIGH: f32 = 0.693_145_75;
    const LN_2_LOW: f32 = 1.428_606_8e-6;
    /// Adding 1.5·2²³ rounds to an integer, which is then in the low bits; 127 is what is added to an exponent, so that
    /// these bits moved to their place are 2^n: 0 for −127, and infinity for 128.
    const ROUND: f32 = 12_582_912.0 + 127.0;
    let shifted = x.mul_add(sign * std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-sign * LN_2_LOW, n.mul_add(-sign * LN_2_HIGH, x));
    let others = [4.189_797_5e-2, sign * 1.666_763_7e-1, 4.999_915e-1, sign * 9.999_997e-1, 1.0];
    polynomial(r, sign * 8.290_308_5e-3, others) * f32::from_bits(shifted.to_bits() << 23)
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    gated(1.0, x)
}

/// x / (1 + e^−gate), which is x times the sigmoid of the gate.
#[inline(always)]
pub fn gated(x: f32, gate: f32) -> f32 {
    let gate = if gate < -LARGEST { -LARGEST } else { gate };
    let gate = if gate > -SMALLEST { -SMALLEST } else { gate };
    x / (1.0 + exp_inside(gate, -1.0))
}

/// The hyperbolic tangent: x times a fraction of polynomials of x², with an error below 2⁻²⁵ before rounding.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    /// From here on the result is 1.
    const FAR: f32 = 9.02;
    const ABOVE: [f32; 4] = [2.058_332_8e-5, 3.494_025_2e-3, 1.337_971e-1, 1.0];
    const BELOW: [f32; 4] = [3.283_077_4e-4, 2.587_103_7e-2, 4.671_302_4e-1, 1.0];
    let magnitude = at_most(x.abs(), FAR);
    let square = magnitude * magnitude;
    let fraction =
        polynomial(square, 1.331_886_6e-8, ABOVE) / polynomial(square, 7.761_933_6e-7, BELOW);
    let value = at_most(magnitude * fraction, 1.0); // where rounding would lead beyond
    value.copysign(x)
}

/// The error function.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    erf_of_magnitude(x.abs()).copysign(x)
}

/// x · (1 + erf(x / √2)) / 2. As the error function is odd, only magnitudes are of interest: (x + |x| · erf(|x| / √2)) / 2.
///
/// Far below zero both terms cancel: the error is relative to x, not to the result.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let magnitude = x.abs();
    let erf = erf_of_magnitude(magnitude * std::f32::consts::FRAC_1_SQRT_2);
    0.5 * magnitude.mul_add(erf, x)
}

/// The error function of what is not negative: x times a fraction of polynomials of x², with an error below 2⁻²⁵ before
/// rounding.
#[inline(always)]
fn erf_of_magnitude(x: f32) -> f32 {
    /// From here on the result is 1.
    const FAR: f32 = 3.92;
    const ABOVE: [f32; 5] = [
        2.848_816e-4,
        3.765_613_3e-3,
        5.274_871e-2,
        1.904_065_5e-1,
        std::f32::consts::FRAC_2_SQRT_PI,
    ];
    const BELOW: [f32; 5] = [1.162_532_6e-3, 1.496_921e-2, 1.141_091_2e-1, 5.020_761_5e-1, 1.0];
    let x = at_most(x, FAR);
    let square = x * x;
    let fraction =
        polynomial(square, 2.050_073_4e-6, ABOVE) / polynomial(square, 3.809_151e-5, BELOW);
    at_most(x * fraction, 1.0) // where rounding would lead beyond
}

/// The smaller of both; NaN stays.
#[inline(always)]
fn at_most(x: f32, limit: f32) -> f32 {
    if x > limit { limit } else { x }
}

/// A polynomial by Horner's rule, from the highest power to the constant.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, highest: f32, others: [f32; N]) -> f32 {
    let mut value = highest;
    for coefficient in others {
        value = value.mul_add(x, coefficient);
    }
    value
}

/// Sine and cosine of a fraction of a turn in units of 2⁻³².
///
/// An integer wraps around as an angle does, so nothing is lost to the reduction: the upper bits are the nearest quarter of a
/// turn, and the rest is within ⅛ turn of it, where the series need few terms (the next are below 2⁻²⁸).
#[inline(always)]
pub fn sin_cos_of_turn(turn: u32) -> (f32, f32) {
    const RADIANS: f32 = (std::f64::consts::TAU / 4_294_967_296.0) as f32;
    let quarter = turn.wrapping_add(1 << 29) >> 30;
    let x = turn.wrapping_sub(quarter << 30) as i32 as f32 * RADIANS;
    let square = x * x;
    let sine = polynomial(square, 1.0 / 362_880.0, [-1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0]);
    let sine = (x * square).mul_add(sine, x);
    let terms = [1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0];
    let cosine = polynomial(square, -1.0 / 3_628_800.0, terms);
    // A quarter turn takes sine to cosine and cosine to −sine.
    let (sin, cos) = if quarter & 1 == 0 { (sine, cosine) } else { (cosine, sine) };
    let sign = |is_negative: u32| (is_negative & 1) << 31;
    let sin = f32::from_bits(sin.to_bits() ^ sign(quarter >> 1));
    let cos = f32::from_bits(cos.to_bits() ^ sign((quarter + 1) >> 1));
    (sin, cos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest error over a range, in units of f32's round-off: relative to the result, or to `least` where it is smaller.
    fn worst(range: (f64, f64), least: f64, ours: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let steps = 200_000;
        let error = |i: i32| {
            let x = (range.0 + (range.1 - range.0) * f64::from(i) / f64::from(steps)) as f32;
            let expected = exact(f64::from(x));
            (f64::from(ours(x)) - expected).abs()
                / expected.abs().max(least)
                / (f64::from(f32::EPSILON) / 2.0)
        };
        (0..=steps).map(error).fold(0.0, f64::max)
    }

    /// The error function by its Taylor series below 3, and by Lentz's continued fraction of erfc above.
    fn erf_f64(x: f64) -> f64 {
        let magnitude = x.abs();
        if magnitude < 3.0 {
            let mut term = magnitude;
            let mut sum = magnitude;
            for n in 1..100 {
                term *= -x * x / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            return (sum * std::f64::consts::FRAC_2_SQRT_PI).copysign(x);
        }
        let fraction = (1..80).rev().fold(magnitude, |f, n| magnitude + f64::from(n) / 2.0 / f);
        (1.0 - (-x * x).exp() / fraction / std::f64::consts::PI.sqrt()).copysign(x)
    }

    fn gelu_f64(x: f64) -> f64 {
        0.5 * x * (1.0 + erf_f64(x / 2f64.sqrt()))
    }

    #[test]
    fn all_are_good_to_a_few_units_in_the_last_place() {
        let found = [
            ("exp", worst((-87.0, 88.0), 0.0, exp, f64::exp), 4.0),
            ("sigmoid", worst((-80.0, 80.0), 0.0, sigmoid, |x| 1.0 / (1.0 + (-x).exp())), 6.0),
            ("tanh", worst((-12.0, 12.0), 0.0, tanh, f64::tanh), 6.0),
            ("erf", worst((-5.0, 5.0), 0.0, erf, erf_f64), 6.0),
            ("gelu", worst((0.0, 9.0), 1e-30, gelu, gelu_f64), 6.0),
            (
                "gelu below zero",
                worst((-30.0, -1e-3), 1.0, |x| gelu(x) / x, |x| gelu_f64(x) / x),
                6.0,
            ),
        ];
        for (name, error, limit) in found {
            assert!(error < limit, "{name}: {error} units of round-off");
        }
    }

    #[test]
    fn sine_and_cosine_are_good_to_a_unit_in_the_last_place_of_one() {
        let steps = (0..=u32::MAX).step_by(65_521);
        let nodes = (0..8u32).flat_map(|i| [i << 29, (i << 29).wrapping_sub(1)]);
        for turn in steps.chain(nodes) {
            let angle = f64::from(turn) / 4_294_967_296.0 * std::f64::consts::TAU;
            let (sin, cos) = sin_cos_of_turn(turn);
            let error =
                (f64::from(sin) - angle.sin()).abs().max((f64::from(cos) - angle.cos()).abs());
            assert!(error < f64::from(f32::EPSILON), "{turn}: {error}");
        }
    }

    #[test]
    fn ends_of_the_range_and_nan_are_what_they_should_be() {
        assert_eq!([exp(-1000.0), exp(f32::NEG_INFINITY), exp(0.0)], [0.0, 0.0, 1.0]);
        assert_eq!([exp_of_negative(f32::NEG_INFINITY), exp_of_negative(0.0)], [0.0, 1.0]);
        assert_eq!([exp(89.0), exp(f32::INFINITY)], [f32::INFINITY; 2]);
        assert_eq!(
            [tanh(40.0), tanh(f32::NEG_INFINITY), erf(9.0), erf(-f32::INFINITY)],
            [1.0, -1.0, 1.0, -1.0]
        );
        assert_eq!([sigmoid(-200.0), sigmoid(200.0)], [0.0, 1.0]);
        assert_eq!([gelu(-40.0), gelu(40.0)], [0.0, 40.0]);
        assert!(
            [exp, exp_of_negative, sigmoid, tanh, erf, gelu]
                .iter()
                .all(|function| function(f32::NAN).is_nan())
        );
        assert!(tanh(-0.0).is_sign_negative() && erf(-0.0).is_sign_negative());
    }
}
