//! What families have in common: vector instructions chosen at run time, floats of three widths, elementary functions,
//! reductions, memory between passes, sizes whose products are checked, stores past the caches, tasks of a sensible size, and entry
//! points of device code.

pub mod device;
pub mod float;
#[cfg(test)]
mod inlined;
pub mod lanes;
pub mod math;
pub mod reduce;
pub mod scratch;
pub mod simd;
mod sizes;
pub(crate) mod streaming;
pub mod tasks;

pub use device::{COMMON, MOST_BLOCKS, MOST_TALLIED};
pub(crate) use device::{entry, needs_ampere, needs_hopper};
pub use float::{BLOCK, Float};
pub(crate) use simd::vectorise;
pub(crate) use sizes::area;
pub(crate) use streaming::stored;
