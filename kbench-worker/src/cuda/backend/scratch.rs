//! Memory that a variant needs during a call and does not initialise: made once, and kept for the calls that follow.

use std::ops::{Deref, DerefMut};

use super::gpu::Gpu;
use super::memory::{DeviceElement, DeviceSlice};
use crate::cuda::GpuResult;

/// An array whose content is whatever the last call left there, lent by [`Gpu::scratch`].
pub struct Scratch<'g, T: DeviceElement> {
    gpu: &'g Gpu,
    /// None only while it is given back.
    array: Option<DeviceSlice<T>>,
}

impl<'g, T: DeviceElement> Scratch<'g, T> {
    pub(super) fn new(gpu: &'g Gpu, len: usize) -> GpuResult<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let array = match gpu.shelf().take(bytes) {
            Some(allocation) => DeviceSlice::new(allocation, len),
            None => gpu.uninitialised(len)?,
        };
        Ok(Scratch { gpu, array: Some(array) })
    }
}

impl<T: DeviceElement> Deref for Scratch<'_, T> {
    type Target = DeviceSlice<T>;

    fn deref(&self) -> &DeviceSlice<T> {
        self.array.as_ref().unwrap_or_else(|| unreachable!("it is there until it is dropped"))
    }
}

impl<T: DeviceElement> DerefMut for Scratch<'_, T> {
    fn deref_mut(&mut self) -> &mut DeviceSlice<T> {
        self.array.as_mut().unwrap_or_else(|| unreachable!("it is there until it is dropped"))
    }
}

/// All work is on one stream, so the next call that gets this memory runs after everything that uses it now.
impl<T: DeviceElement> Drop for Scratch<'_, T> {
    fn drop(&mut self) {
        if let Some(array) = self.array.take() {
            self.gpu.shelf().put(array.into_allocation());
        }
    }
}

impl<T: DeviceElement + std::fmt::Debug> std::fmt::Debug for Scratch<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.deref().fmt(f)
    }
}
