//! The store: runs that last, below `target/kbench`.
//!
//! ```text
//! target/kbench/
//!   runs/mine.kernels/2026-11-15T09-30-00Z-1a2b3c4d.json   every run of a program, never changed once it is finished
//!   baselines/main/mine.kernels.json                       a run of a program by name
//!   executables/…                                          programs of baselines, by their content
//!   report/index.html                                      the page of `--report`
//!   lock                                                   held by the process that writes
//! ```
//!
//! A program is `package.target`: `cargo bench` runs every target of every package of a workspace with the same flags.
//!
//! A file is written beside its place, brought to the disk, and then moved there: whenever a process ends, there is the old
//! file or the new one, and never a part of one. One process writes at a time; readers need no lock.

mod document;
mod error;
mod executable;
mod lock;
mod merge;
mod name;
mod place;
mod prune;
mod read;

pub use document::{DocumentError, read_document};
pub use error::StoreError;
pub use executable::KeptProgram;
pub use merge::{MergeError, merge};
pub use name::check_name;
pub(crate) use place::HOME;
pub(crate) use read::READ_LIMIT;
pub use read::{read_kept, read_limit, read_parts, read_run};

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;
use crate::order;
use crate::plan::nearest;
use crate::report::{Report, json_compact};
use lock::Lock;

/// Where runs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    home: PathBuf,
    /// Whose runs they are: `package.target`.
    program: String,
}

impl Store {
    /// The store of a program in a folder, which need not exist yet.
    pub fn at(home: impl Into<PathBuf>, program: &str) -> Self {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
        let program: String = program.trim_start_matches('.').chars().filter(is_plain).collect();
        let program = if program.is_empty() { "program".to_owned() } else { program };
        Store { home: home.into(), program }
    }

    /// Whose runs they are.
    pub fn program(&self) -> &str {
        &self.program
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

    /// Keeps a run, as a baseline if it has a name; gives where. A former baseline of that name is one no more.
    pub fn keep_run(&self, report: &Report, name: Option<&str>) -> Result<PathBuf, StoreError> {
        name.map_or(Ok(()), check_name)?;
        if !name::is_name(&report.run) {
            return Err(StoreError::BadRun { run: report.run.clone() });
        }
        let text = json_compact(report).map_err(StoreError::Unwritten)?;
        let path = self.runs_folder().join(format!("{}.json", report.run));
        // What cannot be read again is not kept, and said to be.
        read_document(&text)
            .map_err(|source| StoreError::Unreadable { path: path.clone(), source })?;
        let _lock = Lock::take(&self.home)?;
        // What was kept while it went on gives way to the whole.
        if path.exists() && !read_kept(&path).is_ok_and(|former| former.unfinished.is_some()) {
            return Err(StoreError::Exists { path });
        }
        self.write(&path, text.as_bytes())?;
        let Some(baseline) = name.map(|name| self.baseline_path(name)) else { return Ok(path) };
        self.make_folder(baseline.parent().unwrap_or(&self.home))?;
        // The same file under a second name takes no room, and stays when runs are pruned.
        files::link(&path, &baseline).map_err(StoreError::writing(&baseline))?;
        Ok(baseline)
    }

    /// Writes the page of `--report`; gives where.
    pub fn write_page(&self, text: &str) -> Result<PathBuf, StoreError> {
        let _lock = Lock::take(&self.home)?;
        let path = self.page();
        self.write(&path, text.as_bytes())?;
        Ok(path)
    }

    /// This program's run of a baseline by its name, or a run document by its path.
    pub fn baseline(&self, name: &str) -> Result<Report, StoreError> {
        self.baseline_and_owner(name).map(|(report, _)| report)
    }

    /// The same, and whether this user has kept it: a document of anybody else could name any program that is kept here.
    pub(crate) fn baseline_and_owner(&self, name: &str) -> Result<(Report, bool), StoreError> {
        if is_path(name) {
            return Ok((read_run(Path::new(name))?, false));
        }
        check_name(name)?;
        let path = self.baseline_path(name);
        if !path.exists() {
            let programs = self.programs(name);
            if !programs.is_empty() {
                let (name, program) = (name.to_owned(), self.program.clone());
                return Err(StoreError::OtherPrograms { name, program, programs });
            }
            let known = self.baselines();
            let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
            return Err(StoreError::NoBaseline { name: name.into(), near, known, path });
        }
        let (text, is_own) = read::text_of_kept(&path)?;
        Ok((read::document(&path, &text)?, is_own))
    }

    /// Names of all baselines, sorted.
    pub fn baselines(&self) -> Vec<String> {
        folders(&self.baselines_folder())
    }

    /// Programs that a baseline has runs of.
    pub fn programs(&self, name: &str) -> Vec<String> {
        let documents = documents(&self.baselines_folder().join(name));
        documents.into_iter().map(|(program, _)| program).collect()
    }

    /// All runs of this program, oldest first, by name and path.
    pub fn runs(&self) -> Vec<(String, PathBuf)> {
        documents(&self.runs_folder())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        if let Some(folder) = path.parent() {
            self.make_folder(folder)?;
        }
        files::put(path, bytes).map_err(StoreError::writing(path))
    }

    fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
        files::make_folder(&self.home, folder).map_err(StoreError::writing(folder))
    }

    /// Whether others decide what is in a folder of the store, by that folder or by one that leads to it.
    fn is_shared(&self, folder: &Path) -> bool {
        let below = folder.ancestors().take_while(|folder| *folder != self.home);
        below.chain([self.home.as_path()]).any(files::is_shared)
    }

    fn runs_folder(&self) -> PathBuf {
        self.home.join("runs").join(&self.program)
    }

    fn baselines_folder(&self) -> PathBuf {
        self.home.join("baselines")
    }

    fn executables_folder(&self) -> PathBuf {
        self.home.join("executables")
    }

    fn baseline_path(&self, name: &str) -> PathBuf {
        self.baselines_folder().join(name).join(format!("{}.json", self.program))
    }
}

/// Whether what is given for a baseline is the path of a document, and not a name.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || Path::new(name).extension().is_some_and(|e| e == "json")
}

/// Names of the folders in a folder, sorted.
fn folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    order::sort(&mut names);
    names
}

/// Documents of a folder by their names, sorted; what is on its way there does not count.
fn documents(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let document = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
        (!name.starts_with('.')).then_some((name, path))
    };
    let mut found: Vec<_> = entries.filter_map(|entry| document(entry.path())).collect();
    order::sort(&mut found);
    found
}

#[cfg(test)]
pub(crate) mod tests;
