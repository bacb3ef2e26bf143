//! The tuning file `kbench.toml`: thresholds that were measured, for the macros to take at compile time.
//!
//! The file belongs to its users: they put it under version control, write comments and other settings into it, and
//! measure on several machines. So a file is never written anew but [`merge`]d with, as text, and this module neither
//! reads nor writes one.

mod collect;
mod merge;

pub use collect::{Collected, collect};
pub use merge::merge;

/// The format that this version writes, and the newest that it reads.
const FORMAT: u64 = 1;

/// One measured threshold: a table `[[threshold]]` of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunedThreshold {
    /// The crate of the variant's function: the first segment of its `module_path!()`.
    pub krate: String,
    /// The annotated function of the variant.
    pub function: String,
    /// The kernel's path, for people.
    pub kernel: String,
    /// The variant that was compared with.
    pub base: String,
    /// The kind of machine, as [`Environment::kind`](crate::environment::Environment::kind) gives it.
    pub machine: String,
    /// Work from which the variant is to be taken.
    pub value: u64,
    /// Lower end of the crossover.
    pub low: u64,
    /// Upper end of the crossover.
    pub high: u64,
    /// The hash of the function's code when it was measured.
    pub code: String,
    /// The date of the measurement, such as `2026-11-15`.
    pub measured: String,
    /// What it was measured with, for people.
    pub how: String,
}

/// Why thresholds cannot be merged into a tuning file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TuningError {
    /// A newer kbench has written the file.
    #[error(
        "line {line} of the tuning file has format {found}, and this kbench knows formats up to {FORMAT}\n\
         note: use the kbench that wrote it, or delete the file and tune again"
    )]
    NewerFormat {
        /// Number of the line.
        line: usize,
        /// The format of the file.
        found: u64,
    },
    /// The line with the format has none.
    #[error(
        "line {line} of the tuning file is no format: `{text}`\n\
         note: write `format = {FORMAT}`, or delete the file and tune again"
    )]
    MalformedFormat {
        /// Number of the line.
        line: usize,
        /// The line.
        text: String,
    },
    /// The file is no TOML.
    #[error(
        "line {line}, column {column} of the tuning file is no TOML: {reason}\nnote: mend it by hand, then tune again"
    )]
    Malformed {
        /// Number of the line.
        line: usize,
        /// Number of the character in it.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// Thresholds cannot be told from what else is in the file.
    #[error(
        "line {line} of the tuning file has a `threshold` that is no table `[[threshold]]` of its own\n\
         note: tables of thresholds begin with a line `[[threshold]]` and end before the next table; rename or move what \
         is something else"
    )]
    Entangled {
        /// Number of the first line that mentions one.
        line: usize,
    },
    /// Two thresholds that the file could not tell apart.
    #[error(
        "two variants have a function `{function}` in the crate `{krate}`: one of `{first}`, one of `{second}`\n\
         note: the tuning file knows variants by these names, so rename one of the functions"
    )]
    Ambiguous {
        /// The crate of both.
        krate: String,
        /// The name of both functions.
        function: String,
        /// The kernel of one.
        first: String,
        /// The kernel of the other.
        second: String,
    },
}
