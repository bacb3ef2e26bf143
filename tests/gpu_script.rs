//! `tests/gpu.sh sanitize` reads the reports of the sanitizer, whose exit code says nothing about the processes below it.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kbench_tests::root;

const PASSED: &str = "test result: ok. 3 passed; 0 failed";
const CLEAN: &str = "========= ERROR SUMMARY: 0 errors";
const NO_HAZARD: &str = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)";

/// A row that was given up.
const SLOW: &str = "---- kernels::a::b/b_cuda/f32/n=64 ----\nfailed: does not come back within 20 s\n\n\
                    test result: FAILED. 2 passed; 1 failed; 0 ignored";

/// A folder with the script, and a sanitizer that prints this.
fn folder(name: &str, report: &[&str]) -> PathBuf {
    folder_with(name, &format!("cat <<'END'\n{}\nEND", report.join("\n")))
}

/// The same with a sanitizer that does this.
fn folder_with(name: &str, commands: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::copy(root().join("tests/gpu.sh"), folder.join("gpu.sh")).expect("the script");
    let sanitizer = folder.join("compute-sanitizer");
    fs::write(&sanitizer, format!("#!/bin/sh\n{commands}\n"))
        .and_then(|()| fs::set_permissions(&sanitizer, fs::Permissions::from_mode(0o755)))
        .expect("a sanitizer");
    folder
}

fn sanitize(folder: &Path) -> Output {
    let path = std::env::var("PATH").expect("a path");
    Command::new("bash")
        .arg(folder.join("gpu.sh"))
        .arg("sanitize")
        .env("PATH", format!("{}:{path}", folder.display()))
        .output()
        .expect("bash runs")
}

#[test]
fn clean_reports_of_all_processes_are_needed() {
    let clean = [CLEAN, PASSED, NO_HAZARD, CLEAN];
    let output = sanitize(&folder("clean", &clean));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for (name, wrong) in [
        ("error", "========= ERROR SUMMARY: 1 error"),
        ("hazard", "========= RACECHECK SUMMARY: 10 hazards displayed (10 errors, 0 warnings)"),
    ] {
        let output = sanitize(&folder(name, &[CLEAN, wrong, PASSED]));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(wrong), "{output:?}");
    }
}

/// The script's code and its calls of the sanitizer, when the first `slow` ones of a tool have this report.
fn after_slow(name: &str, tool: &str, slow: usize, report: &str) -> (Option<i32>, String) {
    let commands = format!(
        "echo \"$@\" >> calls\n\
         if [ \"$2\" = {tool} ] && [ $(grep -c {tool} calls) -le {slow} ]; then\n\
         cat <<'END'\n{report}\nEND\nexit 1\nfi\n\
         cat <<'END'\n{PASSED}\n{CLEAN}\nEND"
    );
    let folder = folder_with(name, &commands);
    let _ = fs::remove_file(folder.join("calls"));
    let output = sanitize(&folder);
    (output.status.code(), fs::read_to_string(folder.join("calls")).expect("calls"))
}

#[test]
fn what_was_given_up_is_tried_again_alone() {
    let report = [SLOW, CLEAN].join("\n");
    let (code, calls) = after_slow("slow", "racecheck", 2, &report);
    assert_eq!((code, calls.lines().count()), (Some(0), 4), "{calls}");
    let alone = calls.lines().filter(|call| call.ends_with("--variant b_cuda")).count();
    assert_eq!(alone, 2, "{calls}");
    let (code, calls) = after_slow("always_slow", "racecheck", 100, &report);
    assert_eq!((code, calls.lines().count()), (Some(1), 5), "{calls}");
    let (code, calls) = after_slow("slow_memcheck", "memcheck", 1, &report);
    assert_eq!((code, calls.lines().count()), (Some(1), 2), "{calls}");
}

#[test]
fn no_other_failure_is_tried_again() {
    let wrong = SLOW.replace("1 failed", "2 failed");
    for (name, report) in [
        ("slow_and_wrong", [wrong.as_str(), CLEAN]),
        (
            "slow_and_hazard",
            [SLOW, "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"],
        ),
    ] {
        let (code, calls) = after_slow(name, "racecheck", 100, &report.join("\n"));
        assert_eq!((code, calls.lines().count()), (Some(1), 2), "{calls}");
    }
}

#[test]
fn a_run_that_checked_nothing_is_not_clean() {
    for (name, report) in [
        ("untested", [CLEAN, NO_HAZARD]),
        ("unwatched", [PASSED, ""]),
        ("empty", ["test result: ok. 0 passed; 0 failed", CLEAN]),
    ] {
        let output = sanitize(&folder(name, &report));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}
