//! How often does a bracket hold the crossover? Searches on kernels whose crossover is known exactly.
//!
//! `crossovers --runs 100 --output results.jsonl -- --budget 6s` runs each kernel a hundred times with the flags after
//! the dashes, each time with the crossover somewhere else, and appends a line for every search;
//! `crossovers --table results.jsonl` prints what the lines say.

#![forbid(unsafe_code)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kernels of `subject_laws` that have a crossover.
const KERNELS: [&str; 2] = ["affine", "step"];

/// Crossovers are placed between these sizes, evenly in octaves.
const RANGE: (f64, f64) = (1500.0, 150_000.0);

/// One search.
#[derive(Serialize, Deserialize)]
struct Record {
    kernel: String,
    /// The flags that kbench was given.
    flags: String,
    /// Where the crossover is.
    truth: f64,
    /// Every bracket that was found.
    brackets: Vec<Bracket>,
    /// What went wrong.
    error: Option<String>,
    seconds: f64,
}

#[derive(Serialize, Deserialize)]
struct Bracket {
    below: f64,
    above: f64,
    octaves: f64,
}

impl Record {
    /// Whether there is one bracket, and the truth is in it.
    fn is_hit(&self) -> bool {
        matches!(self.brackets.as_slice(), [only] if only.below <= self.truth && self.truth <= only.above)
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let (mut runs, mut seed, mut output) = (10, 1, None);
    let mut flags = Vec::new();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--table" => return table(Path::new(&value()?)),
            "--runs" => runs = value()?.parse().map_err(|_| "--runs takes a number")?,
            "--seed" => seed = value()?.parse().map_err(|_| "--seed takes a number")?,
            "--output" => output = Some(PathBuf::from(value()?)),
            "--" => flags = words.by_ref().collect(),
            other => return Err(format!("there is no flag `{other}`; see the top of this file")),
        }
    }
    let output = output.ok_or("--output names the file that records are added to")?;
    for run in seed..seed + runs {
        for kernel in KERNELS {
            let record = search(kernel, run, &flags)?;
            append(&output, &record)?;
        }
    }
    table(&output)
}

/// A place for the crossover of a run: multiples of the golden section fill the range evenly.
fn truth(run: u64) -> usize {
    let share = (run as f64 * 0.618_033_988_749_895).fract();
    (RANGE.0 * (RANGE.1 / RANGE.0).powf(share)).round() as usize
}

fn search(kernel: &str, run: u64, flags: &[String]) -> Result<Record, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let subject = here.with_file_name("subject_laws");
    let truth = truth(run);
    let begun = Instant::now();
    let output = Command::new(&subject)
        .args(["--kernel", kernel, "--format", "json", "--axis", &format!("at={truth}")])
        .args(["--seed", &run.to_string()])
        .args(flags)
        .output()
        .map_err(|error| format!("{}: {error}", subject.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last: Option<Value> = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    let error = match (&last, output.status.success()) {
        (Some(_), true) => None,
        _ => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
    };
    let found = last.map_or_else(Vec::new, |run| brackets(&run));
    Ok(Record {
        kernel: kernel.to_owned(),
        flags: flags.join(" "),
        truth: truth as f64,
        brackets: found,
        error,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

fn brackets(run: &Value) -> Vec<Bracket> {
    let bracket = |crossing: &Value| {
        Some(Bracket {
            below: crossing["below"]["work"].as_f64()?,
            above: crossing["above"]["work"].as_f64()?,
            octaves: crossing["octaves"].as_f64()?,
        })
    };
    let crossings = run["crossovers"][0]["crossings"].as_array();
    crossings.into_iter().flatten().filter_map(bracket).collect()
}

fn append(path: &Path, record: &Record) -> Result<(), String> {
    let line = serde_json::to_string(record).map_err(|error| error.to_string())?;
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Prints the table of a file of records.
fn table(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = lines(&text)?;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(lines.as_bytes()).map_err(|error| error.to_string())
}

/// For every kernel and set of flags, how often the bracket held the truth and how wide it was.
fn lines(text: &str) -> Result<String, String> {
    let records: Vec<Record> = text
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("`{line}`: {error}")))
        .collect::<Result<_, _>>()?;
    let key = |record: &Record| (record.kernel.clone(), record.flags.clone());
    let mut groups: Vec<(String, String)> = records.iter().map(key).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut lines = String::from(
        "| kernel | flags | holds the truth | no bracket | width, median | width, 95 % | seconds |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for group in groups {
        let of: Vec<&Record> = records.iter().filter(|record| key(record) == group).collect();
        let hits = of.iter().filter(|record| record.is_hit()).count();
        let none = of.iter().filter(|record| record.brackets.is_empty()).count();
        let mut widths: Vec<f64> =
            of.iter().flat_map(|record| record.brackets.iter().map(|b| b.octaves)).collect();
        widths.sort_by(f64::total_cmp);
        let width = |share: f64| {
            let width = widths.get((share * widths.len() as f64) as usize);
            width.map_or("–".to_owned(), |width| format!("{width:.2}"))
        };
        let seconds = of.iter().map(|record| record.seconds).sum::<f64>() / of.len() as f64;
        let (kernel, flags) = group;
        lines += &format!(
            "| {kernel} | {flags} | {hits}/{} | {none} | {} | {} | {seconds:.1} |\n",
            of.len(),
            width(0.5),
            width(0.95)
        );
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_is_that_of_the_published_results() {
        let results = include_str!("../../../results/crossovers-2026-11-15.jsonl");
        let table = lines(results).expect("records");
        let document = include_str!("../../../../docs/crossovers.md");
        assert!(document.contains(&table), "docs/crossovers.md should have\n{table}");
    }

    #[test]
    fn crossovers_are_placed_all_over_the_range() {
        let places: Vec<usize> = (1..=100).map(truth).collect();
        let octaves = (RANGE.1 / RANGE.0).log2().floor() as u32;
        for octave in 0..octaves {
            let from = RANGE.0 * f64::from(octave).exp2();
            let inside = places.iter().filter(|p| (from..2.0 * from).contains(&(**p as f64)));
            assert!(inside.count() > 5, "few crossovers from {from} on");
        }
    }
}
