use kbench::prelude::*;

#[kernel_bench(
    sizes = [
        "small" => (rows = 1, dim = 2),
        "a b" => (rows = 1, dim = 2),
        "a/b" => (rows = 1, dim = 2),
        "" => (rows = 1, dim = 2),
        "small" => (dim = 2, rows = 1),
        "less" => (rows = 1),
        "more" => (rows = 1, dim = 2, depth = 3),
        "twice" => (rows = 1, dim = 2, dim = 3),
        "number" => 4,
    ],
    inputs = |rows| uniform(rows),
)]
fn shapes(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = ["small" => 4, 8])]
fn mixed(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
