//! divan: a run of the base and a run of the other, each for half of the budget.
//!
//! divan prints times and compares nothing. The rule is ours, as a careful reader's would be: medians that differ by more
//! than 1 % are different, others are the same.

use std::process::Command;

use campaign::Task;

use super::{Answer, Failure, Verdict, Workshop, process};
use crate::experiment::{Experiment, Tool};

/// Medians that are further apart are different.
const THRESHOLD: f64 = 0.01;

/// Each run gets this share of the budget.
const SHARE: f64 = 0.5;

/// The column of the median, after those of the fastest and the slowest.
const MEDIAN: usize = 2;

/// Runs divan twice.
pub(super) fn compare(experiment: &Experiment, workshop: &Workshop) -> Result<Answer, Failure> {
    let pair = experiment.pairs()[0];
    let seconds = (experiment.budget.as_secs_f64() * SHARE).to_string();
    let median_of = |task: Task| {
        let mut command = Command::new(workshop.executable(Tool::Divan));
        command.env("CAMPAIGN_TASK", task.to_string()).args(["--bench", "--color", "never"]);
        command.args(["--min-time", &seconds, "--max-time", &seconds]);
        let text = process::run(&mut command, experiment.budget)?;
        median(&text).ok_or(Failure::Unreadable { program: "divan", text })
    };
    Ok(answer(median_of(pair.base)?, median_of(pair.other)?))
}

fn answer(base: f64, other: f64) -> Answer {
    let estimate = (other / base).ln();
    let differs = (other / base - 1.0).abs() > THRESHOLD;
    let verdict = if differs { Verdict::different(estimate) } else { Verdict::Same };
    Answer { estimate, interval: None, verdict }
}

/// The median in divan's table, in nanoseconds.
fn median(printed: &str) -> Option<f64> {
    let row = printed.lines().find(|line| line.contains("─ work"))?;
    let (number, unit) = row.split('│').nth(MEDIAN)?.trim().split_once(' ')?;
    let nanoseconds = match unit.trim() {
        "ns" => 1.0,
        "µs" | "μs" | "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_found_in_the_table() {
        let printed = "\
subject_divan  fastest       │ slowest       │ median        │ mean          │ samples │ iters
╰─ work        669.1 µs      │ 1.921 ms      │ 760.6 µs      │ 776.3 µs      │ 312     │ 312
";
        assert_eq!(median(printed), Some(760_600.0));
        assert_eq!(median(&printed.replace("760.6 µs", "1.02 ms")), Some(1_020_000.0));
        assert_eq!(median("Timer precision: 28 ns"), None);
    }

    #[test]
    fn one_percent_is_the_limit() {
        assert_eq!(answer(1000.0, 1009.0).verdict, Verdict::Same);
        assert_eq!(answer(1000.0, 1011.0).verdict, Verdict::DifferentSlower);
        assert_eq!(answer(1000.0, 989.0).verdict, Verdict::DifferentFaster);
    }
}
