//! `--baseline NAME`: what a run is compared with.

use super::output::say;
use crate::Past;
use crate::baseline::{Baseline, Comparison, Earlier, Machine, differences, values};
use crate::cuda::{DeviceInfo, devices};
use crate::environment::Environment;
use crate::order;
use crate::report::Report;
use crate::store::{KeptProgram, Store, StoreError, is_path, read_kept};

/// Runs that a run is held against, at most: older ones are of another time.
const MOST_RUNS: usize = 30;

/// A baseline, and its program where that can be measured.
pub(super) struct Against {
    baseline: Baseline,
    /// Why not, otherwise.
    program: Result<KeptProgram, String>,
    /// Whether it is of another machine: its figures say nothing here.
    is_foreign: bool,
}

/// Whether a baseline of another machine will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// No: its figures say nothing here.
    Refused,
    /// If its program is kept, which is then measured here.
    Measured,
}

impl Against {
    /// Finds the baseline of a run that is to be measured here, on a device of this number. None where it has no run of this
    /// program: a new target has nothing to be compared with, and a gate would have nothing to judge.
    pub(super) fn here(
        store: &Store,
        name: &str,
        foreign: Foreign,
        ordinal: usize,
        is_gated: bool,
    ) -> Result<Option<Self>, String> {
        let (report, is_own) = match store.baseline_and_owner(name) {
            Ok(found) => found,
            Err(error @ StoreError::OtherPrograms { .. }) if is_gated => {
                return Err(format!(
                    "--gate would compare nothing: {error}; save a run of it with --save-baseline {name}"
                ));
            }
            Err(error @ StoreError::OtherPrograms { .. }) => {
                say(&format!("warning: nothing is compared: {error}"));
                return Ok(None);
            }
            Err(error) => return Err(format!("--baseline: {error}")),
        };
        let environment = Environment::read();
        let device = report.device.as_ref().and_then(|_| device(ordinal));
        let here = Machine { environment: &environment, device: device.as_ref() };
        let found = differences(&Machine::of(&report), &here);
        let program = match &report.executable {
            _ if is_path(name) => Err("a document that is given by its path starts no program; \
                 --save-baseline NAME keeps one, and --baseline NAME starts it"
                .to_owned()),
            _ if !is_own => {
                Err("its document belongs to another user, so its executable is not started"
                    .to_owned())
            }
            Some(executable) => store.executable(executable),
            None => Err("its executable was not kept (--save-baseline keeps it)".to_owned()),
        };
        let is_foreign = !found.is_empty();
        if is_foreign && (foreign == Foreign::Refused || program.is_err()) {
            let refusal = refusal(name, "this one", &found);
            let measured = match is_path(name) {
                true => "",
                false => ", or let its kept executable be measured here, too (--foreign-baseline)",
            };
            return Err(format!("{refusal}; save one here (--save-baseline){measured}"));
        }
        let baseline = Baseline { name: name.to_owned(), report };
        Ok(Some(Against { baseline, program, is_foreign }))
    }

    /// Finds the baseline of a run of another day.
    pub(super) fn stored(store: &Store, name: &str, run: &Report) -> Result<Self, String> {
        let report = store.baseline(name).map_err(|error| format!("--baseline: {error}"))?;
        if report.run == run.run {
            return Err(format!(
                "the baseline `{name}` is the very run that it would be compared with"
            ));
        }
        let found = differences(&Machine::of(&report), &Machine::of(run));
        if !found.is_empty() {
            return Err(refusal(name, "that of the run", &found));
        }
        let baseline = Baseline { name: name.to_owned(), report };
        let program = Err("both are runs of another day".to_owned());
        Ok(Against { baseline, program, is_foreign: false })
    }

    /// The older program, for the measuring stage.
    pub(super) fn past(&self) -> Option<Past> {
        let program = self.program.clone().ok()?;
        Some(Past { program, rows: self.baseline.rows() })
    }

    /// Compares a run with it.
    pub(super) fn put_beside(self, store: &Store, report: &mut Report) {
        let has_changes = report.rows.iter().any(|row| row.change.change.is_some());
        let reason = match &self.program {
            Ok(_) if has_changes => None,
            Ok(_) => Some("none of its rows could be measured".to_owned()),
            Err(reason) => Some(reason.clone()),
        };
        match reason {
            reason if self.is_foreign => {
                self.baseline.put_beside(report, Comparison::Foreign { reason });
            }
            None => self.baseline.put_beside(report, Comparison::Interleaved),
            Some(reason) => {
                let runs = earlier(store, &self.baseline.report, report);
                self.baseline.put_beside(report, Comparison::History { runs: &runs, reason });
            }
        }
    }
}

fn refusal(name: &str, other: &str, found: &[String]) -> String {
    let found = found.join(", ");
    format!(
        "the baseline `{name}` was measured on another machine, and its times say nothing about {other}: {found}"
    )
}

/// Runs of the baseline's machine and commit, but for the one that is judged: the newest ones, and the baseline among them.
/// Runs of later commits are left out: a regression that no single run shows would be expected after a few of them.
fn earlier(store: &Store, baseline: &Report, judged: &Report) -> Earlier {
    let mut found = vec![(baseline.started, values(baseline))];
    for (name, path) in store.runs().iter().rev() {
        if found.len() == MOST_RUNS {
            break;
        }
        if [&baseline.run, &judged.run].contains(&name) {
            continue;
        }
        match read_kept(path) {
            Ok(run)
                if is_of_same_commit(&run, baseline)
                    && differences(&Machine::of(&run), &Machine::of(baseline)).is_empty() =>
            {
                found.push((run.started, values(&run)));
            }
            Ok(_) => {}
            Err(error) => say(&format!("warning: {error}; it is left alone")),
        }
    }
    // The baseline is the first of its moment.
    order::sort_by_key(&mut found, |(started, _)| *started);
    let own = found.iter().position(|(started, _)| *started == baseline.started);
    Earlier {
        baseline: own.unwrap_or(0),
        runs: found.into_iter().map(|(_, values)| values).collect(),
    }
}

/// Whether two runs are known to be of the same commit.
fn is_of_same_commit(a: &Report, b: &Report) -> bool {
    let commit = |report: &Report| report.environment.git_commit.clone();
    commit(a).is_some() && commit(a) == commit(b)
}

/// The device of a number, if there is one.
pub(super) fn device(ordinal: usize) -> Option<DeviceInfo> {
    devices().ok()?.into_iter().find(|device| device.ordinal == ordinal)
}
