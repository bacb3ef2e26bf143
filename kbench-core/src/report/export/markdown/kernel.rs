//! One kernel: its rows as a table, why some have no figures, and what was found.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::inert::{code, prose};
use crate::report::{KernelReport, RowReport, Status, units};

/// The section of a kernel with these rows and those that failed in a search; folded where there are many.
pub(super) fn kernel(
    summary: Option<&KernelReport>,
    rows: &[RowReport],
    failed: &[&RowReport],
    is_folded: bool,
) -> String {
    let advice = summary.and_then(|kernel| kernel.recommendation.as_deref());
    let title = format!("{} {}", code(&rows[0].kernel), prose(&rows[0].element));
    let mut text = match is_folded {
        true => {
            let advice = advice.map_or_else(String::new, |advice| format!(" → {}", prose(advice)));
            format!("\n<details><summary>\n\n{title}{advice}\n\n</summary>\n\n")
        }
        false => format!("\n### {title}\n\n"),
    };
    text += "| size | variant | time | speed-up | verdict | throughput | error |\n\
             |---:|---|---:|---:|---|---:|---:|\n";
    text += &shown(rows).map(line).collect::<String>();
    let notes = reasons(rows, failed) + &findings(summary.map(|kernel| &kernel.findings[..]));
    let advice = advice.filter(|_| !is_folded);
    let advice = advice.map_or_else(String::new, |advice| format!("- **{}**\n", prose(advice)));
    if !notes.is_empty() || !advice.is_empty() {
        text += &format!("\n{notes}{advice}");
    }
    if is_folded { text + "\n</details>\n" } else { text }
}

/// All rows but those of variants that are skipped at every size, whose reason is below the table.
fn shown(rows: &[RowReport]) -> impl Iterator<Item = &RowReport> {
    let is_skipped = |row: &RowReport| matches!(row.status, Status::Skipped(_));
    let ran: HashSet<&str> =
        rows.iter().filter(|row| !is_skipped(row)).map(|row| row.variant.as_str()).collect();
    rows.iter().filter(move |row| ran.contains(row.variant.as_str()))
}

fn line(row: &RowReport) -> String {
    let is_timed = row.status.has_figures();
    let cell = |text: Option<String>| text.filter(|_| is_timed).unwrap_or_default();
    let comparison = &row.comparison;
    let ends = row.time_low_ns.zip(row.time_high_ns);
    let half =
        |time: f64| ends.map(|(low, high)| format!(" {}", units::half_width(time, low, high)));
    let time = row.time_ns.map(|time| units::time(time) + &half(time).unwrap_or_default());
    let ends = comparison.speedup_low.zip(comparison.speedup_high);
    let ends = ends
        .map(|(low, high)| {
            let interval = units::interval(low, high);
            format!(" \\[{}\\]", interval.trim_matches(['[', ']']))
        })
        .unwrap_or_default();
    let speedup = comparison.speedup.map(|s| format!("{}×{}", units::ratio(s), ends));
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        prose(&row.size),
        variant(row),
        cell(time),
        cell(speedup.map(|speedup| speedup.replace('<', "&lt;").replace('>', "&gt;"))),
        verdict(row),
        cell(throughput(row)),
        row.check.error.map(units::error).unwrap_or_default(),
    )
}

/// The variant, and how it ran where that is not plain.
pub(super) fn variant(row: &RowReport) -> String {
    let mut text = code(&row.variant);
    if row.backend == "parallel" {
        let _ = write!(text, " {} thread{}", row.threads, if row.threads == 1 { "" } else { "s" });
    }
    if row.mode != "warm" {
        let _ = write!(text, " {}", prose(&row.mode));
    }
    if let Some(machine) = &row.machine {
        let _ = write!(text, " on {}", code(machine));
    }
    text
}

fn verdict(row: &RowReport) -> String {
    match (&row.status, row.verdict_in_full()) {
        (Status::Failed(_), _) => "**FAILED**".to_owned(),
        (Status::Skipped(_), _) => "skipped".to_owned(),
        (Status::Unchecked(_), _) => "**unchecked**".to_owned(),
        (Status::Ok, Some(words)) => match row.reservation() {
            Some(reservation) => format!("{} ({reservation})", prose(&words)),
            None => prose(&words),
        },
        (Status::Ok, None) if row.is_base => "base".to_owned(),
        (Status::Ok, None) => String::new(),
    }
}

/// The rate that the author asked for first: arithmetic, else memory, else work.
fn throughput(row: &RowReport) -> Option<String> {
    let rates = [(row.flops_per_s, "GFLOP/s"), (row.bytes_per_s, "GB/s"), (row.items_per_s, "G/s")];
    let (rate, unit) = rates.into_iter().find_map(|(rate, unit)| Some((rate?, unit)))?;
    Some(format!("{} {unit}", units::digits(rate / 1e9)))
}

/// Why rows have no figures, and what else is to be known of them: each reason once, with the variants that it is about.
fn reasons(rows: &[RowReport], failed: &[&RowReport]) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut seen: HashSet<(usize, String)> = HashSet::new();
    for row in rows.iter().chain(failed.iter().copied()) {
        let (reasons, subject) = match &row.status {
            Status::Skipped(reason) => {
                (vec![format!("skipped: {}", code(reason))], code(&row.variant))
            }
            Status::Failed(reason) => (
                vec![format!("**FAILED**: {}", code(reason))],
                format!("{} at {}", variant(row), prose(&row.size)),
            ),
            Status::Unchecked(reason) => {
                (vec![format!("**unchecked**: {}", code(reason))], code(&row.variant))
            }
            Status::Ok => (row.remarks.iter().map(|r| prose(r)).collect(), code(&row.variant)),
        };
        for reason in reasons {
            let group = *known.entry(reason.clone()).or_insert(groups.len());
            if group == groups.len() {
                groups.push((reason, Vec::new()));
            }
            if seen.insert((group, subject.clone())) {
                groups[group].1.push(subject.clone());
            }
        }
    }
    groups.iter().map(|(reason, about)| format!("- {}: {reason}\n", about.join(", "))).collect()
}

fn findings(findings: Option<&[String]>) -> String {
    findings.unwrap_or_default().iter().map(|finding| format!("- {}\n", prose(finding))).collect()
}
