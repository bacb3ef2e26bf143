//! What the attribute says about a function, as types.
//!
//! The attribute implements [`Kernel`] for a marker type that carries the function's name, and submits one
//! [`VariantEntry`] for every variant and element type. Entries are constants: looking at them runs no user code. What
//! does run user code is behind two small object-safe traits, [`Definition`] (making data, reference, figures of a size)
//! and [`Routine`] (calling and timing one variant), so that the rest of the runtime needs no generics.

mod data;
mod entry;
mod fault;
mod mode;
mod routine;
mod timed;

#[cfg(feature = "cuda")]
mod device;
#[cfg(not(feature = "cuda"))]
#[path = "no_device.rs"]
mod device;

pub use data::{CellData, Definition, Erased, Outputs};
pub use device::{DeviceCall, OnDevice, Resident, device};
pub use entry::{
    Backend, Bound, Condition, Expectation, InPlace, KernelEntry, Location, Metric, Regimes, Sizes,
    Threshold, Tuned, TuningSource, Values, VariantEntry,
};
pub use fault::{Fault, guard};
pub(crate) use fault::{
    PANIC_NOTE, current_call, forget_last_words, next_call, note_panics_for_controller,
};
pub use mode::Mode;
pub use routine::{
    Caller, Fetched, Foreign, Implementation, Limits, Returned, Routine, Sampled, parallel, serial,
};
pub use timed::{Calls, empty_turn};

use crate::value::Operand;

/// An operation: how its data is made, what its arguments are, what its result should be.
///
/// Implemented by the attribute on the marker type that `of = path` names; not meant to be written by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel",
    label = "not annotated with `#[kernel_bench(sizes = ...)]`, or not for this type",
    note = "`of` names the function of a kernel, as in `of = saxpy` or `of = rms_norm<f32>`"
)]
pub trait Kernel: Sized + 'static {
    /// The size, with one named field for every axis.
    type Axes;
    /// The values that the kernel only reads.
    type Reads: Operand;
    /// The values that the kernel writes: its `&mut` parameters.
    type Writes: Operand + Clone;
    /// Borrows of all values, in the order of the parameters.
    type Arguments<'a>;

    /// Name, place, sizes and options.
    const ENTRY: &'static KernelEntry;

    /// The values of the axes, by name.
    fn axes(size: &[usize]) -> Self::Axes;

    /// Fresh data for one size.
    fn inputs(axes: &Self::Axes) -> (Self::Reads, Self::Writes);

    /// Lends the data in the order of the parameters.
    fn arguments<'a>(reads: &'a Self::Reads, writes: &'a mut Self::Writes) -> Self::Arguments<'a>;

    /// Gives the outputs the content of `initial`, in the memory that they have.
    fn restore(writes: &mut Self::Writes, initial: &Self::Writes);

    /// What the independent reference makes of the data, if there is one.
    fn reference(reads: &Self::Reads, writes: &Self::Writes) -> Option<Outputs> {
        let _ = (reads, writes);
        None
    }

    /// The amount of work, when the attribute says how to compute it.
    fn work(axes: &Self::Axes) -> Option<f64> {
        let _ = axes;
        None
    }

    /// Floating-point operations of one call.
    fn flops(axes: &Self::Axes) -> Option<f64> {
        let _ = axes;
        None
    }

    /// Bytes moved by one call, when the default (every slice once) is not right.
    fn bytes(axes: &Self::Axes) -> Option<f64> {
        let _ = axes;
        None
    }

    /// Whether the kernel is defined at this size.
    fn valid(axes: &Self::Axes) -> bool {
        let _ = axes;
        true
    }
}

/// A tuple of N arguments: a variant with another number of parameters than its kernel gets one clear message.
#[diagnostic::on_unimplemented(
    message = "this variant takes {N} parameter(s), which is not what its kernel takes",
    label = "must have the parameters of the function that `of` names (a `&Gpu` does not count)"
)]
pub trait Parameters<const N: usize> {
    /// The tuple itself, known only to those who have the right N.
    type Same;
    /// The tuple itself.
    fn same(self) -> Self::Same;
}

macro_rules! parameters {
    ($($count:literal: $($name:ident)*;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($name),*> Parameters<$count> for ($($name,)*) {
            type Same = Self;
            #[inline(always)]
            fn same(self) -> Self {
                self
            }
        }
    )*};
}

parameters! {
    0: ;
    1: A;
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
    7: A B C D E F G;
    8: A B C D E F G H;
    9: A B C D E F G H I;
    10: A B C D E F G H I J;
    11: A B C D E F G H I J K;
    12: A B C D E F G H I J K L;
}

/// A figure that a closure of the attribute (`work`, `flops`, `bytes`) may return.
#[diagnostic::on_unimplemented(
    message = "`work`, `flops` and `bytes` are numbers, not `{Self}`",
    note = "return an integer or a float"
)]
pub trait Figure {
    /// The figure as a float.
    fn figure(self) -> f64;
}

macro_rules! figure {
    ($($type:ty)*) => {$(
        impl Figure for $type {
            fn figure(self) -> f64 {
                self as f64
            }
        }
    )*};
}

figure! { usize u32 u64 u128 i32 i64 f32 f64 }
