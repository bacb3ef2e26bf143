//! Rows brought to a common scale: one or two reductions of a row, and a pass that writes it.
//!
//! A row is read from memory once: on the processor the later passes find it in the cache, on a GPU its threads hold it
//! in registers. What is left is the time that copying takes, and that is what these kernels are held against.

mod layer;
mod qk;
mod rms;
mod soft;

use kbench::prelude::*;

use crate::shared::COMMON;

pub use layer::{layer_norm, layer_norm_cuda, layer_norm_rayon};
pub use qk::{qk_norm, qk_norm_cuda, qk_norm_rayon, qk_norm_together, qk_norm_together_cuda};
pub use rms::{
    rms_norm, rms_norm_cuda, rms_norm_gemma, rms_norm_gemma_cuda, rms_norm_gemma_rayon,
    rms_norm_rayon,
};
pub use soft::{softmax, softmax_cuda, softmax_rayon};

const SOURCE: Source = Source::new(include_str!("../../cuda/normalisation.cu"))
    .named("normalisation.cu")
    .headers(COMMON);

/// The threads of a GPU that work on the rows of a matrix.
struct Teams {
    /// Threads that work on one row: a power of two.
    team: usize,
    threads: usize,
    blocks: usize,
    /// Whether threads hold their rows, in whole vectors of 16 bytes.
    is_held: bool,
}

impl Teams {
    /// Bytes that a thread holds: four packs, as HELD of the device code.
    const HELD: usize = 64;
    /// Threads of a block at least.
    const THREADS: usize = 128;
    /// Threads of a block at most.
    const MOST_THREADS: usize = 1024;

    fn new<T>(rows: usize, dim: usize) -> Self {
        let held = Self::HELD / size_of::<T>();
        let team = dim.div_ceil(held).next_power_of_two().min(Self::MOST_THREADS);
        let threads = team.max(Self::THREADS);
        let is_held = dim <= team * held && (dim * size_of::<T>()).is_multiple_of(16);
        Teams { team, threads, blocks: rows.div_ceil(threads / team).max(1), is_held }
    }

    /// One of two entry points: for rows that are held, and for any.
    fn choose(&self, held: &'static str, any: &'static str) -> &'static str {
        if self.is_held { held } else { any }
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::layer::layer_norm_stored;
    use super::qk::together_stored;
    use super::rms::rms_norm_stored;
    use super::soft::softmax_stored;
    use crate::shared::Float;
    use crate::shared::streaming::assert_same_both_ways;

    fn numbers<T: Float>(count: usize) -> Vec<T> {
        (0..count).map(|i| T::from_f32((i * 7919 % 1009) as f32 / 200.0 - 2.0)).collect()
    }

    fn rows_are_the_same<T: Float>() {
        for dim in [1, 5, 100, 256, 257, 300, 1000] {
            let length = 3 * dim;
            let [x, k] = [numbers::<T>(length), numbers::<T>(length + 1).split_off(1)];
            let [w, b] = [numbers::<T>(dim), numbers::<T>(dim + 2).split_off(2)];
            assert_same_both_ways(length, |out: &mut [T], is_large| {
                layer_norm_stored(&x, &w, &b, 1e-5, out, is_large);
            });
            assert_same_both_ways(length, |out: &mut [T], is_large| {
                rms_norm_stored(&x, &w, 1e-5, 1.0, out, is_large);
            });
            assert_same_both_ways(length, |out: &mut [T], is_large| {
                softmax_stored(&x, dim, out, is_large);
            });
            assert_same_both_ways(2 * length, |out: &mut [T], is_large| {
                let (q_out, k_out) = out.split_at_mut(length);
                together_stored(&x, &k, [&w, &b], 1e-5, q_out, k_out, is_large);
            });
        }
    }

    #[test]
    fn rows_are_the_same_when_they_are_stored_past_the_caches() {
        rows_are_the_same::<f32>();
        rows_are_the_same::<f16>();
        rows_are_the_same::<bf16>();
    }

    #[test]
    fn rows_of_a_large_result_are_those_of_small_ones() {
        let (rows, dim) = (8200, 1024);
        let (x, w, b) = (numbers::<f32>(rows * dim), numbers(dim), numbers(dim));
        let mut small = vec![0.0; rows * dim];
        for (x, out) in x.chunks(10 * dim).zip(small.chunks_mut(10 * dim)) {
            super::layer_norm(x, &w, &b, 1e-5, out);
        }
        for kernel in [super::layer_norm, super::layer_norm_rayon] {
            let mut large = vec![0.0; rows * dim];
            kernel(&x, &w, &b, 1e-5, &mut large);
            assert!(large == small);
        }
    }
}
