//! `tests/gpu.sh sanitize` reads the reports of the sanitizer, whose exit code says nothing about the processes below it.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PASSED: &str = "test result: ok. 3 passed; 0 failed";
const CLEAN: &str = "========= ERROR SUMMARY: 0 errors";
const NO_HAZARD: &str = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)";

/// A folder with the script, and a sanitizer that prints this.
fn folder(name: &str, report: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu.sh"), folder.join("gpu.sh"))
        .expect("the script");
    let sanitizer = folder.join("compute-sanitizer");
    fs::write(&sanitizer, format!("#!/bin/sh\ncat <<'END'\n{}\nEND\n", report.join("\n")))
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
