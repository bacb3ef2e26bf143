//! The section of one kernel and element type: what to take, and the plots that say why.

use std::collections::HashSet;
use std::fmt::Write;

use super::super::index::Index;
use super::super::{Status, VariantSummary, device, units};
use super::plot::outline;
use super::series::{COLOURS, Series, Side, Subject};
use super::text::{count, escape, last_segment, name, speedup};
use super::{samples, scaling, speedup as speedups, throughput};
use crate::order;

/// With so many kernels or fewer, all are unfolded.
const FEW: usize = 4;

/// All kernels, by family.
pub(super) fn section(subjects: &[Subject<'_>]) -> String {
    if subjects.is_empty() {
        return String::new();
    }
    let is_open = subjects.len() <= FEW;
    let mut sections = String::new();
    for family in subjects.chunk_by(|a, b| self::family(a) == self::family(b)) {
        let title = escape(self::family(&family[0]));
        let _ = write!(sections, r#"<h3 class="family">{title}</h3>"#);
        family.iter().for_each(|subject| sections += &self::subject(subject, is_open));
    }
    format!(
        r#"<section id="kernels" class="part"><h2>Kernels</h2><p class="read">What to take of each kernel. Unfold one for its curves, fits and samples.</p><p class="controls" hidden><button type="button" data-fold="open">unfold all</button> <button type="button" data-fold="">fold all</button></p>{sections}</section>"#
    )
}

fn family<'a>(subject: &Subject<'a>) -> &'a str {
    super::super::overview::family(subject.kernel)
}

fn subject(subject: &Subject<'_>, is_open: bool) -> String {
    let open = if is_open { " open" } else { "" };
    let advice = subject.summary.and_then(|summary| summary.recommendation.as_deref());
    let failed = subject.rows().filter(|row| matches!(row.status, Status::Failed(_))).count();
    let failed = match failed {
        0 => String::new(),
        failed => format!(r#" <b class="bad">✕ {failed} failed</b>"#),
    };
    let machine = subject.listed.first().and_then(|row| row.machine.as_ref());
    let machine = machine.map_or_else(String::new, |key| format!(" on {}", name(key)));
    let series = subject.series();
    let drawn = [
        figures("Speed-up", speedups::READING, &speedups::plots(subject, &series)),
        figures("Throughput", throughput::READING, &throughput::plots(subject, &series)),
        figures("Thread scaling", scaling::READING, &scaling::plots(subject)),
        sample_figures(subject),
    ];
    let body = [
        legend(subject, &series),
        format!(r#"<div class="figures">{}</div>"#, drawn.concat()),
        summaries(subject),
        findings(subject),
        remarks(subject),
    ];
    format!(
        r#"<details class="kernel"{open}><summary><h4>{} <small>{}</small></h4> <span class="advice">{}</span>{failed}</summary><div class="body" id="k{}"><p class="path code">{}{machine}</p>{}</div></details>"#,
        name(last_segment(subject.kernel)),
        name(subject.element),
        escape(advice.unwrap_or("nothing to choose from")),
        subject.number,
        name(subject.kernel),
        body.concat()
    )
}

/// A figure with what it is called and how it is read; nothing without a plot.
fn figures(title: &str, reading: &str, plots: &[String]) -> String {
    if plots.is_empty() {
        return String::new();
    }
    format!(
        r#"<figure{}><figcaption><h5>{title}</h5> <span class="read">{}</span></figcaption><div class="plots">{}</div></figure>"#,
        if plots.len() > 1 { r#" class="several""# } else { "" },
        escape(reading),
        plots.concat()
    )
}

fn sample_figures(subject: &Subject<'_>) -> String {
    let Some((words, plots)) = samples::plots(subject) else { return String::new() };
    let reading = format!(
        "The cell with most doubt, and of several the largest: {words}. {}",
        samples::READING
    );
    figures("Samples", &reading, &plots)
}

/// Which variant has which colour and shape, and what dashes mean.
fn legend(subject: &Subject<'_>, series: &[Series<'_>]) -> String {
    let mut items = String::new();
    let drawn: HashSet<usize> = series.iter().map(|line| line.variant).collect();
    let rows = Index::new(subject.listed.iter().copied(), |row| row.variant.as_str());
    let variants = subject.variants.iter().enumerate();
    for (position, variant) in variants.filter(|(position, _)| drawn.contains(position)) {
        let own = rows.of(variant);
        let note = if own.iter().any(|row| row.is_base) {
            "base"
        } else {
            own.first().map_or("", |r| &r.backend)
        };
        items += &legend_item(position, variant, note);
    }
    let has = |test: &dyn Fn(&Series<'_>) -> bool| series.iter().any(test);
    let styles = [
        ("thin", "fewer threads", has(&|s| !s.is_main && s.side == Side::Processor)),
        ("cold", "cold", has(&|s| s.mode == "cold")),
        ("graph", "graph", has(&|s| s.mode == "graph")),
    ];
    for (class, words, _) in styles.iter().filter(|style| style.2) {
        let _ = write!(
            items,
            r#"<li><svg viewBox="0 0 24 10" aria-hidden="true"><path class="l ink {class}" d="M1 5H23"/></svg> {words}"#
        );
    }
    format!(r#"<ul class="legend" aria-label="legend">{items}</ul>"#)
}

/// One entry of a legend.
pub(super) fn legend_item(position: usize, what: &str, note: &str) -> String {
    let note =
        if note.is_empty() { String::new() } else { format!(" <small>{}</small>", escape(note)) };
    format!(
        r#"<li><svg viewBox="0 0 24 10" aria-hidden="true"><path class="l s{colour}" d="M1 5H23"/><path class="p s{colour}" d="{}"/></svg> {}{note}"#,
        outline(position, 12.0, 5.0, 3.0),
        name(what),
        colour = position % COLOURS
    )
}

/// The variants over all sizes.
fn summaries(subject: &Subject<'_>) -> String {
    let variants = subject.summary.map_or(&[][..], |summary| &summary.variants);
    if variants.is_empty() {
        return String::new();
    }
    let line = |variant: &VariantSummary| {
        let mean = variant
            .mean_speedup
            .map(|mean| speedup(mean, variant.mean_speedup_low, variant.mean_speedup_high));
        let mean = mean.unwrap_or_else(|| if variant.is_base { "base" } else { "" }.to_owned());
        format!(
            r#"<tr><th scope="row" class="code">{}<td class="num">{}<td class="num">{}<td class="num">{}<td class="num">{}<td class="num">{}<td class="num">{}</tr>"#,
            name(&variant.variant),
            variant.threads,
            variant.sizes,
            variant.wins,
            variant.shared_wins,
            escape(&mean),
            units::percent(variant.mean_best_share)
        )
    };
    let lines: String = variants.iter().map(line).collect();
    let caption = format!("Variants of {} over all sizes", escape(&subject.title()));
    format!(
        r#"<div class="scroll" role="region" aria-label="{caption}" tabindex="0"><table class="compact"><caption>{caption}</caption><thead><tr><th scope="col">variant<th scope="col" class="num">threads<th scope="col" class="num">sizes<th scope="col" class="num">wins<th scope="col" class="num">shared<th scope="col" class="num">mean speed-up<th scope="col" class="num">of best</tr></thead><tbody>{lines}</tbody></table></div>"#
    )
}

fn findings(subject: &Subject<'_>) -> String {
    let found = subject.summary.map_or(&[][..], |summary| &summary.findings);
    let (laws, device) = (scaling::laws(subject), device_lines(subject));
    list("Findings", found.iter().chain(&laws).chain(&device).cloned())
}

/// Transfers and kernels of variants on a device, as the terminal tells them.
fn device_lines(subject: &Subject<'_>) -> Vec<String> {
    if subject.listed.iter().all(|row| row.device.device_peak_bytes.is_none()) {
        return Vec::new();
    }
    device::lines(subject.first)
}

fn list(title: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.map(|text| format!("<li>{}", escape(&text))).collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        r#"<details class="more"><summary>{title}: {}</summary><ul class="findings">{}</ul></details>"#,
        items.len(),
        items.concat()
    )
}

/// What else is to be known of its rows, each remark once with the rows that it is about.
fn remarks(subject: &Subject<'_>) -> String {
    let mut about: Vec<(bool, &str, &str)> = Vec::new();
    for row in subject.rows() {
        match &row.status {
            Status::Failed(reason) => about.push((false, reason, &row.variant)),
            Status::Skipped(reason) => about.push((true, reason, &row.variant)),
            Status::Unchecked(reason) => about.push((true, reason, &row.variant)),
            Status::Ok => about.extend(row.remarks.iter().map(|r| (true, &**r, &*row.variant))),
        }
    }
    order::sort(&mut about);
    let lines = about.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).map(|rows| {
        let (is_harmless, remark, _) = rows[0];
        let variants = order::distinct(rows.iter().map(|(_, _, variant)| *variant));
        let failed = if is_harmless { "" } else { "FAILED: " };
        let number = count(rows.len(), "row", "rows");
        format!("{failed}{remark} ({number} of {})", variants.join(", "))
    });
    list("Remarks", lines)
}
