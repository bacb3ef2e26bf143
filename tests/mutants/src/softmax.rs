//! Softmax by rows, and the logarithm of a sum of exponentials.

use kbench::prelude::*;
use rayon::prelude::*;

use crate::SOURCE;

/// Each row of `out` ← softmax of the row of `x`.
#[kernel_bench(
    sizes = { rows: [4, 16], dim: [64, 1000] },
    inputs = |rows, dim| (normal(rows * dim), dim, zeros(rows * dim)),
    reference = softmax_f64,
)]
fn softmax(x: &[f32], dim: usize, out: &mut [f32]) {
    for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
        soft_row(x, largest(x), out);
    }
}

fn softmax_f64(x: &[f64], dim: usize, out: &mut [f64]) {
    for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
        out.iter_mut().zip(x).for_each(|(out, x)| *out = (x - max).exp() / sum);
    }
}

fn largest(x: &[f32]) -> f32 {
    x.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// A row, with what is subtracted before the exponential.
fn soft_row(x: &[f32], shift: f32, out: &mut [f32]) {
    let mut sum = 0.0;
    for (out, x) in out.iter_mut().zip(x) {
        *out = (x - shift).exp();
        sum += *out;
    }
    out.iter_mut().for_each(|out| *out /= sum);
}

/// ln Σ exp(x)
#[kernel_bench(sizes = [256, 4096], inputs = |n| normal(n))]
fn log_sum_exp(x: &[f32]) -> f32 {
    let max = largest(x);
    max + x.iter().map(|x| (x - max).exp()).sum::<f32>().ln()
}

/// The largest number so far, and the sum of exponentials relative to it.
#[derive(Clone, Copy)]
struct Running {
    max: f32,
    sum: f32,
}

impl Running {
    const NONE: Running = Running { max: f32::NEG_INFINITY, sum: 0.0 };

    fn of(x: &[f32]) -> Self {
        x.iter().fold(Running::NONE, |all, x| all.joined(Running { max: *x, sum: 1.0 }))
    }

    fn joined(self, other: Self) -> Self {
        let max = self.max.max(other.max);
        let part =
            |part: Self| if part.sum == 0.0 { 0.0 } else { part.sum * (part.max - max).exp() };
        Running { max, sum: part(self) + part(other) }
    }
}

mod right {
    use std::cell::RefCell;

    use super::*;

    /// Maximum and sum in one pass, rescaled when a larger number comes.
    #[kernel_bench(of = softmax)]
    fn online(x: &[f32], dim: usize, out: &mut [f32]) {
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            let Running { max, sum } = Running::of(x);
            out.iter_mut().zip(x).for_each(|(out, x)| *out = (x - max).exp() / sum);
        }
    }

    /// Exponentials twice, added up in `f64`.
    #[kernel_bench(of = softmax)]
    fn two_passes_in_f64(x: &[f32], dim: usize, out: &mut [f32]) {
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            let max = largest(x);
            let exp = |x: &f32| f64::from(x - max).exp();
            let sum: f64 = x.iter().map(exp).sum();
            out.iter_mut().zip(x).for_each(|(out, x)| *out = (exp(x) / sum) as f32);
        }
    }

    /// Tasks that keep exponentials in memory of their thread.
    #[kernel_bench(of = softmax, parallel)]
    fn thread_local_scratch(x: &[f32], dim: usize, out: &mut [f32]) {
        thread_local! {
            static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
        }
        x.par_chunks_exact(dim).zip(out.par_chunks_exact_mut(dim)).for_each(|(x, out)| {
            SCRATCH.with_borrow_mut(|scratch| {
                scratch.clear();
                let max = largest(x);
                scratch.extend(x.iter().map(|x| (x - max).exp()));
                let sum: f32 = scratch.iter().sum();
                out.iter_mut().zip(scratch).for_each(|(out, exp)| *out = *exp / sum);
            });
        });
    }

    /// Two threads of its own, which end with the call.
    #[kernel_bench(of = softmax, parallel)]
    fn scoped_threads(x: &[f32], dim: usize, out: &mut [f32]) {
        let middle = x.len() / dim / 2 * dim;
        let ((low, high), (out_low, out_high)) = (x.split_at(middle), out.split_at_mut(middle));
        std::thread::scope(|scope| {
            scope.spawn(|| softmax(low, dim, out_low));
            softmax(high, dim, out_high);
        });
    }

    /// One warp for each row; lanes join their maxima and sums by shuffles.
    #[kernel_bench(of = softmax, cuda)]
    fn warp_shuffles(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        dim: usize,
        out: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        let kernel = gpu.kernel(SOURCE, "softmax_online")?.grid(x.len() / dim).block(32);
        kernel.arg(x).arg(dim).arg(out).launch()
    }

    /// The maximum and the sum in one pass.
    #[kernel_bench(of = log_sum_exp)]
    fn streaming(x: &[f32]) -> f32 {
        let Running { max, sum } = Running::of(x);
        max + sum.ln()
    }

    /// Chunks that are joined in whatever order they end.
    #[kernel_bench(of = log_sum_exp, parallel)]
    fn joined_chunks(x: &[f32]) -> f32 {
        let chunks = x.par_chunks(500).map(Running::of);
        let Running { max, sum } = chunks.reduce(|| Running::NONE, Running::joined);
        max + sum.ln()
    }
}

mod wrong {
    use super::*;

    /// Exponentials of large numbers are infinite.
    #[kernel_bench(of = softmax)]
    fn without_maximum(x: &[f32], dim: usize, out: &mut [f32]) {
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            soft_row(x, 0.0, out);
        }
    }

    /// The maximum of negative numbers is taken for 0, and all exponentials may vanish.
    #[kernel_bench(of = softmax)]
    fn maximum_from_zero(x: &[f32], dim: usize, out: &mut [f32]) {
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            soft_row(x, x.iter().copied().fold(0.0, f32::max), out);
        }
    }

    /// All exponentials of a row vanish whose numbers are far below those of another one.
    #[kernel_bench(of = softmax)]
    fn maximum_of_all_rows(x: &[f32], dim: usize, out: &mut [f32]) {
        let max = largest(x);
        for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            soft_row(x, max, out);
        }
    }

    /// Exponentials of large numbers are infinite.
    #[kernel_bench(of = softmax, cuda)]
    fn warp_without_maximum(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        dim: usize,
        out: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        let kernel = gpu.kernel(SOURCE, "softmax_without_maximum")?.grid(x.len() / dim).block(32);
        kernel.arg(x).arg(dim).arg(out).launch()
    }

    /// The sum of exponentials of large numbers is infinite.
    #[kernel_bench(of = log_sum_exp)]
    fn sum_without_maximum(x: &[f32]) -> f32 {
        x.iter().map(|x| x.exp()).sum::<f32>().ln()
    }

    /// Joins the sums of chunks, which are relative to different maxima, as they are.
    #[kernel_bench(of = log_sum_exp, parallel)]
    fn chunks_not_rescaled(x: &[f32]) -> f32 {
        let join = |a: Running, b: Running| Running { max: a.max.max(b.max), sum: a.sum + b.sum };
        let Running { max, sum } =
            x.par_chunks(1000).map(Running::of).reduce(|| Running::NONE, join);
        max + sum.ln()
    }
}
