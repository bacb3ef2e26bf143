//! What a store throws away: old runs that have no name, programs that no baseline needs, and what a process that was
//! killed left half written.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::executable::{DIGITS, SHORTER};
use super::lock::Lock;
use super::read::text_of_kept;
use super::{Store, StoreError, documents};
use crate::files::{is_draft, is_own};
use crate::report::Executable;

/// A program or an unfinished file that is younger than this may belong to a run that goes on.
const YOUNG: Duration = Duration::from_secs(24 * 3600);

/// What was thrown away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Runs.
    pub runs: usize,
    /// Programs.
    pub executables: usize,
}

/// The part of a document that says which program made it.
#[derive(Deserialize)]
struct Made {
    executable: Option<Executable>,
}

impl Store {
    /// Throws away all runs of this program and this user but the newest `keep`; baselines stay, whatever their age. The run
    /// that was just written is the newest, whatever the clock said.
    pub fn prune(&self, keep: usize, written: Option<&str>) -> Result<Pruned, StoreError> {
        let _lock = Lock::take(&self.home)?;
        // Where others can put links, what is thrown away could be anything.
        if self.is_shared(&self.runs_folder()) {
            return Ok(Pruned::default());
        }
        let is_written = |name: &str| written == Some(name);
        let own = self.runs().into_iter().filter(|(_, path)| is_ours(path));
        let (newest, runs): (Vec<_>, Vec<_>) = own.partition(|(name, _)| is_written(name));
        let old = &runs[..(runs.len() + newest.len()).saturating_sub(keep).min(runs.len())];
        let pruned_runs = old.iter().filter(|(_, path)| fs::remove_file(path).is_ok()).count();
        let folders = [self.runs_folder(), self.executables_folder()];
        let folders = folders.into_iter().chain(self.baseline_folders());
        let folders = folders.filter(|folder| !self.is_shared(folder));
        let unfinished = folders
            .flat_map(|folder| files(&folder))
            .filter(|path| is_draft(path) && is_ours(path));
        for path in unfinished.filter(|path| !is_young(path)) {
            let _ = fs::remove_file(path);
        }
        Ok(Pruned { runs: pruned_runs, executables: self.prune_executables() })
    }

    /// One folder for every baseline.
    fn baseline_folders(&self) -> Vec<PathBuf> {
        self.baselines().iter().map(|name| self.baselines_folder().join(name)).collect()
    }

    fn prune_executables(&self) -> usize {
        if self.is_shared(&self.executables_folder()) {
            return 0;
        }
        let mut needed: Vec<String> = Vec::new();
        for (_, path) in self.baseline_folders().iter().flat_map(|folder| documents(folder)) {
            let text = text_of_kept(&path).ok();
            let made = text.and_then(|(text, _)| serde_json::from_str::<Made>(&text).ok());
            match made {
                Some(made) => needed.extend(made.executable.map(|executable| executable.content)),
                // Nobody knows what a baseline needs that cannot be read.
                None => return 0,
            }
        }
        let is_needed = |path: &PathBuf| {
            path.file_name().is_some_and(|name| needed.iter().any(|needed| *name == **needed))
        };
        let programs = files(&self.executables_folder()).into_iter();
        let is_program = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            [SHORTER, DIGITS].contains(&name.len()) && name.bytes().all(|b| b.is_ascii_hexdigit())
        };
        let programs = programs.filter(is_program);
        let unneeded = programs.filter(|path| !is_needed(path) && !is_young(path) && is_ours(path));
        unneeded.filter(|path| fs::remove_file(path).is_ok()).count()
    }
}

/// Whether a file is of this user: others may keep theirs in the same store.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| is_own(&metadata))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).collect()
}

fn is_young(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    age.and_then(|time| time.elapsed().ok()).is_none_or(|age| age < YOUNG)
}
