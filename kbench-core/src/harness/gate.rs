//! `--gate 5%`: what makes a run fail that measured all it should.

use std::str::FromStr;

use super::Exit;
use super::output::say;
use crate::infer::Attainment;
use crate::report::{Report, RowReport, TargetReport};

/// The gate. Its limit is for regressions against a baseline; targets have limits of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gate {
    /// As a share.
    limit: f64,
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a limit; write for example 5%");
        let number = text.trim().trim_end_matches('%').trim();
        let percent: f64 = number.parse().map_err(|_| wrong())?;
        if !(0.0..=1000.0).contains(&percent) {
            return Err(wrong());
        }
        Ok(Gate { limit: percent / 100.0 })
    }
}

impl Gate {
    /// Fails a run that missed a target, and lists what is not decided.
    pub(super) fn judge(self, report: &Report) -> Exit {
        let percent = 100.0 * self.limit;
        say(&format!("note: --gate {percent}%: without a baseline, only targets are judged"));
        let with = |verdict: Attainment| -> Vec<String> {
            let of_row = |row: &RowReport| {
                let targets = row.expectations.iter().filter(|target| target.verdict == verdict);
                let line = |t: &TargetReport| format!("  {}: {}: {}", row.name, t.target, t.reason);
                targets.map(line).collect::<Vec<_>>()
            };
            report.rows.iter().flat_map(of_row).collect()
        };
        let undecided = with(Attainment::Undecided);
        if !undecided.is_empty() {
            say(&format!("note: {} undecided:\n{}", count(undecided.len()), undecided.join("\n")));
        }
        let missed = with(Attainment::Missed);
        if missed.is_empty() {
            return Exit::Fine;
        }
        say(&format!("error: {} missed:\n{}", count(missed.len()), missed.join("\n")));
        Exit::Gate
    }
}

fn count(targets: usize) -> String {
    format!("{targets} {}", if targets == 1 { "target is" } else { "targets are" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_percentage() {
        assert_eq!("5%".parse(), Ok(Gate { limit: 0.05 }));
        assert_eq!("12.5 %".parse(), Ok(Gate { limit: 0.125 }));
        for text in ["", "x", "-1%", "nan", "5%%5"] {
            let error = text.parse::<Gate>().expect_err(text);
            assert!(error.contains("write for example 5%"), "{error}");
        }
    }
}
