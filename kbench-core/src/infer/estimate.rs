//! The time of one row.

use super::observe::Repetition;
use super::test::{Mean, student_quantile};
use super::trend::kendall;

/// Confidence of the intervals that are shown.
pub(super) const CONFIDENCE: f64 = 0.95;

/// A spread beyond this is flagged as unstable.
pub(super) const UNSTABLE: f64 = 0.20;

/// A trend is flagged when it is this improbable by chance ...
const TREND_PROBABILITY: f64 = 0.001;

/// ... and has moved the figure by at least this share.
const TREND_SHARE: f64 = 0.02;

/// Below this many turns of an empty loop a call is no work: passing its parameters takes as long.
const OPTIMISED_AWAY_TURNS: f64 = 2.5;

/// The time of one call with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Nanoseconds: the geometric mean of the repetitions.
    pub time: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard deviation of the repetitions as a share of the time.
    pub spread: f64,
}

impl Estimate {
    /// The estimate that logarithms of nanoseconds give; none when there are none.
    pub fn of(logarithms: &[Repetition]) -> Option<Self> {
        Estimate::among(logarithms, 1)
    }

    /// The same with an interval that holds together with those of as many others.
    pub fn among(logarithms: &[Repetition], count: usize) -> Option<Self> {
        let mean = Mean::of(logarithms)?;
        let error_rate = (1.0 - CONFIDENCE) / count.max(1) as f64;
        let half = if mean.df > 0.0 {
            student_quantile(1.0 - error_rate / 2.0, mean.df) * mean.error
        } else {
            f64::INFINITY
        };
        Some(Estimate {
            time: mean.value.exp(),
            low: (mean.value - half).exp(),
            high: (mean.value + half).exp(),
            spread: mean.deviation,
        })
    }

    /// The same spread around another time.
    pub fn at(self, time: f64) -> Self {
        let scale = time / self.time;
        Estimate { time, low: scale * self.low, high: scale * self.high, ..self }
    }

    /// Whether the spread is too large to be believed.
    pub fn is_unstable(&self) -> bool {
        self.spread > UNSTABLE
    }

    /// Whether there was nothing to time; `empty_turn` is the time of one turn of a loop that calls nothing.
    pub fn is_optimised_away(&self, empty_turn: f64) -> bool {
        self.time < OPTIMISED_AWAY_TURNS * empty_turn
    }
}

/// How far a figure moved over the launches, when that can hardly be chance; `logarithms` in the order of time.
pub fn trend(logarithms: &[Repetition]) -> Option<f64> {
    let values: Vec<f64> = logarithms.iter().map(|repetition| repetition.value).collect();
    let kendall = kendall(&values)?;
    let moved = kendall.slope * (logarithms.len() - 1) as f64;
    (kendall.p < TREND_PROBABILITY && moved.abs() > TREND_SHARE).then(|| moved.exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches(values: impl IntoIterator<Item = f64>) -> Vec<Repetition> {
        let launch = |value| Repetition { value, variance: None, count: 1 };
        values.into_iter().map(launch).collect()
    }

    #[test]
    fn a_time_comes_with_its_interval_and_a_wild_one_is_flagged() {
        let steady = launches((0..12).map(|i| 100_f64.ln() + 0.001 * f64::from(i % 3)));
        let estimate = Estimate::of(&steady).expect("observations");
        assert!((estimate.time - 100.1).abs() < 0.01 && !estimate.is_unstable(), "{estimate:?}");
        assert!(estimate.low < estimate.time && estimate.time < estimate.high);
        let wild = launches((0..12).map(|i| 0.3 * f64::from(i % 3)));
        assert!(Estimate::of(&wild).is_some_and(|estimate| estimate.is_unstable()));
    }

    #[test]
    fn nothing_to_time_is_noticed() {
        let of = |nanoseconds: f64| Estimate::of(&launches([nanoseconds.ln(); 12])).expect("some");
        assert!(of(1e-3).is_optimised_away(0.3));
        assert!(of(0.5).is_optimised_away(0.3));
        assert!(!of(1.2).is_optimised_away(0.3));
        assert!(Estimate::of(&[]).is_none());
    }

    #[test]
    fn a_figure_that_creeps_is_noticed_and_one_that_jitters_is_not() {
        let creeping = launches((0..12).map(|i| 0.01 * f64::from(i)));
        assert!(trend(&creeping).is_some_and(|moved| (moved - 0.116).abs() < 0.01));
        let jitter = launches((0..12).map(|i| 0.05 * f64::from(i % 2)));
        assert_eq!(trend(&jitter), None);
        let slight = launches((0..12).map(|i| 1e-4 * f64::from(i)));
        assert_eq!(trend(&slight), None);
    }
}
