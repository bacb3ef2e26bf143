//! Runs that are interrupted, and workers that are ended by somebody else.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::{Finished, executable, scratch};

fn program() -> &'static Path {
    executable("faults")
}

/// A run that is going on.
struct Running {
    child: Child,
    home: PathBuf,
}

impl Running {
    fn start(name: &str, arguments: &[&str]) -> Self {
        Self::start_as(Command::new(program()), name, arguments)
    }

    fn start_as(mut command: Command, name: &str, arguments: &[&str]) -> Self {
        let home = scratch(name);
        let _ = fs::remove_dir_all(&home);
        command.arg("--bench").args(["--no-search", "--kernel", "twice"]).args(arguments);
        command.env("KBENCH_HOME", &home).env("NO_COLOR", "1").current_dir(std::env::temp_dir());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        obey_signals(&mut command);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Running { child, home }
    }

    /// Waits until there is a worker, and a moment more; gives its number.
    fn worker(&self, moment: Duration) -> String {
        let path = format!("/proc/{0}/task/{0}/children", self.child.id());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(moment);
            let children = fs::read_to_string(&path).unwrap_or_default();
            if let Some(worker) = children.split_whitespace().next() {
                return worker.to_owned();
            }
        }
        panic!("there is no worker");
    }

    fn signal(&self, name: &str) {
        signal(name, &self.child.id().to_string());
    }

    fn finish(self) -> (Finished, PathBuf) {
        let output = self.child.wait_with_output().expect("an end");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        (Finished { code: output.status.code(), stdout, stderr }, self.home)
    }
}

/// These tests may run behind `nohup` or in the background of a shell, where signals are ignored, and whoever is started
/// there ignores them, too.
#[expect(unsafe_code, reason = "what happens between two processes")]
fn obey_signals(command: &mut Command) {
    // SAFETY: the child calls nothing but `signal`, which may be called there.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

fn signal(name: &str, process: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), process]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{name} {process}");
}

/// Waits until a process is no more, or is nobody's concern but init's.
fn assert_gone(process: &str) {
    let begun = Instant::now();
    let lives = || {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        !status.is_empty() && !status.contains("State:\tZ")
    };
    while lives() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the worker {process} goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The runs that a store has.
fn kept(home: &Path) -> Vec<Value> {
    let folders = fs::read_dir(home.join("runs")).into_iter().flatten().flatten();
    let files =
        folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    texts.map(|text| serde_json::from_str(&text).expect("a document")).collect()
}

/// Long enough to be interrupted.
const LONG: [&str; 6] =
    ["--variant", "twice,added", "--budget", "300s", "--measurement-time", "100s"];

#[test]
fn ctrl_c_keeps_and_reports_what_is_finished() {
    for (name, code, words) in
        [("INT", 130, "Ctrl-C"), ("TERM", 143, "SIGTERM"), ("HUP", 129, "SIGHUP")]
    {
        let running = Running::start(&format!("interrupted-{name}"), &LONG);
        let worker = running.worker(Duration::from_millis(1500));
        running.signal(name);
        let (finished, home) = running.finish();
        finished.assert_code(code);
        finished.assert_says("warning: this run is unfinished: it was interrupted by ");
        finished.assert_says(words);
        finished.assert_says("twice wins");
        let runs = kept(&home);
        assert_eq!(runs.len(), 1, "{}", finished.stderr);
        assert!(runs[0]["unfinished"].as_str().is_some_and(|why| why.contains(words)));
        let times = runs[0]["rows"].as_array().expect("rows").iter();
        assert!(times.filter(|row| row["time_ns"].is_f64()).count() > 0, "{}", finished.stdout);
        assert_gone(&worker);
        let _ = fs::remove_dir_all(home);
    }
}

#[test]
fn an_interrupted_run_does_not_become_a_baseline() {
    let flags = [&LONG[..], &["--save-baseline", "main"]].concat();
    let running = Running::start("interrupted-baseline", &flags);
    running.worker(Duration::from_millis(1000));
    running.signal("INT");
    let (finished, home) = running.finish();
    finished.assert_code(130);
    finished.assert_stderr("the baseline `main` stays as it was, for this run is unfinished");
    assert!(!home.join("baselines/main").exists());
    let _ = fs::remove_dir_all(home);
}

#[test]
fn a_second_ctrl_c_ends_everything_at_once() {
    let flags = ["--variant", "twice,hangs", "--timeout", "600s", "--budget", "300s"];
    let running = Running::start("interrupted-twice", &flags);
    let worker = running.worker(Duration::from_millis(1000));
    running.signal("INT");
    // Two of them at the same moment are one. With one alone it takes seconds before the worker is given up.
    std::thread::sleep(Duration::from_millis(300));
    running.signal("INT");
    let (finished, _) = running.finish();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    assert_eq!(finished.stdout, "", "there is no time for a report");
    assert_gone(&worker);
}

#[test]
fn a_kernel_that_hangs_does_not_keep_a_run_from_ending() {
    let flags = ["--variant", "twice,hangs", "--timeout", "600s", "--budget", "300s"];
    let running = Running::start("interrupted-hang", &flags);
    let worker = running.worker(Duration::from_millis(1000));
    running.signal("INT");
    let begun = Instant::now();
    let (finished, home) = running.finish();
    assert!(begun.elapsed() < Duration::from_secs(60), "it waited for the kernel's ten minutes");
    finished.assert_code(130);
    finished.assert_says("interrupted by Ctrl-C");
    assert_gone(&worker);
    let _ = fs::remove_dir_all(home);
}

#[test]
fn no_worker_outlives_a_controller_that_was_killed() {
    let running = Running::start("killed", &LONG);
    let worker = running.worker(Duration::from_millis(800));
    running.signal("KILL");
    let (finished, home) = running.finish();
    assert_eq!(finished.code, None);
    assert_gone(&worker);
    let _ = fs::remove_dir_all(home);
}

#[test]
fn a_worker_that_somebody_kills_costs_nothing() {
    let flags = ["--variant", "twice,added", "--budget", "6s", "--launches", "4"];
    let running = Running::start("worker-killed", &flags);
    signal("KILL", &running.worker(Duration::from_millis(700)));
    signal("TERM", &running.worker(Duration::from_millis(700)));
    let (finished, home) = running.finish();
    finished.assert_code(0);
    let runs = kept(&home);
    let rows = runs[0]["rows"].as_array().expect("rows");
    assert!(rows.len() == 4 && rows.iter().all(|row| row["status"] == "ok"), "{}", finished.stdout);
    let _ = fs::remove_dir_all(home);
}

#[test]
fn who_ignores_signals_goes_on() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT; exec \"$0\" \"$@\""]).arg(program());
    let flags = ["--variant", "twice,added", "--budget", "6s", "--launches", "4"];
    let running = Running::start_as(shell, "ignored", &flags);
    running.worker(Duration::from_millis(700));
    running.signal("INT");
    let (finished, home) = running.finish();
    finished.assert_code(0);
    let _ = fs::remove_dir_all(home);
}
