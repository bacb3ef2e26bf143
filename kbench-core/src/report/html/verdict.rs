//! The verdict strip: what came out, first in one sentence and then in numbers.

use super::super::{Report, RowReport, Status};
use super::changes::Tally;
use super::text::{count, escape, grouped, name};
use crate::crossover::{Outcome, ThresholdVerdict};
use crate::infer::Attainment;

/// Verdicts in the order of the bar, each with its class and mark.
const VERDICTS: [(&str, &str, &str); 5] = [
    ("faster", "good", "▲"),
    ("equivalent", "same", "="),
    ("equal within 5 %", "near", "≈"),
    ("inconclusive", "quiet", "?"),
    ("slower", "warn", "▼"),
];

/// The section.
pub(super) fn section(report: &Report, extent: &str) -> String {
    let all = || report.rows.iter().chain(&report.searched);
    let measured = all().filter(|row| row.time_ns.is_some() && row.status.has_figures()).count();
    let failed = report.failed().count();
    let skipped = all().filter(|row| matches!(row.status, Status::Skipped(_))).count();
    let unstable = all().filter(|row| row.unstable).count();
    let crossed =
        report.crossovers.iter().filter(|found| found.outcome == Outcome::Crosses).count();
    let tiles = [
        tile(measured, "measured", "", "good"),
        tile(failed, "failed", "#correctness", if failed > 0 { "bad" } else { "" }),
        tile(skipped, "skipped", "", ""),
        tile(unstable, "unstable", "", if unstable > 0 { "warn" } else { "" }),
        tile(crossed, "crossovers found", "#kernels", ""),
        thresholds(report),
        targets(report),
        changes(report),
    ];
    format!(
        r#"<section id="verdict" class="part"><h2>Verdict</h2><p class="lead">{}</p>{}<ul class="tiles">{}</ul>{}</section>"#,
        escape(&sentence(report, measured, failed, extent)),
        bar(report),
        tiles.concat(),
        missing(report)
    )
}

fn sentence(report: &Report, measured: usize, failed: usize, extent: &str) -> String {
    let all = report.rows.len() + report.searched.len();
    let wrong = match failed {
        0 if measured == 0 => String::new(),
        0 => " Nothing failed.".to_owned(),
        failed => format!(" {} FAILED.", count(failed, "row", "rows")),
    };
    let against = report.baseline.as_ref().map(|baseline| {
        let Tally { slower, faster, .. } = Tally::of(report);
        format!(
            " Against {}: {}, {}.",
            baseline.name,
            count(slower, "regression", "regressions"),
            count(faster, "improvement", "improvements")
        )
    });
    let machines = match report.parts.len() {
        0 => String::new(),
        parts => format!(" Merged from {}.", count(parts, "run", "runs")),
    };
    format!(
        "{} of {} measured: {extent}.{wrong}{}{machines}",
        grouped(measured),
        count(all, "row", "rows"),
        against.unwrap_or_default()
    )
}

fn tile(number: usize, words: &str, link: &str, tone: &str) -> String {
    // Where there is nothing, there may be no part that tells of it.
    let words = match link {
        _ if number == 0 => escape(words),
        "" => escape(words),
        link => format!(r#"<a href="{link}">{}</a>"#, escape(words)),
    };
    format!(r#"<li class="{tone}"><b>{}</b> {words}"#, grouped(number))
}

/// How many comparisons came out in which way.
fn counts(report: &Report) -> [usize; 5] {
    let of = |word: &str| {
        let is = |row: &&RowReport| {
            row.comparison.verdict.as_deref().is_some_and(|verdict| verdict.ends_with(word))
        };
        report.rows.iter().chain(&report.searched).filter(is).count()
    };
    VERDICTS.map(|(word, ..)| of(word))
}

/// The comparisons with the base as one bar; the numbers are written below it.
fn bar(report: &Report) -> String {
    let counts = counts(report);
    let all: usize = counts.iter().sum();
    if all == 0 {
        return String::new();
    }
    let provisional = report
        .rows
        .iter()
        .chain(&report.searched)
        .filter_map(|row| row.comparison.verdict.as_deref())
        .filter(|verdict| verdict.starts_with("provisional"))
        .count();
    let (mut parts, mut words) = (String::new(), String::new());
    for ((word, class, mark), number) in VERDICTS.iter().zip(counts) {
        if number > 0 {
            let share = 1000.0 * number as f64 / all as f64;
            parts += &format!(r#"<span class="{class}" style="flex-grow:{share:.0}"></span>"#);
        }
        words += &format!(
            r#"<li class="{class}"><span class="mark" aria-hidden="true">{mark}</span> <b>{}</b> {word}"#,
            grouped(number)
        );
    }
    let provisional = match provisional {
        0 => String::new(),
        number => {
            format!(r#"<li class="quiet">{} of them provisional: one launch only"#, grouped(number))
        }
    };
    format!(
        r#"<div class="bar" aria-hidden="true">{parts}</div><ul class="verdicts" aria-label="comparisons with the base">{words}{provisional}</ul>"#
    )
}

fn thresholds(report: &Report) -> String {
    let judged: Vec<ThresholdVerdict> =
        report.crossovers.iter().filter_map(|c| Some(c.threshold.as_ref()?.verdict)).collect();
    let wrong = judged
        .iter()
        .filter(|v| matches!(v, ThresholdVerdict::TooLow | ThresholdVerdict::TooHigh))
        .count();
    match judged.len() {
        0 => String::new(),
        all => tile(
            wrong,
            &format!("of {all} thresholds wrong"),
            "#kernels",
            if wrong > 0 { "warn" } else { "" },
        ),
    }
}

fn targets(report: &Report) -> String {
    let all = || report.rows.iter().flat_map(|row| &row.expectations);
    let missed = all().filter(|target| target.verdict == Attainment::Missed).count();
    match all().count() {
        0 => String::new(),
        number => tile(
            missed,
            &format!("of {number} targets missed"),
            "#kernels",
            if missed > 0 { "bad" } else { "good" },
        ),
    }
}

fn changes(report: &Report) -> String {
    if report.baseline.is_none() {
        return String::new();
    }
    let Tally { slower, faster, .. } = Tally::of(report);
    let tone = |number: usize, tone: &'static str| if number > 0 { tone } else { "" };
    tile(slower, "regressions", "#changes", tone(slower, "bad"))
        + &tile(faster, "improvements", "#changes", tone(faster, "good"))
}

/// What a merged report should have and has not.
fn missing(report: &Report) -> String {
    if report.missing.is_empty() {
        return String::new();
    }
    let names: Vec<String> = report.missing.iter().map(|kernel| name(kernel)).collect();
    format!(
        r#"<p class="warning"><strong>Missing:</strong> {} in no part: <span class="code">{}</span></p>"#,
        count(report.missing.len(), "kernel is", "kernels are"),
        names.join(", ")
    )
}
