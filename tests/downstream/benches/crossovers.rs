//! Variants whose times are known: from where on which of them wins, and what is claimed about that.
use std::hint::black_box;

use kbench::prelude::*;

/// Rounds of a chain in which each waits for the one before.
fn spin(rounds: usize, out: &mut [f32]) {
    let turn = |x: u64, _| x.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17) ^ 0x9e37_79b9;
    black_box((0..rounds).fold(black_box(1), turn));
    out[0] = 1.0;
}

/// n / 4 rounds.
#[kernel_bench(sizes = [64, 1024, 65_536], inputs = |n| (n, zeros(1)))]
fn linear(n: usize, out: &mut [f32]) {
    spin(n / 4, out);
}

/// As many rounds at n = 8192. Its author is too bold, and too modest.
#[kernel_bench(
    of = linear,
    threshold = 1 << 11,
    expect = [speedup >= 1.2 at n >= 65_536, speedup >= 100.0 at n >= 65_536, time < 1s],
)]
fn offset(n: usize, out: &mut [f32]) {
    spin((n + 8192) / 8, out);
}

/// Ten times as slow everywhere.
#[kernel_bench(of = linear)]
fn tenfold(n: usize, out: &mut [f32]) {
    spin(n / 4 * 10, out);
}

/// The same for several combinations of axes.
#[kernel_bench(
    sizes = { n: [256, 65_536], more: [2048, 16_384] },
    inputs = |n, more| (n, more, zeros(1)),
    work = |n| n,
)]
fn grid(n: usize, _more: usize, out: &mut [f32]) {
    spin(n / 4, out);
}

#[kernel_bench(of = grid, threshold = n >= more)]
fn grid_offset(n: usize, more: usize, out: &mut [f32]) {
    spin((n + more) / 8, out);
}

#[kernel_bench(of = grid)]
fn grid_tenfold(n: usize, _more: usize, out: &mut [f32]) {
    spin(n / 4 * 10, out);
}

/// A base for a variant that is right at the listed sizes.
#[kernel_bench(sizes = [1000, 64_000], inputs = |n| (n, zeros(1)))]
fn looked_at(n: usize, out: &mut [f32]) {
    spin(n / 4, out);
}

#[kernel_bench(of = looked_at, threshold = 4000)]
fn brittle(n: usize, out: &mut [f32]) {
    spin((n + 8000) / 8, out);
    if (5000..30_000).contains(&n) && n % 1000 != 0 {
        out[0] = 2.0;
    }
}

kbench::main!(measure);
