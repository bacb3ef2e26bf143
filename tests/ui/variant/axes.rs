use kbench::prelude::*;

#[kernel_bench(sizes = { rows: [4], dim: [4] }, inputs = |rows, dim| uniform(rows * dim))]
fn kernel(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(of = kernel, threshold = rows * cols >= 16, flops = |depth| depth, expect = [speedup > 2.0 at n > 4])]
fn unknown(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
