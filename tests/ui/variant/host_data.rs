use kbench::prelude::*;

#[kernel_bench(sizes = [4], inputs = |n| (2.0, uniform(n), zeros(n)))]
fn kernel(a: f32, x: &[f32], y: &mut [f32]) {
    y[0] = a * x[0];
}

#[kernel_bench(of = kernel, cuda)]
fn host_data(_: &Gpu, _: f32, _: &[f32], _: &mut [f32]) -> GpuResult<()> {
    Ok(())
}

fn main() {}
