//! Against a baseline: what became slower, what faster, and how sure that is.

use std::fmt::Write;

use super::super::{BaselineReport, Method, Report, RowReport, ShiftReport, units};
use super::plot::short;
use super::text::{amount, count, escape, grouped, name, variant};
use crate::calendar::date_and_time;
use crate::order;

const READING: &str = "The bar is the interval by which the change in time is judged, the dot its figure; right of the middle line is \
    slower. A change counts only when its verdict says so.";

/// Rows that are listed; all are in the table at the end.
const SHOWN: usize = 40;
/// Names of rows that came or went, listed at most.
const NAMED: usize = 20;

/// Rows against the baseline by what is said of them.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) slower: usize,
    pub(super) faster: usize,
    pub(super) others: usize,
}

impl Tally {
    pub(super) fn of(report: &Report) -> Self {
        let mut tally = Tally::default();
        for row in &report.rows {
            match row.change.change_verdict.as_deref() {
                Some(verdict) if verdict.ends_with("slower") => tally.slower += 1,
                Some(verdict) if verdict.ends_with("faster") => tally.faster += 1,
                Some(_) => tally.others += 1,
                None => {}
            }
        }
        tally
    }
}

/// The section; empty without a baseline.
pub(super) fn section(report: &Report) -> String {
    let Some(baseline) = &report.baseline else { return String::new() };
    let mut rows: Vec<&RowReport> =
        report.rows.iter().filter(|row| row.change.change.is_some()).collect();
    let is_decided = |row: &RowReport| {
        let verdict = row.change.change_verdict.as_deref().unwrap_or_default();
        verdict.ends_with("slower") || verdict.ends_with("faster")
    };
    order::sort_by(&mut rows, |a, b| {
        let worse = b.change.change.unwrap_or(0.0).total_cmp(&a.change.change.unwrap_or(0.0));
        is_decided(b).cmp(&is_decided(a)).then(worse)
    });
    let omitted = match rows.len().saturating_sub(SHOWN) {
        0 => String::new(),
        omitted => format!(
            r##"<p class="read">{} more are in the <a href="#rows">table of all rows</a>.</p>"##,
            grouped(omitted)
        ),
    };
    rows.truncate(SHOWN);
    let table = if rows.is_empty() { String::new() } else { table(&rows) };
    format!(
        r#"<section id="changes" class="part"><h2>Against {}</h2><p class="lead">{}</p>{table}{omitted}{}{}{}</section>"#,
        name(&baseline.name),
        escape(&lead(report, baseline)),
        shifts(&baseline.shifts),
        listing("Rows of the baseline that are gone", &baseline.gone),
        listing("Rows that the baseline has not", &baseline.fresh)
    )
}

fn lead(report: &Report, baseline: &BaselineReport) -> String {
    let Tally { slower, faster, others } = Tally::of(report);
    let commit = baseline.git_commit.as_ref().map(|hash| format!(", commit {hash:.8}"));
    let method = match baseline.method {
        Method::Interleaved => "its executable was measured in turns with this one",
        Method::History => "judged by what earlier runs of this machine let one expect",
    };
    let reason = baseline.reason.as_ref().map(|reason| format!(" ({reason})"));
    format!(
        "{} slower, {} faster, {} neither. The baseline is run {} of {}{}; {method}{}.",
        grouped(slower),
        grouped(faster),
        grouped(others),
        baseline.run,
        date_and_time(baseline.started),
        commit.unwrap_or_default(),
        reason.unwrap_or_default()
    )
}

fn table(rows: &[&RowReport]) -> String {
    let ends =
        |row: &&RowReport| [row.change.change, row.change.change_low, row.change.change_high];
    // Intervals from too few launches would leave no room for the others.
    let furthest = rows.iter().flat_map(ends).flatten().map(|change| log(change).abs());
    let furthest = furthest.filter(|far| *far < 1.0).fold(0.02, f64::max);
    let mut lines = String::new();
    for row in rows {
        let change = &row.change;
        let percent = |value: Option<f64>| value.map(signed).unwrap_or_default();
        let verdict = change.change_verdict.as_deref().unwrap_or_default();
        let tone = match verdict {
            verdict if verdict.ends_with("slower") => "bad",
            verdict if verdict.ends_with("faster") => "good",
            _ => "quiet",
        };
        let time = |value: Option<f64>| value.map(units::time).unwrap_or_default();
        let _ = write!(
            lines,
            r#"<tr><th scope="row" class="code">{} {} <span class="quiet">{}</span><td class="num">{}<td class="num">{}<td class="num">{}<td class="strip {tone}">{}<td class="num">[{}, {}]<td class="{tone}">{}</tr>"#,
            name(&variant(row)),
            name(&row.element),
            name(&row.size),
            time(change.baseline_time_ns),
            time(row.time_ns),
            percent(change.change),
            strip(row, furthest),
            percent(change.change_low),
            percent(change.change_high),
            escape(verdict)
        );
    }
    let caption = "Changes, the decided first and of these the worst";
    format!(
        r#"<p class="read">{}</p><div class="scroll" role="region" aria-label="{caption}" tabindex="0"><table class="changes"><caption>{caption}</caption><thead><tr><th scope="col">row<th scope="col" class="num">then<th scope="col" class="num">now<th scope="col" class="num">change<th scope="col" class="strip">interval<th scope="col" class="num">ends<th scope="col">verdict</tr></thead><tbody>{lines}</tbody></table></div>"#,
        escape(READING)
    )
}

/// A change on the scale of logarithms, on which twice and half as long are equally far.
fn log(change: f64) -> f64 {
    (1.0 + change).max(1e-9).log2()
}

fn signed(share: f64) -> String {
    let sign = if share > 0.0 { "+" } else { "" };
    format!("{sign}{}", units::percent(share).replace('-', "−"))
}

/// The interval as a bar. The figures are beside it, so it is only for the eye.
fn strip(row: &RowReport, furthest: f64) -> String {
    let place = |change: f64| 80.0 + 76.0 * (log(change) / furthest).clamp(-1.0, 1.0);
    let change = &row.change;
    let Some(middle) = change.change.filter(|c| c.is_finite()).map(place).map(short) else {
        return String::new();
    };
    let ends = change.change_low.zip(change.change_high);
    let bar = ends.map(|(low, high)| {
        format!(r#"<path class="bar" d="M{} 7H{}"/>"#, short(place(low)), short(place(high)))
    });
    format!(
        r#"<svg viewBox="0 0 160 14" aria-hidden="true"><path class="limit" d="M80 0V14"/>{}<circle cx="{middle}" cy="7" r="3.5"/></svg>"#,
        bar.unwrap_or_default()
    )
}

fn shifts(shifts: &[ShiftReport]) -> String {
    let moved = shifts.iter().filter(|shift| shift.octaves != Some(0.0));
    let bracket = |bracket: Option<[f64; 2]>| match bracket {
        Some([low, high]) => format!("between {} and {}", amount(low), amount(high)),
        None => "nowhere".to_owned(),
    };
    let item = |shift: &ShiftReport| {
        let held =
            if shift.held.is_empty() { String::new() } else { format!(" at {}", shift.held) };
        let text = format!(
            "{} {}{held}: crossed {}, now {}",
            shift.variant,
            shift.element,
            bracket(shift.then),
            bracket(shift.now)
        );
        format!("<li>{}", escape(&text))
    };
    let items: String = moved.map(item).collect();
    if items.is_empty() {
        return String::new();
    }
    format!(r#"<h3>Crossovers that moved</h3><ul class="findings">{items}</ul>"#)
}

fn listing(title: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let items: String = names.iter().take(NAMED).map(|row| format!("<li>{}", name(row))).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("<li>and {} more", grouped(more)),
    };
    format!(
        r#"<details><summary>{title}: {}</summary><ul class="findings code">{items}{more}</ul></details>"#,
        count(names.len(), "row", "rows")
    )
}
