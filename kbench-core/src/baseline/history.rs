//! What earlier runs let one expect of the next.
//!
//! A run is one draw: what the machine is like for minutes, and what no number of samples within it averages out. So a row
//! has one value per run, the mean over launches of the logarithm of its time against the sentinel's, and the values of k
//! earlier runs with mean m and standard deviation s predict the next one:
//!
//! > m ± t(k − 1) · s · √(1 + 1/k)
//!
//! (any textbook's prediction interval). What falls outside is a change. With fewer than [`ENOUGH_RUNS`] runs the standard
//! deviation itself is hardly known, and one quiet week makes everything after it look like a change: verdicts are
//! *advisory* then. Runs count that are on the level of the baseline ([`levels`]): an improvement that was made before it,
//! or a regression since, is not what a row is expected to be.

use std::collections::HashMap;

use crate::infer::{LevelRules, NARROW_MARGIN, holm, levels, student_quantile, student_two_sided};
use crate::kernel::Backend;
use crate::report::{ChangeReport, Report, RowKey, RowReport};

/// Runs from which on a verdict is more than advice.
pub const ENOUGH_RUNS: usize = 8;

/// Earlier runs, oldest first.
pub struct Earlier {
    /// What they found.
    pub runs: Vec<Values>,
    /// Which of them is the baseline.
    pub baseline: usize,
}

impl Earlier {
    /// What runs found about a row that were like the baseline: those of the level that it is on.
    fn of(&self, key: &RowKey) -> Vec<f64> {
        let known = self.runs.iter().enumerate();
        let known: Vec<(usize, f64)> =
            known.filter_map(|(run, values)| Some((run, *values.get(key)?))).collect();
        let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
        let Some(own) = known.iter().position(|(run, _)| *run == self.baseline) else {
            return Vec::new();
        };
        let begins = levels(&values, LevelRules::default());
        let from = begins.iter().copied().rfind(|begin| *begin <= own).unwrap_or(0);
        let to = begins.iter().copied().find(|begin| *begin > own).unwrap_or(values.len());
        values[from..to].to_vec()
    }
}

/// What one run found: for every row the mean logarithm of its anchored time.
pub type Values = HashMap<RowKey, f64>;

/// The values of a run.
pub fn values(report: &Report) -> Values {
    let rows = report.rows.iter().filter(|row| row.status.has_figures());
    rows.filter_map(|row| Some((row.key(), value(row)?))).collect()
}

/// Mean over launches of the median logarithm of a sample against its sentinel. Samples of a device have none that speaks
/// for them: their own logarithm counts.
fn value(row: &RowReport) -> Option<f64> {
    let (raw, is_device) = (&row.raw, row.backend == Backend::Cuda.name());
    let sentinels = match raw.sweeps.iter().flatten().any(|block| !block.is_empty()) {
        true => &raw.sweeps,
        false => &raw.chains,
    };
    let of_launch = |(launch, blocks): (usize, &Vec<Vec<f64>>)| {
        let sentinels: Vec<f64> = sentinels.get(launch)?.iter().flatten().copied().collect();
        let samples = blocks.iter().flatten().zip(sentinels);
        let anchored = samples.map(|(sample, sentinel)| {
            let time = sample.max(1e-3).ln();
            if is_device { time } else { time - sentinel.ln() }
        });
        let mut sorted: Vec<f64> = anchored.filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    };
    let launches: Vec<f64> = raw.samples.iter().enumerate().filter_map(of_launch).collect();
    (!launches.is_empty()).then(|| launches.iter().sum::<f64>() / launches.len() as f64)
}

/// What the past says about one row.
struct Expectation {
    /// The value less what was expected.
    difference: f64,
    /// Half of the interval; none from a single run.
    half: Option<f64>,
    /// Chance of such a difference.
    p: Option<f64>,
    /// Earlier runs.
    runs: usize,
}

impl Expectation {
    fn of(now: f64, earlier: &[f64]) -> Option<Self> {
        let k = earlier.len() as f64;
        let mean = earlier.iter().sum::<f64>() / k;
        let difference = now - mean;
        if earlier.len() < 2 {
            let runs = earlier.len();
            return (runs == 1).then_some(Expectation { difference, half: None, p: None, runs });
        }
        let variance = earlier.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (k - 1.0);
        let error = (variance * (1.0 + 1.0 / k)).sqrt();
        let half = student_quantile(0.975, k - 1.0) * error;
        let t = if difference == 0.0 { 0.0 } else { difference / error };
        let p = student_two_sided(t, k - 1.0);
        Some(Expectation { difference, half: Some(half), p: Some(p), runs: earlier.len() })
    }
}

/// Judges every row of a report by what earlier runs let one expect. A row's time of the baseline is its own figure.
pub fn judge_by_history(report: &mut Report, baseline: &Report, earlier: &Earlier) {
    let then: HashMap<RowKey, f64> =
        baseline.rows.iter().filter_map(|row| Some((row.key(), row.time_ns?))).collect();
    let significance = report.plan.significance;
    let expected = |row: &RowReport| {
        Expectation::of(value(row).filter(|_| row.time_ns.is_some())?, &earlier.of(&row.key()))
    };
    let found: Vec<(usize, Expectation)> = report
        .rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| Some((index, expected(row)?)))
        .collect();
    let adjusted = holm(&found.iter().map(|(_, e)| e.p.unwrap_or(1.0)).collect::<Vec<_>>());
    for ((index, expectation), p_adjusted) in found.into_iter().zip(adjusted) {
        let Expectation { difference, half, p, runs } = expectation;
        let word = match half {
            Some(_) if p_adjusted < significance && difference > 0.0 => "slower",
            Some(_) if p_adjusted < significance => "faster",
            Some(half) if difference.abs() + half < NARROW_MARGIN.ln_1p() => "equivalent",
            _ => "inconclusive",
        };
        let verdict = if runs < ENOUGH_RUNS { format!("advisory {word}") } else { word.to_owned() };
        let key = report.rows[index].key();
        report.rows[index].change = ChangeReport {
            baseline_time_ns: then.get(&key).copied(),
            change: Some(difference.exp_m1()),
            change_low: half.map(|half| (difference - half).exp_m1()),
            change_high: half.map(|half| (difference + half).exp_m1()),
            change_p: p,
            change_p_adjusted: p.map(|_| p_adjusted),
            change_verdict: Some(verdict),
            change_detectable: half.map(f64::exp_m1),
            memory_change: None,
        };
    }
}
