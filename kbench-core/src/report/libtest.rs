//! Test mode in the form of Rust's own test harness.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::json;

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
    let mut kernels: Vec<(&str, Vec<(&str, usize, usize)>)> = Vec::new();
    for row in &report.rows {
        let known = kernels.iter().position(|(kernel, _)| *kernel == row.kernel);
        let kernel = known.unwrap_or_else(|| {
            kernels.push((&row.kernel, Vec::new()));
            kernels.len() - 1
        });
        let variants = &mut kernels[kernel].1;
        let known = variants.iter().position(|(variant, ..)| *variant == row.variant);
        let variant = known.unwrap_or_else(|| {
            variants.push((&row.variant, 0, 0));
            variants.len() - 1
        });
        variants[variant].1 += usize::from(row.status == Status::Ok);
        variants[variant].2 += 1;
    }
    let mut text = String::new();
    for (kernel, variants) in kernels {
        let of = |(variant, passed, all): (&str, usize, usize)| format!("{variant} {passed}/{all}");
        let variants: Vec<String> = variants.into_iter().map(of).collect();
        let _ = writeln!(text, "passed: {kernel}: {}", variants.join(", "));
    }
    text
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
