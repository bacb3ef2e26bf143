//! When a cell needs no more samples.
//!
//! The figures are looked at a few times that are planned in advance, and every look has its part of the error rate
//! ([`look_share`](super::look_share)); so a cell may be stopped as soon as it looks decided, and the rate still holds.

use super::discovery::discovery_level;
use super::observe::{Observations, SAMPLES_PER_BLOCK, median};
use super::verdict::is_equivalent;
use super::{Comparison, ErrorRate, Rules, compare, look_share};
use crate::measure::{Family, Judge, Look, Measurement, OpenCell, Outlook, Spread};

/// A difference is known well enough when its interval is at most this part of it to either side ...
const WELL_KNOWN: f64 = 0.5;

/// ... and this, as a logarithm: people want to know how much faster, too.
const PRECISE: f64 = 0.1;

impl Judge for Rules {
    fn outlooks(
        &self,
        measurement: &Measurement,
        cells: &[OpenCell<'_>],
        look: Look,
        family: Family,
    ) -> Vec<Vec<Outlook>> {
        let found: Vec<Vec<Found>> =
            cells.iter().map(|open| comparisons(measurement, open, look)).collect();
        let share = look_share(look);
        let known = found.iter().flatten().map(|found| (found.comparison.test.p / share).min(1.0));
        let p: Vec<f64> = known.chain(std::iter::repeat_n(0.0, family.decided)).collect();
        let rules = StoppingRules {
            level: match self.error_rate {
                ErrorRate::Discovery => discovery_level(&p, family.comparisons, self.significance),
                ErrorRate::Family => self.significance / family.comparisons.max(1) as f64,
            },
            rules: self.among(family.comparisons),
        };
        let of_cell = |(open, found): (&OpenCell<'_>, &Vec<Found>)| {
            if found.is_empty() {
                // Nothing to compare: a time is known after a while.
                return vec![Outlook::Settled; open.rows.len()];
            }
            let of_row = |row: &usize| {
                let own = found.iter().filter(|found| found.row == *row);
                own.map(|found| rules.outlook(found)).max().unwrap_or(Outlook::Decided)
            };
            open.rows.iter().map(of_row).collect()
        };
        cells.iter().zip(&found).map(of_cell).collect()
    }

    fn spreads(&self, measurement: &Measurement, cells: &[OpenCell<'_>]) -> Vec<Option<Spread>> {
        let of_cell =
            |open: &OpenCell<'_>| spread(&Observations::of(measurement, open.index), open);
        cells.iter().map(of_cell).collect()
    }
}

/// A row against its base, or against its former self.
struct Found {
    row: usize,
    comparison: Comparison,
    /// Whether it is one with its former self, which a gate may have a limit for.
    is_change: bool,
}

fn comparisons(measurement: &Measurement, open: &OpenCell<'_>, look: Look) -> Vec<Found> {
    let observations = Observations::of(measurement, open.index);
    let found = open.compared().filter_map(|(with, row)| {
        let comparison = compare(&observations, with, row, look)?;
        Some(Found { row, comparison, is_change: with >= open.cell.rows.len() })
    });
    found.collect()
}

/// When a comparison needs no more samples.
struct StoppingRules {
    rules: Rules,
    /// The level at which comparisons are different as things stand.
    level: f64,
}

impl StoppingRules {
    fn outlook(&self, Found { comparison, is_change, .. }: &Found) -> Outlook {
        let test = &comparison.test;
        let half = test.half_width(1.0 - self.level * comparison.share);
        let mut limits = self.rules.limits.into_iter().flatten();
        let is_aside =
            !*is_change || limits.all(|limit| (test.difference + limit.ln_1p()).abs() > half);
        let is_known = half <= (WELL_KNOWN * test.difference.abs()).min(PRECISE);
        let is_equivalent = is_equivalent(comparison, self.rules);
        match (is_known, is_equivalent) {
            _ if !is_aside => Outlook::Open,
            (true, _) => Outlook::Decided,
            // With a margin, what lies within it is not looked into any further.
            (false, true) if self.rules.margin.is_some() => Outlook::Decided,
            (false, true) => Outlook::Settled,
            (false, false) => Outlook::Open,
        }
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
