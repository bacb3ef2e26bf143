//! The roofline: what limits each row, memory or arithmetic.

use super::super::{DeviceReport, Report, RowReport, units};
use super::plot::{ACROSS, Axis, Plot, UPWARD};
use super::scale::{Scale, Spread};
use super::series::{COLOURS, Side, Subject};
use super::text::{escape, scaled, tick, variant};

/// How to read these plots.
const READING: &str = "The slope is what memory allows, the level lines what arithmetic does; a row is limited by the one \
    above it. Close below a line is close to what is possible. Ceilings of a device are measured on it; those of the processor \
    are the best rates seen in this run, caches included.";

/// A roof: what it is called, and its height; one of memory rises with intensity.
struct Roof {
    name: String,
    per_s: f64,
    is_memory: bool,
}

/// The section; empty when no row has both rates.
pub(super) fn section(subjects: &[Subject<'_>], report: &Report) -> String {
    let has_place = |row: &&RowReport| row.status.has_figures() && intensity(row).is_some();
    let mut dots: Vec<(&Subject<'_>, &RowReport)> = Vec::new();
    for subject in subjects {
        let is_shown = |row: &&&RowReport| has_place(row) && subject.is_main(row);
        dots.extend(subject.listed.iter().filter(is_shown).map(|row| (subject, *row)));
    }
    let on = |side: Side| -> Vec<(&Subject<'_>, &RowReport)> {
        dots.iter().filter(|(_, row)| Side::of(row) == side).copied().collect()
    };
    let device = report
        .device
        .as_ref()
        .or_else(|| report.parts.iter().find_map(|part| part.device.as_ref()));
    let sides = [
        (Side::Processor, seen(&on(Side::Processor))),
        (Side::Device, device.map(measured).unwrap_or_default()),
    ];
    let plots: String = sides
        .iter()
        .filter(|(side, _)| !on(*side).is_empty())
        .map(|(side, roofs)| plot(*side, &on(*side), roofs))
        .collect();
    if plots.is_empty() {
        return String::new();
    }
    let reading = escape(READING);
    format!(
        r#"<section id="roofline" class="part"><h2>Roofline</h2><p class="read">{reading}</p><div class="plots wide">{plots}</div>{}</section>"#,
        key(subjects, &dots)
    )
}

/// Operations for every byte that is moved.
fn intensity(row: &RowReport) -> Option<f64> {
    let ratio = row.device.intensity.or_else(|| Some(row.flops_per_s? / row.bytes_per_s?))?;
    row.flops_per_s.filter(|_| ratio.is_finite() && ratio > 0.0).map(|_| ratio)
}

fn measured(device: &DeviceReport) -> Vec<Roof> {
    let Some(ceilings) = &device.ceilings else { return Vec::new() };
    let memory = |name: &str, per_s| Roof { name: name.to_owned(), per_s, is_memory: true };
    let rate = |rate: &crate::cuda::TypeRate| Roof {
        name: rate.element.clone(),
        per_s: rate.flops_per_s,
        is_memory: false,
    };
    [memory("L2", ceilings.l2_bytes_per_s), memory("memory", ceilings.memory_bytes_per_s)]
        .into_iter()
        .chain(ceilings.matrix.iter().map(rate))
        .collect()
}

/// The best rates of some rows.
fn seen(dots: &[(&Subject<'_>, &RowReport)]) -> Vec<Roof> {
    let best = |rate: fn(&RowReport) -> Option<f64>| {
        dots.iter().filter_map(|(_, row)| rate(row)).max_by(f64::total_cmp)
    };
    let memory = best(|row| row.bytes_per_s);
    let arithmetic = best(|row| row.flops_per_s);
    let roof = |name: &str, per_s, is_memory| Roof { name: name.to_owned(), per_s, is_memory };
    memory
        .map(|per_s| roof("bytes seen", per_s, true))
        .into_iter()
        .chain(arithmetic.map(|per_s| roof("seen", per_s, false)))
        .collect()
}

fn plot(side: Side, dots: &[(&Subject<'_>, &RowReport)], roofs: &[Roof]) -> String {
    let x = Scale::over(Spread::Decades, dots.iter().filter_map(|(_, r)| intensity(r)), ACROSS);
    let x = x.with_margin(0.05);
    let rates = dots.iter().filter_map(|(_, row)| row.flops_per_s);
    let flat = roofs.iter().filter(|roof| !roof.is_memory).map(|roof| roof.per_s);
    let y = Scale::over(Spread::Decades, rates.chain(flat.clone()), UPWARD).with_margin(0.03);
    let highest = flat.clone().fold(f64::NEG_INFINITY, f64::max);
    let across = Axis::new(x, "intensity: operations for every byte", 6, tick);
    let upward = Axis::new(y, "FLOP/s", 6, tick);
    let title = format!("Roofline: {}", side.words());
    let names: Vec<String> = roofs.iter().map(roof_words).collect();
    let words = format!("{} rows below these ceilings: {}.", dots.len(), names.join(", "));
    let mut plot = Plot::new(title, words, across, upward);
    plot.caption(side.words());
    for roof in roofs {
        match roof.is_memory {
            false => {
                plot.horizontal(roof.per_s, "roof", "");
                plot.label(roof.per_s, &super::text::cut(&roof.name, 6), "roof");
            }
            true => {
                let rise = (0..=32).map(|step| x.at(f64::from(step) / 32.0));
                let rise = rise.map(|at| (at, at * roof.per_s));
                let below = |point: &(f64, f64)| point.1 <= highest && y.has(point.1);
                plot.line(rise.filter(below), "roofline");
            }
        }
    }
    for (subject, row) in dots {
        let place = intensity(row).zip(row.flops_per_s);
        let Some(place) = place else { continue };
        let family = family_position(subject);
        let share =
            row.ceiling_share.map(|share| format!(" · {} of its ceiling", units::percent(share)));
        let tip = format!(
            "{} · {} · {} · {}{}",
            subject.title(),
            variant(row),
            row.size,
            scaled(place.1, "FLOP/s"),
            share.unwrap_or_default()
        );
        plot.mark(place, family, &format!("s{} dot", family % COLOURS), &tip);
    }
    plot.render()
}

fn roof_words(roof: &Roof) -> String {
    let unit = if roof.is_memory { "B/s" } else { "FLOP/s" };
    format!("{} {}", roof.name, scaled(roof.per_s, unit))
}

/// The number of a kernel's family, by which its dots are coloured and shaped.
fn family_position(subject: &Subject<'_>) -> usize {
    families(subject.report).iter().position(|f| *f == family(subject.kernel)).unwrap_or(0)
}

fn family(kernel: &str) -> &str {
    super::super::overview::family(kernel)
}

fn families(report: &Report) -> Vec<&str> {
    let mut families: Vec<&str> = Vec::new();
    for kernel in &report.kernels {
        let own = family(&kernel.kernel);
        if !families.contains(&own) {
            families.push(own);
        }
    }
    families
}

/// Which family has which mark.
fn key(subjects: &[Subject<'_>], dots: &[(&Subject<'_>, &RowReport)]) -> String {
    let Some(first) = subjects.first() else { return String::new() };
    let is_shown = |name: &&str| dots.iter().any(|(subject, _)| family(subject.kernel) == *name);
    let families = families(first.report);
    let shown = families.iter().enumerate().filter(|(_, name)| is_shown(name));
    let items = shown.map(|(position, name)| super::kernel::legend_item(position, name, ""));
    format!(r#"<ul class="legend">{}</ul>"#, items.collect::<String>())
}
