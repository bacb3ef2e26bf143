//! History: a row over the stored runs of its machine, with the points at which it changed.

use super::super::{Trend, TrendPoint, units};
use super::plot::{ACROSS, Axis, Plot, Ranged, UPWARD};
use super::scale::{Scale, Spread};
use super::text::{count, cut, escape, grouped, last_segment, name, short_variant, time_tick};
use crate::calendar::date;
use crate::order;

const READING: &str = "Each point is a stored run, oldest at the left, with its 95 % interval; lower is faster. A vertical \
    line marks a run at which a new level begins.";

/// Fewer runs than these are no history.
const FEWEST: usize = 3;
/// Rows of one kernel that are drawn.
const MOST_OF_KERNEL: usize = 4;
/// Rows that are drawn in all; those that changed come first.
const MOST: usize = 48;

/// The section; empty when no row has enough runs.
pub(super) fn section(trends: &[Trend]) -> String {
    let known: Vec<&Trend> = trends.iter().filter(|trend| trend.points.len() >= FEWEST).collect();
    if known.is_empty() {
        return String::new();
    }
    let changed = known.iter().filter(|trend| !trend.changes.is_empty()).count();
    let chosen = chosen(&known);
    let omitted = match known.len() - chosen.len() {
        0 => String::new(),
        omitted => format!(
            " Drawn are those that changed, and at most {MOST_OF_KERNEL} of a kernel; {} more are not.",
            grouped(omitted)
        ),
    };
    let lead = format!(
        "{} with at least {FEWEST} runs on this machine; {} changed at some point.{omitted}",
        count(known.len(), "row", "rows"),
        grouped(changed)
    );
    let kernels = chosen.chunk_by(|a, b| kernel(a) == kernel(b)).map(group).collect::<String>();
    format!(
        r#"<section id="history" class="part"><h2>History</h2><p class="lead">{}</p><p class="read">{}</p>{kernels}</section>"#,
        escape(&lead),
        escape(READING)
    )
}

fn kernel(trend: &Trend) -> &str {
    trend.name.split('/').next().unwrap_or_default()
}

/// Some of all rows, those of one kernel together.
fn chosen<'a>(known: &[&'a Trend]) -> Vec<&'a Trend> {
    let mut order: Vec<&'a Trend> = known.to_vec();
    order::sort_by_key(&mut order, |trend| trend.changes.is_empty());
    let mut chosen: Vec<&'a Trend> = Vec::new();
    for trend in order {
        let own = chosen.iter().filter(|other| kernel(other) == kernel(trend)).count();
        if own < MOST_OF_KERNEL && chosen.len() < MOST {
            chosen.push(trend);
        }
    }
    order::sort_by(&mut chosen, |a, b| kernel(a).cmp(kernel(b)));
    chosen
}

fn group(trends: &[&Trend]) -> String {
    let plots: String = trends
        .iter()
        .map(|trend| {
            let caption = caption(trend);
            format!("<figure>{}<figcaption>{caption}</figcaption></figure>", plot(trend))
        })
        .collect();
    let title = name(last_segment(kernel(trends[0])));
    format!(r#"<h3>{title}</h3><div class="plots">{plots}</div>"#)
}

fn caption(trend: &Trend) -> String {
    let parts: Vec<&str> = trend.name.split('/').collect();
    let what = match parts.as_slice() {
        [kernel, variant, rest @ ..] => {
            format!("{} {}", short_variant(kernel, variant), rest.join(" "))
        }
        _ => trend.name.clone(),
    };
    let threads =
        if trend.threads > 1 { format!(" · {} threads", trend.threads) } else { String::new() };
    let mode = if trend.mode == "warm" { String::new() } else { format!(" · {}", trend.mode) };
    escape(&format!("{what}{threads}{mode}"))
}

fn plot(trend: &Trend) -> String {
    let points = &trend.points;
    let x = Scale::over(Spread::Linear, [0.0, (points.len() - 1) as f64], ACROSS);
    let ends = |point: &TrendPoint| {
        let far = |end: Option<f64>| end.map(|e| e.clamp(point.time_ns / 2.0, point.time_ns * 2.0));
        [Some(point.time_ns), far(point.low_ns), far(point.high_ns)].into_iter().flatten()
    };
    let y = Scale::over(Spread::Decades, points.iter().flat_map(ends), UPWARD).with_margin(0.1);
    let mut x = Axis::new(x.with_margin(0.03), "runs", 1, |_| String::new());
    let dated = |index: usize| Some((index as f64, date(points.get(index)?.started)));
    x.ticks = [0, points.len() - 1].into_iter().filter_map(dated).collect();
    let y = Axis::new(y, "time of one call", 5, time_tick);
    let first = points.first().map_or(f64::NAN, |point| point.time_ns);
    let last = points.last().map_or(f64::NAN, |point| point.time_ns);
    let words = format!(
        "From {} to {} over {} runs, with {}.",
        units::time(first),
        units::time(last),
        points.len(),
        count(trend.changes.len(), "change of level", "changes of level")
    );
    let mut plot = Plot::new(format!("History of {}", trend.name), words, x, y);
    for &change in &trend.changes {
        if let Some(point) = points.get(change) {
            plot.vertical(change as f64 - 0.5, "claim s5", "change", &at(point));
        }
    }
    let place = |(index, point): (usize, &TrendPoint)| (index as f64, point.time_ns);
    plot.line(points.iter().enumerate().map(place), "s0");
    for (index, point) in points.iter().enumerate() {
        if let Some((low, high)) = point.low_ns.zip(point.high_ns) {
            plot.whisker(Ranged { x: index as f64, low, high }, "s0");
        }
        plot.mark(place((index, point)), 0, "s0", &at(point));
    }
    plot.render()
}

fn at(point: &TrendPoint) -> String {
    let commit = point.git_commit.as_ref().map(|hash| format!(" · commit {}", cut(hash, 8)));
    format!(
        "{} · {}{} · {}",
        date(point.started),
        point.run,
        commit.unwrap_or_default(),
        units::time(point.time_ns)
    )
}
