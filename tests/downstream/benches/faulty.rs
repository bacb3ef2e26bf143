//! Variants that are wrong in every way that the gate knows, beside one that is right.
use downstream::{dot, roots, scale, sort, Negative};
use kbench::prelude::*;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

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

static LAST: AtomicU64 = AtomicU64::new(0);

/// Another answer at the second call on the same input.
#[kernel_bench(of = dot)]
fn different(x: &[f32], y: &[f32]) -> f32 {
    let input = (x.len() as u64) << 32 | u64::from(x[0].to_bits());
    let is_same = LAST.swap(input, Ordering::Relaxed) == input;
    dot(x, y) + f32::from(u8::from(is_same))
}

static SORTED: AtomicUsize = AtomicUsize::new(0);

/// Right at first, and lazy later.
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

#[derive(Clone, Operand)]
pub struct Moments {
    sum: f32,
    count: u64,
}

#[kernel_bench(sizes = [256], inputs = |n| uniform(n))]
pub fn moments(x: &[f32]) -> Moments {
    Moments { sum: x.iter().sum(), count: x.len() as u64 }
}

/// Wrong in a field.
#[kernel_bench(of = moments)]
fn miscounts(x: &[f32]) -> Moments {
    Moments { count: 1, ..moments(x) }
}

/// A difference that wraps.
#[kernel_bench(sizes = [256], inputs = |n| (uniform(n), uniform(n), zeros(n)))]
pub fn distances(x: &[u8], y: &[u8], out: &mut [u8]) {
    x.iter().zip(y).zip(out).for_each(|((x, y), out)| *out = x.abs_diff(*y));
}

#[kernel_bench(of = distances)]
fn wraps(x: &[u8], y: &[u8], out: &mut [u8]) {
    x.iter().zip(y).zip(out).for_each(|((x, y), out)| *out = x.wrapping_sub(*y));
}

pub struct Opaque;
impl kbench::Operand for Opaque {}

/// Returns a value that cannot be compared.
#[kernel_bench(sizes = [256], inputs = |n| (vec![[0.0; 2]; n], uniform(n)))]
pub fn opaque(points: &[[f32; 2]], x: &[f32]) -> Opaque {
    std::hint::black_box((points, x));
    Opaque
}

/// Would win, if it were to.
#[kernel_bench(of = opaque)]
fn does_nothing(_: &[[f32; 2]], _: &[f32]) -> Opaque {
    Opaque
}

kbench::main!();
