//! Softmax of rows, safe against overflow.

use kbench::prelude::*;
use rayon::prelude::*;

use super::{SOURCE, Teams};
use crate::shared::lanes::{self, LANES};
use crate::shared::scratch::with_scratch;
use crate::shared::streaming::{Results, is_large};
use crate::shared::tasks::rows_per_task;
use crate::shared::{Float, entry, math, reduce, stored, vectorise};

/// out ← exp(x − max x) / Σ exp(x − max x), for rows of `dim` elements.
#[kernel_bench(
    sizes = [
        "tiny" => (rows = 1, dim = 1024),
        "small" => (rows = 16, dim = 1024),
        "medium" => (rows = 64, dim = 2048),
        "large" => (rows = 512, dim = 4096),
    ],
    inputs = |rows, dim| (normal(rows * dim), dim, zeros(rows * dim)),
    flops = |rows, dim| 5 * rows * dim,
    reference = softmax_f64,
    types = [f32, f16, bf16],
)]
pub fn softmax<T: Float>(x: &[T], dim: usize, out: &mut [T]) {
    softmax_stored(x, dim, out, is_large(out));
}

/// Rows that may be part of a large result.
pub(super) fn softmax_stored<T: Float>(x: &[T], dim: usize, out: &mut [T], is_large: bool) {
    with_scratch([T::buffered(dim), dim], |[wide_x, wide_out]| {
        stored!(is_large, softmax_rows::<T>(x, dim, out, wide_x, wide_out));
    });
}

vectorise! {
    fn softmax_rows<T: Float, const STREAMED: bool>(
        x: &[T],
        dim: usize,
        out: &mut [T],
        wide_x: &mut [f32],
        wide_out: &mut [f32],
    ) {
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            let row = T::read(x, wide_x);
            let max = reduce::max(row);
            // The powers wait where the results will be.
            let sum = lanes::sum_of_map::<LANES>(
                row,
                Results::<STREAMED>::output(out, wide_out),
                #[inline(always)]
                |x| math::exp_of_negative(x - max),
            );
            let scale = 1.0 / sum;
            for block in Results::<STREAMED>::blocks(out, dim) {
                Results::<STREAMED>::read_ahead(&x[block.clone()], dim);
                let (out, wide_out) = (&mut out[block.clone()], &mut wide_out[block]);
                for power in Results::<STREAMED>::output(out, wide_out) {
                    *power *= scale;
                }
                Results::<STREAMED>::flush(wide_out, out);
            }
        }
    }
}

/// [`softmax`] with rows shared among all cores.
#[kernel_bench(of = softmax, parallel, threshold = tuned(30_000), types = [f32, f16, bf16])]
pub fn softmax_rayon<T: Float>(x: &[T], dim: usize, out: &mut [T]) {
    let (task, is_large) = (rows_per_task(dim) * dim, is_large(out));
    x.par_chunks(task)
        .zip(out.par_chunks_mut(task))
        .for_each(|(x, out)| softmax_stored(x, dim, out, is_large));
}

/// [`softmax`] on a GPU.
#[kernel_bench(of = softmax, cuda, types = [f32, f16, bf16])]
pub fn softmax_cuda<T: Float>(
    gpu: &Gpu,
    x: &DeviceSlice<T>,
    dim: usize,
    out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    let rows = x.len() / dim;
    let teams = Teams::new::<T>(rows, dim);
    let entry = teams.choose(entry!(T, "softmax"), entry!(T, "softmax_any"));
    let kernel = gpu.kernel(SOURCE, entry)?.grid(teams.blocks).block(teams.threads);
    kernel.arg(x).arg(out).arg(rows).arg(dim).arg(teams.team).launch()
}

fn softmax_f64(x: &[f64], dim: usize, out: &mut [f64]) {
    for row in 0..x.len() / dim {
        let x = &x[row * dim..][..dim];
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = x.iter().map(|v| (v - max).exp()).sum();
        for i in 0..dim {
            out[row * dim + i] = (x[i] - max).exp() / sum;
        }
    }
}
