//! How well is a whole suite judged? Runs of `subject_suite`, whose truth is known.
//!
//! A value enters as a suite's number and leaves as a table:
//!
//! ```text
//! subject → document → record → score → table
//! ```
//!
//! What a verdict counts as, and what the figures mean, is in `score`.

#![forbid(unsafe_code)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod document;
mod record;
mod score;
mod subject;
mod table;

use record::Record;
use subject::Subject;

const HELP: &str = "\
Measures suites of 544 rows whose truth is known, and judges what kbench says of them.

Usage: suites --output FILE [FLAGS] [-- FLAGS OF KBENCH]
       suites --table FILE

  --suites N          how many suites (default 20)
  --first N           number of the first one (default 1)
  --per-row TIME,...  budget of a suite divided by its rows, as 0.2s or 200ms;
                      may be repeated (default 0.2s)
  --output FILE       where a line of JSON is appended for every run
  --table FILE        prints the table of such a file and measures nothing
  --help              this text
";

/// As of kbench: the command line makes no sense.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    match fulfil() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(USAGE)
        }
    }
}

/// What is to be measured.
struct Plan {
    first: u64,
    suites: u64,
    /// Seconds.
    per_row: Vec<f64>,
    output: Option<PathBuf>,
    /// For kbench.
    flags: Vec<String>,
}

fn fulfil() -> Result<(), String> {
    let mut plan =
        Plan { first: 1, suites: 20, per_row: Vec::new(), output: None, flags: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value; see --help"));
        match word.as_str() {
            "--help" | "-h" => return print(HELP),
            "--table" => return print_table(Path::new(&value()?)),
            "--suites" => plan.suites = value()?.parse().map_err(|_| "--suites takes a number")?,
            "--first" => plan.first = value()?.parse().map_err(|_| "--first takes a number")?,
            "--per-row" => plan.per_row.extend(times(&value()?)?),
            "--output" => plan.output = Some(PathBuf::from(value()?)),
            "--" => plan.flags = words.by_ref().collect(),
            other => return Err(format!("there is no flag `{other}`; see --help")),
        }
    }
    if plan.per_row.is_empty() {
        plan.per_row.push(0.2);
    }
    measure(&plan)
}

fn times(list: &str) -> Result<Vec<f64>, String> {
    let time = |text: &str| {
        let time = campaign::duration(text.trim());
        let time = time.ok_or_else(|| format!("--per-row takes times such as 0.2s, not `{text}`"));
        time.map(|time| time.as_secs_f64())
    };
    list.split(',').map(time).collect()
}

fn measure(plan: &Plan) -> Result<(), String> {
    let output = plan.output.as_ref().ok_or("--output names the file that records are added to")?;
    let subject = Subject::beside_this(&plan.flags)?;
    for suite in plan.first..plan.first.saturating_add(plan.suites) {
        for &per_row in &plan.per_row {
            eprint!("suite {suite}, {per_row} s per row: ");
            let record = subject.run(suite, per_row)?;
            append(output, &record)?;
            let error = record.error.as_deref().unwrap_or("");
            eprintln!("{} rows, {:.1} s {error}", record.rows.len(), record.seconds);
        }
    }
    print_table(output)
}

fn append(path: &Path, record: &Record) -> Result<(), String> {
    let line = serde_json::to_string(record).map_err(|error| error.to_string())?;
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn print_table(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    print(&table::table(&record::read(&text)?))
}

fn print(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
}
