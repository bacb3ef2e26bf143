//! The curves of a kernel: which there are, and which are drawn.

use std::collections::{HashMap, HashSet};

use super::scale::is_drawable;
use crate::kernel::{Backend, Mode};
use crate::order;
use crate::report::RowReport;
use crate::report::index::{grouped, with_several};
use crate::report::style::Tone;

/// What tells curves apart, also without colour: shapes that every monospaced font has.
pub(super) const MARKERS: [char; 6] = ['●', '■', '▲', '○', '□', '▼'];

/// With so many curves, other thread counts and modes of the same variants only hide them.
const ENOUGH: usize = 3;

/// One variant in one mode with one thread count.
pub(super) struct Series<'a> {
    pub(super) variant: &'a str,
    pub(super) backend: &'a str,
    pub(super) threads: usize,
    pub(super) mode: &'a str,
    /// The claim of the variant's author.
    pub(super) threshold: Option<&'a str>,
    /// By work.
    pub(super) points: Vec<Point>,
}

/// A comparison with the base.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) work: f64,
    pub(super) speedup: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) tone: Tone,
}

impl Point {
    fn of(row: &RowReport) -> Option<Self> {
        let comparison = &row.comparison;
        let work = row.work.filter(|work| is_drawable(*work))?;
        let speedup = comparison.speedup.filter(|speedup| is_drawable(*speedup))?;
        let end = |end: Option<f64>| end.filter(|end| !end.is_nan()).unwrap_or(speedup);
        let tone = match comparison.verdict.as_deref() {
            Some(verdict) if verdict.ends_with("faster") => Tone::Good,
            Some(verdict) if verdict.ends_with("slower") => Tone::Bad,
            _ => Tone::Plain,
        };
        let (low, high) = (end(comparison.speedup_low), end(comparison.speedup_high));
        Some(Point { work, speedup, low, high, tone })
    }
}

impl<'a> Series<'a> {
    /// Every curve with at least two sizes, in the order of rows.
    pub(super) fn all(rows: &[&'a RowReport]) -> Vec<Series<'a>> {
        let compared = rows.iter().copied().filter(|row| !row.is_base);
        let compared = compared.filter_map(|row| Some((row, Point::of(row)?)));
        let curves = grouped(compared, |(row, _)| (&row.variant, &row.mode, row.threads));
        let series = |curve: Vec<(&'a RowReport, Point)>| {
            let row = curve[0].0;
            let mut points: Vec<Point> = curve.into_iter().map(|(_, point)| point).collect();
            order::sort_by(&mut points, |a, b| a.work.total_cmp(&b.work));
            Series {
                variant: &row.variant,
                backend: &row.backend,
                threads: row.threads,
                mode: &row.mode,
                threshold: row.threshold.as_deref(),
                points,
            }
        };
        let mut all: Vec<Series<'a>> = curves.into_iter().map(series).collect();
        let has_width = |series: &Series<'_>| {
            series.points.first().map(|p| p.work) != series.points.last().map(|p| p.work)
        };
        all.retain(has_width);
        all
    }

    /// The speed-up at the largest size.
    pub(super) fn last(&self) -> f64 {
        self.points.last().map_or(1.0, |point| point.speedup)
    }

    /// The variant, with its mode where it is on a device and its thread count where there are others.
    pub(super) fn name(&self, has_other_threads: bool) -> String {
        let threads = match self.threads {
            _ if !has_other_threads => String::new(),
            1 => " 1 thread".to_owned(),
            threads => format!(" {threads} threads"),
        };
        match self.mode {
            "warm" => format!("{}{threads}", self.variant),
            mode if self.backend == Backend::Cuda.name() => format!("{} {mode}", self.variant),
            mode => format!("{}{threads} {mode}", self.variant),
        }
    }
}

/// The curves that are drawn, most telling first, and the names of those that are not.
pub(super) struct Choice<'a> {
    pub(super) drawn: Vec<Series<'a>>,
    /// Variants that are not drawn, and curves with transfers.
    pub(super) left_out: Vec<String>,
    /// Other thread counts and modes of variants.
    pub(super) lesser: usize,
    /// Variants with several thread counts.
    several_threads: HashSet<&'a str>,
}

/// How much a curve tells, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Importance {
    /// The best variant of its backend.
    BestOfBackend,
    /// The same with its transfers.
    BestWithTransfers,
    /// Another variant, in its first mode and with all threads.
    Variant,
    /// The same with its transfers.
    WithTransfers,
    /// Other modes and thread counts.
    Lesser,
}

impl<'a> Choice<'a> {
    pub(super) fn of(all: Vec<Series<'a>>) -> Self {
        let several_threads = with_several(all.iter().map(|s| (s.variant, s.threads)));
        let mut ranked: Vec<(Importance, f64, Series<'a>)> = Vec::new();
        for (rank, series) in importances(&all).into_iter().zip(all) {
            // Of other thread counts the largest comes first, of variants the fastest.
            let first =
                if rank == Importance::Lesser { series.threads as f64 } else { series.last() };
            ranked.push((rank, -first, series));
        }
        order::sort_by(&mut ranked, |a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut choice =
            Choice { drawn: Vec::new(), left_out: Vec::new(), lesser: 0, several_threads };
        for (rank, _, series) in ranked {
            let most = if rank == Importance::Lesser { ENOUGH } else { MARKERS.len() };
            if choice.drawn.len() < most {
                choice.drawn.push(series);
            } else if rank == Importance::Lesser {
                choice.lesser += 1;
            } else {
                choice.left_out.push(choice.name(&series));
            }
        }
        choice
    }

    /// What a curve is called.
    pub(super) fn name(&self, series: &Series<'_>) -> String {
        series.name(self.several_threads.contains(series.variant))
    }
}

/// How much each curve tells.
fn importances(all: &[Series<'_>]) -> Vec<Importance> {
    let mut firsts: HashMap<&str, &Series<'_>> = HashMap::new();
    for series in all {
        let first = firsts.entry(series.variant).or_insert(series);
        if order(series) < order(first) {
            *first = series;
        }
    }
    let is_first = |series: &Series<'_>| order(series) == order(firsts[series.variant]);
    let mut best: HashMap<&str, f64> = HashMap::new();
    for series in all.iter().filter(|series| is_first(series)) {
        let best = best.entry(series.backend).or_insert(series.last());
        *best = best.max(series.last());
    }
    let importance = |series: &Series<'_>| {
        let first = firsts[series.variant];
        let is_best = best[first.backend] <= first.last();
        match (is_first(series), is_best, series.mode == Mode::EndToEnd.name()) {
            (true, true, _) => Importance::BestOfBackend,
            (true, false, _) => Importance::Variant,
            (false, true, true) => Importance::BestWithTransfers,
            (false, false, true) => Importance::WithTransfers,
            (false, _, false) => Importance::Lesser,
        }
    };
    all.iter().map(importance).collect()
}

/// The curve of a variant by which it is first judged is the least: by mode, then with most threads.
fn order(series: &Series<'_>) -> (usize, std::cmp::Reverse<usize>) {
    let position = Mode::OF_DEVICE.iter().position(|mode| mode.name() == series.mode);
    (position.unwrap_or(0), std::cmp::Reverse(series.threads))
}
