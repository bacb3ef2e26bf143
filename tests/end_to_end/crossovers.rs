//! Crossovers, thresholds and targets, as their users see them.

use serde_json::Value;

use super::support::{self, Finished, read_csv, scratch};

/// Where `offset` makes as many rounds as `linear`.
const TRUTH: f64 = 8192.0;

fn bench(arguments: &[&str]) -> Finished {
    Finished::of(&mut support::bench("crossovers", arguments))
}

/// The run document, and the run that wrote it.
fn measured(name: &str, arguments: &[&str]) -> (Value, Finished) {
    let path = scratch(&format!("{name}.json"));
    let export = format!("json={}", path.display());
    let run = bench(&[arguments, &["--export", &export]].concat());
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{error}\n{}{}", run.stdout, run.stderr));
    (serde_json::from_str(&text).expect("a document"), run)
}

fn crossover<'a>(document: &'a Value, variant: &str) -> Vec<&'a Value> {
    let all = document["crossovers"].as_array().expect("a list");
    all.iter().filter(|crossover| crossover["variant"] == variant).collect()
}

/// Looser than what is promised, which other tests are about: this one must not fail on a busy machine. Listed sizes are at
/// least six octaves apart.
#[track_caller]
fn assert_near(crossover: &Value, truth: f64) {
    assert_eq!(crossover["outcome"], "crosses", "{crossover}");
    let crossing = &crossover["crossings"][0];
    let work = |end: &str| crossing[end]["work"].as_f64().expect("a number");
    assert!(work("below") < 2.0 * truth && truth / 2.0 < work("above"), "{crossing}");
    assert_eq!(crossing["winner"], "variant");
    assert!(crossing["octaves"].as_f64().expect("a width") <= 4.0, "{crossing}");
}

#[test]
fn a_crossover_is_found_between_the_listed_sizes_and_the_threshold_is_judged() {
    let csv = scratch("crossovers.csv");
    let export = format!("csv={}", csv.display());
    let flags = ["--kernel", "linear", "--budget", "8s", "--export", &export, "--gate", "5%"];
    let (document, run) = measured("linear", &flags);
    // A target is missed, and the gate says so.
    run.assert_code(102);
    run.assert_stderr("1 beyond the limits of the gate");
    run.assert_stderr("offset/f32/n=65536: target speedup >= 100.0");

    let offset = crossover(&document, "offset")[0];
    assert_near(offset, TRUTH);
    let threshold = &offset["threshold"];
    assert_eq!(threshold["verdict"], "too-low", "{threshold}");
    assert_eq!(threshold["at"]["work"], 2048.0, "{threshold}");
    let cost = &threshold["costs"][0];
    assert!(cost["cost"].as_f64() > Some(0.5) && cost["work"].as_f64() < Some(TRUTH), "{cost}");
    let value = offset["suggestion"]["value"].as_f64().expect("a value to write");
    assert!((TRUTH / 2.0..2.0 * TRUTH).contains(&value), "{value}");
    assert_eq!(crossover(&document, "tenfold")[0]["outcome"], "always-slower");
    assert_eq!(crossover(&document, "tenfold")[0]["suggestion"], Value::Null);

    run.assert_stdout("→ offset wins from n=");
    run.assert_stdout("→ threshold 2048 of offset is too low: it costs");
    run.assert_stdout("→ linear beats tenfold at every size");
    run.assert_stdout("→ target `time < 1s` of offset: met");
    run.assert_stdout("(linear up to 1024, offset from 65536 on)");
    let widest = run.stdout.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?}\n{}", run.stdout);

    let rows = read_csv(&csv);
    let of = |variant: &str, origin: &str| {
        let is_it = |row: &&std::collections::BTreeMap<String, String>| {
            row["variant"] == variant && row["origin"] == origin
        };
        rows.iter().filter(is_it).collect::<Vec<_>>()
    };
    assert_eq!(of("offset", "listed").len(), 3);
    assert!(!of("offset", "searched").is_empty() && of("tenfold", "searched").is_empty());
    for row in of("offset", "listed") {
        assert_eq!(row["threshold_verdict"], "too low");
        let end = |column: &str| row[column].parse::<f64>().expect("a number");
        assert!(end("crossover_low") < end("crossover_high"));
    }
    let large = of("offset", "listed")[2];
    assert_eq!(
        (&*large["rank"], &*large["targets_missed"]),
        ("alone", "speedup >= 100.0 at n >= 65_536")
    );
    assert_eq!(large["targets_met"], "speedup >= 1.2 at n >= 65_536; time < 1s");
}

#[test]
fn several_axes_give_a_table_of_crossovers() {
    let (document, run) = measured("grid", &["--kernel", "grid", "--budget", "8s"]);
    run.assert_code(0);
    let all = crossover(&document, "grid_offset");
    assert_eq!(all.len(), 2);
    for crossover in all {
        let truth = crossover["held"]["more"].as_f64().expect("a value");
        assert_near(crossover, truth);
        assert_eq!(crossover["along"], serde_json::json!(["n"]));
    }
    run.assert_stdout("crossovers of grid_offset along n");
    run.assert_stdout("crossovers of grid_tenfold along n");
    for crossover in crossover(&document, "grid_tenfold") {
        assert_eq!(crossover["outcome"], "always-slower");
    }
    run.assert_stdout("more=16384  up to n=");
    let along = bench(&["--kernel", "grid", "--along", "mor"]);
    along.assert_code(4);
    along.assert_stderr("did you mean `more`?");
}

#[test]
fn a_variant_that_is_wrong_between_the_listed_sizes_is_found_out_and_not_recommended() {
    let run = bench(&["--kernel", "looked_at", "--budget", "6s"]);
    run.assert_code(100);
    run.assert_stdout("FAILED: ");
    run.assert_stdout("→ no crossover of brittle and looked_at: one of them fails at n=");
    run.assert_stdout("→ mend brittle first");
    assert!(!run.stdout.contains("→ take"), "{}", run.stdout);
    assert!(!run.stdout.contains("threshold 4000 of brittle"), "{}", run.stdout);
}

#[test]
fn without_the_search_only_listed_sizes_are_measured_and_without_the_gate_a_target_may_be_missed() {
    let flags = ["--kernel", "linear", "--quick", "--no-search", "--base", "tenfold"];
    let (document, run) = measured("listed", &flags);
    run.assert_code(0);
    assert_eq!(document["searched"], serde_json::json!([]));
    assert_eq!(document["crossovers"], serde_json::json!([]));
    // With a yardstick, speed-ups have a class.
    run.assert_stdout("excellent");
    run.assert_stdout("class");
    let contradiction = bench(&["--tune", "--no-search"]);
    contradiction.assert_code(2);
    contradiction.assert_stderr("--tune needs the search");
    let filtered = bench(&["--tune", "--size", "n>=1024"]);
    filtered.assert_code(2);
    filtered.assert_stderr("--tune needs all sizes of a kernel");
    bench(&["--gate", "much"]).assert_code(2);
}
