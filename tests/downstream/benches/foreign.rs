//! Kernels that programs in other languages implement, too.
use downstream as _;
use kbench::prelude::*;
use kbench::{bf16, f16, F8E4M3, F8E5M2};

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

kbench::main!();
