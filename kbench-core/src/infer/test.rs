//! Tests on means of launches.
//!
//! A launch that was disturbed knows less than a quiet one, and its own samples say so. Means are therefore weighted by
//! the inverse of the variance that each launch shows within itself. Their error is that of the jackknife (Tukey 1958; HC3
//! of MacKinnon and White 1985): how far the mean moves when one launch is left out. It is right whatever the weights, a
//! little too large with few launches, and its degrees of freedom are those of the effective number of launches. Weights
//! follow from the spread within a launch and never from the side on which its value lies.
//!
//! Welch's test (Welch 1947, Satterthwaite 1946) is the textbook's, with equal weights.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::observe::{Repetition, median};

/// Part of the typical variance within launches that is added to that of each: a launch that looks free of noise by luck
/// does not outweigh two ordinary ones.
const PRUDENCE: f64 = 1.0;

/// With this power a detectable difference is found.
const POWER: f64 = 0.8;

/// From the median of squared deviations to the variance of normal values.
const VARIANCE_OF_MEDIAN_SQUARE: f64 = 2.198;

/// Above this many degrees of freedom statrs' quantile of Student's t loses digits; the expansion below does not.
const LARGE_DEGREES: f64 = 1e4;

/// A weighted mean with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub df: f64,
    /// Standard deviation of the values.
    pub deviation: f64,
}

impl Mean {
    /// The mean of some repetitions; `None` of none.
    pub fn of(repetitions: &[Repetition]) -> Option<Self> {
        let values: Vec<f64> = repetitions.iter().map(|repetition| repetition.value).collect();
        let weights = weights(repetitions);
        let df = 1.0 / weights.iter().map(|weight| weight.powi(2)).sum::<f64>() - 1.0;
        let value: f64 = values.iter().zip(&weights).map(|(value, weight)| weight * value).sum();
        let moved = |(v, weight): (&f64, &f64)| (weight * (v - value) / (1.0 - weight)).powi(2);
        let error = values.iter().zip(&weights).map(moved).sum::<f64>().sqrt();
        let others = values.len() as f64 - 1.0;
        let deviation = (squares(&values) / others.max(1.0)).sqrt();
        (others >= 0.0).then_some(Mean { value, error, df, deviation })
    }
}

impl Mean {
    /// The mean with equal weights and the textbook's error.
    fn plain(repetitions: &[Repetition]) -> Option<Self> {
        let values: Vec<f64> = repetitions.iter().map(|repetition| repetition.value).collect();
        let n = values.len() as f64;
        let deviation = (squares(&values) / (n - 1.0).max(1.0)).sqrt();
        let value = values.iter().sum::<f64>() / n;
        (n > 0.0).then_some(Mean { value, error: deviation / n.sqrt(), df: n - 1.0, deviation })
    }
}

/// Inverse variances, within each launch, between launches, and what is typical within launches; their sum is 1.
fn weights(repetitions: &[Repetition]) -> Vec<f64> {
    let equal = || vec![1.0 / repetitions.len() as f64; repetitions.len()];
    let known: Vec<f64> = repetitions.iter().filter_map(|repetition| repetition.variance).collect();
    if known.is_empty() {
        return equal();
    }
    // A launch with a single value knows no better than the worst of the others.
    let worst = known.iter().copied().fold(0.0, f64::max);
    let within: Vec<f64> = repetitions.iter().map(|r| r.variance.unwrap_or(worst)).collect();
    let values: Vec<f64> = repetitions.iter().map(|repetition| repetition.value).collect();
    let centre = median(&values);
    let squares: Vec<f64> = values.iter().map(|value| (value - centre).powi(2)).collect();
    let typical = median(&within);
    let between = (VARIANCE_OF_MEDIAN_SQUARE * median(&squares) - typical).max(0.0);
    let common = between + PRUDENCE * typical;
    if common <= 0.0 {
        return equal();
    }
    let total: f64 = within.iter().map(|own| 1.0 / (own + common)).sum();
    within.iter().map(|own| 1.0 / (own + common) / total).collect()
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
    pub fn welch(first: &[Repetition], second: &[Repetition]) -> Option<Self> {
        Test::between(Mean::plain(first)?, Mean::plain(second)?)
    }

    /// The test of rows that have no launch in common; `None` with fewer than two launches of either.
    pub fn apart(first: &[Repetition], second: &[Repetition]) -> Option<Self> {
        Test::between(Mean::of(first)?, Mean::of(second)?)
    }

    /// The test of rows that share their launches, on their differences; `None` with fewer than two.
    pub fn paired(differences: &[Repetition]) -> Option<Self> {
        let mean = Mean::of(differences).filter(|mean| mean.df > 0.0)?;
        Some(Test::new(mean.value, mean.error, mean.df))
    }

    /// The difference of two means that have nothing to do with each other.
    pub(super) fn between(a: Mean, b: Mean) -> Option<Self> {
        Test::combined(&[(-1.0, a), (1.0, b)])
    }

    /// The sum of multiples of means that have nothing to do with each other, with Satterthwaite's degrees of freedom;
    /// `None` when the error of one of them is not known.
    pub(super) fn combined(parts: &[(f64, Mean)]) -> Option<Self> {
        if parts.iter().any(|(_, mean)| mean.df <= 0.0) {
            return None;
        }
        let share = |(factor, mean): &(f64, Mean)| (factor * mean.error).powi(2);
        let variance: f64 = parts.iter().map(share).sum();
        // Without any spread the degrees of freedom are undefined; those of the pooled test are the limit of equal spreads.
        let df = if variance > 0.0 {
            variance.powi(2) / parts.iter().map(|part| share(part).powi(2) / part.1.df).sum::<f64>()
        } else {
            parts.iter().map(|(_, mean)| mean.df).sum()
        };
        let value = parts.iter().map(|(factor, mean)| factor * mean.value).sum();
        Some(Test::new(value, variance.sqrt(), df))
    }

    pub(super) fn new(difference: f64, error: f64, df: f64) -> Self {
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
            student_quantile(1.0 - level / 2.0, self.df) + student_quantile(POWER, self.df);
        quantiles * self.error
    }
}

/// Hedges' g (Hedges 1981): the difference of means in pooled standard deviations, corrected for small samples.
pub fn hedges_g(first: &[Repetition], second: &[Repetition]) -> Option<f64> {
    if first.len() < 2 || second.len() < 2 {
        return None;
    }
    let values =
        |of: &[Repetition]| of.iter().map(|repetition| repetition.value).collect::<Vec<_>>();
    let (first, second) = (&values(first), &values(second));
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
    use crate::value::{normal, with_seed};

    const A: [f64; 15] =
        [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
    const B: [f64; 15] =
        [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.0];

    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got - expected).abs() <= tolerance * expected.abs(), "{got} is not {expected}");
    }

    /// Repetitions of which nothing is known but their values.
    fn plain(values: &[f64]) -> Vec<Repetition> {
        values.iter().map(|&value| Repetition { value, variance: None, count: 1 }).collect()
    }

    /// Expected values by scipy 1.17: `ttest_ind(b, a, equal_var=False)`.
    #[test]
    fn welchs_test_is_that_of_the_textbook() {
        let (a, b) = (plain(&A), plain(&B));
        let test = Test::welch(&a, &b).expect("enough values");
        close(test.t, 2.8291649048617393, 1e-10);
        close(test.df, 27.879017486855457, 1e-10);
        close(test.p, 0.008551778311418774, 1e-8);
        let (low, high) = test.interval(0.95);
        close(low, 0.7741516177422607, 1e-8);
        close(high, 4.839181715591076, 1e-8);
        close(hedges_g(&a, &b).expect("enough"), 1.0051442836506368, 1e-10);
    }

    /// `ttest_rel(b, a)` of scipy 1.17 gives 3.1887534712785337; the jackknife's error is larger by √(n / (n − 1)).
    #[test]
    fn equal_weights_give_students_test_of_pairs_with_the_error_of_the_jackknife() {
        let differences: Vec<f64> = B.iter().zip(A).map(|(b, a)| b - a).collect();
        let test = Test::paired(&plain(&differences)).expect("enough values");
        close(test.t * (15.0_f64 / 14.0).sqrt(), 3.1887534712785337, 1e-10);
        close(test.df, 14.0, 1e-10);
        assert!(Test::paired(&plain(&differences[..1])).is_none());
    }

    /// The launches differ by less than their own noise: their variances count as 1 + 1, 1 + 1 and 4 + 1.
    #[test]
    fn a_noisy_launch_weighs_less() {
        let of = |value, variance| Repetition { value, variance: Some(variance), count: 50 };
        let mean = Mean::of(&[of(0.0, 1.0), of(1.0, 1.0), of(1.0, 4.0)]).expect("values");
        let weights = [5.0 / 12.0, 5.0 / 12.0, 2.0 / 12.0];
        let value = weights[1] + weights[2];
        let parts = [0.0, 1.0, 1.0].map(|v: f64| (v - value).powi(2));
        let moved = |i: usize| (weights[i] / (1.0 - weights[i])).powi(2) * parts[i];
        close(mean.value, value, 1e-12);
        close(mean.error, (moved(0) + moved(1) + moved(2)).sqrt(), 1e-12);
        close(mean.df, 144.0 / (25.0 + 25.0 + 4.0) - 1.0, 1e-12);
    }

    /// 2.262157 + 0.883404 with nine degrees of freedom, 2.093024 + 0.860951 with nineteen, by R's `qt`.
    #[test]
    fn the_detectable_difference_is_what_the_quantiles_say() {
        let test = |df| Test { difference: 0.0, error: 0.01, t: 0.0, df, p: 1.0 };
        close(test(9.0).detectable(0.05), 0.031_455_61, 1e-6);
        close(test(19.0).detectable(0.05), 0.029_539_75, 1e-6);
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
        let (one, two) = (plain(&[1.0; 5]), plain(&[2.0; 5]));
        let same = Test::welch(&one, &one).expect("enough");
        assert_eq!((same.t, same.p), (0.0, 1.0));
        let different = Test::welch(&one, &two).expect("enough");
        assert_eq!((different.p, different.t), (0.0, f64::INFINITY));
        assert!(Test::welch(&one[..1], &two).is_none());
        assert_eq!(hedges_g(&one, &one), Some(0.0));
    }

    /// Share of experiments that reject; intervals must cover in all others.
    fn rejected(mut experiment: impl FnMut() -> Test) -> f64 {
        const REPETITIONS: usize = 2000;
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
        rejected as f64 / REPETITIONS as f64
    }

    /// Launches of 40 pairs each: noise within a launch differs from launch to launch by `unrest` (in logarithms), and
    /// launches differ from each other by `placement`.
    fn launches(n: usize, unrest: f64, placement: f64, shift: f64) -> Vec<Repetition> {
        let noises: Vec<f64> = normal(n);
        let places: Vec<f64> = normal(n);
        let launch = |(noise, place): (&f64, &f64)| {
            let scale = (unrest * noise).exp();
            let pairs: Vec<f64> = normal(40);
            let pairs: Vec<f64> =
                pairs.iter().map(|pair| shift + placement * place + scale * pair).collect();
            Repetition::of(&pairs, pairs.len())
        };
        noises.iter().zip(&places).filter_map(launch).collect()
    }

    #[test]
    fn error_rate_and_coverage_hold_in_simulation() {
        error_rates_hold(&[5]);
    }

    #[test]
    #[ignore = "slow: simulates up to thirty launches"]
    fn error_rate_and_coverage_hold_with_more_launches() {
        error_rates_hold(&[8, 15, 30]);
    }

    fn error_rates_hold(numbers_of_launches: &[usize]) {
        for &n in numbers_of_launches {
            for (unrest, placement) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 0.3)] {
                let of = |shift| launches(n, unrest, placement, shift);
                let pairs = rejected(|| Test::paired(&of(0.0)).expect("enough"));
                assert!(pairs < 0.056, "pairs, {n}, {unrest}, {placement}: {pairs}");
                let apart = rejected(|| Test::apart(&of(0.0), &of(0.0)).expect("enough"));
                assert!(apart < 0.056, "apart, {n}, {unrest}, {placement}: {apart}");
                let welch = rejected(|| Test::welch(&of(0.0), &of(0.0)).expect("enough"));
                assert!(welch < 0.06, "Welch, {n}, {unrest}, {placement}: {welch}");
            }
            let values = || plain(&normal::<Vec<f64>>(n));
            let welch = rejected(|| Test::welch(&values(), &values()).expect("enough"));
            assert!((0.035..0.06).contains(&welch), "{n} plain values: {welch}");
        }
    }

    /// Half of the launches are disturbed: with weights the others still see what there is.
    #[test]
    fn disturbed_launches_do_not_hide_a_difference() {
        let draw = || launches(15, 1.5, 0.0, 0.15);
        let weighted = rejected(|| Test::paired(&draw()).expect("enough"));
        let forget = |r: Repetition| Repetition { variance: None, ..r };
        let equal = rejected(|| {
            let launches: Vec<Repetition> = draw().into_iter().map(forget).collect();
            Test::paired(&launches).expect("enough")
        });
        assert!(weighted > 0.7 && weighted > equal + 0.5, "{weighted} {equal}");
    }
}
