//! What CI installs is pinned: an exact version, and a hash or a commit that the download is compared with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kbench_tests::root;

/// Files directly in a folder of the repository.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect(folder);
    entries.map(|entry| entry.expect(folder).path()).filter(|path| path.is_file()).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .replace("\r\n", "\n")
}

/// Commands of the scripts, the workflows and what contributors are told, one a line, each with its file.
fn commands() -> Vec<(String, String)> {
    let mut paths = [files(".ci"), files(".github/workflows")].concat();
    paths.push(root().join("CONTRIBUTING.md"));
    let lines = |path: PathBuf| {
        let text = read(&path).replace("\\\n", " ");
        let lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        let is_comment = |line: &String| line.starts_with('#');
        lines
            .into_iter()
            .filter(move |line| !is_comment(line))
            .map(move |line| (path.display().to_string(), line))
    };
    paths.into_iter().flat_map(lines).collect()
}

/// Commands that have a word in them.
fn commands_with(word: &str) -> Vec<(String, String)> {
    let found: Vec<_> = commands().into_iter().filter(|(_, line)| line.contains(word)).collect();
    assert!(!found.is_empty(), "nothing has `{word}`: the test looks at the wrong files");
    found
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[test]
fn every_action_is_pinned_to_a_commit() {
    for (file, line) in commands_with("uses:") {
        let commit = line.split('@').nth(1).and_then(|rest| rest.split_whitespace().next());
        assert!(commit.is_some_and(|commit| is_hexadecimal(commit, 40)), "{file}: {line}");
    }
}

#[test]
fn every_installed_crate_has_an_exact_version_and_its_lock_file() {
    for (file, line) in commands_with("cargo install") {
        let version =
            line.split("--version =").nth(1).and_then(|rest| rest.split_whitespace().next());
        let is_exact = version.is_some_and(|version| {
            version.split('.').count() == 3
                && version.split('.').all(|part| part.parse::<u32>().is_ok())
        });
        assert!(is_exact && line.contains("--locked"), "{file}: {line}");
    }
}

#[test]
fn every_python_package_is_installed_from_a_list_with_hashes() {
    for (file, line) in commands_with("pip install") {
        assert!(
            line.contains("--require-hashes") && line.contains("--requirement"),
            "{file}: {line}"
        );
        // Whatever builds a package would come without a hash.
        let is_built_by_the_list =
            line.contains("--only-binary :all:") || line.contains("\"${@:2}\"");
        assert!(is_built_by_the_list, "{file}: {line}");
    }
    for (file, line) in commands_with("install linters") {
        assert!(line.contains("--no-build-isolation"), "{file}: {line}");
    }
}

#[test]
fn nothing_is_downloaded_without_a_check() {
    for (file, line) in commands() {
        for program in ["curl", "wget", "npm", "npx", "pipx", "uvx", "pip download"] {
            assert!(!format!(" {line}").contains(&format!(" {program} ")), "{file}: {line}");
        }
    }
}

#[test]
fn lists_of_python_packages_name_versions_and_hashes_alone() {
    let mut lists = files(".ci/requirements");
    lists.push(root().join("tests/consumers/requirements.in"));
    lists.retain(|path| path.extension().is_some_and(|extension| extension == "in"));
    assert!(lists.len() > 1);
    for wanted in lists {
        let list = wanted.with_extension("txt");
        let text = read(&list).replace("\\\n", " ");
        let entries: Vec<&str> =
            text.lines().filter(|line| !line.trim().starts_with('#')).collect();
        for entry in &entries {
            let mut parts = entry.split(" --hash=sha256:");
            let package = parts.next().expect("the first of them");
            let hashes: Vec<&str> = parts.map(str::trim).collect();
            let is_pinned = package.contains("==") && !package.contains("://");
            let has_hashes =
                !hashes.is_empty() && hashes.iter().all(|hash| is_hexadecimal(hash, 64));
            assert!(is_pinned && has_hashes, "{}: {entry}", list.display());
        }
        for line in read(&wanted).lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['=', '<', '>']).next().expect("the first of them");
            let is_listed = entries.iter().any(|entry| entry.starts_with(&format!("{name}==")));
            assert!(
                is_listed,
                "{name} is not in {}; CONTRIBUTING.md says how it is made anew",
                list.display()
            );
        }
    }
}

/// The check of dependencies with another text of deny.toml.
fn check_dependencies(name: &str, configuration: &str) -> Output {
    let path = root().join("target").join(name);
    fs::create_dir_all(root().join("target")).expect("a folder");
    fs::write(&path, configuration).expect("a file");
    let mut check = Command::new("python3");
    check.arg(".ci/dependencies.py").arg(path).current_dir(root());
    check.output().unwrap_or_else(|error| panic!("{check:?}: {error}"))
}

#[test]
#[ignore = "slow: needs Python, and the crates of all lock files"]
fn what_deny_toml_does_not_allow_is_an_error() {
    let configuration = read(&root().join("deny.toml"));
    let output = check_dependencies("deny-same.toml", &configuration);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let mut changed = configuration;
    for (from, to) in [
        ("\"ISC\"", "\"0BSD\""),
        ("[\"NCSA\"]", "[\"0BSD\"]"),
        ("crate = \"syn@2\"", "crate = \"syn@4\""),
        ("crate = \"sysctl\"", "crate = \"nothing\""),
        ("unknown-git = \"deny\"", "unknown-git = \"warn\""),
    ] {
        assert!(changed.contains(from), "deny.toml has no `{from}`");
        changed = changed.replacen(from, to, 1);
    }
    let output = check_dependencies("deny-changed.toml", &changed);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for expected in [
        "error: Cargo.toml: libloading",
        "error: fuzz/Cargo.toml: libfuzzer-sys",
        "error: deny.toml allows the licence `0BSD`, which no crate has",
        "error: fuzz/Cargo.toml: syn is there in 2 versions",
        "error: Cargo.toml: thiserror is there in 2 versions",
        "error: deny.toml skips nothing, which is no dependency",
        "error: `unknown-git = 'warn'` in [sources]",
    ] {
        assert!(errors.contains(expected), "`{expected}` is not in:\n{errors}");
    }
}
