//! The CUDA backend, and the types that a CUDA variant names in its signature.
//!
//! A CUDA variant takes a `&Gpu` and [`DeviceSlice`]s where the kernel has slices. The runtime uploads the kernel's data,
//! calls the variant and downloads what it wrote:
//!
//! ```
//! use kbench_worker::cuda::{DeviceSlice, Gpu, GpuResult};
//!
//! const SOURCE: &str = r#"
//! extern "C" __global__ void saxpy(float a, const float* x, float* y, size_t n) {
//!     size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
//!     if (i < n) y[i] += a * x[i];
//! }"#;
//!
//! # #[allow(dead_code)]
//! fn saxpy_cuda(gpu: &Gpu, a: f32, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
//!     let n = x.len();
//!     gpu.kernel(SOURCE, "saxpy")?.over(n, 256).arg(a).arg(x).arg(y).arg(n).launch()
//! }
//! ```
//!
//! Nothing of CUDA is needed to build it: the driver, NVRTC and cuBLAS are opened when a program runs. Without the feature
//! `cuda` the same types are there, but no [`Gpu`] can exist, so that no body of a CUDA variant runs.

mod arguments;
mod availability;
mod figures;
mod throttle_reasons;

#[cfg(feature = "cuda")]
mod backend;
#[cfg(feature = "cuda")]
use backend as chosen;

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(not(feature = "cuda"))]
use absent as chosen;

pub use arguments::{DeviceArguments, DeviceValue, Held, Slot, Upload};
#[cfg(feature = "cuda")]
use availability::is_switched_off;
pub use availability::switch_off;
pub use availability::{DeviceInfo, Unavailable};
pub use chosen::{
    BlasLt, DeviceElement, DeviceSlice, DeviceView, DeviceViewMut, Dimensions, Gpu, KernelArgument,
    Launch, MatrixProduct, Scratch, Source, devices,
};
#[cfg(feature = "cuda")]
pub use chosen::{Compiled, Graph, Queue, Stopwatch, Timing, compile, cudarc};
#[cfg(feature = "cuda")]
pub(crate) use chosen::{MOST_QUEUED, Pinned, Profiler, summarise};
pub use figures::bytes_in_words;
pub use figures::{Ceilings, DeviceFigures, DeviceKernel, DeviceReading, Transfers, TypeRate};
pub use throttle_reasons::ThrottleReasons;

use crate::value::Declined;

/// The variable that names the folder in which compiled device code and ceilings are kept.
pub const CACHE: &str = "KBENCH_CACHE";

/// What went wrong on a device.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GpuError {
    /// A call, or the code that was to be called.
    #[error("{0}")]
    Failed(String),
    /// Nothing, but it cannot be done here: a variant that returns this is skipped.
    #[error(transparent)]
    Declined(#[from] Declined),
}

/// Result of a CUDA variant.
pub type GpuResult<T> = Result<T, GpuError>;
