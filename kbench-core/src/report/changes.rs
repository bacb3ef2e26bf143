//! Rows against their former selves, where an older program was measured beside this one.

use super::{ChangeReport, RowReport};
use crate::infer::{Comparison, Estimate, Judgement, Observations, Rules, compare, judge};
use crate::measure::{Pass, RowMeasured};

const NO_CHANGE: &str = "not compared with the baseline: ";

/// Compares every row of a pass with its former self, and judges all of these comparisons together. They are a family of
/// their own: whether a row is as fast as it was is another question than whether it is as fast as its base. A gate relies
/// on them, so they are judged by the chance of any false one.
pub(super) fn add_changes(pass: &Pass, rules: Rules, rows: &mut [RowReport]) {
    let mut found: Vec<(usize, Comparison)> = Vec::new();
    let mut first = 0;
    if pass
        .measured
        .rows
        .iter()
        .zip(&pass.plan.cells)
        .all(|(known, cell)| known.len() <= cell.rows.len())
    {
        return;
    }
    for (index, cell) in pass.plan.cells.iter().enumerate() {
        let known = &pass.measured.rows[index];
        let observations = Observations::of(&pass.measured.measurement, index);
        for row in 0..cell.rows.len() {
            let (past, report) = (cell.past_of(row), &mut rows[first + row]);
            let RowMeasured { failure, declined, skipped, .. } = &known[past];
            let reason = failure.as_ref().or(declined.as_ref()).or(skipped.as_ref());
            if let Some(failure) = reason.filter(|_| report.time_ns.is_some()) {
                report.remarks.push(format!("{NO_CHANGE}{failure}"));
            }
            let then = Estimate::of(&observations.times(past));
            let is_sound = known[row].failure.is_none() && known[past].failure.is_none();
            if let Some(then) = then.filter(|_| is_sound)
                && let Some(comparison) =
                    compare(&observations, past, row, pass.measured.look(index, row))
            {
                // Both times are shown so that their ratio is the change.
                let beside = report.time_ns.filter(|_| observations.are_beside(past, row));
                let shown = beside.map(|now| now * comparison.speedup);
                report.change.baseline_time_ns = Some(shown.unwrap_or(then.time));
                let floor = pass.measured.clock_share(index, [past, row]);
                found.push((first + row, Comparison { floor, ..comparison }));
            }
        }
        first += cell.rows.len();
    }
    let comparisons: Vec<Comparison> = found.iter().map(|(_, comparison)| *comparison).collect();
    for ((row, comparison), judged) in found.iter().zip(judge(&comparisons, rules.of_changes())) {
        let (change, grounds) = (&mut rows[*row].change, judged.grounds);
        *change = ChangeReport {
            baseline_time_ns: change.baseline_time_ns,
            change: Some(growth(comparison.speedup)),
            change_low: grounds.map(|grounds| growth(grounds.high)),
            change_high: grounds.map(|grounds| growth(grounds.low)),
            change_p: Some(comparison.test.p),
            change_p_adjusted: grounds.map(|grounds| grounds.p_adjusted),
            change_verdict: Some(judged.verdict.to_string()),
            change_detectable: grounds.map(|grounds| grounds.detectable),
            memory_change: None,
        };
        debug_assert!(judged.verdict.judgement != Judgement::Slower || change.change > Some(0.0));
    }
}

/// How much longer something takes that is so many times as fast.
fn growth(speedup: f64) -> f64 {
    1.0 / speedup - 1.0
}
