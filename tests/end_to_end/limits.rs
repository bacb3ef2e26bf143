//! Programs and sizes as large as they can be: a clear error or a marked row, and time that grows with what there is.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

#[cfg(target_os = "linux")]
use serde_json::Value;

use super::support::{Finished, executable, read_csv, scratch};

fn program() -> &'static Path {
    executable("limits")
}

/// Kernels with so many variants at so many sizes, besides those that are written in it.
#[derive(Clone, Copy)]
struct Shape {
    kernels: usize,
    variants: usize,
    sizes: usize,
    name: usize,
}

const NOTHING_MORE: Shape = Shape { kernels: 0, variants: 1, sizes: 1, name: 0 };

impl Shape {
    fn command(self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        let Shape { kernels, variants, sizes, name } = self;
        for (variable, number) in [
            ("LIMITS_KERNELS", kernels),
            ("LIMITS_VARIANTS", variants),
            ("LIMITS_SIZES", sizes),
            ("LIMITS_NAME", name),
        ] {
            command.env(variable, number.to_string());
        }
        command.args(arguments).env("NO_COLOR", "1").current_dir(env!("CARGO_TARGET_TMPDIR"));
        command
    }

    fn run(self, arguments: &[&str]) -> Finished {
        Finished::of(&mut self.command(arguments))
    }

    /// Seconds of a run: the least of three, for others use the machine too.
    fn seconds(self, arguments: &[&str]) -> f64 {
        let run = |_| {
            let begun = Instant::now();
            self.run(arguments).assert_code(0);
            begun.elapsed().as_secs_f64()
        };
        (0..3).map(run).fold(f64::INFINITY, f64::min)
    }
}

/// The rows that `benches/limits.rs` has by itself.
const OWN_ROWS: usize = 4;

#[test]
#[ignore = "slow: ten thousand variants in three shapes"]
fn ten_thousand_variants_are_listed_checked_and_reported() {
    for (kernels, variants) in [(10_000, 1), (1000, 10), (1, 10_000)] {
        let shape = Shape { kernels, variants, ..NOTHING_MORE };
        let list = shape.run(&["--list", "--format", "terse"]);
        list.assert_code(0);
        assert_eq!(list.stdout.lines().count(), 10_000 + OWN_ROWS);
        assert!(list.stdout.lines().all(|line| line.ends_with(": benchmark")));
        let checks = shape.run(&["--test"]);
        checks.assert_code(0);
        checks.assert_stdout(&format!("{} passed; 0 failed", 10_000 + OWN_ROWS));
        let (csv, json) = (scratch("many.csv"), scratch("many.json"));
        let exports = [format!("csv={}", csv.display()), format!("json={}", json.display())];
        // Long enough for the checks, too, in a build of kbench that is not optimised and beside other tests.
        let flags = ["--bench", "--quick", "--budget", "30s", "--keep", "0"];
        let run =
            shape.run(&[&flags[..], &["--export", &exports[0], "--export", &exports[1]]].concat());
        run.assert_code(0);
        let rows = read_csv(&csv);
        assert_eq!(rows.len(), 10_000 + OWN_ROWS);
        let with =
            |status: &str| rows.iter().filter(|row| row["status"].starts_with(status)).count();
        assert!(with("ok") > 0, "some had their turn");
        assert_eq!(with("ok") + with("skipped: the budget of 30 s ended"), rows.len());
    }
}

/// Twice the kernels take twice the time; were something gone through once for each of them, it would be four times, and
/// sixteen times for four.
#[test]
#[ignore = "slow: forty thousand variants, three times"]
fn four_times_the_kernels_do_not_take_sixteen_times_the_time() {
    let flags = ["--bench", "--quick", "--budget", "0.1s", "--keep", "0"];
    for arguments in [&["--list"][..], &["--test"], &flags] {
        let seconds = |kernels| Shape { kernels, variants: 2, ..NOTHING_MORE }.seconds(arguments);
        let (few, many) = (seconds(5000), seconds(20_000));
        assert!(many < 10.0 * few + 0.5, "{arguments:?}: {few} s, then {many} s");
    }
}

#[test]
fn a_thousand_sizes_are_a_thousand_rows() {
    let shape = Shape { kernels: 1, sizes: 1000, ..NOTHING_MORE };
    let list = shape.run(&["--list", "--kernel", "kernel0"]);
    list.assert_stdout("0 tests, 1000 benchmarks");
    let values: Vec<String> = (1..=1000).map(|n: usize| n.to_string()).collect();
    let axis = format!("n={}", values.join(","));
    let list = NOTHING_MORE.run(&["--list", "--kernel", "halve", "--axis", &axis]);
    list.assert_stdout("0 tests, 1000 benchmarks");
    let csv = scratch("sizes.csv");
    let export = format!("csv={}", csv.display());
    let flags = ["--bench", "--quick", "--budget", "3s", "--keep", "0", "--export", &export];
    let run = NOTHING_MORE.run(&[&flags[..], &["--kernel", "halve", "--axis", &axis]].concat());
    run.assert_code(0);
    assert_eq!(read_csv(&csv).len(), 1000);
}

#[test]
fn sizes_that_no_memory_holds_cost_their_row_and_no_other() {
    let measured = |flags: &[&str]| {
        let csv = scratch("huge.csv");
        let export = format!("csv={}", csv.display());
        let all = ["--bench", "--quick", "--budget", "1s", "--keep", "0", "--export", &export];
        let run = NOTHING_MORE.run(&[&all[..], flags].concat());
        let rows = read_csv(&csv).into_iter();
        (run, rows.map(|row| (row["size"].clone(), row["status"].clone())).collect::<Vec<_>>())
    };
    let (run, rows) =
        measured(&["--variant", "copy", "--axis", "n=18446744073709551615,17592186044416,0,8"]);
    run.assert_code(100);
    let status = |size: &str| {
        let found = rows.iter().find(|(found, _)| found == size);
        found.unwrap_or_else(|| panic!("no {size} in {rows:?}")).1.as_str()
    };
    // More than there are addresses, and more than there is memory.
    for size in ["n=18446744073709551615", "n=17592186044416"] {
        let huge = status(size);
        assert!(huge.starts_with("failed: `inputs`") && huge.contains("no memory for"), "{huge}");
    }
    assert_eq!([status("n=0"), status("n=8")], ["ok", "ok"]);

    // As a number that is no amount of data, it is as good as any other.
    let (run, rows) = measured(&["--kernel", "halve", "--axis", "n=18446744073709551615"]);
    run.assert_code(0);
    assert_eq!(rows[0].1, "ok");

    // A product that does not fit is noticed before it is taken.
    let axes = ["--axis", "rows=4294967296,2", "--axis", "columns=4294967297"];
    let (run, rows) =
        measured(&[&["--kernel", "copy_rows", "--size", "rows>2"], &axes[..]].concat());
    run.assert_code(0);
    assert_eq!(rows[0].1, "skipped: the product of its axes does not fit in 64 bits");

    let run = NOTHING_MORE.run(&["--list", "--axis", "n=18446744073709551616"]);
    run.assert_code(2);
    run.assert_stderr("`18446744073709551616` is not a whole number");
}

#[test]
fn names_of_four_kilobytes_are_short_in_tables_and_whole_in_files() {
    let shape = Shape { kernels: 2, variants: 2, name: 4096, ..NOTHING_MORE };
    let [csv, json, html] =
        ["csv", "json", "html"].map(|ending| scratch(&format!("names.{ending}")));
    let exports = [("csv", &csv), ("json", &json), ("html", &html)]
        .map(|(format, path)| format!("--export={format}={}", path.display()));
    let flags = ["--bench", "--quick", "--budget", "2s", "--keep", "0", "--threads", "1,2"];
    let exports: Vec<&str> = exports.iter().map(String::as_str).collect();
    let run = shape.run(&[&flags[..], &exports].concat());
    run.assert_code(0);
    for line in run.stdout.lines() {
        assert!(line.chars().count() <= 110, "{} columns: {line}", line.chars().count());
    }
    run.assert_stdout("kernel000");
    let variant = format!("variant{:0>4096}", 1);
    assert_eq!(read_csv(&csv).iter().filter(|row| row["variant"] == variant).count(), 2);
    for file in [json, html] {
        let text = std::fs::read_to_string(&file).expect("written");
        assert!(text.contains(&variant), "{}", file.display());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn one_core_and_256_threads_are_as_good_as_any() {
    let flags = ["--bench", "--quick", "--budget", "2s", "--keep", "0", "--format", "json"];
    let of_copy = ["--kernel", "copy", "--axis", "n=4096"];
    let rows = |run: &Finished| -> Vec<Value> {
        run.assert_code(0);
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let mut command = Command::new("taskset");
    let on_all = NOTHING_MORE.command(&[&flags[..], &of_copy].concat());
    command.args(["-c", "0"]).arg(program()).args(on_all.get_args());
    let lines = rows(&Finished::of(&mut command));
    let (run, lines) = lines.split_last().expect("a line for the run");
    assert_eq!(run["environment"]["cores"], 1);
    assert!(lines.iter().all(|row| row["status"] == "ok" && row["threads"] == 1), "{lines:?}");

    // Beside other tests, so many samples may be disturbed that the two rows cannot be compared: one of five runs shows it.
    let threads = ["--threads", "1,256", "--launches", "2", "--sample-size", "8"];
    let measured = (0..5).find_map(|_| {
        let lines = rows(&NOTHING_MORE.run(&[&flags[..], &of_copy, &threads].concat()));
        let (run, lines) = lines.split_last().expect("a line for the run");
        let threads: Vec<u64> = lines.iter().filter_map(|row| row["threads"].as_u64()).collect();
        assert_eq!(threads, [1, 1, 256]);
        assert!(lines.iter().all(|row| row["status"] == "ok"), "{lines:?}");
        run["scaling"][0]["counts"][0]["threads"].as_u64()
    });
    assert_eq!(measured, Some(256));
}
