//! Kernels that programs in other languages implement, too.
use downstream as _;
use kbench::prelude::*;

/// x ← −x, exactly, in the types that few languages have.
#[kernel_bench(
    sizes = [64, 1000],
    inputs = |n| (normal(n), zeros(n)),
    types = [f16, bf16, F8E4M3, F8E5M2],
    tolerance = 1e-12,
)]
fn negate<T: Element>(x: &[T], y: &mut [T]) {
    for (x, y) in x.iter().zip(y) {
        *y = T::from_f64(-x.to_f64());
    }
}

#[kernel_bench(
    sizes = { rows: [16, 256], dim: [1024] },
    inputs = |rows, dim| (uniform(rows * dim), dim, zeros(rows * dim)),
    tolerance = 1e-5,
)]
pub fn softmax(x: &[f32], dim: usize, out: &mut [f32]) {
    for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
        let largest = x.iter().copied().fold(f32::MIN, f32::max);
        let sum: f32 = x.iter().map(|x| (x - largest).exp()).sum();
        out.iter_mut().zip(x).for_each(|(out, x)| *out = (x - largest).exp() / sum);
    }
}

kbench::main!();
