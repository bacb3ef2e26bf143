use kbench::prelude::*;

#[kernel_bench(sizs = [1], sizes = [4])]
fn near(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], colour = "red")]
fn far(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], 3)]
fn none(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
