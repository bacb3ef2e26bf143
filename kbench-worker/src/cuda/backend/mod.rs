//! The backend proper, on top of cudarc, which nothing outside of this folder names.
//!
//! cudarc opens CUDA's libraries at run time and panics when one is missing; [`library`] therefore asks for each of them
//! before anything else is called.

#![allow(unsafe_code)] // the driver's interface is C; every call says why it is sound

mod blas;
mod cache;
mod ceilings;
mod compile;
mod compiler;
mod gpu;
mod launch;
mod library;
mod memory;
mod nvml;
mod profile;
mod scratch;
mod stopwatch;

pub use blas::{BlasLt, MatrixProduct};
pub use compile::{Compiled, Source, compile};
pub use gpu::Gpu;
pub(crate) use launch::summarise;
pub use launch::{Dimensions, KernelArgument, Launch};
pub use library::devices;
pub use memory::{DeviceElement, DeviceSlice, DeviceView, DeviceViewMut};
pub(crate) use profile::Profiler;
pub use scratch::Scratch;
pub use stopwatch::{Graph, Queue, Stopwatch, Timing};
pub(crate) use stopwatch::{MOST_QUEUED, Pinned};

/// The bindings that everything here is made of, for whatever kbench has no name for.
pub use cudarc;

use super::GpuError;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

/// Errors after which a context is of no use any more: nothing that is called in it will ever succeed again.
const STICKY: [CUresult; 11] = [
    CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUresult::CUDA_ERROR_ASSERT,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUresult::CUDA_ERROR_INVALID_PC,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
];

/// The driver's error in words: what was being done, and what came of it.
fn describe(doing: &str, error: DriverError) -> GpuError {
    let code = error.0;
    let text = error.error_string().map_or_else(
        |_| String::from("no explanation by the driver"),
        |text| text.to_string_lossy().into_owned(),
    );
    GpuError::Failed(format!("{doing}: {text} ({code:?})"))
}
