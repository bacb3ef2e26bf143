//! What families have in common: vector instructions chosen at run time, floats of three widths, elementary functions,
//! tasks of a sensible size, and entry points of device code.

pub mod device;
pub mod float;
pub mod math;
pub mod simd;
pub mod tasks;

pub use device::COMMON;
pub(crate) use device::entry;
pub use float::{BLOCK, Float};
pub(crate) use simd::vectorise;
pub use simd::vectorised;
