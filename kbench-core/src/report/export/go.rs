//! Go's benchmark format, for benchstat: one line for every sample, so that it makes its own statistics of them.
//!
//! Also read by github-action-benchmark (`tool: go`) and by Bencher (`go_bench`). What they stumble over:
//!
//! * benchstat makes a table for every set of `key: value` lines, so what differs from run to run (date, commit, warnings)
//!   is in comments, and only what makes times incomparable (system, processor, device) is in keys.
//! * Bencher reads the first value of a line alone, so that is the time.
//! * A number after the last dash of a name means GOMAXPROCS and takes the row out of its company; threads have a key, and
//!   the last key, the mode, does not end in a number.
//! * A unit that benchstat does not know has no better side until a `Unit` line tells it.
//! * A line beyond 64 KiB ends the reading; names and comments are far shorter.
//!
//! Rows that were listed are in it. What failed or was skipped is in comments.

use std::fmt::Write;

use super::rows::{Name, Timed, listed, part};
use super::{moment, one_line};
use crate::environment::Environment;
use crate::report::index::Index;
use crate::report::{DeviceReport, Report, RowReport, Status};

/// Keys that every name has; an axis of such a name gets another.
const KEYS: [&str; 6] = ["variant", "type", "threads", "mode", "machine", "again"];

/// The report as Go's benchmark format.
pub(super) fn go(report: &Report) -> String {
    let mut text = String::new();
    for (key, value) in [
        ("run", report.run.clone()),
        ("date", moment(report.started) + "Z"),
        ("commit", report.environment.git_commit.clone().unwrap_or_else(|| "unknown".into())),
        ("command", report.command.join(" ")),
        ("seed", report.seed.to_string()),
    ] {
        let _ = writeln!(text, "# {key}: {}", one_line(&value));
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "# warning: {}", one_line(warning));
    }
    if report.parts.is_empty() {
        text += &keys(&report.environment, report.device.as_ref());
    }
    text += "Unit FLOP/s better=higher\nUnit rel-err better=lower assume=exact\n\n";
    let parts = Index::new(&report.parts, |part| Some(&part.machine));
    let mut machine = None;
    for named in listed(report) {
        let row = named.row;
        if machine != row.machine {
            machine.clone_from(&row.machine);
            let of_row = parts.of(&row.machine.as_ref()).first();
            text += &of_row.map_or_else(String::new, |p| keys(&p.environment, p.device.as_ref()));
        }
        match &row.status {
            Status::Ok | Status::Unchecked(_) => {
                text += &Timed::of(named).map_or_else(String::new, |row| lines(&row))
            }
            status => {
                let _ = writeln!(text, "# {} {}", named.name, one_line(&status.to_string()));
            }
        }
    }
    text
}

/// What makes times comparable. A key without a value is taken away: the machine before may have had a device.
fn keys(environment: &Environment, device: Option<&DeviceReport>) -> String {
    let (system, architecture) = target(&environment.target);
    let (system, architecture) = (one_line(system), one_line(architecture));
    let cpu = one_line(&environment.cpu);
    let gpu = device.map_or_else(String::new, |device| format!(" {}", one_line(&device.info.name)));
    format!("goos: {system}\ngoarch: {architecture}\ncpu: {cpu}\ngpu:{gpu}\n")
}

/// Operating system and architecture as Go calls them, where that differs from Rust.
fn target(triple: &str) -> (&str, &str) {
    let mut parts = triple.split('-');
    let architecture = match parts.next().unwrap_or_default() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i686" => "386",
        other => other,
    };
    let system = match parts.nth(1).unwrap_or("unknown") {
        "macos" => "darwin",
        other => other,
    };
    (system, architecture)
}

fn lines(timed: &Timed<'_>) -> String {
    let name = name(&timed.name, timed.row);
    let row = timed.row;
    let mut constant = String::new();
    for (figure, unit) in [
        (row.check.error, "rel-err"),
        (row.memory.allocated_bytes.map(|bytes| bytes as f64), "B/op"),
        (row.memory.allocations.map(|count| count as f64), "allocs/op"),
    ] {
        if let Some(figure) = figure.filter(|figure| figure.is_finite()) {
            let _ = write!(constant, "\t{figure} {unit}");
        }
    }
    let mut text = String::new();
    for sample in &timed.samples {
        let _ = write!(text, "{name}\t{}\t{sample} ns/op", timed.calls);
        for (rate, unit) in [(row.bytes_per_s, "B/s"), (row.flops_per_s, "FLOP/s")] {
            let of_sample = rate.map(|rate| rate * timed.time / sample);
            if let Some(rate) = of_sample.filter(|rate| rate.is_finite()) {
                let _ = write!(text, "\t{rate:.0} {unit}");
            }
        }
        text += &(constant.clone() + "\n");
    }
    text
}

/// `BenchmarkCrate::kernel/variant=…/type=…/axis=…/threads=…/mode=…`.
fn name(name: &Name, row: &RowReport) -> String {
    let mut parts = name.implementation.split(',');
    let variant = parts.next().unwrap_or_default();
    let mut text =
        format!("Benchmark{}/variant={variant}/type={}", capital(&name.kernel), name.element);
    text += &axes(&name.size);
    // The machine, and the like.
    for rest in parts.filter(|part| !part.starts_with("threads=") && !part.starts_with("mode=")) {
        text += &format!("/{rest}");
    }
    text + &format!("/threads={}/mode={}", row.threads, part(&row.mode, ""))
}

/// A key for every axis; one for a size that has none.
fn axes(size: &str) -> String {
    let pairs: Option<Vec<(&str, &str)>> =
        size.split(',').map(|axis| axis.split_once('=')).collect();
    match pairs.filter(|pairs| pairs.iter().all(|(_, value)| !value.contains('='))) {
        Some(pairs) => pairs
            .iter()
            .map(|(axis, value)| {
                let prefix = if KEYS.contains(axis) { "axis-" } else { "" };
                format!("/{prefix}{axis}={value}")
            })
            .collect(),
        None => format!("/size={}", size.replace(',', "%2C").replace('=', "%3D")),
    }
}

/// A name that begins with a capital, as Go wants it; different names remain different.
fn capital(kernel: &str) -> String {
    let (first, rest) = kernel.split_at(kernel.len().min(1));
    match first.chars().next() {
        Some(letter) if letter.is_ascii_lowercase() => {
            format!("{}{rest}", letter.to_ascii_uppercase())
        }
        _ => format!("X%{:02X}{rest}", first.bytes().next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{awkward, fixture};
    use super::*;

    #[test]
    fn a_line_is_a_sample_with_its_time_first() {
        let text = go(&fixture());
        let line = "BenchmarkKernels::elementwise::saxpy::saxpy/variant=saxpy_rayon/type=f32/n=1024\
                    /threads=2/mode=warm\t";
        let samples: Vec<&str> = text.lines().filter(|found| found.starts_with(line)).collect();
        let report = fixture();
        let row = report.rows.iter().find(|row| row.variant == "saxpy_rayon" && row.threads == 2);
        let row = row.expect("a row");
        assert_eq!(samples.len(), row.raw.samples.iter().flatten().flatten().count());
        let fields: Vec<&str> = samples[0].split_whitespace().collect();
        assert_eq!(fields[2], row.raw.samples[0][0][0].to_string());
        assert_eq!(
            [fields[3], fields[5], fields[7], fields[9]],
            ["ns/op", "B/s", "FLOP/s", "rel-err"]
        );
        assert_eq!(fields.len() % 2, 0);
    }

    #[test]
    fn what_changes_from_run_to_run_is_no_key() {
        let text = go(&fixture());
        let is_key = |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase());
        let keys: Vec<&str> =
            text.lines().filter(is_key).filter_map(|line| Some(line.split_once(':')?.0)).collect();
        assert_eq!(keys, ["goos", "goarch", "cpu", "gpu"]);
        assert!(text.contains("goos: linux\ngoarch: amd64\n"));
    }

    #[test]
    fn awkward_names_are_single_words() {
        for line in go(&awkward()).lines().filter(|line| line.starts_with("Benchmark")) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            assert!(fields[0].is_ascii() && fields[1].parse::<u64>().is_ok(), "{line}");
            assert!(fields.len().is_multiple_of(2) && fields[3] == "ns/op", "{line}");
            assert!(line.len() < 4096, "{line}");
        }
    }

    #[test]
    fn every_axis_is_a_key_of_its_own() {
        assert_eq!(axes("rows=64,dim=1024"), "/rows=64/dim=1024");
        assert_eq!(axes("threads=4"), "/axis-threads=4");
        assert_eq!(axes("a,b=c=1"), "/size=a%2Cb%3Dc%3D1");
    }

    #[test]
    fn names_begin_with_a_capital_and_stay_apart() {
        let kernels = ["foo", "Foo", "_foo", "%66oo", "x%46oo"];
        let names = kernels.map(|kernel| capital(&part(kernel, "")));
        assert_eq!(names[0], "Foo");
        for (index, name) in names.iter().enumerate() {
            assert!(name.starts_with(|c: char| c.is_ascii_uppercase()), "{name}");
            assert!(!names[..index].contains(name), "{names:?}");
        }
    }
}
