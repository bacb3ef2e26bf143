//! Layer normalisation (Ba, Kiros and Hinton 2016).

use kbench::prelude::*;
use rayon::prelude::*;

use super::{SOURCE, Teams};
use crate::shared::float::{BUFFER, Buffer};
use crate::shared::reduce::{self, Moments};
use crate::shared::streaming::{Results, is_large};
use crate::shared::tasks::rows_per_task;
use crate::shared::{Float, entry, stored, vectorise};

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
    layer_norm_stored(x, w, b, eps, out, is_large(out));
}

/// Rows that may be part of a large result.
pub(super) fn layer_norm_stored<T: Float>(
    x: &[T],
    w: &[T],
    b: &[T],
    eps: f32,
    out: &mut [T],
    is_large: bool,
) {
    stored!(is_large, layer_norm_rows::<T>(x, w, b, eps, out));
}

vectorise! {
    fn layer_norm_rows<T: Float, const STREAMED: bool>(
        x: &[T],
        w: &[T],
        b: &[T],
        eps: f32,
        out: &mut [T],
    ) {
        let dim = w.len();
        let mut buffers = [BUFFER; 4];
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            let [mean, variance] = mean_and_variance(x, &mut buffers[0]);
            let scale = 1.0 / (variance + eps).sqrt();
            scale_row::<T, STREAMED>(x, w, b, mean, scale, out, &mut buffers);
        }
    }
}

/// In one pass over a row, about the mean of its beginning: about 0, mean(x²) − mean(x)² would lose the digits that both have
/// in common. Of these there are four bits at most: where a sixteenth of a row is d away from the mean, the variance is d²/15
/// or more.
#[inline(always)]
fn mean_and_variance<T: Float>(x: &[T], buffer: &mut Buffer) -> [f32; 2] {
    let beginning = &x[..x.len().div_ceil(16)];
    let mut centre = 0.0;
    for block in beginning.chunks(T::BLOCK) {
        centre += reduce::sum(T::read(block, buffer));
    }
    centre /= beginning.len() as f32;
    let mut moments = Moments::about(centre);
    for block in x.chunks(T::BLOCK) {
        moments.add(T::read(block, buffer));
    }
    moments.mean_and_variance(x.len())
}

/// out ← (x − mean) · scale · w + b
#[inline(always)]
fn scale_row<T: Float, const STREAMED: bool>(
    x: &[T],
    w: &[T],
    b: &[T],
    mean: f32,
    scale: f32,
    out: &mut [T],
    [x_buffer, w_buffer, b_buffer, out_buffer]: &mut [Buffer; 4],
) {
    for block in Results::<STREAMED>::blocks(out, T::BLOCK) {
        Results::<STREAMED>::read_ahead(&x[block.clone()], x.len());
        let (w, b) = (T::read(&w[block.clone()], w_buffer), T::read(&b[block.clone()], b_buffer));
        let (x, out) = (T::read(&x[block.clone()], x_buffer), &mut out[block]);
        let results = Results::<STREAMED>::output(out, out_buffer);
        for (((out, x), w), b) in results.iter_mut().zip(x).zip(w).zip(b) {
            *out = ((x - mean) * scale).mul_add(*w, *b);
        }
        Results::<STREAMED>::flush(out_buffer, out);
    }
}

/// [`layer_norm`] with rows shared among all cores.
#[kernel_bench(of = layer_norm, parallel, threshold = tuned(100_000), types = [f32, f16, bf16])]
pub fn layer_norm_rayon<T: Float>(x: &[T], w: &[T], b: &[T], eps: f32, out: &mut [T]) {
    let (task, is_large) = (rows_per_task(w.len()) * w.len(), is_large(out));
    x.par_chunks(task)
        .zip(out.par_chunks_mut(task))
        .for_each(|(x, out)| layer_norm_stored(x, w, b, eps, out, is_large));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that a variance about a wrong number would get wrong: far from 0, with an end or a single element far from the rest.
    fn awkward(dim: usize, kind: usize) -> Vec<f32> {
        let element = |i: usize| {
            let wave = ((i * 7919 % 1009) as f32 / 504.5 - 1.0) * 1.7;
            match kind {
                0 => 10_000.0 + wave,
                1 if i < dim.div_ceil(16) => 3000.0,
                2 if i + dim.div_ceil(16) >= dim => -3000.0,
                3 if i == 0 => 50_000.0,
                _ => wave,
            }
        };
        (0..dim).map(element).collect()
    }

    #[test]
    fn a_row_may_be_far_from_zero_and_its_ends_from_the_rest() {
        for dim in [1, 2, 15, 16, 17, 100, 1000, 4096] {
            for kind in 0..5 {
                let x = awkward(dim, kind);
                let (w, b) = (vec![1.0; dim], vec![0.0; dim]);
                let mut out = vec![0.0; dim];
                layer_norm(&x, &w, &b, 1e-5, &mut out);
                let wide = |x: &[f32]| -> Vec<f64> { x.iter().copied().map(f64::from).collect() };
                let mut exact = vec![0.0; dim];
                layer_norm_f64(&wide(&x), &wide(&w), &wide(&b), f64::from(1e-5f32), &mut exact);
                // An element is a distance from the mean, which is rounded as the numbers are, over their deviation.
                let largest = x.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
                let mean = wide(&x).iter().sum::<f64>() / dim as f64;
                let squares = wide(&x).iter().map(|x| (x - mean).powi(2)).sum::<f64>();
                let deviation = (squares / dim as f64 + 1e-5).sqrt();
                let allowed = 2e-6 * (f64::from(largest) + mean.abs()) / deviation;
                for (i, (out, exact)) in wide(&out).iter().zip(&exact).enumerate() {
                    assert!(
                        (out - exact).abs() <= allowed,
                        "{dim}, {kind}, {i}: {out} for {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_makes_its_row_none() {
        for (wrong, place) in
            [(f32::NAN, 0), (f32::NAN, 99), (f32::INFINITY, 0), (f32::INFINITY, 99)]
        {
            let mut x = awkward(200, 4);
            x[place] = wrong;
            let mut out = vec![0.0; 200];
            layer_norm(&x, &[1.0; 100], &[0.0; 100], 1e-5, &mut out);
            assert!(out[..100].iter().all(|out| out.is_nan()), "{wrong} at {place}");
            assert!(out[100..].iter().all(|out| out.is_finite()), "{wrong} at {place}");
        }
    }
}
