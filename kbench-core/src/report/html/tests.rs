//! What the page promises, whatever the report.

use super::super::row::tests::row;
use super::super::{
    BaselineReport, ChangeReport, ComparisonReport, KernelReport, Method, PartReport, RowReport,
    Status, TrendPoint,
};
use super::*;
use crate::store::read_document;

/// A real run of one kernel, at the sizes that were listed and those that the search added.
fn small() -> Report {
    read_document(include_str!("../../store/fixtures/schema-1.json")).expect("a run document")
}

/// The same run with other rows, and nothing that is said about the old ones.
fn with_rows(rows: Vec<RowReport>) -> Report {
    Report {
        rows,
        searched: Vec::new(),
        kernels: Vec::new(),
        crossovers: Vec::new(),
        scaling: Vec::new(),
        growth: Vec::new(),
        ..small()
    }
}

/// A row with figures.
fn measured(variant: &'static str, n: usize, time: f64) -> RowReport {
    RowReport {
        time_ns: Some(time),
        time_low_ns: Some(0.97 * time),
        time_high_ns: Some(1.03 * time),
        bytes_per_s: Some(8e9 * n as f64 / time),
        flops_per_s: Some(2e9 * n as f64 / time),
        best_share: Some(1.0),
        is_base: variant == "base",
        ..row(variant, n)
    }
}

/// A comparison that came out in some way.
fn compared(speedup: f64, verdict: &str) -> ComparisonReport {
    ComparisonReport {
        speedup: Some(speedup),
        speedup_low: Some(0.9 * speedup),
        speedup_high: Some(1.1 * speedup),
        p_adjusted: Some(0.01),
        verdict: Some(verdict.into()),
        ..ComparisonReport::default()
    }
}

/// So many kernels with base, two thread counts and four sizes.
fn large(kernels: usize) -> Report {
    let samples = || vec![vec![vec![10.0, 11.5, 10.2, 12.0]; 3]; 5];
    let mut rows = Vec::new();
    for kernel in 0..kernels {
        for size in [1000, 30_000, 1_000_000, 33_554_432] {
            for (variant, threads) in [("base", 1), ("kernel_rayon", 2), ("kernel_rayon", 8)] {
                let mut row = measured(variant, size, size as f64 / threads as f64);
                let name = format!("library::family{}::kernel_{kernel}", kernel % 9);
                row.name = format!("{name}/{variant}/f32/n={size}");
                row.kernel = name;
                row.threads = threads;
                row.backend = if threads > 1 { "parallel" } else { "serial" }.into();
                if threads > 1 {
                    row.comparison = compared(threads as f64, "faster");
                }
                row.check.error = Some(1e-7);
                row.check.tolerance = Some(1e-6);
                row.raw.samples = samples();
                rows.push(row);
            }
        }
    }
    with_rows(rows)
}

/// A history with a step in its middle.
fn trend(name: &str) -> Trend {
    let point = |run: u64| TrendPoint {
        run: format!("run-{run}"),
        started: 86_400 * run,
        git_commit: Some("0123456789".into()),
        time_ns: if run < 4 { 100.0 } else { 120.0 },
        low_ns: Some(95.0),
        high_ns: None,
    };
    let points = (0..8).map(point).collect();
    Trend { name: name.into(), threads: 1, mode: "warm".into(), points, changes: vec![4] }
}

/// Everything in a page that a figure without a number would spoil.
fn assert_sound(page: &str) {
    assert!(!page.contains("NaN"), "a figure that is none");
    for drawing in page.split("<svg").skip(1) {
        let drawing = drawing.split("</svg>").next().expect("its end");
        assert!(!drawing.contains("inf"), "{drawing}");
        let is_named = drawing.contains("<title>") || drawing.contains("aria-hidden");
        assert!(is_named, "{drawing}");
    }
    for place in ["href=\"#", "id=\""] {
        assert!(page.contains(place));
    }
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&link), "`#{link}` leads nowhere");
    }
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "an id is given twice");
}

#[test]
fn a_real_run_is_shown_in_full() {
    let report = small();
    let page = html(&report, &[]);
    assert_sound(&page);
    for row in report.rows.iter().chain(&report.searched) {
        let rest = row.name.split_once('/').expect("a variant").1;
        assert!(page.contains(rest), "{}", row.name);
    }
    for part in ["Verdict", "Machine", "Kernels by size", "Speed-up", "Throughput", "All rows"] {
        assert!(page.contains(part), "{part}");
    }
}

/// A mode that is the only one is what variants are judged by.
#[test]
fn a_run_with_cold_caches_alone_is_drawn_like_one_with_warm_ones() {
    let drawn = |mode: &str| {
        let mut report = large(1);
        report.rows.iter_mut().for_each(|row| row.mode = mode.into());
        let page = html(&report, &[]);
        ["<svg", "<circle", "minor"].map(|part| page.matches(part).count())
    };
    let [drawings, points, minor] = drawn("warm");
    assert!(points > 0);
    // The legend names the mode.
    assert_eq!(drawn("cold"), [drawings + 1, points, minor]);
}

#[test]
fn the_table_has_a_line_for_every_row_those_of_the_search_too() {
    let report = small();
    assert!(!report.searched.is_empty());
    let page = html(&report, &[]);
    let table = page.split("<table id=\"table\">").nth(1).expect("a table");
    let lines = table.split("</table>").next().expect("its end").split("<tr>").skip(2);
    let variants = |row: &RowReport| row.name.split_once('/').expect("a variant").1.to_owned();
    let all: Vec<String> = report.rows.iter().chain(&report.searched).map(variants).collect();
    assert_eq!(lines.clone().count(), all.len());
    for (line, variant) in lines.zip(&all) {
        assert!(line.contains(&format!("/{variant}")), "{variant} in {line}");
    }
}

#[test]
fn a_page_loads_nothing() {
    let page = html(&small(), &[trend("demo::saxpy/saxpy/f32/n=1")]);
    for word in ["http://", "https://", "src=", "@import", "url(", "<link", "fetch("] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn a_report_without_rows_is_a_page() {
    let report = with_rows(Vec::new());
    let page = html(&report, &[]);
    assert_sound(&page);
    assert!(page.contains("0 of 0 rows measured"));
}

#[test]
fn one_row_is_a_page() {
    let page = html(&with_rows(vec![measured("base", 1024, 500.0)]), &[]);
    assert_sound(&page);
    assert!(page.contains("crate::<b>kernel</b>/base/f32/n=1024"));
}

#[test]
fn failures_come_first_and_are_not_shown_by_colour_alone() {
    let failed = |variant, n| RowReport {
        status: Status::Failed("wrong by 3e-1".into()),
        ..row(variant, n)
    };
    let mut good = measured("good", 8, 10.0);
    good.check.error = Some(1e-8);
    good.check.tolerance = Some(1e-6);
    good.check.mutation_score = Some(0.97);
    let page = html(&with_rows(vec![good, failed("bad", 8), failed("bad", 16)]), &[]);
    assert_sound(&page);
    assert!(page.contains(r#"<td class="num">97 %<td"#), "mistakes that are noticed");
    assert!(page.contains("2 rows FAILED") && page.contains("1 of 2 variants FAILED"));
    assert!(page.contains("✕"), "a mark in the matrix");
    let checks = page.split("id=\"correctness\"").nth(1).expect("a part");
    let place = |name: &str| checks.find(&format!("<bdi>{name}</bdi>")).expect("a variant");
    assert!(place("bad") < place("good"));

    let nothing = html(&with_rows(vec![failed("bad", 8), failed("worse", 8)]), &[]);
    assert_sound(&nothing);
    assert!(nothing.contains("0 of 2 rows measured"));
}

#[test]
fn whatever_has_a_name_can_be_hostile() {
    let hostile = "<script>alert(1)</script>\"'&🦀\u{202e}--><!--";
    let mut report = small();
    for row in report.rows.iter_mut().chain(&mut report.searched) {
        row.name = format!("{hostile}::x/{hostile}");
        for field in [&mut row.kernel, &mut row.variant, &mut row.element, &mut row.size] {
            *field = hostile.into();
        }
        row.label = Some(hostile.into());
        row.threshold = Some(hostile.into());
        row.remarks = vec![hostile.into()];
        row.mode = hostile.into();
        row.check.reference = Some(hostile.into());
        row.check.worst = Some(hostile.into());
    }
    report.rows[0].status = Status::Failed(hostile.into());
    for kernel in &mut report.kernels {
        *kernel = KernelReport {
            kernel: hostile.into(),
            element: hostile.into(),
            findings: vec![hostile.into()],
            recommendation: Some(hostile.into()),
            ..kernel.clone()
        };
    }
    report.warnings = vec![hostile.into()];
    report.command = vec![hostile.into()];
    report.run = hostile.into();
    report.environment.cpu = hostile.into();
    report.missing = vec![hostile.into()];
    let page = html(&report, &[trend(hostile)]);
    assert_sound(&page);
    assert_eq!(page.matches("<script").count(), 2, "the data and the script, and none of a name");
    assert_eq!(page.matches("<!--").count(), 0);
}

#[test]
fn a_baseline_is_shown_worst_first() {
    let mut rows =
        vec![measured("same", 8, 10.0), measured("slow", 8, 13.0), measured("fast", 8, 7.0)];
    for (row, change, verdict) in
        [(0, 0.001, "inconclusive"), (1, 0.3, "slower"), (2, -0.3, "faster")]
    {
        rows[row].change = ChangeReport {
            baseline_time_ns: Some(10.0),
            change: Some(change),
            change_low: Some(change - 0.02),
            change_high: Some(change + 0.02),
            change_verdict: Some(verdict.into()),
            ..ChangeReport::default()
        };
    }
    let baseline = BaselineReport {
        name: "main".into(),
        run: "run".into(),
        started: 0,
        git_commit: None,
        method: Method::Interleaved,
        reason: None,
        gone: vec!["gone/row".into()],
        fresh: Vec::new(),
        shifts: Vec::new(),
    };
    let page = html(&Report { baseline: Some(baseline), ..with_rows(rows) }, &[]);
    assert_sound(&page);
    assert!(page.contains("1 regression, 1 improvement"));
    let changes = page.split("id=\"changes\"").nth(1).expect("a part");
    let place = |name: &str| changes.find(&format!("<bdi>{name}</bdi>")).expect("a row");
    assert!(place("slow") < place("fast") && place("fast") < place("same"));
}

#[test]
fn a_merged_report_tells_its_machines_and_what_is_missing() {
    let mut report = with_rows(vec![measured("base", 8, 10.0)]);
    report.rows[0].machine = Some("left".into());
    let part = |machine: &str, warning: &str| PartReport {
        run: format!("run of {machine}"),
        machine: machine.into(),
        started: 0,
        partition: Some("slice:1/2".into()),
        environment: report.environment.clone(),
        device: None,
        warnings: vec![warning.into()],
        rows: 1,
    };
    let parts = vec![part("left", "busy machine: wait"), part("right", "debug build: no")];
    let page = html(&Report { parts, missing: vec!["demo::lost".into()], ..report }, &[]);
    assert_sound(&page);
    for words in ["Merged from 2 runs", "run of right, slice:1/2", "debug build", "demo::lost"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.contains("<small>on left</small>"), "a row without its machine");
}

#[test]
fn a_history_needs_three_runs() {
    let mut short = trend("demo::short/a/f32/n=1");
    short.points.truncate(2);
    assert!(!html(&small(), &[short.clone()]).contains("id=\"history\""));
    let page = html(&small(), &[short, trend("demo::long/a/f32/n=1")]);
    assert_sound(&page);
    assert!(page.contains("1 row with at least 3 runs") && page.contains("History of demo::long"));
}

#[test]
fn two_thousand_rows_stay_below_five_megabytes() {
    let report = large(175);
    assert!(report.rows.len() >= 2000);
    let page = html(&report, &[]);
    assert_sound(&page);
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    let lines = page.split("<tbody>").last().expect("a table").matches("<tr>").count();
    assert_eq!(lines, report.rows.len());
}
