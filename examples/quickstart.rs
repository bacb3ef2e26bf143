//! Three ways to add a multiple of one vector to another: `cargo run --example quickstart`.

use kbench::prelude::*;
use rayon::prelude::*;

/// y ← a·x + y
#[kernel_bench(
    sizes = [1 << 10, 1 << 14, 1 << 18, 1 << 22],
    inputs = |n| (0.5, uniform(n), uniform(n)),
    in_place = reuse,
    reference = saxpy_f64,
)]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// The same with one fused operation per element.
#[kernel_bench(of = saxpy)]
pub fn saxpy_fused(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = a.mul_add(*x, *y);
    }
}

/// The same on all cores; its author claims that it pays from 65 536 elements on.
#[kernel_bench(of = saxpy, parallel, threshold = 1 << 16)]
pub fn saxpy_rayon(a: f32, x: &[f32], y: &mut [f32]) {
    y.par_chunks_mut(8192).zip(x.par_chunks(8192)).for_each(|(y, x)| saxpy(a, x, y));
}

/// What the result should be, in f64.
fn saxpy_f64(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

kbench::main!(measure);
