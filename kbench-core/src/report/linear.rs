//! The time that a report takes to show grows with its rows, and not with their square.
//!
//! No time is taken for long or short by itself: that of a report is compared with that of another one, a moment later.

use std::time::{Duration, Instant};

use super::row::tests::row;
use super::*;
use crate::crossover::tests::found;
use crate::crossover::{Crossover, Outcome};
use crate::infer::{Interval, Rank};
use crate::store::read_document;

/// How many times as many rows the larger report has.
const TIMES: usize = 10;

/// How many times as long the larger report may take as [`TIMES`] smaller ones: 1 is linear, [`TIMES`] is quadratic, and what
/// does not fit in a cache is between. Both sides take long enough to be disturbed alike by other programs.
const MOST: f64 = 2.5;

/// Attempts to time both sides undisturbed: at least the first number of them, so that one disturbed time decides nothing.
const ATTEMPTS: [usize; 2] = [3, 20];

/// The rows of a report, by their numbers.
type Shape = fn(usize) -> RowReport;

/// What rows differ in, with a number of rows that takes a page a part of a second without optimization, and longer where
/// pairs of rows are compared.
const SHAPES: [(&str, usize, Shape); 4] = [
    ("sizes", 1200, |n| measured("other", n + 1)),
    ("variants", 1600, |n| measured(&format!("other_{}", n / 2), 64 << (n % 2))),
    ("threads", 800, |n| RowReport { threads: n / 2 + 1, ..measured("other", 64 << (n % 2)) }),
    ("kernels", 400, |n| RowReport {
        kernel: format!("crate::family_{n}::kernel"),
        ..measured("other", 64)
    }),
];

fn measured(variant: &str, n: usize) -> RowReport {
    let mut row = row(variant, n);
    row.time_ns = Some(n as f64);
    (row.flops_per_s, row.bytes_per_s) = (Some(1e9), Some(1e9));
    row.comparison.speedup = Some(2.0);
    (row.best_share, row.rank) = (Some(1.0), Some(Rank::Alone));
    row.check.error = Some(1e-8);
    row.remarks = vec![format!("a remark on {variant} at {n}")];
    row
}

/// A crossover along the way of a row.
fn crossover(row: &RowReport) -> Crossover {
    Crossover {
        kernel: row.kernel.clone(),
        element: row.element.clone(),
        variant: row.variant.clone(),
        threads: row.threads,
        held: row.axes.clone(),
        ..found(Outcome::Undecided, Vec::new())
    }
}

fn scaling(row: &RowReport) -> ScalingReport {
    let twice = Interval { value: 2.0, low: 1.9, high: 2.1 };
    let count = |threads| ThreadsReport { threads, speedup: twice, efficiency: twice };
    ScalingReport {
        kernel: row.kernel.clone(),
        element: row.element.clone(),
        variant: row.variant.clone(),
        size: row.size.clone(),
        first: 1,
        counts: vec![count(2), count(row.threads)],
        overhead: None,
        fit: None,
        words: String::new(),
    }
}

/// The same row, which failed.
fn failed(row: &RowReport) -> RowReport {
    RowReport { status: Status::Failed("wrong".into()), ..row.clone() }
}

/// A report with so many rows of a shape, and as many findings about them.
fn report(shape: Shape, rows: usize) -> Report {
    let stored = include_str!("../store/fixtures/schema-1.json");
    let rows: Vec<RowReport> = (0..rows).map(shape).collect();
    let mut report = Report {
        searched: rows.iter().step_by(4).map(failed).collect(),
        crossovers: rows.iter().map(crossover).collect(),
        scaling: rows.iter().map(scaling).collect(),
        growth: Vec::new(),
        rows,
        ..read_document(stored).expect("a document")
    };
    report.kernels = summaries(&report);
    report
}

fn summaries(report: &Report) -> Vec<KernelReport> {
    let Report { rows, searched, crossovers, scaling, growth, .. } = report;
    kernel_reports(rows, searched, crossovers, scaling, growth)
}

/// Checks that a form of one report takes about as long as that of several with as many rows together. A form that takes
/// less time than a page needs more rows.
fn is_linear(
    what: &str,
    (shapes, more): (&[(&str, usize, Shape)], usize),
    form: &dyn Fn(&mut Report),
) {
    for (name, rows, shape) in shapes {
        let rows = more * rows;
        let (mut small, mut large) = (report(*shape, rows / TIMES), report(*shape, rows));
        let time = |report: &mut Report, times: usize| {
            let start = Instant::now();
            (0..times).for_each(|_| form(report));
            start.elapsed()
        };
        let (mut of_small, mut of_large) = (Duration::MAX, Duration::MAX);
        let [least, most] = ATTEMPTS;
        let is_linear = (1..=most).any(|attempt| {
            of_small = time(&mut small, TIMES).min(of_small);
            of_large = time(&mut large, 1).min(of_large);
            attempt >= least && of_large <= of_small.mul_f64(MOST)
        });
        assert!(is_linear, "{what} by {name}: {of_large:?}, and {of_small:?} in {TIMES} parts");
    }
}

#[test]
fn a_page_takes_time_in_proportion_to_its_rows() {
    is_linear("page", (&SHAPES, 1), &|report| _ = html(report, &[]));
}

#[test]
fn text_takes_time_in_proportion_to_its_rows() {
    is_linear("terminal", (&SHAPES, 1), &|report| _ = terminal(report, Style::PLAIN));
    is_linear("charts", (&SHAPES, 1), &|report| _ = plot(report, Style::PLAIN));
    is_linear("tests", (&SHAPES, 1), &|report| {
        _ = test_report(report, TestFormat::Pretty, Style::PLAIN)
    });
}

#[test]
fn junit_takes_time_in_proportion_to_its_kernels() {
    let kernels = &SHAPES[3..];
    is_linear("JUnit", (kernels, 16), &|report| _ = export(report, &[], Format::Junit));
}

#[test]
fn findings_take_time_in_proportion_to_their_rows() {
    is_linear("findings", (&SHAPES, 2), &|report| _ = summaries(report));
    is_linear("context", (&SHAPES, 1), &|report| {
        let Report { rows, crossovers, scaling, .. } = report;
        put_in_context(rows, crossovers, scaling);
    });
}
