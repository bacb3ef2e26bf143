//! Times of one row, as independent observations of its logarithm.

use super::welch::{Moments, student_quantile};
use crate::measure::Measurement;

/// Segments that the blocks of a single launch are merged into: enough degrees of freedom for a t-test, and each long
/// enough that a burst of noise does not fill it.
const SEGMENTS: usize = 12;

/// A spread beyond this is flagged as unstable.
const UNSTABLE: f64 = 0.20;

/// Below this many turns of an empty loop a call is no work: passing its parameters takes as long.
const OPTIMISED_AWAY_TURNS: f64 = 2.5;

/// What the observations are repetitions of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Whole processes: placement was sampled.
    Launches,
    /// Parts of one process: placement was the same throughout.
    Segments,
}

/// Logarithms of the time of one row in nanoseconds, one for every independent repetition.
#[derive(Clone, Debug)]
pub struct Observations {
    /// What a repetition is.
    pub scope: Scope,
    /// ln(ns).
    pub logarithms: Vec<f64>,
    /// Number of samples behind them.
    pub samples: usize,
}

impl Observations {
    /// The observations of one row; `None` when it has no sample at all.
    pub fn of(measurement: &Measurement, subject: usize, row: usize) -> Option<Self> {
        let launches: Vec<Vec<f64>> = measurement
            .launches
            .iter()
            .map(|launch| block_means(&launch.cells[subject], row))
            .filter(|blocks| !blocks.is_empty())
            .collect();
        let samples = 2 * launches.iter().map(Vec::len).sum::<usize>();
        match launches.as_slice() {
            [] => None,
            [blocks] => {
                Some(Observations { scope: Scope::Segments, logarithms: segments(blocks), samples })
            }
            several => Some(Observations {
                scope: Scope::Launches,
                logarithms: several.iter().map(|blocks| median(blocks)).collect(),
                samples,
            }),
        }
    }
}

/// The mean logarithm of a row's samples in every block.
fn block_means(blocks: &[crate::measure::Block], row: usize) -> Vec<f64> {
    blocks
        .iter()
        .filter_map(|block| {
            let logarithms: Vec<f64> = block
                .samples
                .iter()
                .filter(|sample| sample.row == row)
                // A call that was optimised away has no logarithm; the floor keeps it visible and it is flagged.
                .map(|sample| sample.nanoseconds.max(1e-3).ln())
                .collect();
            (!logarithms.is_empty())
                .then(|| logarithms.iter().sum::<f64>() / logarithms.len() as f64)
        })
        .collect()
}

/// Medians of at most twelve runs of consecutive blocks.
fn segments(blocks: &[f64]) -> Vec<f64> {
    let count = SEGMENTS.min(blocks.len());
    (0..count)
        .map(|i| median(&blocks[i * blocks.len() / count..(i + 1) * blocks.len() / count]))
        .collect()
}

pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n % 2 == 1 { sorted[n / 2] } else { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 }
}

/// The time of one call with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Nanoseconds: the geometric mean of the observations.
    pub time: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard deviation of the observations as a share of the time.
    pub spread: f64,
}

impl Estimate {
    /// The estimate that observations give.
    pub fn of(observations: &Observations) -> Self {
        let Moments { n, mean, variance } = Moments::of(&observations.logarithms);
        let half = if n > 1.0 {
            student_quantile(0.975, n - 1.0) * (variance / n).sqrt()
        } else {
            f64::INFINITY
        };
        Estimate {
            time: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            spread: variance.sqrt(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Block, Launch, Sample};

    fn launch(times: &[f64]) -> Launch {
        let block = |&nanoseconds| Block { samples: vec![Sample { row: 0, nanoseconds }; 2] };
        Launch { cells: vec![times.iter().map(block).collect()] }
    }

    #[test]
    fn one_launch_gives_segments_and_several_give_launches() {
        let one = Measurement { launches: vec![launch(&[10.0; 100])] };
        let observations = Observations::of(&one, 0, 0).expect("samples");
        assert_eq!((observations.scope, observations.logarithms.len()), (Scope::Segments, 12));
        assert_eq!(observations.samples, 200);
        let two = Measurement { launches: vec![launch(&[10.0; 5]), launch(&[20.0; 5])] };
        let observations = Observations::of(&two, 0, 0).expect("samples");
        assert_eq!((observations.scope, observations.logarithms.len()), (Scope::Launches, 2));
        assert!(Observations::of(&two, 0, 1).is_none());
    }

    #[test]
    fn a_spike_does_not_move_the_estimate() {
        let mut times = vec![100.0; 120];
        times[7] = 1e6;
        let measurement = Measurement { launches: vec![launch(&times)] };
        let estimate = Estimate::of(&Observations::of(&measurement, 0, 0).expect("samples"));
        assert!((estimate.time - 100.0).abs() < 1e-9, "{estimate:?}");
    }

    #[test]
    fn nothing_to_time_is_noticed() {
        let of = |nanoseconds| {
            let measurement = Measurement { launches: vec![launch(&[nanoseconds; 20])] };
            Estimate::of(&Observations::of(&measurement, 0, 0).expect("samples"))
        };
        assert!(of(0.0).is_optimised_away(0.3));
        assert!(of(0.5).is_optimised_away(0.3));
        assert!(!of(1.2).is_optimised_away(0.3));
    }
}
