//! How the arguments of a kernel become arguments on a device.
//!
//! The runtime borrows every argument from the host's data in the order of the parameters; here each borrow finds its
//! twin on the device, in the same order. What a CUDA variant is given is a tuple of borrows of these twins.

use std::any::Any;
use std::ops::Range;

use super::{DeviceElement, DeviceSlice, Gpu, GpuResult};
use crate::value::{F8E4M3, F8E5M2, Fingerprint, Operand};

/// A value that can be brought to a device and back.
///
/// Vectors of numbers become [`DeviceSlice`]s, also those of arrays of numbers; numbers stay numbers, and a tuple becomes the
/// tuple of what its members become. A struct with `#[derive(kbench::Operand)]` and `#[operand(upload)]` becomes the tuple of what
/// its fields become. With `#[repr(C)]` and `#[operand(element)]` it is an element: a vector of such structs becomes a [`DeviceSlice`] of
/// them.
///
/// For another form on the device, name what a struct becomes and copy its parts:
///
/// ```
/// # use kbench_worker::cuda::{DeviceSlice, DeviceValue, Gpu, GpuResult, Upload};
/// # use kbench_worker::value::Operand;
/// #[derive(Clone)]
/// struct Matrix { columns: usize, data: Vec<f32> }
/// struct DeviceMatrix { columns: usize, data: DeviceSlice<f32> }
///
/// impl Operand for Matrix {}
/// impl Upload for Matrix {
///     type Device = DeviceMatrix;
///     fn upload(&self, gpu: &Gpu) -> GpuResult<DeviceMatrix> {
///         Ok(DeviceMatrix { columns: self.columns, data: self.data.upload(gpu)? })
///     }
///     fn copy_to(&self, device: &mut DeviceMatrix, gpu: &Gpu) -> GpuResult<()> {
///         self.data.copy_to(&mut device.data, gpu)
///     }
///     fn copy_from(&mut self, device: &DeviceMatrix, gpu: &Gpu) -> GpuResult<()> {
///         self.data.copy_from(&device.data, gpu)
///     }
/// }
/// impl DeviceValue for DeviceMatrix {
///     fn duplicate(&self, gpu: &Gpu) -> GpuResult<Self> {
///         Ok(DeviceMatrix { columns: self.columns, data: self.data.duplicate(gpu)? })
///     }
///     fn assign(&mut self, other: &Self, gpu: &Gpu) -> GpuResult<()> {
///         self.data.assign(&other.data, gpu)
///     }
///     fn device_bytes(&self) -> usize { self.data.device_bytes() }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be uploaded to a device",
    note = "vectors and single values of the element types can",
    note = "for a struct of your own, `#[operand(upload)]` beside `#[derive(kbench::Operand)]` uploads its fields; for \
            vectors of it, `#[operand(element)]` and `#[repr(C)]` make it an element"
)]
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

    /// Takes over the content of another one of the same shape, without the host.
    fn assign(&mut self, other: &Self, gpu: &Gpu) -> GpuResult<()>;

    /// Bytes of device memory.
    fn device_bytes(&self) -> usize;
}

impl<T: DeviceElement + Operand> Upload for Vec<T> {
    type Device = DeviceSlice<T>;

    fn upload(&self, gpu: &Gpu) -> GpuResult<DeviceSlice<T>> {
        gpu.upload(self)
    }

    fn copy_to(&self, device: &mut DeviceSlice<T>, gpu: &Gpu) -> GpuResult<()> {
        gpu.copy_to(self, device)
    }

    fn copy_from(&mut self, device: &DeviceSlice<T>, gpu: &Gpu) -> GpuResult<()> {
        gpu.copy_from(device, self)
    }
}

impl<T: DeviceElement> DeviceValue for DeviceSlice<T> {
    fn duplicate(&self, gpu: &Gpu) -> GpuResult<Self> {
        let mut copy = gpu.zeros(self.len())?;
        DeviceValue::assign(&mut copy, self, gpu)?;
        Ok(copy)
    }

    fn assign(&mut self, other: &Self, gpu: &Gpu) -> GpuResult<()> {
        gpu.copy_within_device(other, self)
    }

    fn device_bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }
}

macro_rules! upload_as_itself {
    ($([$($generics:tt)*] $type:ty)*) => {$(
        impl<$($generics)*> Upload for $type {
            type Device = Self;

            fn upload(&self, _: &Gpu) -> GpuResult<Self> {
                Ok(*self)
            }

            fn copy_to(&self, device: &mut Self, _: &Gpu) -> GpuResult<()> {
                *device = *self;
                Ok(())
            }

            fn copy_from(&mut self, device: &Self, _: &Gpu) -> GpuResult<()> {
                *self = *device;
                Ok(())
            }
        }

        impl<$($generics)*> DeviceValue for $type {
            fn duplicate(&self, _: &Gpu) -> GpuResult<Self> {
                Ok(*self)
            }

            fn assign(&mut self, other: &Self, _: &Gpu) -> GpuResult<()> {
                *self = *other;
                Ok(())
            }

            fn device_bytes(&self) -> usize {
                0
            }
        }
    )*};
}

upload_as_itself! {
    [] f32 [] f64 [] half::f16 [] half::bf16 [] F8E4M3 [] F8E5M2 [] bool
    [] i8 [] i16 [] i32 [] i64 [] isize [] u8 [] u16 [] u32 [] u64 [] usize
    [T: DeviceElement + Operand, const N: usize] [T; N]
}

macro_rules! upload_tuple {
    ($($name:ident $member:tt)*) => {
        #[allow(unused_variables)] // the empty tuple has no members
        impl<$($name: Upload),*> Upload for ($($name,)*) {
            type Device = ($($name::Device,)*);

            fn upload(&self, gpu: &Gpu) -> GpuResult<Self::Device> {
                Ok(($(Upload::upload(&self.$member, gpu)?,)*))
            }

            fn copy_to(&self, device: &mut Self::Device, gpu: &Gpu) -> GpuResult<()> {
                $(Upload::copy_to(&self.$member, &mut device.$member, gpu)?;)*
                Ok(())
            }

            fn copy_from(&mut self, device: &Self::Device, gpu: &Gpu) -> GpuResult<()> {
                $(Upload::copy_from(&mut self.$member, &device.$member, gpu)?;)*
                Ok(())
            }
        }

        #[allow(unused_variables)] // the empty tuple has no members
        impl<$($name: DeviceValue),*> DeviceValue for ($($name,)*) {
            fn duplicate(&self, gpu: &Gpu) -> GpuResult<Self> {
                Ok(($(DeviceValue::duplicate(&self.$member, gpu)?,)*))
            }

            fn assign(&mut self, other: &Self, gpu: &Gpu) -> GpuResult<()> {
                $(DeviceValue::assign(&mut self.$member, &other.$member, gpu)?;)*
                Ok(())
            }

            fn device_bytes(&self) -> usize {
                0 $(+ DeviceValue::device_bytes(&self.$member))*
            }
        }
    };
}

upload_tuple! {}
upload_tuple! { A 0 }
upload_tuple! { A 0 B 1 }
upload_tuple! { A 0 B 1 C 2 }
upload_tuple! { A 0 B 1 C 2 D 3 }
upload_tuple! { A 0 B 1 C 2 D 3 E 4 }
upload_tuple! { A 0 B 1 C 2 D 3 E 4 F 5 }
upload_tuple! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 }
upload_tuple! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 }
upload_tuple! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 }
upload_tuple! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 }
upload_tuple! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 }
upload_tuple! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 }

/// A value on the device whose type only its borrower knows.
pub trait Held {
    /// For its borrower.
    fn as_any(&mut self) -> &mut dyn Any;
    /// Another one with the same content.
    fn duplicate(&self, gpu: &Gpu) -> GpuResult<Box<dyn Held>>;
    /// Takes over the content of another one that was made from it.
    fn assign(&mut self, other: &mut (dyn Held + 'static), gpu: &Gpu) -> GpuResult<()>;
    /// Bytes of device memory.
    fn device_bytes(&self) -> usize;
}

impl<T: DeviceValue> Held for T {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn duplicate(&self, gpu: &Gpu) -> GpuResult<Box<dyn Held>> {
        Ok(Box::new(DeviceValue::duplicate(self, gpu)?))
    }

    fn assign(&mut self, other: &mut (dyn Held + 'static), gpu: &Gpu) -> GpuResult<()> {
        DeviceValue::assign(self, held(other), gpu)
    }

    fn device_bytes(&self) -> usize {
        DeviceValue::device_bytes(self)
    }
}

/// One argument on the device.
pub struct Slot {
    /// Its value.
    pub value: Box<dyn Held>,
    /// Whether the kernel writes it.
    pub is_written: bool,
    /// Numbers of the arrays that it consists of.
    pub arrays: Range<u64>,
}

impl Slot {
    fn of<T: Upload>(host: &T, is_written: bool, gpu: &Gpu) -> GpuResult<Self> {
        let first = gpu.next_array();
        let value = Box::new(T::upload(host, gpu)?);
        Ok(Slot { value, is_written, arrays: first..gpu.next_array() })
    }
}

/// The next of some borrowed values, as what it is.
type Lenders<'s, 'a> = dyn Iterator<Item = &'a mut (dyn Held + 'static)> + 's;

/// What the arguments of a kernel become on a device: every borrow of a host value a borrow of its device form.
pub trait DeviceArguments<'a> {
    /// The same tuple on the device.
    type Device;

    /// Appends the device form of every argument.
    fn upload(self, gpu: &Gpu, slots: &mut Vec<Slot>) -> GpuResult<()>;

    /// Copies what the kernel reads to the device; with `all` what it only writes, too.
    fn copy_to(self, gpu: &Gpu, all: bool, slots: &mut Lenders<'_, '_>) -> GpuResult<()>;

    /// Copies what the kernel writes to the host.
    fn copy_from(self, gpu: &Gpu, slots: &mut Lenders<'_, '_>) -> GpuResult<()>;

    /// Whether everything that the kernel only reads is on the device as it is on the host, bit by bit.
    fn kept(self, gpu: &Gpu, slots: &mut Lenders<'_, '_>) -> GpuResult<bool>;

    /// Lends the values of the device.
    fn lend(slots: &mut Lenders<'_, 'a>) -> Self::Device;
}

impl<'a, T: Upload> DeviceArguments<'a> for &'a T {
    type Device = &'a T::Device;

    fn upload(self, gpu: &Gpu, slots: &mut Vec<Slot>) -> GpuResult<()> {
        slots.push(Slot::of(self, false, gpu)?);
        Ok(())
    }

    fn copy_to(self, gpu: &Gpu, _: bool, slots: &mut Lenders<'_, '_>) -> GpuResult<()> {
        T::copy_to(self, next(slots), gpu)
    }

    fn copy_from(self, _: &Gpu, slots: &mut Lenders<'_, '_>) -> GpuResult<()> {
        let _: &mut T::Device = next(slots);
        Ok(())
    }

    fn kept(self, gpu: &Gpu, slots: &mut Lenders<'_, '_>) -> GpuResult<bool> {
        let mut copy = self.clone();
        T::copy_from(&mut copy, next(slots), gpu)?;
        Ok(Fingerprint::of(&copy) == Fingerprint::of(self))
    }

    fn lend(slots: &mut Lenders<'_, 'a>) -> &'a T::Device {
        next(slots)
    }
}

impl<'a, T: Upload> DeviceArguments<'a> for &'a mut T {
    type Device = &'a mut T::Device;

    fn upload(self, gpu: &Gpu, slots: &mut Vec<Slot>) -> GpuResult<()> {
        slots.push(Slot::of(self, true, gpu)?);
        Ok(())
    }

    fn copy_to(self, gpu: &Gpu, all: bool, slots: &mut Lenders<'_, '_>) -> GpuResult<()> {
        let device = next(slots);
        if all { T::copy_to(self, device, gpu) } else { Ok(()) }
    }

    fn copy_from(self, gpu: &Gpu, slots: &mut Lenders<'_, '_>) -> GpuResult<()> {
        T::copy_from(self, next(slots), gpu)
    }

    fn kept(self, _: &Gpu, slots: &mut Lenders<'_, '_>) -> GpuResult<bool> {
        let _: &mut T::Device = next(slots);
        Ok(true)
    }

    fn lend(slots: &mut Lenders<'_, 'a>) -> &'a mut T::Device {
        next(slots)
    }
}

fn next<'a, T: 'static>(slots: &mut Lenders<'_, 'a>) -> &'a mut T {
    match slots.next() {
        Some(slot) => held(slot),
        None => unreachable!("there is a slot for every argument"),
    }
}

fn held<'a, T: 'static>(slot: &'a mut (dyn Held + 'static)) -> &'a mut T {
    match slot.as_any().downcast_mut() {
        Some(value) => value,
        None => unreachable!("slots have the types of the arguments that they were made from"),
    }
}

macro_rules! device_tuple {
    ($($name:ident)*) => {
        // The empty tuple uses none of its parameters.
        #[allow(clippy::unused_unit, unused_variables, non_snake_case)] // type parameters name the fields; the empty tuple has none
        impl<'a, $($name: DeviceArguments<'a>),*> DeviceArguments<'a> for ($($name,)*) {
            type Device = ($($name::Device,)*);

            fn upload(self, gpu: &Gpu, slots: &mut Vec<Slot>) -> GpuResult<()> {
                let ($($name,)*) = self;
                $($name.upload(gpu, slots)?;)*
                Ok(())
            }

            fn copy_to(self, gpu: &Gpu, all: bool, slots: &mut Lenders<'_, '_>) -> GpuResult<()> {
                let ($($name,)*) = self;
                $($name.copy_to(gpu, all, slots)?;)*
                Ok(())
            }

            fn copy_from(self, gpu: &Gpu, slots: &mut Lenders<'_, '_>) -> GpuResult<()> {
                let ($($name,)*) = self;
                $($name.copy_from(gpu, slots)?;)*
                Ok(())
            }

            fn kept(self, gpu: &Gpu, slots: &mut Lenders<'_, '_>) -> GpuResult<bool> {
                let ($($name,)*) = self;
                let is_unchanged = true;
                $(let is_unchanged = $name.kept(gpu, slots)? && is_unchanged;)*
                Ok(is_unchanged)
            }

            fn lend(slots: &mut Lenders<'_, 'a>) -> Self::Device {
                ($($name::lend(slots),)*)
            }
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
