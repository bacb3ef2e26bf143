use kbench::prelude::*;

#[kernel_bench(sizes = [4], threshold = tuned(4))]
fn kernel(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, threshold = tuned())]
fn no_default(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, threshold = tuned)]
fn no_parentheses(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, threshold = tuned(1 << 10, 1 << 20))]
fn two_defaults(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, threshold = tuned(2 * n))]
fn axis(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel_bench(of = kernel, threshold = tuned(n >= 1024))]
fn condition(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

fn main() {}
