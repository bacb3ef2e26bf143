//! Test mode in the form of Rust's own test harness.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::json;

use super::index::grouped;
use super::{Report, RowReport, Status, Style};

/// The forms of libtest's `--format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestFormat {
    /// A line for every test.
    #[default]
    Pretty,
    /// A character for every test.
    Terse,
    /// A line of JSON for every event.
    Json,
}

/// Results of checks as libtest would print them.
pub fn test_report(report: &Report, format: TestFormat, style: Style) -> String {
    match format {
        TestFormat::Pretty => pretty(report, style),
        TestFormat::Terse => terse(report, style),
        TestFormat::Json => events(report),
    }
}

struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Counts {
    fn of(rows: &[RowReport]) -> Self {
        let is_failed =
            |row: &&RowReport| matches!(row.status, Status::Failed(_) | Status::Unchecked(_));
        let failed = rows.iter().filter(is_failed).count();
        let ignored = rows.iter().filter(|r| matches!(r.status, Status::Skipped(_))).count();
        Counts { passed: rows.len() - failed - ignored, failed, ignored }
    }
}

fn pretty(report: &Report, style: Style) -> String {
    let mut text = format!("\nrunning {} test{}\n", report.rows.len(), plural(report.rows.len()));
    for row in &report.rows {
        let word = match &row.status {
            Status::Ok => style.good("ok"),
            Status::Failed(_) | Status::Unchecked(_) => style.bad("FAILED"),
            Status::Skipped(reason) => style.warning(&ignored(reason)),
        };
        let _ = writeln!(text, "test {} ... {word}", row.name);
    }
    text + &passed(report) + &remarks(report) + &failures(report) + &result(report, style)
}

/// How many rows of every variant passed, kernel by kernel.
fn passed(report: &Report) -> String {
    let mut text = String::new();
    for rows in grouped(&report.rows, |row| &row.kernel) {
        let kernel = &rows[0].kernel;
        let variant = |rows: Vec<&RowReport>| {
            let passed = rows.iter().filter(|row| row.status == Status::Ok).count();
            format!("{} {passed}/{}", rows[0].variant, rows.len())
        };
        let variants = grouped(rows.iter().copied(), |row| &row.variant).into_iter().map(variant);
        let variants: Vec<String> = variants.collect();
        let _ = writeln!(text, "passed: {kernel}: {}", variants.join(", "));
        text += &circumstances(kernel, &rows);
    }
    text
}

/// Under which circumstances the variants of a kernel were checked besides at the sizes of their rows.
fn circumstances(kernel: &str, rows: &[&RowReport]) -> String {
    let mut text = String::new();
    let checked = rows.iter().filter_map(|row| Some((row.check.checked.as_ref()?, *row)));
    for with in grouped(checked, |(circumstances, _)| *circumstances) {
        let circumstances = with[0].0;
        let variants = in_order(with.iter().map(|(_, row)| row.variant.as_str())).join(", ");
        let _ = writeln!(text, "checked: {kernel}: {variants}: {circumstances}");
    }
    text
}

/// Each name once, in the order of their first use.
fn in_order<'r>(names: impl Iterator<Item = &'r str>) -> Vec<&'r str> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

fn terse(report: &Report, style: Style) -> String {
    let mut text = format!("\nrunning {} test{}\n", report.rows.len(), plural(report.rows.len()));
    for row in &report.rows {
        text.push(match row.status {
            Status::Ok => '.',
            Status::Failed(_) | Status::Unchecked(_) => 'F',
            Status::Skipped(_) => 'i',
        });
    }
    text + "\n" + &failures(report) + &result(report, style)
}

/// Remarks of the gate, each once.
fn remarks(report: &Report) -> String {
    let mut text = String::new();
    let mut seen = HashSet::new();
    for row in &report.rows {
        for remark in &row.remarks {
            if seen.insert((&row.kernel, &row.variant, remark)) {
                let remark = remark.replace('\n', "\n  ");
                let _ = writeln!(text, "note: {}/{}: {remark}", row.kernel, row.variant);
            }
        }
    }
    text
}

fn failures(report: &Report) -> String {
    if report.failed().next().is_none() {
        return String::new();
    }
    let mut text = String::from("\nfailures:\n");
    for row in report.failed() {
        // No line of a reason may look like the result of another test.
        let reason = row.status.to_string().replace('\n', "\n  ");
        let _ = writeln!(text, "\n---- {} ----\n{reason}", row.name);
    }
    text += "\nfailures:\n";
    for row in report.failed() {
        let _ = writeln!(text, "    {}", row.name);
    }
    text
}

fn result(report: &Report, style: Style) -> String {
    let Counts { passed, failed, ignored } = Counts::of(&report.rows);
    let word = if failed > 0 { style.bad("FAILED") } else { style.good("ok") };
    format!(
        "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; {} filtered out; \
         finished in {:.2}s\n\n",
        report.filtered_out, report.seconds.checking
    )
}

fn events(report: &Report) -> String {
    let mut lines =
        vec![json!({ "type": "suite", "event": "started", "test_count": report.rows.len() })];
    for row in &report.rows {
        lines.push(json!({ "type": "test", "event": "started", "name": row.name }));
        lines.push(match &row.status {
            Status::Ok => json!({ "type": "test", "name": row.name, "event": "ok" }),
            Status::Failed(reason) | Status::Unchecked(reason) => {
                json!({ "type": "test", "name": row.name, "event": "failed", "stdout": reason })
            }
            Status::Skipped(reason) => {
                json!({ "type": "test", "name": row.name, "event": "ignored", "message": reason })
            }
        });
    }
    let Counts { passed, failed, ignored } = Counts::of(&report.rows);
    lines.push(json!({
        "type": "suite",
        "event": if failed > 0 { "failed" } else { "ok" },
        "passed": passed,
        "failed": failed,
        "ignored": ignored,
        "measured": 0,
        "filtered_out": report.filtered_out,
        "exec_time": report.seconds.checking,
    }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// libtest's word for what does not run, with the reason, on one line.
fn ignored(reason: &str) -> String {
    let reason = reason.replace('\n', " ");
    match reason.strip_prefix("ignored") {
        Some(rest) => format!("ignored{}", rest.replacen(": ", ", ", 1)),
        None => format!("ignored, {reason}"),
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
