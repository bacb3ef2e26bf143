//! What the figures of the table mean.
//!
//! * **False positive**: a claimed difference where amounts are equal.
//! * **Power** at an effect: the share of claimed differences in the right direction, both signs of the effect together.
//! * **Wrong sign**: a claimed difference in the wrong direction, where there is one.
//! * **Coverage**: the share of intervals that contain the truth, over all effects.
//! * **Half width**: the median of half the interval, in percent.
//! * **Error**: the mean distance of estimate and truth, in percent.
//! * **Seconds**: the median wall time of a comparison, all that a tool does included.
//!
//! A failed run counts in every rate as one that claimed nothing, and once more as an error.

use std::collections::BTreeMap;

use campaign::statistics::{Rate, mean, median};

use crate::experiment::Effect;
use crate::record::Record;
use crate::tool::Verdict;

/// The figures of one tool under one set of circumstances.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Score {
    /// Claimed differences where there are none.
    pub(crate) false_positives: Rate,
    /// Right claims, by the size of the effect.
    pub(crate) power: BTreeMap<Effect, Rate>,
    /// Claims in the wrong direction.
    pub(crate) wrong_signs: Rate,
    /// Intervals that contain the truth.
    pub(crate) coverage: Rate,
    /// Half of the interval, in percent.
    pub(crate) half_width: Option<f64>,
    /// Distance of estimate and truth, in percent.
    pub(crate) error: Option<f64>,
    /// Runs that failed.
    pub(crate) failures: Rate,
    /// Wall time of a comparison.
    pub(crate) seconds: Option<f64>,
}

impl Score {
    /// Of records that belong together.
    pub(crate) fn of(records: &[&Record]) -> Self {
        let with = |effect: Effect| {
            records.iter().filter(move |record| record.experiment.effect.size() == effect)
        };
        let sizes = records.iter().map(|record| record.experiment.effect.size());
        let intervals =
            || records.iter().filter_map(|record| Some((record.low?, record.high?, record.truth)));
        let errors: Vec<f64> = records
            .iter()
            .filter_map(|record| Some(100.0 * (record.estimate? - record.truth).abs()))
            .collect();
        Score {
            false_positives: Rate::of(with(Effect::ZERO), |r| r.verdict.is_different()),
            power: sizes
                .filter(|size| *size != Effect::ZERO)
                .map(|size| (size, Rate::of(with(size), |record| is_right(record))))
                .collect(),
            wrong_signs: Rate::of(
                records.iter().filter(|record| record.experiment.effect != Effect::ZERO),
                |record| record.verdict.is_different() && !is_right(record),
            ),
            coverage: Rate::of(intervals(), |(low, high, truth)| low <= truth && truth <= high),
            half_width: median(intervals().map(|(low, high, _)| 50.0 * (high - low)).collect()),
            error: mean(&errors),
            failures: Rate::of(records, |record| record.verdict == Verdict::Error),
            seconds: median(records.iter().map(|record| record.wall).collect()),
        }
    }
}

/// Whether a claimed difference has the direction of the true one.
fn is_right(record: &Record) -> bool {
    record.verdict == Verdict::different(record.truth)
}

/// How long it takes to find an effect of 1 % nine times out of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// Even the shortest time measured is enough.
    AtMost(f64),
    /// Between two times, interpolated.
    About(f64),
    /// Not in the longest time measured.
    Never,
}

/// The power that is asked for.
const WANTED_POWER: f64 = 0.9;

/// Seconds to the wanted power, from scores of several budgets.
///
/// Power is interpolated linearly in the logarithm of the seconds that comparisons took, between the first budget that
/// reaches it and the one before. Budgets without an effect of 1 % say nothing; `None` when all are such.
pub(crate) fn reach(scores: &[&Score]) -> Option<Reach> {
    let mut points: Vec<(f64, f64)> = scores
        .iter()
        .filter_map(|score| Some((score.seconds?, score.power.get(&Effect::ONE_PERCENT)?.share()?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let enough = points.iter().position(|(_, power)| *power >= WANTED_POWER);
    match enough {
        _ if points.is_empty() => None,
        None => Some(Reach::Never),
        Some(0) => Some(Reach::AtMost(points[0].0)),
        Some(index) => {
            let ((seconds, power), (longer, more)) = (points[index - 1], points[index]);
            let share = (WANTED_POWER - power) / (more - power);
            Some(Reach::About(seconds * (longer / seconds).powf(share)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use crate::tool::{Answer, Interval};

    fn answered(percent: f64, estimate: f64, verdict: Verdict) -> Record {
        let interval = Some(Interval { low: estimate - 0.002, high: estimate + 0.002 });
        record(percent).answered(Ok(Answer { estimate, interval, verdict }))
    }

    #[test]
    fn every_figure_counts_what_it_says() {
        let records = [
            answered(0.0, 0.001, Verdict::Same),
            answered(0.0, 0.004, Verdict::DifferentSlower),
            answered(1.0, 0.0099, Verdict::DifferentSlower),
            answered(-1.0, -0.0099, Verdict::DifferentFaster),
            answered(-1.0, 0.005, Verdict::DifferentSlower),
            record(1.0).answered(Err("no luck".to_owned())),
        ];
        let score = Score::of(&records.iter().collect::<Vec<_>>());
        let rate = |count, of| Rate { count, of };
        assert_eq!(score.false_positives, rate(1, 2));
        assert_eq!(score.power, BTreeMap::from([(Effect::ONE_PERCENT, rate(2, 4))]));
        assert_eq!(score.wrong_signs, rate(1, 4));
        assert_eq!(score.coverage, rate(3, 5));
        assert_eq!(score.failures, rate(1, 6));
        assert!((score.half_width.expect("intervals") - 0.2).abs() < 1e-9);
        assert_eq!(score.seconds, Some(2.0));
    }

    fn of_power(seconds: f64, count: u64) -> Score {
        let power = BTreeMap::from([(Effect::ONE_PERCENT, Rate { count, of: 10 })]);
        Score { power, seconds: Some(seconds), ..Score::of(&[]) }
    }

    #[test]
    fn seconds_to_power_are_interpolated_in_their_logarithm() {
        let (short, middle, long) = (of_power(1.0, 8), of_power(4.0, 10), of_power(16.0, 10));
        assert_eq!(reach(&[&long, &short, &middle]), Some(Reach::About(2.0)));
        assert_eq!(reach(&[&middle, &long]), Some(Reach::AtMost(4.0)));
        assert_eq!(reach(&[&short]), Some(Reach::Never));
        assert_eq!(reach(&[&Score::of(&[])]), None);
    }
}
