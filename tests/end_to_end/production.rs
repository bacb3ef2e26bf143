//! An annotated library costs nothing in production.

use super::support::{Finished, cargo, downstream};

#[test]
fn without_the_runtime_kbench_is_its_macro_and_nothing_else() {
    let tree =
        downstream(&["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    tree.assert_code(0);
    let of_kbench: Vec<&str> = tree
        .stdout
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !["downstream", "rayon", "rayon-core", "either"].contains(name))
        .filter(|name| !name.starts_with("crossbeam"))
        .collect();
    assert_eq!(of_kbench, ["kbench", "kbench-macros"], "\n{}", tree.stdout);
}

#[test]
fn what_a_signature_may_name_exists_without_the_runtime() {
    // `T: Element`, `impl Operand for` a type of one's own, and the types of a CUDA variant.
    downstream(&["rustc", "--quiet", "--lib", "--", "-Dwarnings"]).assert_code(0);
}

/// The library after macro expansion, with or without the runtime.
fn expanded(features: &[&str]) -> String {
    let arguments =
        [&["rustc", "--quiet", "--lib"], features, &["--", "-Zunpretty=expanded"]].concat();
    // The compiler prints expanded code only when it takes itself for a nightly one.
    let run = Finished::of(cargo(&arguments).env("RUSTC_BOOTSTRAP", "1"));
    run.assert_code(0);
    run.stdout
}

const SIGNATURE: &str = "pub fn scale(x: &[f32], s: f32, y: &mut [f32])";

#[test]
fn without_the_runtime_the_attribute_leaves_the_function_alone() {
    let production = expanded(&[]);
    assert!(production.contains(SIGNATURE), "{production}");
    for trace in ["__private", "inventory", "struct scale", "kernel_bench", "const _"] {
        assert!(!production.contains(trace), "`{trace}` is left:\n{production}");
    }
}

/// What the test above looks for is there with the runtime: it can tell the two apart.
#[test]
#[ignore = "slow: builds the runtime once more"]
fn with_the_runtime_the_attribute_registers_the_function() {
    let measured = expanded(&["--features", "kbench/run"]);
    for trace in [SIGNATURE, "__private", "struct scale"] {
        assert!(measured.contains(trace), "no `{trace}`:\n{measured}");
    }
}
