//! Softmax of rows, safe against overflow.

use kbench::prelude::*;
use rayon::prelude::*;

use super::{SOURCE, Teams};
use crate::shared::float::{BUFFER, Buffer};
use crate::shared::lanes::{self, LANES};
use crate::shared::tasks::rows_per_task;
use crate::shared::{BLOCK, Float, entry, math, reduce, vectorise};

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
    softmax_rows(x, dim, out);
}

vectorise! {
    fn softmax_rows<T: Float>(x: &[T], dim: usize, out: &mut [T]) {
        let mut buffers = [BUFFER; 2];
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            let max = reduce::max(x, &mut buffers[0]);
            let scale = 1.0 / powers(x, max, out, &mut buffers);
            // The powers wait in the output. In 16 bits they are rounded once more than need be, by no more than the result
            // itself is, as the scale is at most 1; computing them again would take longer.
            for out in out.chunks_mut(BLOCK) {
                for out in T::edit(out, &mut buffers[1]) {
                    *out *= scale;
                }
                T::flush(&buffers[1], out);
            }
        }
    }
}

/// out ← exp(x − max); returns the sum, taken before the powers are rounded.
#[inline(always)]
fn powers<T: Float>(
    x: &[T],
    max: f32,
    out: &mut [T],
    [x_buffer, out_buffer]: &mut [Buffer; 2],
) -> f32 {
    let mut sums = [0.0; LANES];
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let x = T::read(x, x_buffer);
        let powers = T::output(out, out_buffer);
        for (power, x) in powers.iter_mut().zip(x) {
            *power = math::exp(x - max);
        }
        sums = lanes::fold(sums, powers, 0.0, |sum, power| sum + power);
        T::flush(out_buffer, out);
    }
    lanes::join(sums, |a, b| a + b)
}

/// [`softmax`] with rows shared among all cores.
#[kernel_bench(of = softmax, parallel, threshold = tuned(30_000), types = [f32, f16, bf16])]
pub fn softmax_rayon<T: Float>(x: &[T], dim: usize, out: &mut [T]) {
    let task = rows_per_task(dim) * dim;
    x.par_chunks(task).zip(out.par_chunks_mut(task)).for_each(|(x, out)| softmax(x, dim, out));
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
