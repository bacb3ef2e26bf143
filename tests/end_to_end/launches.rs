//! Runs of several launches, as their users see them.

use serde_json::Value;

use kbench_tests::example_command;

use super::support::{self, Finished};

fn bench(arguments: &[&str]) -> Finished {
    Finished::of(&mut support::bench("launches", arguments))
}

/// The lines of `--format json`: one for every row, then one for the run.
fn lines(run: &Finished) -> (Vec<Value>, Value) {
    let line = |line: &str| -> Value {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("`{line}`: {error}"))
    };
    let mut lines: Vec<Value> = run.stdout.lines().map(line).collect();
    let last = lines.pop().expect("a line for the run");
    assert_eq!(last["reason"], "run");
    assert!(lines.iter().all(|line| line["reason"] == "row"));
    (lines, last)
}

fn variant<'a>(rows: &'a [Value], name: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["variant"] == name).collect()
}

#[test]
fn kernels_may_print_and_end_their_process_and_all_others_are_measured() {
    let flags = [
        "--launches",
        "5",
        "--budget",
        "30s",
        "--measurement-time",
        "300ms",
        "--format",
        "json",
        "--benchmem",
    ];
    let run = bench(&[&flags[..], &["--variant", "doubled,pushed,talks,aborts"]].concat());
    run.assert_code(100);
    run.assert_stderr("kernels may print");
    let (mut rows, summary) = lines(&run);
    // Where times cross by chance, sizes between the listed ones are measured too.
    rows.retain(|row| row["origin"] == "listed");
    assert_eq!(rows.len(), 8);
    for row in variant(&rows, "aborts") {
        let status = row["status"].as_str().expect("a status");
        assert!(status.starts_with("failed: ") && status.contains("signal"), "{status}");
    }
    for name in ["doubled", "pushed", "talks"] {
        for row in variant(&rows, name) {
            assert_eq!((&row["status"], &row["launches"]), (&"ok".into(), &5.into()), "{row}");
            assert_eq!(row["samples"].as_array().map(Vec::len), Some(5));
            let verdict = row["verdict"].as_str().unwrap_or("base");
            assert!(!verdict.contains("provisional"), "{verdict}");
        }
    }
    for field in ["t", "df", "p", "welch_t", "welch_df", "welch_p", "hedges_g", "detectable"] {
        assert!(variant(&rows, "pushed")[0][field].is_f64(), "{field}");
    }
    let allocations = |name: &str, size: usize| -> Vec<u64> {
        let row = variant(&rows, name)[size];
        let figures = ["allocations", "allocated_bytes", "allocated_peak_bytes"];
        figures.map(|figure| row[figure].as_u64().expect("a figure")).to_vec()
    };
    assert_eq!(allocations("doubled", 0), [1, 256, 256]);
    assert_eq!(allocations("doubled", 1), [1, 16384, 16384]);
    assert!(allocations("pushed", 1)[0] > 5);

    assert_eq!(summary["launches"], 5);
    let seconds = &summary["seconds"];
    let share = seconds["inside_share"].as_f64().expect("a share");
    assert!((0.3..=1.0).contains(&share), "{share} of the time is inside kernels and sentinels");
    assert!(summary["contaminated_share"].is_f64() && summary["counters"].is_string());
    assert!(summary["environment"]["cores"].as_u64() >= Some(1));
}

/// Nobody is announced when it happens for the first time; the next worker tells.
#[test]
fn a_kernel_that_ends_its_process_late_is_found_out_and_all_others_are_measured() {
    let flags = ["--launches", "1", "--measurement-time", "2s", "--budget", "6s"];
    let filters = ["--variant", "doubled,pushed,tires", "--size", "n=64", "--format", "json"];
    let run = bench(&[&flags[..], &filters].concat());
    run.assert_code(100);
    let (rows, _) = lines(&run);
    let status = variant(&rows, "tires")[0]["status"].as_str().expect("a status");
    assert!(status.starts_with("failed: ") && status.contains("signal"), "{status}");
    for name in ["doubled", "pushed"] {
        let row = variant(&rows, name)[0];
        assert_eq!(row["status"], "ok", "{row}");
        assert!(row["time_ns"].is_f64(), "{row}");
    }
}

#[test]
fn isolated_variants_are_compared_across_launches() {
    let flags = [
        "--isolate",
        "--launches",
        "5",
        "--budget",
        "30s",
        "--measurement-time",
        "500ms",
        "--format",
        "json",
    ];
    let filters = ["--variant", "doubled,pushed", "--size", "n=4096"];
    let run = bench(&[&flags[..], &filters].concat());
    run.assert_code(0);
    let (rows, summary) = lines(&run);
    assert_eq!((rows.len(), &summary["launches"]), (2, &10.into()));
    let pushed = variant(&rows, "pushed")[0];
    assert_eq!(pushed["launches"], 5);
    assert!(pushed["verdict"].is_string() && pushed["welch_p"].is_f64(), "{pushed}");
    assert_eq!(summary["plan"]["isolation"], "isolated");
}

#[test]
fn one_launch_is_provisional_and_says_what_is_not_counted() {
    let run = bench(&["--quick", "--benchmem", "--variant", "doubled,pushed"]);
    run.assert_code(0);
    run.assert_stdout("one launch: verdicts are provisional");
    run.assert_stdout("pushed at 4096: ");
    run.assert_stdout("allocations, ");
    let flags = ["--quick", "--benchmem", "--kernel", "dot"];
    let without = Finished::of(&mut support::bench("kernels", &flags));
    without.assert_code(0);
    without.assert_stdout("static ALLOCATOR: kbench::Allocator");
}

#[test]
fn a_worker_without_a_controller_explains_itself() {
    let run = Finished::of(example_command("quickstart").arg("--worker"));
    run.assert_code(2);
    run.assert_stderr("`--worker` alone is for kbench itself");
    run.assert_stderr("--worker NAME=COMMAND");
}

#[test]
fn one_isolated_launch_is_provisional_too() {
    let run = bench(&["--quick", "--isolate", "--variant", "doubled,pushed", "--format", "json"]);
    run.assert_code(0);
    let (rows, _) = lines(&run);
    for row in variant(&rows, "pushed") {
        let verdict = row["verdict"].as_str().unwrap_or_default();
        assert!(verdict.starts_with("provisional "), "{row}");
    }
}

#[test]
fn more_launches_than_fit_are_cut_to_those_that_do() {
    let flags = ["--launches", "1000", "--budget", "500ms", "--format", "json"];
    let run = bench(&[&flags[..], &["--variant", "doubled,pushed"]].concat());
    run.assert_code(0);
    let (rows, summary) = lines(&run);
    assert!(rows.iter().all(|row| row["status"] == "ok"), "{rows:?}");
    let launches = summary["launches"].as_u64().expect("a number");
    assert!((1..200).contains(&launches), "{launches}");
}
