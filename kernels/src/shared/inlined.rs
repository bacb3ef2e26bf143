//! Whether loops are really compiled for the widest vectors.
//!
//! A function that the compiler leaves outside of a version for wide vectors is compiled for every processor, and the loop is
//! slow without anybody noticing. So this program looks at its own instructions: a version for AVX-512 may call nothing of this
//! library but what has its own choice of instructions, and not the functions that stand in for missing instructions. What it
//! cannot see is a closure of ours within a function of the standard library that is left outside: that has the library's name.

use std::collections::BTreeSet;
use std::env;
use std::process::Command;

/// Names of versions for AVX-512, and how many of each there are at least; if there are fewer, names must have changed.
const VERSIONS: [(&str, usize); 3] = [
    ("::avx512", 50),          // vectorise! with a function
    ("::run_with_avx512", 40), // vectorise! with a call
    ("::with_avx512", 6),      // tasks of signal::vector
];

/// What a version for AVX-512 may call: conversions and stores of a whole block, and the search for the level.
const MAY_BE_CALLED: [&str; 7] = [
    "kernels::shared::simd::widen_f16",
    "kernels::shared::simd::narrow_f16",
    "kernels::shared::simd::avx512::",
    "kernels::shared::simd::avx2::",
    "kernels::shared::simd::find_level",
    "kernels::shared::streaming::store",
    "kernels::shared::streaming::avx::",
];

/// What was found in a disassembly.
#[derive(Debug, Default, PartialEq)]
struct Found {
    /// Calls of functions that should be part of their caller, as "caller calls callee".
    calls: BTreeSet<String>,
    /// How many callers there are of each of [`VERSIONS`].
    versions: [usize; VERSIONS.len()],
}

/// Which of [`VERSIONS`] a function is.
fn version(name: &str) -> Option<usize> {
    let is_ours = name.contains("kernels::") && !name.contains("simd::avx512::");
    VERSIONS.iter().position(|(part, _)| is_ours && name.contains(part))
}

/// What an instruction calls, be it by a jump as the last thing that a function does.
fn callee<'a>(instruction: &'a str, caller: &str) -> Option<&'a str> {
    let callee = instruction.split_once(" <")?.1.trim_end_matches('>');
    let is_jump = instruction.contains("\tjmp") && callee.split("+0x").next() != Some(caller);
    (is_jump || instruction.contains("\tcall")).then_some(callee)
}

fn calls_in_versions(disassembly: &str) -> Found {
    let (mut found, mut caller) = (Found::default(), None);
    for line in disassembly.lines() {
        if let Some((_, name)) = line.split_once(" <").filter(|_| line.ends_with(">:")) {
            let name = &name[..name.len() - 2];
            caller = version(name).map(|version| {
                found.versions[version] += 1;
                name
            });
        } else if let Some(caller) = caller
            && let Some(callee) = callee(line, caller)
        {
            let is_ours = callee.contains("kernels::");
            let is_allowed = MAY_BE_CALLED.iter().any(|name| callee.contains(name));
            if is_ours && !is_allowed || callee.starts_with("fma") {
                found.calls.insert(format!("{caller} calls {callee}"));
            }
        }
    }
    found
}

#[test]
fn nothing_is_left_outside_of_a_version_for_wide_vectors() {
    if !cfg!(target_arch = "x86_64") || cfg!(debug_assertions) {
        eprintln!("skipped: this build has no optimised version for AVX-512");
        return;
    }
    let program = env::current_exe().expect("a running program has a path");
    let disassembly =
        Command::new("objdump").args(["-d", "-C", "--no-show-raw-insn"]).arg(program).output();
    let Some(output) = disassembly.ok().filter(|output| output.status.success()) else {
        let reason = "there is no objdump to look at the instructions with";
        assert!(env::var_os("KBENCH_REQUIRE_OBJDUMP").is_none(), "{reason}");
        eprintln!("skipped: {reason}");
        return;
    };
    let Found { calls, versions } = calls_in_versions(&String::from_utf8_lossy(&output.stdout));
    for ((name, least), count) in VERSIONS.iter().zip(versions) {
        assert!(count >= *least, "{count} versions have {name} in their names, not {least}");
    }
    assert!(calls.is_empty(), "not part of their callers:\n{calls:#?}");
}

#[test]
fn a_call_that_should_be_part_of_its_caller_is_found() {
    let disassembly = "\
0000000000001000 <kernels::elementwise::relu::body::avx512>:
  1000:\tcall   2000 <kernels::elementwise::relu::body::baseline>
  1005:\tcall   *0x1234(%rip)        # 3000 <kernels::shared::simd::avx512::widen_f16>
  100a:\tjmp    1005 <kernels::elementwise::relu::body::avx512+0x5>
0000000000002000 <kernels::elementwise::relu::body::baseline>:
  2000:\tcall   4000 <kernels::elementwise::relu::body::avx512>
0000000000003000 <kernels::shared::simd::avx512::widen_f16>:
  3000:\tcall   2000 <kernels::elementwise::relu::body::baseline>
0000000000004000 <kernels::shared::simd::run_with_avx512>:
  4000:\tjmp    2000 <kernels::elementwise::relu::body::baseline>
0000000000005000 <kernels::signal::vector::x86::with_avx512>:
  5000:\tcall   6000 <fmaf>
";
    let calls = [
        "kernels::elementwise::relu::body::avx512 calls kernels::elementwise::relu::body::baseline",
        "kernels::shared::simd::run_with_avx512 calls kernels::elementwise::relu::body::baseline",
        "kernels::signal::vector::x86::with_avx512 calls fmaf",
    ];
    let calls = calls.map(str::to_owned).into_iter().collect();
    assert_eq!(calls_in_versions(disassembly), Found { calls, versions: [1, 1, 1] });
}
