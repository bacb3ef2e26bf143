use kbench::prelude::*;

#[kernel_bench(sizes = [4], inputs = |n| (2.0, uniform(n), zeros(n)))]
fn kernel(a: f32, x: &[f32], y: &mut [f32]) {
    y[0] = a * x[0];
}

#[kernel_bench(of = kernel)]
fn scalar(a: f64, x: &[f32], y: &mut [f32]) {
    y[0] = a as f32 * x[0];
}

#[kernel_bench(of = kernel, parallel)]
fn element(a: f32, x: &[f64], y: &mut [f32]) {
    y[0] = a * x[0] as f32;
}

#[kernel_bench(of = kernel)]
fn access(a: f32, x: &mut [f32], y: &mut [f32]) {
    y[0] = a * x[0];
}

#[kernel_bench(of = kernel, cuda)]
fn device_element(_: &Gpu, _: f32, _: &DeviceSlice<f64>, _: &mut DeviceSlice<f32>) {}

fn main() {}
