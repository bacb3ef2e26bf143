//! The device of a worker, opened when a row first needs it.

use super::protocol::DeviceRequest;
use crate::cuda::{Ceilings, GpuResult};
#[cfg(feature = "cuda")]
use crate::cuda::{Gpu, Stopwatch};
use crate::kernel::{Caller, Mode};
#[cfg(feature = "cuda")]
use std::rc::Rc;

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
        if self.request != *request {
            *self = Devices::default();
            self.request.clone_from(request);
        }
    }
}

#[cfg(feature = "cuda")]
impl Devices {
    /// Where rows of a mode are called.
    pub(super) fn caller(&mut self, mode: Mode) -> Result<Caller, String> {
        Ok(Caller::Device(self.stopwatch()?, mode))
    }

    fn stopwatch(&mut self) -> Result<Rc<Stopwatch>, String> {
        let DeviceRequest { ordinal, dump } = &self.request;
        let open = || {
            let gpu = Gpu::open(*ordinal).map_err(|unavailable| unavailable.to_string())?;
            gpu.dump_to(dump.clone());
            Stopwatch::new(gpu).map(Rc::new).map_err(|error| error.to_string())
        };
        self.opened.get_or_insert_with(open).clone()
    }

    /// Why nothing can run on the device any more.
    pub(super) fn lost(&self) -> Option<String> {
        self.opened.as_ref()?.as_ref().ok()?.gpu().lost()
    }

    /// The highest clock of the device that is open.
    pub(super) fn max_clock_mhz(&self) -> Option<f64> {
        self.opened.as_ref()?.as_ref().ok()?.max_clock_mhz()
    }

    /// What the device is capable of.
    pub(super) fn ceilings(&mut self) -> GpuResult<Ceilings> {
        self.stopwatch().map_err(crate::cuda::GpuError)?.ceilings()
    }
}

#[cfg(not(feature = "cuda"))]
impl Devices {
    /// Where rows of a mode are called: nowhere.
    pub(super) fn caller(&mut self, _: Mode) -> Result<Caller, String> {
        Err(crate::cuda::Unavailable::NotBuilt.to_string())
    }

    /// There is none to lose.
    pub(super) fn lost(&self) -> Option<String> {
        None
    }

    /// There is none that has a clock.
    pub(super) fn max_clock_mhz(&self) -> Option<f64> {
        None
    }

    /// There is none that could be capable of anything.
    pub(super) fn ceilings(&mut self) -> GpuResult<Ceilings> {
        Err(crate::cuda::GpuError(crate::cuda::Unavailable::NotBuilt.to_string()))
    }
}
