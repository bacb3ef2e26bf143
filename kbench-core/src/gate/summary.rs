//! What a pull request is told: the verdict, what changed, and the rest folded away.

use std::fmt::Write;

use super::Ruling;
use crate::calendar::date_and_time;
use crate::order;
use crate::report::{
    BaselineReport, Method, Report, RowReport, code, prose, readable_time, signed_percent,
};

/// Rows of a table at most: what is longer is read in the report.
const MOST_ROWS: usize = 50;

/// The summary of a run as Markdown; with a ruling when there was a gate. Texts of the run are escaped where they are put into
/// it, by `code` and `prose`, and nowhere else.
pub fn summary(report: &Report, ruling: Option<&Ruling>) -> String {
    let mut text = format!("### kbench: {}\n\n", verdict(report, ruling));
    if let Some(baseline) = &report.baseline {
        let _ = writeln!(text, "{}\n", against(baseline));
    }
    let failed = |row: &RowReport| format!("{}: {}", row.key(), row.status);
    text += &list("Failed", &report.failed().take(MOST_ROWS).map(failed).collect::<Vec<_>>());
    if let Some(ruling) = ruling {
        text += &list("Fails the gate", &ruling.blocked);
        text += &list("To be explained", &ruling.to_explain);
    }
    let (changed, rest): (Vec<&RowReport>, Vec<&RowReport>) =
        changes(report).into_iter().partition(|row| is_changed(row));
    if !changed.is_empty() {
        text += &table(&changed);
    }
    if let Some(ruling) = ruling.filter(|ruling| !ruling.open.is_empty()) {
        text += &folded(&format!("{} not decided", ruling.open.len()), &list("", &ruling.open));
    }
    if !rest.is_empty() {
        text += &folded(&format!("{} without a change that is shown", rest.len()), &table(&rest));
    }
    text += &list("Doubts", &report.warnings);
    text
}

fn verdict(report: &Report, ruling: Option<&Ruling>) -> String {
    let with = |word: &str| {
        let is = |row: &&RowReport| row.change.change_verdict.as_deref() == Some(word);
        report.rows.iter().filter(is).count()
    };
    let failed = report.failed().count();
    let blocked = ruling.map_or(0, |ruling| ruling.blocked.len());
    let (slower, faster) = (with("slower"), with("faster"));
    let open = ruling.map_or(0, |ruling| ruling.open.len());
    match (failed, blocked) {
        (0, 0) if open > 0 => format!("⚠️ {open} not decided, nothing shown to be beyond a limit"),
        (0, 0) if report.baseline.is_none() => {
            let measured = report.rows.iter().filter(|row| row.time_ns.is_some()).count();
            format!("✅ {measured} rows measured, none failed")
        }
        (0, 0) if slower + faster == 0 => "✅ no change is shown".to_owned(),
        (0, 0) if ruling.is_none() => format!("{slower} slower, {faster} faster"),
        (0, 0) => format!("✅ {slower} slower, {faster} faster, none beyond a limit"),
        (0, blocked) => format!("❌ {blocked} beyond a limit ({slower} slower, {faster} faster)"),
        (failed, _) => format!("❌ {failed} rows failed"),
    }
}

fn against(baseline: &BaselineReport) -> String {
    let BaselineReport { name, started, git_commit, method, reason, gone, fresh, .. } = baseline;
    let commit =
        |hash: &String| format!(", commit {}", code(&hash.chars().take(7).collect::<String>()));
    let commit = git_commit.as_ref().map_or_else(String::new, commit);
    let how = match (method, reason) {
        (Method::Interleaved, _) => "its executable was measured in turns with this one".to_owned(),
        (Method::History, Some(reason)) => format!("by earlier runs of this machine: {reason}"),
        (Method::History, None) => "by earlier runs of this machine".to_owned(),
    };
    let mut text =
        format!("Against {} ({}{commit}): {}.", code(name), date_and_time(*started), prose(&how));
    if !gone.is_empty() || !fresh.is_empty() {
        let _ = write!(text, " {} rows are new, {} are gone.", fresh.len(), gone.len());
    }
    text
}

/// Rows that were compared, worst first.
fn changes(report: &Report) -> Vec<&RowReport> {
    let mut rows: Vec<&RowReport> =
        report.rows.iter().filter(|row| row.change.change.is_some()).collect();
    order::sort_by(&mut rows, |a, b| {
        let change = |row: &RowReport| row.change.change.unwrap_or(0.0);
        change(b).total_cmp(&change(a))
    });
    rows
}

fn is_changed(row: &RowReport) -> bool {
    row.change
        .change_verdict
        .as_deref()
        .is_some_and(|v| v.ends_with("slower") || v.ends_with("faster"))
}

fn table(rows: &[&RowReport]) -> String {
    let mut text = String::from(
        "| row | then | now | change | interval | verdict |\n|---|--:|--:|--:|--:|---|\n",
    );
    for row in rows.iter().take(MOST_ROWS) {
        let time = |time: Option<f64>| time.map(readable_time).unwrap_or_default();
        let share = |share: Option<f64>| share.map_or_else(|| "?".to_owned(), signed_percent);
        let change = &row.change;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} to {} | {} |",
            prose(&row.key().to_string()),
            time(change.baseline_time_ns),
            time(row.time_ns),
            share(change.change),
            share(change.change_low),
            share(change.change_high),
            prose(change.change_verdict.as_deref().unwrap_or_default()),
        );
    }
    if rows.len() > MOST_ROWS {
        let _ = writeln!(text, "\n… and {} more", rows.len() - MOST_ROWS);
    }
    text + "\n"
}

fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut text = if title.is_empty() { String::new() } else { format!("**{title}**\n\n") };
    for line in lines.iter().take(MOST_ROWS) {
        let _ = writeln!(text, "- {}", prose(line));
    }
    if lines.len() > MOST_ROWS {
        let _ = writeln!(text, "- … and {} more", lines.len() - MOST_ROWS);
    }
    text + "\n"
}

fn folded(title: &str, content: &str) -> String {
    format!("<details><summary>{title}</summary>\n\n{content}</details>\n\n")
}
