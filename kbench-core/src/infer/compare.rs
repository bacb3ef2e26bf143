//! A row against its base.

use super::estimate::{CONFIDENCE, UNSTABLE};
use super::noise::{Noise, launches};
use super::observe::{Observations, Repetition, Scope};
use super::test::{Mean, Test, hedges_g};
use crate::measure::Look;

/// Share of the error rate that is spent on looks before the last one. Little, so that the last one loses next to
/// nothing; enough, because what can be decided early is usually plain.
const INTERIM_SHARE: f64 = 0.1;

/// The part of the error rate that a look may spend. Over all planned looks the parts add up to one, so that the chance
/// of a false difference at any of them is at most the error rate, whenever a cell is stopped (Bonferroni).
pub fn look_share(look: Look) -> f64 {
    match (look.interim, look.is_last) {
        (0, _) => 1.0,
        (_, true) => 1.0 - INTERIM_SHARE,
        (interim, false) => INTERIM_SHARE / f64::from(interim),
    }
}

/// A row compared with its base.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Time of the base over time of the row.
    pub speedup: f64,
    /// Lower end of its 95 % interval, of this comparison by itself.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The test that decides: on log-ratios of launches that have both rows, or else on launches of either; positive
    /// when the row is faster.
    pub test: Test,
    /// Welch's test on launches as if each row had its own: on logarithms of times against the sentinel.
    pub welch: Option<Test>,
    /// Hedges' g of the same values.
    pub hedges_g: Option<f64>,
    /// Standard deviation of the log-ratio between repetitions.
    pub spread: f64,
    /// What the observations are repetitions of.
    pub scope: Scope,
    /// Part of the error rate that may be spent on it.
    pub share: f64,
    /// A difference below this cannot be told from an error in what was subtracted for the clock.
    pub floor: f64,
}

impl Comparison {
    /// Whether launches disagree so much that neither figure nor verdict should be relied on.
    pub fn is_unstable(&self) -> bool {
        self.spread > UNSTABLE
    }

    /// The 95 % interval of the speed-up when as many comparisons shall hold together.
    pub fn interval_among(&self, count: usize) -> (f64, f64) {
        let error_rate = (1.0 - CONFIDENCE) * self.share / count.max(1) as f64;
        let (low, high) = self.test.interval(1.0 - error_rate);
        (low.exp(), high.exp())
    }
}

/// Compares a row with its base; `None` with too few observations.
pub fn compare(
    observations: &Observations,
    base: usize,
    row: usize,
    look: Look,
) -> Option<Comparison> {
    compare_among(observations, (base, row), look, None)
}

/// Compares a row with its base, by the noise of comparisons like this one if it is known.
pub fn compare_among(
    observations: &Observations,
    (base, row): (usize, usize),
    look: Look,
    noise: Option<&Noise>,
) -> Option<Comparison> {
    // How many times as long the base takes, so that positive means faster.
    let differences = observations.differences(base, row);
    let (of_base, of_row) = observations.alike(base, row);
    let welch = Test::welch(&of_row, &of_base);
    let among = |noise: &Noise| Some(noise.test(&launches(observations.scope, &differences)?));
    let test = match noise.and_then(among) {
        Some(test) => test,
        None if differences.is_empty() => Test::apart(&of_row, &of_base)?,
        None => Test::paired(&differences)?,
    };
    let spread_of = |of: &[Repetition]| Mean::of(of).map_or(0.0, |mean| mean.deviation);
    let spread = if differences.is_empty() {
        spread_of(&of_base).hypot(spread_of(&of_row))
    } else {
        spread_of(&differences)
    };
    let share = look_share(look);
    let (low, high) = test.interval(1.0 - (1.0 - CONFIDENCE) * share);
    Some(Comparison {
        speedup: test.difference.exp(),
        low: low.exp(),
        high: high.exp(),
        test,
        welch,
        hedges_g: hedges_g(&of_row, &of_base),
        spread,
        scope: observations.scope,
        share,
        floor: 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::observe::tests::launch;
    use super::*;
    use crate::measure::{Launch, Measurement};
    use crate::worker::Block;

    #[test]
    fn a_row_on_a_device_is_compared_in_nanoseconds() {
        let mut launches: Vec<Launch> =
            (0..4).map(|_| launch(&[(200.0, 100.0, 5.0), (202.0, 101.0, 5.0)])).collect();
        for sample in launches.iter_mut().flat_map(|l| &mut l.cells[0]).flat_map(|b| &mut b.samples)
        {
            sample.device = (sample.row == 1).then(Default::default);
        }
        // Beside each other, and each in launches of its own.
        let apart = |row: usize| {
            let mut launches = launches.clone();
            let blocks = launches.iter_mut().flat_map(|launch| &mut launch.cells[0]);
            blocks.for_each(|block| block.samples.retain(|sample| sample.row == row));
            launches
        };
        for launches in [launches.clone(), [apart(0), apart(1)].concat()] {
            let found = compare(&observed(launches), 0, 1, Look::ONLY).expect("enough");
            assert!((found.speedup - 2.0).abs() < 0.02, "{found:?}");
            let welch = found.welch.expect("enough");
            assert!((welch.difference.exp() - 2.0).abs() < 0.02, "{welch:?}");
        }
    }

    fn observed(launches: Vec<Launch>) -> Observations {
        let measurement = Measurement { launches };
        Observations::of(&measurement, 0)
    }

    #[test]
    fn a_speedup_is_base_over_row() {
        let launches = (0..10).map(|i| launch(&[(100.0, 25.0 + 0.01 * f64::from(i), 5.0); 4]));
        let comparison = compare(&observed(launches.collect()), 0, 1, Look::ONLY).expect("enough");
        assert!((comparison.speedup - 4.0).abs() < 0.01, "{comparison:?}");
        assert!(comparison.low < comparison.speedup && comparison.speedup < comparison.high);
        assert!(comparison.test.t > 0.0 && comparison.welch.is_some_and(|welch| welch.t > 0.0));
        assert!(comparison.hedges_g.is_some_and(|g| g > 0.0));
    }

    /// What moves both rows from launch to launch is no uncertainty of their ratio.
    #[test]
    fn launches_that_are_slow_for_both_rows_do_not_widen_the_interval() {
        let launches = (0..10).map(|i| {
            let slow = 1.0 + 0.02 * f64::from(i % 3);
            launch(&[(100.0 * slow, 99.0 * slow * (1.0 + 1e-4 * f64::from(i % 2)), 5.0); 4])
        });
        let comparison = compare(&observed(launches.collect()), 0, 1, Look::ONLY).expect("enough");
        assert!(comparison.test.p < 1e-6, "{comparison:?}");
        assert!(comparison.welch.is_some_and(|welch| welch.p > 0.05), "{comparison:?}");
    }

    #[test]
    fn rows_that_share_no_launch_are_compared_all_the_same() {
        let only = |row: usize, scale: f64| {
            let mut launch = launch(&[(100.0 * scale, 90.0 * scale, 5.0); 4]);
            let keep = |block: &mut Block| block.samples.retain(|sample| sample.row == row);
            launch.cells[0].iter_mut().for_each(keep);
            launch
        };
        let launches = (0..20).map(|i| only(i % 2, 1.0 + 1e-3 * (i % 5) as f64)).collect();
        let comparison = compare(&observed(launches), 0, 1, Look::ONLY).expect("enough");
        assert!(comparison.test.df > 9.0 && comparison.welch.is_some(), "{comparison:?}");
        assert!((comparison.speedup - 100.0 / 90.0).abs() < 1e-3);
    }

    #[test]
    fn looks_share_the_error_rate() {
        let interim = Look { interim: 3, is_last: false };
        let last = Look { interim: 3, is_last: true };
        assert!((3.0 * look_share(interim) + look_share(last) - 1.0).abs() < 1e-12);
        assert_eq!(look_share(Look::ONLY), 1.0);
    }
}
