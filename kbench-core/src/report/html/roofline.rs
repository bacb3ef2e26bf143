//! The roofline: what limits each row, memory or arithmetic.

use std::collections::{HashMap, HashSet};

use super::super::overview::family;
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

/// A row on a plot.
#[derive(Clone, Copy)]
struct Dot<'a> {
    subject: &'a Subject<'a>,
    /// The number of its kernel's family, by which it is coloured and shaped.
    family: Option<usize>,
    row: &'a RowReport,
}

/// The section; empty when no row has both rates.
pub(super) fn section(subjects: &[Subject<'_>], report: &Report) -> String {
    let has_place = |row: &&RowReport| row.status.has_figures() && intensity(row).is_some();
    let families = families(report);
    let numbers: HashMap<&str, usize> =
        families.iter().enumerate().map(|(number, family)| (*family, number)).collect();
    let mut dots: Vec<Dot<'_>> = Vec::new();
    for subject in subjects {
        let is_shown = |row: &&&RowReport| has_place(row) && subject.is_main(row);
        let family = numbers.get(family(subject.kernel)).copied();
        let shown = subject.listed.iter().filter(is_shown);
        dots.extend(shown.map(|row| Dot { subject, family, row }));
    }
    let on = |side: Side| -> Vec<Dot<'_>> {
        dots.iter().filter(|dot| Side::of(dot.row) == side).copied().collect()
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
        key(&families, &dots)
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
fn seen(dots: &[Dot<'_>]) -> Vec<Roof> {
    let best = |rate: fn(&RowReport) -> Option<f64>| {
        dots.iter().filter_map(|dot| rate(dot.row)).max_by(f64::total_cmp)
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

fn plot(side: Side, dots: &[Dot<'_>], roofs: &[Roof]) -> String {
    let x = Scale::over(Spread::Decades, dots.iter().filter_map(|dot| intensity(dot.row)), ACROSS);
    let x = x.with_margin(0.05);
    let rates = dots.iter().filter_map(|dot| dot.row.flops_per_s);
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
    for Dot { subject, family, row } in dots {
        let place = intensity(row).zip(row.flops_per_s);
        let Some(place) = place else { continue };
        let family = family.unwrap_or(0);
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

/// The families of all kernels, in their order.
fn families(report: &Report) -> Vec<&str> {
    let mut seen = HashSet::new();
    let families = report.kernels.iter().map(|kernel| family(&kernel.kernel));
    families.filter(|family| seen.insert(*family)).collect()
}

/// Which family has which mark.
fn key(families: &[&str], dots: &[Dot<'_>]) -> String {
    let shown: HashSet<usize> = dots.iter().filter_map(|dot| dot.family).collect();
    let all = families.iter().enumerate().filter(|(number, _)| shown.contains(number));
    let items = all.map(|(number, name)| super::kernel::legend_item(number, name, ""));
    format!(r#"<ul class="legend">{}</ul>"#, items.collect::<String>())
}
