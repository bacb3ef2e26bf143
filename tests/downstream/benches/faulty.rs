//! Variants that are wrong in every way that the gate knows, beside one that is right.
use downstream::{dot, roots, scale, sort, Negative};
use kbench::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Off by one percent from the second element on.
#[kernel_bench(of = scale)]
fn inexact(x: &[f32], s: f32, y: &mut [f32]) {
    scale(x, s, y);
    y.iter_mut().skip(1).for_each(|y| *y *= 1.01);
}

/// Forgets the rest after the last full vector.
#[kernel_bench(of = scale)]
fn unwritten(x: &[f32], s: f32, y: &mut [f32]) {
    for (x, y) in x.chunks_exact(4).zip(y.chunks_exact_mut(4)) {
        scale(x, s, y);
    }
}

#[kernel_bench(of = scale)]
fn zeros_only(_: &[f32], _: f32, y: &mut [f32]) {
    y.fill(0.0);
}

#[kernel_bench(of = scale)]
fn not_a_number(x: &[f32], s: f32, y: &mut [f32]) {
    scale(x, s, y);
    y[0] = f32::NAN;
}

#[kernel_bench(of = scale)]
fn panics(x: &[f32], s: f32, y: &mut [f32]) {
    assert!(x.len() % 8 == 0, "only multiples of eight");
    scale(x, s, y);
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Another answer at every call.
#[kernel_bench(of = dot)]
fn different(x: &[f32], y: &[f32]) -> f32 {
    dot(x, y) + (CALLS.fetch_add(1, Ordering::Relaxed) % 2) as f32
}

static SORTED: AtomicUsize = AtomicUsize::new(0);

/// Right for the calls of the check, and lazy when it is timed.
#[kernel_bench(of = sort)]
fn only_at_first(x: &mut [f32]) {
    if SORTED.fetch_add(1, Ordering::Relaxed) < 60 {
        sort(x);
    }
}

#[kernel_bench(of = roots)]
fn refuses(x: &[f32], y: &mut [f32]) -> Result<(), Negative> {
    roots(x, y)?;
    roots(&[-1.0], y)
}

kbench::main!();
