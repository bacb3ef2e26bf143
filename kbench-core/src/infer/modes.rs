//! Whether the times of a row fall into two groups.
//!
//! The logarithms of all samples are split in two where the variance within both parts is least (Otsu 1979). They are two
//! groups when each has at least a fifth of the samples, and their means are at least 10 % and five standard deviations
//! within groups apart: of normal samples they are 2.6 apart, of uniform ones 3.5, of exponential ones 3.4. Samples of a
//! launch that are all in the same group say that launches differ, and nothing about calls: at least every fourth launch
//! must have samples of both.

/// Fewer samples show no groups.
const FEWEST: usize = 20;
/// The least share of a group.
const LEAST_SHARE: f64 = 0.2;
/// The least factor between the groups.
const LEAST_FACTOR: f64 = 1.1;
/// The least distance of the groups in standard deviations within them.
const LEAST_DISTANCE: f64 = 5.0;
/// The least share of launches that have both groups.
const LEAST_MIXED: f64 = 0.25;

/// Two groups of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modes {
    /// Share of the samples in the slower group.
    pub slower_share: f64,
    /// How many times as long they take, by geometric means.
    pub factor: f64,
    /// The mean of all samples, in nanoseconds.
    pub mean: f64,
}

impl Modes {
    /// The groups of some samples, launch by launch, as logarithms of nanoseconds; none where there are not two.
    pub fn of(launches: &[Vec<f64>]) -> Option<Self> {
        let mut sorted: Vec<f64> = launches.iter().flatten().copied().collect();
        if sorted.len() < FEWEST {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let total: f64 = sorted.iter().sum();
        let fewest = (LEAST_SHARE * n).ceil() as usize;
        let (mut below, mut best) = (0.0, (0, 0.0));
        for (index, value) in sorted.iter().enumerate() {
            let (lower, upper) = (index as f64, n - index as f64);
            if fewest <= index && index + fewest <= sorted.len() {
                let between = lower * upper * ((total - below) / upper - below / lower).powi(2);
                best = if between > best.1 { (index, between) } else { best };
            }
            below += value;
        }
        let (low, high) = sorted.split_at(best.0);
        let distance = mean(high) - mean(low);
        let within = ((squares(low) + squares(high)) / n).sqrt();
        let limit = sorted[best.0];
        let is_mixed = |launch: &&Vec<f64>| {
            let low = launch.iter().filter(|sample| **sample < limit).count();
            0 < low && low < launch.len()
        };
        let visited = launches.iter().filter(|launch| !launch.is_empty()).count() as f64;
        let is_bimodal = !low.is_empty()
            && distance >= LEAST_FACTOR.ln()
            && distance >= LEAST_DISTANCE * within
            && launches.iter().filter(is_mixed).count() as f64 >= LEAST_MIXED * visited;
        is_bimodal.then(|| Modes {
            slower_share: high.len() as f64 / n,
            factor: distance.exp(),
            mean: sorted.iter().map(|sample| sample.exp()).sum::<f64>() / n,
        })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sum of the squared deviations from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{normal, uniform, with_seed};

    /// Five launches of forty samples, each what a function makes of its number and some noise.
    fn launches(of: impl Fn(usize, usize, f64) -> f64) -> Vec<Vec<f64>> {
        with_seed(7, || {
            let launch = |number: usize| {
                let noise: Vec<f64> = normal(40);
                noise.iter().enumerate().map(|(i, noise)| of(number, i, *noise)).collect()
            };
            (0..5).map(launch).collect()
        })
    }

    /// 1 ms in 60 % and 3 ms in 40 % of calls, against a constant 1.5 ms: the median is faster and the mean slower.
    #[test]
    fn two_groups_are_found_with_their_shares_and_the_mean() {
        let log = |milliseconds: f64, noise: f64| (1e6 * milliseconds).ln() + 0.02 * noise;
        let two = launches(|_, i, noise| log(if i % 5 < 2 { 3.0 } else { 1.0 }, noise));
        let found = Modes::of(&two).expect("two groups");
        assert!((found.slower_share - 0.4).abs() < 1e-12, "{found:?}");
        assert!((found.factor - 3.0).abs() < 0.03, "{found:?}");
        assert!((found.mean / 1.8e6 - 1.0).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn one_group_is_not_split() {
        assert_eq!(Modes::of(&launches(|_, _, noise| noise)), None, "normal");
        assert_eq!(Modes::of(&launches(|_, i, _| i as f64)), None, "uniform");
        assert_eq!(Modes::of(&launches(|_, _, _| 5.0)), None, "constant");
        assert_eq!(Modes::of(&launches(|_, i, n| f64::from(i == 3) + 0.01 * n)), None, "outliers");
        assert_eq!(Modes::of(&launches(|_, i, n| 0.04 * (i % 2) as f64 + 1e-4 * n)), None, "4 %");
        let skewed: Vec<f64> = with_seed(3, || uniform::<Vec<f64>>(200));
        let skewed: Vec<f64> = skewed.iter().map(|u| -u.abs().max(1e-9).ln()).collect();
        assert_eq!(Modes::of(&[skewed]), None, "exponential");
        assert_eq!(Modes::of(&[vec![1.0, 2.0, 1.0, 2.0]]), None, "few");
        assert_eq!(Modes::of(&[]), None);
    }

    #[test]
    fn launches_that_differ_are_no_groups_of_calls() {
        let differing = launches(|number, _, noise| (number % 2) as f64 + 0.01 * noise);
        assert_eq!(Modes::of(&differing), None);
    }
}
