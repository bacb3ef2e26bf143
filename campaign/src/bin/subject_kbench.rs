//! Pairs of tasks under kbench: the base does `base_extra` more than the size says, its variants do `extra` more.
//!
//! All variants give the same result, so that the correctness gate admits them, and all axes are set on the command line,
//! so that all tasks are the same machine code.

use std::hint::black_box;

use campaign::{COPY, ORIGINAL};
use kbench::prelude::*;

/// What every variant writes.
const ANSWER: f32 = 7.0;

/// The base of the chains.
#[kernel_bench(
    sizes = { rounds: [campaign::chain::ROUNDS as usize], extra: [0], base_extra: [0] },
    inputs = |rounds, extra, base_extra| (rounds as u64, extra as u64, base_extra as u64, zeros(1)),
    work = |rounds| rounds,
)]
fn chain(rounds: u64, _extra: u64, base_extra: u64, out: &mut [f32]) {
    black_box(campaign::chain::chain::<ORIGINAL>(rounds + base_extra));
    out[0] = ANSWER;
}

/// The very function of the base.
#[kernel_bench(of = chain)]
fn chain_same(rounds: u64, extra: u64, _base_extra: u64, out: &mut [f32]) {
    black_box(campaign::chain::chain::<ORIGINAL>(rounds + extra));
    out[0] = ANSWER;
}

/// Its copy at another address.
#[kernel_bench(of = chain)]
fn chain_copy(rounds: u64, extra: u64, _base_extra: u64, out: &mut [f32]) {
    black_box(campaign::chain::chain::<COPY>(rounds + extra));
    out[0] = ANSWER;
}

/// The base of the walks around a ring, which all variants share.
#[kernel_bench(
    sizes = {
        elements: [campaign::sweep::ELEMENTS],
        chunks: [campaign::sweep::CHUNKS as usize],
        extra: [0],
        base_extra: [0],
    },
    inputs = |elements, chunks, extra, base_extra| (
        constant(elements, 1.0),
        chunks as u64,
        extra as u64,
        base_extra as u64,
        zeros(1),
    ),
    work = |chunks| chunks,
)]
fn sweep(ring: &[f32], chunks: u64, _extra: u64, base_extra: u64, out: &mut [f32]) {
    black_box(campaign::sweep::sweep::<ORIGINAL>(ring, chunks + base_extra));
    out[0] = ANSWER;
}

/// The very function of the base.
#[kernel_bench(of = sweep)]
fn sweep_same(ring: &[f32], chunks: u64, extra: u64, _base_extra: u64, out: &mut [f32]) {
    black_box(campaign::sweep::sweep::<ORIGINAL>(ring, chunks + extra));
    out[0] = ANSWER;
}

/// Its copy at another address.
#[kernel_bench(of = sweep)]
fn sweep_copy(ring: &[f32], chunks: u64, extra: u64, _base_extra: u64, out: &mut [f32]) {
    black_box(campaign::sweep::sweep::<COPY>(ring, chunks + extra));
    out[0] = ANSWER;
}

kbench::main!(measure);
