//! Variants in other languages: NumPy, and JAX for the types that NumPy does not have.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kbench_tests::{example_command, root};

use crate::support::{Finished, executable, read_csv, scratch};

/// A Python that has NumPy and JAX; none, with a reason that is printed, where it is not installed.
fn python() -> Option<PathBuf> {
    let consumers = std::env::var_os("KBENCH_CONSUMERS").map(PathBuf::from);
    let python = consumers.map(|folder| folder.join("python/bin/python"));
    let found = python.filter(|python| python.is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("KBENCH_REQUIRE_CONSUMERS").is_none(),
            "there is no Python with NumPy, and KBENCH_REQUIRE_CONSUMERS is set"
        );
        eprintln!(
            "skipped: KBENCH_CONSUMERS names no folder with a Python that has NumPy; .ci/consumers makes one"
        );
    }
    found
}

/// The bench target with a worker, in a folder of its own.
struct Bench {
    program: PathBuf,
    worker: String,
    folder: PathBuf,
}

impl Bench {
    fn with(variants: &str, name: &str) -> Option<Self> {
        let python = python()?;
        let file = root().join("tests/foreign").join(variants);
        let worker = format!("py='{}' '{}'", python.display(), file.display());
        let folder = scratch(name);
        fs::create_dir_all(&folder).expect("a folder");
        Some(Bench { program: executable("foreign").to_owned(), worker, folder })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--worker", &self.worker]).current_dir(&self.folder);
        command.env("KBENCH_HOME", &self.folder).env("NO_COLOR", "1");
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        Finished::of(&mut self.command(arguments))
    }
}

type Rows = Vec<BTreeMap<String, String>>;

/// Columns of the rows of a variant.
fn column<'a>(rows: &'a Rows, variant: &str, name: &str) -> Vec<&'a str> {
    let of = rows.iter().filter(|row| row["variant"] == variant);
    of.map(|row| row[name].as_str()).collect()
}

#[test]
fn variants_in_numpy_are_checked_measured_and_judged_like_all_others() {
    let Some(bench) = Bench::with("variants.py", "numpy") else { return };
    let csv = bench.folder.join("rows.csv");
    let export = format!("csv={}", csv.display());
    let kernels = ["--kernel", "scale,dot,row_sums,sort", "--no-search"];
    let done =
        bench.run(&[&["--bench", "--budget", "20s", "--export", &export], &kernels[..]].concat());
    done.assert_code(0);
    done.assert_stdout("worker py · 7 variants · Python");
    let rows = read_csv(&csv);
    for (kernel, variant, sizes) in [
        ("scale", "numpy", 2),
        ("scale", "numpy_out", 2),
        ("dot", "numpy", 1),
        ("row_sums", "numpy", 4),
        ("sort", "numpy", 2),
        ("sort", "numpy_new", 2),
    ] {
        let of: Rows = rows
            .iter()
            .filter(|row| row["kernel"].ends_with(kernel) && row["variant"] == variant)
            .cloned()
            .collect();
        assert_eq!(of.len(), sizes, "{kernel}/{variant}");
        for row in &of {
            assert_eq!(row["status"], "ok", "{row:?}");
            let number = |name: &str| row[name].parse::<f64>().unwrap_or(f64::NAN);
            assert!(number("time_ns") > 0.0 && number("speedup") > 0.0, "{row:?}");
            assert!(number("error") <= number("tolerance"), "{row:?}");
            assert!(!row["verdict"].is_empty(), "{row:?}");
        }
    }
    // A variant that declines what it is not made for is measured where it is.
    assert_eq!(column(&rows, "numpy_large", "size"), ["n=256", "n=65536"]);
    let status = column(&rows, "numpy_large", "status");
    assert_eq!(status, ["skipped: n is below 1000", "ok"]);
}

#[test]
fn a_foreign_variant_that_breaks_costs_its_row_alone() {
    let Some(bench) = Bench::with("variants.py", "faults") else { return };
    let csv = bench.folder.join("rows.csv");
    let export = format!("csv={}", csv.display());
    let flags = ["--bench", "--quick", "--kernel", "scale,dot", "--no-search", "--timeout", "3s"];
    let done = Finished::of(
        bench.command(&[&flags[..], &["--export", &export]].concat()).env("FOREIGN", "faults"),
    );
    done.assert_code(100);
    let rows = read_csv(&csv);
    for (variant, reason) in [
        ("wrong", "worst `y`["),
        ("double", "raised TypeError: gives float64 where f32 is expected in `y`"),
        ("raises", "raised ValueError: no luck"),
        ("dies", "its worker `py` ended: SIGABRT"),
        ("speaks", "ended: it called `exit(3)`; its last words: last words of a variant"),
        ("hangs", "did not return within"),
        ("writes_input", "raised ValueError: output array is read-only"),
        ("tires", "its worker `py` ended: it called `exit(7)`"),
        ("view", "gives a result that is in the memory of `x`"),
    ] {
        let status = column(&rows, variant, "status");
        let all = status.iter().all(|s| s.starts_with("failed: ") && s.contains(reason));
        assert!(status.len() == 2 && all, "{variant}: {status:?}");
    }
    let half = column(&rows, "half", "status");
    assert!(half.len() == 1 && half[0].contains("another type"), "{half:?}");
    for variant in ["scale", "chunked", "numpy", "numpy_out"] {
        let of_scale = rows.iter().filter(|row| row["kernel"].ends_with("scale"));
        let of = of_scale.filter(|row| row["variant"] == variant);
        let status: Vec<&str> = of.map(|row| row["status"].as_str()).collect();
        assert_eq!(status, ["ok", "ok"], "{variant}\n{}", done.stderr);
    }
}

#[test]
fn a_file_is_imported_once_for_all_launches_unless_it_cannot_be_forked() {
    for (foreign, is_forked) in [("", true), ("anew", false), ("threads", false)] {
        let Some(bench) = Bench::with("variants.py", &format!("imports-{foreign}")) else { return };
        let (imports, csv) = (bench.folder.join("imports"), bench.folder.join("rows.csv"));
        let _ = fs::remove_file(&imports);
        let export = format!("csv={}", csv.display());
        let flags = ["--bench", "--kernel", "dot", "--no-search", "--launches", "4"];
        let flags = [&flags[..], &["--budget", "4s", "--export", &export]].concat();
        let mut command = bench.command(&flags);
        let done = Finished::of(command.env("FOREIGN", foreign).env("IMPORTS", &imports));
        done.assert_code(0);
        assert_eq!(column(&read_csv(&csv), "numpy", "status"), ["ok"]);
        let imports = fs::read_to_string(imports).expect("it was imported").lines().count();
        // One process lists the variants, one checks them, and one runs for each launch.
        let fits = if is_forked { imports == 1 } else { imports > 2 };
        assert!(fits, "{foreign}: {imports}\n{}", done.stderr);
    }
}

/// All processes that one has started, and that these have started.
fn descendants(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

#[test]
fn no_process_outlives_a_controller_that_was_killed() {
    let Some(bench) = Bench::with("variants.py", "killed") else { return };
    let flags = ["--bench", "--kernel", "scale", "--no-search", "--timeout", "600s"];
    let mut command = bench.command(&flags);
    command.args(["--variant", "scale,hangs"]).env("FOREIGN", "faults");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a bench");
    let begun = Instant::now();
    // A worker, the program that forks, and what it has forked; a moment later that hangs.
    while descendants(child.id()).len() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is forked");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(2));
    let processes = descendants(child.id());
    assert!(processes.len() >= 3, "{processes:?}");
    child.kill().expect("a bench");
    child.wait().expect("a bench");
    let lives = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        !status.is_empty() && !status.contains("State:\tZ")
    };
    let killed = Instant::now();
    while processes.iter().any(lives) {
        assert!(killed.elapsed() < Duration::from_secs(20), "one of {processes:?} goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn small_floats_come_and_go_bit_for_bit() {
    let Some(bench) = Bench::with("small_floats.py", "floats") else { return };
    let done = bench.run(&["--test", "--kernel", "negate"]);
    done.assert_code(100);
    for element in ["f16", "bf16", "F8E4M3", "F8E5M2"] {
        done.assert_stdout(&format!("negate/jax/{element}/n=64 ... ok"));
        done.assert_stdout(&format!("negate/jax_wrong/{element}/n=64 ... FAILED"));
    }
}

#[test]
fn workers_are_listed_in_the_file_and_left_out_when_they_cannot_be_had() {
    let Some(bench) = Bench::with("variants.py", "listed") else { return };
    let (python, file) =
        (python().expect("found before"), root().join("tests/foreign/variants.py"));
    let worker = |name: &str, rest: &str| {
        let (python, file) = (python.display(), file.display());
        format!("[[worker]]\nname = '{name}'\ncommand = ['{python}', '{file}']\n{rest}\n")
    };
    fs::write(bench.folder.join("Cargo.lock"), "").expect("a file");
    fs::write(bench.folder.join("kbench.toml"), worker("listed", "default = false"))
        .expect("a file");
    let list = |arguments: &[&str], foreign: &str| {
        let mut command = Command::new(&bench.program);
        command.args(["--list", "--format", "terse", "--kernel", "dot"]).args(arguments);
        Finished::of(command.current_dir(&bench.folder).env("FOREIGN", foreign))
    };
    let name = "downstream::dot/numpy/f32/n=1000: benchmark";
    assert!(!list(&[], "").stdout.contains(name), "it is not asked for");
    list(&["--worker", "listed"], "").assert_stdout(name);
    let missing = list(&["--worker", "listed"], "missing");
    missing.assert_code(0);
    missing.assert_stderr("warning: a worker is left out");
    missing.assert_stderr("No module named 'a_library_that_is_not_there'");
    missing.assert_stdout("downstream::dot/lanes/f32/n=1000: benchmark");
    let slow = list(&["--worker", "listed", "--timeout", "500ms"], "slow");
    slow.assert_code(0);
    slow.assert_stderr("was not ready within");
    let unknown = list(&["--worker", "listed"], "unknown");
    unknown.assert_code(2);
    unknown.assert_stderr("announces a variant `numpy` of `scael`");
    unknown.assert_stderr("there is no such kernel in this program; did you mean `scale`?");
    let misspelt = list(&["--worker", "lisetd"], "");
    misspelt.assert_code(2);
    misspelt.assert_stderr("did you mean `listed`?");
    fs::write(bench.folder.join("kbench.toml"), worker("listed", "")).expect("a file");
    assert!(!list(&[], "").stdout.contains(name), "a list starts none that is not named");
    list(&["--worker", "listed"], "").assert_stdout(name);
    // Other programs below the folder need not have all of its kernels.
    let shared = list(&["--worker", "listed"], "unknown");
    shared.assert_code(0);
    shared.assert_stdout(name);
    assert!(!list(&["--worker", "none"], "").stdout.contains(name));
}

#[test]
fn the_example_of_the_page_works() {
    let page = fs::read_to_string(root().join("docs/other-languages.md")).expect("a page");
    let block = |language: &str| {
        let rest = page.split(&format!("```{language}\n")).nth(1).expect(language);
        rest.split("```").next().expect("an end").to_owned()
    };
    let source = fs::read_to_string(root().join("tests/downstream/benches/foreign.rs"));
    assert!(source.expect("a bench").contains(block("rust").trim()), "the page has another kernel");
    let Some(mut bench) = Bench::with("variants.py", "page") else { return };
    let file = bench.folder.join("variants.py");
    fs::write(&file, block("python")).expect("a file");
    let python = python().expect("found before");
    bench.worker = format!("mine='{}' '{}'", python.display(), file.display());
    let flags = ["--bench", "--quick", "--kernel", "softmax", "--no-search"];
    let done = Finished::of(bench.command(&flags).env("PYTHONPATH", root().join("python")));
    done.assert_code(0);
    done.assert_stdout("worker mine · 1 variant · Python");
    done.assert_says("4 measured, 0 failed, 0 skipped");
}

/// The suite of this repository, with NumPy beside it.
fn suite(arguments: &[&str], variants: &str) -> Option<Finished> {
    let python = python()?;
    let worker = format!("numpy='{}' '{}'", python.display(), root().join(variants).display());
    let mut command = example_command("suite");
    command.args(arguments).args(["--worker", &worker]);
    Some(Finished::of(command.env("KBENCH_HOME", scratch("suite"))))
}

#[test]
fn the_library_in_numpy_passes_the_checks_of_the_suite() {
    let flags = ["--test", "--variant", "numpy", "--skip", "matmul"];
    let Some(done) = suite(&flags, "kernels/python/numpy_variants.py") else { return };
    done.assert_code(0);
    for kernel in
        ["add/numpy/f32", "gelu/numpy/f32", "rms_norm/numpy/f32", "softmax/numpy/f32", "fft/numpy/"]
    {
        let passed =
            done.stdout.lines().any(|line| line.contains(kernel) && line.ends_with("... ok"));
        assert!(passed, "{kernel}\n{}", done.stdout);
    }
}

#[test]
fn the_package_passes_its_own_tests() {
    let Some(python) = python() else { return };
    let mut command = Command::new(python);
    command.args([
        "-W",
        "ignore::ResourceWarning",
        "-m",
        "unittest",
        "discover",
        "-s",
        "python/tests",
    ]);
    Finished::of(command.current_dir(root())).assert_code(0);
}
