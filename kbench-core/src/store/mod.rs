//! The store: runs that last, below `target/kbench`.
//!
//! ```text
//! target/kbench/
//!   runs/2026-11-15T09-30-00Z-1a2b3c4d.json   every run, never changed once it is there
//!   baselines/main.json                       a run by name
//!   executables/…                             programs of baselines, by their content
//!   report/index.html                         the page of `--report`
//!   lock                                      held by whoever writes
//! ```
//!
//! A file is written beside its place, brought to the disk, and then moved there: whenever a process ends, there is the old
//! file or the new one, and never a part of one. One process writes at a time; readers need no lock.

mod document;
mod error;
mod executable;
mod file;
mod merge;
mod name;
mod place;
mod prune;

pub use document::{DocumentError, read_document};
pub use error::StoreError;
pub use file::write_atomically;
pub use merge::{MergeError, merge};
pub use name::check_name;
pub(crate) use place::HOME;

use std::fs;
use std::path::{Path, PathBuf};

use crate::plan::nearest;
use crate::report::{Report, json_compact};
use file::Lock;

/// Where runs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    home: PathBuf,
}

impl Store {
    /// A store in a folder, which need not exist yet.
    pub fn at(home: impl Into<PathBuf>) -> Self {
        Store { home: home.into() }
    }

    /// The folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Where the page of `--report` is.
    pub fn page(&self) -> PathBuf {
        self.home.join("report/index.html")
    }

    /// Whether a run could be kept: finds out before an hour is spent on measuring one.
    pub fn try_out(&self) -> Result<(), StoreError> {
        Lock::take(&self.home).map(drop)
    }

    /// Keeps a run; gives where.
    pub fn keep_run(&self, report: &Report) -> Result<PathBuf, StoreError> {
        let text = json_compact(report).map_err(StoreError::Unwritten)?;
        let _lock = Lock::take(&self.home)?;
        let path = self.runs_folder().join(format!("{}.json", report.run));
        if path.exists() {
            return Err(StoreError::Exists { path });
        }
        self.write(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Gives a name to a run that is kept; a former baseline of that name is one no more.
    pub fn name_run(&self, run: &Path, name: &str) -> Result<PathBuf, StoreError> {
        check_name(name)?;
        let _lock = Lock::take(&self.home)?;
        let path = self.baseline_path(name);
        self.make_folder(&self.baselines_folder())?;
        // The same file under a second name takes no room, and stays when runs are pruned.
        file::link_atomically(run, &path).map_err(StoreError::writing(&path))?;
        Ok(path)
    }

    /// A file below the store, as a whole or not at all.
    pub fn write_page(&self, text: &str) -> Result<PathBuf, StoreError> {
        let _lock = Lock::take(&self.home)?;
        let path = self.page();
        self.write(&path, text.as_bytes())?;
        Ok(path)
    }

    /// A baseline by its name, or a run document by its path.
    pub fn baseline(&self, name: &str) -> Result<Report, StoreError> {
        if name.contains(['/', '\\']) || Path::new(name).extension().is_some_and(|e| e == "json") {
            return read_run(Path::new(name));
        }
        check_name(name)?;
        let path = self.baseline_path(name);
        if !path.exists() {
            let known = self.baselines();
            let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
            return Err(StoreError::NoBaseline { name: name.into(), near, known, path });
        }
        read_run(&path)
    }

    /// Names of all baselines, sorted.
    pub fn baselines(&self) -> Vec<String> {
        documents(&self.baselines_folder()).into_iter().map(|(name, _)| name).collect()
    }

    /// All runs, oldest first, by name and path.
    pub fn runs(&self) -> Vec<(String, PathBuf)> {
        documents(&self.runs_folder())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        if let Some(folder) = path.parent() {
            self.make_folder(folder)?;
        }
        file::write_durably(path, bytes).map_err(StoreError::writing(path))
    }

    fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
        fs::create_dir_all(folder).map_err(StoreError::writing(folder))
    }

    fn runs_folder(&self) -> PathBuf {
        self.home.join("runs")
    }

    fn baselines_folder(&self) -> PathBuf {
        self.home.join("baselines")
    }

    fn executables_folder(&self) -> PathBuf {
        self.home.join("executables")
    }

    fn baseline_path(&self, name: &str) -> PathBuf {
        self.baselines_folder().join(format!("{name}.json"))
    }
}

/// Reads a run document from a file.
pub fn read_run(path: &Path) -> Result<Report, StoreError> {
    let text = fs::read_to_string(path).map_err(StoreError::reading(path))?;
    read_document(&text).map_err(|source| StoreError::Unreadable { path: path.to_owned(), source })
}

/// Documents of a folder by their names, sorted; what is on its way there does not count.
fn documents(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let document = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
        (!name.starts_with('.')).then_some((name, path))
    };
    let mut found: Vec<_> = entries.filter_map(|entry| document(entry.path())).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests;
