//! Every CUDA source of the repository compiles, whatever the machine has: NVRTC needs no device.

#![cfg(feature = "cuda")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::{env, fs};

use kbench::cuda::compile;
use kbench::{GpuError, Source};
use rayon::prelude::*;

/// Generations of devices that are in use.
const ARCHITECTURES: [&str; 5] = ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a"];

/// Sources that the first of them cannot compile, which variants decline.
const FROM_AMPERE_ON: [&str; 3] = ["attention_decode.cu", "attention_tensor.cu", "matmul.cu"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Files of a kind below a folder.
fn files(folder: &str, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder of the repository");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == kind));
    files.sort();
    files
}

/// Files of a kind in a folder and all folders below it.
fn files_below(folder: &str, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder of the repository");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let folders = paths.filter(|path| path.is_dir());
    let names =
        folders.map(|path| path.file_name().expect("a name").to_string_lossy().into_owned());
    let below = names.flat_map(|name| files_below(&format!("{folder}/{name}"), kind));
    let mut all: Vec<PathBuf> = below.chain(files(folder, kind)).collect();
    all.sort();
    all
}

/// The sources that NVRTC compiles at run time; a program of its own is none of them.
fn sources() -> Vec<PathBuf> {
    let folders = ["kernels/cuda", "kbench-worker/src/cuda/backend", "campaign/gpu"];
    let all = folders.iter().flat_map(|folder| files(folder, "cu"));
    all.filter(|path| path.file_name().is_some_and(|name| name != "yardstick.cu")).collect()
}

/// The text of a file for as long as the program runs, as `include_str!` would give it.
fn source(path: &Path) -> Source {
    let text = fs::read_to_string(path).expect("a readable source");
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    Source::new(text.leak()).named(name.leak()).headers(kernels::shared::COMMON)
}

/// The assembly of a source, or none where there is no NVRTC; CI says that there is. What one test has compiled, the others
/// find.
fn assembly(path: &Path, architecture: &'static str) -> Option<String> {
    type Known = HashMap<(PathBuf, &'static str), Option<String>>;
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let key = (path.to_owned(), architecture);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(assembly) = known().get(&key) {
        return assembly.clone();
    }
    let assembly = compiled(path, architecture);
    known().insert(key, assembly.clone());
    assembly
}

fn compiled(path: &Path, architecture: &str) -> Option<String> {
    match compile(&source(path), architecture) {
        Ok(compiled) => {
            assert!(!compiled.cubin.is_empty(), "{}: no machine code", path.display());
            Some(compiled.ptx)
        }
        Err(error @ GpuError::Declined(_)) => {
            assert!(env::var_os("KBENCH_REQUIRE_NVRTC").is_none(), "{error}");
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{} for {architecture}: {error}", path.display()),
    }
}

#[test]
#[ignore = "slow: compiles every source five times"]
fn every_source_compiles_for_every_generation() {
    let sources = sources();
    assert!(sources.len() >= 20, "{sources:?}");
    let generations = |path: &PathBuf| {
        let is_late = FROM_AMPERE_ON.iter().any(|name| path.ends_with(name));
        &ARCHITECTURES[usize::from(is_late)..]
    };
    sources.par_iter().for_each(|path| {
        generations(path).par_iter().for_each(|architecture| drop(assembly(path, architecture)));
    });
}

#[test]
#[ignore = "slow: compiles every source"]
fn every_kernel_that_is_named_exists() {
    let cuda = files("kernels/cuda", "cu");
    let assemblies: Option<Vec<String>> = cuda.iter().map(|p| assembly(p, "sm_90a")).collect();
    let Some(assemblies) = assemblies else { return };
    let mut names = 0;
    for path in files_below("kernels/src", "rs") {
        let text = fs::read_to_string(&path).expect("readable");
        // A name is written out, or has one of three endings.
        let named = |before: &str, endings: &[&str]| {
            let quoted = text.split(before).skip(1).filter_map(|rest| rest.split('"').next());
            let entries = quoted.flat_map(|name| endings.iter().map(move |e| format!("{name}{e}")));
            entries.collect::<Vec<String>>()
        };
        let whole = named("gpu.kernel(SOURCE, \"", &[""]);
        let generic = named("entry!(T, \"", &["_f32", "_f16", "_bf16"]);
        for name in whole.into_iter().chain(generic) {
            let entry = format!(".entry {name}(");
            assert!(assemblies.iter().any(|ptx| ptx.contains(&entry)), "{name} of {path:?}");
            names += 1;
        }
    }
    assert!(names >= 60, "{names} kernels are named");
}

/// Names that are put together by macros, or chosen from tables, are seen from the other side: no entry point is left over.
#[test]
#[ignore = "slow: compiles every source"]
fn every_entry_point_is_named_by_a_kernel() {
    let sources = files_below("kernels/src", "rs");
    let texts: String = sources.iter().map(|p| fs::read_to_string(p).expect("readable")).collect();
    let is_named = |name: &str| texts.contains(&format!("\"{name}\""));
    for path in files("kernels/cuda", "cu") {
        let Some(ptx) = assembly(&path, "sm_90a") else { return };
        let entries = ptx.lines().filter_map(|line| line.split(".entry ").nth(1));
        let names = entries.filter_map(|entry| entry.split(['(', ' ']).next());
        for name in names {
            let endings = ["_f32", "_f16", "_bf16"].into_iter();
            let mut stems = endings.filter_map(|ending| name.strip_suffix(ending));
            assert!(is_named(name) || stems.any(is_named), "{name} of {}", path.display());
        }
    }
}

#[test]
fn a_mistake_is_shown_with_its_line() {
    const WRONG: Source =
        Source::new("extern \"C\" __global__ void twice(float* x) {\n    *x = unknown;\n}\n")
            .named("twice.cu");
    match compile(&WRONG, "sm_90") {
        Err(error @ GpuError::Declined(_)) => {
            assert!(env::var_os("KBENCH_REQUIRE_NVRTC").is_none(), "{error}");
            eprintln!("skipped: {error}");
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("twice.cu does not compile:"), "{text}");
            assert!(text.contains("identifier \"unknown\" is undefined"), "{text}");
            assert!(text.contains("      2 |     *x = unknown;"), "{text}");
        }
        Ok(_) => panic!("it compiles"),
    }
}

#[test]
fn half_precision_headers_are_found_where_there_are_any() {
    const HALF: Source = Source::new(
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n\
         extern \"C\" __global__ void half_of(__half* x) { *x = __float2half(0.5f); }\n",
    );
    if let Err(error) = compile(&HALF, "sm_90a") {
        assert!(env::var_os("KBENCH_REQUIRE_NVRTC").is_none(), "{error}");
        eprintln!("skipped: {error}");
    }
}

/// Numbers of whole constants by their names, where lines begin like this.
fn constants<'t>(text: &'t str, beginnings: &[&str]) -> Vec<(&'t str, u64)> {
    let lines = text.lines().map(str::trim);
    let definitions =
        lines.filter_map(|line| beginnings.iter().find_map(|start| line.strip_prefix(start)));
    let constant = |definition: &'t str| {
        let (name, value) = definition.split_once(" = ")?;
        let name = name.trim_end_matches(": usize");
        let value = value.split(';').next()?.replace('_', "").parse().ok()?;
        Some((name, value))
    };
    definitions.filter_map(constant).collect()
}

/// How much a block or a thread does is known on both sides: of the launch, and of what is launched.
#[test]
fn constants_of_the_same_name_are_the_same_in_rust_and_in_cuda() {
    let mut shared = 0;
    for path in files_below("kernels/src", "rs") {
        let text = fs::read_to_string(&path).expect("readable");
        let includes =
            text.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
        for cuda in includes.filter(|name| name.ends_with(".cu")) {
            let cuda = path.parent().expect("a folder").join(cuda);
            let there = fs::read_to_string(&cuda).expect("readable");
            let there = constants(&there, &["static constexpr unsigned int "]);
            let here = constants(&text, &["const ", "pub const ", "pub(super) const "]);
            for (name, number) in there {
                let mut same = here.iter().filter(|(other, _)| *other == name).peekable();
                if same.peek().is_some() {
                    let is_known = same.any(|(_, other)| *other == number);
                    assert!(
                        is_known,
                        "{name} = {number} of {} is another number in {}",
                        cuda.display(),
                        path.display()
                    );
                    shared += 1;
                }
            }
        }
    }
    assert!(shared >= 6, "only {shared} constants are known on both sides");
}

/// A constant that has another name in CUDA, or is in a header, says so: `/// Blocks at most: MOST_BLOCKS there.`
#[test]
fn a_constant_that_names_its_twin_in_cuda_is_the_same() {
    let cuda = files("kernels/cuda", "cu").into_iter().chain(files("kernels/cuda", "cuh"));
    let texts: Vec<String> = cuda.map(|path| fs::read_to_string(path).expect("readable")).collect();
    let there = |name: &str| {
        let all =
            texts.iter().flat_map(|text| constants(text, &["static constexpr unsigned int "]));
        let mut named = all.filter(|(other, _)| *other == name).map(|(_, number)| number);
        named.next().filter(|_| named.next().is_none())
    };
    let mut twins = 0;
    for path in files_below("kernels/src", "rs") {
        let text = fs::read_to_string(&path).expect("readable");
        let mut comment = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(words) = line.strip_prefix("///") {
                comment += words;
                continue;
            }
            let comment = std::mem::take(&mut comment);
            let [(here, number)] =
                constants(line, &["const ", "pub const ", "pub(super) const "])[..]
            else {
                continue;
            };
            let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let is_name = |word: &&str| word.trim_matches('_').contains('_');
            for name in comment.split(|c| !is_part(c)).filter(is_name) {
                let Some(other) = there(name) else {
                    panic!("{here} of {}: there is no {name} in one CUDA file", path.display());
                };
                assert_eq!(number, other, "{here} of {} is {name} in CUDA", path.display());
                twins += 1;
            }
        }
    }
    assert!(twins >= 5, "only {twins} constants have a twin");
}
