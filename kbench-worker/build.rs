//! Notes how this build is made, because a run's environment is part of its result.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=KBENCH_OPT_LEVEL={}", variable("OPT_LEVEL"));
    println!("cargo::rustc-env=KBENCH_TARGET={}", variable("TARGET"));
    println!(
        "cargo::rustc-env=KBENCH_RUSTFLAGS={}",
        rustflags(&variable("CARGO_ENCODED_RUSTFLAGS"))
    );
    println!(
        "cargo::rustc-env=KBENCH_RUSTC={}",
        rustc_version().unwrap_or_else(|| "unknown".into())
    );
}

fn rustc_version() -> Option<String> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Flags as people write them: cargo puts a control character between them, and a line would end its directive.
fn rustflags(encoded: &str) -> String {
    encoded.replace(['\x1f', '\n', '\r'], " ")
}
