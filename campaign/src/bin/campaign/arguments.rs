//! The command line.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use campaign::{Workload, duration};
use thiserror::Error;

use crate::experiment::{Choice, Effect, Load, Null, Tool};
use crate::load::BURN;
use crate::plan::Plan;

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// The text of `--help`.
    Help,
    /// The tables of a file of records.
    Table {
        /// The file.
        path: PathBuf,
        /// Comparisons beside which others used more of a processor are left out.
        foreign: f64,
    },
    /// To be a noisy neighbour.
    Burn {
        /// Of its bursts.
        seed: u64,
    },
    /// To measure.
    Measure(Plan),
}

/// What is wrong with the command line.
#[derive(Debug, Error, PartialEq)]
pub(crate) enum UsageError {
    /// No such flag.
    #[error("`{0}` is no flag; see --help")]
    Unknown(String),
    /// A flag without its value.
    #[error("`{0}` wants a value; see --help")]
    NoValue(String),
    /// A value that makes no sense.
    #[error("{flag} {value}: {wanted}")]
    Value {
        /// The flag.
        flag: String,
        /// What was given.
        value: String,
        /// What would make sense.
        wanted: String,
    },
    /// An effect that would not be exact.
    #[error("an effect of {effect} is no whole number of steps of `{workload}`")]
    NotExact {
        /// The effect.
        effect: Effect,
        /// What it is no part of.
        workload: &'static str,
    },
    /// Rivals, or work that has no ten sizes, in one run of ten cells.
    #[error("--ten is for `--tools kbench --workloads chain` alone")]
    Ten,
}

/// Cells of a run with `--ten`.
const TEN: u64 = 10;

const HELP: &str = "\
Measures benchmark tools on pairs of tasks whose difference is known exactly.

Usage: campaign [FLAGS]            measures, and appends a line of JSON for every comparison
       campaign --table FILE       prints tables from such a file

  --rounds N          every combination N times (default 1)
  --budget TIME,...   wall time of a comparison, as 2s or 500ms (default 2s)
  --tools NAME,...    {tools}; all by default
  --workloads NAME,...
                      {workloads}; all by default
  --nulls NAME,...    {nulls}; all by default
  --effects PERCENT,...
                      differences; with a minus sign the base does more
                      (default -5,-2,-1,-0.5,0,0.5,1,2,5)
  --load NAME,...     {loads}; all by default
  --ten               ten cells in one run of kbench with ten times the budget
  --seed N            seed of the order and of all that follows (default: the clock)
  --output FILE       where results are appended (default results.jsonl)
  --table FILE        prints tables and measures nothing
  --foreign CORES     leaves comparisons out of tables beside which others used more
                      processors than this (default: all count)
  --help              this text
";

/// The text of `--help`.
pub(crate) fn help() -> String {
    HELP.replace("{tools}", &names::<Tool>())
        .replace("{workloads}", &names::<Workload>())
        .replace("{nulls}", &names::<Null>())
        .replace("{loads}", &names::<Load>())
}

fn names<T: Choice>() -> String {
    T::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>().join(", ")
}

/// Reads arguments; what is asked for with a table or with help is not measured.
pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request, UsageError> {
    let mut arguments = arguments.into_iter();
    let mut plan = everything();
    let (mut tools, mut workloads, mut table, mut foreign) = (None, None, None, f64::INFINITY);
    while let Some(argument) = arguments.next() {
        let (flag, attached) = match argument.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let mut given = || {
            let value = attached.clone().or_else(|| arguments.next());
            let value = value.ok_or_else(|| UsageError::NoValue(flag.clone()))?;
            Ok(Given { flag: &flag, value })
        };
        match flag.as_str() {
            "--help" | "-h" => return Ok(Request::Help),
            "--table" => table = Some(given()?.value.into()),
            "--foreign" => foreign = given()?.number("a number of processors, for example 0.15")?,
            BURN => return Ok(Request::Burn { seed: given()?.number("a seed")? }),
            "--ten" => plan.cells = TEN,
            "--rounds" => plan.rounds = given()?.number("a number of rounds")?,
            "--seed" => plan.seed = given()?.number("a seed is a whole number")?,
            "--output" => plan.output = given()?.value.into(),
            "--tools" => tools = Some(given()?.choices()?),
            "--workloads" => workloads = Some(given()?.choices()?),
            "--nulls" => plan.nulls = given()?.choices()?,
            "--load" => plan.loads = given()?.choices()?,
            "--effects" => {
                plan.effects = given()?.list(effect, "percents, for example 0,0.5,-1")?
            }
            "--budget" => {
                plan.budgets = given()?.list(duration, "times, for example 2s or 500ms")?
            }
            _ => return Err(UsageError::Unknown(flag)),
        }
    }
    if let Some(path) = table {
        return Ok(Request::Table { path, foreign });
    }
    let alone = plan.cells == TEN;
    plan.tools = tools.unwrap_or_else(|| if alone { vec![Tool::Kbench] } else { plan.tools });
    plan.workloads =
        workloads.unwrap_or_else(|| if alone { vec![Workload::Chain] } else { plan.workloads });
    check(plan).map(Request::Measure)
}

fn everything() -> Plan {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Plan {
        rounds: 1,
        tools: Tool::ALL.to_vec(),
        workloads: Workload::ALL.to_vec(),
        nulls: Null::ALL.to_vec(),
        effects: [-5.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 5.0].map(Effect::percent).to_vec(),
        loads: Load::ALL.to_vec(),
        budgets: vec![Duration::from_secs(2)],
        cells: 1,
        seed: clock.as_secs(),
        output: "results.jsonl".into(),
    }
}

/// What the flags mean together.
fn check(plan: Plan) -> Result<Plan, UsageError> {
    let narrow = plan.tools == [Tool::Kbench] && plan.workloads == [Workload::Chain];
    if plan.cells == TEN && !narrow {
        return Err(UsageError::Ten);
    }
    for &workload in &plan.workloads {
        let inexact = |effect: &&Effect| effect.extra(workload.amount()).is_none();
        if let Some(&effect) = plan.effects.iter().find(inexact) {
            return Err(UsageError::NotExact { effect, workload: workload.name() });
        }
    }
    Ok(plan)
}

/// A flag with its value.
struct Given<'a> {
    flag: &'a str,
    value: String,
}

impl Given<'_> {
    fn wrong(&self, wanted: impl Display) -> UsageError {
        let (flag, value) = (self.flag.to_owned(), self.value.clone());
        UsageError::Value { flag, value, wanted: wanted.to_string() }
    }

    fn number<T: FromStr>(&self, wanted: &str) -> Result<T, UsageError> {
        self.value.parse().map_err(|_| self.wrong(wanted))
    }

    fn list<T>(&self, item: fn(&str) -> Option<T>, wanted: &str) -> Result<Vec<T>, UsageError> {
        let items: Option<Vec<T>> = self.value.split(',').map(|text| item(text.trim())).collect();
        items.ok_or_else(|| self.wrong(format!("a list of {wanted}")))
    }

    fn choices<T: Choice>(&self) -> Result<Vec<T>, UsageError> {
        let choice = |name: &str| T::ALL.iter().copied().find(|choice| choice.name() == name);
        self.list(choice, &names::<T>())
    }
}

/// Less than a hundred percent, either way.
fn effect(text: &str) -> Option<Effect> {
    let percent: f64 = text.parse().ok()?;
    (percent.abs() < 100.0).then(|| Effect::percent(percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, UsageError> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    fn plan(line: &str) -> Plan {
        match parsed(line) {
            Ok(Request::Measure(plan)) => plan,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_plan_is_what_was_asked_for() {
        let plan =
            plan("--rounds 3 --budget 500ms,2s --tools=divan,kbench --effects 0,-0.5 --load quiet");
        assert_eq!(plan.budgets, [Duration::from_millis(500), Duration::from_secs(2)]);
        assert_eq!(plan.tools, [Tool::Divan, Tool::Kbench]);
        assert_eq!((plan.rounds, plan.loads.clone()), (3, vec![Load::Quiet]));
        // Tools, workloads, nulls, effects and budgets.
        assert_eq!(plan.experiments().len(), 2 * 2 * 3 * 2 * 2);
    }

    #[test]
    fn ten_cells_are_for_kbench_alone() {
        assert_eq!((plan("--ten").cells, plan("--ten").tools), (TEN, vec![Tool::Kbench]));
        assert_eq!(parsed("--ten --tools divan"), Err(UsageError::Ten));
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        for (line, text) in [
            ("--round 3", "`--round` is no flag; see --help"),
            ("--rounds", "`--rounds` wants a value; see --help"),
            ("--tools cargo", "--tools cargo: a list of kbench, criterion, divan, tango"),
            ("--budget 0s", "--budget 0s: a list of times, for example 2s or 500ms"),
            ("--effects 0.01", "an effect of 0.01 % is no whole number of steps of `sweep`"),
        ] {
            assert_eq!(parsed(line).expect_err(line).to_string(), text);
        }
    }

    #[test]
    fn a_table_is_not_measured() {
        let asked = Request::Table { path: "x.jsonl".into(), foreign: 0.15 };
        assert_eq!(parsed("--table x.jsonl --foreign 0.15"), Ok(asked));
    }

    #[test]
    fn help_names_every_choice() {
        assert!(!help().contains('{'), "{}", help());
        assert!(help().contains("same, copies, launches"));
    }
}
