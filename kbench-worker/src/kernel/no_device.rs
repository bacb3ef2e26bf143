//! CUDA variants without the feature `cuda`: their rows are skipped before anything here could be called.

use super::data::Stale;
use super::routine::Sampled;
use super::{Caller, Calls, CellData, Fault, Kernel, Returned, Routine};
use crate::cuda::{DeviceArguments, Gpu, Unavailable};
use crate::value::Operand;

/// What a kernel's arguments are on a device.
pub type OnDevice<'a, K> = <<K as Kernel>::Arguments<'a> as DeviceArguments<'a>>::Device;

/// A function that calls a CUDA variant.
pub type DeviceCall<K> = for<'a> fn(&'a Gpu, OnDevice<'a, K>) -> Box<dyn Operand>;

/// A routine that cannot run.
pub fn device<K>(_: DeviceCall<K>) -> Box<dyn Routine>
where
    K: Kernel,
    for<'a> K::Arguments<'a>: DeviceArguments<'a>,
{
    Box::new(Absent)
}

/// The data of a cell on a device that does not exist.
#[derive(Default)]
pub struct Resident {
    pub(super) stale: Stale,
}

struct Absent;

impl Routine for Absent {
    fn call(&self, _: &mut dyn CellData, _: &Caller) -> Result<Returned, Fault> {
        Err(Fault::Declined(Unavailable::NotBuilt.to_string()))
    }

    fn sample(&self, _: &mut dyn CellData, _: Calls, _: &Caller) -> Result<Sampled, Fault> {
        Err(Fault::Declined(Unavailable::NotBuilt.to_string()))
    }
}
