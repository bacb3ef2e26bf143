//! What signatures and implementations in an annotated library may name when the runtime is left out.
//!
//! These are the traits and types of the runtime without anything behind them, so that `fn norm<T: Element>(..)`,
//! `impl Operand for Matrix {}` or a CUDA variant compile in production as they do in a benchmark.

mod cuda;

pub use cuda::{
    DeviceElement, DeviceSlice, DeviceValue, DeviceView, DeviceViewMut, Gpu, GpuError, GpuResult,
    MatrixProduct, Source, Upload,
};

use std::convert::Infallible;
use std::fmt;
use std::ops::Range;

/// Which of two fill patterns an output is poisoned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poison {
    /// The pattern before the first call.
    First,
    /// The pattern before the second call.
    Second,
}

/// A number type of kernels.
pub trait Element: Copy + Send + Sync + 'static {
    /// The name in reports and on the command line.
    const NAME: &'static str;
    /// Largest relative rounding error of one operation; 0 for exact (integer) types.
    const ROUNDOFF: f64;
    /// What `uniform` covers.
    const RANGE: Range<f64> = -1.0..1.0;
    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// Values of this type near some numbers.
    fn fill(values: &mut [Self], numbers: &[f64]) {
        for (value, number) in values.iter_mut().zip(numbers) {
            *value = Self::from_f64(*number);
        }
    }
    /// The value as `f64`; 64-bit integers are exact up to 2^53.
    fn to_f64(self) -> f64;
    /// The bits, for comparisons that must see every difference.
    fn bits(self) -> u64;
    /// A value that no correct kernel leaves behind by accident.
    fn poison(poison: Poison) -> Self;
    /// The value of some bits.
    fn from_bits(bits: u64) -> Option<Self> {
        let _ = bits;
        None
    }
}

macro_rules! element {
    ($($type:ident: $roundoff:expr, $bits:expr;)*) => {$(
        impl Element for $type {
            const NAME: &'static str = stringify!($type);
            const ROUNDOFF: f64 = $roundoff;
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn bits(self) -> u64 {
                ($bits)(self) as u64
            }
            fn poison(poison: Poison) -> Self {
                if poison == Poison::First { 90 as $type } else { 60 as $type }
            }
        }
    )*};
}

element! {
    f32: f32::EPSILON as f64 / 2.0, f32::to_bits;
    f64: f64::EPSILON / 2.0, f64::to_bits;
    i8: 0.0, |v| v;
    i16: 0.0, |v| v;
    i32: 0.0, |v| v;
    i64: 0.0, |v| v;
    isize: 0.0, |v| v;
    u8: 0.0, |v| v;
    u16: 0.0, |v| v;
    u32: 0.0, |v| v;
    u64: 0.0, |v| v;
    usize: 0.0, |v| v;
}

/// Anything that a kernel reads, writes or returns; see the runtime's trait of the same name.
pub trait Operand: 'static {
    /// Appends what is compared.
    fn elements(&self, parts: &mut Vec<Vec<f64>>) {
        let _ = parts;
    }
    /// Overwrites the content with a pattern.
    fn poison(&mut self, poison: Poison) {
        let _ = poison;
    }
    /// Appends the positions that still hold the pattern.
    fn poisoned(&self, poison: Poison, parts: &mut Vec<Vec<usize>>) {
        let _ = (poison, parts);
    }
    /// Adds the exact content to a fingerprint.
    fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        let _ = fingerprint;
    }
    /// The memory that a kernel moves when it goes over this value once.
    fn bytes(&self) -> usize {
        std::mem::size_of_val(self)
    }
    /// Appends the address ranges of its elements.
    fn addresses(&self, ranges: &mut Vec<Range<usize>>) {
        let _ = ranges;
    }
    /// Appends the relative rounding error of every part.
    fn roundoffs(&self, parts: &mut Vec<f64>) {
        let _ = parts;
    }
    /// Appends its content as programs in other languages see it.
    fn export<'a>(&'a self, parts: &mut Vec<Plain<'a>>) {
        parts.push(Plain::Opaque);
    }
    /// Takes over the content of the next part.
    fn import(&mut self, parts: &mut PlainBytes<'_>) -> bool {
        let _ = parts;
        false
    }
    /// Why the call that returned this value failed.
    fn failure(&self) -> Option<String> {
        None
    }
    /// Why the call that returned this value could not be made here.
    fn declined(&self) -> Option<String> {
        None
    }
    /// Appends the names of types that cannot be compared.
    fn uncompared(&self, types: &mut Vec<&'static str>) {
        let _ = types;
    }
}

/// The content of an operand as plain memory; nothing is handed to other programs here.
pub enum Plain<'a> {
    /// Something that has no such form.
    Opaque,
    /// There is nothing else.
    #[doc(hidden)]
    Never(&'a Infallible),
}

impl<'a> Plain<'a> {
    /// One number.
    pub fn number<T: Element>(_: &'a T) -> Self {
        Plain::Opaque
    }

    /// A sequence of numbers.
    pub fn numbers<T: Element>(_: &'a [T]) -> Self {
        Plain::Opaque
    }
}

/// The content of several operands; nobody has written any here.
pub struct PlainBytes<'a>(&'a Infallible);

impl PlainBytes<'_> {
    /// Puts the next part where it belongs.
    pub fn next_into<T: Element>(&mut self, _: &mut [T]) -> bool {
        match *self.0 {}
    }
}

/// The `Err` of a kernel that cannot run on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined(pub String);

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Declined {}

/// A digest of exact bits; nothing computes one here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(Infallible);

impl Fingerprint {
    /// Adds one word.
    pub fn add(&mut self, _: u64) {
        match self.0 {}
    }

    /// Adds many words.
    pub fn add_all(&mut self, _: impl ExactSizeIterator<Item = u64>) {
        match self.0 {}
    }
}

/// Turns a borrowed value into a parameter.
pub trait Lend<P> {
    /// The parameter.
    fn lend(self) -> P;
}

/// A view type passed by value.
pub trait Lent {
    /// What it is a view of.
    type Owner;
}
