use kbench::prelude::*;

#[kernel_bench(sizes = [4], inputs = |n| (uniform(n), 1.0))]
fn too_few(x: &[f32], a: f32, y: &mut [f32]) {
    y[0] = a * x[0];
}

#[kernel_bench(sizes = [4], inputs = |n| (uniform(n), 1.0))]
fn too_many(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], cuda, inputs = |n| (1.0, uniform(n)))]
fn device(_: &Gpu, x: &DeviceSlice<f32>) -> f32 {
    x.len() as f32
}

#[kernel_bench(sizes = { rows: [1], dim: [2] })]
fn no_default(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], inputs = 3)]
fn number(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
