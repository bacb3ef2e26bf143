//! What files and programs of others can make kbench do: which commands run, what is read, and what is printed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::support::{Finished, executable, program, scratch};

/// A folder with a lock file and a worker that leaves a mark when it is started.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str) -> Self {
        let folder = scratch(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("member")).expect("a folder");
        fs::write(folder.join("Cargo.lock"), "").expect("a file");
        let workspace = Workspace(folder);
        workspace.list_worker_in("kbench.toml");
        workspace
    }

    fn list_worker_in(&self, file: &str) {
        let text = "[[worker]]\nname = 'marks'\ncommand = ['sh', '-c', ': > \"$MARK\"; exit 3']\n";
        fs::write(self.0.join(file), text).expect("a file");
    }

    /// Checks one kernel in a folder, and tells whether the worker was started.
    fn run(
        &self,
        folder: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> (bool, Finished) {
        let mark = self.0.join("mark");
        let _ = fs::remove_file(&mark);
        let arguments = [&["--kernel", "softmax", "--no-gpu"], arguments].concat();
        let mut command = program(executable("foreign"), &arguments);
        command.env_remove("CI").envs(variables.iter().copied());
        command.current_dir(self.0.join(folder)).env("MARK", &mark).env("KBENCH_HOME", &self.0);
        let done = Finished::of(&mut command);
        done.assert_code(0);
        (mark.exists(), done)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_listed_command_runs_beside_the_lock_file_and_is_named_before() {
    let workspace = Workspace::new("listed-command");
    for folder in ["", "member"] {
        let (is_started, done) = workspace.run(folder, &["--test"], &[]);
        assert!(is_started, "{}", done.stderr);
        done.assert_stderr("note: starting the worker `marks` in `");
        done.assert_stderr("sh -c ': > \"$MARK\"; exit 3'");
        done.assert_stderr("warning: a worker is left out");
    }
    for list in ["--list", "--list-kernels", "--list-sizes"] {
        let (is_started, done) = workspace.run("", &[list], &[]);
        assert!(!is_started && !done.stderr.contains("marks"), "{}", done.stderr);
        assert!(workspace.run("", &[list, "--worker", "marks"], &[]).0, "it is asked for");
    }
    let (is_started, done) = workspace.run("", &["--test", "--worker", "none"], &[]);
    assert!(!is_started && !done.stderr.contains("marks"), "{}", done.stderr);
}

#[test]
fn a_command_of_any_other_file_does_not_run() {
    let workspace = Workspace::new("other-command");
    fs::rename(workspace.0.join("kbench.toml"), workspace.0.join("member/kbench.toml"))
        .expect("moved");
    let (is_started, done) = workspace.run("member", &["--test"], &[]);
    assert!(!is_started, "{}", done.stderr);
    done.assert_stderr("only those of a kbench.toml beside Cargo.lock are");
    // What lies above the lock file is never looked at.
    workspace.list_worker_in("kbench.toml");
    fs::remove_file(workspace.0.join("member/kbench.toml")).expect("removed");
    fs::write(workspace.0.join("member/Cargo.lock"), "").expect("a file");
    let (is_started, done) = workspace.run("member", &["--test"], &[]);
    assert!(!is_started && !done.stderr.contains("marks"), "{}", done.stderr);
}

#[test]
fn a_command_that_others_may_change_does_not_run() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let workspace = Workspace::new("changed-command");
    let file = workspace.0.join("kbench.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("set");
    let (is_started, done) = workspace.run("", &["--test"], &[]);
    assert!(!is_started, "{}", done.stderr);
    done.assert_stderr("are not started: everybody may change");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
    if fs::metadata(&file).expect("there").uid() != 0 {
        eprintln!("skipped: only root can give a file to another user");
        return;
    }
    for path in [&file, &workspace.0] {
        chown(path, Some(65534), None).expect("given away");
        let (is_started, done) = workspace.run("", &["--test"], &[]);
        assert!(!is_started, "{}", done.stderr);
        done.assert_stderr("belongs to another user");
        chown(path, Some(0), None).expect("taken back");
    }
    chown(&file, Some(65534), None).expect("given away");
    let mut named = program(executable("foreign"), &["--list", "--worker", "marks"]);
    let named = Finished::of(named.current_dir(&workspace.0));
    named.assert_code(2);
    named.assert_stderr("there is no worker `marks`");
    named.assert_stderr("write --worker NAME=COMMAND");
}

#[test]
fn where_ci_is_set_a_command_runs_if_it_is_named_or_allowed() {
    let workspace = Workspace::new("ci-command");
    let (is_started, done) = workspace.run("", &["--test"], &[("CI", "true")]);
    assert!(!is_started, "{}", done.stderr);
    done.assert_stderr("warning: the worker `marks` is not started, as CI is set");
    let named = workspace.run("", &["--test", "--worker", "marks"], &[("CI", "true")]);
    assert!(named.0, "{}", named.1.stderr);
    let allowed = |entry: &str| {
        workspace.run("", &["--test"], &[("CI", "1"), ("KBENCH_ALLOWED_WORKERS", entry)]).0
    };
    assert!(allowed("marks") && allowed("x;marks=sh -c ': > \"$MARK\"; exit 3'"));
    assert!(!allowed("marks=sh -c 'exit 3'") && !allowed("others"));
    assert!(workspace.run("", &["--test"], &[("CI", "false")]).0);
}

/// Exports of the bench, as somebody may have changed them.
fn document(folder: &Path) -> Value {
    let path = folder.join("run.json");
    let export = format!("json={}", path.display());
    let flags = ["--bench", "--quick", "--kernel", "dot", "--no-search", "--export", &export];
    Finished::of(program(executable("kernels"), &flags).env("KBENCH_HOME", folder)).assert_code(0);
    serde_json::from_str(&fs::read_to_string(path).expect("a run")).expect("JSON")
}

fn folder(name: &str) -> PathBuf {
    let folder = scratch(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn load(folder: &Path, path: &Path, arguments: &[&str]) -> Finished {
    let mut command = program(executable("kernels"), arguments);
    Finished::of(command.arg("--load-baseline").arg(path).env("KBENCH_HOME", folder))
}

#[test]
fn a_document_cannot_give_commands_to_a_ci_service_nor_markup_to_a_pull_request() {
    let folder = folder("hostile-document");
    let mut run = document(&folder);
    let hostile =
        "x ::warning::a\n::error file=b::c ##[group]d <img src=x> ![i](https://e.example) @you";
    run["warnings"] = json!([hostile, format!("{}\n{hostile}", "word ".repeat(40))]);
    run["rows"][0]["status"] = json!(format!("failed: {hostile}"));
    let path = folder.join("hostile.json");
    fs::write(&path, run.to_string()).expect("written");
    let summary = folder.join("summary.md");
    for format in ["pretty", "terse", "json"] {
        let flags = ["--format", format, "--summary", summary.to_str().expect("text")];
        let shown = load(&folder, &path, &flags);
        shown.assert_code(100);
        for line in shown.stdout.lines().chain(shown.stderr.lines()) {
            assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{line}");
        }
    }
    let summary = fs::read_to_string(summary).expect("written").replace("\\]", "");
    for markup in ["<img", "](https", "://", "@you"] {
        assert!(!summary.contains(markup), "{markup}: {summary}");
    }
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_document_that_is_given_by_its_path_starts_no_program() {
    let folder = folder("stranger");
    let flags = ["--bench", "--quick", "--kernel", "dot", "--no-search"];
    let run = |more: &[&str]| {
        let mut command = program(executable("kernels"), &[&flags[..], more].concat());
        let done = Finished::of(command.env("KBENCH_HOME", &folder));
        done.assert_code(0);
        done
    };
    run(&["--save-baseline", "main"]);
    run(&["--baseline", "main"]).assert_says("was measured in turns with this one");
    let document = folder.join("stranger.json");
    fs::copy(folder.join("baselines/main/downstream.kernels.json"), &document).expect("a copy");
    let by_path = run(&["--baseline", document.to_str().expect("text")]);
    by_path.assert_says("a document that is given by its path starts no program");
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn pipes_devices_and_endless_files_are_refused() {
    let folder = folder("no-files");
    let pipe = folder.join("pipe.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let device = folder.join("device.json");
    symlink("/dev/zero", &device).expect("a link");
    for path in [&pipe, &device] {
        let done = load(&folder, path, &[]);
        done.assert_code(2);
        done.assert_stderr("it is a pipe or a device, not a regular file");
    }
    let merged = program(executable("kernels"), &[]).arg("--merge").arg(&folder).output();
    assert_eq!(merged.expect("started").status.code(), Some(2));
    let long = folder.join("long.json");
    fs::File::create(&long).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    let done = load(&folder, &long, &[]);
    done.assert_code(2);
    done.assert_stderr("has more than 64 MiB; KBENCH_READ_LIMIT=");
    let mut command = program(executable("kernels"), &["--load-baseline"]);
    let done = Finished::of(command.arg(&long).env("KBENCH_READ_LIMIT", "much"));
    done.assert_code(2);
    done.assert_stderr("KBENCH_READ_LIMIT: `much` is no number of bytes");
    let _ = fs::remove_dir_all(folder);
}

/// The process takes a signal as any other does, while it reads for seconds.
#[test]
fn a_signal_ends_what_only_reads() {
    use std::os::unix::process::ExitStatusExt;
    let folder = folder("long-reading");
    let run = document(&folder).to_string();
    let padding = format!(",\"padding\":[0{}]}}", ",0".repeat(20_000_000));
    let path = folder.join("long.json");
    fs::write(&path, run.strip_suffix('}').expect("an object").to_owned() + &padding)
        .expect("written");
    let paths = vec![path.to_str().expect("text"); 20].join(",");
    let mut command = program(executable("kernels"), &["--merge", &paths]);
    let mut child = command.spawn().expect("started");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.expect("kill").success());
    let status = child.wait().expect("an end");
    assert_eq!(status.signal(), Some(15), "{status}");
    let _ = fs::remove_dir_all(folder);
}

/// A worker that is gone, and has left a process with its pipes in a session of its own.
#[cfg(target_os = "linux")] // `setsid` is a program there
#[test]
fn a_run_does_not_wait_for_what_a_worker_has_left_behind() {
    let folder = folder("daemon");
    let number = folder.join("number");
    let script = "setsid sh -c 'echo $$ > \"$0\"; exec sleep 600' \"$NUMBER\" & \
                  while [ ! -s \"$NUMBER\" ]; do sleep 0.05; done; exit 1";
    let worker = format!("daemon=sh -c \"{}\"", script.replace('"', "\\\""));
    let flags = ["--test", "--kernel", "softmax", "--no-gpu", "--worker", &worker];
    let mut command = program(executable("foreign"), &flags);
    let done = Finished::of_files(command.env("NUMBER", &number), &folder);
    let number = fs::read_to_string(&number).expect("it was started");
    let kill = |signal: &str| Command::new("kill").args([signal, number.trim()]).status();
    let lives = kill("-0").expect("kill").success();
    let _ = kill("-KILL");
    done.assert_code(0);
    assert!(lives, "the run has waited for its end");
    done.assert_stderr("it called `exit(1)`");
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_worker_that_floods_standard_error_is_cut_short() {
    let worker = "flood=sh -c 'yes this is a line of a flood | head -c 100000000 >&2; exit 1'";
    let flags = ["--test", "--kernel", "softmax", "--no-gpu", "--worker", worker];
    let done = Finished::of(&mut program(executable("foreign"), &flags));
    done.assert_code(0);
    assert!(done.stderr.len() < 1 << 20, "{} bytes", done.stderr.len());
    done.assert_stderr("is not shown");
    done.assert_stderr("it called `exit(1)`; its last words: this is a line of a flood");
}
