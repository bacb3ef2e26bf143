//! When a cell needs no more samples.
//!
//! The figures are looked at a few times that are planned in advance, and every look has its part of the error rate
//! ([`look_share`](super::look_share)); so a cell may be stopped as soon as it looks decided, and the rate still holds.

use super::observe::{Calm, Observations, median};
use super::verdict::is_equivalent;
use super::{Comparison, Rules, compare};
use crate::measure::{Judge, Look, Measurement, Outlook, Spread};
use crate::plan::Cell;

/// A difference is known well enough when its interval is at most this part of it, to either side.
const WELL_KNOWN: f64 = 0.5;

/// The median of n values varies by this much more than their mean: π/2 for normal values.
const MEDIAN_VARIANCE: f64 = std::f64::consts::FRAC_PI_2;

/// From the median of absolute deviations to the standard deviation of normal values.
const DEVIATION_OF_MEDIAN: f64 = 1.4826;

impl Judge for Rules {
    fn outlook(
        &self,
        measurement: &Measurement,
        index: usize,
        cell: &Cell,
        look: Look,
        comparisons: usize,
    ) -> Outlook {
        let observations = Observations::of(measurement, index, Calm::of(measurement));
        let Some(base) = cell.base else { return Outlook::Settled };
        let found: Vec<Comparison> = (0..cell.rows.len())
            .filter(|row| *row != base)
            .filter_map(|row| compare(&observations, base, row, look))
            .collect();
        let known = |comparison: &Comparison| {
            let level = self.significance * comparison.share / comparisons.max(1) as f64;
            let half = comparison.test.half_width(1.0 - level);
            half <= WELL_KNOWN * comparison.test.difference.abs()
        };
        if found.is_empty() {
            Outlook::Settled
        } else if found.iter().all(known) {
            Outlook::Decided
        } else if found.iter().all(|c| known(c) || is_equivalent(c, *self)) {
            Outlook::Settled
        } else {
            Outlook::Open
        }
    }

    fn spread(&self, measurement: &Measurement, index: usize, cell: &Cell) -> Option<Spread> {
        let observations = Observations::of(measurement, index, Calm::of(measurement));
        let base = cell.base?;
        let row = (0..cell.rows.len())
            .find(|row| *row != base && !observations.differences(base, *row).is_empty())?;
        let blocks = observations.block_differences(base, row);
        let centres: Vec<f64> =
            blocks.iter().filter(|b| !b.is_empty()).map(|b| median(b)).collect();
        let full: Vec<&Vec<f64>> = blocks.iter().filter(|b| !b.is_empty()).collect();
        let deviations: Vec<f64> = full
            .iter()
            .zip(&centres)
            .flat_map(|(blocks, centre)| blocks.iter().map(move |d| (d - centre).abs()))
            .collect();
        if centres.len() < 2 || deviations.len() < 2 * centres.len() {
            return None;
        }
        let within = DEVIATION_OF_MEDIAN * median(&deviations);
        let mean = centres.iter().sum::<f64>() / centres.len() as f64;
        let between =
            centres.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (centres.len() - 1) as f64;
        let per_launch = deviations.len() as f64 / centres.len() as f64;
        let explained = MEDIAN_VARIANCE * within.powi(2) / per_launch;
        Some(Spread { blocks: within, launches: (between - explained).max(0.0).sqrt() })
    }
}
