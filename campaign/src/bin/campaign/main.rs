//! Measures kbench and its rivals on pairs of tasks whose difference is known exactly: how often does a tool see a
//! difference where there is none, how often does it find one that is there, and how long does it take?
//!
//! A value enters as arguments and leaves as a table:
//!
//! ```text
//! arguments → plan → tool → record → score → table
//! ```
//!
//! The rules are fixed here, before anything is measured: what a tool's answer counts as in its file under `tool`, what
//! the figures of the table mean in `score`. Every run counts, also one that fails.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

mod arguments;
mod experiment;
mod journal;
mod load;
mod plan;
mod record;
mod score;
mod surroundings;
mod table;
mod tool;

use arguments::Request;
use record::{Record, RecordError};
use tool::SetUpError;

/// Why a campaign ends early.
#[derive(Debug, thiserror::Error)]
enum CampaignError {
    #[error(transparent)]
    Usage(#[from] arguments::UsageError),
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the load cannot be started: {0}")]
    Load(#[source] io::Error),
    #[error("nothing can be printed: {0}")]
    Output(#[source] io::Error),
}

/// As of kbench: the command line makes no sense.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    match fulfil() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("campaign: {error}");
            match error {
                CampaignError::Usage(_) => ExitCode::from(USAGE),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn fulfil() -> Result<(), CampaignError> {
    match arguments::parse(std::env::args().skip(1))? {
        Request::Help => print(&arguments::help()),
        Request::Table { path, foreign } => print_table(&path, foreign),
        Request::Burn { seed } => load::burn(seed),
        Request::Measure(plan) => journal::measure(&plan),
    }
}

fn print_table(path: &Path, foreign: f64) -> Result<(), CampaignError> {
    let records = record::read(path)?;
    let (used, disturbed): (Vec<Record>, _) =
        records.into_iter().partition(|record| record.is_undisturbed(foreign));
    let left_out = match disturbed.len() {
        0 => String::new(),
        n => format!("{n} left out: others used more than {foreign} of a core beside them\n"),
    };
    print(&(left_out + &table::table(&used)))
}

fn print(text: &str) -> Result<(), CampaignError> {
    io::stdout().write_all(text.as_bytes()).map_err(CampaignError::Output)
}
