//! The types that a CUDA variant names in its signature.
//!
//! This version has no CUDA backend: a CUDA variant is registered, listed and type-checked against its kernel, and its
//! rows say *skipped*. No value of [`Gpu`] can exist here, so no body of such a variant can run.

use std::convert::Infallible;
use std::marker::PhantomData;

use crate::value::Element;

/// A CUDA device, supplied by the runtime to variants that take a `&Gpu`.
#[derive(Debug)]
pub struct Gpu(Infallible);

/// An array on a device: what a `Vec<T>` of the kernel's inputs becomes for a CUDA variant.
#[derive(Debug)]
pub struct DeviceSlice<T> {
    never: Infallible,
    element: PhantomData<T>,
}

impl<T: Element> DeviceSlice<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self.never {}
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        match self.never {}
    }
}

/// What went wrong on a device.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct GpuError(pub String);

/// Result of a CUDA variant.
pub type GpuResult<T> = Result<T, GpuError>;

/// What a host value becomes on a device.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be uploaded to a device",
    note = "vectors and single values of the element types can; for a type of your own implement `kbench::Upload`"
)]
pub trait Upload {
    /// Its form on the device.
    type Device;
}

impl<T: Element> Upload for Vec<T> {
    type Device = DeviceSlice<T>;
}

macro_rules! upload_as_itself {
    ($($type:ty)*) => {$(
        impl Upload for $type {
            type Device = $type;
        }
    )*};
}

upload_as_itself! { f32 f64 half::f16 half::bf16 i8 i16 i32 i64 isize u8 u16 u32 u64 usize bool }

/// What the arguments of a kernel become on a device: every borrow of a host value a borrow of its device form.
pub trait DeviceArguments {
    /// The same tuple on the device.
    type Device;
}

impl<'a, T: Upload> DeviceArguments for &'a T {
    type Device = &'a T::Device;
}

impl<'a, T: Upload> DeviceArguments for &'a mut T {
    type Device = &'a mut T::Device;
}

macro_rules! device_tuple {
    ($($name:ident)*) => {
        impl<$($name: DeviceArguments),*> DeviceArguments for ($($name,)*) {
            type Device = ($($name::Device,)*);
        }
    };
}

device_tuple! {}
device_tuple! { A }
device_tuple! { A B }
device_tuple! { A B C }
device_tuple! { A B C D }
device_tuple! { A B C D E }
device_tuple! { A B C D E F }
device_tuple! { A B C D E F G }
device_tuple! { A B C D E F G H }
device_tuple! { A B C D E F G H I }
device_tuple! { A B C D E F G H I J }
device_tuple! { A B C D E F G H I J K }
device_tuple! { A B C D E F G H I J K L }
