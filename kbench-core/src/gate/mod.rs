//! The gate: what makes a run fail that measured all it should.
//!
//! A row fails the gate when it is *verified* to be slower than the baseline by more than the limit: the verdict is
//! `slower`, and the whole interval lies beyond the limit, both by the chance of any false change (Holm). What might be
//! beyond it, as far as anybody can tell, does not fail a build and is listed. Memory needs no statistics: one call
//! allocates what it allocates. A crossover has moved when its brackets are further apart than the limit. A run that compares
//! less than the baseline has fails as well: otherwise whatever removes rows would pass.

mod policy;
mod summary;

pub use crate::settings::SettingsError;
pub use policy::{Policy, PolicyError};
pub use summary::summary;

use std::collections::{HashMap, HashSet};

use crate::infer::Attainment;
use crate::report::{
    BaselineReport, Report, RowKey, RowReport, ShiftReport, Status, signed_percent,
};

/// What the gate says about a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ruling {
    /// What fails the run.
    pub blocked: Vec<String>,
    /// What is to be explained by whoever made the change.
    pub to_explain: Vec<String>,
    /// What cannot be told, and does not fail the run.
    pub open: Vec<String>,
    /// Rows that seem to be within their limits, and whose intervals reach beyond.
    pub wide: usize,
}

impl Policy {
    /// Judges a run: its changes against the baseline, and the targets of its authors.
    pub fn judge(&self, report: &Report) -> Ruling {
        let mut ruling = Ruling::default();
        for row in &report.rows {
            self.judge_time(row, &mut ruling);
            self.judge_memory(row, &mut ruling);
            judge_targets(row, &mut ruling);
        }
        if let Some(baseline) = &report.baseline {
            ruling.blocked.extend(uncompared(report, baseline));
        }
        for shift in report.baseline.iter().flat_map(|baseline| &baseline.shifts) {
            self.judge_shift(shift, &mut ruling);
        }
        ruling
    }

    fn judge_time(&self, row: &RowReport, ruling: &mut Ruling) {
        let change = &row.change;
        let (Some(value), Some(verdict)) = (change.change, change.change_verdict.as_deref()) else {
            return;
        };
        let limit = self.time_limit(&row.kernel);
        let is_beyond =
            |limit: f64| verdict == "slower" && change.change_low.is_some_and(|low| low > limit);
        let may_be = |limit: f64| change.change_high.is_none_or(|high| high > limit);
        let line = |limit: f64| {
            let interval = match (change.change_low, change.change_high) {
                (Some(low), Some(high)) => {
                    format!(" [{}, {}]", signed_percent(low), signed_percent(high))
                }
                _ => String::new(),
            };
            let (key, value, limit) = (row.key(), signed_percent(value), signed_percent(limit));
            format!("{key}: time {value}{interval}, limit {limit}: {verdict}")
        };
        if is_beyond(limit) {
            ruling.blocked.push(line(limit));
            return;
        }
        match self.explain {
            Some(explain) if is_beyond(explain) => ruling.to_explain.push(line(explain)),
            // An estimate within the limit whose interval reaches beyond it is how most quiet rows of a short run look:
            // only who seems to be beyond is listed by name.
            _ if value > limit && may_be(limit) => ruling.open.push(line(limit)),
            _ if may_be(limit) => ruling.wide += 1,
            _ => {}
        }
    }

    fn judge_memory(&self, row: &RowReport, ruling: &mut Ruling) {
        if let Some(change) = row.change.memory_change.filter(|change| *change > self.memory) {
            let (value, limit) = (signed_percent(change), signed_percent(self.memory));
            ruling.blocked.push(format!("{}: memory {value}, limit {limit}", row.key()));
        }
    }

    fn judge_shift(&self, shift: &ShiftReport, ruling: &mut Ruling) {
        let ShiftReport { kernel, element, variant, held, .. } = shift;
        let at = if held.is_empty() { String::new() } else { format!(" at {held}") };
        let name = format!("{kernel}/{variant}/{element}{at}");
        match (shift.then, shift.now, shift.octaves) {
            (Some([_, then]), Some([now, _]), Some(octaves)) if octaves > self.crossover => {
                ruling.blocked.push(format!(
                    "{name}: pays off {octaves:.2} octaves later: by work {then} then, not before {now} now, limit {} octaves",
                    self.crossover
                ));
            }
            (Some([_, then]), None, _) if !shift.wins_everywhere => {
                ruling.open.push(format!(
                    "{name}: paid off by work {then}, and no crossover is shown now"
                ));
            }
            _ => {}
        }
    }
}

/// Rows of the baseline that were not compared: which of them there are, or that there is nothing else.
fn uncompared(report: &Report, baseline: &BaselineReport) -> Vec<String> {
    let measured: Vec<RowKey> =
        report.rows.iter().filter(|row| row.time_ns.is_some()).map(RowReport::key).collect();
    let is_compared = |row: &&RowReport| row.change.change.is_some();
    if !measured.is_empty() && !report.rows.iter().any(|row| is_compared(&row)) {
        let reason = baseline.reason.as_deref().unwrap_or("no row is in both");
        return vec![format!("nothing was compared with `{}`: {reason}", baseline.name)];
    }
    let lost = report.rows.iter().filter(|row| row.time_ns.is_some() && !is_compared(row));
    let fresh: HashSet<&String> = baseline.fresh.iter().collect();
    let lost = lost.map(|row| row.key().to_string()).filter(|key| !fresh.contains(key));
    let lost = lost.map(|key| format!("{key}: not compared, see its remark"));
    let skipped: HashMap<String, &Status> =
        report.rows.iter().map(|row| (row.key().to_string(), &row.status)).collect();
    let gone = baseline.gone.iter().map(|key| match skipped.get(key) {
        Some(status) => format!("{key}: not compared, {status}"),
        None => format!("{key}: not compared, it is in the baseline and not in this run"),
    });
    lost.chain(gone).collect()
}

fn judge_targets(row: &RowReport, ruling: &mut Ruling) {
    for target in &row.expectations {
        let line = format!("{}: target {}: {}", row.name, target.target, target.reason);
        match target.verdict {
            Attainment::Missed => ruling.blocked.push(line),
            Attainment::Undecided => ruling.open.push(line),
            Attainment::Met => {}
        }
    }
}

#[cfg(test)]
mod tests;
