//! Root mean square normalisation (Zhang and Sennrich 2019), with weights as they are or, in Gemma's form, one less.

use kbench::prelude::*;
use rayon::prelude::*;

use super::{SOURCE, Teams};
use crate::shared::float::{BUFFER, Buffer};
use crate::shared::lanes::{self, LANES};
use crate::shared::scratch::with_scratch;
use crate::shared::streaming::{Results, is_large};
use crate::shared::tasks::rows_per_task;
use crate::shared::{BLOCK, Float, entry, stored, vectorise};

/// Partial sums of a short row: joining more of them takes longer than they save.
const SHORT_LANES: usize = 16;

/// out ← x · (w + shift) / √(mean(x²) + ε), of rows that may be part of a large result.
pub(super) fn rms_norm_stored<T: Float>(
    x: &[T],
    w: &[T],
    eps: f32,
    shift: f32,
    out: &mut [T],
    is_large: bool,
) {
    with_scratch([T::buffered(w.len())], |[row]| {
        stored!(is_large, rms_norm_rows::<T>(x, w, eps, shift, out, row));
    });
}

vectorise! {
    fn rms_norm_rows<T: Float, const STREAMED: bool>(
        x: &[T],
        w: &[T],
        eps: f32,
        shift: f32,
        out: &mut [T],
        wide_x: &mut [f32],
    ) {
        let dim = w.len();
        if dim <= BLOCK {
            let [mut x_buffer, mut w_buffer, mut out_buffer] = [BUFFER; 3];
            let (w, length) = (T::read(w, &mut w_buffer), BLOCK / dim * dim);
            for (x, out) in x.chunks(length).zip(out.chunks_mut(length)) {
                rms_norm_short(x, w, eps, shift, out, &mut x_buffer, &mut out_buffer);
            }
            return;
        }
        let mut buffers = [BUFFER; 2];
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            rms_norm_long::<T, STREAMED>(x, w, eps, shift, out, wide_x, &mut buffers);
        }
    }
}

/// The same for rows that fit into a block together: they are widened once for both passes, and not stored past the caches.
#[inline(always)]
pub(super) fn rms_norm_short<T: Float>(
    x: &[T],
    w: &[f32],
    eps: f32,
    shift: f32,
    out: &mut [T],
    x_buffer: &mut Buffer,
    out_buffer: &mut Buffer,
) {
    let rows = T::read(x, x_buffer).chunks_exact(w.len());
    for (out, x) in T::output(out, out_buffer).chunks_exact_mut(w.len()).zip(rows) {
        let scale = scale_of(
            lanes::fold([0.0; SHORT_LANES], x, 0.0, |sum, x| x.mul_add(x, sum)),
            x.len(),
            eps,
        );
        for ((out, x), w) in out.iter_mut().zip(x).zip(w) {
            *out = x * scale * (w + shift);
        }
    }
    T::flush(out_buffer, out);
}

/// The same for one row of any length, of which `wide_x` holds the `f32` between both passes.
#[inline(always)]
pub(super) fn rms_norm_long<T: Float, const STREAMED: bool>(
    x: &[T],
    w: &[T],
    eps: f32,
    shift: f32,
    out: &mut [T],
    wide_x: &mut [f32],
    [w_buffer, out_buffer]: &mut [Buffer; 2],
) {
    let row = T::read(x, wide_x);
    let squares = lanes::fold([0.0; LANES], row, 0.0, |sum, x| x.mul_add(x, sum));
    let scale = scale_of(squares, row.len(), eps);
    for block in Results::<STREAMED>::blocks(out, T::BLOCK) {
        Results::<STREAMED>::read_ahead(&x[block.clone()], x.len());
        let (x, w) = (&row[block.clone()], T::read(&w[block.clone()], w_buffer));
        let out = &mut out[block];
        let results = Results::<STREAMED>::output(out, out_buffer);
        for ((out, x), w) in results.iter_mut().zip(x).zip(w) {
            *out = x * scale * (w + shift);
        }
        Results::<STREAMED>::flush(out_buffer, out);
    }
}

/// 1 / √(mean(x²) + ε), from the partial sums of squares of a row.
#[inline(always)]
fn scale_of<const N: usize>(squares: [f32; N], dim: usize, eps: f32) -> f32 {
    1.0 / (lanes::join(squares, |a, b| a + b) / dim as f32 + eps).sqrt()
}

/// One of the two kernels: in order, on all cores, on a GPU, and in f64.
macro_rules! rms_norm {
    ($(#[$documentation:meta])* $kernel:ident, $rayon:ident, $cuda:ident, $held:literal, $any:literal, $exact:ident: shift = $shift:literal) => {
        $(#[$documentation])*
        #[kernel_bench(
            sizes = [
                "tiny" => (rows = 1, dim = 1024),
                "small" => (rows = 16, dim = 1024),
                "medium" => (rows = 64, dim = 4096),
                "large" => (rows = 512, dim = 4096),
            ],
            inputs = |rows, dim| (normal(rows * dim), normal(dim), 1e-5, zeros(rows * dim)),
            flops = |rows, dim| 4 * rows * dim,
            reference = $exact,
            types = [f32, f16, bf16],
        )]
        pub fn $kernel<T: Float>(x: &[T], w: &[T], eps: f32, out: &mut [T]) {
            rms_norm_stored(x, w, eps, $shift, out, is_large(out));
        }

        #[doc = concat!("[`", stringify!($kernel), "`] with rows shared among all cores.")]
        #[kernel_bench(of = $kernel, parallel, threshold = tuned(100_000), types = [f32, f16, bf16])]
        pub fn $rayon<T: Float>(x: &[T], w: &[T], eps: f32, out: &mut [T]) {
            let (task, is_large) = (rows_per_task(w.len()) * w.len(), is_large(out));
            x.par_chunks(task)
                .zip(out.par_chunks_mut(task))
                .for_each(|(x, out)| rms_norm_stored(x, w, eps, $shift, out, is_large));
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on a GPU.")]
        #[kernel_bench(of = $kernel, cuda, types = [f32, f16, bf16])]
        pub fn $cuda<T: Float>(
            gpu: &Gpu,
            x: &DeviceSlice<T>,
            w: &DeviceSlice<T>,
            eps: f32,
            out: &mut DeviceSlice<T>,
        ) -> GpuResult<()> {
            let (rows, dim) = (x.len() / w.len(), w.len());
            let teams = Teams::new::<T>(rows, dim);
            let entry = teams.choose(entry!(T, $held), entry!(T, $any));
            let kernel = gpu.kernel(SOURCE, entry)?.grid(teams.blocks).block(teams.threads);
            kernel.arg(x).arg(w).arg(eps).arg(out).arg(rows).arg(dim).arg(teams.team).launch()
        }

        fn $exact(x: &[f64], w: &[f64], eps: f64, out: &mut [f64]) {
            let dim = w.len();
            for row in 0..x.len() / dim {
                let x = &x[row * dim..][..dim];
                let mean = x.iter().map(|v| v * v).sum::<f64>() / dim as f64;
                for i in 0..dim {
                    out[row * dim + i] = x[i] * ($shift + w[i]) / (mean + eps).sqrt();
                }
            }
        }
    };
}

rms_norm! {
    /// out ← x · w / √(mean(x²) + ε), for rows of the length of `w`.
    rms_norm, rms_norm_rayon, rms_norm_cuda, "rms_norm", "rms_norm_any", rms_norm_f64: shift = 0.0
}
rms_norm! {
    /// out ← x · (1 + w) / √(mean(x²) + ε), for rows of the length of `w`: weights near zero are kept more exactly than near one.
    rms_norm_gemma, rms_norm_gemma_rayon, rms_norm_gemma_cuda, "rms_norm_gemma", "rms_norm_gemma_any", rms_norm_gemma_f64: shift = 1.0
}
