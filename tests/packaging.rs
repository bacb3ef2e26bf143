//! What is to be published is complete, holds nothing else, and builds as the README says.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use kbench_tests::root;

use serde_json::Value;

/// Files beside sources and documents that a package may have; cargo makes some of them.
const BESIDE_SOURCES: [&str; 10] = [
    ".cargo_vcs_info.json",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "Cargo.toml.orig",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "build.rs",
];

/// The largest file of a package, in bytes.
const LARGEST_FILE: u64 = 128 << 10;

/// The largest package before it is compressed, in bytes.
const LARGEST_PACKAGE: u64 = 4 << 20;

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output();
    let output = output.expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}:\n{errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// Members of the workspace that are to be published, as `cargo metadata` describes them.
fn published() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages.filter(|package| package["publish"].is_null()).cloned().collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// Paths of the files below a folder, relative to the crate's.
fn files_below(folder: &Path, start: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, start, found);
        } else {
            let path = path.strip_prefix(start).expect("below it").to_str().expect("a name");
            found.push(path.replace('\\', "/"));
        }
    }
}

#[test]
fn a_package_has_its_sources_licences_and_readme_and_nothing_else() {
    let packages = published();
    let names: BTreeSet<&str> = packages.iter().map(|package| text(package, "name")).collect();
    assert!(
        names.is_superset(&["kbench", "kbench-core", "kbench-macros", "kbench-worker"].into()),
        "{names:?}"
    );
    for name in names {
        let package = packages.iter().find(|p| p["name"] == name).expect(name);
        let folder = Path::new(text(package, "manifest_path")).parent().expect("a folder");
        let listed = cargo(&["package", "--list", "--allow-dirty", "--package", name]);
        let listed: BTreeSet<String> = listed.lines().map(|path| path.replace('\\', "/")).collect();

        let mut needed = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"].map(String::from).to_vec();
        files_below(&folder.join("src"), folder, &mut needed);
        if folder.join("build.rs").exists() {
            needed.push("build.rs".into());
        }
        for path in &needed {
            assert!(listed.contains(path), "{name} is packaged without {path}");
        }

        let is_ours = |path: &str| {
            let folders =
                if name == "kbench" { &["src/", "docs/", "examples/"][..] } else { &["src/"] };
            BESIDE_SOURCES.contains(&path) || folders.iter().any(|folder| path.starts_with(folder))
        };
        let foreign: Vec<&String> = listed.iter().filter(|path| !is_ours(path)).collect();
        assert!(foreign.is_empty(), "{name} is packaged with {foreign:?}");

        // Files that cargo makes are not in the folder.
        let size = |path: &String| fs::metadata(folder.join(path)).map_or(0, |file| file.len());
        for path in &listed {
            assert!(size(path) <= LARGEST_FILE, "{path} of {name} has {} bytes", size(path));
        }
        let total: u64 = listed.iter().map(size).sum();
        assert!(total <= LARGEST_PACKAGE, "{name} has {total} bytes");
    }
}

#[test]
fn a_crate_that_is_published_depends_on_published_versions_alone() {
    let packages = published();
    for package in &packages {
        let name = text(package, "name");
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(!text(package, field).is_empty(), "{name} has no {field}");
        }
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            // Cargo leaves dev-dependencies that have a path and no version out of a package.
            if dependency["kind"] == "dev" && dependency["req"] == "*" {
                continue;
            }
            let needed = text(dependency, "name");
            assert_ne!(dependency["req"], "*", "{name} needs any version of {needed}");
            if !dependency["path"].is_null() {
                let known = packages.iter().any(|package| package["name"] == needed);
                assert!(known, "{name} needs {needed}, which is not published");
            }
        }
    }
}

#[test]
fn licences_are_the_same_in_every_package() {
    for package in published() {
        let folder = Path::new(text(&package, "manifest_path")).parent().expect("a folder");
        for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let read = |folder: &Path| fs::read_to_string(folder.join(file)).expect(file);
            assert!(read(folder) == read(root()), "{}: {file}", text(&package, "name"));
        }
    }
}

#[test]
#[ignore = "slow: builds the packaged crates"]
fn the_steps_of_the_readme_work_with_the_packaged_crates() {
    let output = Command::new("bash").arg(".ci/package").current_dir(root()).output();
    let output = output.expect("bash runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    let has_line =
        |parts: &[&str]| printed.lines().any(|line| parts.iter().all(|p| line.contains(p)));
    for package in published() {
        let (name, version) = (text(&package, "name"), text(&package, "version"));
        assert!(has_line(&[&format!("packaged {name} {version}: ")]), "{name}:\n{printed}");
        let folder = format!("/packaged/{name})");
        assert!(
            has_line(&[&format!("built from {name} v{version}"), &folder]),
            "{name}:\n{printed}"
        );
    }
    for variant in ["saxpy", "saxpy_fused", "saxpy_rayon"] {
        let case = format!("my_kernels::saxpy/{variant}/f32/n=1024");
        assert!(has_line(&[&format!("{case}: benchmark")]), "{case} is not listed:\n{printed}");
        assert!(has_line(&[&format!("test {case} ... ok")]), "{case} is not checked:\n{printed}");
    }
    // Of the twelve rows, those of sizes that take long may be left out, and say so.
    let is_row = |line: &&str| line.starts_with("test my_kernels::");
    let is_fine = |line: &&str| {
        line.ends_with("... ok")
            || line.contains("... ignored, not checked at this size, to save time")
    };
    let rows: Vec<&str> = printed.lines().filter(is_row).collect();
    assert!(rows.len() == 12 && rows.iter().all(is_fine), "{printed}");
    assert!(has_line(&["test result: ok. ", " passed; 0 failed"]), "{printed}");
    assert!(!has_line(&["unchecked"]), "{printed}");
}
