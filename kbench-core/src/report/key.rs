//! Which row of one run is which of another.

use std::fmt;

use super::RowReport;
use crate::kernel::Backend;
use crate::plan::{Cell, Row};

/// What a row is called in every run: kernel, variant, element type and size by its full name, and what else tells it from
/// others of that name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// `module::path::kernel/variant/type/axis=value,axis=value`.
    pub name: String,
    /// Threads that it may use.
    pub threads: usize,
    /// State of the caches.
    pub mode: String,
}

impl RowKey {
    /// The key of a row of a plan.
    pub(crate) fn of(cell: &Cell, row: &Row) -> Self {
        let (name, mode) = (cell.row_name(row), row.mode.name().to_owned());
        RowKey { name, threads: threads(row), mode }
    }
}

impl RowReport {
    /// What it is called in every run.
    pub fn key(&self) -> RowKey {
        let RowReport { name, threads, mode, .. } = self;
        RowKey { name: name.clone(), threads: *threads, mode: mode.clone() }
    }
}

/// The name, with threads and mode where they are not the usual ones.
impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.threads != 1 {
            write!(f, " ({} threads)", self.threads)?;
        }
        if self.mode != "warm" { write!(f, " ({})", self.mode) } else { Ok(()) }
    }
}

/// Threads that a row may use.
pub(super) fn threads(row: &Row) -> usize {
    match row.variant.backend {
        Backend::Parallel => row.threads.unwrap_or_else(rayon::current_num_threads),
        Backend::Serial | Backend::Cuda => 1,
    }
}
