//! What must be true of every report, whatever went wrong in its run.

use std::fmt;
use std::process::ExitCode;

use kbench::report::{Report, RowReport, Status};

/// Rows of kernels that never fail, in every run.
const HEALTHY_ROWS: usize = 8 + 2;

/// Share of identical pairs that may be called different: what kbench promises.
const PROMISED: f64 = 0.05;

/// As many false verdicts as come by chance less often than this are too many.
const CHANCE: f64 = 0.01;

/// The probability of as many false verdicts or more on so many identical pairs, when kbench keeps its promise.
fn chance(falsely_different: usize, same: usize) -> f64 {
    let odds = PROMISED / (1.0 - PROMISED);
    let (mut fewer, mut exactly) = (0.0, (1.0 - PROMISED).powi(same as i32));
    for count in 1..=falsely_different {
        fewer += exactly;
        exactly *= odds * (same + 1 - count) as f64 / count as f64;
    }
    1.0 - fewer
}

/// What was found so far.
#[derive(Default)]
pub(crate) struct Audit {
    runs: usize,
    /// Rows that broke, as they should.
    broken: usize,
    /// Verdicts on pairs that are the same.
    same: usize,
    /// Those that call them different.
    falsely_different: usize,
    /// Verdicts on the pair that differs.
    different: usize,
    /// Those that found it.
    found: usize,
    complaints: Vec<String>,
}

impl Audit {
    /// Looks at the report of one run.
    pub(crate) fn look(&mut self, report: &Report) {
        self.runs += 1;
        let is_healthy = |row: &&RowReport| row.variant != "breaks" && row.variant != "breaks_too";
        let healthy: Vec<&RowReport> = report.rows.iter().filter(is_healthy).collect();
        if healthy.len() != HEALTHY_ROWS {
            self.complain(format!("{}: {} healthy rows", report.run, healthy.len()));
        }
        for row in healthy {
            if row.status != Status::Ok || row.time_ns.is_none() {
                self.complain(format!("{}: {} is lost: {}", report.run, row.name, row.status));
            }
            self.judge(row, &report.run);
        }
        self.broken += report.failed().filter(|row| !is_healthy(row)).count();
    }

    fn judge(&mut self, row: &RowReport, run: &str) {
        let Some(verdict) = row.comparison.verdict.as_deref() else { return };
        let is_different = verdict.ends_with("faster") || verdict.ends_with("slower");
        match row.variant.as_str() {
            "twin" => {
                self.same += 1;
                self.falsely_different += usize::from(is_different);
                if is_different {
                    let (low, high) = (row.comparison.speedup_low, row.comparison.speedup_high);
                    let (launches, blocks) = (row.launches, row.blocks);
                    eprintln!(
                        "{run}: {} is called {verdict}: {low:?} to {high:?}, {launches} launches, {blocks} blocks",
                        row.name
                    );
                }
            }
            "heavier" => {
                self.different += 1;
                self.found += usize::from(verdict.ends_with("slower"));
                let is_wrong = ["faster", "equivalent", "equal within 5 %"];
                if is_wrong.iter().any(|word| verdict.ends_with(word)) {
                    self.complain(format!("{run}: {} is called {verdict}", row.name));
                }
            }
            _ => {}
        }
    }

    /// Notes something that must not be.
    pub(crate) fn complain(&mut self, complaint: String) {
        eprintln!("complaint: {complaint}");
        self.complaints.push(complaint);
    }

    /// Says how it went.
    pub(crate) fn conclude(mut self) -> ExitCode {
        if chance(self.falsely_different, self.same) < CHANCE {
            self.complain(format!(
                "{} of {} identical pairs are called different",
                self.falsely_different, self.same
            ));
        }
        if self.runs == 0 || self.broken == 0 {
            self.complain("nothing ran, or nothing broke".to_owned());
        }
        eprintln!("{self}; {} complaints", self.complaints.len());
        for complaint in &self.complaints {
            eprintln!("  {complaint}");
        }
        ExitCode::from(u8::from(!self.complaints.is_empty()))
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Audit { runs, broken, same, falsely_different, different, found, .. } = self;
        write!(
            f,
            "{runs} runs, {broken} rows broke, {falsely_different} of {same} identical pairs called different, \
             {found} of {different} differences found"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the table of the binomial distribution: 2 of 8 in one soak of 17, 3 of 8 in one of 170.
    #[test]
    fn false_verdicts_are_too_many_when_chance_does_not_explain_them() {
        assert_eq!(chance(0, 8), 1.0);
        assert!((chance(2, 8) - 0.0572).abs() < 1e-4 && (chance(3, 8) - 0.0058).abs() < 1e-4);
        assert!(chance(11, 100) > CHANCE && chance(12, 100) < CHANCE);
    }
}
