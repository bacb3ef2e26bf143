//! What the manifests say is true.

use std::collections::BTreeSet;
use std::process::Command;

use kbench_tests::root;

use serde_json::Value;

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().expect("a number"));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Packages that reach users: those of the workspace, and what the runtime depends on.
#[test]
fn no_dependency_needs_a_newer_compiler_than_we_say() {
    let metadata = metadata();
    let ours = version(env!("CARGO_PKG_RUST_VERSION"));
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--package",
            "kbench",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    let shipped = |package: &Value| {
        let name = format!("{} v{}", text(package, "name"), text(package, "version"));
        tree.lines().any(|line| line.starts_with(&name))
    };
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.iter().filter(|package| shipped(package)).count() > 20, "\n{tree}");
    for package in packages.iter().filter(|package| shipped(package)) {
        if let Some(needs) = package["rust_version"].as_str() {
            assert!(version(needs) <= ours, "{} needs Rust {needs}", text(package, "name"));
        }
    }
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().expect("a string")
}

#[test]
fn licences_are_where_the_manifests_say() {
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(root().join(file).is_file(), "{file}");
    }
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    for name in ["kbench", "kbench-core", "kbench-macros", "kbench-worker"] {
        let package = packages.iter().find(|p| p["name"] == name).expect(name);
        assert_eq!(package["license"], "MIT OR Apache-2.0");
    }
}

/// Signatures of the methods of a trait, as written in a source file, without those that are hidden: only the runtime calls them.
fn methods<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let start = source.find(&format!("pub trait {name}")).expect("the trait");
    let body = &source[start..];
    let end = body.find("\n}").expect("its end");
    let lines = body[..end].lines().map(str::trim);
    let signature = |(before, line): (&'a str, &'a str)| {
        let is_shown = line.starts_with("fn ") && before != "#[doc(hidden)]";
        is_shown.then(|| line.trim_end_matches([';', ' ', '{']))
    };
    lines.clone().zip(lines.skip(1)).filter_map(signature).collect()
}

#[test]
fn traits_without_the_runtime_are_twins_of_those_with_it() {
    let values = include_str!("../src/production/mod.rs");
    let devices = include_str!("../src/production/cuda.rs");
    for (name, runtime, production) in [
        ("Element", include_str!("../kbench-worker/src/value/element.rs"), values),
        ("Operand", include_str!("../kbench-worker/src/value/operand.rs"), values),
        ("Lend", include_str!("../kbench-worker/src/value/lend.rs"), values),
        ("Upload", include_str!("../kbench-worker/src/cuda/arguments.rs"), devices),
        ("DeviceValue", include_str!("../kbench-worker/src/cuda/arguments.rs"), devices),
    ] {
        let expected = methods(runtime, name);
        assert!(!expected.is_empty(), "{name}");
        assert_eq!(methods(production, name), expected, "{name}");
    }
}

/// Names of public functions, in order and without repetition.
fn public_functions(source: &str) -> BTreeSet<&str> {
    let name = |line: &'_ str| -> Option<usize> {
        let line = line.trim_start();
        let rest = line.strip_prefix("pub const fn ").or_else(|| line.strip_prefix("pub fn "))?;
        Some(rest.as_ptr() as usize - source.as_ptr() as usize)
    };
    let starts = source.lines().filter_map(name);
    starts.filter_map(|start| source[start..].split(['(', '<']).next()).collect()
}

#[test]
fn a_body_of_a_cuda_variant_compiles_without_the_backend_and_without_the_runtime() {
    let absent = public_functions(include_str!("../kbench-worker/src/cuda/absent.rs"));
    let production = public_functions(include_str!("../src/production/cuda.rs"));
    let backend = [
        include_str!("../kbench-worker/src/cuda/backend/blas.rs"),
        include_str!("../kbench-worker/src/cuda/backend/compile.rs"),
        include_str!("../kbench-worker/src/cuda/backend/gpu.rs"),
        include_str!("../kbench-worker/src/cuda/backend/launch.rs"),
        include_str!("../kbench-worker/src/cuda/backend/library.rs"),
        include_str!("../kbench-worker/src/cuda/backend/memory.rs"),
    ];
    let backend: BTreeSet<&str> = backend.into_iter().flat_map(public_functions).collect();
    assert!(absent.is_subset(&backend), "{:?}", absent.difference(&backend));
    // What is for the runtime alone, or speaks in the terms of the bindings.
    let special = [
        "architecture",
        "blas",
        "compile",
        "context",
        "devices",
        "dump_to",
        "flops",
        "info",
        "open",
        "stream",
    ];
    let missing: Vec<_> = backend.difference(&production).collect();
    assert_eq!(missing, special.iter().collect::<Vec<_>>());
}
