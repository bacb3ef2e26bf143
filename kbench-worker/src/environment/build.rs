//! The program and its build: what the build script noted about the compiler and its flags.

use std::path::PathBuf;
use std::{env, io};

/// The target triple.
pub(super) const TARGET: &str = env!("KBENCH_TARGET");
/// What the compiler calls itself.
pub(super) const RUSTC: &str = env!("KBENCH_RUSTC");
/// Optimisation level of this crate.
pub(super) const OPT_LEVEL: &str = env!("KBENCH_OPT_LEVEL");
/// Flags of the compiler, with a space between them.
pub(super) const RUSTFLAGS: &str = env!("KBENCH_RUSTFLAGS");

/// The processor that flags compile for; the last one wins, as it does in the compiler.
pub(super) fn target_cpu(flags: &str) -> Option<&str> {
    flags.split_whitespace().rev().find_map(|word| {
        // `-C` and `--codegen` may be words of their own.
        let option = word.strip_prefix("-C").or_else(|| word.strip_prefix("--codegen="));
        option.unwrap_or(word).strip_prefix("target-cpu=")
    })
}

/// The file of the program that runs. It may be replaced by a new build meanwhile: the name that Linux has for it still finds
/// the one that is running.
pub fn this_program() -> io::Result<PathBuf> {
    let this = PathBuf::from("/proc/self/exe");
    if this.exists() { Ok(this) } else { env::current_exe() }
}

/// The name of a target without the digits that cargo adds to it, which another build changes.
pub fn target_name(file: &str) -> &str {
    let stem = file.strip_suffix(".exe").unwrap_or(file);
    match stem.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name
        }
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_the_same_in_every_build() {
        let names = ["kernels-0123456789abcdef", "kernels", "my-kernels", "a-b.exe"];
        assert_eq!(names.map(target_name), ["kernels", "kernels", "my-kernels", "a-b"]);
    }

    #[test]
    fn the_processor_is_found_in_every_way_to_write_it() {
        for flags in [
            "-Ctarget-cpu=native",
            "-C target-cpu=native",
            "--codegen=target-cpu=native -Cdebuginfo=1",
            "-Ctarget-cpu=x86-64-v2 --codegen target-cpu=native",
        ] {
            assert_eq!(target_cpu(flags), Some("native"), "{flags}");
        }
        for flags in ["", "-Ctarget-feature=+avx2", "--cfg=my_target-cpu=native"] {
            assert_eq!(target_cpu(flags), None, "{flags}");
        }
    }
}
