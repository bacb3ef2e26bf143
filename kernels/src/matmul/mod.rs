//! Matrix products of row-major matrices: the kernels where order of access decides everything.

pub mod batched;
pub mod packed;
pub mod single;
#[cfg(feature = "vendor")]
mod vendor;
