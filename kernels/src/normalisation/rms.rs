//! Root mean square normalisation (Zhang and Sennrich 2019), with weights as they are or, in Gemma's form, one less.

use kbench::prelude::*;
use rayon::prelude::*;

use super::{SOURCE, Teams};
use crate::shared::float::{BUFFER, Buffer};
use crate::shared::tasks::rows_per_task;
use crate::shared::{BLOCK, Float, entry, reduce, vectorise};

/// Room for blocks of x, w and out.
pub(super) type Buffers = [Buffer; 3];

pub(super) const BUFFERS: Buffers = [BUFFER; 3];

/// out ← x · (w + shift) / √(mean(x²) + ε), for one row.
#[inline(always)]
pub(super) fn rms_norm_row<T: Float>(
    x: &[T],
    w: &[T],
    eps: f32,
    shift: f32,
    out: &mut [T],
    [x_buffer, w_buffer, out_buffer]: &mut Buffers,
) {
    let squares = reduce::sum_of_squares(x, 0.0, x_buffer);
    let scale = 1.0 / (squares / x.len() as f32 + eps).sqrt();
    for ((x, w), out) in x.chunks(BLOCK).zip(w.chunks(BLOCK)).zip(out.chunks_mut(BLOCK)) {
        let (x, w) = (T::read(x, x_buffer), T::read(w, w_buffer));
        for ((out, x), w) in T::output(out, out_buffer).iter_mut().zip(x).zip(w) {
            *out = x * scale * (w + shift);
        }
        T::flush(out_buffer, out);
    }
}

vectorise! {
    fn rms_norm_rows<T: Float>(x: &[T], w: &[T], eps: f32, shift: f32, out: &mut [T]) {
        let mut buffers = BUFFERS;
        for (x, out) in x.chunks_exact(w.len()).zip(out.chunks_exact_mut(w.len())) {
            rms_norm_row(x, w, eps, shift, out, &mut buffers);
        }
    }
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
            rms_norm_rows(x, w, eps, $shift, out);
        }

        #[doc = concat!("[`", stringify!($kernel), "`] with rows shared among all cores.")]
        #[kernel_bench(of = $kernel, parallel, threshold = tuned(100_000), types = [f32, f16, bf16])]
        pub fn $rayon<T: Float>(x: &[T], w: &[T], eps: f32, out: &mut [T]) {
            let task = rows_per_task(w.len()) * w.len();
            x.par_chunks(task)
                .zip(out.par_chunks_mut(task))
                .for_each(|(x, out)| $kernel(x, w, eps, out));
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
