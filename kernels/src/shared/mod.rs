//! What families have in common: vector instructions chosen at run time, floats of three widths, elementary functions,
//! reductions, tasks of a sensible size, and entry points of device code.

pub mod device;
pub mod float;
pub mod lanes;
pub mod math;
pub mod reduce;
pub mod simd;
pub mod tasks;

pub use device::COMMON;
pub(crate) use device::entry;
pub use float::{BLOCK, Float};
pub(crate) use simd::vectorise;
