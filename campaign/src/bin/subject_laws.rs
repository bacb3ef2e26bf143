//! Kernels whose crossover, or whose serial fraction, is known exactly, under kbench.
//!
//! All costs are rounds of one chain of dependent operations, so two variants take the same time where they make the same
//! number of rounds. Where that is, is an axis that is set on the command line: all searches are the same machine code.

use std::hint::black_box;

use campaign::ORIGINAL;
use campaign::chain::chain;
use kbench::prelude::*;
use rayon::prelude::*;

/// What every variant writes.
const ANSWER: f32 = 7.0;

/// Parts that the parallel share of a kernel is cut into: so many that waiting for the last one does not count.
const PARTS: usize = 1920;

fn spin(rounds: usize, out: &mut [f32]) {
    black_box(chain::<ORIGINAL>(rounds as u64));
    out[0] = ANSWER;
}

/// b·n.
#[kernel_bench(
    sizes = { n: [64, 1024, 16_384, 262_144], at: [8192] },
    inputs = |n, at| (n, at, zeros(1)),
    work = |n| n,
)]
fn affine(n: usize, _at: usize, out: &mut [f32]) {
    spin(n / 4, out);
}

/// a + b·n / 2: as many rounds as the base where n is `at`.
#[kernel_bench(of = affine)]
fn affine_variant(n: usize, at: usize, out: &mut [f32]) {
    spin((n + at) / 8, out);
}

/// b·n up to a step, and 1.3 times as much from there on, as when data leaves a cache.
#[kernel_bench(
    sizes = { n: [64, 1024, 16_384, 262_144], at: [8192] },
    inputs = |n, at| (n, at, zeros(1)),
    work = |n| n,
)]
fn step(n: usize, at: usize, out: &mut [f32]) {
    spin(if n < at { n / 4 } else { n * 13 / 40 }, out);
}

/// 1.1·b·n everywhere.
#[kernel_bench(of = step)]
fn step_variant(n: usize, _at: usize, out: &mut [f32]) {
    spin(n * 11 / 40, out);
}

/// All rounds one after the other.
#[kernel_bench(
    sizes = { rounds: [48_000_000], serial_percent: [10] },
    inputs = |rounds, serial_percent| (rounds as u64, serial_percent as u64, zeros(1)),
    work = |rounds| rounds,
)]
fn amdahl(rounds: u64, _serial_percent: u64, out: &mut [f32]) {
    spin(rounds as usize, out);
}

/// A share of the rounds one after the other, the others in small parts by whichever thread is free: nobody waits for a
/// thread that is slow.
#[kernel_bench(of = amdahl, parallel)]
fn amdahl_parallel(rounds: u64, serial_percent: u64, out: &mut [f32]) {
    let serial = rounds * serial_percent / 100;
    black_box(chain::<ORIGINAL>(serial));
    (0..PARTS).into_par_iter().with_max_len(1).for_each(|_| {
        black_box(chain::<ORIGINAL>((rounds - serial) / PARTS as u64));
    });
    out[0] = ANSWER;
}

kbench::main!(measure);
