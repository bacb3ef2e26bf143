//! criterion: a run of the base that is saved, and a run of the other that is compared with it.
//!
//! Its printed conclusion counts, which rests on p < 0.05 and its noise threshold of 1 %, both by default: *regressed* and
//! *improved* are differences, *within noise threshold* is the same, *no change detected* is inconclusive. Estimate and
//! interval are those of the relative change of the mean, which is what it prints.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use campaign::Task;
use serde::Deserialize;

use super::workshop::left;
use super::{Answer, Failure, Interval, Verdict, Workshop, process};
use crate::experiment::{Experiment, Tool};

/// Each of the two runs warms up for this share of the budget ...
const WARM_UP: f64 = 0.125;

/// ... and measures for this one. Its analysis comes on top, as it does for its users.
const MEASURING: f64 = 0.375;

/// Runs criterion twice.
pub(super) fn compare(experiment: &Experiment, workshop: &Workshop) -> Result<Answer, Failure> {
    let home = workshop.desk()?;
    let pair = experiment.pairs()[0];
    let run = |task: Task, baseline: &str| {
        let mut command = Command::new(workshop.executable(Tool::Criterion));
        command.env("CRITERION_HOME", &home).env("CAMPAIGN_TASK", task.to_string());
        command.args(arguments(experiment.budget)).args([baseline, "base"]);
        process::run(&mut command, experiment.budget)
    };
    run(pair.base, "--save-baseline")?;
    let printed = run(pair.other, "--baseline")?;
    let estimates = left(&home.join(Path::new("work/change/estimates.json")))?;
    read(&printed, &estimates).ok_or(Failure::Unreadable { program: "criterion", text: printed })
}

fn arguments(budget: Duration) -> Vec<String> {
    let seconds = |share: f64| (budget.as_secs_f64() * share).to_string();
    ["--bench", "--noplot", "--color", "never"]
        .map(str::to_owned)
        .into_iter()
        .chain(["--warm-up-time".to_owned(), seconds(WARM_UP)])
        .chain(["--measurement-time".to_owned(), seconds(MEASURING)])
        .collect()
}

/// What is needed of `change/estimates.json`.
#[derive(Deserialize)]
struct Estimates {
    mean: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    confidence_interval: ConfidenceInterval,
    point_estimate: f64,
}

#[derive(Deserialize)]
struct ConfidenceInterval {
    lower_bound: f64,
    upper_bound: f64,
}

fn read(printed: &str, estimates: &str) -> Option<Answer> {
    let Estimates { mean } = serde_json::from_str(estimates).ok()?;
    let ConfidenceInterval { lower_bound, upper_bound } = mean.confidence_interval;
    Some(Answer {
        estimate: mean.point_estimate.ln_1p(),
        interval: Some(Interval { low: lower_bound.ln_1p(), high: upper_bound.ln_1p() }),
        verdict: verdict(printed)?,
    })
}

fn verdict(printed: &str) -> Option<Verdict> {
    [
        ("Performance has regressed", Verdict::DifferentSlower),
        ("Performance has improved", Verdict::DifferentFaster),
        ("Change within noise threshold", Verdict::Same),
        ("No change in performance detected", Verdict::Inconclusive),
    ]
    .into_iter()
    .find_map(|(words, verdict)| printed.contains(words).then_some(verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESTIMATES: &str = r#"{"mean": {"confidence_interval": {"confidence_level": 0.95,
        "lower_bound": 0.01, "upper_bound": 0.03}, "point_estimate": 0.02, "standard_error": 0.005},
        "median": {"confidence_interval": {"confidence_level": 0.95, "lower_bound": 0,
        "upper_bound": 0}, "point_estimate": 0, "standard_error": 0}}"#;

    #[test]
    fn conclusion_and_estimate_are_read() {
        let printed = "work  time:   [183.69 µs 186.63 µs 191.32 µs]\n\
            change: [+1.0000% +2.0000% +3.0000%] (p = 0.00 < 0.05)\n\
            Performance has regressed.\n";
        let answer = read(printed, ESTIMATES).expect("readable");
        assert_eq!(answer.verdict, Verdict::DifferentSlower);
        assert_eq!(answer.estimate, 0.02f64.ln_1p());
        assert_eq!(answer.interval, Some(Interval { low: 0.01f64.ln_1p(), high: 0.03f64.ln_1p() }));
    }

    #[test]
    fn without_a_conclusion_there_is_no_answer() {
        assert_eq!(read("work time: [1 ns 1 ns 1 ns]", ESTIMATES), None);
        assert_eq!(read("Performance has improved.", "{}"), None);
    }
}
