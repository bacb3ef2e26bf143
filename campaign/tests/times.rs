//! Recorded device times are of what `subject_times` still has.

use std::path::Path;
use std::process::Command;

/// Entry points of the device code, and the variants that launch them.
const TIMED: [(&str, &str); 4] = [
    ("saxpy", "saxpy_cuda"),
    ("rms_norm", "rms_norm_cuda"),
    ("softmax", "softmax_cuda"),
    ("matmul_tiled", "matmul_cuda_tiled"),
];

/// The sizes of a variant: lines are `module::kernel/variant/type/size: benchmark`.
fn sizes(variant: &str) -> Vec<String> {
    let mut subject = Command::new(env!("CARGO_BIN_EXE_subject_times"));
    let listed = subject.args(["--variant", variant, "--list", "--format", "terse"]).output();
    let listed = String::from_utf8(listed.expect("it starts").stdout).expect("text");
    let names = listed.lines().filter_map(|line| line.strip_suffix(": benchmark"));
    names.filter_map(|name| name.rsplit('/').next()).map(str::to_owned).collect()
}

#[test]
fn every_case_that_was_recorded_can_be_timed_again() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/gpu-yardstick-2026-11-16.csv");
    let recorded = std::fs::read_to_string(path).expect("the record");
    let mut cases = 0;
    for (entry, variant) in TIMED {
        let lines = recorded.lines().filter_map(|line| line.strip_prefix(entry)?.strip_prefix(','));
        let cold = lines.filter(|line| line.contains(",cold,"));
        let expected: Vec<&str> = cold.filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(sizes(variant), expected, "{variant}");
        cases += expected.len();
    }
    assert_eq!(3 * cases, recorded.lines().count() - 1, "three modes of every case, and a header");
}
