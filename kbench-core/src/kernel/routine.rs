//! Calling and timing one variant.

use std::marker::PhantomData;
use std::mem::needs_drop;
use std::sync::Arc;
use std::time::Duration;

use super::data::Data;
use super::timed::{self, Calls};
use super::{CellData, Fault, Kernel};
use crate::gauge::{Allocations, count};
use crate::value::{Fingerprint, Operand};

/// How a variant can be called.
#[derive(Clone, Copy)]
pub enum Implementation {
    /// On this machine's processor.
    Host(fn() -> Box<dyn Routine>),
    /// On a CUDA device. The backend is not part of this version: such variants are listed and skipped with a reason.
    Device,
}

/// From where a parallel variant is called.
#[derive(Clone)]
pub enum Caller {
    /// Directly: rayon's global pool is entered from outside, as a program does that builds no pool of its own.
    Outside,
    /// Through a pool of a given number of threads, entered anew by every call.
    Pool(Arc<rayon::ThreadPool>),
}

/// What one call returned.
#[derive(Clone, Debug, Default)]
pub struct Returned {
    /// Elements of the return value.
    pub parts: Vec<Vec<f64>>,
    /// Digest of the return value.
    pub fingerprint: u64,
    /// The `Err` it returned.
    pub failure: Option<String>,
    /// Size of the return value.
    pub bytes: usize,
    /// Memory that the return value owns until it is dropped; 0 when there is nothing to drop.
    pub held_bytes: usize,
    /// What the call allocated; none where the allocator that counts is not installed.
    pub allocations: Option<Allocations>,
    /// Relative rounding error of every part's element type.
    pub roundoffs: Vec<f64>,
}

/// One variant, ready to be called on the data of its kernel.
///
/// Every method expects data made by the definition of the same kernel type.
pub trait Routine {
    /// One call, untimed.
    fn call(&self, data: &mut dyn CellData, caller: &Caller) -> Returned;
    /// The time of `calls`, with everything but the calls outside of the clock.
    fn sample(
        &self,
        data: &mut dyn CellData,
        calls: Calls,
        caller: &Caller,
    ) -> Result<Duration, Fault>;
}

/// A routine that runs on the calling thread.
pub fn serial<K, O, F>(function: F) -> Box<dyn Routine>
where
    K: Kernel,
    O: Operand,
    F: Fn(&K::Reads, &mut K::Writes) -> O + Copy + 'static,
{
    Box::new(Serial::<K, F>(function, PhantomData))
}

/// A routine that uses rayon.
pub fn parallel<K, O, F>(function: F) -> Box<dyn Routine>
where
    K: Kernel<Reads: Sync, Writes: Send>,
    O: Operand + Send,
    F: Fn(&K::Reads, &mut K::Writes) -> O + Copy + Sync + 'static,
{
    Box::new(Parallel::<K, F>(function, PhantomData))
}

struct Serial<K, F>(F, PhantomData<fn() -> K>);

impl<K, O, F> Routine for Serial<K, F>
where
    K: Kernel,
    O: Operand,
    F: Fn(&K::Reads, &mut K::Writes) -> O + Copy + 'static,
{
    fn call(&self, data: &mut dyn CellData, _: &Caller) -> Returned {
        call(typed::<K>(data), self.0)
    }

    fn sample(&self, data: &mut dyn CellData, calls: Calls, _: &Caller) -> Result<Duration, Fault> {
        timed::sample(typed::<K>(data), calls, self.0)
    }
}

struct Parallel<K, F>(F, PhantomData<fn() -> K>);

impl<K, O, F> Routine for Parallel<K, F>
where
    K: Kernel<Reads: Sync, Writes: Send>,
    O: Operand + Send,
    F: Fn(&K::Reads, &mut K::Writes) -> O + Copy + Sync + 'static,
{
    fn call(&self, data: &mut dyn CellData, caller: &Caller) -> Returned {
        let function = self.0;
        match caller {
            Caller::Outside => call(typed::<K>(data), function),
            Caller::Pool(pool) => call(typed::<K>(data), |r: &K::Reads, w: &mut K::Writes| {
                pool.install(|| function(r, w))
            }),
        }
    }

    fn sample(
        &self,
        data: &mut dyn CellData,
        calls: Calls,
        caller: &Caller,
    ) -> Result<Duration, Fault> {
        let function = self.0;
        match caller {
            Caller::Outside => timed::sample(typed::<K>(data), calls, function),
            Caller::Pool(pool) => {
                timed::sample(typed::<K>(data), calls, |r: &K::Reads, w: &mut K::Writes| {
                    pool.install(|| function(r, w))
                })
            }
        }
    }
}

fn call<K: Kernel, O: Operand>(
    data: &mut Data<K>,
    function: impl Fn(&K::Reads, &mut K::Writes) -> O,
) -> Returned {
    let (output, allocations) = count(|| function(&data.reads, &mut data.writes));
    let (mut parts, mut roundoffs) = (Vec::new(), Vec::new());
    output.elements(&mut parts);
    output.roundoffs(&mut roundoffs);
    Returned {
        parts,
        fingerprint: Fingerprint::of(&output).value(),
        failure: output.failure(),
        bytes: output.bytes(),
        held_bytes: if needs_drop::<O>() { output.bytes().max(size_of::<O>()) } else { 0 },
        allocations,
        roundoffs,
    }
}

fn typed<K: Kernel>(data: &mut dyn CellData) -> &mut Data<K> {
    match data.as_any().downcast_mut() {
        Some(data) => data,
        None => unreachable!("a routine was given the data of another kernel"),
    }
}
