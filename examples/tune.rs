//! From a guess to a measured threshold, in three commands:
//!
//! ```sh
//! cargo run --example tune              # judges the guess in `threshold = tuned(1 << 20)`
//! cargo run --example tune -- --tune    # writes the measured threshold to kbench.toml
//! cargo run --example tune              # is built with it: `auto` keeps up with the better variant at every size
//! ```

use kbench::prelude::*;
use rayon::prelude::*;

/// Elements that one task handles.
const GRAIN: usize = 1 << 11;

/// out ← x · σ(1.702·x), the quick form of GELU.
#[kernel_bench(
    sizes = pow2(9..=18),
    inputs = |n| (normal(n), zeros(n)),
    reference = gelu_f64,
)]
pub fn gelu(x: &[f32], out: &mut [f32]) {
    for (x, out) in x.iter().zip(out) {
        *out = x / (1.0 + (-1.702 * x).exp());
    }
}

/// [`gelu`] on all cores. The number is a guess; `--tune` measures a better one.
#[kernel_bench(of = gelu, parallel, threshold = tuned(1 << 20))]
pub fn gelu_rayon(x: &[f32], out: &mut [f32]) {
    x.par_chunks(GRAIN).zip(out.par_chunks_mut(GRAIN)).for_each(|(x, out)| gelu(x, out));
}

kbench::dispatch! {
    /// Whichever of the two is faster at this size; measured like any other variant.
    #[kernel_bench(of = gelu, parallel, name = "auto", expect = [best >= 0.98])]
    pub fn gelu_auto(x: &[f32], out: &mut [f32]) {
        match x.len() {
            tuned(1 << 20).. => gelu_rayon,
            _ => gelu,
        }
    }
}

/// What the result should be, in f64.
fn gelu_f64(x: &[f64], out: &mut [f64]) {
    for (x, out) in x.iter().zip(out) {
        *out = x / (1.0 + (-1.702 * x).exp());
    }
}

kbench::main!(measure);
