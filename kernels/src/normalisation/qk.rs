//! Root mean square normalisation of the heads of queries and keys, as attention wants them (Henry et al. 2020).

use kbench::prelude::*;
use rayon::prelude::*;

use super::rms::{rms_norm_long, rms_norm_short};
use super::{SOURCE, Teams, rms_norm, rms_norm_cuda};
use crate::shared::float::BUFFER;
use crate::shared::scratch::with_scratch;
use crate::shared::streaming::is_large;
use crate::shared::tasks::rows_per_task;
use crate::shared::{BLOCK, Float, entry, stored, vectorise};

/// Every head h of q and k: q_out ← h · wq / √(mean(h²) + ε), and k_out in the same way with wk; first all of q, then all of k.
///
/// `q` and `k` are sequence × heads × head_dim; the length of a head is that of its weights.
#[kernel_bench(
    sizes = [
        "tiny" => (seq = 1, heads = 32, head_dim = 128),
        "small" => (seq = 16, heads = 8, head_dim = 64),
        "medium" => (seq = 128, heads = 16, head_dim = 128),
        "large" => (seq = 512, heads = 32, head_dim = 128),
    ],
    inputs = |seq, heads, head_dim| (
        normal(seq * heads * head_dim),
        normal(seq * heads * head_dim),
        normal(head_dim),
        normal(head_dim),
        1e-6,
        zeros(seq * heads * head_dim),
        zeros(seq * heads * head_dim),
    ),
    flops = |seq, heads, head_dim| 8 * seq * heads * head_dim,
    reference = qk_norm_f64,
    types = [f32, f16, bf16],
)]
pub fn qk_norm<T: Float>(
    q: &[T],
    k: &[T],
    wq: &[T],
    wk: &[T],
    eps: f32,
    q_out: &mut [T],
    k_out: &mut [T],
) {
    rms_norm(q, wq, eps, q_out);
    rms_norm(k, wk, eps, k_out);
}

/// [`qk_norm`] in one sweep: a few heads of q, then the same heads of k.
#[kernel_bench(of = qk_norm, name = "together", types = [f32, f16, bf16])]
pub fn qk_norm_together<T: Float>(
    q: &[T],
    k: &[T],
    wq: &[T],
    wk: &[T],
    eps: f32,
    q_out: &mut [T],
    k_out: &mut [T],
) {
    let is_large = is_large(q_out);
    together_stored(q, k, [wq, wk], eps, q_out, k_out, is_large);
}

/// Heads that may be part of a large result.
pub(super) fn together_stored<T: Float>(
    q: &[T],
    k: &[T],
    weights: [&[T]; 2],
    eps: f32,
    q_out: &mut [T],
    k_out: &mut [T],
    is_large: bool,
) {
    with_scratch([T::buffered(weights[0].len())], |[row]| {
        stored!(is_large, together::<T>(q, k, weights, eps, q_out, k_out, row));
    });
}

vectorise! {
    fn together<T: Float, const STREAMED: bool>(
        q: &[T],
        k: &[T],
        weights: [&[T]; 2],
        eps: f32,
        q_out: &mut [T],
        k_out: &mut [T],
        row: &mut [f32],
    ) {
        let [wq, wk] = weights;
        let dim = wq.len();
        if dim <= BLOCK {
            let mut buffers = [BUFFER; 4];
            let [wq_buffer, wk_buffer, x_buffer, out_buffer] = &mut buffers;
            let (wq, wk, length) =
                (T::read(wq, wq_buffer), T::read(wk, wk_buffer), BLOCK / dim * dim);
            let queries = q.chunks(length).zip(q_out.chunks_mut(length));
            let keys = k.chunks(length).zip(k_out.chunks_mut(length));
            for ((q, q_out), (k, k_out)) in queries.zip(keys) {
                rms_norm_short(q, wq, eps, 0.0, q_out, x_buffer, out_buffer);
                rms_norm_short(k, wk, eps, 0.0, k_out, x_buffer, out_buffer);
            }
            return;
        }
        let mut buffers = [BUFFER; 2];
        let queries = q.chunks_exact(dim).zip(q_out.chunks_exact_mut(dim));
        let keys = k.chunks_exact(dim).zip(k_out.chunks_exact_mut(dim));
        for ((q, q_out), (k, k_out)) in queries.zip(keys) {
            rms_norm_long::<T, STREAMED>(q, wq, eps, 0.0, q_out, row, &mut buffers);
            rms_norm_long::<T, STREAMED>(k, wk, eps, 0.0, k_out, row, &mut buffers);
        }
    }
}

/// [`qk_norm_together`] with heads shared among all cores.
#[kernel_bench(of = qk_norm, parallel, threshold = tuned(50_000), types = [f32, f16, bf16])]
pub fn qk_norm_rayon<T: Float>(
    q: &[T],
    k: &[T],
    wq: &[T],
    wk: &[T],
    eps: f32,
    q_out: &mut [T],
    k_out: &mut [T],
) {
    let (task, is_large) = (rows_per_task(2 * wq.len()) * wq.len(), is_large(q_out));
    let queries = q.par_chunks(task).zip(q_out.par_chunks_mut(task));
    let keys = k.par_chunks(task).zip(k_out.par_chunks_mut(task));
    queries.zip(keys).for_each(|((q, q_out), (k, k_out))| {
        together_stored(q, k, [wq, wk], eps, q_out, k_out, is_large);
    });
}

/// [`qk_norm`] on a GPU, in two launches.
#[kernel_bench(of = qk_norm, cuda, types = [f32, f16, bf16])]
#[allow(clippy::too_many_arguments)] // those of the kernel, and the device
pub fn qk_norm_cuda<T: Float>(
    gpu: &Gpu,
    q: &DeviceSlice<T>,
    k: &DeviceSlice<T>,
    wq: &DeviceSlice<T>,
    wk: &DeviceSlice<T>,
    eps: f32,
    q_out: &mut DeviceSlice<T>,
    k_out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    rms_norm_cuda(gpu, q, wq, eps, q_out)?;
    rms_norm_cuda(gpu, k, wk, eps, k_out)
}

/// [`qk_norm`] on a GPU, in one launch: half of the blocks take q, half k.
#[kernel_bench(of = qk_norm, name = "together_cuda", cuda, types = [f32, f16, bf16])]
#[allow(clippy::too_many_arguments)] // those of the kernel, and the device
pub fn qk_norm_together_cuda<T: Float>(
    gpu: &Gpu,
    q: &DeviceSlice<T>,
    k: &DeviceSlice<T>,
    wq: &DeviceSlice<T>,
    wk: &DeviceSlice<T>,
    eps: f32,
    q_out: &mut DeviceSlice<T>,
    k_out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    let (rows, dim) = (q.len() / wq.len(), wq.len());
    let teams = Teams::new::<T>(rows, dim);
    let entry = teams.choose(entry!(T, "qk_norm"), entry!(T, "qk_norm_any"));
    let kernel = gpu.kernel(SOURCE, entry)?.grid((teams.blocks, 2)).block(teams.threads);
    let kernel = kernel.arg(q).arg(k).arg(wq).arg(wk).arg(eps).arg(q_out).arg(k_out);
    kernel.arg(rows).arg(dim).arg(teams.team).launch()
}

fn qk_norm_f64(
    q: &[f64],
    k: &[f64],
    wq: &[f64],
    wk: &[f64],
    eps: f64,
    q_out: &mut [f64],
    k_out: &mut [f64],
) {
    for (x, w, out) in [(q, wq, q_out), (k, wk, k_out)] {
        for (head, out) in x.chunks(w.len()).zip(out.chunks_mut(w.len())) {
            let mean = head.iter().map(|v| v * v).sum::<f64>() / w.len() as f64;
            for i in 0..w.len() {
                out[i] = w[i] * head[i] / (mean + eps).sqrt();
            }
        }
    }
}
