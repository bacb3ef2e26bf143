//! Running cargo on the crate under `tests/downstream`, and looking at what came out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Cargo in the downstream crate.
pub(crate) fn downstream(arguments: &[&str]) -> Finished {
    downstream_with(arguments, &[])
}

/// Cargo in the downstream crate, with environment variables.
pub(crate) fn downstream_with(arguments: &[&str], variables: &[(&str, &str)]) -> Finished {
    Finished::of(cargo(arguments).envs(variables.iter().copied()))
}

/// Cargo as a user would start it: nothing of the outer cargo's environment reaches the inner one.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(root().join("tests/downstream"));
    for (name, _) in std::env::vars() {
        let inherited =
            ["CARGO_HOME", "CARGO_TERM_COLOR", "CARGO_NET_OFFLINE"].contains(&name.as_str());
        let ours = ["CARGO_", "RUSTC", "RUSTDOC", "KBENCH_", "NEXTEST", "LD_LIBRARY_PATH"];
        if !inherited && ours.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.env("DOWNSTREAM_NOTES", "1").env("NO_COLOR", "1");
    command
}

/// The path of a bench target, for tests that start it without cargo.
pub(crate) fn executable(target: &str) -> PathBuf {
    let flags = ["bench", "--quiet", "--bench", target, "--no-run", "--message-format=json"];
    let built = Finished::of(&mut cargo(&flags));
    built.assert_code(0);
    let lines = built.stdout.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
    let path = |line: serde_json::Value| line["executable"].as_str().map(PathBuf::from);
    lines.filter_map(path).next().unwrap_or_else(|| panic!("no executable in\n{}", built.stdout))
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
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
