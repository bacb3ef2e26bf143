//! Cargo's own commands, as people type them.

use std::collections::BTreeSet;

use super::support::{self, FAST_BUILD, Finished, checks, downstream, read_csv, scratch};

/// By cargo itself, after the build that all tests share.
fn cargo_bench(target: &str, arguments: &[&str]) -> Finished {
    support::executable(target);
    let words = ["bench", "--quiet", "--bench", target];
    downstream(&[&words[..], &FAST_BUILD, &["--"], arguments].concat())
}

/// By cargo itself, which builds everything once more for it.
fn cargo_test(target: &str, arguments: &[&str]) -> Finished {
    downstream(&[&["test", "--quiet", "--bench", target, "--"], arguments].concat())
}

fn bench(target: &str, arguments: &[&str]) -> Finished {
    Finished::of(&mut support::bench(target, arguments))
}

fn run_test(target: &str, arguments: &[&str]) -> Finished {
    Finished::of(&mut checks(target, arguments))
}

#[test]
fn cargo_bench_measures_every_variant_and_says_which_is_faster() {
    let csv = scratch("bench.csv");
    let json = scratch("bench.json");
    let export = [format!("csv={}", csv.display()), format!("json={}", json.display())];
    let run = cargo_bench("kernels", &["--quick", "--export", &export[0], "--export", &export[1]]);
    run.assert_code(0);
    for part in ["downstream::scale  f32", "scale_rayon", "chunked", "provisional", "GB/s", "base"]
    {
        run.assert_stdout(part);
    }
    let table = run.stdout.lines().filter(|line| line.starts_with("  ") && !line.contains(": "));
    let widest = table.map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "a table is {widest:?} columns wide\n{}", run.stdout);

    let rows = read_csv(&csv);
    let listed = rows.iter().filter(|row| row["origin"] == "listed").count();
    assert_eq!(listed, 27, "every variant at every listed size has a row");
    let lanes = rows.iter().find(|row| row["variant"] == "lanes").expect("a row for `lanes`");
    assert_eq!(lanes["kernel"], "downstream::dot");
    assert_eq!(
        (&*lanes["status"], &*lanes["backend"], &*lanes["size"]),
        ("ok", "serial", "n=1000")
    );
    assert_eq!(
        lanes["verdict"], "provisional faster",
        "eight lanes beat one accumulator several times over"
    );
    let number = |name: &str| {
        lanes[name].parse::<f64>().unwrap_or_else(|_| panic!("{name} is {:?}", lanes[name]))
    };
    assert!(
        number("speedup_low") <= number("speedup") && number("speedup") <= number("speedup_high")
    );
    assert!(
        number("time_low_ns") <= number("time_ns") && number("time_ns") <= number("time_high_ns")
    );
    assert!(number("p") <= number("p_adjusted") && number("error") <= number("tolerance"));

    let text = std::fs::read_to_string(&json).expect("the run document");
    let run: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(run["schema"], 2);
    let document: Vec<&serde_json::Value> =
        ["rows", "searched"].iter().flat_map(|list| run[*list].as_array().expect("rows")).collect();
    assert_eq!(document.len(), rows.len());
    for (csv, json) in rows.iter().zip(document) {
        for name in ["kernel", "variant", "type", "size", "status"] {
            assert_eq!(json[name].as_str(), Some(&*csv[name]), "{name}");
        }
        let (time, expected) = (json["time_ns"].as_f64(), csv["time_ns"].parse::<f64>().ok());
        // Readers of JSON may round the last digit.
        let same = time.zip(expected).is_none_or(|(a, b)| (a / b - 1.0).abs() < 1e-12);
        assert!(same && time.is_some() == expected.is_some(), "{time:?} {expected:?}");
        if csv["status"] == "ok" {
            assert!(
                json["samples"][0].as_array().is_some_and(|blocks| blocks.len() >= 8),
                "raw samples"
            );
        }
    }
}

#[test]
fn checks_run_without_a_flag_and_nothing_is_timed() {
    assert_checks_of_kernels(&run_test("kernels", &[]));
}

#[test]
#[ignore = "slow: builds the downstream crate without optimisation"]
fn cargo_test_runs_the_checks_and_no_timing() {
    assert_checks_of_kernels(&cargo_test("kernels", &[]));
}

#[track_caller]
fn assert_checks_of_kernels(run: &Finished) {
    run.assert_code(0);
    run.assert_stdout("test downstream::scale/scale_rayon/f32/n=256 ... ok");
    run.assert_stdout("test downstream::dot/slow/f32/n=1000 ... ignored, takes its time");
    run.assert_stdout(
        "scale_cuda/f32/n=256 ... ignored, kbench was built without its feature `cuda`",
    );
    run.assert_stdout(
        "test result: ok. 24 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out",
    );
    run.assert_stdout("note: downstream::sort/sort: unverified base");
}

#[test]
fn a_wrong_variant_is_named_with_place_and_error_and_the_rest_is_measured() {
    let csv = scratch("faulty.csv");
    let export = format!("csv={}", csv.display());
    let run = bench("faulty", &["--quick", "--budget", "10s", "--export", &export]);
    run.assert_code(100);
    for part in [
        "downstream::scale/inexact/f32: failed: relative error",
        "9.88e-3 (largest element), tolerance 1.28e-6, worst `y`[",
        "downstream::scale/unwritten/f32: failed: 1 element(s) of `y` are never written, the first at index 0; if the kernel",
        "downstream::scale/zeros_only/f32: failed: relative error",
        "worst `y`[0] is 0 where",
        "downstream::scale/not_a_number/f32: failed: `y`[0] is NaN where",
        "downstream::scale/panics/f32: failed: panicked at benches/faulty.rs:34:5: only multiples of eight",
        "kbench chose this size: if the kernel is not defined there, say so with `valid = ...`, or decline",
        "faulty::moments/miscounts/f32: failed: `return value.count`[0] is 1 where 3 is expected",
        "downstream::dot/different/f32: failed: two calls on the same input differ beyond the tolerance",
        "downstream::sort/only_at_first/f32: failed: relative error",
        "downstream::roots/refuses/f32: failed: returned an error: element 0 is negative",
    ] {
        run.assert_stderr(part);
    }
    let rows = read_csv(&csv);
    let wrong: BTreeSet<&str> = rows
        .iter()
        .filter(|row| row["status"].starts_with("failed"))
        .map(|row| row["variant"].as_str())
        .collect();
    let planted = [
        "different",
        "inexact",
        "miscounts",
        "not_a_number",
        "only_at_first",
        "panics",
        "refuses",
        "unwritten",
        "wraps",
        "zeros_only",
    ];
    assert_eq!(wrong, BTreeSet::from(planted));
    for row in &rows {
        let has_time = !row["time_ns"].is_empty();
        let unchecked = "unchecked: `faulty::Opaque` cannot be compared; `#[derive(kbench::Operand)]` compares the fields of a struct";
        if row["kernel"] == "faulty::opaque" {
            assert_eq!((&*row["status"], &*row["best_share"]), (unchecked, ""));
        }
        assert_eq!(
            has_time,
            row["status"] == "ok" || row["status"] == unchecked,
            "{} has a time although it is {}",
            row["variant"],
            row["status"]
        );
    }
}

#[test]
fn cargo_test_fails_with_code_100_on_a_wrong_variant() {
    let run = run_test("faulty", &["scale/"]);
    run.assert_code(100);
    run.assert_stdout("test downstream::scale/scale/f32/n=256 ... ok");
    run.assert_stdout("test downstream::scale/inexact/f32/n=256 ... FAILED");
    run.assert_stdout("---- downstream::scale/unwritten/f32/n=256 ----");
    run.assert_stdout("passed: downstream::scale: scale 2/2, scale_rayon 2/2,");
    let unchecked = run_test("faulty", &["opaque/"]);
    unchecked.assert_code(100);
    unchecked.assert_stdout("test faulty::opaque/does_nothing/f32/n=256 ... FAILED");
    unchecked.assert_stdout("constant input: number 1 of what is only read");
}

#[test]
fn listing_follows_the_protocol_and_runs_no_user_code() {
    let all = run_test("kernels", &["--list", "--format", "terse"]);
    all.assert_code(0);
    assert_eq!(all.stdout.lines().count(), 27);
    assert!(all.stdout.lines().all(|line| line.ends_with(": benchmark")), "{}", all.stdout);
    assert!(!all.stderr.contains("inputs of scale are made"), "{}", all.stderr);
    let ignored = run_test("kernels", &["--list", "--format", "terse", "--ignored"]);
    assert_eq!(ignored.stdout, "downstream::dot/slow/f32/n=1000: benchmark\n");
    let human = run_test("kernels", &["--list", "sort"]);
    human.assert_stdout("0 tests, 4 benchmarks");
    let checked = run_test("kernels", &["scale/scale/"]);
    checked.assert_stderr("inputs of scale are made");
    let other = run_test("kernels", &["dot/dot/"]);
    assert!(
        !other.stderr.contains("inputs of scale are made"),
        "no inputs for what is not selected"
    );
}

#[test]
#[ignore = "slow: builds the downstream crate without optimisation"]
fn nextest_lists_and_runs_every_benchmark_as_a_test() {
    let listed = downstream(&["nextest", "list", "--bench", "kernels"]);
    if listed.stderr.contains("no such command") {
        eprintln!("skipped: cargo-nextest is not installed");
        return;
    }
    listed.assert_code(0);
    listed.assert_stdout("downstream::sort/quick/f32/n=5000");
    let run = downstream(&["nextest", "run", "--bench", "kernels"]);
    run.assert_code(0);
    run.assert_stderr("26 tests run: 26 passed, 1 skipped");
    let faulty = downstream(&["nextest", "run", "--no-fail-fast", "--bench", "faulty", "scale/"]);
    faulty.assert_code(100);
    faulty.assert_stderr("downstream::scale/inexact/f32/n=256");
    faulty.assert_stderr("are never written");
}

#[test]
fn exit_codes_pass_through_cargo() {
    let unknown = cargo_bench("kernels", &["--bugdet", "3s"]);
    unknown.assert_code(2);
    unknown.assert_stderr("error: there is no flag `--bugdet`; did you mean `--budget`?");
    let nothing = bench("kernels", &["scael"]);
    nothing.assert_code(4);
    nothing.assert_stderr("did you mean `scale`?");
    let kernel = bench("kernels", &["--kernel", "dott"]);
    kernel.assert_code(4);
    kernel.assert_stderr("error: no kernel is called `dott`; did you mean `dot`?");
    let empty = bench("empty", &[]);
    empty.assert_code(2);
    empty.assert_stderr("use my_kernels as _;");
    let elsewhere = run_test("kernels", &["a_filter_for_another_target"]);
    elsewhere.assert_code(0);
    elsewhere.assert_stdout("0 passed; 0 failed; 0 ignored; 0 measured; 27 filtered out");
}

#[test]
#[ignore = "slow: measures 1,300 rows twice"]
fn more_rows_have_a_longer_budget_unless_one_is_given() {
    let sizes: Vec<String> = (1..=1300).map(|n| n.to_string()).collect();
    let axis = format!("n={}", sizes.join(","));
    let flags = ["--kernel", "roots", "--variant", "roots", "--axis", &axis, "--no-search"];
    let short =
        ["--warm-up-time", "1ms", "--sample-size", "4", "--iterations", "1", "--launches", "1"];
    let run = |more: &[&str]| bench("kernels", &[&flags[..], &short, more].concat());
    run(&[]).assert_stdout(" of 4 min 18 s");
    run(&["--budget", "120s"]).assert_stdout(" of 2 min 00 s");
}

#[test]
fn selection_flags_choose_rows() {
    let names = |arguments: &[&str]| {
        let run = run_test("kernels", &[&["--list", "--format", "terse"], arguments].concat());
        run.assert_code(0);
        run.stdout.lines().map(|line| line.replace(": benchmark", "")).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--kernel", "sort", "--size", "few"]).len(), 2);
    assert_eq!(names(&["--variant", "lanes"]), ["downstream::dot/lanes/f32/n=1000"]);
    assert_eq!(names(&["--backend", "parallel", "--type", "i32"]).len(), 2);
    assert_eq!(names(&["--size", "rows>=32"]).len(), 3);
    assert_eq!(names(&["--axis", "n=7", "--kernel", "roots"]), ["downstream::roots/roots/f32/n=7"]);
    assert_eq!(names(&["--exact", "downstream::dot/dot/f32/n=1000"]).len(), 1);
    assert_eq!(names(&["--skip", "scale", "--skip", "sort"]).len(), 13);
    let parts: usize =
        (1..=3).map(|m| names(&["--partition", &format!("slice:{m}/3")]).len()).sum();
    assert_eq!(parts, 27);
}

#[test]
fn thread_counts_make_rows_of_their_own() {
    let csv = scratch("threads.csv");
    let export = format!("csv={}", csv.display());
    let arguments = [
        "--quick",
        "--kernel",
        "scale",
        "--size",
        "n=65536",
        "--threads",
        "1,2",
        "--export",
        &export,
    ];
    bench("kernels", &arguments).assert_code(0);
    let threads: Vec<(String, String)> =
        read_csv(&csv).iter().map(|row| (row["variant"].clone(), row["threads"].clone())).collect();
    let expected = [
        ("scale", "1"),
        ("scale_rayon", "1"),
        ("scale_rayon", "2"),
        ("chunked", "1"),
        ("eights", "1"),
        ("scale_cuda", "1"),
    ];
    assert_eq!(
        threads,
        expected.map(|(variant, threads)| (variant.to_owned(), threads.to_owned()))
    );
}

#[test]
#[ignore = "slow: builds the downstream crate without optimisation"]
fn a_debug_build_is_warned_about_at_the_top() {
    let run = cargo_test("kernels", &["--bench", "--quick", "--budget", "1s", "--kernel", "dot"]);
    run.assert_code(0);
    let first = run.stdout.lines().find(|line| !line.is_empty()).unwrap_or_default();
    assert!(first.starts_with("warning: debug build"), "{}", run.stdout);
}

#[test]
fn machine_readable_output_is_nothing_but_json() {
    let run = bench("kernels", &["--quick", "--kernel", "dot", "--format", "json"]);
    run.assert_code(0);
    let lines: Vec<serde_json::Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(lines.last().map(|line| &line["reason"]), Some(&"run".into()));
    assert_eq!(lines.iter().filter(|line| line["reason"] == "row").count(), 3);
    let test = run_test("kernels", &["--format", "json", "--kernel", "dot"]);
    assert!(
        test.stdout.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
    );
}

#[test]
fn environment_variables_are_twins_of_flags() {
    let mut command = checks("kernels", &["--list", "--format", "terse"]);
    let run = Finished::of(command.env("KBENCH_KERNEL", "dot").env("KBENCH_BUGDET", "1"));
    assert_eq!(run.stdout.lines().count(), 3);
    run.assert_stderr("KBENCH_BUGDET means nothing to kbench; did you mean KBENCH_BUDGET?");
}
