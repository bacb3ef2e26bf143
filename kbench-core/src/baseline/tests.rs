use super::*;
use crate::crossover::{Crossing, Limit, Winner};
use crate::infer::Interval;
use crate::report::{RawSamples, RowReport};
use crate::store::read_document;
use crate::value::{normal, with_seed};

/// A run of the fixture.
fn run() -> Report {
    read_document(include_str!("../store/fixtures/schema-1.json")).expect("readable")
}

/// A run in which every row takes so many times as long, on a machine that is so many times as slow.
fn run_of(factor: f64, machine: f64) -> Report {
    let mut report = run();
    for row in &mut report.rows {
        let scale = |launches: &mut Vec<Vec<Vec<f64>>>, by: f64| {
            launches.iter_mut().flatten().flatten().for_each(|sample| *sample *= by);
        };
        scale(&mut row.raw.samples, factor * machine);
        scale(&mut row.raw.chains, machine);
        scale(&mut row.raw.sweeps, machine);
        row.time_ns = row.time_ns.map(|time| time * factor * machine);
    }
    report
}

/// Earlier runs with a spread of one per cent from run to run, on a machine whose speed varies by a fifth.
fn earlier(count: usize) -> Earlier {
    with_seed(11, || {
        let noise: Vec<f64> = normal(2 * count);
        let run = |n: &[f64]| history::values(&run_of((0.01 * n[0]).exp(), 1.0 + 0.2 * n[1].abs()));
        Earlier { runs: noise.chunks(2).map(run).collect(), baseline: count - 1 }
    })
}

/// An optimisation just before the baseline is part of it, and one that was lost again is a regression.
#[test]
fn runs_before_an_improvement_say_nothing_about_what_follows_it() {
    let Earlier { mut runs, .. } = earlier(20);
    for values in &mut runs[10..] {
        values.values_mut().for_each(|value| *value -= 2_f64.ln());
    }
    let earlier = Earlier { runs, baseline: 19 };
    assert_eq!(verdicts(&judged(0.75, &earlier)), ["slower"]);
    assert_eq!(verdicts(&judged(0.5, &earlier)), ["inconclusive"]);
}

fn judged(factor: f64, runs: &Earlier) -> Vec<RowReport> {
    let baseline = Baseline { name: "main".into(), report: run() };
    let mut report = run_of(factor, 1.3);
    let comparison = Comparison::History { runs, reason: "gone".into() };
    baseline.put_beside(&mut report, comparison);
    report.rows.retain(|row| row.change.change.is_some());
    assert!(!report.rows.is_empty());
    report.rows
}

fn verdicts(rows: &[RowReport]) -> Vec<&str> {
    let mut found: Vec<&str> =
        rows.iter().filter_map(|row| row.change.change_verdict.as_deref()).collect();
    found.dedup();
    found
}

#[test]
fn a_change_beyond_what_earlier_runs_spread_is_found_whatever_the_machine_does() {
    let runs = earlier(20);
    assert_eq!(verdicts(&judged(1.10, &runs)), ["slower"]);
    assert_eq!(verdicts(&judged(0.90, &runs)), ["faster"]);
    assert_eq!(verdicts(&judged(1.005, &runs)), ["inconclusive"]);
    let rows = judged(1.10, &runs);
    let change = &rows[0].change;
    let (low, high) = (change.change_low.expect("known"), change.change_high.expect("known"));
    let interval = Interval { value: change.change.expect("known"), low, high };
    assert!(interval.covers(0.10) && high - low < 0.10, "{interval:?}");
}

#[test]
fn few_runs_give_advice_and_a_single_one_no_interval() {
    assert_eq!(verdicts(&judged(1.5, &earlier(ENOUGH_RUNS - 1))), ["advisory slower"]);
    let rows = judged(1.5, &earlier(1));
    assert_eq!(verdicts(&rows), ["advisory inconclusive"]);
    assert!(rows[0].change.change_low.is_none() && rows[0].change.change_p.is_none());
}

/// With samples of one run as if they were independent, an unchanged row would be called changed most of the time.
#[test]
fn unchanged_rows_are_rarely_called_changed() {
    let called = with_seed(5, || {
        let trial = |_| {
            let values: Vec<f64> = normal(13);
            let row = crate::report::RowKey { name: "x".into(), threads: 1, mode: "warm".into() };
            let found = |value: &f64| -> Values { [(row.clone(), *value)].into() };
            let runs: Vec<Values> = values[..12].iter().map(found).collect();
            let mut report = run_with(&row, values[12].exp());
            judge_by_history(&mut report, &run(), &Earlier { runs, baseline: 11 });
            report.rows[0].change.change_verdict.as_deref() != Some("inconclusive")
        };
        (0..400).map(trial).filter(|called| *called).count()
    });
    assert!((4..=36).contains(&called), "{called} of 400 at a level of 5 %");
}

/// A run with a single row of one sample.
fn run_with(key: &RowKey, time: f64) -> Report {
    let mut report = run();
    report.rows.truncate(1);
    let row = &mut report.rows[0];
    (row.name, row.threads, row.mode) = (key.name.clone(), key.threads, key.mode.clone());
    row.time_ns = Some(time);
    let one = |value: f64| vec![vec![vec![value]]];
    row.raw = RawSamples { samples: one(time), chains: one(1.0), ..RawSamples::default() };
    report
}

#[test]
fn rows_that_are_gone_or_fresh_are_named() {
    let mut then = run();
    let then_rows = then.rows.iter().filter(|row| row.time_ns.is_some()).count();
    then.rows.retain(|row| row.size != "n=1024" || row.time_ns.is_none());
    let baseline = Baseline { name: "main".into(), report: then };
    let mut now = Report { filtered_out: 0, ..run() };
    now.rows.retain(|row| row.size != "n=65536");
    baseline.put_beside(&mut now, Comparison::Interleaved);
    let report = now.baseline.expect("put there");
    assert_eq!((report.gone.len(), report.fresh.len()), (then_rows / 3, then_rows / 3));
    assert!(report.gone.iter().all(|name| name.contains("n=65536")), "{:?}", report.gone);
    assert!(report.fresh[0].contains("n=1024"));
    // A run of a part of the rows does not miss the others.
    let mut part = Report { filtered_out: 1, rows: Vec::new(), ..run() };
    baseline.put_beside(&mut part, Comparison::Interleaved);
    assert!(part.baseline.is_some_and(|report| report.gone.is_empty()));
}

#[test]
fn another_machine_is_told_by_what_figures_depend_on() {
    let (then, mut now) = (run(), run());
    assert!(differences(&Machine::of(&then), &Machine::of(&now)).is_empty());
    now.environment.cpu = "Slow 1".into();
    now.environment.cores += 1;
    now.environment.governor = None;
    let found = differences(&Machine::of(&then), &Machine::of(&now));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("processor") && found[0].contains("`Slow 1` now"), "{found:?}");
}

#[test]
fn a_trend_has_a_new_level_where_a_row_changed_and_not_where_the_machine_did() {
    let mut trends = Trends::default();
    let is_wanted = |row: &RowReport| row.name.ends_with("n=1024");
    let noise: Vec<f64> = with_seed(3, || normal(20));
    for (i, noise) in noise.iter().enumerate() {
        let factor = if i < 12 { 1.0 } else { 1.2 };
        let machine = if i < 6 { 1.0 } else { 1.5 };
        let report = run_of(factor * (0.01 * noise).exp(), machine);
        trends.add(
            &Report { run: format!("run{i:02}"), ..report },
            &Machine::of(&run()),
            is_wanted,
        );
    }
    let mut stranger = run();
    stranger.environment.cpu = "Slow 1".into();
    trends.add(&stranger, &Machine::of(&run()), is_wanted);
    assert_eq!((trends.runs, trends.foreign), (20, 1));
    let found = trends.all();
    assert!(!found.is_empty());
    for trend in found {
        assert_eq!((trend.points.len(), trend.changes.as_slice()), (20, &[12][..]), "{trend:?}");
        assert_eq!(trend.points[12].run, "run12");
        // The machine's day is taken out: the first half is as fast as it was.
        let ratio = trend.points[8].time_ns / trend.points[2].time_ns;
        assert!((0.93..1.07).contains(&ratio), "{ratio}");
    }
}

/// The run of the fixture, with one crossover in a bracket of work.
fn run_with_crossover(low: f64, high: f64) -> Report {
    let mut report = run();
    report.crossovers.truncate(1);
    let found = &mut report.crossovers[0];
    let at = |work: f64| crate::crossover::Place { work, ..found.from.clone() };
    found.crossings = vec![Crossing {
        below: at(low),
        above: at(high),
        winner: Winner::Variant,
        estimate: at(low),
        octaves: (high / low).log2(),
        limit: Limit::Tolerance,
    }];
    report
}

#[test]
fn a_crossover_that_moved_is_measured_between_the_brackets() {
    let baseline = Baseline { name: "main".into(), report: run_with_crossover(100.0, 200.0) };
    let octaves = |low: f64, high: f64| {
        let mut report = run_with_crossover(low, high);
        baseline.put_beside(&mut report, Comparison::Interleaved);
        report.baseline.expect("put there").shifts[0].octaves
    };
    assert_eq!(octaves(150.0, 300.0), Some(0.0));
    assert_eq!(octaves(800.0, 1600.0), Some(2.0));
    assert_eq!(octaves(25.0, 50.0), Some(-1.0));
}

#[test]
fn a_time_that_cannot_be_one_has_no_history() {
    let mut run = crate::doorway::REPORT.clone();
    let all = |run: &Report| {
        let mut trends = Trends::default();
        (0..3).for_each(|_| trends.add(run, &Machine::of(run), |_| true));
        trends.all()
    };
    let before = all(&run).len();
    for time in [-1.0, 0.0, 5e-324] {
        run.rows[0].time_ns = Some(time);
        let trends = all(&run);
        assert_eq!(trends.len(), before - 1, "{time}");
        assert!(crate::report::html(&run, &trends).contains("</html>"));
    }
}
