//! The author's performance targets, judged.

use serde::{Deserialize, Serialize};

use super::assemble::Compared;
use super::{RowReport, Status, units};
use crate::infer::{Attainment, Comparison, Estimate, Mean, Observations, Scope, compare};
use crate::kernel::{Expectation, Metric};
use crate::measure::Pass;
use crate::plan::Row;

const NO_CEILING: &str = "no ceiling is measured on this backend";
const NO_COMPARISON: &str = "there is no base to compare with, or it has no figures";
const NO_OTHERS: &str = "there is no other variant to compare with";
const NO_FIGURES: &str = "there are no figures";

/// A target of a variant at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TargetReport {
    /// As written.
    pub target: String,
    /// Whether it is met.
    pub verdict: Attainment,
    /// Why.
    pub reason: String,
}

/// Judges all targets of a pass, at the largest thread count of each variant. The chance that any is wrongly said to be met
/// or missed is 5 %: intervals are adjusted for their number. One launch cannot show that a target is missed.
pub(super) fn judge_targets(pass: &Pass, rows: &mut [RowReport], comparisons: &[Compared]) {
    let wanted = targets(pass);
    let judge = Judge { pass, comparisons, count: wanted.len() };
    for target in &wanted {
        let report = judge.report(target, &rows[target.index]);
        rows[target.index].expectations.push(report);
    }
}

/// What targets are judged by.
struct Judge<'a> {
    pass: &'a Pass,
    comparisons: &'a [Compared],
    /// How many targets there are.
    count: usize,
}

/// A figure with its interval, in the unit of its limit times a scale.
struct Figure {
    scale: f64,
    value: f64,
    interval: (f64, f64),
    scope: Scope,
}

impl Judge<'_> {
    fn report(&self, target: &Target, row: &RowReport) -> TargetReport {
        let Target { expectation, .. } = target;
        let (verdict, reason) = match (&row.status, self.figure(target, row)) {
            (Status::Ok, Ok(figure)) => verdict(expectation, &figure),
            (Status::Ok, Err(reason)) => (Attainment::Undecided, reason.to_owned()),
            (status, _) => (Attainment::Undecided, status.to_string()),
        };
        TargetReport { target: expectation.text.to_owned(), verdict, reason }
    }

    /// A share of a ceiling is a time, upside down.
    fn ceiling(&self, target: &Target, row: &RowReport) -> Result<Figure, &'static str> {
        let share = row.ceiling_share.ok_or(NO_CEILING)?;
        let Figure { value, interval: (low, high), scope, .. } = self.time(target, row)?;
        let interval = (share * value / high, share * value / low);
        Ok(Figure { scale: 1.0, value: share, interval, scope })
    }

    fn time(&self, target: &Target, row: &RowReport) -> Result<Figure, &'static str> {
        let measurement = &self.pass.measured.measurement;
        let observations = Observations::of(measurement, target.cell);
        let estimate = Estimate::among(&observations.times(target.row), self.count);
        // The time is the one that the row shows.
        let shown = |estimate: Estimate| row.time_ns.map_or(estimate, |time| estimate.at(time));
        let figure = |estimate: Estimate| Figure {
            scale: 1e9,
            value: estimate.time,
            interval: (estimate.low, estimate.high),
            scope: observations.scope,
        };
        estimate.map(shown).map(figure).ok_or(NO_FIGURES)
    }

    fn figure(&self, target: &Target, row: &RowReport) -> Result<Figure, &'static str> {
        // Of several that may have been chosen, each counts as a target of its own.
        let of = |comparison: &Comparison, choices: usize| Figure {
            scale: 1.0,
            value: comparison.speedup,
            interval: comparison.interval_among(self.count * choices),
            scope: comparison.scope,
        };
        match target.expectation.metric {
            Metric::Ceiling => self.ceiling(target, row),
            Metric::Speedup => {
                let mut found = self.comparisons.iter().filter(|known| known.row == target.index);
                found.next().map(|known| of(&known.comparison, 1)).ok_or(NO_COMPARISON)
            }
            Metric::Best => {
                let found = best_other(self.pass, target.cell, target.row);
                found.map(|(best, choices)| of(&best, choices)).ok_or(NO_OTHERS)
            }
            Metric::Time => self.time(target, row),
        }
    }
}

fn verdict(expectation: &Expectation, figure: &Figure) -> (Attainment, String) {
    let Figure { scale, value, interval, scope } = *figure;
    let limit = scale * expectation.value;
    let reason = reason(expectation.metric, value, interval);
    match (Attainment::of(expectation.bound, limit, interval), scope) {
        (Attainment::Missed, Scope::Segments) => {
            (Attainment::Undecided, format!("{reason} in one launch"))
        }
        (verdict, _) => (verdict, reason),
    }
}

/// A row against the fastest of the others, and how many others there are: any of them might have been the fastest.
fn best_other(pass: &Pass, cell: usize, row: usize) -> Option<(Comparison, usize)> {
    let Pass { measured, .. } = pass;
    let observations = Observations::of(&measured.measurement, cell);
    let rows = &pass.plan.cells[cell].rows;
    let is_other = |other: &usize| !std::ptr::eq(rows[*other].variant, rows[row].variant);
    let others = (0..rows.len())
        .filter(is_other)
        .filter(|other| pass.plan.cells[cell].is_primary(*other))
        .filter(|other| measured.rows[cell][*other].failure.is_none());
    let timed = others.filter_map(|other| Some((other, Mean::of(&observations.times(other))?)));
    let timed: Vec<(usize, Mean)> = timed.collect();
    let (best, _) = timed.iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    Some((compare(&observations, *best, row, measured.look(cell, row))?, timed.len()))
}

/// A target at one size.
struct Target {
    /// Position of its row in the report.
    index: usize,
    cell: usize,
    row: usize,
    expectation: Expectation,
}

/// The targets of all variants at the sizes that they are about.
fn targets(pass: &Pass) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut index = 0;
    for (number, cell) in pass.plan.cells.iter().enumerate() {
        for (row, planned) in cell.rows.iter().enumerate() {
            let is_about = |expectation: &&Expectation| {
                expectation.at.is_none_or(|at| at.guarded(&cell.size.values))
            };
            let has_more = |other: &Row| {
                std::ptr::eq(other.variant, planned.variant) && other.threads > planned.threads
            };
            let is_meant =
                !planned.ignored && cell.is_primary(row) && !cell.rows.iter().any(has_more);
            let expectations = planned.variant.expectations.iter().filter(|_| is_meant);
            targets.extend(expectations.filter(is_about).map(|expectation| Target {
                index,
                cell: number,
                row,
                expectation: *expectation,
            }));
            index += 1;
        }
    }
    targets
}

fn reason(metric: Metric, figure: f64, (low, high): (f64, f64)) -> String {
    let show = |value: f64| match metric {
        Metric::Time => units::time(value),
        Metric::Speedup => format!("{}×", units::ratio(value)),
        Metric::Best | Metric::Ceiling => {
            let shown = |percent| format!("{percent:.1}");
            format!("{} %", units::within_reason(100.0 * value, shown))
        }
    };
    let what = if metric == Metric::Time { "takes" } else { "has" };
    format!("{what} {} [{}, {}]", show(figure), show(low), show(high))
}
