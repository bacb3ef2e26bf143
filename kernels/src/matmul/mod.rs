//! Matrix products of row-major matrices: the kernels where order of access decides everything.

pub mod batched;
pub mod fp8;
pub mod fp8_tensor;
pub mod half;
pub mod int8;
pub mod packed;
mod reference;
pub mod single;
mod tensor;

#[cfg(feature = "cuda")]
mod cublas;
mod tiled;
