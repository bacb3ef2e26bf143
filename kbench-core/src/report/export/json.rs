//! JSON: the versioned run document, and its rows as lines for other programs.

use serde::Serialize;

use super::indented::indented;
use crate::report::Report;

/// The run document, indented.
pub fn json(report: &Report) -> serde_json::Result<String> {
    Ok(indented(&serde_json::to_string(report)?) + "\n")
}

/// The same on one line, for files that nobody reads as they are.
pub fn json_compact(report: &Report) -> serde_json::Result<String> {
    Ok(serde_json::to_string(report)? + "\n")
}

/// A line that says what kind of thing it is, as cargo's own messages do.
#[derive(Serialize)]
struct Line<'a, T> {
    reason: &'static str,
    #[serde(flatten)]
    content: &'a T,
}

/// One line of JSON for every row, then one for the run without its rows.
pub fn json_rows(report: &Report) -> serde_json::Result<String> {
    let mut text = String::new();
    for row in report.rows.iter().chain(&report.searched) {
        text += &(serde_json::to_string(&Line { reason: "row", content: row })? + "\n");
    }
    let run = Line { reason: "run", content: &report.without_rows() };
    text += &(serde_json::to_string(&run)? + "\n");
    Ok(text)
}
