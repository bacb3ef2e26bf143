//! The author's performance targets, judged.

use serde::Serialize;

use super::{RowReport, Status, units};
use crate::infer::{Attainment, Calm, Comparison, Estimate, Mean, Observations, compare};
use crate::kernel::{Expectation, Metric};
use crate::measure::{Look, Pass};

const NO_CEILING: &str = "no ceiling is measured on this backend";
const NO_COMPARISON: &str = "there is no base to compare with, or it has no figures";
const NO_OTHERS: &str = "there is no other variant to compare with";
const NO_FIGURES: &str = "there are no figures";

/// A target of a variant at one size.
#[derive(Clone, Debug, Serialize)]
pub struct TargetReport {
    /// As written.
    pub target: &'static str,
    /// Whether it is met.
    pub verdict: Attainment,
    /// Why.
    pub reason: String,
}

/// Judges all targets of a pass. The chance that any is wrongly said to be met or missed is 5 %: intervals are adjusted for
/// their number.
pub(super) fn judge_targets(
    pass: &Pass,
    rows: &mut [RowReport],
    comparisons: &[(usize, Comparison)],
) {
    let calm = Calm::of(&pass.measured.measurement);
    let wanted = targets(pass, rows);
    for Target { index, cell, row, expectation } in &wanted {
        let report = &mut rows[*index];
        let judged = match expectation.metric {
            _ if report.time_ns.is_none() => Err(NO_FIGURES),
            Metric::Ceiling => Err(NO_CEILING),
            Metric::Speedup => comparisons
                .iter()
                .find(|(other, _)| other == index)
                .map(|(_, comparison)| {
                    let interval = comparison.interval_among(wanted.len());
                    (1.0, comparison.speedup, interval)
                })
                .ok_or(NO_COMPARISON),
            Metric::Best => best_other(pass, *cell, *row, calm)
                .map(|comparison| {
                    (1.0, comparison.speedup, comparison.interval_among(wanted.len()))
                })
                .ok_or(NO_OTHERS),
            Metric::Time => {
                let observations = Observations::of(&pass.measured.measurement, *cell, calm);
                Estimate::among(&observations.times(*row), wanted.len())
                    .map(|estimate| (1e9, estimate.time, (estimate.low, estimate.high)))
                    .ok_or(NO_FIGURES)
            }
        };
        report.expectations.push(match judged {
            Ok((scale, figure, interval)) => TargetReport {
                target: expectation.text,
                verdict: Attainment::of(expectation.bound, scale * expectation.value, interval),
                reason: reason(expectation.metric, figure, interval),
            },
            Err(reason) => TargetReport {
                target: expectation.text,
                verdict: Attainment::Undecided,
                reason: reason.to_owned(),
            },
        });
    }
}

/// A row against the fastest of the others.
fn best_other(pass: &Pass, cell: usize, row: usize, calm: Calm) -> Option<Comparison> {
    let Pass { measured, .. } = pass;
    let observations = Observations::of(&measured.measurement, cell, calm);
    let others = (0..measured.rows[cell].len())
        .filter(|other| *other != row && measured.rows[cell][*other].failure.is_none());
    let timed = others.filter_map(|other| Some((other, Mean::of(&observations.times(other))?)));
    let (best, _) = timed.min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    compare(&observations, best, row, measured.looks[cell].unwrap_or(Look::ONLY))
}

/// A target at one size.
struct Target {
    /// Position of its row in the report.
    index: usize,
    cell: usize,
    row: usize,
    expectation: Expectation,
}

/// The targets of all rows that ran, at the sizes that they are about.
fn targets(pass: &Pass, rows: &[RowReport]) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut index = 0;
    for (number, cell) in pass.plan.cells.iter().enumerate() {
        for (row, planned) in cell.rows.iter().enumerate() {
            let is_about = |expectation: &&Expectation| {
                expectation.at.is_none_or(|at| (at.holds)(&cell.size.values))
            };
            let runs = rows[index].status == Status::Ok;
            let expectations = planned.variant.expectations.iter().filter(|_| runs);
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
        Metric::Speedup => format!("{}×", units::digits(value)),
        Metric::Best | Metric::Ceiling => units::percent(value),
    };
    let what = if metric == Metric::Time { "takes" } else { "has" };
    format!("{what} {} [{}, {}]", show(figure), show(low), show(high))
}
