//! Processes that keep runs are killed at moments of all kinds, most of them while they write: whatever is in the store can
//! be read, and the store goes on.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use kbench_core::report::Report;
use kbench_core::store::{Store, read_document, read_run};

/// Processes that are killed.
const TRIALS: u64 = 20;

/// Rows of the run that is kept: enough that writing it takes most of a process's life.
const ROWS: usize = 600;

/// Whose runs they are.
const PROGRAM: &str = "killed";

/// The folder of the store, for a process that keeps runs.
const FOLDER: &str = "KEEP_RUNS_IN";

fn main() -> ExitCode {
    if let Some(folder) = env::var_os(FOLDER) {
        keep(&Store::at(folder, PROGRAM));
        return ExitCode::FAILURE;
    }
    // It is a quick test: there is nothing to do where slow ones are asked for.
    if env::args().any(|argument| argument == "--ignored") {
        return ExitCode::SUCCESS;
    }
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("killed-{}", std::process::id()));
    let store = Store::at(&folder, PROGRAM);
    let mut halves = 0;
    for trial in 0..TRIALS {
        kill_one(&folder, trial);
        halves += unfinished(&folder);
        check(&store);
    }
    let kept = store.runs().len();
    assert!(kept > 0, "some runs were kept before their process was killed");
    assert!(halves > 0, "some processes were killed while they wrote");
    let name = "afterwards".to_owned();
    store.keep_run(&Report { run: name, ..large() }, Some("newest")).expect("the store goes on");
    check(&store);
    fs::remove_dir_all(&folder).expect("removed");
    eprintln!("1 passed, 0 failed: {TRIALS} processes killed, {halves} of them while they wrote");
    ExitCode::SUCCESS
}

/// Keeps one run after the other, each under a name of its own.
fn keep(store: &Store) {
    let mut report = large();
    for number in 0.. {
        report.run = format!("{}-{number}", std::process::id());
        store.keep_run(&report, Some("newest")).expect("kept");
        store.prune(3, None).expect("pruned");
    }
}

fn large() -> Report {
    let mut report =
        read_document(include_str!("../src/store/fixtures/schema-1.json")).expect("readable");
    let row = report.rows[0].clone();
    report.rows.extend((0..ROWS).map(|_| row.clone()));
    report
}

fn kill_one(folder: &Path, trial: u64) {
    let program = env::current_exe().expect("this program");
    let mut child =
        Command::new(program).env(FOLDER, folder).stdout(Stdio::null()).spawn().expect("started");
    if trial.is_multiple_of(2) {
        std::thread::sleep(Duration::from_millis(23 * trial + 150));
    } else {
        wait_for_writing(folder, child.id());
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
}

/// Waits until a process has kept a run and the next one is on its way, for a minute at most.
fn wait_for_writing(folder: &Path, process: u32) {
    let begun = Instant::now();
    let first = folder.join("runs").join(PROGRAM).join(format!("{process}-0.json"));
    let mut has_kept = false;
    while begun.elapsed() < Duration::from_secs(60) {
        has_kept |= first.exists();
        if has_kept && !halves(folder).is_empty() {
            break;
        }
    }
}

/// Files that are on their way to their places.
fn halves(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("runs").join(PROGRAM))
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let is_half = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".tmp-"))
    };
    entries.map(|entry| entry.path()).filter(is_half).collect()
}

/// Files that were on their way when a process was killed; they are removed, to count those of the next.
fn unfinished(folder: &Path) -> usize {
    halves(folder).iter().filter(|path| fs::remove_file(path).is_ok()).count()
}

/// Every run and every baseline can be read.
fn check(store: &Store) {
    for (name, path) in store.runs() {
        let run = read_run(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(run.rows.len() > ROWS, "{name}");
    }
    for name in store.baselines() {
        store.baseline(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
