//! `--gate 5%` and `--summary PATH`: what others are told about a run.

use std::env;
use std::path::{Path, PathBuf};

use super::Exit;
use super::file::FILE;
use super::output::say;
use crate::files;
use crate::gate::{Policy, Ruling, summary};
use crate::report::{BaselineReport, Report, RowReport};

/// The variable in which GitHub names a file for summaries; several steps write to it.
const GITHUB: &str = "GITHUB_STEP_SUMMARY";

/// Says what the gate found.
pub(super) fn tell(report: &Report, policy: &Policy, ruling: &Ruling) -> Exit {
    let Ruling { blocked, to_explain, open, wide } = ruling;
    // Where kernels were filtered out, the limit may be of one of these.
    for (limited, near) in
        policy.misspelt(&report.plan.kernels).iter().filter(|_| report.filtered_out == 0)
    {
        say(&format!(
            "warning: {FILE} limits the kernel `{limited}`, which there is not; did you mean `{near}`?"
        ));
    }
    match &report.baseline {
        None => say("note: --gate without --baseline judges targets alone"),
        Some(BaselineReport { reason: Some(reason), .. }) => say(&format!(
            "warning: the gate has earlier runs of this machine to go by, and no old executable: {reason}"
        )),
        Some(_) if report.rows.iter().any(is_provisional) => say(
            "warning: one launch shows nothing for certain, and fails no gate; leave out --quick, or give more --launches",
        ),
        Some(_) => {}
    }
    let lines =
        |lines: &[String]| -> String { lines.iter().map(|line| format!("\n  {line}")).collect() };
    if !open.is_empty() {
        say(&format!(
            "note: {} not decided, which does not fail the gate:{}",
            open.len(),
            lines(open)
        ));
    }
    if *wide > 0 {
        say(&format!(
            "note: {wide} rows seem to be within the limits, but their intervals reach beyond; give them more time"
        ));
    }
    if !to_explain.is_empty() {
        say(&format!("warning: {} to be explained:{}", to_explain.len(), lines(to_explain)));
    }
    if blocked.is_empty() {
        return Exit::Fine;
    }
    say(&format!("error: {} beyond the limits of the gate:{}", blocked.len(), lines(blocked)));
    Exit::Gate
}

fn is_provisional(row: &RowReport) -> bool {
    row.change.change_verdict.as_deref().is_some_and(|verdict| verdict.starts_with("provisional"))
}

/// Writes the summary where it was asked for, and where GitHub wants it.
pub(super) fn write_summary(report: &Report, ruling: Option<&Ruling>, path: Option<&Path>) -> Exit {
    let github = env::var_os(GITHUB).filter(|path| !path.is_empty()).map(PathBuf::from);
    if path.is_none() && github.is_none() {
        return Exit::Fine;
    }
    let text = summary(report, ruling);
    let written = path.map(|path| (path.to_owned(), files::replace(path, text.as_bytes())));
    let appended = github.map(|path| {
        let appended = files::append(&path, text.as_bytes());
        (path, appended)
    });
    // Nobody asked for GitHub's by a flag.
    if let Some((path, Err(error))) = appended {
        say(&format!("warning: `{}` cannot be written: {error}", path.display()));
    }
    match written {
        Some((path, Err(error))) => {
            say(&format!("error: `{}` cannot be written: {error}", path.display()));
            Exit::Internal
        }
        _ => Exit::Fine,
    }
}
