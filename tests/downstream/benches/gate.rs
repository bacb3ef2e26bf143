//! A build that can be made slower: with `PLANTED=3` in the environment of the compiler, by three per cent.
use std::hint::black_box;

use kbench::prelude::*;

/// Per cent by which this build is slower.
const PLANTED: usize = match option_env!("PLANTED") {
    Some(text) => number(text.as_bytes()),
    None => 0,
};

const fn number(digits: &[u8]) -> usize {
    let (mut value, mut i) = (0, 0);
    while i < digits.len() {
        value = 10 * value + (digits[i] - b'0') as usize;
        i += 1;
    }
    value
}

/// Rounds of a chain in which each waits for the one before.
#[inline(never)]
fn spin(rounds: usize) -> u64 {
    let turn = |x: u64, _| x.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17) ^ 0x9e37_79b9;
    (0..rounds).fold(black_box(1), turn)
}

/// Slower in a build that was made so.
#[kernel_bench(sizes = [10_000], inputs = |n| n)]
fn planted(n: usize) -> u64 {
    black_box(spin(n + n * PLANTED / 100));
    spin(10)
}

/// The same in every build.
#[kernel_bench(sizes = [10_000], inputs = |n| n)]
fn untouched(n: usize) -> u64 {
    black_box(spin(n));
    spin(10)
}

/// Bound by memory, and the same in every build.
#[kernel_bench(sizes = [1 << 20], inputs = |n| uniform(n))]
fn sum(x: &[f32]) -> f32 {
    x.chunks(8).map(|part| part.iter().sum::<f32>()).sum()
}

kbench::main!();
