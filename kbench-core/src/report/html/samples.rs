//! The samples of one cell of a kernel: how they are distributed, and whether they drift.
//!
//! All cells would be too much for one page. The one that is shown is the most doubtful: with most rows that are unstable,
//! bimodal or inconclusive, and of several the largest.

use super::super::{RowReport, units};
use super::plot::{ACROSS, Axis, Plot, UPWARD};
use super::scale::{Scale, Spread};
use super::series::{COLOURS, Subject};
use super::text::{count, tick, time_tick, variant};
use crate::infer::Judgement;

/// How to read these plots.
pub(super) const READING: &str = "Left: the share of samples that took at most so long; steep is steady, and a curve \
    further left is faster. Right: every sample over the median of its row, in the order of measuring, launches divided by \
    lines; a slope is drift.";

/// More variants than these are not told apart on one plot.
const MOST_ROWS: usize = 6;
/// More points of one row than these would not be told apart either.
const MOST_POINTS: usize = 64;

/// Both plots of the cell that deserves a look, and which cell that is.
pub(super) fn plots(subject: &Subject<'_>) -> Option<(String, Vec<String>)> {
    let cell = cell(subject)?;
    let size = &cell[0].size;
    let all = cell.iter().map(|row| samples(row).count()).max().unwrap_or(0);
    let thinned = if all > MOST_POINTS { ", thinned out" } else { "" };
    let words = format!("{size}, up to {}{thinned}", count(all, "sample", "samples"));
    let plots = vec![distribution(subject, &cell), order(subject, &cell)];
    Some((words, plots))
}

/// The rows of the most doubtful cell.
fn cell<'a>(subject: &Subject<'a>) -> Option<Vec<&'a RowReport>> {
    let is_doubtful = |row: &&&RowReport| {
        let is_open = row.judgement() == Some(Judgement::Inconclusive);
        row.reservation().is_some() || is_open
    };
    let with_samples = |cell: Vec<&'a RowReport>| -> Vec<&'a RowReport> {
        let is_shown = |row: &&RowReport| {
            row.status.has_figures()
                && subject.is_main(row)
                && row.mode != "end-to-end"
                && samples(row).next().is_some()
        };
        cell.into_iter().filter(is_shown).collect()
    };
    let cells = subject.cells().into_iter().map(with_samples).filter(|cell| !cell.is_empty());
    let mut cell = cells.max_by_key(|cell| cell.iter().filter(is_doubtful).count())?;
    cell.truncate(MOST_ROWS);
    Some(cell)
}

fn samples(row: &RowReport) -> impl Iterator<Item = f64> + Clone + '_ {
    row.raw.samples.iter().flatten().flatten().copied().filter(|sample| *sample > 0.0)
}

fn sorted(row: &RowReport) -> Vec<f64> {
    let mut samples: Vec<f64> = samples(row).collect();
    samples.sort_by(f64::total_cmp);
    samples
}

fn class(subject: &Subject<'_>, row: &RowReport) -> String {
    format!("s{}", subject.position(&row.variant) % COLOURS)
}

/// Empirical distribution functions: no width has to be chosen, and few samples look like few.
fn distribution(subject: &Subject<'_>, cell: &[&RowReport]) -> String {
    let all = cell.iter().flat_map(|row| samples(row));
    let x = Scale::over(Spread::Decades, all, ACROSS).with_margin(0.02);
    let y = Scale::over(Spread::Linear, [0.0, 1.0], UPWARD);
    let x = Axis::new(x, "time of one call", 5, time_tick);
    let y = Axis::new(y, "share of samples", 4, |tick| format!("{:.0} %", 100.0 * tick));
    let title = format!("Distribution of samples: {}", subject.title());
    let middle = |row: &&RowReport| {
        let sorted = sorted(row);
        let time = |share: f64| units::time(quantile(&sorted, share));
        format!("{}: median {}, 90 % below {}", variant(row), time(0.5), time(0.9))
    };
    let words: Vec<String> = cell.iter().map(middle).collect();
    let mut plot = Plot::new(title, words.join("; "), x, y);
    for row in cell {
        let sorted = sorted(row);
        let steps = sorted.len().min(MOST_POINTS);
        let step = |i: usize| quantile(&sorted, (i as f64 + 0.5) / steps as f64);
        let share = |i: usize| i as f64 / steps as f64;
        let corners = (0..steps).flat_map(|i| [(step(i), share(i)), (step(i), share(i + 1))]);
        let class = class(subject, row);
        plot.line(corners, &class);
        let median = (quantile(&sorted, 0.5), 0.5);
        plot.mark(median, subject.position(&row.variant), &class, &middle(row));
    }
    plot.render()
}

/// The sample at a share of some sorted ones.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (share * sorted.len() as f64) as usize;
    sorted.get(index.min(last)).copied().unwrap_or(f64::NAN)
}

/// Samples in the order of measuring.
fn order(subject: &Subject<'_>, cell: &[&RowReport]) -> String {
    let places: Vec<Vec<(f64, f64)>> = cell.iter().map(|row| relative(row)).collect();
    let launches = cell.iter().map(|row| row.raw.samples.len()).max().unwrap_or(0);
    let measured: Vec<usize> = (0..launches)
        .filter(|launch| {
            cell.iter().any(|row| row.raw.samples.get(*launch).is_some_and(|l| !l.is_empty()))
        })
        .collect();
    let ends = measured.iter().flat_map(|launch| [*launch as f64, *launch as f64 + 1.0]);
    let x = Scale::over(Spread::Linear, ends, ACROSS);
    let figures = places.iter().flatten().map(|place| place.1.clamp(0.125, 8.0));
    let is_calm = figures.clone().all(|figure| (0.5..2.0).contains(&figure));
    let spread = if is_calm { Spread::Linear } else { Spread::Octaves };
    let y = Scale::over(spread, figures.chain([0.95, 1.05]), UPWARD).with_margin(0.04);
    let mut x = Axis::new(x, "launch, in the order of measuring", 1, |_| String::new());
    let step = measured.len().div_ceil(10).max(1);
    let numbered = measured.iter().step_by(step);
    x.ticks = numbered.map(|launch| (*launch as f64 + 0.5, (launch + 1).to_string())).collect();
    let y = Axis::new(y, "time over median", 5, |figure| format!("{}×", tick(figure)));
    let title = format!("Samples in the order of measuring: {}", subject.title());
    let spread = |row: &&RowReport| {
        let places = relative(row);
        let ends = places.iter().fold((1.0_f64, 1.0_f64), |(l, h), p| (l.min(p.1), h.max(p.1)));
        format!(
            "{}: from {} to {} times its median",
            variant(row),
            units::ratio(ends.0),
            units::ratio(ends.1)
        )
    };
    let words: Vec<String> = cell.iter().map(spread).collect();
    let mut plot = Plot::new(title, words.join("; "), x, y);
    for launch in measured.iter().skip(1) {
        plot.vertical(*launch as f64, "launch", "", "");
    }
    plot.horizontal(1.0, "one", "");
    for (row, places) in cell.iter().zip(&places) {
        let step = places.len().div_ceil(MOST_POINTS).max(1);
        plot.dots(places.iter().copied().step_by(step), &class(subject, row));
    }
    plot.render()
}

/// Every sample over the median of its row, at its place between the beginning and the end of its launch.
fn relative(row: &RowReport) -> Vec<(f64, f64)> {
    let median = quantile(&sorted(row), 0.5);
    let mut places = Vec::new();
    for (launch, blocks) in row.raw.samples.iter().enumerate() {
        let own: Vec<f64> = blocks.iter().flatten().copied().collect();
        for (index, sample) in own.iter().enumerate() {
            let within = (index as f64 + 0.5) / own.len() as f64;
            places.push((launch as f64 + within, sample / median));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    #[test]
    fn samples_are_seen_against_their_median_launch_by_launch() {
        let mut row = row("one", 1);
        row.raw.samples = vec![vec![vec![1.0, 2.0], vec![2.0, 4.0]], vec![], vec![vec![2.0]]];
        let places = relative(&row);
        assert_eq!(places.iter().map(|p| p.1).collect::<Vec<_>>(), [0.5, 1.0, 1.0, 2.0, 1.0]);
        assert_eq!((places[0].0, places[4].0), (0.125, 2.5));
    }

    #[test]
    fn a_quantile_is_one_of_the_samples() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 1.0), 3.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
