//! Where bytes from elsewhere come in: one function for every kind of them, for fuzz targets and for tests.
//!
//! Each takes any bytes at all, and must come back: input that makes no sense is refused with a reason. What is accepted is
//! carried on as far as a run would carry it, and what should hold for it is asserted. `fuzz/` calls these functions with
//! what it thinks up; [`corpus`] calls them with what is kept in `fuzz/corpus`, and with variations of that. They are there
//! under test and when cargo-fuzz builds the crate, and nowhere else.

mod changes;
mod foreign_messages;
mod run_document;
mod tuning_file;
mod worker_messages;

#[cfg(test)]
mod corpus;

use std::sync::LazyLock;

use crate::report::Report;
use crate::store::read_document;

pub use crate::harness::doorway::command_line;
pub use foreign_messages::foreign_messages;
pub use run_document::run_document;
pub use tuning_file::tuning_file;
pub use worker_messages::worker_messages;

/// A small run with a bit of everything: rows on a processor and on a device, crossovers, a baseline, parts.
const RUN: &str = include_str!("run.json");

/// The same, read.
pub(crate) static REPORT: LazyLock<Report> =
    LazyLock::new(|| read_document(RUN).expect("a run document"));
