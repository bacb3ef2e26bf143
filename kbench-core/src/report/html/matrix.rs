//! The matrix: every kernel and size at a glance, by family.
//!
//! Kernels have sizes of their own, so a line of the matrix has cells of its own: from the least work to the most, each with
//! its size written in it.

use std::fmt::Write;

use super::super::overview::family;
use super::super::{RowReport, Status, units};
use super::series::Subject;
use super::text::{
    count, cut, escape, last_segment, name, short_size, short_variant, speedup, variant,
};
use crate::infer::Judgement;
use crate::order;

const READING: &str = "A cell is one size, work growing to the right: the best variant and how much faster it is than the \
    base, or `base` and how close the next one comes. Green is faster than the base, ochre slower, deeper is further; hatched \
    means that no difference is shown, ✕ that something failed. Times of a device are without transfers.";

/// Steps of colour on either side of equal, by octaves.
const STEPS: [f64; 5] = [0.07, 0.4, 1.0, 2.0, 4.0];

/// Names of sizes and variants in a cell have this many characters at most.
const NAME: usize = 14;

/// The section; empty without rows.
pub(super) fn section(subjects: &[Subject<'_>]) -> String {
    if subjects.is_empty() {
        return String::new();
    }
    let families = subjects.chunk_by(|a, b| family(a.kernel) == family(b.kernel));
    let tables: String = families.map(table).collect();
    format!(
        r#"<section id="matrix" class="part"><h2>Kernels by size</h2><p class="read">{}</p>{}<div class="matrix">{tables}</div></section>"#,
        escape(READING).replace("`base`", "<i>base</i>"),
        key()
    )
}

/// What the colours stand for.
fn key() -> String {
    let steps = [(-4, "¼×"), (-3, "½×"), (-1, ""), (0, "1×"), (1, ""), (3, "2×"), (5, "16×")];
    let step =
        |(step, text): &(i32, &str)| format!(r#"<span class="{}">{text}</span>"#, class(*step));
    let steps: String = steps.iter().map(step).collect();
    format!(
        r#"<p class="key" aria-hidden="true">slower {steps} faster <span class="c0 open">not shown</span></p>"#
    )
}

fn table(subjects: &[Subject<'_>]) -> String {
    let caption = escape(family(subjects[0].kernel));
    let widest = subjects.iter().map(|subject| subject.cells().len()).max().unwrap_or(1);
    let mut lines = String::new();
    for subject in subjects {
        let _ = write!(
            lines,
            r##"<tr><th scope="row"><a href="#k{}">{}</a> <small>{}</small>"##,
            subject.number,
            name(last_segment(subject.kernel)),
            name(subject.element)
        );
        for cell in subject.cells() {
            lines += &self::cell(subject, &cell);
        }
        lines += "</tr>";
    }
    format!(
        r#"<div class="scroll" role="region" aria-label="{caption}" tabindex="0"><table><caption>{caption}</caption><thead class="hidden"><tr><th scope="col">kernel<th scope="col" colspan="{widest}">sizes, by growing work</tr></thead><tbody>{lines}</tbody></table></div>"#
    )
}

/// What a cell says.
struct Finding {
    class: String,
    figure: String,
    words: String,
    tip: String,
}

fn cell(subject: &Subject<'_>, rows: &[&RowReport]) -> String {
    let Finding { class, figure, words, tip } = finding(subject, rows);
    let failed = rows.iter().filter(|row| matches!(row.status, Status::Failed(_))).count();
    let mark = match failed {
        0 => String::new(),
        failed => format!(r#" <b class="bad">✕<span class="hidden"> {failed} failed</span></b>"#),
    };
    let class = if failed > 0 { format!("{class} failed") } else { class };
    let failures = if failed > 0 { format!(" · {failed} failed") } else { String::new() };
    let size = escape(&cut(&short_size(rows[0]), NAME));
    format!(
        r##"<td class="{class}"><a href="#k{}" title="{}"><small>{size}</small><b>{}</b>{mark}<span>{}</span></a>"##,
        subject.number,
        escape(&format!("{} · {tip}{failures}", rows[0].size)),
        escape(&figure),
        escape(&cut(&words, NAME))
    )
}

fn finding(subject: &Subject<'_>, rows: &[&RowReport]) -> Finding {
    let ranked: Vec<&RowReport> = rows
        .iter()
        .filter(|row| row.best_share.is_some() && row.time_ns.is_some())
        .copied()
        .collect();
    let challengers = ranked.iter().filter(|row| row.comparison.speedup.is_some());
    let figure = |row: &RowReport| row.comparison.speedup.unwrap_or(0.0);
    // What is shown to be faster comes before what may be.
    let is_faster = |row: &RowReport| row.judgement() == Some(Judgement::Faster);
    let best = challengers
        .max_by(|a, b| is_faster(a).cmp(&is_faster(b)).then(figure(a).total_cmp(&figure(b))));
    let Some(best) = best else { return without_comparison(rows, &ranked) };
    let ratio = figure(best);
    let verdict = best.comparison.verdict.as_deref().unwrap_or_default();
    let is_shown = best.judgement().is_some_and(Judgement::is_different);
    let step = step(ratio);
    let open = if is_shown { "" } else { " open" };
    let found = &best.comparison;
    let challenger = variant(best);
    let tip = format!(
        "{challenger}: {} {verdict}{}",
        speedup(ratio, found.speedup_low, found.speedup_high),
        with_transfers(rows, best)
    );
    let short = short_variant(subject.kernel, &best.variant);
    let threads = if best.threads > 1 { format!(" ·{}", best.threads) } else { String::new() };
    let has_base = ranked.iter().any(|row| row.is_base);
    let base_wins = has_base && !is_faster(best);
    let (figure, words) = match base_wins {
        true => ("base".to_owned(), format!("next {}×", units::ratio(ratio))),
        false => (format!("{}×", units::ratio(ratio)), format!("{short}{threads}")),
    };
    Finding { class: format!("{}{open}", class(step)), figure, words, tip }
}

/// A cell in which nothing is compared: its best time, or why there is none.
fn without_comparison(rows: &[&RowReport], ranked: &[&RowReport]) -> Finding {
    let time = |row: &&&RowReport| row.time_ns.unwrap_or(f64::INFINITY);
    let timed = ranked.iter().min_by(|a, b| time(a).total_cmp(&time(b)));
    let skipped = rows.iter().find_map(|row| match &row.status {
        Status::Skipped(reason) | Status::Failed(reason) => Some(reason.as_str()),
        Status::Ok | Status::Unchecked(_) => None,
    });
    match timed {
        Some(row) => Finding {
            class: "c0".to_owned(),
            figure: units::time(time(&row)),
            words: if ranked.len() > 1 { "not compared" } else { "alone" }.to_owned(),
            tip: format!("{}: nothing to compare with", row.variant),
        },
        None => Finding {
            class: "none".to_owned(),
            figure: "–".to_owned(),
            words: "no figures".to_owned(),
            tip: skipped.unwrap_or("no figures").to_owned(),
        },
    }
}

fn with_transfers(rows: &[&RowReport], best: &RowReport) -> String {
    let same = rows.iter().find(|row| row.variant == best.variant && row.mode == "end-to-end");
    let figure = same.and_then(|row| row.comparison.speedup);
    figure.map_or_else(String::new, |s| format!(", with transfers {}×", units::ratio(s)))
}

/// How far a ratio is from 1, in steps of colour.
fn step(ratio: f64) -> i32 {
    let octaves = ratio.log2();
    let steps = STEPS.iter().filter(|step| octaves.abs() >= **step).count() as i32;
    if octaves < 0.0 { -steps } else { steps }
}

fn class(step: i32) -> String {
    match step {
        0 => "c0".to_owned(),
        step if step > 0 => format!("f{step}"),
        step => format!("w{}", -step),
    }
}

/// How many kernels and sizes there are, in words.
pub(super) fn extent(subjects: &[Subject<'_>]) -> String {
    let cells: usize = subjects.iter().map(|subject| subject.cells().len()).sum();
    let kernels = order::distinct(subjects.iter().map(|subject| subject.kernel));
    format!(
        "{} in {} of kernel, element type and size",
        count(kernels.len(), "kernel", "kernels"),
        count(cells, "cell", "cells")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_the_same_to_both_sides_of_equal() {
        for (ratio, expected) in
            [(1.0, 0), (1.02, 0), (1.2, 1), (1.5, 2), (2.5, 3), (5.0, 4), (64.0, 5)]
        {
            assert_eq!((step(ratio), step(1.0 / ratio)), (expected, -expected), "{ratio}");
        }
        assert_eq!([class(-2), class(0), class(3)], ["w2", "c0", "f3"]);
    }
}
