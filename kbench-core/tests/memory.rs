//! What results take in the memory of the controller while they grow: so many bytes for every sample, and no more.

use std::fs;

use kbench_core::gauge::{Allocator, count};
use kbench_core::report::{Format, Report, Style, export, html, json_rows, terminal};
use kbench_core::store::{Store, read_document, read_run};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::system();

const ROWS: usize = 120;
const LAUNCHES: usize = 10;
const BLOCKS: usize = 100;
/// A block has two of every row.
const SAMPLES: usize = ROWS * LAUNCHES * BLOCKS * 2;

/// A report of many samples, with all digits that samples have.
fn large() -> Report {
    let fixture = include_str!("../src/store/fixtures/schema-1.json");
    let mut report = read_document(fixture).expect("readable");
    let timed = report.rows.iter().find(|row| row.time_ns.is_some()).expect("figures").clone();
    let figures = |first: f64| -> Vec<Vec<Vec<f64>>> {
        let sample = |i: usize| first + i as f64 / 1000.0;
        let block = |i: usize| vec![sample(2 * i), sample(2 * i + 1)];
        let launch = |i: usize| (i * BLOCKS..(i + 1) * BLOCKS).map(block).collect();
        (0..LAUNCHES).map(launch).collect()
    };
    report.searched.clear();
    report.rows = (0..ROWS)
        .map(|i| {
            let mut row = timed.clone();
            row.variant = format!("variant{i}");
            row.name = format!("{}/variant{i}/f32/{}", row.kernel, row.size);
            (row.raw.samples, row.raw.chains) = (figures(1234.125), figures(5678.25));
            row.raw.sweeps = Vec::new();
            row
        })
        .collect();
    report
}

/// The most bytes that are held at once while something is done, for every sample.
fn bytes_per_sample<R>(what: &str, code: impl FnOnce() -> R) -> f64 {
    let (_, found) = count(code);
    let bytes = found.expect("the allocator is installed").peak as f64 / SAMPLES as f64;
    eprintln!("{what}: {bytes:.1} bytes per sample");
    bytes
}

#[test]
fn memory_grows_with_the_samples_and_by_little_for_each() {
    let report = large();
    // Two figures of eight bytes, and their share of the lists around them.
    let held = bytes_per_sample("the report", || report.clone());
    assert!(held < 48.0);
    // Its text alone, which grows by doubling while it is written.
    assert!(bytes_per_sample("json", || export(&report, &[], Format::Json)) < 90.0);
    assert!(bytes_per_sample("--format json", || json_rows(&report)) < held);
    // None of these repeats the samples.
    assert!(bytes_per_sample("csv", || export(&report, &[], Format::Csv)) < 2.0);
    assert!(bytes_per_sample("html", || html(&report, &[])) < 8.0);
    assert!(bytes_per_sample("terminal", || terminal(&report, Style::PLAIN)) < 2.0);
    let home = std::env::temp_dir().join(format!("kbench-memory-{}", std::process::id()));
    let store = Store::at(&home, "memory");
    // Its text, and the report that is read from it to see that this can be done.
    let kept = bytes_per_sample("kept", || store.keep_run(&report, None).expect("kept"));
    assert!(kept < 2.0 * held);
    let (_, path) = store.runs().pop().expect("a run");
    let read = bytes_per_sample("read", || read_run(&path).expect("readable"));
    assert!(read < 2.0 * held);
    fs::remove_dir_all(home).expect("removed");
}
