//! What the host does before a GPU has anything to do.

#![allow(unsafe_code)] // contexts that are no device's primary one are made by the driver's own interface

use std::cell::OnceCell;
use std::error::Error;
use std::sync::OnceLock;

use kbench::cuda::cudarc::driver::result::{ctx, device};
use kbench::cuda::cudarc::driver::sys;
use kbench::cuda::{Unavailable, compile, devices};
use kbench::{Declined, Gpu, GpuError, Source, kernel_bench};

/// Why a kernel of this file has no result: a [`Declined`] where nobody is to blame, something else where somebody is.
type Reason = Box<dyn Error>;

/// The architecture that device code is compiled for here: no device is needed for that.
const ARCHITECTURE: &str = "sm_90a";

const SMALL: Source = Source::new(include_str!("../../cuda/device.cu"))
    .named("device.cu")
    .headers(crate::shared::COMMON);

/// Asks for all devices, with all that is to be known about each: what there is to ask before anything can be chosen.
#[kernel_bench(sizes = [1], inputs = |n| (), reference = done)]
pub fn query_devices() -> Result<bool, Reason> {
    Ok(!devices().map_err(declined)?.is_empty())
}

/// Makes a context on a device, which is not the one that the process may have already, and destroys it.
#[kernel_bench(sizes = [1], inputs = |n| (), reference = done)]
pub fn create_context() -> Result<bool, Reason> {
    driver()?; // where there is none, calling it would panic
    let device = device::get(0)?;
    // SAFETY: the device exists, and no parameters are given.
    let context = unsafe { ctx::create_v4(std::ptr::null_mut(), 0, device)? };
    // SAFETY: the context was just made, and nobody else knows it.
    unsafe { sys::cuCtxDestroy_v2(context) }.result()?;
    Ok(true)
}

/// Makes a stream and destroys it.
#[kernel_bench(sizes = [1], inputs = |n| (), reference = done)]
pub fn create_stream() -> Result<bool, Reason> {
    with_gpu(|gpu| {
        gpu.context().new_stream()?;
        Ok(true)
    })
}

/// Compiles a small source, as if for the first time.
#[kernel_bench(sizes = [1], inputs = |n| (), reference = done)]
pub fn compile_source() -> Result<bool, Reason> {
    // A source that may include files of the machine is never taken from the cache.
    has_code(SMALL.options(&["-I."]))
}

/// [`compile_source`], or rather what was compiled before, from the cache on disk.
#[kernel_bench(of = compile_source, expect = [time < 5ms])]
pub fn compile_source_cached() -> Result<bool, Reason> {
    has_code(SMALL)
}

/// [`compile_source`], or rather what this process has loaded already.
#[kernel_bench(of = compile_source, expect = [time < 5ms])]
pub fn compile_source_loaded() -> Result<bool, Reason> {
    with_gpu(|gpu| Ok(gpu.kernel(SMALL, "count_blocks").map(|_| true)?))
}

fn done() -> bool {
    true
}

fn has_code(source: Source) -> Result<bool, Reason> {
    let compiled = compile(&source, ARCHITECTURE).map_err(|error| match error {
        GpuError::Declined(declined) => Reason::from(declined),
        error => error.into(),
    })?;
    Ok(!compiled.cubin.is_empty())
}

/// Whether there is a driver with a device, and the driver is ready: the first call finds out, so that no later one, which
/// may be timed, asks for all devices again.
fn driver() -> Result<(), Declined> {
    static DRIVER: OnceLock<Result<(), Unavailable>> = OnceLock::new();
    let found = DRIVER.get_or_init(|| devices().map(|_| ()));
    found.clone().map_err(declined)
}

/// Calls a function with a device that is opened by the first call and stays open.
fn with_gpu<R>(function: impl FnOnce(&Gpu) -> Result<R, Reason>) -> Result<R, Reason> {
    thread_local! {
        static GPU: OnceCell<Result<Gpu, Unavailable>> = const { OnceCell::new() };
    }
    GPU.with(|gpu| match gpu.get_or_init(|| Gpu::open(0)) {
        Ok(gpu) => function(gpu),
        Err(unavailable) => Err(declined(unavailable.clone()).into()),
    })
}

fn declined(unavailable: Unavailable) -> Declined {
    Declined(unavailable.to_string())
}
