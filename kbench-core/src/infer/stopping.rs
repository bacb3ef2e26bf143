//! When a cell needs no more samples.
//!
//! The figures are looked at a few times that are planned in advance, and every look has its part of the error rate
//! ([`look_share`](super::look_share)); so a cell may be stopped as soon as it looks decided, and the rate still holds.

use super::observe::{Observations, SAMPLES_PER_BLOCK, median};
use super::verdict::is_equivalent;
use super::{Comparison, Rules, compare};
use crate::measure::{Judge, Look, Measurement, OpenCell, Outlook, Spread};

/// A difference is known well enough when its interval is at most this part of it to either side ...
const WELL_KNOWN: f64 = 0.5;

/// ... and this, as a logarithm: people want to know how much faster, too.
const PRECISE: f64 = 0.05;

impl Judge for Rules {
    fn outlooks(
        &self,
        measurement: &Measurement,
        cells: &[OpenCell<'_>],
        look: Look,
        comparisons: usize,
    ) -> Vec<Outlook> {
        let level = self.significance / comparisons.max(1) as f64;
        cells
            .iter()
            .map(|open| {
                let observations = Observations::of(measurement, open.index);
                outlook(*self, &observations, open, look, level)
            })
            .collect()
    }

    fn spreads(&self, measurement: &Measurement, cells: &[OpenCell<'_>]) -> Vec<Option<Spread>> {
        cells.iter().map(|open| spread(&Observations::of(measurement, open.index), open)).collect()
    }
}

fn outlook(
    rules: Rules,
    observations: &Observations,
    open: &OpenCell<'_>,
    look: Look,
    level: f64,
) -> Outlook {
    // Each with whether it is one with a former self, which a gate may have a limit for.
    let found: Vec<(Comparison, bool)> = open
        .compared()
        .filter_map(|(with, row)| {
            Some((compare(observations, with, row, look)?, with >= open.cell.rows.len()))
        })
        .collect();
    let half = |comparison: &Comparison| comparison.test.half_width(1.0 - level * comparison.share);
    let is_aside = |(comparison, is_change): &(Comparison, bool)| {
        let mut limits = rules.limits.into_iter().flatten();
        let is_beside =
            |limit: f64| (comparison.test.difference + limit.ln_1p()).abs() > half(comparison);
        !*is_change || limits.all(is_beside)
    };
    let is_known = |(comparison, _): &(Comparison, bool)| {
        half(comparison) <= (WELL_KNOWN * comparison.test.difference.abs()).min(PRECISE)
    };
    if found.is_empty() {
        Outlook::Settled
    } else if found.iter().all(|c| is_known(c) && is_aside(c)) {
        Outlook::Decided
    } else if found.iter().all(|c| (is_known(c) || is_equivalent(&c.0, rules)) && is_aside(c)) {
        Outlook::Settled
    } else {
        Outlook::Open
    }
}

fn spread(observations: &Observations, open: &OpenCell<'_>) -> Option<Spread> {
    let launches = open.compared().find_map(|(base, row)| {
        Some(observations.differences(row, base)).filter(|launches| !launches.is_empty())
    })?;
    let within: Vec<f64> = launches.iter().filter_map(|launch| launch.variance).collect();
    if launches.len() < 2 || within.len() < launches.len() {
        return None;
    }
    let per_launch = launches.iter().map(|launch| launch.count as f64).sum::<f64>()
        / (SAMPLES_PER_BLOCK * launches.len()) as f64;
    let explained = median(&within);
    let centres: Vec<f64> = launches.iter().map(|launch| launch.value).collect();
    let mean = centres.iter().sum::<f64>() / centres.len() as f64;
    let between =
        centres.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (centres.len() - 1) as f64;
    Some(Spread {
        blocks: (explained * per_launch).sqrt(),
        launches: (between - explained).max(0.0).sqrt(),
    })
}
