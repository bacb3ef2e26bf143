//! Every export is given to a program that reads it, which must find what the report says.
//!
//! `.ci/consumers` installs these programs and prints their folder, which `KBENCH_CONSUMERS` names (`target/consumers` where
//! it does not). One that is missing is skipped, and said to be; with `KBENCH_REQUIRE_CONSUMERS` it is a failure. Scripts and
//! schemas are in `tests/consumers`.

#[path = "consumers/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kbench_core::report::{
    BaselineReport, Exported, Format, Method, PartReport, Report, RowReport, Status, export,
};
use serde_json::{Value, json};

use support::{
    assert_close, consumer, device, is_valid, mean, median, name, printed, processor, python,
    samples, scratch, script, timed, troubled, write,
};

/// A report of the same run, in which everything took so many times as long.
fn scaled(report: &Report, factor: f64) -> Report {
    let mut report = report.clone();
    for row in &mut report.rows {
        row.raw.samples.iter_mut().flatten().flatten().for_each(|sample| *sample *= factor);
        for figure in [&mut row.time_ns, &mut row.time_low_ns, &mut row.time_high_ns] {
            *figure = figure.map(|time| factor * time);
        }
    }
    report
}

/// A time as critcmp prints it.
fn critcmp_time(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e3 => format!("{n:.1}"),
        n if n < 1e6 => format!("{:.1}", n / 1e3),
        n => format!("{:.1}", n / 1e6),
    }
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn critcmp_prints_the_times_of_the_report() {
    let Some(critcmp) = consumer("bin/critcmp") else { return };
    for (number, report) in [processor(), device()].into_iter().enumerate() {
        let folder = scratch(&format!("critcmp{number}"));
        write(&report, Format::Criterion, &folder);
        // An older run that took twice as long, kept as criterion keeps a baseline.
        let Exported::Tree(older) =
            export(&scaled(&report, 2.0), &[], Format::Criterion).expect("files")
        else {
            panic!("no tree")
        };
        for (file, text) in older {
            let file = folder.join("criterion").join(file);
            let baseline = file.ancestors().nth(2).expect("a folder").join("older");
            fs::create_dir_all(&baseline).expect("a folder");
            fs::write(baseline.join(file.file_name().expect("a name")), text).expect("written");
        }
        let table = printed(&critcmp, &[&"--target-dir", &folder, &"new", &"older"]);
        for row in timed(&report) {
            let line = table.lines().find(|line| line.starts_with(&(name(row) + " ")));
            let fields: Vec<&str> = line.expect("a line").split_whitespace().collect();
            let time = row.time_ns.expect("a time");
            assert!(fields[2].starts_with(&(critcmp_time(time) + "±")), "{time}: {line:?}");
            assert_eq!((fields[1], fields[5]), ("1.00", "2.00"), "{line:?}");
        }
        let exported = printed(&critcmp, &[&"--target-dir", &folder, &"--export", &"new"]);
        let exported: Value = serde_json::from_str(&exported).expect("JSON");
        let benchmarks = exported["benchmarks"].as_object().expect("benchmarks");
        assert_eq!(benchmarks.len(), timed(&report).count());
        for row in timed(&report) {
            let estimates = &benchmarks[&name(row)]["criterion_estimates_v1"];
            let interval = &estimates["mean"]["confidence_interval"];
            // critcmp reads and writes numbers with an error in the last digit.
            for (found, expected) in [
                (&estimates["mean"]["point_estimate"], row.time_ns.expect("a time")),
                (&interval["upper_bound"], row.time_high_ns.expect("an end")),
                (&estimates["median"]["point_estimate"], median(samples(row))),
            ] {
                let found = found.as_f64().expect("a number");
                assert_close(found, expected, 1e-12, &row.name);
            }
        }
    }
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn critcmp_reads_what_awkward_names_make_of_a_folder() {
    let Some(critcmp) = consumer("bin/critcmp") else { return };
    let folder = scratch("critcmp-awkward");
    let report = troubled();
    write(&report, Format::Criterion, &folder);
    let exported = printed(&critcmp, &[&"--target-dir", &folder, &"--export", &"new"]);
    let exported: Value = serde_json::from_str(&exported).expect("JSON");
    let found = exported["benchmarks"].as_object().map(serde_json::Map::len);
    assert_eq!(found, Some(timed(&report).count()));
    let outside: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !path.ends_with("criterion"))
        .collect();
    assert_eq!(outside, Vec::<PathBuf>::new());
}

/// What compare.py finds: for every name, the measurements of both sides.
fn compare_py(arguments: &[&str], folder: &Path) -> Option<Vec<Value>> {
    let python = consumer("python/bin/python")?;
    let compare = consumer("debian/usr/share/benchmark/compare.py")?;
    let found = folder.join("found.json");
    let mut command = Command::new(python);
    command.arg(compare).arg("--no-color").arg("-d").arg(&found).args(arguments);
    let output = command.current_dir(folder).output().expect("compare.py runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(found).expect("what it found");
    Some(serde_json::from_str(&text).expect("JSON"))
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn compare_py_finds_the_ratio_of_two_variants_in_one_file() {
    let folder = scratch("compare");
    let report = processor();
    write(&report, Format::Gbench, &folder);
    let filters = ["filters", "gbench", "/saxpy/", "/saxpy_rayon,threads=2/"];
    let Some(found) = compare_py(&filters, &folder) else { return };
    let of = |variant: &str, threads: usize| {
        let is_it = move |row: &&RowReport| row.variant == variant && row.threads == threads;
        timed(&report).filter(is_it).collect::<Vec<&RowReport>>()
    };
    let pairs: Vec<_> = of("saxpy", 1).into_iter().zip(of("saxpy_rayon", 2)).collect();
    assert_eq!((found.len(), pairs.len()), (4, 3), "three sizes and the mean of all: {found:?}");
    for ((base, row), found) in pairs.iter().zip(&found) {
        let side = |name: &str| {
            let all = found["measurements"].as_array().expect("measurements").iter();
            mean(&all.map(|one| one[name].as_f64().expect("a time")).collect::<Vec<f64>>())
        };
        assert!(found["name"].as_str().is_some_and(|name| name.ends_with(&row.size)), "{found}");
        let expected = mean(&samples(row)) / mean(&samples(base));
        assert_close(side("real_time_other") / side("real_time"), expected, 1e-12, &row.name);
        assert_eq!(found["utest"]["nr_of_repetitions"], json!(samples(base).len()));
    }
    let logarithms = |rows: Vec<&RowReport>| {
        let all: Vec<f64> = rows.into_iter().flat_map(samples).map(f64::ln).collect();
        mean(&all)
    };
    let ratio = (logarithms(of("saxpy_rayon", 2)) - logarithms(of("saxpy", 1))).exp();
    let overall = found[3]["measurements"][0]["time"].as_f64().expect("a number") + 1.0;
    assert_close(overall, ratio, 1e-9, "the geometric mean");
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn compare_py_compares_two_runs_also_where_rows_failed() {
    for (number, report) in [processor(), device(), troubled()].into_iter().enumerate() {
        let folder = scratch(&format!("compare{number}"));
        write(&report, Format::Gbench, &folder);
        fs::rename(folder.join("gbench"), folder.join("old")).expect("renamed");
        write(&scaled(&report, 1.25), Format::Gbench, &folder);
        let Some(found) = compare_py(&["benchmarks", "old", "gbench"], &folder) else { return };
        assert_eq!(found.len(), timed(&report).count() + 1);
        for one in found.iter().flat_map(|one| one["measurements"].as_array().expect("some")) {
            assert_close(one["time"].as_f64().expect("a number"), 0.25, 1e-9, "a quarter more");
        }
    }
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn gos_benchmark_format_has_every_sample_under_its_keys() {
    for (number, report) in [processor(), device(), troubled()].into_iter().enumerate() {
        let path = write(&report, Format::Go, &scratch(&format!("go{number}")));
        let Some(found) = python("benchfmt.py", &[&path]) else { return };
        let results = found["results"].as_object().expect("results");
        assert_eq!(results.len(), timed(&report).count());
        assert_eq!(found["config"]["goos"], "linux");
        assert_eq!(found["config"].as_object().map(serde_json::Map::len), Some(4));
        if number == 2 {
            continue;
        }
        for row in timed(&report) {
            let mut keys: BTreeMap<&str, String> =
                row.axes.iter().map(|(axis, value)| (axis.as_str(), value.to_string())).collect();
            keys.insert("variant", row.variant.clone());
            keys.insert("type", row.element.clone());
            keys.insert("threads", row.threads.to_string());
            keys.insert("mode", row.mode.clone());
            let result = results.values().find(|result| result["keys"] == json!(keys));
            assert_eq!(result.expect("a result")["times"], json!(samples(row)), "{}", row.name);
        }
    }
}

/// benchstat comes from Go's module proxy, which is not everywhere; where it is installed, it has the last word.
#[test]
#[ignore = "slow: starts the programs that read exports"]
fn benchstat_finds_the_medians_of_the_report() {
    let path = write(&device(), Format::Go, &scratch("benchstat"));
    let arguments = ["-col", "/variant,/threads,/mode", "-row", ".name,/n", "-format", "csv"];
    let found = Command::new("benchstat").args(arguments).arg(path).output();
    let Ok(output) = found else {
        eprintln!("skipped: there is no benchstat in PATH");
        return;
    };
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    let report = device();
    let line = table.lines().find(|line| line.starts_with("Kernels::elementwise::add"));
    let fields: Vec<&str> = line.unwrap_or_else(|| panic!("{table}")).split(',').collect();
    let numbers: Vec<f64> = fields.iter().filter_map(|field| field.parse().ok()).collect();
    for row in timed(&report) {
        let seconds = median(samples(row)) / 1e9;
        let is_it = |number: &&f64| (*number / seconds - 1.0).abs() < 1e-6;
        assert!(numbers.iter().any(|number| is_it(&number)), "{}: {seconds}: {line:?}", row.name);
    }
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn libtests_lines_are_read_alike_by_both_readers() {
    for (number, report) in [processor(), device(), troubled()].into_iter().enumerate() {
        let path = write(&report, Format::Libtest, &scratch(&format!("libtest{number}")));
        let Some(found) = python("libtest.py", &[&path]) else { return };
        let measured = timed(&report).count();
        let failed = report.failed().count();
        let skipped = report.rows.len() - measured - failed;
        assert_eq!(found["benches"].as_object().map(serde_json::Map::len), Some(measured));
        assert_eq!(found["running"], json!([report.rows.len()]));
        assert_eq!(found["words"], json!({ "ok": 0, "FAILED": failed, "ignored": skipped }));
        let word = if failed > 0 { "FAILED" } else { "ok" };
        let counts = json!([[word, 0, failed, skipped, measured, report.filtered_out]]);
        assert_eq!(found["results"], counts);
        for row in timed(&report).take(8) {
            let value = found["benches"][name(row)][0].as_f64().expect("a value");
            assert!((value - median(samples(row))).abs() <= 0.005_001, "{}: {value}", row.name);
        }
    }
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn junits_readers_count_what_failed_and_what_was_skipped() {
    for (number, report) in [processor(), device(), troubled()].into_iter().enumerate() {
        let path = write(&report, Format::Junit, &scratch(&format!("junit{number}")));
        let Some(found) = python("junit.py", &[&script("junit.xsd"), &path]) else { return };
        let targets = |word: &str| {
            let all = report.rows.iter().flat_map(|row| &row.expectations);
            all.filter(|target| target.verdict.word().contains(word)).count()
        };
        let skipped = |row: &&RowReport| matches!(row.status, Status::Skipped(_));
        let skipped = report.rows.iter().filter(skipped).count();
        assert_eq!(
            found["total"],
            json!({
                "tests": report.rows.len() + targets(""),
                "failures": report.failed().count() + targets("missed"),
                "skipped": skipped + targets("undecided"),
            })
        );
    }
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn junits_readers_see_the_reason_as_it_was() {
    let mut report = processor();
    let reason = "got <1.5> & \"2\"\n\tat y[3] 'z'";
    report.rows[1].status = Status::Failed(reason.into());
    let path = write(&report, Format::Junit, &scratch("junit-reason"));
    let Some(found) = python("junit.py", &[&script("junit.xsd"), &path]) else { return };
    assert_eq!(found["cases"][1][2], json!([["failures", reason]]));
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn bencher_and_github_get_what_their_schemas_want() {
    for (format, wrong) in [
        (Format::Bmf, r#"{"a": {"latency": {"value": null}}}"#),
        (Format::Github, r#"[{"name": "a", "unit": "ns", "value": 1.0, "range": "1 ± 2"}]"#),
    ] {
        let schema = script(&format!("{}.schema.json", format.name()));
        let folder = scratch(format.name());
        fs::write(folder.join("wrong"), wrong).expect("written");
        let Some(verdict) = is_valid(&[], &schema, &[folder.join("wrong")]) else { return };
        assert!(verdict.is_err(), "{} passes", wrong);
        for report in [processor(), device(), troubled()] {
            let path = write(&report, format, &folder);
            assert_eq!(is_valid(&[], &schema, std::slice::from_ref(&path)), Some(Ok(())));
            let text = fs::read_to_string(path).expect("readable");
            let found: Value = serde_json::from_str(&text).expect("JSON");
            let count = found.as_object().map(|all| all.len()).or(found.as_array().map(Vec::len));
            assert_eq!(count, Some(timed(&report).count()));
        }
    }
}

/// The device's run as the part of a merged one, with a baseline.
fn merged() -> Report {
    let mut report = device();
    let Report { run, environment, started, device, rows, .. } = report.clone();
    let machine = environment.machine.clone();
    let count = rows.len();
    report.parts = vec![PartReport {
        run,
        machine: machine.clone(),
        started,
        partition: Some("slice:1/2".into()),
        environment,
        device,
        warnings: Vec::new(),
        rows: count,
    }];
    report.missing = vec!["kernels::elementwise::mul".into()];
    for row in &mut report.rows {
        row.machine = Some(machine.clone());
        row.change.change = Some(0.01);
        row.change.change_verdict = Some("advisory slower".into());
    }
    report.baseline = Some(BaselineReport {
        name: "main".into(),
        run: "then".into(),
        started: 0,
        git_commit: None,
        method: Method::History,
        reason: Some("its executable is gone".into()),
        gone: vec!["a".into()],
        fresh: vec!["b".into()],
        shifts: Vec::new(),
    });
    report
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn the_run_document_is_what_its_schema_says_and_no_more() {
    let schema = script("../../docs/run.schema.json");
    let check = |folder: &Path| is_valid(&["--complete"], &schema, &[folder.join("json")]);
    for (number, report) in [processor(), device(), merged()].into_iter().enumerate() {
        let folder = scratch(&format!("json{number}"));
        let path = write(&report, Format::Json, &folder);
        let Some(verdict) = check(&folder) else { return };
        assert_eq!(verdict, Ok(()));
        let text = fs::read_to_string(&path).expect("readable");
        let changed = text.replacen("\"is_base\": true", "\"is_base\": 1", 1);
        fs::write(path, changed).expect("written");
        assert!(check(&folder).is_some_and(|verdict| verdict.is_err()), "{number}");
    }
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn the_raw_samples_of_a_document_give_its_own_probabilities() {
    for (number, report) in [processor(), device()].into_iter().enumerate() {
        let folder = scratch(&format!("welch{number}"));
        let (document, table) =
            (write(&report, Format::Json, &folder), write(&report, Format::Csv, &folder));
        let Some(found) = python("welch.py", &[&document, &table]) else { return };
        let tested = found["tested"].as_array().expect("tests");
        assert!(tested.len() >= 6 && found["compared"].as_u64() > Some(500), "{found}");
        for test in tested {
            let figure = |name: &str| test[name].as_f64().expect("a number");
            // Samples are kept to seven digits.
            assert_close(figure("p"), figure("welch_p"), 1e-3, &test["name"].to_string());
            assert_close(figure("t"), figure("welch_t"), 1e-4, &test["name"].to_string());
        }
    }
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn githubs_own_renderer_shows_tables_and_nothing_that_acts() {
    let folder = scratch("markdown");
    let report = device();
    let path = write(&report, Format::Markdown, &folder);
    let Some(found) = python("markdown.py", &[&path]) else { return };
    let lines = found["tables"][0].as_array().expect("a table");
    assert_eq!(lines.len(), 1 + report.rows.len());
    let cuda = lines.iter().find(|line| line[1] == "add_cuda end-to-end").expect("a line");
    assert_eq!((&cuda[0], &cuda[4]), (&json!("n=4194304"), &json!("slower")), "{cuda}");

    let report = troubled();
    let path = write(&report, Format::Markdown, &folder);
    let found = python("markdown.py", &[&path]).expect("Python, as before");
    let elements = found["elements"].as_array().expect("elements");
    for element in ["a", "script", "img", "blockquote", "em"] {
        assert!(!elements.contains(&json!(element)), "{element} in {elements:?}");
    }
    // A cell too many would be dropped without a word, so what is in them counts.
    let tables = found["tables"].as_array().expect("tables");
    let mut cells = tables.iter().flat_map(|table| table.as_array().expect("lines"));
    let is_whole = |line: &Value| {
        line[0].as_str().is_some_and(|size| {
            size.starts_with("`x` | **y** [z](https://example.com) ")
                && size.ends_with("www.example.com=1")
        })
    };
    assert!(cells.any(is_whole), "{tables:?}");
    let text = found["prose"].as_str().expect("text");
    assert!(!text.contains("@somebody") && !text.contains("#1"), "{text}");
}

#[test]
#[ignore = "slow: starts the programs that read exports"]
fn the_guide_has_every_format() {
    let guide = fs::read_to_string(script("../../docs/exports.md")).expect("the guide");
    for format in Format::ALL.map(Format::name) {
        assert!(guide.contains(&format!("\n| `{format}` | ")), "{format} is not in the table");
        assert!(guide.contains(&format!("--export {format}=")), "{format} has no example");
    }
}
