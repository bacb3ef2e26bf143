//! Every mistake of an attribute is reported, each at its token, and nothing else is.
use kbench::prelude::*;

#[kernel_bench(
    nme = "total",
    sizes = { rows: [], dim: [4] },
    inputs = |rows, dim| (uniform(rows * dim), 1.0),
    wrok = |rows, dim| rows * dim,
    flops = 12,
    expect = [speed >= 2.0, time < 10, ceiling >= 80%, speedup = 2.0],
    threshold = 1 << 10,
    parallel,
    cuda,
)]
async fn sum(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
