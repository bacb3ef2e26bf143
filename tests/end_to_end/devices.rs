//! Machines with half of what CUDA needs: a driver library of our own says what we want to hear.

use std::path::{Path, PathBuf};
use std::process::Command;

use kbench_tests::{built, root};

use crate::support::Finished;

/// A library that answers what a driver is asked first, and nothing else.
const DRIVER: &str = r"
int cuDriverGetVersion(int* version) { *version = VERSION; return 0; }
int cuInit(unsigned flags) { (void)flags; return INIT; }
int cuDeviceGetCount(int* count) { *count = COUNT; return 0; }
int cuDeviceGet(int* device, int ordinal) { (void)device; (void)ordinal; return 999; }
";

/// A machine on which the driver says so.
struct Machine {
    version: u32,
    init: u32,
    count: u32,
}

const MODERN: Machine = Machine { version: 13_000, init: 0, count: 1 };

impl Machine {
    /// The folder of its library.
    fn library(&self) -> PathBuf {
        let Machine { version, init, count } = self;
        let name = format!("driver-{version}-{init}-{count}");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let source = folder.join("driver.c");
        std::fs::write(&source, DRIVER).expect("a file");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(folder.join("libcuda.so.1"))
            .args([format!("-DVERSION={version}"), format!("-DINIT={init}")])
            .arg(format!("-DCOUNT={count}"))
            .arg(&source)
            .status();
        assert!(compiled.expect("a C compiler").success());
        folder
    }

    /// CUDA variants, checked on this machine.
    fn run(&self) -> Finished {
        program(&["--test", "--variant", "saxpy_cuda"], Some(&self.library()))
    }
}

/// A small program that has CUDA variants, on a machine without CUDA but for what is in a folder.
fn program(arguments: &[&str], library: Option<&Path>) -> Finished {
    run_in(built(), arguments, library)
}

/// The same, built so that a panic ends the process: none can be caught.
fn program_that_aborts(arguments: &[&str], library: Option<&Path>) -> Finished {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aborting");
    let target = folder.to_str().expect("a path in Unicode");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "campaign", "--bin", "subject_times"])
        .args(["--config", "profile.dev.panic=\"abort\"", "--config", "profile.dev.opt-level=0"])
        .args(["--target-dir", target])
        .current_dir(root())
        .status();
    assert!(built.expect("cargo").success());
    run_in(&folder.join("debug"), arguments, library)
}

fn run_in(folder: &Path, arguments: &[&str], library: Option<&Path>) -> Finished {
    let mut command = Command::new(folder.join("subject_times"));
    command.args(arguments).env_remove("LD_LIBRARY_PATH").env_remove("CUDA_PATH");
    command.env_remove("CUDA_HOME").env_remove("CUDA_ROOT");
    if let Some(library) = library {
        command.env("LD_LIBRARY_PATH", library);
    }
    Finished::of(&mut command)
}

/// Every CUDA variant is skipped for a reason that begins like this, and nothing panics.
#[track_caller]
fn assert_skipped(run: &Finished, reason: &str) {
    run.assert_code(0);
    run.assert_stdout(&format!("saxpy/saxpy_cuda/f32/n=1024 ... ignored, {reason}"));
    run.assert_stdout("test result: ok. 0 passed; 0 failed; 5 ignored;");
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
}

/// Whether this machine has a driver of its own, which nothing here can take away.
fn has_driver() -> bool {
    let output = program(&["--test", "--variant", "saxpy_cuda"], None);
    let has = !output.stdout.contains("no CUDA driver");
    if has {
        eprintln!("skipped: this machine has a CUDA driver");
    }
    has
}

#[test]
fn every_lack_has_its_own_reason() {
    if has_driver() {
        return;
    }
    let without = program(&["--test", "--variant", "saxpy_cuda"], None);
    assert_skipped(&without, "no CUDA driver: libcuda.so.1 is not found");
    let old = Machine { version: 12_040, ..MODERN };
    let too_old = "the CUDA driver is too old: it speaks CUDA 12.4, and kbench needs 13.0";
    assert_skipped(&old.run(), too_old);
    assert_skipped(&Machine { init: 100, ..MODERN }.run(), "no CUDA device: ");
    assert_skipped(&Machine { count: 0, ..MODERN }.run(), "no CUDA device: ");
    let broken = Machine { init: 803, ..MODERN }.run();
    assert_skipped(&broken, "the CUDA driver does not start: ");
    let compiler = MODERN.run();
    let has_compiler = !compiler.stdout.contains("no NVRTC");
    let reason = if has_compiler { "the CUDA driver does not start: " } else { "no NVRTC: " };
    assert_skipped(&compiler, reason);
}

#[test]
#[ignore = "slow: builds everything so that a panic aborts"]
fn nothing_panics_that_nobody_could_catch() {
    if has_driver() {
        return;
    }
    let test = ["--test", "--variant", "saxpy_cuda"];
    assert_skipped(&program_that_aborts(&test, None), "no CUDA driver: libcuda.so.1 is not found");
    let no_device = Machine { count: 0, ..MODERN }.library();
    assert_skipped(&program_that_aborts(&test, Some(&no_device)), "no CUDA device: ");
    let list = program_that_aborts(&["--list", "--variant", "saxpy_cuda"], Some(&no_device));
    list.assert_code(0);
    list.assert_stdout("saxpy/saxpy_cuda/f32/n=1024: benchmark");
    let few = ["--kernel", "saxpy", "--size", "n=1024", "--quick", "--budget", "1s"];
    let run = program_that_aborts(&few, Some(&MODERN.library()));
    run.assert_code(0);
    run.assert_stdout("1 measured, 0 failed, 1 skipped");
}

#[test]
fn gpus_can_be_switched_off() {
    let off = program(&["--test", "--variant", "saxpy_cuda", "--no-gpu"], None);
    assert_skipped(&off, "GPUs are switched off by --no-gpu");
}

#[test]
fn listing_touches_no_hardware_and_names_a_variant_once_per_size() {
    let list = program(&["--list", "--format", "terse", "--kernel", "saxpy"], None);
    list.assert_code(0);
    let names: Vec<&str> = list.stdout.lines().filter(|l| l.contains("/saxpy_cuda/")).collect();
    assert_eq!(names.len(), 5, "{}", list.stdout);
}

#[test]
fn a_skipped_variant_is_one_row_of_a_run() {
    if has_driver() {
        return;
    }
    let arguments = ["--kernel", "saxpy", "--size", "n=1024", "--quick", "--budget", "1s"];
    let run = program(&arguments, None);
    run.assert_code(0);
    run.assert_stdout("saxpy_cuda: skipped: no CUDA driver");
    run.assert_stdout("1 measured, 0 failed, 1 skipped");
}
