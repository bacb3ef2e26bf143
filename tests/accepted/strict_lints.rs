//! The expansion brings no lint to life, also not one that a crate forbids: it may not contain `allow` attributes then.
#![forbid(unsafe_code, missing_docs, unused)]
#![deny(
    warnings,
    missing_debug_implementations,
    missing_copy_implementations,
    unreachable_pub,
    unused_qualifications,
    unused_results,
    unused_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    let_underscore_drop,
    unnameable_types,
    variant_size_differences
)]

use kbench::cuda::*;
use kbench::kernel_bench;
use kbench::value::*;

/// Private: the marker type must not count as dead code.
#[kernel_bench(
    sizes = { rows: [1, 2], dim: pow2(3..6) },
    inputs = |rows, dim| (uniform(rows * dim), zeros(rows)),
    work = |rows| rows,
    flops = |rows, dim| 2 * rows,
    bytes = |rows: usize, mut dim: usize| { dim += rows; dim },
    reference = sum_rows_reference,
    valid = rows > 0,
    expect = [time < 1s at dim > 4],
)]
fn sum_rows(x: &[f32], sums: &mut [f32]) {
    let dim = x.len() / sums.len();
    x.chunks(dim).zip(sums).for_each(|(row, sum)| *sum = row.iter().sum());
}

fn sum_rows_reference(x: &[f64], sums: &mut [f64]) {
    let dim = x.len() / sums.len();
    x.chunks(dim).zip(sums).for_each(|(row, sum)| *sum = row.iter().sum());
}

#[kernel_bench(of = sum_rows, parallel, threshold = rows * dim >= 1 << 10, flops = |dim| dim)]
fn sum_rows_parallel(x: &[f32], sums: &mut [f32]) {
    sum_rows(x, sums);
}

#[kernel_bench(of = sum_rows, cuda, threshold = tuned(1 << 10))]
fn sum_rows_cuda(_: &Gpu, _: &DeviceSlice<f32>, _: &mut DeviceSlice<f32>) -> GpuResult<()> {
    Ok(())
}

/// A generic kernel without `&mut` parameters.
#[kernel_bench(sizes = ["small" => 1 << 4, "large" => 1 << 8], types = [<f32, 4>, <f64, 8>])]
fn first<T: Element, const WIDTH: usize>(x: &[T]) -> Option<T> {
    x.chunks(WIDTH).next().and_then(|chunk| chunk.first().copied())
}

/// A kernel without parameters.
#[kernel_bench(sizes = [1])]
fn nothing() {}

fn main() {}
