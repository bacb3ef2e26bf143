use std::io;
use std::path::{Path, PathBuf};

use super::DocumentError;

/// Why something cannot be kept, or found again.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or folder cannot be written.
    #[error(
        "`{}` cannot be written: {source}; set KBENCH_HOME to a folder that can", path.display()
    )]
    Unwritable {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else has been writing for too long.
    #[error(
        "another process has been writing to `{}` for {seconds} s; wait for it, or set KBENCH_HOME to another folder",
        home.display()
    )]
    Busy {
        /// The store.
        home: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// A run of that name is there already, and runs that are finished are never changed.
    #[error("`{}` is there already, and a run is never changed", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A report cannot be put into words.
    #[error("the run cannot be written as JSON: {0}")]
    Unwritten(#[source] serde_json::Error),
    /// Not a name for a baseline.
    #[error(
        "`{name}` is no name for a baseline: use letters, digits, `.`, `_` and `-`, at most {most}, begin with a letter or a digit, leave `.json` to files, and `con`, `nul` and the like to Windows"
    )]
    BadName {
        /// What was given.
        name: String,
        /// How long it may be.
        most: usize,
    },
    /// Not a name for a run.
    #[error("a run cannot be kept as `{run}`, which is no name of a file")]
    BadRun {
        /// What it is called.
        run: String,
    },
    /// There is no such baseline.
    #[error("there is no baseline `{name}` ({}){}", path.display(), hint(near.as_deref(), known))]
    NoBaseline {
        /// What was asked for.
        name: String,
        /// The nearest name.
        near: Option<String>,
        /// All names.
        known: Vec<String>,
        /// Where it would be.
        path: PathBuf,
    },
    /// A baseline has runs of other programs only.
    #[error("the baseline `{name}` has no run of `{program}`; it has: {}", programs.join(", "))]
    OtherPrograms {
        /// The baseline.
        name: String,
        /// This program.
        program: String,
        /// Those that it has.
        programs: Vec<String>,
    },
    /// A file cannot be read.
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreached {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A document is longer than what is read from elsewhere.
    #[error(
        "`{}` cannot be read: it has more than {}; {variable}=1GiB, for example, raises the limit",
        path.display(), in_units(*limit)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Bytes that it may have.
        limit: u64,
        /// The variable that sets the limit.
        variable: &'static str,
    },
    /// Documents that are read together are longer than what is read from elsewhere.
    #[error(
        "the documents have more than {} together; {variable}=1GiB, for example, raises the limit",
        in_units(*limit)
    )]
    TooLargeTogether {
        /// Bytes that they may have.
        limit: u64,
        /// The variable that sets the limit.
        variable: &'static str,
    },
    /// The limit is no number of bytes.
    #[error("{variable}: `{text}` is no number of bytes; write for example 256MiB")]
    BadLimit {
        /// The variable.
        variable: &'static str,
        /// What it was set to.
        text: String,
    },
    /// A file holds no run.
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: DocumentError,
    },
}

impl StoreError {
    pub(super) fn writing(path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
        let path = path.to_owned();
        |source| StoreError::Unwritable { path, source }
    }

    pub(super) fn reading(path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
        let path = path.to_owned();
        |source| StoreError::Unreached { path, source }
    }
}

/// Bytes in the largest unit in which they are a whole number.
fn in_units(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = units.into_iter().find(|(shift, _)| bytes.trailing_zeros() >= *shift);
    fits.map_or_else(
        || format!("{bytes} bytes"),
        |(shift, unit)| format!("{} {unit}", bytes >> shift),
    )
}

fn hint(near: Option<&str>, known: &[String]) -> String {
    match near {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => "; --save-baseline NAME makes one".to_owned(),
        None => format!("; there are: {}", known.join(", ")),
    }
}
