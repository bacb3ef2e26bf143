//! The yardsticks of the kernel library on the CPU.
//!
//! They are generic, and here is where they are compiled for the types that are called, so that neither the library nor its
//! tests compile them again.

mod matmul;

use std::sync::Arc;

pub use matmul::{Parallelism, multiply};
pub use rustfft::Fft;
pub use rustfft::num_complex::Complex32;

/// The plan of a Fourier transform of n numbers by the crate `rustfft`, by a planner that has made none before.
pub fn plan_fft(n: usize) -> Arc<dyn Fft<f32>> {
    rustfft::FftPlanner::new().plan_fft_forward(n)
}
