use kbench::prelude::*;

struct Unrelated;

fn plain(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(of = plain)]
fn of_a_function(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(of = nowhere::to_be_found)]
fn of_nothing(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(of = Unrelated)]
fn of_a_type(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
