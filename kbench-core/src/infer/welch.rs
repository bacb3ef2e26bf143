//! Welch's t-test (Welch 1947), with the degrees of freedom of Satterthwaite (1946).

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Above this many degrees of freedom statrs' quantile of Student's t loses digits; the expansion below does not.
const LARGE_DEGREES: f64 = 1e4;

/// A comparison of two means without assuming equal variances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// Mean of the second sample minus mean of the first.
    pub difference: f64,
    /// Standard error of the difference.
    pub error: f64,
    /// The statistic.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided probability of a statistic at least this large under equal means.
    pub p: f64,
    /// Hedges' g: the difference in pooled standard deviations, corrected for small samples.
    pub g: f64,
}

impl Welch {
    /// The test of `second` against `first`; `None` with fewer than two values on either side.
    pub fn test(first: &[f64], second: &[f64]) -> Option<Self> {
        if first.len() < 2 || second.len() < 2 {
            return None;
        }
        let (a, b) = (Moments::of(first), Moments::of(second));
        let (share_a, share_b) = (a.variance / a.n, b.variance / b.n);
        let error = (share_a + share_b).sqrt();
        let difference = b.mean - a.mean;
        // Without any spread the degrees of freedom are undefined; those of the pooled test are the limit of equal spreads.
        let df = if error > 0.0 {
            (share_a + share_b).powi(2)
                / (share_a.powi(2) / (a.n - 1.0) + share_b.powi(2) / (b.n - 1.0))
        } else {
            a.n + b.n - 2.0
        };
        let t = if difference == 0.0 { 0.0 } else { difference / error };
        let pooled =
            (((a.n - 1.0) * a.variance + (b.n - 1.0) * b.variance) / (a.n + b.n - 2.0)).sqrt();
        let correction = 1.0 - 3.0 / (4.0 * (a.n + b.n - 2.0) - 1.0);
        let g = if difference == 0.0 { 0.0 } else { correction * difference / pooled };
        Some(Welch { difference, error, t, df, p: student_two_sided(t, df), g })
    }

    /// The interval of the difference that covers it with the given confidence.
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let half = student_quantile(0.5 + confidence / 2.0, self.df) * self.error;
        (self.difference - half, self.difference + half)
    }

    /// The difference that a repetition of this experiment would find with a power of 80 % at the given level.
    pub fn detectable(&self, level: f64) -> f64 {
        let quantiles =
            student_quantile(1.0 - level / 2.0, self.df) + student_quantile(0.8, self.df);
        quantiles * self.error
    }
}

/// Mean and unbiased variance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments {
    pub(super) n: f64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Moments {
    pub(super) fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Moments { n, mean, variance: if n > 1.0 { squares / (n - 1.0) } else { 0.0 } }
    }
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

    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got - expected).abs() <= tolerance * expected.abs(), "{got} is not {expected}");
    }

    /// Expected values by scipy 1.17: `ttest_ind(b, a, equal_var=False)`.
    #[test]
    fn agrees_with_scipy() {
        let a = [
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ];
        let b = [
            27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5,
            24.0,
        ];
        let welch = Welch::test(&a, &b).expect("enough values");
        close(welch.t, 2.8291649048617393, 1e-10);
        close(welch.df, 27.879017486855457, 1e-10);
        close(welch.p, 0.008551778311418774, 1e-8);
        let (low, high) = welch.interval(0.95);
        close(low, 0.7741516177422607, 1e-8);
        close(high, 4.839181715591076, 1e-8);
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
        let same = Welch::test(&[1.0; 5], &[1.0; 5]).expect("enough");
        assert_eq!((same.t, same.p, same.g), (0.0, 1.0, 0.0));
        let different = Welch::test(&[1.0; 5], &[2.0; 5]).expect("enough");
        assert_eq!((different.p, different.t), (0.0, f64::INFINITY));
        assert!(Welch::test(&[1.0], &[2.0, 3.0]).is_none());
    }

    /// Under the null hypothesis at most 5 % of tests reject, and 95 % of intervals cover, whatever the variances.
    #[test]
    fn error_rate_and_coverage_hold_in_simulation() {
        use crate::value::{normal, with_seed};
        let (mut rejected, mut covered) = (0, 0);
        let repetitions = 4000;
        with_seed(20_261_115, || {
            for _ in 0..repetitions {
                let a: Vec<f64> = normal(12);
                let b: Vec<f64> = normal::<Vec<f64>>(12).iter().map(|v| 0.3 * v).collect();
                let welch = Welch::test(&a, &b).expect("enough");
                rejected += usize::from(welch.p < 0.05);
                let (low, high) = welch.interval(0.95);
                covered += usize::from(low <= 0.0 && 0.0 <= high);
            }
        });
        let rate = rejected as f64 / repetitions as f64;
        assert!((0.04..0.06).contains(&rate), "{rate}");
        assert_eq!(rejected + covered, repetitions, "interval and test must agree");
    }
}
