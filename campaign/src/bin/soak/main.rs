//! Hours of measuring in one process, while kernels break at random and workers are killed: nothing may be lost.
//!
//! `soak --duration 1h` runs one short suite after the other. Its healthy kernels are pairs whose difference is known; the
//! others draw a fault in every process. Somebody kills workers, or stops them for a while. After every run the rows of the
//! healthy kernels must be there, with verdicts that are right; at the end the process must not have grown.

#![forbid(unsafe_code)]

mod assassin;
mod audit;
mod kernels;
mod usage;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use kbench::measure::Budget;
use kbench::store::Store;
use kbench::{Suite, Workers};

use audit::Audit;
use usage::Usage;

/// Wall time of measuring in one run.
const ROUND: Duration = Duration::from_secs(8);

/// How long a call may take: the faults that hang cost this much each.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// Runs that are kept: the store must not grow either.
const KEPT: usize = 5;

fn main() -> ExitCode {
    let workers = Workers::here();
    let duration = match duration() {
        Ok(duration) => duration,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let _assassin = assassin::start();
    let folder = std::env::temp_dir().join(format!("kbench-soak-{}", std::process::id()));
    let store = Store::at(folder.clone(), "soak");
    let (begun, mut audit) = (Instant::now(), Audit::default());
    let mut usages = vec![];
    for round in 0.. {
        if begun.elapsed() >= duration {
            break;
        }
        if let Err(error) = run(workers, round, &store, &mut audit) {
            audit.complain(format!("run {round}: {error}"));
        }
        usages.push(Usage::now());
        let minutes = begun.elapsed().as_secs_f64() / 60.0;
        eprintln!("{minutes:6.1} min  {audit}  {}", usages[usages.len() - 1]);
    }
    usage::audit(&usages, &mut audit);
    let _ = std::fs::remove_dir_all(folder);
    audit.conclude()
}

/// One suite, looked at and kept.
fn run(
    workers: Workers,
    round: u64,
    store: &Store,
    audit: &mut Audit,
) -> Result<(), Box<dyn std::error::Error>> {
    let suite = Suite::discover()?.configure(|configuration| {
        configuration.workers = workers;
        configuration.seed = round;
        configuration.timeout = TIMEOUT;
        configuration.effort.budget = Budget::Fixed(ROUND);
        configuration.search = None;
    });
    let report = suite.run()?;
    audit.look(&report);
    let path = store.keep_run(&report, None)?;
    store.prune(KEPT, None)?;
    let again = store.baseline(&path.to_string_lossy())?;
    if again.rows.len() != report.rows.len() {
        audit.complain(format!("run {round} has other rows when it is read again"));
    }
    Ok(())
}

/// `--duration 60s`, and nothing else.
fn duration() -> Result<Duration, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = || "write `soak --duration 60s`, with s, m or h".to_owned();
    let [flag, text] = arguments.as_slice() else { return Err(usage()) };
    let unit = text.chars().last().filter(|_| flag == "--duration").ok_or_else(usage)?;
    let seconds = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        _ => return Err(usage()),
    };
    let number: f64 = text[..text.len() - 1].parse().map_err(|_| usage())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| usage())
}
