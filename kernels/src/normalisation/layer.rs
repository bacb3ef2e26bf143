//! Layer normalisation (Ba, Kiros and Hinton 2016).

use kbench::prelude::*;
use rayon::prelude::*;

use super::{SOURCE, Teams};
use crate::shared::float::{BUFFER, Buffer};
use crate::shared::scratch::with_scratch;
use crate::shared::tasks::rows_per_task;
use crate::shared::{Float, entry, reduce, vectorise};

/// out ← (x − mean x) · w / √(var x + ε) + b, for rows of the length of `w` and `b`.
#[kernel_bench(
    sizes = [
        "tiny" => (rows = 1, dim = 1024),
        "small" => (rows = 16, dim = 768), // no power of two: some threads of a GPU hold less of a row than others
        "medium" => (rows = 64, dim = 4096),
        "large" => (rows = 512, dim = 4096),
    ],
    // The mean is away from zero, where a variance from two large sums would be wrong.
    inputs = |rows, dim| (range(rows * dim, 2.0..5.0), normal(dim), normal(dim), 1e-5, zeros(rows * dim)),
    flops = |rows, dim| 8 * rows * dim,
    reference = layer_norm_f64,
    types = [f32, f16, bf16],
)]
pub fn layer_norm<T: Float>(x: &[T], w: &[T], b: &[T], eps: f32, out: &mut [T]) {
    with_scratch([T::buffered(w.len())], |[row]| layer_norm_rows(x, w, b, eps, out, row));
}

vectorise! {
    fn layer_norm_rows<T: Float>(
        x: &[T],
        w: &[T],
        b: &[T],
        eps: f32,
        out: &mut [T],
        wide_x: &mut [f32],
    ) {
        let dim = w.len();
        let mut buffers = [BUFFER; 3];
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            // Two passes over a row that is in the cache after the first: mean(x²) − mean(x)² in one pass would lose the
            // digits that both have in common.
            let x = T::read(x, wide_x);
            let mean = reduce::sum(x) / dim as f32;
            let variance = reduce::sum_of_squares(x, mean) / dim as f32;
            scale_row(x, w, b, mean, 1.0 / (variance + eps).sqrt(), out, &mut buffers);
        }
    }
}

/// out ← (x − mean) · scale · w + b
#[inline(always)]
fn scale_row<T: Float>(
    x: &[f32],
    w: &[T],
    b: &[T],
    mean: f32,
    scale: f32,
    out: &mut [T],
    [w_buffer, b_buffer, out_buffer]: &mut [Buffer; 3],
) {
    let weights = w.chunks(T::BLOCK).zip(b.chunks(T::BLOCK));
    for ((x, (w, b)), out) in x.chunks(T::BLOCK).zip(weights).zip(out.chunks_mut(T::BLOCK)) {
        let (w, b) = (T::read(w, w_buffer), T::read(b, b_buffer));
        for (((out, x), w), b) in T::output(out, out_buffer).iter_mut().zip(x).zip(w).zip(b) {
            *out = ((x - mean) * scale).mul_add(*w, *b);
        }
        T::flush(out_buffer, out);
    }
}

/// [`layer_norm`] with rows shared among all cores.
#[kernel_bench(of = layer_norm, parallel, threshold = tuned(100_000), types = [f32, f16, bf16])]
pub fn layer_norm_rayon<T: Float>(x: &[T], w: &[T], b: &[T], eps: f32, out: &mut [T]) {
    let task = rows_per_task(w.len()) * w.len();
    x.par_chunks(task)
        .zip(out.par_chunks_mut(task))
        .for_each(|(x, out)| layer_norm(x, w, b, eps, out));
}

/// [`layer_norm`] on a GPU.
#[kernel_bench(of = layer_norm, cuda, types = [f32, f16, bf16])]
pub fn layer_norm_cuda<T: Float>(
    gpu: &Gpu,
    x: &DeviceSlice<T>,
    w: &DeviceSlice<T>,
    b: &DeviceSlice<T>,
    eps: f32,
    out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    let (rows, dim) = (x.len() / w.len(), w.len());
    let teams = Teams::new::<T>(rows, dim);
    let entry = teams.choose(entry!(T, "layer_norm"), entry!(T, "layer_norm_any"));
    let kernel = gpu.kernel(SOURCE, entry)?.grid(teams.blocks).block(teams.threads);
    kernel.arg(x).arg(w).arg(b).arg(eps).arg(out).arg(rows).arg(dim).arg(teams.team).launch()
}

fn layer_norm_f64(x: &[f64], w: &[f64], b: &[f64], eps: f64, out: &mut [f64]) {
    let dim = w.len();
    for row in 0..x.len() / dim {
        let x = &x[row * dim..][..dim];
        let mean = x.iter().sum::<f64>() / dim as f64;
        let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / dim as f64;
        for i in 0..dim {
            out[row * dim + i] = (x[i] - mean) / (variance + eps).sqrt() * w[i] + b[i];
        }
    }
}
