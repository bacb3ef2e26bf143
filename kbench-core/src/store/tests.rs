use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use super::prune::Pruned;
use super::*;
use crate::report::Executable;

/// A folder of its own, gone when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kbench-store-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("made");
        Folder(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A run with a name of its own.
pub(crate) fn run(name: &str) -> Report {
    let report = read_document(include_str!("fixtures/schema-1.json")).expect("readable");
    Report { run: name.into(), ..report }
}

fn store(folder: &Folder) -> Store {
    Store::at(folder.path().join("deep/kbench"), "kernels")
}

fn make_old(path: &Path) {
    let file = fs::File::options().write(true).open(path).expect("there");
    file.set_modified(SystemTime::UNIX_EPOCH).expect("set");
}

#[test]
fn a_run_is_kept_and_never_changed() {
    let folder = Folder::new();
    let store = store(&folder);
    let path = store.keep_run(&run("b"), None).expect("kept");
    store.keep_run(&run("a"), None).expect("kept");
    assert_eq!(read_run(&path).expect("readable").rows.len(), run("b").rows.len());
    let names: Vec<String> = store.runs().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b"]);
    let error = store.keep_run(&run("b"), None).expect_err("there already");
    assert!(error.to_string().contains("never changed"), "{error}");
}

#[test]
fn a_baseline_is_a_run_by_name_and_the_last_one_of_a_name_counts() {
    let folder = Folder::new();
    let store = store(&folder);
    for name in ["a", "b"] {
        store.keep_run(&run(name), Some("main")).expect("kept");
    }
    assert_eq!(store.baseline("main").expect("there").run, "b");
    let path = store.home().join("baselines/main/kernels.json");
    assert_eq!(store.baseline(path.to_str().expect("text")).expect("a path will do").run, "b");
    let error = store.baseline("mian").expect_err("not there").to_string();
    assert!(error.contains("did you mean `main`?"), "{error}");
    let error =
        Store::at(folder.path(), "kernels").baseline("main").expect_err("empty").to_string();
    assert!(error.contains("--save-baseline NAME makes one"), "{error}");
    assert!(store.baseline("../runs/b").is_err());
    let other = Store::at(store.home(), "other");
    let error = other.baseline("main").expect_err("of another program").to_string();
    assert!(error.contains("no run of `other`; it has: kernels"), "{error}");
    assert!(other.runs().is_empty());
}

#[test]
fn pruning_keeps_what_is_new_and_what_has_a_name() {
    let folder = Folder::new();
    let store = store(&folder);
    let [old_program, new_program] = ["old", "new"].map(|name| {
        let path = folder.path().join(name);
        fs::write(&path, name).expect("written");
        store.keep_executable(&path).expect("kept")
    });
    for name in ["a", "b", "c", "d"] {
        let executable = (name == "a").then(|| old_program.clone());
        let name_of = (name == "a").then_some("main");
        store.keep_run(&Report { executable, ..run(name) }, name_of).expect("kept");
    }
    let half = store.home().join("runs/kernels/.tmp-1-x.json");
    fs::write(&half, "{").expect("written");
    make_old(&half);
    for program in [&old_program, &new_program] {
        make_old(&store.executable_path(program));
    }
    let pruned = store.prune(2, None).expect("pruned");
    assert_eq!((pruned.runs, pruned.executables), (2, 1));
    let names: Vec<String> = store.runs().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["c", "d"]);
    assert_eq!(store.baseline("main").expect("there").run, "a");
    assert!(store.executable(&old_program).is_ok() && !half.exists());
    assert!(store.executable(&new_program).expect_err("pruned").contains("is gone"));
}

#[test]
fn a_run_that_was_just_written_stays_when_the_clock_went_back() {
    let folder = Folder::new();
    let store = store(&folder);
    for name in ["20990101T000000.000Z", "20980101T000000.000Z", "20260101T000000.000Z"] {
        store.keep_run(&run(name), None).expect("kept");
    }
    let names = |keep| {
        store.prune(keep, Some("20260101T000000.000Z")).expect("pruned");
        store.runs().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(2), ["20260101T000000.000Z", "20990101T000000.000Z"]);
    assert_eq!(names(1), ["20260101T000000.000Z"]);
    assert_eq!(names(0), ["20260101T000000.000Z"]);
}

#[cfg(unix)]
#[test]
fn where_others_can_put_links_nothing_is_thrown_away_or_started() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let store = store(&folder);
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    let program = folder.path().join("program");
    fs::write(&program, "old").expect("written");
    let executable = store.keep_executable(&program).expect("kept");
    for name in ["a", "b"] {
        store.keep_run(&run(name), None).expect("kept");
    }
    let elsewhere = store.executables_folder().join("a-file-of-the-users-own");
    fs::write(&elsewhere, "").expect("written");
    make_old(&elsewhere);
    make_old(&store.executable_path(&executable));
    set(store.home(), 0o777);
    assert_eq!(store.prune(1, None).expect("nothing to do"), Pruned::default());
    assert!(elsewhere.exists());
    assert!(store.executable(&executable).expect_err("shared").contains("everybody may change"));
    set(store.home(), 0o755);
    assert!(store.executable(&executable).is_ok());
    let pruned = store.prune(1, None).expect("pruned");
    assert_eq!((pruned.runs, pruned.executables), (1, 1));
    assert!(elsewhere.exists(), "it is no program that was kept");
}

#[test]
fn a_program_that_is_not_what_it_was_is_not_started() {
    let folder = Folder::new();
    let store = store(&folder);
    let program = folder.path().join("program");
    fs::write(&program, "first").expect("written");
    let first = store.keep_executable(&program).expect("kept");
    assert_eq!(store.keep_executable(&program).expect("kept"), first);
    fs::write(&program, "second").expect("written");
    let second = store.keep_executable(&program).expect("kept");
    let kept = store.executable(&first).expect("still there");
    assert_eq!(fs::read_to_string(kept.path()).expect("there"), "first");
    fs::write(kept.path(), "firs").expect("damaged");
    assert!(store.executable(&first).expect_err("damaged").contains("damaged"));
    assert!(store.executable(&second).is_ok());
    let sly = Executable { content: "../../../x".into(), bytes: 1 };
    assert!(store.executable_path(&sly).starts_with(store.executables_folder()));
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_that_says_what_to_do() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let error =
        Store::at(file.join("kbench"), "kernels").try_out().expect_err("a file").to_string();
    assert!(error.contains("set KBENCH_HOME"), "{error}");
}

#[test]
fn a_file_that_holds_no_run_is_named() {
    let folder = Folder::new();
    let store = store(&folder);
    let path = store.keep_run(&run("a"), None).expect("kept");
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, &text[..text.len() / 2]).expect("cut");
    let error = read_run(&path).expect_err("cut off").to_string();
    assert!(error.contains("a.json") && error.contains("cut off"), "{error}");
}

#[test]
fn a_run_is_kept_in_its_folder_or_not_at_all() {
    let folder = Folder::new();
    let store = store(&folder);
    for name in ["../../x", "/tmp/x", "", "a/b", "..", "nul"] {
        let error = store.keep_run(&run(name), None).expect_err(name).to_string();
        assert!(error.contains("no name of a file"), "{error}");
        let error = store.keep_run(&run("a"), Some(name)).expect_err(name).to_string();
        assert!(error.contains("no name for a baseline"), "{error}");
    }
    assert!(store.runs().is_empty() && store.baselines().is_empty());
}
