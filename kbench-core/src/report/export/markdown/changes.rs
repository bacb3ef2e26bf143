//! What changed since the baseline, worst first.

use std::fmt::Write;

use super::inert::{code, prose};
use super::kernel::variant;
use crate::calendar::date_and_time;
use crate::order;
use crate::report::{Method, Report, RowReport, units};

/// Lines of the table that are not folded.
const SHOWN: usize = 20;

/// The section on the baseline; nothing without one.
pub(super) fn changes(report: &Report) -> String {
    let Some(baseline) = &report.baseline else { return String::new() };
    let mut text = format!(
        "\n### Changes since {}\n\n{}, of {}",
        code(&baseline.name),
        match baseline.method {
            Method::Interleaved => "Measured in turns with its executable",
            Method::History => "Judged by what earlier runs of this machine let one expect",
        },
        date_and_time(baseline.started),
    );
    if let Some(reason) = &baseline.reason {
        let _ = write!(text, " ({})", prose(reason));
    }
    text += ".\n\n";
    let mut rows: Vec<(f64, &RowReport)> =
        report.rows.iter().filter_map(|row| Some((row.change.change?, row))).collect();
    order::sort_by(&mut rows, |a, b| b.0.total_cmp(&a.0));
    let lines: Vec<String> = rows.iter().map(|(change, row)| line(*change, row)).collect();
    let (shown, folded) = lines.split_at(lines.len().min(SHOWN));
    if !shown.is_empty() {
        text += &(HEAD.to_owned() + &shown.concat());
    }
    if !folded.is_empty() {
        let _ = write!(text, "\n<details><summary>{} more</summary>\n\n", folded.len());
        text += &(HEAD.to_owned() + &folded.concat() + "\n</details>\n");
    }
    for (names, what) in [(&baseline.gone, "no longer there"), (&baseline.fresh, "new")] {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| code(name)).collect();
            let _ = writeln!(text, "\n{what}: {}", names.join(", "));
        }
    }
    text
}

const HEAD: &str = "| change | interval | then | now | verdict | kernel | variant | size |\n\
                    |---:|---|---:|---:|---|---|---|---|\n";

fn line(change: f64, row: &RowReport) -> String {
    let time = |time: Option<f64>| time.map(units::time).unwrap_or_default();
    let ends = row.change.change_low.zip(row.change.change_high);
    format!(
        "| {} | {} | {} | {} | {} | {} {} | {} | {} |\n",
        signed(change),
        ends.map(|(low, high)| format!("{} to {}", signed(low), signed(high))).unwrap_or_default(),
        time(row.change.baseline_time_ns),
        time(row.time_ns),
        prose(row.change.change_verdict.as_deref().unwrap_or_default()),
        code(&row.kernel),
        prose(&row.element),
        variant(row),
        prose(&row.size),
    )
}

/// A change as a percentage with its sign.
fn signed(change: f64) -> String {
    let sign = if change > 0.0 { "+" } else { "" };
    format!("{sign}{}", units::percent(change))
}
