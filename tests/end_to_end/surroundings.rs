//! The machine around a run: disks that are full or cannot be written, and other runs at the same time.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::support::{self, Finished, executable, scratch};

/// A short run with a store of its own.
fn bench(home: &Path, arguments: &[&str]) -> Command {
    let common = ["--quick", "--budget", "2s", "--kernel", "dot", "--no-search"];
    let mut command = support::bench("kernels", &[&common[..], arguments].concat());
    command.env("KBENCH_HOME", home);
    command
}

/// No file may have more than a few kilobytes: writing fails as it does on a full disk, in the middle of a file.
#[test]
fn a_full_disk_costs_the_files_and_not_the_report() {
    let home = scratch("full-disk");
    let export = scratch("full-disk.json");
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(executable("kernels"));
    command.args(["--bench", "--quick", "--budget", "2s", "--kernel", "dot"]);
    command.arg("--export").arg(format!("json={}", export.display()));
    let run = Finished::of(command.env("KBENCH_HOME", &home).env("NO_COLOR", "1"));
    run.assert_code(1);
    run.assert_stdout("downstream::dot  f32");
    run.assert_stderr("error: this run is not kept: ");
    run.assert_stderr("cannot be written: File too large");
    assert!(!export.exists(), "a part of a file is worse than none");
    let left = fs::read_dir(home.join("runs/downstream.kernels")).into_iter().flatten().count();
    assert_eq!(left, 0, "nothing is left of a file that could not be finished");
    let _ = fs::remove_dir_all(home);
}

#[test]
fn a_run_that_the_store_does_not_take_is_rescued() {
    let (home, elsewhere) = (scratch("lost-home"), scratch("elsewhere"));
    fs::create_dir_all(&home).expect("a folder");
    fs::create_dir_all(&elsewhere).expect("a folder");
    // A file where a folder should be: nobody can write there, not even root.
    fs::write(home.join("runs"), "").expect("a file");
    let run = Finished::of(bench(&home, &[]).env("TMPDIR", &elsewhere));
    run.assert_code(1);
    run.assert_stdout("downstream::dot  f32");
    run.assert_stderr("error: this run is not kept: ");
    run.assert_stderr("--load-baseline reads it there");
    let rescued: Vec<_> = fs::read_dir(&elsewhere).expect("a folder").flatten().collect();
    assert_eq!(rescued.len(), 1);
    let path = rescued[0].path();
    let again = Finished::of(bench(&home, &["--load-baseline"]).arg(&path));
    again.assert_code(0);
    again.assert_stdout("downstream::dot  f32");
    let _ = (fs::remove_dir_all(home), fs::remove_dir_all(elsewhere));
}

#[test]
fn a_store_that_cannot_be_made_is_a_warning_before_the_run_and_an_error_for_a_baseline() {
    let file = scratch("a-file");
    fs::write(&file, "").expect("a file");
    let home = file.join("kbench");
    let run = Finished::of(&mut bench(&home, &[]));
    run.assert_code(0);
    run.assert_stderr("warning: this run will not be kept: ");
    run.assert_stdout("downstream::dot  f32");
    let baseline = Finished::of(&mut bench(&home, &["--save-baseline", "main"]));
    baseline.assert_code(1);
    assert!(baseline.stdout.is_empty(), "nothing is measured in vain\n{}", baseline.stdout);
    let _ = fs::remove_file(file);
}

#[test]
fn a_missing_folder_is_made() {
    let home = scratch("missing").join("deep/er");
    Finished::of(&mut bench(&home, &[])).assert_code(0);
    assert_eq!(fs::read_dir(home.join("runs/downstream.kernels")).expect("made").count(), 1);
    let _ = fs::remove_dir_all(scratch("missing"));
}

#[test]
fn two_runs_at_once_are_both_kept() {
    let home = scratch("two-at-once");
    let mut runs: Vec<_> = (0..2).map(|_| bench(&home, &["--save-baseline", "main"])).collect();
    let quiet = |run: &mut Command| run.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let started: Vec<_> = runs.iter_mut().map(|run| quiet(run).expect("started")).collect();
    for mut run in started {
        assert_eq!(run.wait().expect("an end").code(), Some(0));
    }
    assert_eq!(fs::read_dir(home.join("runs/downstream.kernels")).expect("made").count(), 2);
    let listed = Finished::of(&mut bench(&home, &["--load-baseline", "main"]));
    listed.assert_code(0);
    let _ = fs::remove_dir_all(home);
}
