//! Tests on means: Welch's (Welch 1947) with the degrees of freedom of Satterthwaite (1946) for repetitions that have
//! nothing to do with each other, and Student's for pairs; both on trimmed means (Yuen 1974).
//!
//! One launch in some hundreds goes astray as a whole. A mean would follow it, and its variance would hide everything
//! else; a mean that leaves a tenth of the values at either end out of the sum, with the variance that Yuen derived for
//! it, does neither. With fewer than ten values nothing is trimmed and the tests are the classical ones.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Share of the values at either end that is trimmed.
const TRIM: f64 = 0.1;

/// Above this many degrees of freedom statrs' quantile of Student's t loses digits; the expansion below does not.
const LARGE_DEGREES: f64 = 1e4;

/// A trimmed mean with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean of the values that are not trimmed.
    pub value: f64,
    /// Its standard error, from the winsorised variance.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub df: f64,
    /// Standard deviation of all values.
    pub deviation: f64,
}

impl Mean {
    /// The mean of some values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let cut = (TRIM * n as f64) as usize;
        let kept = sorted.get(cut..n - cut).filter(|kept| !kept.is_empty())?;
        let h = kept.len() as f64;
        let value = kept.iter().sum::<f64>() / h;
        let (least, most) = (kept[0], kept[kept.len() - 1]);
        let winsorised: Vec<f64> = sorted.iter().map(|v| v.clamp(least, most)).collect();
        let error = (squares(&winsorised) / (h * (h - 1.0).max(1.0))).sqrt();
        let deviation = (squares(&sorted) / (n as f64 - 1.0).max(1.0)).sqrt();
        Some(Mean { value, error, df: h - 1.0, deviation })
    }
}

/// Sum of the squared deviations from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|v| (v - mean).powi(2)).sum()
}

/// A test of whether a difference is zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// The difference.
    pub difference: f64,
    /// Its standard error.
    pub error: f64,
    /// The statistic.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided probability of a statistic at least this large when there is no difference.
    pub p: f64,
}

impl Test {
    /// Welch's test of `second` against `first`; `None` with fewer than two values on either side.
    pub fn welch(first: &[f64], second: &[f64]) -> Option<Self> {
        let (a, b) = (Mean::of(first)?, Mean::of(second)?);
        if a.df < 1.0 || b.df < 1.0 {
            return None;
        }
        let (share_a, share_b) = (a.error.powi(2), b.error.powi(2));
        let error = (share_a + share_b).sqrt();
        // Without any spread the degrees of freedom are undefined; those of the pooled test are the limit of equal spreads.
        let df = if error > 0.0 {
            (share_a + share_b).powi(2) / (share_a.powi(2) / a.df + share_b.powi(2) / b.df)
        } else {
            a.df + b.df
        };
        Some(Test::new(b.value - a.value, error, df))
    }

    /// Student's test of differences of pairs; `None` with fewer than two.
    pub fn paired(differences: &[f64]) -> Option<Self> {
        let mean = Mean::of(differences).filter(|mean| mean.df >= 1.0)?;
        Some(Test::new(mean.value, mean.error, mean.df))
    }

    fn new(difference: f64, error: f64, df: f64) -> Self {
        let t = if difference == 0.0 { 0.0 } else { difference / error };
        Test { difference, error, t, df, p: student_two_sided(t, df) }
    }

    /// Half the width of the interval that covers the difference with the given confidence.
    pub fn half_width(&self, confidence: f64) -> f64 {
        student_quantile(0.5 + confidence / 2.0, self.df) * self.error
    }

    /// The interval of the difference that covers it with the given confidence.
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let half = self.half_width(confidence);
        (self.difference - half, self.difference + half)
    }

    /// The difference that a repetition of this experiment would find with a power of 80 % at the given level.
    pub fn detectable(&self, level: f64) -> f64 {
        let quantiles =
            student_quantile(1.0 - level / 2.0, self.df) + student_quantile(0.8, self.df);
        quantiles * self.error
    }
}

/// Hedges' g (Hedges 1981): the difference of means in pooled standard deviations, corrected for small samples.
pub fn hedges_g(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.len() < 2 || second.len() < 2 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let difference = mean(second) - mean(first);
    let df = (first.len() + second.len() - 2) as f64;
    let pooled = ((squares(first) + squares(second)) / df).sqrt();
    let correction = 1.0 - 3.0 / (4.0 * df - 1.0);
    Some(if difference == 0.0 { 0.0 } else { correction * difference / pooled })
}

/// P(|T| ≥ |t|), from the upper tail so that small probabilities do not round to 0.
pub fn student_two_sided(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |student| (2.0 * student.sf(t.abs())).min(1.0))
}

/// The quantile of Student's t.
pub fn student_quantile(probability: f64, df: f64) -> f64 {
    if df > LARGE_DEGREES {
        // First term of the Cornish-Fisher expansion around the normal quantile.
        let z = Normal::standard().inverse_cdf(probability);
        return z + (z.powi(3) + z) / (4.0 * df);
    }
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |student| student.inverse_cdf(probability))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{SplitMix, normal, with_seed};

    const A: [f64; 15] =
        [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
    const B: [f64; 15] =
        [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.0];

    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got - expected).abs() <= tolerance * expected.abs(), "{got} is not {expected}");
    }

    /// Expected values by scipy 1.17: `ttest_ind(b[:9], a[:9], equal_var=False)`; nine values are not trimmed.
    #[test]
    fn few_values_give_the_classical_test() {
        let test = Test::welch(&A[..9], &B[..9]).expect("enough values");
        close(test.t, 2.336487575675517, 1e-10);
        close(test.df, 12.779973661249864, 1e-10);
        close(test.p, 0.03643295342045727, 1e-8);
        let (low, high) = test.interval(0.95);
        close(low, 0.22864620566112803, 1e-8);
        close(high, 5.971353794338874, 1e-8);
        close(hedges_g(&A, &B).expect("enough"), 1.0051442836506368, 1e-10);
    }

    /// Expected values by scipy 1.17: `ttest_ind(b, a, equal_var=False, trim=0.1)`.
    #[test]
    fn more_values_are_trimmed_as_yuen_says() {
        let test = Test::welch(&A, &B).expect("enough values");
        close(test.t, 3.0331892012477337, 1e-10);
        close(test.df, 23.70123137533389, 1e-10);
        close(test.p, 0.005785219816483961, 1e-8);
    }

    /// Expected values by scipy 1.17: `ttest_rel(b[:9], a[:9])`.
    #[test]
    fn pairs_are_tested_by_their_differences() {
        let differences: Vec<f64> = B[..9].iter().zip(A).map(|(b, a)| b - a).collect();
        let test = Test::paired(&differences).expect("enough values");
        close(test.t, 2.9137288739552005, 1e-10);
        close(test.df, 8.0, 1e-12);
        close(test.p, 0.019477492704688938, 1e-8);
        assert!(Test::paired(&differences[..1]).is_none());
    }

    #[test]
    fn tiny_probabilities_do_not_vanish() {
        close(student_two_sided(50.0, 98.0), 1.466e-71, 1e-3);
    }

    #[test]
    fn quantiles_are_right_for_few_and_for_many_degrees() {
        close(student_quantile(0.975, 10.0), 2.228_138_851_964_939, 1e-9);
        close(student_quantile(0.975, 1e6), 1.959_966_356_814, 1e-11);
        close(student_quantile(0.975, 1e7), 1.959_964_221, 1e-8);
        close(student_quantile(0.8, 18.0), 0.862_048_667_6, 1e-8);
    }

    #[test]
    fn equal_constants_are_equal_and_different_constants_differ() {
        let same = Test::welch(&[1.0; 5], &[1.0; 5]).expect("enough");
        assert_eq!((same.t, same.p), (0.0, 1.0));
        let different = Test::welch(&[1.0; 5], &[2.0; 5]).expect("enough");
        assert_eq!((different.p, different.t), (0.0, f64::INFINITY));
        assert!(Test::welch(&[1.0], &[2.0, 3.0]).is_none());
        assert_eq!(hedges_g(&[1.0, 1.0], &[1.0, 1.0]), Some(0.0));
    }

    /// Share of experiments that reject, and share of intervals that cover; both must be as promised.
    fn rates(mut experiment: impl FnMut() -> Test) -> (f64, f64) {
        const REPETITIONS: usize = 4000;
        let (mut rejected, mut covered) = (0, 0);
        with_seed(20_261_115, || {
            for _ in 0..REPETITIONS {
                let test = experiment();
                rejected += usize::from(test.p < 0.05);
                let (low, high) = test.interval(0.95);
                covered += usize::from(low <= 0.0 && 0.0 <= high);
            }
        });
        assert_eq!(rejected + covered, REPETITIONS, "interval and test must agree");
        (rejected as f64 / REPETITIONS as f64, covered as f64 / REPETITIONS as f64)
    }

    #[test]
    fn error_rate_and_coverage_hold_in_simulation() {
        for n in [8, 12, 25] {
            let (rejected, _) = rates(|| {
                let a: Vec<f64> = normal(n);
                let b: Vec<f64> = normal::<Vec<f64>>(n).iter().map(|v| 0.3 * v).collect();
                Test::welch(&a, &b).expect("enough")
            });
            assert!((0.035..0.062).contains(&rejected), "Welch, {n} values: {rejected}");
            let (rejected, covered) =
                rates(|| Test::paired(&normal::<Vec<f64>>(n)).expect("enough"));
            assert!((0.035..0.062).contains(&rejected), "pairs, {n} values: {rejected}");
            assert!(covered > 0.938);
        }
    }

    /// One value in fifty is astray by many standard deviations, as launches sometimes are.
    #[test]
    fn values_astray_neither_make_a_difference_nor_hide_one() {
        let contaminated = |shift: f64, draw: &mut SplitMix| -> Vec<f64> {
            let astray = |v: f64, draw: &mut SplitMix| {
                if draw.below(50) == 0 { v + 40.0 } else { v }
            };
            normal::<Vec<f64>>(12).iter().map(|v| astray(v + shift, draw)).collect()
        };
        let mut draw = SplitMix(1);
        let (rejected, _) = rates(|| Test::paired(&contaminated(0.0, &mut draw)).expect("enough"));
        assert!(rejected < 0.055, "{rejected}");
        let (power, _) = rates(|| Test::paired(&contaminated(1.5, &mut draw)).expect("enough"));
        assert!(power > 0.93, "{power}");
    }
}
