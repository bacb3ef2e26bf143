//! Elementary functions of `f32` without branches or calls, so that loops over them are vectorised.
//!
//! Each is good to a few units in the last place on its whole range, NaN included; the tests hold them against `f64`.

/// e^x. Below −87.3 the result is 0 instead of a subnormal number, above 88.7 infinity.
///
/// x = n·ln 2 + r with |r| ≤ ½·ln 2 (Cody and Waite: ln 2 in two parts, so that r loses nothing), e^r by its series up to
/// r⁷, whose next term is below 2⁻²⁸, and 2^n by its bits.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LN_2_HIGH: f32 = 0.693_145_75;
    const LN_2_LOW: f32 = 1.428_606_8e-6;
    /// Adding and subtracting it rounds to an integer: 1.5·2²³.
    const ROUND: f32 = 12_582_912.0;
    const SMALLEST: f32 = -87.336_54;
    const LARGEST: f32 = 88.722_84;
    let inside = if x < SMALLEST { SMALLEST } else { x };
    let inside = if inside > LARGEST { LARGEST } else { inside };
    let shifted = inside * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (inside - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut series = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * r + coefficient;
    }
    // 2^n in two factors, as n may be 128; the integer is in the low bits of the shifted number.
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    let half = n >> 1;
    let value = series * power(half) * power(n.wrapping_sub(half));
    let value = if x < SMALLEST { 0.0 } else { value };
    if x > LARGEST { f32::INFINITY } else { value }
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent: by e^2x away from zero, and near zero, where that loses digits, by its continued fraction.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let away = 1.0 - 2.0 / (exp(2.0 * magnitude) + 1.0);
    let square = x * x;
    let near = magnitude * (945.0 + square * (105.0 + square))
        / (945.0 + square * (420.0 + square * 15.0));
    // The comparison is false for NaN, which the fraction hands on.
    let value = if magnitude > 0.55 { away } else { near };
    value.copysign(x)
}

/// The error function: near zero x times a polynomial of x², away from it 1 − e^(a polynomial of x), both fitted to `f64`
/// by least squares at Chebyshev's points, with errors below 2⁻²⁸ before rounding.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    /// Where one becomes the other.
    const NEAR: f32 = 0.92;
    /// From here on the result is 1.
    const FAR: f32 = 4.0;
    let magnitude = x.abs();
    let square = x * x;
    let mut near = 8.293_491_6e-5;
    for coefficient in [
        -8.124_284e-4,
        5.199_379_3e-3,
        -2.685_871_9e-2,
        1.128_368_3e-1,
        -3.761_263_2e-1,
        std::f32::consts::FRAC_2_SQRT_PI,
    ] {
        near = near * square + coefficient;
    }
    let bounded = if magnitude > FAR { FAR } else { magnitude };
    let mut away = -1.985_453_6e-4;
    for coefficient in
        [3.068_031e-3, -2.232_307_6e-2, 1.041_259_5e-1, 6.369_66e-1, 1.127_801_3, 1.658_613_3e-4]
    {
        away = away * bounded + coefficient;
    }
    let away = 1.0 - exp(-away);
    // The comparison is false for NaN, which the polynomial hands on.
    let value = if magnitude > NEAR { away } else { near * magnitude };
    value.copysign(x)
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
    let mut sine = 1.0 / 362_880.0;
    for coefficient in [-1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0] {
        sine = sine * square + coefficient;
    }
    let sine = x + x * square * sine;
    let mut cosine = -1.0 / 3_628_800.0;
    for coefficient in [1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0] {
        cosine = cosine * square + coefficient;
    }
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

    #[test]
    fn all_are_good_to_a_few_units_in_the_last_place() {
        let found = [
            ("exp", worst((-87.0, 88.0), 0.0, exp, f64::exp), 4.0),
            ("sigmoid", worst((-80.0, 80.0), 0.0, sigmoid, |x| 1.0 / (1.0 + (-x).exp())), 6.0),
            ("tanh", worst((-12.0, 12.0), 0.0, tanh, f64::tanh), 6.0),
            ("erf", worst((-5.0, 5.0), 0.0, erf, erf_f64), 6.0),
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
        assert_eq!([exp(89.0), exp(f32::INFINITY)], [f32::INFINITY; 2]);
        assert_eq!(
            [tanh(40.0), tanh(f32::NEG_INFINITY), erf(9.0), erf(-f32::INFINITY)],
            [1.0, -1.0, 1.0, -1.0]
        );
        assert_eq!([sigmoid(-200.0), sigmoid(200.0)], [0.0, 1.0]);
        assert!([exp, sigmoid, tanh, erf].iter().all(|function| function(f32::NAN).is_nan()));
        assert!(tanh(-0.0).is_sign_negative() && erf(-0.0).is_sign_negative());
    }
}
