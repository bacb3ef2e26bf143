//! What charts promise, on small reports and on one that was stored.

use super::chart::WIDTH;
use super::plot;
use crate::crossover::tests::{crossing, found};
use crate::crossover::{Crossover, Outcome, Winner};
use crate::infer::Interval;
use crate::kernel::Mode;
use crate::report::row::tests::row;
use crate::report::{FitReport, Report, RowReport, ScalingReport, Style, ThreadsReport};
use crate::store::read_document;

/// A stored run without anything in it.
fn empty() -> Report {
    let document = include_str!("../../store/fixtures/schema-1.json");
    let report = read_document(document).expect("a document");
    Report {
        rows: Vec::new(),
        searched: Vec::new(),
        crossovers: Vec::new(),
        scaling: Vec::new(),
        ..report
    }
}

fn base(n: usize) -> RowReport {
    RowReport { is_base: true, ..row("kernel", n) }
}

/// A row that was compared with the base.
fn compared(variant: &'static str, n: usize, speedup: f64) -> RowReport {
    let mut row = row(variant, n);
    row.comparison.speedup = Some(speedup);
    row.comparison.speedup_low = Some(0.99 * speedup);
    row.comparison.speedup_high = Some(1.01 * speedup);
    row.comparison.verdict = Some(if speedup > 1.0 { "faster" } else { "slower" }.into());
    row
}

/// Sizes of a kernel with one more variant, which wins from 4096 on.
fn crossing_rows() -> Vec<RowReport> {
    let sizes = [(256, 0.25), (1024, 0.5), (4096, 1.5), (16_384, 4.0)];
    let rows = |(n, speedup)| [base(n), compared("other", n, speedup)];
    sizes.into_iter().flat_map(rows).collect()
}

fn crossover() -> Crossover {
    Crossover {
        kernel: "crate::kernel".into(),
        variant: "other".into(),
        threads: 1,
        ..found(Outcome::Crosses, vec![crossing(1024, 4096, Winner::Variant)])
    }
}

fn drawn(report: &Report) -> String {
    let text = plot(report, Style::PLAIN);
    for line in text.lines().filter(|line| line.contains(['│', '┤', '└'])) {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    text
}

fn scaling(value: f64) -> ScalingReport {
    let interval = |value: f64| Interval { value, low: 0.9 * value, high: 1.1 * value };
    let count = |threads: usize, speedup: f64| ThreadsReport {
        threads,
        speedup: interval(speedup),
        efficiency: interval(speedup / threads as f64),
    };
    ScalingReport {
        kernel: "crate::kernel".into(),
        element: "f32".into(),
        variant: "rayon".into(),
        size: "n=4096".into(),
        first: 1,
        counts: vec![count(2, 1.8), count(4, 3.1), count(8, value)],
        overhead: None,
        fit: Some(FitReport {
            law: "amdahl".into(),
            contention: interval(0.1),
            coherency: None,
            agreement: "within noise".into(),
            worst_residual: 0.0,
            worst_residual_at: 2,
        }),
        words: String::new(),
    }
}

#[test]
fn a_chart_shows_the_curve_its_crossover_and_the_threshold() {
    let mut rows = crossing_rows();
    rows.iter_mut().for_each(|row| row.threshold = (!row.is_base).then(|| "2000 (default)".into()));
    let text = drawn(&Report { rows, crossovers: vec![crossover()], ..empty() });
    assert!(text.contains("crate::kernel  f32: speed-up over kernel"), "{text}");
    assert_eq!(text.matches('●').count(), 4 + 2, "points, label and mark: {text}");
    let lines: Vec<&str> = text.lines().collect();
    let at = |what: &str| lines.iter().position(|line| line.contains(what)).expect(what);
    let one = lines[at("×1 ┤")];
    assert!(one.contains("────") && lines[at("×0.5 ┤")].contains('●'), "{text}");
    assert!(text.contains("crossover 1<<10 to 1<<12, threshold 2_000"), "{text}");
    let mark = lines[at("├")];
    let column = |line: &str, what: char| line.chars().position(|c| c == what).expect("there");
    let tick = |line: &str, label: &str| {
        let axis = lines[at("└")];
        let near = line[..line.find(label).expect("a label")].chars().count();
        (near..near + 3).find(|i| axis.chars().nth(*i) == Some('┬')).expect("a tick")
    };
    let names = lines[at("└") + 1];
    assert_eq!(column(mark, '├'), tick(names, "1k"), "{text}");
    assert_eq!(column(mark, '┤'), tick(names, "4k"), "{text}");
    assert!((column(mark, '├')..column(mark, '┤')).contains(&column(mark, '↑')), "{text}");
}

#[test]
fn sizes_that_nobody_listed_belong_to_the_curve() {
    let listed = Report { rows: crossing_rows(), ..empty() };
    let searched = vec![base(2048), compared("other", 2048, 0.9)];
    let text = drawn(&Report { searched, ..listed.clone() });
    assert_eq!(text.matches('●').count(), drawn(&listed).matches('●').count() + 1, "{text}");
}

#[test]
fn intervals_show_where_they_are_wider_than_a_cell_and_say_where_they_are_cut() {
    let bars = |low: f64, high: f64| {
        let mut rows = crossing_rows();
        let middle = &mut rows[3].comparison;
        (middle.speedup_low, middle.speedup_high) = (Some(low), Some(high));
        let text = drawn(&Report { rows, ..empty() });
        let inside = text.lines().filter(|line| line.contains(['│', '┤']));
        // The first is the axis.
        let count = inside.map(|line| line.matches(['│', '¦']).count()).sum::<usize>();
        (count, text.contains("¦ is where an interval goes on"))
    };
    let (narrow, _) = bars(0.49, 0.51);
    assert_eq!(bars(0.4, 0.65), (narrow + 2, false));
    assert_eq!(bars(1e-33, f64::INFINITY), (narrow + 6, true), "three rows on either side");
}

#[test]
fn the_most_telling_curves_are_drawn_and_the_others_are_named() {
    let mut rows = Vec::new();
    for n in [1024, 65_536] {
        rows.push(base(n));
        for (variant, speedup) in [("a", 1.2), ("b", 1.3), ("c", 1.4), ("d", 1.5), ("e", 0.7)] {
            rows.push(compared(variant, n, speedup));
        }
        for threads in [1, 2, 4] {
            let rayon = compared("rayon", n, threads as f64);
            rows.push(RowReport { threads, backend: "parallel".into(), ..rayon });
        }
        for mode in Mode::OF_DEVICE {
            let cuda = compared("gpu", n, if mode == Mode::EndToEnd { 0.5 } else { 9.0 });
            rows.push(RowReport { mode: mode.name().into(), backend: "cuda".into(), ..cuda });
        }
    }
    let text = drawn(&Report { rows, ..empty() });
    for name in ["● gpu hot", "rayon 4 threads", " d\n", "gpu end-to-end", " c\n", " b\n"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let rest = "not drawn: a, e; 4 curves of other thread counts and modes";
    assert!(text.contains(rest), "{text}");
}

#[test]
fn of_a_grid_of_sizes_one_way_is_drawn_and_the_title_says_which() {
    let size = |rows: usize, dim: usize| {
        let axes = [("rows".to_owned(), rows), ("dim".to_owned(), dim)].into();
        let work = Some((rows * dim) as f64);
        let size = format!("rows={rows},dim={dim}");
        RowReport { axes, work, size, ..compared("other", rows, rows as f64 / 50.0) }
    };
    let combinations =
        [1, 10, 100].into_iter().flat_map(|rows| [64, 256].map(|dim| size(rows, dim)));
    let text = drawn(&Report { rows: combinations.collect(), ..empty() });
    assert!(text.contains("speed-up over the base at dim=256"), "{text}");
    assert_eq!(text.matches('●').count(), 3 + 1, "{text}");
    assert!(text.contains("1 other way through the sizes"), "{text}");
}

#[test]
fn what_cannot_be_drawn_is_named_on_one_line() {
    let other = |rows: Vec<RowReport>| {
        rows.into_iter().map(|row| RowReport { kernel: "crate::single".into(), ..row })
    };
    let mut rows = crossing_rows();
    rows.extend(other(vec![base(1024), compared("other", 1024, 2.0)]));
    let text = drawn(&Report { rows, ..empty() });
    assert!(text.ends_with("no chart, for want of two sizes that compare: single f32\n"), "{text}");
    assert_eq!(plot(&empty(), Style::PLAIN), "");
}

#[test]
fn scaling_has_its_ideal_and_its_law() {
    let report = Report { rows: crossing_rows(), scaling: vec![scaling(4.7)], ..empty() };
    let text = drawn(&report);
    let chart = text.split("speed-up over one thread").nth(1).expect("a chart");
    assert_eq!(chart.matches('●').count(), 4 + 2, "one thread too: {text}");
    assert!(chart.contains("/ ideal") && chart.contains("● rayon 4096"), "{text}");
    assert!(chart.contains("dots are laws with a serial part of: ● 10 %"), "{text}");
}

#[test]
fn figures_that_are_none_do_not_panic() {
    let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-300, 1e300, f64::MAX];
    for figure in odd {
        let mut rows = crossing_rows();
        rows[1].comparison.speedup = Some(figure);
        rows[3].work = Some(figure);
        rows[5].comparison.speedup_low = Some(figure);
        rows[5].comparison.speedup_high = None;
        rows[7].threshold = Some(format!("{figure} (tuned)"));
        let mut odd = crossover();
        odd.crossings[0].below.work = figure;
        let crossovers = vec![odd, crossover()];
        let mut strange = scaling(figure);
        strange.counts[0].speedup.low = figure;
        let none = ScalingReport { first: 0, ..scaling(2.0) };
        let scaling = vec![strange, none];
        drawn(&Report { rows, crossovers, scaling, ..empty() });
    }
    let nothing = row("other", 0);
    drawn(&Report { rows: vec![base(0), nothing], ..empty() });
}

#[test]
fn colour_repeats_the_verdict_and_changes_no_shape() {
    let report = Report { rows: crossing_rows(), ..empty() };
    let coloured = plot(&report, Style::COLOURED);
    assert!(coloured.contains("\x1b[32m●\x1b[0m") && coloured.contains("\x1b[31m●\x1b[0m"));
    let bare = ["\x1b[32m", "\x1b[31m", "\x1b[1m", "\x1b[0m"];
    let bare = bare.iter().fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(bare, plot(&report, Style::PLAIN));
}

#[test]
fn a_stored_run_is_drawn() {
    let document = include_str!("../../store/fixtures/schema-1.json");
    drawn(&read_document(document).expect("a document"));
}
