use kbench::prelude::*;

#[kernel_bench(sizes = [4], name)]
fn missing(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], name = "")]
fn empty_name(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], name = "two words")]
fn blank_in_name(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], name = "a/b")]
fn slash_in_name(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], ignore = 3)]
fn reason(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], in_place = always)]
fn mode(x: &mut [f32]) {
    x[0] = 1.0;
}

#[kernel_bench(sizes = [4], in_place)]
fn nothing_in_place(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], reference = |x| x)]
fn reference(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4] work = |n| n)]
fn comma(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = { rows: [1, 2], dim: [4] }, inputs = |rows, dim| uniform(rows * dim), work = rows)]
fn axis_as_work(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], flops = n)]
fn axis_as_flops(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], regimes = [!hug, "why"])]
fn unknown_regime(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], regimes = [large, ties])]
fn no_reason(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], regimes = [1])]
fn no_regime(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
