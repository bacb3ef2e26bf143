//! Speed-up over the base by work.

use std::collections::{BTreeMap, HashSet};

use super::chart::{Chart, Label, Mark, shortened};
use super::scale::is_drawable;
use super::series::{Choice, MARKERS, Series};
use crate::crossover::{Crossover, Origin};
use crate::order;
use crate::report::remarks::wrapped;
use crate::report::ways::Ways;
use crate::report::{RowReport, Style, sentences, units};

/// A vertical scale reaches at least so far, so that noise does not fill the chart.
const LEAST_RANGE: [f64; 3] = [0.9, 1.0, 1.1];

/// A threshold that is further from the sizes than this factor is only named.
const FAR: f64 = 4.0;

/// Words beside a mark are cut here.
const LONGEST_CLAIM: usize = 40;

/// The chart of a kernel's rows and crossovers; none where no variant has two sizes with a comparison.
pub(super) fn speedup(
    listed: &[RowReport],
    searched: &[&RowReport],
    crossovers: &[&Crossover],
    style: Style,
) -> Option<String> {
    let kernel = listed.first()?;
    let rows: Vec<&RowReport> = listed.iter().chain(searched.iter().copied()).collect();
    let way = Way::of(&rows, crossovers);
    let rows: Vec<&RowReport> = rows.into_iter().filter(|row| way.has(row)).collect();
    let choice = Choice::of(Series::all(&rows));
    let is_along = |found: &&Crossover| way.is_whole() || found.held == way.held;
    let crossovers: Vec<&Crossover> = crossovers.iter().copied().filter(is_along).collect();
    let marks = marks(&choice.drawn, &crossovers);
    let mut chart = chart(&kernel.kernel, &choice, &marks)?;
    for (series, marker) in choice.drawn.iter().zip(MARKERS) {
        draw(&mut chart, series, marker);
    }
    chart.rule(1.0);
    let marks: Vec<Mark> = marks.into_iter().map(|mark| on_chart(mark, &chart)).collect();
    let title = title(kernel, &rows, &way);
    let notes = notes(&choice, &way, chart.bar_note());
    let x_title = x_title(&rows);
    Some(format!("\n{}\n{}{notes}", style.strong(&title), chart.render(&x_title, &marks, style)))
}

/// A chart with room for all curves, and for the thresholds near them.
fn chart(kernel: &str, choice: &Choice<'_>, marks: &[Mark]) -> Option<Chart> {
    let points = || choice.drawn.iter().flat_map(|series| &series.points);
    let mut works: Vec<f64> = points().map(|point| point.work).collect();
    let (low, high) = works.iter().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), work| {
        (low.min(*work), high.max(*work))
    });
    let is_near = |claim: &f64| (low / FAR..=high * FAR).contains(claim);
    works.extend(marks.iter().filter_map(|mark| mark.arrow).filter(is_near));
    let ratios: Vec<f64> = points().map(|point| point.speedup).chain(LEAST_RANGE).collect();
    let label = |(series, marker): (&Series<'_>, char)| Label {
        marker,
        text: choice.name(series),
        figure: series.last(),
    };
    let labels: Vec<Label> = choice.drawn.iter().zip(MARKERS).map(label).collect();
    let labels = shortened(labels, kernel);
    (!labels.is_empty()).then(|| Chart::over(&works, &ratios, labels)).flatten()
}

fn draw(chart: &mut Chart, series: &Series<'_>, marker: char) {
    for point in &series.points {
        chart.marker((point.work, point.speedup), marker, point.tone);
        chart.interval((point.work, point.speedup), point.low, point.high);
    }
    for pair in series.points.windows(2) {
        chart.line((pair[0].work, pair[0].speedup), (pair[1].work, pair[1].speedup));
    }
}

/// Crossovers and thresholds of the curves that have any.
fn marks(drawn: &[Series<'_>], crossovers: &[&Crossover]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (i, (series, marker)) in drawn.iter().zip(MARKERS).enumerate() {
        let is_of = |found: &&&Crossover| {
            found.variant == series.variant
                && found.mode.name() == series.mode
                && found.threads == series.threads
        };
        let found = crossovers.iter().find(is_of);
        let crossings = found.map_or(&[][..], |found| &found.crossings);
        let brackets: Vec<(f64, f64)> = crossings
            .iter()
            .map(|crossing| (crossing.below.work, crossing.above.work))
            .filter(|(low, high)| is_drawable(*low) && is_drawable(*high) && low <= high)
            .collect();
        // A claim is made of a variant, and marked once for all of its curves.
        let is_first = drawn[..i].iter().all(|earlier| earlier.variant != series.variant);
        let claim = series.threshold.filter(|_| is_first);
        let claimed_at = || found?.threshold.as_ref()?.at.as_ref().map(|at| at.place.work);
        let arrow = claim.and_then(|claim| number(claim).or_else(claimed_at));
        let words = [crossing_words(&brackets), claim.map(threshold_words)];
        let words: Vec<String> = words.into_iter().flatten().collect();
        if !words.is_empty() {
            marks.push(Mark { marker, brackets, arrow, text: words.join(", ") });
        }
    }
    marks
}

/// The amount of work that a threshold names; none for a condition on the axes.
fn number(claim: &str) -> Option<f64> {
    let first = claim.split(' ').next().unwrap_or_default().replace('_', "");
    first.parse().ok().filter(|work| is_drawable(*work))
}

fn threshold_words(claim: &str) -> String {
    let number = number(claim).map(|work| units::literal(work as u64));
    let claim = number.unwrap_or_else(|| claim.chars().take(LONGEST_CLAIM).collect());
    format!("threshold {claim}")
}

fn crossing_words(brackets: &[(f64, f64)]) -> Option<String> {
    let whole = |work: f64| units::literal(work.round() as u64);
    match brackets {
        [] => None,
        [(low, high)] => Some(format!("crossover {} to {}", whole(*low), whole(*high))),
        several => Some(format!("{} crossovers", several.len())),
    }
}

/// The same without what is not on the chart.
fn on_chart(mut mark: Mark, chart: &Chart) -> Mark {
    mark.arrow = mark.arrow.filter(|work| chart.x.covers(*work));
    mark.brackets.retain(|(low, high)| chart.x.covers(*low) && chart.x.covers(*high));
    mark
}

fn title(kernel: &RowReport, rows: &[&RowReport], way: &Way) -> String {
    let base = rows.iter().find(|row| row.is_base).map_or("the base", |row| &row.variant);
    let held =
        if way.is_whole() { String::new() } else { format!(" at {}", sentences::axes(&way.held)) };
    format!("{}  {}: speed-up over {base}{held}", kernel.kernel, kernel.element)
}

/// The axis where it is the work, else the work of all axes.
fn x_title(rows: &[&RowReport]) -> String {
    let only = |row: &&&RowReport| match row.axes.values().collect::<Vec<_>>()[..] {
        [value] => row.work == Some(*value as f64),
        _ => false,
    };
    let axis = rows.first().and_then(|row| row.axes.keys().next()).map_or("work", String::as_str);
    if rows.iter().all(|row| only(&row)) { axis.to_owned() } else { "work".to_owned() }
}

/// What is not drawn, and what bars mean.
fn notes(choice: &Choice<'_>, way: &Way, bar_note: Option<String>) -> String {
    let mut parts = Vec::new();
    if !choice.left_out.is_empty() {
        parts.push(choice.left_out.join(", "));
    }
    match choice.lesser {
        0 => {}
        1 => parts.push("one curve of another thread count or mode".to_owned()),
        count => parts.push(format!("{count} curves of other thread counts and modes")),
    }
    match way.others {
        0 => {}
        1 => parts.push("1 other way through the sizes, with no more of them".to_owned()),
        count => parts.push(format!("{count} other ways through the sizes, with no more of them")),
    }
    let not_drawn = (!parts.is_empty()).then(|| format!("not drawn: {}", parts.join("; ")));
    let lines = bar_note.into_iter().chain(not_drawn);
    lines.map(|line| wrapped(&line) + "\n").collect()
}

/// The sizes that are drawn: all of them by work, or those with some axes held.
#[derive(Default)]
struct Way {
    held: BTreeMap<String, usize>,
    /// Ways that are not drawn.
    others: usize,
}

impl Way {
    /// Where crossovers were sought along several ways, or the sizes are a grid, the way with most sizes; else all.
    fn of(rows: &[&RowReport], crossovers: &[&Crossover]) -> Self {
        let mut ways = order::distinct(crossovers.iter().map(|found| &found.held));
        let along_grid = along_grid(rows);
        if ways.len() < 2 {
            ways = along_grid.iter().collect();
        }
        let known = Ways::new(ways.iter().copied());
        let mut sizes: Vec<HashSet<&str>> = vec![HashSet::new(); ways.len()];
        for row in rows {
            for way in known.of(&row.axes) {
                sizes[way].insert(&row.size);
            }
        }
        // Of several with as many the last, whose held axes are largest.
        let best = ways.iter().zip(&sizes).max_by_key(|(_, sizes)| sizes.len());
        let way =
            |held: &BTreeMap<String, usize>| Way { held: held.clone(), others: ways.len() - 1 };
        best.map_or_else(Way::default, |(held, _)| way(held))
    }

    fn has(&self, row: &RowReport) -> bool {
        self.held.iter().all(|(axis, value)| row.axes.get(axis) == Some(value))
    }

    fn is_whole(&self) -> bool {
        self.held.is_empty()
    }
}

/// The ways along the axis with most values, when the listed sizes are all combinations of several values of several axes.
fn along_grid(rows: &[&RowReport]) -> Vec<BTreeMap<String, usize>> {
    let listed = rows.iter().filter(|row| row.origin == Origin::Listed);
    let sizes = order::distinct(listed.map(|row| &row.axes));
    let values = order::distinct(sizes.iter().flat_map(|axes| axes.iter()));
    let values: Vec<&[(&String, &usize)]> = values.chunk_by(|a, b| a.0 == b.0).collect();
    let combinations = values.iter().map(|of_axis| of_axis.len()).fold(1, usize::saturating_mul);
    let several = values.iter().filter(|of_axis| of_axis.len() > 1).count();
    let longest = values.iter().max_by_key(|of_axis| of_axis.len());
    let Some(longest) = longest.filter(|_| several > 1 && combinations == sizes.len()) else {
        return Vec::new();
    };
    let along = longest[0].0;
    let held = |axes: &&BTreeMap<String, usize>| {
        let mut held = (*axes).clone();
        held.remove(along);
        held
    };
    order::distinct(sizes.iter().map(held))
}
