//! What CUDA variants name, without anything behind it: no device has a value, so nothing here can be called. Methods ask for
//! less than those of the runtime, so that elements of other crates (`half::f16`) need nothing from this one.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use super::{Declined, Operand};

/// What went wrong on a device.
#[derive(Clone, Debug)]
pub enum GpuError {
    /// A call, or the code that was to be called.
    Failed(String),
    /// Nothing, but it cannot be done here.
    Declined(Declined),
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuError::Failed(text) => f.write_str(text),
            GpuError::Declined(declined) => declined.fmt(f),
        }
    }
}

impl std::error::Error for GpuError {}

impl From<Declined> for GpuError {
    fn from(declined: Declined) -> Self {
        GpuError::Declined(declined)
    }
}

/// Result of a CUDA variant.
pub type GpuResult<T> = Result<T, GpuError>;

/// A value that can be brought to a device and back.
pub trait Upload: Operand + Clone {
    /// Its form on the device.
    type Device: DeviceValue;
    /// Makes that form, with the same content.
    fn upload(&self, gpu: &Gpu) -> GpuResult<Self::Device>;
    /// Gives a form that exists the content of this value.
    fn copy_to(&self, device: &mut Self::Device, gpu: &Gpu) -> GpuResult<()>;
    /// Takes over the content of a form on the device.
    fn copy_from(&mut self, device: &Self::Device, gpu: &Gpu) -> GpuResult<()>;
}

/// What an uploaded value is on the device.
pub trait DeviceValue: Sized + 'static {
    /// Another one with the same content.
    fn duplicate(&self, gpu: &Gpu) -> GpuResult<Self>;
    /// Takes over the content of another one of the same shape.
    fn assign(&mut self, other: &Self, gpu: &Gpu) -> GpuResult<()>;
    /// Bytes of device memory.
    fn device_bytes(&self) -> usize;
}

/// An element of arrays in device memory; see the runtime's trait of the same name.
///
/// # Safety
///
/// Without the feature `run` it promises nothing, neither of the type's bits nor of its layout: there is no device memory, and
/// all types that could be an element have it. `unsafe` code must not conclude anything from it.
#[allow(unsafe_code)] // the trait is unsafe in the runtime, and so it is here
pub unsafe trait DeviceElement: Copy + Send + Sync + 'static {}

// SAFETY: the trait promises nothing here.
#[allow(unsafe_code)] // the trait is unsafe in the runtime, and so it is here
unsafe impl<T: Copy + Send + Sync + 'static> DeviceElement for T {}

/// Device code with the options that it is compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source;

impl Source {
    /// The text of a file.
    pub const fn new(_: &'static str) -> Self {
        Source
    }

    /// The file's name.
    pub const fn named(self, _: &'static str) -> Self {
        self
    }

    /// Options of NVRTC.
    pub const fn options(self, _: &'static [&'static str]) -> Self {
        self
    }

    /// Headers that travel with the program.
    pub const fn headers(self, _: &'static [(&'static str, &'static str)]) -> Self {
        self
    }
}

impl From<&'static str> for Source {
    fn from(_: &'static str) -> Self {
        Source
    }
}

/// A CUDA device, supplied by the runtime to variants that take a `&Gpu`.
#[derive(Debug)]
pub struct Gpu(Infallible);

impl Gpu {
    /// A kernel of device code.
    pub fn kernel(&self, _: impl Into<Source>, _: &'static str) -> GpuResult<Launch<'_>> {
        match self.0 {}
    }

    /// An array of zeros.
    pub fn zeros<T>(&self, _: usize) -> GpuResult<DeviceSlice<T>> {
        match self.0 {}
    }

    /// An array whose content is whatever the last call left there.
    pub fn scratch<T>(&self, _: usize) -> GpuResult<Scratch<'_, T>> {
        match self.0 {}
    }

    /// An array with the content of a slice.
    pub fn upload<T>(&self, _: &[T]) -> GpuResult<DeviceSlice<T>> {
        match self.0 {}
    }

    /// The content of an array.
    pub fn download<T>(&self, _: &DeviceSlice<T>) -> GpuResult<Vec<T>> {
        match self.0 {}
    }

    /// Gives an array the content of a slice of the same length.
    pub fn copy_to<T>(&self, _: &[T], _: &mut DeviceSlice<T>) -> GpuResult<()> {
        match self.0 {}
    }

    /// Gives a slice the content of an array of the same length.
    pub fn copy_from<T>(&self, _: &DeviceSlice<T>, _: &mut [T]) -> GpuResult<()> {
        match self.0 {}
    }

    /// Gives an array the content of another one of the same length.
    pub fn copy_within_device<T>(
        &self,
        _: &DeviceSlice<T>,
        _: &mut DeviceSlice<T>,
    ) -> GpuResult<()> {
        match self.0 {}
    }

    /// Waits until everything that was asked for is done.
    pub fn synchronize(&self) -> GpuResult<()> {
        match self.0 {}
    }

    /// cuBLASLt on this device's stream.
    pub fn blas_lt(&self) -> GpuResult<&BlasLt> {
        match self.0 {}
    }

    /// Bytes of device memory that could be had.
    pub fn free_bytes(&self) -> GpuResult<usize> {
        match self.0 {}
    }
}

/// cuBLASLt on one device.
#[derive(Debug)]
pub struct BlasLt(Infallible);

impl BlasLt {
    /// d ← a·b.
    pub fn multiply<A, B, D>(
        &self,
        _: &MatrixProduct,
        _: &DeviceSlice<A>,
        _: &DeviceSlice<B>,
        _: &mut DeviceSlice<D>,
    ) -> GpuResult<()> {
        match self.0 {}
    }

    /// d ← (s·a)·(t·b), each operand with a factor on the device.
    pub fn multiply_scaled<A, B, D>(
        &self,
        _: &MatrixProduct,
        _: (&DeviceSlice<A>, Option<&DeviceSlice<f32>>),
        _: (&DeviceSlice<B>, Option<&DeviceSlice<f32>>),
        _: &mut DeviceSlice<D>,
    ) -> GpuResult<()> {
        match self.0 {}
    }
}

/// d ← a·b of row-major matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixProduct;

impl MatrixProduct {
    /// A product of m × k by k × n.
    pub const fn new(_: usize, _: usize, _: usize) -> Self {
        MatrixProduct
    }

    /// With b stored as n rows of k.
    pub const fn transposed(self) -> Self {
        self
    }

    /// With f32 rounded to what the matrix units take.
    pub const fn tf32(self) -> Self {
        self
    }
}

/// A kernel that is about to be launched.
#[derive(Debug)]
#[must_use = "a kernel runs when it is launched"]
pub struct Launch<'g> {
    never: Infallible,
    gpu: PhantomData<&'g Gpu>,
}

impl Launch<'_> {
    /// Blocks: a number, or a pair or triple of them.
    pub fn grid(self, _: impl Dimensions) -> Self {
        match self.never {}
    }

    /// Threads of a block: a number, or a pair or triple of them.
    pub fn block(self, _: impl Dimensions) -> Self {
        match self.never {}
    }

    /// One thread for each of so many elements, in blocks of `threads`.
    pub fn over(self, _: usize, _: usize) -> Self {
        match self.never {}
    }

    /// Bytes of dynamic shared memory of a block.
    pub fn shared(self, _: usize) -> Self {
        match self.never {}
    }

    /// The next argument.
    pub fn arg<T>(self, _: T) -> Self {
        match self.never {}
    }

    /// Launches it.
    pub fn launch(self) -> GpuResult<()> {
        match self.never {}
    }
}

/// Up to three numbers.
pub trait Dimensions {}

impl Dimensions for usize {}
impl Dimensions for (usize, usize) {}
impl Dimensions for (usize, usize, usize) {}

/// An array on a device: what a `Vec<T>` of the kernel's inputs becomes for a CUDA variant.
#[derive(Debug)]
pub struct DeviceSlice<T> {
    never: Infallible,
    element: PhantomData<T>,
}

/// An array whose content is whatever the last call left there.
#[derive(Debug)]
pub struct Scratch<'g, T> {
    array: DeviceSlice<T>,
    gpu: PhantomData<&'g Gpu>,
}

impl<T> std::ops::Deref for Scratch<'_, T> {
    type Target = DeviceSlice<T>;

    fn deref(&self) -> &DeviceSlice<T> {
        &self.array
    }
}

impl<T> std::ops::DerefMut for Scratch<'_, T> {
    fn deref_mut(&mut self) -> &mut DeviceSlice<T> {
        &mut self.array
    }
}

/// Elements of an array on a device, to be read.
#[derive(Clone, Copy, Debug)]
pub struct DeviceView<'a, T> {
    never: Infallible,
    owner: PhantomData<&'a T>,
}

/// Elements of an array on a device, to be written.
#[derive(Debug)]
pub struct DeviceViewMut<'a, T> {
    never: Infallible,
    owner: PhantomData<&'a mut T>,
}

impl<T> DeviceSlice<T> {
    /// Some of its elements, to be read.
    pub fn view(&self, _: impl RangeBounds<usize>) -> DeviceView<'_, T> {
        match self.never {}
    }

    /// Some of its elements, to be written.
    pub fn view_mut(&mut self, _: impl RangeBounds<usize>) -> DeviceViewMut<'_, T> {
        match self.never {}
    }

    /// Both sides of an index, to be written.
    pub fn split_at_mut(&mut self, _: usize) -> (DeviceViewMut<'_, T>, DeviceViewMut<'_, T>) {
        match self.never {}
    }
}

macro_rules! array {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> $type {
            /// Number of elements.
            pub fn len(&self) -> usize {
                match self.never {}
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                match self.never {}
            }

            /// The address on the device.
            pub fn device_pointer(&self) -> u64 {
                match self.never {}
            }
        }
    )*};
}

array! {
    [T] DeviceSlice<T>;
    [T] DeviceView<'_, T>;
    [T] DeviceViewMut<'_, T>;
}
