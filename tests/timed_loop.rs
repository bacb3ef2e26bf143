//! The timed loop adds nothing: shown by figures and by machine code.
//!
//! `cargo test --test timed_loop -- --nocapture --test-threads 1` prints both.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

use kbench::Suite;
use kbench::prelude::*;

/// Calls in a plain loop; long enough that the loop's beginning and end do not matter.
const PLAIN: u64 = 100_000;

/// One multiplication and a call: about a nanosecond.
#[inline(never)]
fn step(x: u64) -> u64 {
    x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

/// Forty-eight dependent multiplications without a branch: about twenty nanoseconds.
#[inline(never)]
fn chain(x: u64) -> u64 {
    #[inline(always)]
    fn eight(x: u64) -> u64 {
        let step = |x: u64| x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
        step(step(step(step(step(step(step(step(x))))))))
    }
    eight(eight(eight(eight(eight(eight(x))))))
}

/// Puts the plain loop at the same place in a cache line as the timed one: an address alone can make such a loop a
/// third slower, and which address it gets is the linker's whim.
#[inline(always)]
#[allow(unsafe_code)] // nothing else can ask the assembler for an alignment
fn align() {
    // With what is between here and the loop, it begins in the middle of a line.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the directives emit no-operations; they touch no register and no memory.
    unsafe {
        std::arch::asm!(".p2align 6", ".nops 16", options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags));
    }
}

#[kernel_bench(sizes = [1], inputs = |n| n as u64 + 41)]
fn tiny(x: u64) -> u64 {
    step(x)
}

/// The same body in a loop as anybody would write it, as one call.
#[kernel_bench(of = tiny)]
fn tiny_plain(x: u64) -> u64 {
    let mut result = 0;
    align();
    for _ in 0..PLAIN {
        result = black_box(step(black_box(x)));
    }
    result
}

#[kernel_bench(sizes = [1], inputs = |n| n as u64 + 41)]
fn short(x: u64) -> u64 {
    chain(x)
}

#[kernel_bench(of = short)]
fn short_plain(x: u64) -> u64 {
    let mut result = 0;
    align();
    for _ in 0..PLAIN {
        result = black_box(chain(black_box(x)));
    }
    result
}

/// Fresh data for every call.
#[kernel_bench(sizes = [4], inputs = |n| uniform(n), in_place)]
#[inline(never)]
fn negate(x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x = -*x);
}

/// Time per call as kbench reports it over time per call in the plain loop: the median over the blocks of one run, each
/// of which has both side by side.
fn ratio(kernel: &str) -> (f64, f64) {
    let suite = Suite::discover().expect("kernels are registered").configure(|configuration| {
        configuration.selection.kernels = vec![kernel.to_owned()];
        configuration.effort.measurement_time = Duration::from_secs(2);
    });
    let report = suite.run().expect("a report");
    let [body, plain] = &report.rows[..] else { panic!("two rows") };
    let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64;
    let blocks = body.raw.samples[0].iter().zip(&plain.raw.samples[0]);
    let mut ratios: Vec<f64> =
        blocks.map(|(body, plain)| mean(body) * PLAIN as f64 / mean(plain)).collect();
    ratios.sort_by(f64::total_cmp);
    (body.time_ns.expect("a time"), ratios[ratios.len() / 2])
}

#[test]
fn a_tiny_body_takes_as_long_as_in_a_plain_loop() {
    for kernel in ["tiny", "short"] {
        let (time, ratio) = ratio(kernel);
        println!("{kernel}: {time:.2} ns, {ratio:.4} of a plain loop");
        // On a quiet machine the ratio is within 2 % of 1; the test leaves room for a busy one.
        assert!((0.85..1.15).contains(&ratio), "{kernel}: {ratio} of a plain loop");
    }
}

#[test]
fn the_machine_code_of_a_timed_loop_calls_nothing_but_the_kernel() {
    let executable = std::env::current_exe().expect("a path");
    let arguments = ["--disassemble", "--demangle", "--no-show-raw-insn"];
    let Ok(listing) = Command::new("objdump").args(arguments).arg(executable).output() else {
        println!("skipped: objdump is not installed");
        return;
    };
    let listing = String::from_utf8_lossy(&listing.stdout);
    let is_loop = |function: &&str| {
        function.lines().next().is_some_and(|name| {
            name.contains("kbench_repeat") || name.contains("kbench_over_copies")
        })
    };
    let loops: Vec<&str> = listing.split("\n\n").filter(is_loop).collect();
    let called: BTreeSet<&str> = loops
        .iter()
        .flat_map(|function| function.lines())
        .filter(|line| line.contains("call"))
        .map(|line| {
            line.split_once('<').map_or("a pointer", |(_, name)| name.trim_end_matches('>'))
        })
        .collect();
    println!("{} timed loops; they call: {called:?}", loops.len());
    assert!(loops.len() >= 4, "the loops are functions of their own");
    assert!(!called.is_empty(), "the kernels of this file are not inlined");
    for name in called {
        let is_kernel = ["step", "chain", "tiny_plain", "short_plain", "negate"]
            .iter()
            .any(|kernel| name.contains(kernel));
        assert!(is_kernel, "a timed loop calls `{name}`");
    }
}
