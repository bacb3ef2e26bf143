//! Runs of `subject_suite`.

use std::path::PathBuf;
use std::process::{self, Command, Output};
use std::time::Instant;
use std::{env, fs};

use crate::document::{self, Document};
use crate::record::Record;

/// The program with the suite, and how it is started.
pub(crate) struct Subject {
    program: PathBuf,
    /// Further flags for kbench.
    flags: Vec<String>,
}

impl Subject {
    /// The program in the folder of this one.
    pub(crate) fn beside_this(flags: &[String]) -> Result<Self, String> {
        let here = env::current_exe().map_err(|error| error.to_string())?;
        Ok(Subject { program: here.with_file_name("subject_suite"), flags: flags.to_vec() })
    }

    /// Runs a suite with a budget of so many seconds for every row.
    pub(crate) fn run(&self, suite: u64, per_row: f64) -> Result<Record, String> {
        let budget = per_row * self.rows(suite)? as f64;
        let document = env::temp_dir().join(format!("suites-{}.json", process::id()));
        let (budget, export) = (format!("{budget:.3}s"), format!("json={}", document.display()));
        let begun = Instant::now();
        let output = self.start(suite, &["--quiet", "--budget", &budget, "--export", &export])?;
        let seconds = begun.elapsed().as_secs_f64();
        let text = fs::read_to_string(&document)
            .map_err(|error| format!("{}: {error}", document.display()));
        // The next run must not find it.
        let _ = fs::remove_file(&document);
        let read = text.and_then(|text| document::read(suite, &text));
        let complaint = match (output.status.success(), &read) {
            (true, Ok(_)) => None,
            (true, Err(error)) => Some(error.clone()),
            (false, _) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        };
        let Document { rows, crossovers } = read.unwrap_or_default();
        let flags = self.flags.join(" ");
        Ok(Record { suite, per_row, flags, seconds, rows, crossovers, error: complaint })
    }

    /// How many rows the flags select.
    fn rows(&self, suite: u64) -> Result<usize, String> {
        let output = self.start(suite, &["--list", "--format", "terse"])?;
        let listed = String::from_utf8_lossy(&output.stdout);
        match listed.lines().filter(|line| line.ends_with(": benchmark")).count() {
            0 => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            rows => Ok(rows),
        }
    }

    fn start(&self, suite: u64, arguments: &[&str]) -> Result<Output, String> {
        Command::new(&self.program)
            .args(["--axis", &format!("suite={suite}"), "--seed", &suite.to_string()])
            .args(arguments)
            .args(&self.flags)
            .output()
            .map_err(|error| format!("{}: {error}", self.program.display()))
    }
}
