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
