use kbench::prelude::*;

#[kernel_bench(sizes = [4], inputs = |n| (2.0, uniform(n), zeros(n)))]
fn kernel(a: f32, x: &[f32], y: &mut [f32]) {
    y[0] = a * x[0];
}

#[kernel_bench(of = kernel)]
fn fewer(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, parallel)]
fn more(a: f32, b: f32, x: &[f32], y: &mut [f32]) {
    y[0] = a * b * x[0];
}

#[kernel_bench(of = kernel, cuda)]
fn device(_: &Gpu, _: &DeviceSlice<f32>, _: &mut DeviceSlice<f32>) {}

fn main() {}
