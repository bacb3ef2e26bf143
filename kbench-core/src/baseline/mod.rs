//! A run against a baseline: another, older run that is kept by name.
//!
//! Where the program of the baseline was kept, it is measured again, in turns with the one of today, and rows are judged as
//! fully as variants are: the measuring stage has done all of it, and this module only says what belongs to what. Otherwise
//! there are figures of another day. They are never taken for samples of today: what earlier runs of the same machine say
//! about the spread from run to run is what a new run is held against ([`judge_by_history`]), and with few of them the verdict is
//! *advisory*. Figures of another machine say nothing, and are refused ([`differences`]).

mod foreign;
mod history;
mod shift;
mod trend;

pub use foreign::{Machine, differences};
pub use history::{ENOUGH_RUNS, Earlier, Values, judge_by_history, values};

pub use trend::Trends;

use std::collections::{HashMap, HashSet};

use crate::order;
use crate::report::{BaselineReport, Method, Report, RowKey, RowReport, Status};

/// A run by name.
pub struct Baseline {
    /// The name.
    pub name: String,
    /// The run.
    pub report: Report,
}

/// How a run was compared with its baseline.
pub enum Comparison<'a> {
    /// The program of the baseline was measured in turns with that of the run.
    Interleaved,
    /// By runs of the same machine.
    History {
        /// What they found.
        runs: &'a Earlier,
        /// Why the program was not measured.
        reason: String,
    },
    /// Not at all, or by its program alone: it is of another machine.
    Foreign {
        /// Why nothing was compared, if so.
        reason: Option<String>,
    },
}

impl Baseline {
    /// The rows that it has figures of.
    pub fn rows(&self) -> HashSet<RowKey> {
        let rows = self.report.rows.iter();
        rows.filter(|row| row.status.has_figures() && row.time_ns.is_some())
            .map(|row| row.key())
            .collect()
    }

    /// How much more memory a call takes than it did.
    fn compare_memory(&self, report: &mut Report) {
        let peak = |row: &RowReport| {
            row.device
                .device_peak_bytes
                .or(row.memory.allocated_peak_bytes)
                .map(|bytes| bytes as f64)
        };
        let then: HashMap<RowKey, f64> =
            self.report.rows.iter().filter_map(|row| Some((row.key(), peak(row)?))).collect();
        for row in &mut report.rows {
            let change = then.get(&row.key()).zip(peak(row)).map(|(then, now)| match *then {
                // Something where there was nothing is more than any share.
                0.0 if now > 0.0 => f64::MAX,
                0.0 => 0.0,
                then => now / then - 1.0,
            });
            row.change.memory_change = change;
        }
    }

    /// Notes on a report what the baseline says about it.
    pub fn put_beside(&self, report: &mut Report, comparison: Comparison<'_>) {
        let is_foreign = matches!(comparison, Comparison::Foreign { .. });
        let (method, reason) = match comparison {
            Comparison::Interleaved => (Method::Interleaved, None),
            Comparison::History { runs, reason } => {
                judge_by_history(report, &self.report, runs);
                (Method::History, Some(reason))
            }
            Comparison::Foreign { reason } => (Method::Interleaved, reason),
        };
        if !is_foreign {
            self.compare_memory(report);
        }
        let then = self.rows();
        let keys: HashSet<RowKey> = report.rows.iter().map(|row| row.key()).collect();
        let measured = report.rows.iter().filter(|row| row.time_ns.is_some());
        let fresh = measured.map(|row| row.key()).filter(|key| !then.contains(key));
        let skipped = report.rows.iter().filter(|row| matches!(row.status, Status::Skipped(_)));
        let skipped: HashSet<RowKey> = skipped.map(RowReport::key).collect();
        // A run of a part of the suite does not miss the rest of it.
        let is_missed = |key: &&RowKey| {
            skipped.contains(*key) || (report.filtered_out == 0 && !keys.contains(*key))
        };
        let gone = then.iter().filter(is_missed);
        let mut gone: Vec<String> = gone.map(ToString::to_string).collect();
        order::sort(&mut gone);
        report.baseline = Some(BaselineReport {
            name: self.name.clone(),
            run: self.report.run.clone(),
            started: self.report.started,
            git_commit: self.report.environment.git_commit.clone(),
            method,
            reason,
            gone,
            fresh: fresh.map(|key| key.to_string()).collect(),
            shifts: match is_foreign {
                true => Vec::new(),
                false => shift::shifts(&self.report.crossovers, &report.crossovers),
            },
        });
    }
}

#[cfg(test)]
mod tests;
