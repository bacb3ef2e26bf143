//! kbench: one run of base and other, whose verdict is taken as it stands.
//!
//! *faster* and *slower* are differences, *equivalent* is the same, *equal within 5 %* is too little to say of the differences
//! here; the reservation *provisional* is ignored.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use campaign::Workload;
use serde::Deserialize;

use super::workshop::left;
use super::{Answer, Failure, Interval, Verdict, Workshop, process};
use crate::experiment::{Experiment, Null, Tool};

/// kbench's budget is that of its measuring; starting and checking come on top, so that they are taken off it.
/// Chains are checked in no time.
const CHAIN_ALLOWANCE: Duration = Duration::from_millis(15);

/// Every check of a walk fills rings and looks at all of their elements.
const SWEEP_ALLOWANCE: Duration = Duration::from_millis(140);

/// What is left to measure in, however short the budget.
const LEAST_BUDGET: Duration = Duration::from_millis(50);

/// A comparison has two rows, which share its time.
const ROWS: u32 = 2;

/// Runs kbench on all cells of an experiment at once.
pub(super) fn compare(
    experiment: &Experiment,
    seed: u64,
    workshop: &Workshop,
) -> Result<Vec<Answer>, Failure> {
    let document = workshop.desk()?.join("run.json");
    let mut command = Command::new(workshop.executable(Tool::Kbench));
    command.args(arguments(experiment, seed));
    command.arg("--export").arg(format!("json={}", document.display()));
    process::run(&mut command, experiment.budget * experiment.cells as u32)?;
    let text = left(&document)?;
    read(experiment, &text)
}

fn arguments(experiment: &Experiment, seed: u64) -> Vec<String> {
    let kernel = experiment.workload.name();
    let variant = match experiment.null {
        Null::Same | Null::Launches => "same",
        Null::Copies => "copy",
    };
    let amounts: Vec<String> = experiment.amounts().iter().map(u64::to_string).collect();
    let seconds = |time: Duration| format!("{:.3}s", time.as_secs_f64());
    let mut arguments: Vec<String> = [
        ("--kernel", kernel.to_owned()),
        ("--variant", format!("{kernel},{kernel}_{variant}")),
        ("--axis", format!("{}={}", axis(experiment.workload), amounts.join(","))),
        ("--axis", format!("extra={}", experiment.extra())),
        ("--axis", format!("base_extra={}", experiment.base_extra())),
        ("--budget", seconds(budget(experiment))),
        ("--measurement-time", seconds(experiment.budget / ROWS)),
        ("--seed", seed.to_string()),
    ]
    .into_iter()
    .flat_map(|(flag, value)| [flag.to_owned(), value])
    .collect();
    // Ten cells are a way through sizes; all their time is for the comparisons.
    arguments.extend(["--quiet", "--no-search"].map(ToOwned::to_owned));
    if experiment.null == Null::Launches {
        arguments.push("--isolate".to_owned());
    }
    arguments
}

/// The axis of the amount.
fn axis(workload: Workload) -> &'static str {
    match workload {
        Workload::Chain => "rounds",
        Workload::Sweep => "chunks",
    }
}

fn budget(experiment: &Experiment) -> Duration {
    let allowance = match experiment.workload {
        Workload::Chain => CHAIN_ALLOWANCE,
        Workload::Sweep => SWEEP_ALLOWANCE,
    };
    let left = experiment.budget.saturating_sub(allowance).max(LEAST_BUDGET);
    left * experiment.cells as u32
}

/// What is needed of kbench's run document.
#[derive(Deserialize)]
struct Document {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    is_base: bool,
    axes: BTreeMap<String, u64>,
    speedup: Option<f64>,
    speedup_low: Option<f64>,
    speedup_high: Option<f64>,
    verdict: Option<String>,
    status: String,
    #[serde(default)]
    remarks: Vec<String>,
}

/// One answer for each amount, or why one is missing.
fn read(experiment: &Experiment, text: &str) -> Result<Vec<Answer>, Failure> {
    let program = "kbench";
    let Document { rows } = serde_json::from_str(text)
        .map_err(|error| Failure::Unreadable { program, text: error.to_string() })?;
    let axis = axis(experiment.workload);
    let answer_for = |amount: &u64| {
        let is_it = |row: &&Row| !row.is_base && row.axes.get(axis) == Some(amount);
        let Some(row) = rows.iter().find(is_it) else {
            return Err(Failure::Unreadable { program, text: format!("no row of {amount}") });
        };
        answer(row).ok_or_else(|| Failure::Declined { program, reason: row.reason() })
    };
    experiment.amounts().iter().map(answer_for).collect()
}

impl Row {
    /// Why it is not compared: its status, or the last of its remarks.
    fn reason(&self) -> String {
        let remark = self.remarks.last().filter(|_| self.status == "ok");
        remark.unwrap_or(&self.status).clone()
    }
}

/// A speed-up is the base's time over the other's: the sign turns, and the ends of the interval change places.
fn answer(row: &Row) -> Option<Answer> {
    let verdict = row.verdict.as_deref()?.trim_start_matches("provisional ");
    Some(Answer {
        estimate: -row.speedup?.ln(),
        interval: Some(Interval { low: -row.speedup_high?.ln(), high: -row.speedup_low?.ln() }),
        verdict: match verdict {
            "faster" => Verdict::DifferentFaster,
            "slower" => Verdict::DifferentSlower,
            "equivalent" => Verdict::Same,
            "equal within 5 %" | "inconclusive" => Verdict::Inconclusive,
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tests::experiment;

    const DOCUMENT: &str = r#"{"schema": 1, "rows": [
        {"is_base": true, "axes": {"rounds": 100000}, "status": "ok", "verdict": null},
        {"is_base": false, "axes": {"rounds": 100000}, "speedup": 0.5, "speedup_low": 0.25,
         "speedup_high": 1.0, "verdict": "provisional slower", "status": "ok"}]}"#;

    #[test]
    fn half_the_speed_is_twice_the_time() {
        let chain = experiment(Workload::Chain, Null::Same, 0.0);
        let answer = read(&chain, DOCUMENT).expect("readable")[0];
        assert_eq!(answer.estimate, 2f64.ln());
        assert_eq!(answer.interval, Some(Interval { low: 0.0, high: 4f64.ln() }));
        assert_eq!(answer.verdict, Verdict::DifferentSlower);
    }

    #[test]
    fn a_cell_without_a_verdict_is_no_answer() {
        let ten = Experiment { cells: 10, ..experiment(Workload::Chain, Null::Same, 0.0) };
        assert!(read(&ten, DOCUMENT).is_err());
        assert!(read(&experiment(Workload::Sweep, Null::Same, 0.0), DOCUMENT).is_err());
        let skipped = DOCUMENT.replace(
            "\"provisional slower\", \"status\": \"ok\"",
            "null, \"status\": \"skipped: no time\"",
        );
        let chain = experiment(Workload::Chain, Null::Same, 0.0);
        let failure = read(&chain, &skipped).expect_err("no verdict").to_string();
        assert_eq!(failure, "kbench does not compare: skipped: no time");
    }

    #[test]
    fn an_experiment_becomes_a_command_line() {
        let sweep = experiment(Workload::Sweep, Null::Copies, -0.5);
        let text = arguments(&sweep, 7).join(" ");
        for part in [
            "--kernel sweep --variant sweep,sweep_copy",
            "--axis chunks=4000 --axis extra=0 --axis base_extra=20",
            "--budget 1.860s --measurement-time 1.000s --seed 7 --quiet --no-search",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let launches = experiment(Workload::Chain, Null::Launches, 0.0);
        assert!(arguments(&launches, 7).contains(&"--isolate".to_owned()));
    }
}
