//! kbench
pub use kbench_macros::kernel_bench;
#[cfg(feature = "run")]
pub use kbench_core::*;
#[cfg(feature = "run")]
#[doc(hidden)]
pub use kbench_core::__private;
