//! The page of a report in a real browser.
//!
//! `cargo test --test browser -- --nocapture` prints what is promised and how long the page takes to load. Without Chromium
//! or Python nothing is tested, unless `KBENCH_REQUIRE_BROWSER` is set; `.ci/browser` installs the one, and the other is only
//! needed to drive it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use kbench_tests::root;

use kbench_core::report::{
    BaselineReport, Method, Report, RowReport, Status, Trend, TrendPoint, html,
};
use kbench_core::store::read_document;

/// A name that would do harm if it were anything but text.
const HOSTILE: &str =
    "<script>window.hacked=1;alert(1)</script><img src=x onerror=alert(2)>\"'&🦀\u{202e}<!--";

#[test]
#[ignore = "slow: starts a browser"]
fn a_page_of_two_thousand_rows_keeps_its_promises() {
    let report = large();
    let rows = report.rows.len() + report.searched.len();
    let page = html(&report, &[trend(&report.rows[0].name)]);
    assert!(rows > 2000 && page.len() < 5_000_000, "{rows} rows, {} bytes", page.len());
    look_at("large", &page, rows);
}

/// Tries all promises on a page.
fn look_at(name: &str, page: &str, rows: usize) {
    let Some(browser) = browser() else {
        let missing = "no Chromium: `.ci/browser` installs it";
        assert!(env::var_os("KBENCH_REQUIRE_BROWSER").is_none(), "{missing}");
        eprintln!("skipped: {missing}");
        return;
    };
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
    fs::write(&path, page).expect("a page");
    let script = root().join("tests/browser/check.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(browser).arg(&path).arg(rows.to_string());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            let missing = format!("no Python to drive the browser with: {error}");
            assert!(env::var_os("KBENCH_REQUIRE_BROWSER").is_none(), "{missing}");
            return eprintln!("skipped: {missing}");
        }
    };
    let told = String::from_utf8_lossy(&output.stdout);
    eprintln!("{} bytes\n{told}", page.len());
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{complaint}");
}

/// The browser that is named, or one that is found.
fn browser() -> Option<PathBuf> {
    let named = env::var_os("KBENCH_BROWSER").map(PathBuf::from);
    let folders: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    named.into_iter().chain(found).find(|path| path.is_file())
}

/// A real run of one kernel, told of 150 others as well: one with names that are hostile, and some that fail.
fn large() -> Report {
    let fixture = include_str!("../kbench-core/src/store/fixtures/schema-1.json");
    let small = read_document(fixture).expect("a run document");
    let mut report = Report {
        rows: Vec::new(),
        searched: Vec::new(),
        kernels: Vec::new(),
        crossovers: Vec::new(),
        scaling: Vec::new(),
        ..small.clone()
    };
    for number in 0..150 {
        let kernel = match number {
            3 => format!("library::hostile::{HOSTILE}"),
            4 => format!("library::long::{}", "endless_".repeat(40)),
            number => format!("library::family_{}::kernel_{number}", number / 12),
        };
        let renamed = |row: &RowReport| {
            let (_, rest) = row.name.split_once('/').expect("a variant");
            let mut row = RowReport { name: format!("{kernel}/{rest}"), ..row.clone() };
            row.kernel.clone_from(&kernel);
            row
        };
        report.rows.extend(small.rows.iter().map(renamed));
        report.searched.extend(small.searched.iter().map(renamed));
        let named = |own: &mut String| own.clone_from(&kernel);
        report
            .kernels
            .extend(small.kernels.iter().cloned().map(|mut k| (named(&mut k.kernel), k).1));
        report
            .crossovers
            .extend(small.crossovers.iter().cloned().map(|mut c| (named(&mut c.kernel), c).1));
        report
            .scaling
            .extend(small.scaling.iter().cloned().map(|mut s| (named(&mut s.kernel), s).1));
    }
    for row in report.rows.iter_mut().step_by(250) {
        row.status = Status::Failed(format!("wrong by 3e-1 {HOSTILE}"));
        row.time_ns = None;
    }
    for (index, row) in report.rows.iter_mut().enumerate().filter(|(_, row)| !row.is_base) {
        row.comparison.verdict = Some(["faster", "slower", "inconclusive"][index % 3].to_owned());
        row.comparison.speedup = Some([1.4, 0.7, 1.01][index % 3]);
        row.time_ns = row.time_ns.map(|time| time * (1.0 + index as f64 / 1000.0));
        let change = [-0.12, 0.2, 0.004][index % 3] + index as f64 / 1e5;
        row.change.baseline_time_ns = row.time_ns;
        row.change.change = Some(change);
        row.change.change_low = Some(change - 0.03);
        row.change.change_high = Some(change + 0.03);
        row.change.change_verdict.clone_from(&row.comparison.verdict);
    }
    report.baseline = Some(BaselineReport {
        name: "main".to_owned(),
        run: "2026-11-15T09-30-00Z-1234".to_owned(),
        started: 1_794_000_000,
        git_commit: None,
        method: Method::History,
        reason: Some("its executable is gone".to_owned()),
        gone: vec![HOSTILE.to_owned()],
        fresh: Vec::new(),
        shifts: Vec::new(),
    });
    report.command = vec!["suite".into(), "--kernel".into(), HOSTILE.into()];
    report.warnings.push(format!("few cores: {HOSTILE}"));
    report
}

/// A history with a step in its middle.
fn trend(name: &str) -> Trend {
    let point = |run: u64| TrendPoint {
        run: format!("run-{run}"),
        started: 1_794_000_000 + 86_400 * run,
        git_commit: None,
        time_ns: if run < 4 { 100.0 } else { 120.0 },
        low_ns: Some(95.0),
        high_ns: Some(125.0),
    };
    let points = (0..8).map(point).collect();
    Trend { name: name.to_owned(), threads: 1, mode: "warm".to_owned(), points, changes: vec![4] }
}
