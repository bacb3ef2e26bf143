use kbench::prelude::*;

#[kernel_bench(sizes = [4], expect = [])]
fn empty(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(
    sizes = [4],
    expect = [
        speedups >= 2.0,
        colour > 1,
        time < 10,
        time < 10min,
        speedup >= 2x,
        ceiling == 0.8,
        ceiling >= high,
        speedup >= 2.0 where n > 4,
        speedup >= 2.0 at rows > 4,
    ],
)]
fn all(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
