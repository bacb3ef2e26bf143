//! The machine around a run: disks that are full or cannot be written, and other runs at the same time.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

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
    runs_at_once(2);
}

#[test]
#[ignore = "slow: ten runs share the processors"]
fn ten_runs_at_once_are_all_kept() {
    runs_at_once(10);
}

fn runs_at_once(count: usize) {
    let home = scratch(&format!("{count}-at-once"));
    let mut runs: Vec<_> = (0..count).map(|_| bench(&home, &["--save-baseline", "main"])).collect();
    let quiet = |run: &mut Command| run.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let started: Vec<_> = runs.iter_mut().map(|run| quiet(run).expect("started")).collect();
    for mut run in started {
        assert_eq!(run.wait().expect("an end").code(), Some(0));
    }
    assert_eq!(fs::read_dir(home.join("runs/downstream.kernels")).expect("made").count(), count);
    check_store(&home);
    let _ = fs::remove_dir_all(home);
}

/// Everything in a store can be read, and nothing of it is a part of a file.
fn check_store(home: &Path) {
    let listed = Finished::of(&mut bench(home, &["--list-baselines"]));
    listed.assert_code(0);
    let runs = fs::read_dir(home.join("runs/downstream.kernels")).into_iter().flatten().flatten();
    let baseline = home.join("baselines/main/downstream.kernels.json");
    for path in runs.map(|run| run.path()).chain([baseline]).filter(|path| path.exists()) {
        let is_draft = |name: &str| name.starts_with(".tmp-");
        if !path.file_name().is_some_and(|name| is_draft(&name.to_string_lossy())) {
            let shown = Finished::of(bench(home, &["--load-baseline"]).arg(&path));
            shown.assert_code(0);
        }
    }
}

/// The processes of this machine that a store is the home of.
#[cfg(target_os = "linux")]
fn processes_of(home: &Path) -> BTreeSet<u32> {
    let home = format!("KBENCH_HOME={}", home.display());
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_ours = |number: &u32| {
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    numbers.filter(is_ours).collect()
}

/// A run that is killed leaves a store that can be read, and no process, whatever it was doing: beginning, checking, measuring,
/// keeping its program, writing its run.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow: twelve runs, each killed after a longer while"]
fn a_run_may_be_killed_at_any_moment() {
    let home = scratch("killed-runs");
    for trial in 0..12 {
        let mut run = bench(&home, &["--save-baseline", "main", "--keep", "3"]);
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        // From the first moments of a process to after the end of a run of 2 s.
        std::thread::sleep(Duration::from_millis(7 + 271 * trial));
        let _ = run.kill();
        run.wait().expect("an end");
        let begun = std::time::Instant::now();
        while !processes_of(&home).is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?} go on", processes_of(&home));
            std::thread::sleep(Duration::from_millis(20));
        }
        check_store(&home);
    }
    Finished::of(&mut bench(&home, &["--save-baseline", "main"])).assert_code(0);
    check_store(&home);
    assert!(home.join("baselines/main/downstream.kernels.json").exists());
    let _ = fs::remove_dir_all(home);
}

/// A run with its store in a file system that a shell makes for it alone; none, with a reason that is printed, where that is
/// not allowed.
#[cfg(target_os = "linux")]
fn in_file_system(name: &str, prepare: &str, arguments: &[&str]) -> Option<Finished> {
    let folder = scratch(name);
    fs::create_dir_all(&folder).expect("a folder");
    let script = format!(
        "mount -t tmpfs -o size=64k none \"$KBENCH_HOME\" && {prepare} && exec \"$0\" \"$@\""
    );
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.env("KBENCH_HOME", &folder);
        command
    };
    let try_out = unshare("mount -t tmpfs -o size=64k none \"$KBENCH_HOME\"").output();
    if !try_out.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this system lets no user mount a file system");
        return None;
    }
    let run = bench(&folder, arguments);
    let mut command = unshare(&script);
    command.arg(run.get_program()).args(run.get_args());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let elsewhere = folder.with_extension("elsewhere");
    fs::create_dir_all(&elsewhere).expect("a folder");
    let run = Finished::of(command.env("TMPDIR", &elsewhere));
    let rescued = fs::read_dir(&elsewhere).expect("a folder").count();
    assert_eq!(rescued, usize::from(run.stderr.contains("--load-baseline reads it there")));
    let _ = (fs::remove_dir_all(folder), fs::remove_dir_all(elsewhere));
    Some(run)
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_system_that_is_full_costs_the_files_and_not_the_report() {
    let fill = "head -c 60000 /dev/zero > \"$KBENCH_HOME/filler\"";
    let Some(run) = in_file_system("full-system", fill, &[]) else { return };
    run.assert_code(1);
    run.assert_stdout("downstream::dot  f32");
    run.assert_stderr("No space left on device");
    run.assert_stderr("--load-baseline reads it there");
    let baseline = in_file_system("full-baseline", fill, &["--save-baseline", "main"]);
    let baseline = baseline.expect("it was made before");
    baseline.assert_code(1);
    assert!(baseline.stdout.is_empty(), "nothing is measured in vain\n{}", baseline.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_system_that_is_read_only_is_a_warning_before_the_run() {
    let lock = "mount -o remount,ro \"$KBENCH_HOME\"";
    let Some(run) = in_file_system("read-only", lock, &[]) else { return };
    run.assert_code(0);
    run.assert_stdout("downstream::dot  f32");
    run.assert_stderr("warning: this run will not be kept: ");
    run.assert_stderr("Read-only file system");
}
