//! `--baseline NAME`: what a run is compared with.

use super::output::say;
use crate::Past;
use crate::baseline::{Baseline, Comparison, Machine, Values, differences, values};
use crate::cuda::devices;
use crate::environment::Environment;
use crate::report::Report;
use crate::store::{Store, read_run};
use std::path::PathBuf;

/// Earlier runs that a run is held against, at most: older ones are of another time.
const MOST_RUNS: usize = 30;

/// A baseline, and its program where that can be measured.
pub(super) struct Against {
    baseline: Baseline,
    /// Why not, otherwise.
    program: Result<PathBuf, String>,
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
    /// Finds a baseline, and refuses one whose figures say nothing about this machine.
    pub(super) fn find(store: &Store, name: &str, foreign: Foreign) -> Result<Self, String> {
        let report = store.baseline(name).map_err(|error| error.to_string())?;
        let program = match &report.executable {
            Some(executable) => store.executable(executable),
            None => Err("its executable was not kept (--save-baseline keeps it)".to_owned()),
        };
        let baseline = Baseline { name: name.to_owned(), report };
        let found = strangeness(&baseline.report);
        let is_welcome = foreign == Foreign::Measured && program.is_ok();
        if !found.is_empty() && !is_welcome {
            return Err(format!(
                "the baseline `{name}` was measured on another machine, and its times say nothing about this one: {}; \
                 save one here (--save-baseline), or let its kept executable be measured here, too \
                 (--foreign-baseline)",
                found.join(", ")
            ));
        }
        Ok(Against { baseline, program })
    }

    /// The older program, for the measuring stage.
    pub(super) fn past(&self) -> Option<Past> {
        let program = self.program.clone().ok()?;
        Some(Past { program, rows: self.baseline.rows() })
    }

    /// Compares a run that was just measured.
    pub(super) fn put_beside(self, store: &Store, report: &mut Report) {
        let has_changes = report.rows.iter().any(|row| row.change.change.is_some());
        match self.program {
            Ok(_) if has_changes => self.baseline.put_beside(report, Comparison::Interleaved),
            Ok(_) => self.by_history(store, report, "none of its rows could be measured".into()),
            Err(ref reason) => {
                let reason = reason.clone();
                self.by_history(store, report, reason);
            }
        }
    }

    /// Compares a run of another day.
    pub(super) fn put_beside_stored(self, store: &Store, report: &mut Report) {
        self.by_history(store, report, "both are runs of another day".into());
    }

    fn by_history(self, store: &Store, report: &mut Report, reason: String) {
        let runs = history(store, &self.baseline.report);
        self.baseline.put_beside(report, Comparison::History { runs: &runs, reason });
    }
}

/// What runs of the baseline's machine found, up to the baseline itself.
fn history(store: &Store, baseline: &Report) -> Vec<Values> {
    let mut found = vec![values(baseline)];
    let runs = store.runs();
    for (_, path) in runs.iter().rev().filter(|(name, _)| *name < baseline.run) {
        if found.len() == MOST_RUNS {
            break;
        }
        match read_run(path) {
            Ok(run) if differences(&Machine::of(&run), &Machine::of(baseline)).is_empty() => {
                found.push(values(&run));
            }
            Ok(_) => {}
            Err(error) => say(&format!("warning: {error}; it is left alone")),
        }
    }
    found
}

/// What tells the machine of a run from this one.
fn strangeness(baseline: &Report) -> Vec<String> {
    let environment = Environment::read();
    let ordinal = baseline.device.as_ref().map(|device| device.info.ordinal);
    let device = ordinal
        .and_then(|ordinal| devices().ok()?.into_iter().find(|device| device.ordinal == ordinal));
    let here = Machine { environment: &environment, device: device.as_ref() };
    differences(&Machine::of(baseline), &here)
}
