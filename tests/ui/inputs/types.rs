use kbench::prelude::*;

struct Opaque;

#[kernel_bench(sizes = [4], inputs = |n| (vec![0.0f64; n], 1.0))]
fn wrong_type(x: &[f32], a: f32) -> f32 {
    a * x[0]
}

#[kernel_bench(sizes = [4])]
fn no_default(x: &[f32], a: &str) -> f32 {
    x[a.len()]
}

#[kernel_bench(sizes = [4], inputs = |n| (uniform(n), Opaque))]
fn not_an_operand(x: &[f32], _: &Opaque) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4])]
fn borrowed_result(x: &[f32]) -> &[f32] {
    x
}

#[kernel_bench(sizes = [4], work = |n| Some(n))]
fn not_a_figure(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], reference = by_integers)]
fn wrong_reference(x: &[f32]) -> f32 {
    x[0]
}

fn by_integers(x: &[i32]) -> f32 {
    x[0] as f32
}

fn main() {}
