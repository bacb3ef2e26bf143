use kbench::prelude::*;

#[kernel_bench(sizes = [4])]
fn kernel(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, threshold = tuned(1e6))]
fn variant(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

fn main() {}
