//! What a run leaves behind in the store.

use std::collections::HashSet;
use std::io::Write;
use std::time::{Duration, Instant};

use super::Exit;
use super::output::say;
use crate::Journal;
use crate::environment::this_program;
use crate::files::{self, Access};
use crate::report::{Executable, Report, RowKey, RowReport, json_compact};
use crate::store::{Store, StoreError};

/// Runs that a store keeps when nobody says how many.
pub(super) const USUAL_RUNS: usize = 100;

/// How a run is kept.
pub(super) struct Keeper<'a> {
    store: &'a Store,
    /// Runs that stay; none keeps nothing at all.
    keep: usize,
    /// The name of the baseline that it becomes.
    name: Option<&'a str>,
    /// Its program, when it becomes a baseline.
    executable: Option<Executable>,
    /// Whether the store can be written.
    is_open: bool,
    /// When what there is was last kept.
    noted: Instant,
}

/// Time between two looks at what there is so far: writing it takes time that the machine could measure in.
const INTERVAL: Duration = Duration::from_secs(30);

impl<'a> Keeper<'a> {
    /// Gets ready before anything is measured: a store that cannot be written is an error now for who wants a baseline, and
    /// a warning for others. The program is kept as it is now: a build may replace it while it runs.
    pub(super) fn begin(
        store: &'a Store,
        keep: usize,
        name: Option<&'a str>,
    ) -> Result<Self, StoreError> {
        let mut keeper =
            Keeper { store, keep, name, executable: None, is_open: true, noted: Instant::now() };
        if name.is_some() {
            store.try_out()?;
            let program = this_program().map_err(|source| StoreError::Unreached {
                path: "the running program".into(),
                source,
            })?;
            keeper.executable = Some(store.keep_executable(&program)?);
        } else if keep > 0
            && let Err(error) = store.try_out()
        {
            say(&format!("warning: this run will not be kept: {error}"));
            keeper.is_open = false;
        }
        Ok(keeper)
    }

    /// Leaves the baseline as it was: a regression that fails the gate must not be what the next run is compared with.
    pub(super) fn spare_baseline(&mut self, reason: &str) {
        if let Some(name) = self.name.take() {
            say(&format!("note: the baseline `{name}` stays as it was, for {reason}"));
        }
    }

    /// Keeps the run, under its name if it has one, and throws away what is too old.
    pub(super) fn keep(self, report: &mut Report) -> Exit {
        let is_empty = report.rows.iter().all(|row| row.time_ns.is_none());
        let is_nothing = is_empty && report.unfinished.is_some();
        if !self.is_open || is_nothing || (self.keep == 0 && self.name.is_none()) {
            return Exit::Fine;
        }
        report.executable.clone_from(&self.executable);
        if let Some(former) = self.name.and_then(|name| self.store.baseline(name).ok()) {
            let rows: HashSet<RowKey> = report.rows.iter().map(RowReport::key).collect();
            let gone = former.rows.iter().filter(|row| !rows.contains(&row.key())).count();
            if gone > 0 {
                say(&format!(
                    "note: {gone} of the {} rows of the former baseline are not in this one",
                    former.rows.len()
                ));
            }
        }
        match self.store.keep_run(report, self.name) {
            Ok(path) => match self.name {
                Some(name) => say(&format!("kept as baseline `{name}`: {}", path.display())),
                None => say(&format!("kept: {}", path.display())),
            },
            Err(error) => {
                say(&format!("error: this run is not kept: {error}"));
                rescue(report);
                return Exit::Internal;
            }
        }
        // One that was kept for its name alone is no reason to forget the others.
        if self.keep > 0
            && let Err(error) = self.store.prune(self.keep, Some(&report.run))
        {
            say(&format!("warning: old runs are not thrown away: {error}"));
        }
        Exit::Fine
    }
}

/// What there is so far is kept as a run of its own name, which the whole run replaces.
impl Journal for Keeper<'_> {
    fn is_due(&self) -> bool {
        self.is_open && self.keep > 0 && self.noted.elapsed() >= INTERVAL
    }

    fn note(&mut self, report: Report) {
        if let Err(error) = self.store.keep_run(&report, None) {
            say(&format!("warning: what was measured so far is not kept: {error}"));
        }
        self.noted = Instant::now();
    }
}

/// Writes a run that the store does not take to where temporary files are: it may have taken hours. The folder is everybody's,
/// so the file has a name that nobody knows before, and is the user's alone.
fn rescue(report: &Report) {
    let folder = std::env::temp_dir();
    let text = json_compact(report).map_err(std::io::Error::other);
    let written = text.and_then(|text| {
        let name = format!("kbench-{}-", report.run);
        let (mut file, path) = files::create_in(&folder, [&name, ".json"], Access::Private)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if written.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        written.map(|()| path)
    });
    match written {
        Ok(path) => say(&format!(
            "note: it is in `{}` instead; --load-baseline reads it there",
            path.display()
        )),
        Err(error) => {
            say(&format!("error: nor can it be written to `{}`: {error}", folder.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::read_kept;
    use crate::store::tests::{Folder, run};

    /// A run that goes on.
    fn unfinished() -> Report {
        Report { unfinished: Some("it goes on".into()), ..run("20260101T000000.000Z") }
    }

    #[test]
    fn what_is_noted_while_a_run_goes_on_gives_way_to_the_whole() {
        let folder = Folder::new();
        let store = Store::at(folder.path(), "kernels");
        let mut keeper = Keeper::begin(&store, 10, None).expect("an empty folder");
        keeper.note(unfinished());
        keeper.note(unfinished());
        let kept = || {
            let runs = store.runs();
            assert_eq!(runs.len(), 1, "{runs:?}");
            read_kept(&runs[0].1).expect("readable")
        };
        assert_eq!(kept().unfinished.as_deref(), Some("it goes on"));
        let mut whole = Report { unfinished: None, ..unfinished() };
        assert_eq!(keeper.keep(&mut whole), Exit::Fine);
        assert_eq!(kept().unfinished, None);
    }

    #[test]
    fn notes_are_due_from_time_to_time_where_runs_are_kept() {
        let folder = Folder::new();
        let store = Store::at(folder.path(), "kernels");
        let mut keeper = Keeper::begin(&store, 1, None).expect("an empty folder");
        assert!(!keeper.is_due(), "one was just begun");
        let long_ago = Instant::now().checked_sub(INTERVAL).expect("the clock runs for longer");
        keeper.noted = long_ago;
        assert!(keeper.is_due());
        keeper.note(unfinished());
        assert!(!keeper.is_due(), "one was just made");
        let nothing = Keeper { keep: 0, noted: long_ago, ..keeper };
        assert!(!nothing.is_due(), "nobody wants to keep it");
    }
}
