//! Kernels of transformer inference and training and of numerical back ends, as serial, parallel and CUDA variants.
//!
//! A module is a family; what families have in common is in [`shared`]. Every kernel has natural axes, an independent reference
//! and, for its parallel variant, the threshold that its author claims; `cargo run --example suite` finds out whether the claim
//! holds, and `-- --tune` writes what it measured to `kbench.toml`. A reference computes in `f64`, but for that of
//! [`quantise`](quantisation::quantise): the integers must be the same, so it rounds in `f32` where the kernel does.

#![deny(unsafe_code)] // the modules that call instructions of the processor have an exception

pub mod attention;
pub mod device;
pub mod elementwise;
pub mod loss;
pub mod matmul;
pub mod memory;
pub mod normalisation;
pub mod position;
pub mod quantisation;
pub mod reductions;
pub mod shared;
pub mod signal;
pub mod sparse;
pub mod training;
