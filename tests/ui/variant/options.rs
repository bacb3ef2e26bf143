use kbench::prelude::*;

#[kernel_bench(sizes = [4], threshold = 1 << 10)]
fn base(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(sizes = [4])]
fn kernel(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(
    of = kernel,
    sizes = [4],
    inputs = |n| (uniform(n), zeros(n)),
    work = |n| n,
    reference = kernel,
    in_place,
    valid = n > 1,
)]
fn inherited(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, flops = operations)]
fn path(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, threshold = n * 2)]
fn number(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, cuda, reentrant)]
fn at_once(gpu: &Gpu, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) {
    let _ = (gpu, x, y);
}

#[kernel_bench(of = "kernel")]
fn text(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

fn main() {}
