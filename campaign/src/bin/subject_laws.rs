//! Kernels whose crossover, or whose serial fraction, is known exactly, under kbench.
//!
//! Costs of crossovers are rounds of one chain of dependent operations, so two variants take the same time where they make
//! the same number of rounds. Where that is, is an axis that is set on the command line: all searches are the same machine code.

use std::hint::black_box;
use std::time::{Duration, Instant};

use campaign::ORIGINAL;
use campaign::chain::chain;
use kbench::prelude::*;
use rayon::prelude::*;

/// What every variant writes.
const ANSWER: f32 = 7.0;

/// Parts that a parallel share is cut into: so many that waiting for the last one does not count, and not so many that
/// starting them does.
const PARTS: usize = 9600;

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

/// All the time at once.
#[kernel_bench(
    sizes = { microseconds: [1_000_000], serial_percent: [10] },
    inputs = |microseconds, serial_percent| (microseconds as u64, serial_percent as u64, zeros(1)),
    work = |microseconds| microseconds,
)]
fn amdahl(microseconds: u64, _serial_percent: u64, out: &mut [f32]) {
    pass(Duration::from_micros(microseconds));
    out[0] = ANSWER;
}

/// A share of the time on one thread, the rest in small parts by whichever thread is free.
#[kernel_bench(of = amdahl, parallel)]
fn amdahl_parallel(microseconds: u64, serial_percent: u64, out: &mut [f32]) {
    let all = Duration::from_micros(microseconds);
    let serial = all * serial_percent as u32 / 100;
    pass(serial);
    (0..PARTS).into_par_iter().with_max_len(1).for_each(|_| pass((all - serial) / PARTS as u32));
    out[0] = ANSWER;
}

/// Lets a time pass. Parts are of time and not of work: on a machine whose cores are not all as fast as one of them alone, the
/// fraction would be another.
fn pass(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

kbench::main!(measure);
