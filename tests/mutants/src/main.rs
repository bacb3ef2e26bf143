//! Kernels with the mistakes that people make, and right ones that look unusual.
//!
//! Every file is a field. Its kernels come first, the right variants are in `mod right`, and those in `mod wrong` have one
//! mistake each, which their comment names. No input is chosen to expose a mistake: the checks have to find it.

mod activations;
mod elementwise;
mod half_product;
mod integers;
mod matmul;
mod memory;
mod norms;
mod reductions;
mod scan_sort;
mod search;
mod softmax;
mod stencil;
mod structs;

use kbench::prelude::Source;

/// Device code of all CUDA variants.
const SOURCE: Source =
    Source::new(include_str!("../cuda/mutants.cu")).named("mutants.cu").headers(&[]);

kbench::main!();
