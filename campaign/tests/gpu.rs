//! What a run on a GPU looks like from outside: planted faults, modes, flags. Without a device every test says why it is
//! skipped.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};

use kbench::cuda::devices;

/// The program with the kernels: beside this one, where both were carried to another machine, or where cargo built it.
fn subject() -> PathBuf {
    let here = std::env::current_exe().expect("a path");
    let beside = here.with_file_name("subject_gpu");
    if beside.exists() { beside } else { env!("CARGO_BIN_EXE_subject_gpu").into() }
}

fn has_device() -> bool {
    devices().map_err(|reason| eprintln!("skipped: {reason}")).is_ok()
}

fn run(arguments: &[&str]) -> Output {
    Command::new(subject()).args(arguments).output().expect("it starts")
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}

/// Rows of a run by variant and mode, each with its figures by name.
fn rows(arguments: &[&str], code: i32) -> BTreeMap<(String, String), serde_json::Value> {
    let name = arguments.concat().replace(['/', ' ', '='], "_");
    let path = std::env::temp_dir().join(format!("kbench-{}-{name}.json", std::process::id()));
    let export = format!("json={}", path.display());
    let output = run(&[arguments, &["--export", &export]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", text(&output));
    let document = std::fs::read_to_string(&path).expect("the run document");
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    let key = |row: &serde_json::Value| {
        (row["variant"].as_str().unwrap_or("").into(), row["mode"].as_str().unwrap_or("").into())
    };
    let rows = document["rows"].as_array().expect("rows");
    rows.iter().map(|row| (key(row), row.clone())).collect()
}

#[test]
fn every_planted_fault_costs_its_rows_and_no_others() {
    if !has_device() {
        return;
    }
    let rows = rows(&["--kernel", "faults", "--quick", "--budget", "30s", "--no-search"], 100);
    let status = |variant: &str, mode: &str| -> String {
        rows[&(variant.to_owned(), mode.to_owned())]["status"].as_str().unwrap_or("").to_owned()
    };
    assert_eq!(status("faults", "warm"), "ok");
    for mode in ["hot", "cold", "graph", "end-to-end"] {
        assert_eq!(status("right", mode), "ok");
        let remarks = rows[&("right".to_owned(), mode.to_owned())]["remarks"].to_string();
        for wrong in ["disagree", "waits", "leaves the device busy"] {
            assert!(!remarks.contains(wrong), "{mode}: {remarks}");
        }
        for (variant, words) in [
            ("out_of_bounds", "writes out of bounds of `y`"),
            ("unwritten_tail", "of `y` are never written"),
            ("forever", "does not come back within"),
            ("illegal_address", "an illegal memory access was encountered"),
            ("changes_input", "it changes an input that is not an output"),
            ("greedy", "out of device memory: 8.0 TiB are wanted"),
            ("forgetful", "`twice` takes 3 argument(s), and 2 are given"),
            ("misspelt", "      2 |     x = unknown;"),
        ] {
            let found = status(variant, mode);
            assert!(found.starts_with("failed: ") && found.contains(words), "{variant}: {found}");
        }
        let race = status("race", mode);
        assert!(race.contains("relative error") || race.contains("two calls"), "{race}");
    }
    for mode in ["hot", "cold", "end-to-end"] {
        let remarks = rows[&("escapes".to_owned(), mode.to_owned())]["remarks"].to_string();
        let status = status("escapes", mode);
        assert!(remarks.contains("leaves the device busy for"), "{mode}: {status}, {remarks}");
    }
    assert_eq!(status("waits", "hot"), "ok");
    assert!(status("waits", "graph").starts_with("skipped: cannot be recorded in a CUDA graph"));
    let remarks = rows[&("waits".to_owned(), "hot".to_owned())]["remarks"].to_string();
    assert!(remarks.contains("waits for the device within a call"), "{remarks}");
}

#[test]
fn sources_that_were_never_compiled_are_compiled_before_checks_and_kept() {
    if !has_device() {
        return;
    }
    let cache = std::env::temp_dir().join(format!("kbench-empty-cache-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&cache);
    let check = |variant: &str| {
        let arguments = ["--test", "--kernel", "faults", "--variant", variant];
        Command::new(subject()).args(arguments).env("KBENCH_CACHE", &cache).output().expect("runs")
    };
    // The first compiles subject.cu and what kbench has of its own, the second finds it; a mistake is not kept.
    for (variant, code, words) in
        [("right", 0, "ok"), ("right", 0, "ok"), ("misspelt", 100, "misspelt.cu does not compile")]
    {
        let output = check(variant);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(text(&output).contains(words), "{}", text(&output));
        assert!(!text(&output).contains("not compiled yet"), "{}", text(&output));
        assert_eq!(std::fs::read_dir(cache.join("code")).expect("a folder").count(), 2);
    }
    std::fs::remove_dir_all(&cache).expect("it is there");
}

#[test]
fn kernels_that_work_in_place_are_right_in_every_mode_also_after_timing() {
    if !has_device() {
        return;
    }
    for kernel in ["fresh", "reused"] {
        let rows = rows(&["--kernel", kernel, "--quick", "--budget", "30s", "--no-search"], 0);
        assert_eq!(rows.len(), 5, "{kernel}: one on the host, four on the device");
        for ((variant, mode), row) in &rows {
            assert_eq!(row["status"], "ok", "{kernel}/{variant} {mode}");
            assert!(row["time_ns"].as_f64() > Some(0.0), "{kernel}/{variant} {mode}");
        }
    }
}

#[test]
fn a_row_on_a_device_has_all_its_figures() {
    if !has_device() {
        return;
    }
    let rows = rows(&["--kernel", "memory", "--size", "n=1024", "--quick", "--budget", "30s"], 0);
    let row = |mode: &str| &rows[&("memory".to_owned(), mode.to_owned())];
    for mode in ["hot", "cold", "graph"] {
        let share = row(mode)["ceiling_share"].as_f64().expect("a share");
        assert!((0.3..1.05).contains(&share), "{mode}: {share}");
        // What stays in the cache from call to call is not bound by memory alone.
        let binding = if mode == "cold" { "memory" } else { "l2" };
        assert_eq!(row(mode)["ceiling"], binding, "{mode}");
        assert!(row(mode)["host_time_ns"].as_f64() >= row(mode)["time_ns"].as_f64(), "{mode}");
        for figure in ["h2d_ns", "h2d_pinned_ns", "d2h_ns", "d2h_pinned_ns", "device_peak_bytes"] {
            assert!(row(mode)[figure].as_f64() > Some(0.0), "{mode}: {figure}");
        }
        let kernel = &row(mode)["device_kernels"][0];
        assert_eq!(kernel["name"], "memory");
        assert!(kernel["registers"].as_u64() > Some(0) && kernel["spill_bytes"] == 0, "{kernel}");
        assert!(kernel["occupancy"].as_f64() > Some(0.1), "{kernel}");
    }
    assert!(row("end-to-end")["time_ns"].as_f64() > row("cold")["time_ns"].as_f64());
    assert!(row("end-to-end")["ceiling_share"].is_null());
}

#[test]
fn flags_choose_modes_and_devices() {
    if !has_device() {
        return;
    }
    let few = ["--kernel", "arithmetic", "--size", "n=131072", "--quick", "--budget", "30s"];
    let modes: Vec<String> =
        rows(&[&few[..], &["--cold"]].concat(), 0).into_keys().map(|(_, mode)| mode).collect();
    assert!(modes.iter().all(|mode| mode == "cold") && modes.len() == 3, "{modes:?}");
    let off = text(&run(&[&few[..], &["--no-gpu"]].concat()));
    assert!(off.contains("skipped: GPUs are switched off by --no-gpu"), "{off}");
    let missing = text(&run(&[&few[..], &["--device", "77"]].concat()));
    assert!(
        missing.contains("skipped: there is no CUDA device 77; the driver finds: 0 ("),
        "{missing}"
    );
}

/// This one needs no device: without one, too, the reason is what was asked for.
#[test]
fn functions_of_the_host_find_no_device_when_they_are_switched_off() {
    for arguments in [&["--kernel", "looks", "--test"][..], &["--kernel", "looks", "--quick"]] {
        let output = run(&[arguments, &["--no-gpu"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(text(&output).contains("GPUs are switched off by --no-gpu"), "{}", text(&output));
        let output = run(arguments);
        assert!(!text(&output).contains("switched off"), "{}", text(&output));
    }
}

#[test]
fn profiling_calls_every_variant_and_assembly_is_written() {
    if !has_device() {
        return;
    }
    let folder = std::env::temp_dir().join("kbench-gpu-dump");
    let _ = std::fs::remove_dir_all(&folder);
    let dump = folder.display().to_string();
    let output = run(&["--kernel", "arithmetic", "--profile", "--dump", &dump]);
    let told = text(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("subject_gpu::arithmetic/twin/f32/n=131072"), "{told}");
    let written: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().collect();
    let is_subject =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("subject-");
    let file = written.iter().find(|entry| is_subject(entry)).expect("the PTX of subject.cu");
    let ptx = std::fs::read_to_string(file.path()).expect("readable");
    assert!(ptx.contains(".entry arithmetic("), "{ptx}");
}
