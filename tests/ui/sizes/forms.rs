use kbench::prelude::*;

#[kernel_bench]
fn missing(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [])]
fn empty(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = {})]
fn empty_grid(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = 1024)]
fn number(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = { n: 1024 })]
fn number_in_grid(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = pow3(1..4))]
fn powers(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = pow2(10))]
fn no_range(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = pow2(10..))]
fn open_range(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = pow2(10..10))]
fn empty_range(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = pow2(60..=64))]
fn too_large(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [1.5])]
fn fraction(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
