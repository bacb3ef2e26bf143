//! The device of a worker, opened when a row first needs it.

use super::protocol::DeviceRequest;
use crate::cuda::{Ceilings, GpuResult, switch_off};
#[cfg(feature = "cuda")]
use crate::cuda::{Gpu, Stopwatch};
use crate::kernel::{Caller, Mode};
#[cfg(feature = "cuda")]
use std::rc::Rc;

/// Where CUDA variants are called and their sources are compiled.
pub(super) trait Workshop {
    /// Where rows of a mode are called.
    fn caller(&mut self, mode: Mode) -> Result<Caller, String>;

    /// Why nothing can run on the device any more.
    fn lost(&self) -> Option<String>;

    /// Puts off sources that were never compiled from now on, or does not, on a device that is open.
    fn collect_sources(&self, is_collecting: bool);

    /// Whether a source was put off since this was last asked.
    fn has_put_off(&self) -> bool;

    /// Compiles what was put off, side by side; tells how many of how many sources are done.
    fn compile_collected(&self, tell: &mut dyn FnMut(usize, usize));
}

/// The device of one process.
#[derive(Default)]
pub(super) struct Devices {
    request: DeviceRequest,
    #[cfg(feature = "cuda")]
    opened: Option<Result<Rc<Stopwatch>, String>>,
}

impl Devices {
    /// Uses another device from now on, if it is another one.
    pub(super) fn choose(&mut self, request: &DeviceRequest) {
        switch_off(request.off);
        if self.request != *request {
            *self = Devices::default();
            self.request.clone_from(request);
        }
    }
}

#[cfg(feature = "cuda")]
impl Workshop for Devices {
    fn caller(&mut self, mode: Mode) -> Result<Caller, String> {
        Ok(Caller::Device(self.stopwatch()?, mode))
    }

    fn lost(&self) -> Option<String> {
        self.gpu()?.lost()
    }

    fn collect_sources(&self, is_collecting: bool) {
        if let Some(gpu) = self.gpu() {
            gpu.collect_sources(is_collecting);
        }
    }

    fn has_put_off(&self) -> bool {
        self.gpu().is_some_and(Gpu::has_put_off)
    }

    fn compile_collected(&self, tell: &mut dyn FnMut(usize, usize)) {
        if let Some(gpu) = self.gpu() {
            gpu.compile_collected(tell);
        }
    }
}

#[cfg(feature = "cuda")]
impl Devices {
    fn stopwatch(&mut self) -> Result<Rc<Stopwatch>, String> {
        let DeviceRequest { ordinal, dump, .. } = &self.request;
        let open = || {
            let gpu = Gpu::open(*ordinal).map_err(|unavailable| unavailable.to_string())?;
            gpu.dump_to(dump.clone());
            Stopwatch::new(gpu).map(Rc::new).map_err(|error| error.to_string())
        };
        self.opened.get_or_insert_with(open).clone()
    }

    /// The device, if it is open.
    fn gpu(&self) -> Option<&Gpu> {
        Some(self.opened.as_ref()?.as_ref().ok()?.gpu())
    }

    /// The highest clock of the device that is open.
    pub(super) fn max_clock_mhz(&self) -> Option<f64> {
        self.opened.as_ref()?.as_ref().ok()?.max_clock_mhz()
    }

    /// The device code that calls are timed with, for foreign workers; none where there is no device for it.
    pub(super) fn instruments(&mut self) -> Option<String> {
        self.stopwatch().ok()?.instruments().ok()
    }

    /// What the device is capable of.
    pub(super) fn ceilings(&mut self) -> GpuResult<Ceilings> {
        self.stopwatch().map_err(crate::cuda::GpuError::Failed)?.ceilings()
    }
}

/// There is no device: rows are called nowhere, none can be lost, and nothing is compiled.
#[cfg(not(feature = "cuda"))]
impl Workshop for Devices {
    fn caller(&mut self, _: Mode) -> Result<Caller, String> {
        Err(crate::cuda::Unavailable::NotBuilt.to_string())
    }

    fn lost(&self) -> Option<String> {
        None
    }

    fn collect_sources(&self, _: bool) {}

    fn has_put_off(&self) -> bool {
        false
    }

    fn compile_collected(&self, _: &mut dyn FnMut(usize, usize)) {}
}

#[cfg(not(feature = "cuda"))]
impl Devices {
    /// There is none that has a clock.
    pub(super) fn max_clock_mhz(&self) -> Option<f64> {
        None
    }

    /// There is none that could be timed with anything.
    pub(super) fn instruments(&mut self) -> Option<String> {
        None
    }

    /// There is none that could be capable of anything.
    pub(super) fn ceilings(&mut self) -> GpuResult<Ceilings> {
        Err(crate::cuda::GpuError::Failed(crate::cuda::Unavailable::NotBuilt.to_string()))
    }
}
