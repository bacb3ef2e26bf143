//! Reports to export, and programs to read them.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kbench_tests::root;

use kbench_core::infer::Attainment;
use kbench_core::report::{Exported, Format, Report, RowReport, Status, TargetReport, export};
use kbench_core::store::read_document;
use serde_json::Value;

/// Two variants at three sizes on a processor, one of them with one and two threads, and a CUDA variant that was skipped.
pub(super) fn processor() -> Report {
    let text = include_str!("../../kbench-core/src/store/fixtures/schema-1.json");
    read_document(text).expect("a run document")
}

/// One size on a processor and on a GPU, in all modes.
pub(super) fn device() -> Report {
    read_document(include_str!("device.json")).expect("a run document")
}

/// The run on a processor with everything that can go wrong: names, failures, missed targets.
pub(super) fn troubled() -> Report {
    let mut report = processor();
    let template = report.rows[0].clone();
    for (number, text) in [
        "../../../escaped",
        "/absolute",
        "a,b=c",
        "quote\" and 'apostrophe'",
        "<script>alert(1)</script>",
        "line\nbreak",
        "🚀",
        "\u{0}\u{1b}[31m",
        "`x` | **y** [z](https://example.com) @somebody #1 www.example.com",
        "test x ... bench: 1 ns/iter (+/- 0)",
        "",
    ]
    .into_iter()
    .enumerate()
    {
        let reason = format!("{text} is not what it should be");
        report.rows.extend([
            RowReport { kernel: format!("k{text}"), ..template.clone() },
            RowReport { variant: text.into(), ..template.clone() },
            RowReport { element: text.into(), ..template.clone() },
            RowReport { size: format!("{text}=1"), ..template.clone() },
            RowReport {
                status: Status::Failed(reason.clone()),
                size: format!("n={number}"),
                ..template.clone()
            },
        ]);
        report.warnings.push(text.into());
        report.rows[number].remarks.push(text.into());
        report.rows[number].expectations = vec![TargetReport {
            target: "speedup >= 2.0".into(),
            verdict: [Attainment::Met, Attainment::Missed, Attainment::Undecided][number % 3],
            reason,
        }];
    }
    report
}

/// The name of a row in exports, where nothing in it is awkward.
pub(super) fn name(row: &RowReport) -> String {
    let threads = match row.backend.as_str() {
        "parallel" => format!(",threads={}", row.threads),
        _ => String::new(),
    };
    let mode = if row.mode == "warm" { String::new() } else { format!(",mode={}", row.mode) };
    format!("{}/{}{threads}{mode}/{}/{}", row.kernel, row.variant, row.element, row.size)
}

pub(super) fn timed(report: &Report) -> impl Iterator<Item = &RowReport> {
    report.rows.iter().filter(|row| row.status == Status::Ok && row.time_ns.is_some())
}

pub(super) fn samples(row: &RowReport) -> Vec<f64> {
    row.raw.samples.concat().concat()
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (below, above) = ((values.len() - 1) / 2, values.len() / 2);
    (values[below] + values[above]) / 2.0
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(super) fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let off = (found / expected - 1.0).abs();
    assert!(off <= tolerance, "{what}: {found} instead of {expected}");
}

/// A file of the tests.
pub(super) fn script(name: &str) -> PathBuf {
    root().join("tests/consumers").join(name)
}

/// A new folder of one test.
pub(super) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("consumers").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes a report to a folder, as a file that has the name of its format, or as a tree.
pub(super) fn write(report: &Report, format: Format, folder: &Path) -> PathBuf {
    let path = folder.join(format.name());
    match export(report, &[], format).expect("an export") {
        Exported::File(text) => fs::write(&path, text).expect("written"),
        Exported::Tree(files) => {
            for (file, text) in files {
                let file = path.join(file);
                fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
                fs::write(file, text).expect("written");
            }
        }
    }
    path
}

/// A program, or none where it is not installed and need not be.
pub(super) fn consumer(path: &str) -> Option<PathBuf> {
    let default = || root().join("target/consumers");
    let folder = env::var_os("KBENCH_CONSUMERS").map_or_else(default, PathBuf::from);
    let program = folder.join(path);
    if program.exists() {
        return Some(program);
    }
    let reason = format!("there is no {}; .ci/consumers installs it", program.display());
    assert!(env::var_os("KBENCH_REQUIRE_CONSUMERS").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
    None
}

/// Words of a command line.
pub(super) type Words<'a> = [&'a dyn AsRef<OsStr>];

/// What a program prints.
pub(super) fn printed(program: &Path, arguments: &Words<'_>) -> String {
    let mut command = Command::new(program);
    for argument in arguments {
        command.arg(argument);
    }
    let output = command.output().expect("the program runs");
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{} failed:\n{text}\n{errors}", program.display());
    text.into_owned()
}

/// What a script in Python prints, as JSON.
pub(super) fn python(name: &str, arguments: &Words<'_>) -> Option<Value> {
    let python = consumer("python/bin/python")?;
    let script = script(name);
    let mut all: Vec<&dyn AsRef<OsStr>> = vec![&script];
    all.extend(arguments);
    let text = printed(&python, &all);
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// Whether documents are what a schema says; none where nobody can tell.
pub(super) fn is_valid(
    flags: &[&str],
    schema: &Path,
    documents: &[PathBuf],
) -> Option<Result<(), String>> {
    let python = consumer("python/bin/python")?;
    let mut command = Command::new(python);
    command.arg(script("schema.py")).args(flags).arg(schema).args(documents);
    let output = command.output().expect("Python runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("Traceback"), "{errors}");
    Some(if output.status.success() { Ok(()) } else { Err(errors) })
}
