//! Half a minute of the soak; ten come before a release, and an hour when something is changed that many runs depend on.

// It reads `/proc` and sends signals.
#![cfg(target_os = "linux")]

use std::process::Command;

#[test]
#[ignore = "slow: half a minute of runs"]
fn half_a_minute_of_random_faults_loses_no_row_and_leaves_nothing_behind() {
    let mut soak = Command::new(env!("CARGO_BIN_EXE_soak"));
    let output = soak.args(["--duration", "30s"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("; 0 complaints"), "{said}");
}
