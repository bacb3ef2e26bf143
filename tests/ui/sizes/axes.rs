use kbench::prelude::*;

#[kernel_bench(sizes = { rows: [1], dim: [2], rows: [3] }, inputs = |rows| uniform(rows))]
fn twice(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = { rows: [1], dim: [2] }, inputs = |rows, cols| uniform(rows * cols), valid = cols > 1)]
fn unknown(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [1], inputs = |rows, dim| uniform(rows * dim))]
fn one_axis(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [1], work = |(n, m)| n, flops = |n, n| n)]
fn patterns(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
