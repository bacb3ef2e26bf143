//! Ranges that profilers show: of the CUDA profiler, and of NVTX where its library is there.

use std::ffi::{CString, c_char, c_int};

use cudarc::driver::sys;
use libloading::Library;

use super::gpu::Gpu;
use crate::cuda::GpuResult;

/// Names of NVTX's library, the newer first.
const NVTX: [&str; 3] = ["libnvtx3interop.so.1", "libnvtx3interop.so", "libnvToolsExt.so.1"];

/// What marks a part of a run for profilers.
pub(crate) struct Profiler {
    nvtx: Option<Library>,
}

impl Profiler {
    pub(crate) fn open() -> Self {
        // SAFETY: a library of NVIDIA's, opened as the loader would.
        Profiler { nvtx: NVTX.iter().find_map(|name| unsafe { Library::new(*name) }.ok()) }
    }

    /// Runs code inside a range of a given name.
    pub(crate) fn within<R>(
        &self,
        gpu: &Gpu,
        name: &str,
        code: impl FnOnce() -> GpuResult<R>,
    ) -> GpuResult<R> {
        gpu.synchronize()?;
        gpu.bind()?;
        // SAFETY: the context of this device is the current one.
        gpu.done("starting the profiler", unsafe { sys::cuProfilerStart() }.result())?;
        self.push(name);
        let result = code().and_then(|result| gpu.synchronize().map(|()| result));
        self.pop();
        gpu.bind()?;
        // SAFETY: the context of this device is the current one.
        gpu.done("stopping the profiler", unsafe { sys::cuProfilerStop() }.result())?;
        result
    }

    fn push(&self, name: &str) {
        let Some(library) = &self.nvtx else { return };
        let Ok(name) = CString::new(name) else { return };
        // SAFETY: the function takes a text and gives a number, as NVTX has it since its first version.
        if let Ok(push) = unsafe {
            library.get::<unsafe extern "C" fn(*const c_char) -> c_int>(b"nvtxRangePushA\0")
        } {
            // SAFETY: the text outlives the call.
            unsafe { push(name.as_ptr()) };
        }
    }

    fn pop(&self) {
        let Some(library) = &self.nvtx else { return };
        // SAFETY: the function takes nothing and gives a number.
        if let Ok(pop) =
            unsafe { library.get::<unsafe extern "C" fn() -> c_int>(b"nvtxRangePop\0") }
        {
            // SAFETY: as above.
            unsafe { pop() };
        }
    }
}
