use kbench::prelude::*;

#[kernel_bench(sizes = [4], ignore, sizes = [8], ignore = "again")]
fn sum(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], serial, parallel, cuda)]
fn backends(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
