//! Runs that last: stored, named, compared, gated and merged, as their users see them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::support::{self, Finished, scratch, slower_gate};

/// A store of its own.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let folder = scratch(name);
        let _ = std::fs::remove_dir_all(&folder);
        Home(folder)
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.0.join(inside)
    }

    /// Documents of a folder of the store.
    fn documents(&self, inside: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path(inside)).into_iter().flatten();
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.expect("readable").path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        files
    }

    /// A bench target with this store.
    fn bench(&self, target: &str, arguments: &[&str]) -> Finished {
        let mut command = support::bench(target, arguments);
        Finished::of(command.env("KBENCH_HOME", &self.0).env_remove("GITHUB_STEP_SUMMARY"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Effort that is enough to have figures, and little enough for a test.
const SHORT: [&str; 6] = ["--budget", "20s", "--launches", "5", "--sample-size", "40"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SHORT[..], more].concat()
}

#[test]
fn a_run_is_kept_and_becomes_a_baseline_whose_executable_is_measured_beside_the_next() {
    let home = Home::new("baseline");
    let first = home.bench("gate", &with(&["--save-baseline", "main"]));
    first.assert_code(0);
    first.assert_stderr("kept as baseline `main`");
    assert_eq!(home.documents("runs/downstream.gate").len(), 1);
    let baseline = read(&home.path("baselines/main/downstream.gate.json"));
    assert_eq!(baseline["schema"], 2);
    let kept = baseline["executable"]["content"].as_str().expect("a hash");
    assert!(home.path("executables").join(kept).is_file());

    let document = home.path("now.json");
    let export = format!("json={}", document.display());
    let summary = home.path("summary.md");
    let flags = ["--baseline", "main", "--save-baseline", "next", "--gate", "900%", "--export"];
    let more = [&flags[..], &[&export, "--summary", summary.to_str().expect("text")]].concat();
    let second = home.bench("gate", &with(&more));
    second.assert_code(0);
    second.assert_stdout("its executable was measured in turns with this one");
    let now = read(&document);
    assert_eq!(now["baseline"]["method"], "interleaved");
    let rows = now["rows"].as_array().expect("rows");
    for row in rows {
        assert!(row["change"].is_f64() && row["baseline_time_ns"].is_f64(), "{row}");
        assert_eq!(row["samples"].as_array().map(Vec::len), row["chains"].as_array().map(Vec::len));
    }
    assert!(
        home.path("baselines/next/downstream.gate.json").is_file()
            && home.documents("runs/downstream.gate").len() == 2
    );
    let summary = std::fs::read_to_string(&summary).expect("a summary");
    assert!(
        summary.starts_with("### kbench: ✅") && summary.contains("Against `main`"),
        "{summary}"
    );

    let shown = home.bench("gate", &["--load-baseline", "next", "--baseline", "main"]);
    shown.assert_code(0);
    shown.assert_stderr("loaded: run ");
    shown.assert_stdout("gate::planted");
    shown.assert_stdout("both are runs of another day");
    shown.assert_stdout("advisory");
    assert_eq!(home.documents("runs/downstream.gate").len(), 2, "nothing was measured");

    let itself = home.bench("gate", &["--load-baseline", "next", "--baseline", "next"]);
    itself.assert_code(2);
    itself.assert_stderr("is the very run that it would be compared with");

    let listed = home.bench("gate", &["--list-baselines"]);
    listed.assert_stdout("2 baselines in");
    listed.assert_stdout("  next: downstream.gate\n");
    let target = home.bench("kernels", &["--quick", "--variant", "scale", "--baseline", "main"]);
    target.assert_code(0);
    target.assert_stderr(
        "nothing is compared: the baseline `main` has no run of `downstream.kernels`; it has: downstream.gate",
    );
    let history = home.bench("gate", &["--history", "--kernel", "planted"]);
    history.assert_code(0);
    history.assert_stdout("2 runs of this machine");
    history.assert_stdout("planted/u64/n=10000");
    home.bench("gate", &["--history", "--kernel", "nothing"]).assert_code(4);

    let smaller = home.bench("gate", &with(&["--kernel", "planted", "--save-baseline", "next"]));
    smaller.assert_code(0);
    smaller.assert_stderr("2 of the 3 rows of the former baseline are not in this one");
}

#[test]
fn baselines_that_are_missing_foreign_damaged_or_newer_are_refused_before_anything_is_measured() {
    let home = Home::new("refused");
    let none = home.bench("gate", &["--baseline", "main"]);
    none.assert_code(2);
    none.assert_stderr("--save-baseline NAME makes one");
    home.bench("gate", &with(&["--save-baseline", "main"])).assert_code(0);
    let misspelt = home.bench("gate", &["--baseline", "mian"]);
    misspelt.assert_code(2);
    misspelt.assert_stderr("did you mean `main`?");
    let path = home.path("baselines/main/downstream.gate.json");
    let text = std::fs::read_to_string(&path).expect("there");
    let rewrite = |text: &str| {
        // A new file: the run that shares its content stays as it is.
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, text).expect("written");
    };
    let mut foreign: Value = serde_json::from_str(&text).expect("JSON");
    foreign["environment"]["cpu"] = "Fast 9000".into();
    rewrite(&foreign.to_string());
    let refused = home.bench("gate", &["--baseline", "main"]);
    refused.assert_code(2);
    refused.assert_stderr("was measured on another machine");
    refused.assert_stderr("`Fast 9000` then");
    let measured = home.bench("gate", &with(&["--baseline", "main", "--foreign-baseline"]));
    measured.assert_code(0);
    measured.assert_says("its executable was measured in turns with this one");
    let other = home.bench("empty", &["--list-baselines"]);
    other.assert_stdout("  main: downstream.gate\n");
    other.assert_stdout("0 runs of downstream.empty");
    rewrite(&text[..text.len() / 2]);
    let cut = home.bench("gate", &["--baseline", "main"]);
    cut.assert_code(2);
    cut.assert_stderr("cut off");
    rewrite("{\"schema\":99}");
    let newer = home.bench("gate", &["--load-baseline", "main"]);
    newer.assert_code(2);
    newer.assert_stderr("schema 99, and this kbench knows schemas up to 2");
}

#[test]
fn without_the_executable_a_run_is_judged_by_history_and_the_verdict_is_advice() {
    let home = Home::new("history");
    home.bench("gate", &with(&["--save-baseline", "main"])).assert_code(0);
    std::fs::remove_dir_all(home.path("executables")).expect("removed");
    let run = home.bench("gate", &with(&["--baseline", "main", "--gate", "0%"]));
    run.assert_code(0);
    run.assert_says("is gone (");
    run.assert_says("3 advisory inconclusive");
    run.assert_stderr("to go by, and no old executable");
}

/// A change that no machine is too busy to show; `campaign/gate.sh` tries small ones, many times.
#[test]
fn a_planted_regression_fails_the_gate_and_names_its_row() {
    let home = Home::new("planted");
    home.bench("gate", &with(&["--save-baseline", "main"])).assert_code(0);
    let more = ["--bench", "--kernel", "planted,untouched", "--baseline", "main", "--gate", "20%"];
    let last = ["--budget", "20s", "--save-baseline", "main"];
    let mut command = support::program(&slower_gate(), &[&more[..], &last].concat());
    let baseline = home.path("baselines/main/downstream.gate.json");
    let before = std::fs::read(&baseline).expect("there");
    let github = home.path("github.md");
    std::fs::write(&github, "before\n").expect("written");
    let planted = command.env("KBENCH_HOME", &home.0);
    let run = Finished::of(planted.env("GITHUB_STEP_SUMMARY", &github));
    run.assert_code(102);
    run.assert_stderr("1 beyond the limits of the gate");
    run.assert_stderr("gate::planted/planted/u64/n=10000: time +");
    run.assert_stderr("the baseline `main` stays as it was");
    assert_eq!(std::fs::read(&baseline).expect("there"), before);
    let summary = std::fs::read_to_string(&github).expect("there");
    assert!(summary.starts_with("before\n### kbench: ❌ 1 beyond a limit"), "{summary}");
}

#[test]
fn shares_of_a_suite_merge_into_one_report_that_says_what_is_missing() {
    let home = Home::new("merge");
    let parts = home.path("parts");
    std::fs::create_dir_all(&parts).expect("made");
    let file = |share: usize| parts.join(format!("part{share}.json"));
    for share in [1, 3] {
        let (partition, export) =
            (format!("slice:{share}/3"), format!("json={}", file(share).display()));
        let run = home.bench("gate", &with(&["--partition", &partition, "--export", &export]));
        run.assert_code(0);
    }
    let empty = home.path("empty.json");
    let export = format!("json={}", empty.display());
    let run = home.bench("gate", &["--partition", "slice:4/4", "--export", &export]);
    run.assert_code(0);
    run.assert_stderr("the share slice:4/4 has no kernel");
    assert_eq!(read(&empty)["rows"], Value::Array(Vec::new()));
    // The second share ran elsewhere.
    let mut other = read(&file(3));
    other["environment"]["machine"] = "elsewhere".into();
    std::fs::write(file(3), other.to_string()).expect("written");
    let merged = home.path("merged.json");
    let export = format!("json={}", merged.display());
    let folder = parts.to_str().expect("text");
    let run = home.bench("gate", &["--merge", folder, "--export", &export]);
    run.assert_code(0);
    run.assert_stdout("merged from 2 runs");
    run.assert_stdout("there is no run of slice:2/3");
    run.assert_stdout("kernels are missing: gate::untouched");
    run.assert_stdout("on elsewhere");
    let merged = read(&merged);
    assert_eq!(
        merged["filtered_out"], 1,
        "the row that is missing, and not those of the other share"
    );
    let machines: Vec<&Value> =
        merged["rows"].as_array().expect("rows").iter().map(|row| &row["machine"]).collect();
    assert_eq!(machines.len(), 2);
    assert_eq!(machines.iter().filter(|machine| **machine == "elsewhere").count(), 1);
    std::fs::copy(file(1), parts.join("again.json")).expect("copied");
    let twice = home.bench("gate", &["--merge", folder]);
    twice.assert_code(2);
    twice.assert_stderr("one of them is a repetition");
    home.bench("gate", &["--merge", home.path("nowhere.json").to_str().expect("text")])
        .assert_code(2);
}
