//! Running cargo on the crate under `tests/downstream`, and looking at what came out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use kbench_tests::root;

/// A program that has ended.
pub(crate) struct Finished {
    /// Exit code.
    pub(crate) code: Option<i32>,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it said beside it.
    pub(crate) stderr: String,
}

impl Finished {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs a command to its end, however long others hold what it printed to: it prints to files in a folder.
    pub(crate) fn of_files(command: &mut Command, folder: &Path) -> Self {
        let [out, err] = ["stdout", "stderr"].map(|name| folder.join(name));
        let file = |path: &Path| fs::File::create(path).expect("a file");
        let status = command.stdout(file(&out)).stderr(file(&err)).status();
        let text = |path: &Path| fs::read_to_string(path).expect("text");
        let code = status.unwrap_or_else(|error| panic!("{command:?}: {error}")).code();
        Finished { code, stdout: text(&out), stderr: text(&err) }
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "\n{}\n{}", self.stdout, self.stderr);
    }

    #[track_caller]
    pub(crate) fn assert_stdout(&self, part: &str) {
        assert!(
            self.stdout.contains(part),
            "no `{part}` on stdout:\n{}\n{}",
            self.stdout,
            self.stderr
        );
    }

    /// That a sentence was printed, wherever its lines were broken.
    #[track_caller]
    pub(crate) fn assert_says(&self, sentence: &str) {
        let words: Vec<&str> = self.stdout.split_whitespace().collect();
        let said = words.join(" ").contains(sentence);
        assert!(said, "no `{sentence}` in the words of stdout:\n{}\n{}", self.stdout, self.stderr);
    }

    #[track_caller]
    pub(crate) fn assert_stderr(&self, part: &str) {
        assert!(
            self.stderr.contains(part),
            "no `{part}` on stderr:\n{}\n{}",
            self.stdout,
            self.stderr
        );
    }
}

/// Every nested crate is built into one folder, by one profile: what one has built, the others find.
fn nested_target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("nested")
}

/// Flags of cargo with which nested crates are built: their kernels are optimised, kbench is not.
pub(crate) const FAST_BUILD: [&str; 4] = [
    "--config",
    "profile.release.package.kbench-core.opt-level=0",
    "--config",
    "profile.release.package.kbench-worker.opt-level=0",
];

/// Cargo in the downstream crate.
pub(crate) fn downstream(arguments: &[&str]) -> Finished {
    Finished::of(&mut cargo(arguments))
}

/// Cargo as a user would start it: nothing of the outer cargo's environment reaches the inner one.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).env("CARGO_TARGET_DIR", nested_target());
    as_a_user(&mut command);
    command
}

/// Lets a command see the downstream crate and nothing of this test run.
fn as_a_user(command: &mut Command) {
    command.current_dir(root().join("tests/downstream"));
    for (name, _) in std::env::vars() {
        let inherited =
            ["CARGO_HOME", "CARGO_TERM_COLOR", "CARGO_NET_OFFLINE"].contains(&name.as_str());
        let ours = ["CARGO_", "RUSTC", "RUSTDOC", "KBENCH_", "NEXTEST", "LD_LIBRARY_PATH"];
        let is_set_here = command.get_envs().any(|(set, _)| set == name.as_str());
        if !inherited && !is_set_here && ours.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.env("DOWNSTREAM_NOTES", "1").env("NO_COLOR", "1");
}

/// A bench target, started as `cargo bench` starts it.
pub(crate) fn bench(target: &str, arguments: &[&str]) -> Command {
    checks(target, &[&["--bench"], arguments].concat())
}

/// A bench target, started as `cargo test` starts it.
pub(crate) fn checks(target: &str, arguments: &[&str]) -> Command {
    program(executable(target), arguments)
}

/// A program, started in the downstream crate.
pub(crate) fn program(path: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.args(arguments);
    as_a_user(&mut command);
    command
}

/// The path of a bench target. All of them are built once.
pub(crate) fn executable(target: &str) -> &'static Path {
    static BUILT: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        // The slower build of `gate` comes first, for the other one takes its place.
        let slow = build(&["--bench", "gate"], Some("90")).remove("gate").expect("built");
        fs::create_dir_all(slower_gate().parent().expect("a folder")).expect("a folder");
        fs::copy(slow, slower_gate()).expect("a copy");
        build(&["--benches"], None)
    });
    built.get(target).unwrap_or_else(|| panic!("no executable of {target} in {built:?}"))
}

/// The bench target `gate`, in which `planted` takes 90 % longer. It has the name of the other build: runs are kept by it.
pub(crate) fn slower_gate() -> PathBuf {
    nested_target().join("slower/gate")
}

/// Executables of bench targets by name.
fn build(targets: &[&str], planted: Option<&str>) -> BTreeMap<String, PathBuf> {
    let flags = ["bench", "--quiet", "--no-run", "--message-format=json"];
    let mut command = cargo(&[&flags[..], targets, &FAST_BUILD].concat());
    let built = Finished::of(command.envs(planted.map(|planted| ("PLANTED", planted))));
    built.assert_code(0);
    let lines = built.stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
    let path = |line: serde_json::Value| {
        let name = line["target"]["name"].as_str()?.to_owned();
        Some((name, PathBuf::from(line["executable"].as_str()?)))
    };
    lines.filter_map(path).collect()
}

/// A file of this test run.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// Rows of a CSV file by column; quoted fields may hold commas.
pub(crate) fn read_csv(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = text.lines().map(split_line);
    let header = lines.next().expect("a header");
    lines.map(|fields| header.iter().cloned().zip(fields).collect()).collect()
}

fn split_line(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().expect("never empty").push(c),
        }
    }
    fields
}
