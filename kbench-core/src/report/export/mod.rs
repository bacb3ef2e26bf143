//! Exports: the report in the forms that other programs read.
//!
//! Every format is a pure function of the report, in a file of its own that says who reads it and what its readers stumble
//! over. Rows have the same name in all of them (`rows` tells which), so that what one tool finds can be looked up in
//! another. A row that failed or was skipped is told as such where a format has words for it, and is left out where it has
//! not: it never appears as a time.

mod bmf;
mod criterion;
mod csv;
mod gbench;
mod github;
mod go;
mod indented;
mod json;
mod junit;
mod libtest;
mod markdown;
mod rows;
mod samples;

pub use csv::csv;
pub(super) use indented::compact;
pub use json::{json, json_compact, json_rows};
pub(crate) use markdown::{code, prose};

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::{Report, Trend, html};
use crate::calendar::timestamp;
use crate::plan::nearest;
use crate::visible::is_obeyed;

/// The formats of `--export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The run document.
    Json,
    /// Comma-separated values, for spreadsheets and data frames.
    Csv,
    /// For people, and for pull requests.
    Markdown,
    /// One page with charts, as `--report` writes it.
    Html,
    /// Go's benchmark format, which benchstat reads.
    Go,
    /// The lines of Rust's own bench harness.
    Libtest,
    /// google-benchmark's JSON, which its compare.py reads.
    Gbench,
    /// A folder as criterion leaves it, which critcmp reads.
    Criterion,
    /// Bencher Metric Format.
    Bmf,
    /// github-action-benchmark's `customSmallerIsBetter`.
    Github,
    /// JUnit's XML: checks and targets as tests.
    Junit,
}

impl Format {
    /// All of them, in the order of the documentation.
    pub const ALL: [Format; 11] = [
        Format::Json,
        Format::Csv,
        Format::Markdown,
        Format::Html,
        Format::Go,
        Format::Libtest,
        Format::Gbench,
        Format::Criterion,
        Format::Bmf,
        Format::Github,
        Format::Junit,
    ];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Markdown => "markdown",
            Format::Html => "html",
            Format::Go => "go",
            Format::Libtest => "libtest",
            Format::Gbench => "gbench",
            Format::Criterion => "criterion",
            Format::Bmf => "bmf",
            Format::Github => "github",
            Format::Junit => "junit",
        }
    }

    /// Whether it is a folder of files, and not one file.
    pub fn is_tree(self) -> bool {
        self == Format::Criterion
    }
}

/// A word that is no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Format::ALL.map(Format::name);
        write!(f, "there is no format `{}`; ", self.0)?;
        if let Some(near) = nearest(&self.0, names) {
            write!(f, "did you mean `{near}`? ")?;
        }
        write!(f, "there are: {}", names.join(", "))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// A report in some format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exported {
    /// The content of a file.
    File(String),
    /// The contents of several files, by their paths below a folder.
    Tree(Vec<(PathBuf, String)>),
}

/// The report in a format; trends are for the page.
pub fn export(report: &Report, trends: &[Trend], format: Format) -> serde_json::Result<Exported> {
    let text = match format {
        Format::Json => json(report)?,
        Format::Csv => csv(report),
        Format::Markdown => markdown::markdown(report),
        Format::Html => html(report, trends),
        Format::Go => go::go(report),
        Format::Libtest => libtest::libtest(report),
        Format::Gbench => gbench::gbench(report),
        Format::Criterion => return Ok(Exported::Tree(criterion::criterion(report))),
        Format::Bmf => bmf::bmf(report),
        Format::Github => github::github(report),
        Format::Junit => junit::junit(report),
    };
    Ok(Exported::File(text))
}

/// A moment in UTC as ISO 8601 writes it, without the zone: `2026-11-15T09:30:00`.
fn moment(seconds_since_1970: u64) -> String {
    let stamp = timestamp(seconds_since_1970);
    match stamp.trim_end_matches('Z').split_once('T') {
        Some((date, time)) => format!("{date}T{}", time.replace('-', ":")),
        None => stamp,
    }
}

/// Text on one line, and not on a long one.
fn one_line(text: &str) -> String {
    /// Characters; readers that take lines into a buffer have room for many times as many.
    const LONGEST: usize = 1000;
    let plain = |c: char| if is_obeyed(c) || c.is_whitespace() { ' ' } else { c };
    text.chars().take(LONGEST).map(plain).collect()
}

#[cfg(test)]
mod tests;
