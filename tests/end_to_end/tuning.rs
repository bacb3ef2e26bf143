//! What was measured reaches the code that is compiled next.

use std::fs;
use std::path::{Path, PathBuf};

use kbench::environment::Environment;
use kbench::tuning::{TunedThreshold, merge};

use kbench_tests::root;

use super::support::{FAST_BUILD, Finished, cargo};

/// The machine that the little crate is compiled for, unless it is this one.
const MACHINE: &str = "x86_64, \"Test\" \\ 1, 2 cores";

const MANIFEST: &str = r#"
[workspace]

[package]
name = "NAME"
version = "0.0.0"
edition = "2021"

[features]
run = ["kbench/run"]

[dependencies]
kbench = { path = "ROOT", default-features = false }
"#;

/// Prints from where on the dispatcher takes `many`, and what the registry knows about it.
const PROGRAM: &str = r#"
#![forbid(unsafe_code)]
#![deny(warnings)]

#[kbench::kernel_bench(sizes = [4], inputs = |n| n)]
fn few(_: usize) -> bool {
    false
}

#[kbench::kernel_bench(of = few, threshold = tuned(100))]
fn many(_: usize) -> bool {
    true
}

kbench::dispatch! {
    #[kbench::kernel_bench(of = few, name = "auto")]
    fn is_many(n: usize) -> bool {
        match n {
            tuned(100).. => many,
            _ => few,
        }
    }
}

fn main() {
    println!("from {:?}", (0..200).find(|n| is_many(*n)));
    #[cfg(feature = "run")]
    for variant in &kbench::registry::Registry::collect().unwrap().kernels[0].variants {
        if let Some(kbench::kernel::Threshold::Tuned(tuned)) = variant.threshold {
            println!("code {}", variant.code);
            println!("{} by default {}: {:?}", tuned.work, tuned.default, tuned.source);
            println!("{} {:?}", tuned.folder, tuned.file);
        }
    }
}
"#;

/// Variants that take as long as each other at n = 8192, a guess that is far off, and a dispatcher.
const MEASURED: &str = r#"
use kbench::prelude::*;

fn spin(rounds: usize) -> bool {
    let turn = |x: u64, _| x.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17) ^ 0x9e37_79b9;
    std::hint::black_box((0..rounds).fold(std::hint::black_box(1), turn)) != 0
}

#[kernel_bench(sizes = [256, 1024, 16_384, 65_536], inputs = |n| n)]
fn few(n: usize) -> bool {
    spin(n / 4)
}

#[kernel_bench(of = few, threshold = tuned(1 << 15))]
fn many(n: usize) -> bool {
    spin((n + 8192) / 8)
}

kbench::dispatch! {
    #[kernel_bench(of = few, name = "auto", expect = [best >= 0.9])]
    fn is_many(n: usize) -> bool {
        match n {
            tuned(1 << 30).. => many,
            _ => few,
        }
    }
}

kbench::main!(measure);
"#;

/// A crate of its own in a scratch folder, without a tuning file.
struct Crate {
    folder: PathBuf,
    name: String,
}

impl Crate {
    fn new(name: &str) -> Self {
        Crate::of(name, PROGRAM)
    }

    fn of(name: &str, program: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tuning").join(name);
        fs::create_dir_all(folder.join("src")).expect("a folder");
        let _ = fs::remove_file(folder.join("kbench.toml"));
        // A name of its own: crates of one name in one target folder would be taken for each other.
        let name = format!("tuned_{name}");
        let manifest = MANIFEST.replace("ROOT", &root().display().to_string());
        let manifest = manifest.replace("NAME", &name);
        fs::write(folder.join("Cargo.toml"), manifest).expect("a manifest");
        fs::write(folder.join("src/main.rs"), program).expect("a program");
        // The same dependencies as those of the downstream crate: nothing is looked up or built again.
        let lock = root().join("tests/downstream/Cargo.lock");
        fs::copy(lock, folder.join("Cargo.lock")).expect("a lock file");
        Crate { folder, name }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("kbench.toml")
    }

    /// Puts a threshold into the tuning file, as a run with `--tune` does.
    fn tune(&self, machine: &str, value: u64, code: &str) {
        let threshold = TunedThreshold {
            krate: self.name.clone(),
            function: "many".into(),
            kernel: format!("{}::few", self.name),
            base: "few".into(),
            machine: machine.into(),
            value,
            low: value - 1,
            high: value + 1,
            code: code.into(),
            measured: "2026-11-15".into(),
            how: "by hand".into(),
        };
        let existing = fs::read_to_string(self.file());
        let is_new = existing.is_err();
        let text = merge(&existing.unwrap_or_default(), &[threshold]).expect("a tuning file");
        fs::write(self.file(), text).expect("a file");
        if is_new {
            let manifest = self.folder.join("Cargo.toml");
            fs::write(&manifest, fs::read(&manifest).expect("a manifest")).expect("it is touched");
        }
    }

    /// Builds and runs it, for a kind of machine or for this one.
    fn run(&self, features: &[&str], machine: Option<&str>) -> Finished {
        let build = ["run", "--quiet", "--offline", "--release"];
        let mut command = cargo(&[&build[..], &FAST_BUILD, features].concat());
        command.current_dir(&self.folder);
        Finished::of(command.envs(machine.map(|machine| ("KBENCH_MACHINE", machine))))
    }

    #[track_caller]
    fn assert_from(&self, work: u64, machine: Option<&str>) {
        let run = self.run(&[], machine);
        run.assert_code(0);
        run.assert_stdout(&format!("from Some({work})\n"));
    }
}

#[test]
fn a_measured_threshold_holds_after_a_plain_rebuild_on_its_kind_of_machine() {
    let project = Crate::new("production");
    project.assert_from(100, Some(MACHINE));

    project.tune(MACHINE, 40, "");
    project.assert_from(40, Some(MACHINE));
    project.assert_from(100, Some("another"));
    project.tune(MACHINE, 30, "");
    project.assert_from(30, Some(MACHINE));

    // The runtime and the macros agree on what this machine is called.
    project.assert_from(100, None);
    project.tune(&Environment::read().kind(), 20, "");
    project.assert_from(20, None);
    project.assert_from(30, Some(MACHINE));

    fs::remove_file(project.file()).expect("it is there");
    project.assert_from(100, Some(MACHINE));
}

#[test]
fn a_tuning_file_that_cannot_be_understood_is_an_error_at_its_line() {
    let project = Crate::new("malformed");
    for (text, message) in [
        ("format = 2\n", "kbench.toml:1: the file has format 2"),
        (
            "# Words.\n\n[[threshold]]\nvalue = 3\n",
            "kbench.toml:3: this `[[threshold]]` has no `crate`",
        ),
    ] {
        fs::write(project.file(), text).expect("a file");
        let run = project.run(&[], None);
        run.assert_code(101);
        run.assert_stderr(message);
        run.assert_stderr("run with --tune again");
    }
}

#[test]
#[ignore = "slow: builds a nested crate with the runtime"]
fn a_variant_knows_where_its_threshold_is_from() {
    let project = Crate::new("run");
    let run = |machine| {
        let run = project.run(&["--features", "run"], Some(machine));
        run.assert_code(0);
        run
    };
    let folder = project.folder.display();
    let untuned = run(MACHINE);
    untuned.assert_stdout("from Some(100)\n");
    untuned.assert_stdout("100 by default 100: NoFile\n");
    untuned.assert_stdout(&format!("{folder} None\n"));

    let code = untuned.stdout.lines().find_map(|line| line.strip_prefix("code "));
    project.tune(MACHINE, 40, code.expect("a hash"));
    let tuned = run(MACHINE);
    tuned.assert_stdout("from Some(40)\n");
    tuned.assert_stdout("40 by default 100: Measured { on: \"2026-11-15\", low: 39, high: 41 }\n");
    tuned.assert_stdout(&format!("{folder} Some(\"{folder}/kbench.toml\")\n"));

    let foreign = run("another");
    foreign.assert_stdout("from Some(100)\n");
    foreign.assert_stdout(&format!("100 by default 100: Foreign {{ machine: {MACHINE:?} }}\n"));

    project.tune(MACHINE, 30, "0123456789abcdef");
    let stale = run(MACHINE);
    stale.assert_stdout("from Some(30)\n");
    stale.assert_stdout("30 by default 100: Stale { on: \"2026-11-15\" }\n");
}

#[test]
#[ignore = "slow: builds a nested crate with the runtime, and measures it twice"]
fn what_is_measured_is_written_taken_by_the_next_build_and_proved_by_the_next_run() {
    let project = Crate::of("loop", MEASURED);
    let run = |flags: &[&str]| {
        // Long enough to decide beside other tests, too.
        let fixed = ["--features", "run", "--", "--budget", "24s", "--gate", "5%"];
        project.run(&[&fixed[..], flags].concat(), None)
    };
    let first = run(&["--tune"]);
    // The dispatcher takes the wrong variant at the two largest sizes. At the first of them, which is measured as often as
    // all others, the threshold costs a third.
    first.assert_code(102);
    first.assert_stdout("threshold 32768 (default) of many is too high");
    first.assert_stderr("tuned 1 threshold in `");
    let text = fs::read_to_string(project.file()).expect("it was written");
    let value = text.lines().find_map(|line| line.strip_prefix("value = ")).expect("a value");
    let value: u64 = value.parse().expect("a number");
    assert!((4096..=12_000).contains(&value), "{text}");
    assert!(text.contains("function = \"many\""), "{text}");

    // On a busy machine a size may stay undecided: one of three runs must decide all of them, and none may contradict.
    let decides = |_| {
        let second = run(&[]);
        second.assert_code(0);
        second.assert_stdout(&format!("threshold {value} (tuned "));
        assert!(!second.stdout.contains("of many is too"), "{}", second.stdout);
        second.assert_stdout("target `best >= 0.9` of auto: met");
        assert!(!second.stdout.contains("of auto: missed"), "{}", second.stdout);
        second.stdout.contains("target `best >= 0.9` of auto: met\n")
    };
    assert!((0..3).any(decides), "no run decides the target at all sizes");
}
