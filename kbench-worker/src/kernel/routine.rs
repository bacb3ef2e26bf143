//! Calling and timing one variant.

use std::marker::PhantomData;
use std::mem::needs_drop;
#[cfg(feature = "cuda")]
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::data::{Data, typed};
use super::timed::{self, Calls};
use super::{CellData, Fault, Kernel, Mode};
#[cfg(feature = "cuda")]
use crate::cuda::Stopwatch;
use crate::cuda::{DeviceFigures, DeviceReading};
use crate::gauge::{Allocations, count_once};
use crate::value::{Fingerprint, Operand};

/// How a variant can be called.
#[derive(Clone, Copy)]
pub enum Implementation {
    /// On this machine's processor.
    Host(fn() -> Box<dyn Routine>),
    /// On a CUDA device.
    Device(fn() -> Box<dyn Routine>),
    /// By another program, which may be written in any language.
    Foreign(&'static dyn Foreign),
}

impl Implementation {
    /// The routine that calls it.
    pub fn routine(&self) -> Box<dyn Routine> {
        match self {
            Implementation::Host(routine) | Implementation::Device(routine) => routine(),
            Implementation::Foreign(foreign) => foreign.routine(),
        }
    }

    /// The routine of a function that is compiled for a feature that this processor lacks: it declines every call.
    #[doc(hidden)]
    pub fn lacking(feature: &'static str) -> Box<dyn Routine> {
        Box::new(Lacking(feature))
    }

    /// Whether it needs neither a device nor another program.
    pub fn is_host(&self) -> bool {
        matches!(self, Implementation::Host(_))
    }

    /// Whether it needs a device.
    pub fn is_device(&self) -> bool {
        match self {
            Implementation::Host(_) => false,
            Implementation::Device(_) => true,
            Implementation::Foreign(foreign) => foreign.is_device(),
        }
    }

    /// The other program, where it is one.
    pub fn foreign(&self) -> Option<&'static dyn Foreign> {
        match self {
            Implementation::Foreign(foreign) => Some(*foreign),
            Implementation::Host(_) | Implementation::Device(_) => None,
        }
    }
}

/// A variant that another program implements.
pub trait Foreign: Sync {
    /// The routine that calls it.
    fn routine(&self) -> Box<dyn Routine>;

    /// Whether it needs a device.
    fn is_device(&self) -> bool;

    /// Starts the program if it does not run, and does not wait for it.
    fn summon(&self);

    /// Waits until it is ready, or cannot be had.
    fn await_ready(&self);

    /// Gives it the device code that calls are timed with.
    fn equip(&self, instruments: &str);
}

/// From where a variant is called.
#[derive(Clone)]
pub enum Caller {
    /// Directly: rayon's global pool is entered from outside, as a program does that builds no pool of its own.
    Outside,
    /// On a CUDA device, in some mode.
    #[cfg(feature = "cuda")]
    Device(Rc<Stopwatch>, Mode),
    /// Through a pool of a given number of threads, entered anew by every call.
    Pool(Arc<rayon::ThreadPool>),
    /// By another program, in some mode, on so many threads if it can choose.
    Foreign(Mode, Option<usize>),
}

impl Caller {
    /// Whether the variant runs in this process, on its processors.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self, Caller::Outside | Caller::Pool(_))
    }

    /// Threads of the pool that a parallel variant is called from; none where there is no pool.
    pub(crate) fn threads(&self) -> Option<usize> {
        match self {
            Caller::Outside => Some(rayon::current_num_threads()),
            Caller::Pool(pool) => Some(pool.current_num_threads()),
            _ => None,
        }
    }

    /// Runs something on every thread of the pool that a parallel variant is called from, and waits for all of them.
    pub(crate) fn on_all_threads(&self, work: &(dyn Fn() + Sync)) {
        match self {
            Caller::Outside => drop(rayon::broadcast(|_| work())),
            Caller::Pool(pool) => drop(pool.broadcast(|_| work())),
            Caller::Foreign(..) => {}
            #[cfg(feature = "cuda")]
            Caller::Device(..) => {}
        }
    }
}

/// What one call returned.
#[derive(Clone, Debug, Default)]
pub struct Returned {
    /// Elements of the return value.
    pub parts: Vec<Vec<f64>>,
    /// By how much these are more than `f64` holds, where their type is wider.
    pub rests: Vec<Vec<f64>>,
    /// Which fields of the return value these are.
    pub fields: Vec<String>,
    /// Digest of the return value.
    pub fingerprint: u64,
    /// The `Err` it returned.
    pub failure: Option<String>,
    /// Whether something changed that the kernel should only read, where the call itself can see it.
    pub changed_input: bool,
    /// Size of the return value.
    pub bytes: usize,
    /// Memory that the return value owns until it is dropped; 0 when there is nothing to drop.
    pub held_bytes: usize,
    /// What the call allocated; none where the allocator that counts is not installed.
    pub allocations: Option<Allocations>,
    /// Relative rounding error of every part's element type.
    pub roundoffs: Vec<f64>,
    /// Types of the return value that cannot be compared.
    pub uncompared: Vec<&'static str>,
}

impl Returned {
    /// What a call returned that returns nothing.
    pub fn nothing() -> Self {
        Returned { fingerprint: Fingerprint::default().value(), ..Returned::default() }
    }
}

/// What a sample elsewhere has left, besides its results.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fetched {
    /// Whether it changed something there that it should only read.
    pub changed_input: bool,
}

/// One variant, ready to be called on the data of its kernel.
///
/// Every method expects data made by the definition of the same kernel type.
pub trait Routine {
    /// One call, untimed.
    fn call(&self, data: &mut dyn CellData, caller: &Caller) -> Result<Returned, Fault>;
    /// The time of `calls`, with everything but the calls outside of the clock.
    fn sample(
        &self,
        data: &mut dyn CellData,
        calls: Calls,
        caller: &Caller,
    ) -> Result<Sampled, Fault>;

    /// How many calls a sample may have.
    fn limits(&self, data: &dyn CellData, caller: &Caller) -> Limits {
        let _ = (data, caller);
        Limits::NONE
    }

    /// Brings the results of the last sample to where the gate looks for them; compares the inputs there if asked to.
    fn fetch(
        &self,
        data: &mut dyn CellData,
        caller: &Caller,
        inputs: bool,
    ) -> Result<Fetched, Fault> {
        let _ = (data, caller, inputs);
        Ok(Fetched::default())
    }

    /// What is to be known of calls on a device besides their times; none for those on a processor.
    fn figures(
        &self,
        data: &mut dyn CellData,
        caller: &Caller,
    ) -> Option<Result<DeviceFigures, Fault>> {
        let _ = (data, caller);
        None
    }

    /// One call inside a range of the profiler's, for those on a device.
    fn profile(&self, data: &mut dyn CellData, caller: &Caller, name: &str) -> Result<(), Fault> {
        let _ = (data, caller, name);
        Ok(())
    }
}

/// One sample: its time, and what was read beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Of all calls.
    pub time: Duration,
    /// On a device.
    pub device: Option<DeviceReading>,
}

impl From<Duration> for Sampled {
    fn from(time: Duration) -> Self {
        Sampled { time, device: None }
    }
}

/// How many calls a sample may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Under one reading of the clock.
    pub per_batch: u64,
    /// In all.
    pub total: u64,
    /// Whether untimed calls come before a sample.
    pub wash_out: bool,
    /// How many times as long as usual a sample should last.
    pub stretch: f64,
}

impl Limits {
    /// As many as one likes.
    pub const NONE: Limits =
        Limits { per_batch: u64::MAX, total: u64::MAX, wash_out: true, stretch: 1.0 };

    /// Limits of a sample with cold caches on the host: one call per reading of the clock, because the next one would find
    /// what this one left. Eviction can take longer than the call.
    pub const COLD: Limits = Limits { per_batch: 1, total: 64, wash_out: false, stretch: 1.0 };

    /// Those of a sample on a device, of which so many calls can be made at once.
    pub fn on_device(mode: Mode, per_batch: u64) -> Self {
        /// Calls of one sample that each find cold caches: emptying the cache takes longer than most of them.
        const MOST_COLD: u64 = 8;
        /// Samples on a device are longer than others: what a batch leaves in the cache, to be written back when the device
        /// is idle, must not count.
        const STRETCH: f64 = 4.0;
        let loop_of = Limits { per_batch, stretch: STRETCH, ..Limits::NONE };
        match mode {
            Mode::Hot => loop_of,
            // A graph is launched once untimed by itself, and of cold calls none should find what another left.
            Mode::Graph => Limits { wash_out: false, ..loop_of },
            Mode::Cold => Limits { total: MOST_COLD, wash_out: false, ..Limits::NONE },
            Mode::Warm | Mode::EndToEnd => Limits::NONE,
        }
    }
}

/// A function that cannot be called here, by the feature that the processor lacks.
struct Lacking(&'static str);

impl Lacking {
    fn fault(&self) -> Fault {
        Fault::Declined(format!("this processor has no {}", self.0))
    }
}

impl Routine for Lacking {
    fn call(&self, _: &mut dyn CellData, _: &Caller) -> Result<Returned, Fault> {
        Err(self.fault())
    }

    fn sample(&self, _: &mut dyn CellData, _: Calls, _: &Caller) -> Result<Sampled, Fault> {
        Err(self.fault())
    }
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
    fn call(&self, data: &mut dyn CellData, _: &Caller) -> Result<Returned, Fault> {
        call(typed::<K>(data), self.0)
    }

    fn sample(&self, data: &mut dyn CellData, calls: Calls, _: &Caller) -> Result<Sampled, Fault> {
        timed::sample(typed::<K>(data), calls, self.0).map(Sampled::from)
    }
}

struct Parallel<K, F>(F, PhantomData<fn() -> K>);

impl<K, O, F> Routine for Parallel<K, F>
where
    K: Kernel<Reads: Sync, Writes: Send>,
    O: Operand + Send,
    F: Fn(&K::Reads, &mut K::Writes) -> O + Copy + Sync + 'static,
{
    fn call(&self, data: &mut dyn CellData, caller: &Caller) -> Result<Returned, Fault> {
        let function = self.0;
        match caller {
            Caller::Pool(pool) => call(typed::<K>(data), |r: &K::Reads, w: &mut K::Writes| {
                enter(pool, || function(r, w))
            }),
            _ => call(typed::<K>(data), function),
        }
    }

    fn sample(
        &self,
        data: &mut dyn CellData,
        calls: Calls,
        caller: &Caller,
    ) -> Result<Sampled, Fault> {
        let function = self.0;
        let time = match caller {
            Caller::Pool(pool) => {
                timed::sample(typed::<K>(data), calls, |r: &K::Reads, w: &mut K::Writes| {
                    enter(pool, || function(r, w))
                })
            }
            _ => timed::sample(typed::<K>(data), calls, function),
        };
        time.map(Sampled::from)
    }
}

/// Calls `code` in a pool. A pool calls what it is given through a pointer in any case; that `code` is behind one as well
/// lets rayon's part be compiled once, not once per variant.
#[inline(always)]
fn enter<O: Send>(pool: &rayon::ThreadPool, mut code: impl FnMut() -> O + Send) -> O {
    let mut output = None;
    install(pool, &mut || output = Some(code()));
    match output {
        Some(output) => output,
        None => unreachable!("a pool returns when the code has run, or panics with it"),
    }
}

fn install(pool: &rayon::ThreadPool, code: &mut (dyn FnMut() + Send)) {
    pool.install(code);
}

fn call<K: Kernel, O: Operand>(
    data: &mut Data<K>,
    function: impl Fn(&K::Reads, &mut K::Writes) -> O,
) -> Result<Returned, Fault> {
    let mut output = None;
    let allocations = count_once(&mut || output = Some(function(&data.reads, &mut data.writes)));
    let Some(output) = output else { unreachable!("the code that is counted has run") };
    with_allocations(&output, needs_drop::<O>(), allocations)
}

/// What can be seen of a return value and of the call that made it.
fn with_allocations(
    output: &dyn Operand,
    needs_drop: bool,
    allocations: Option<Allocations>,
) -> Result<Returned, Fault> {
    let held_bytes = if needs_drop { output.bytes().max(size_of_val(output)) } else { 0 };
    Ok(Returned { held_bytes, allocations, ..returned(output)? })
}

/// What can be seen of a return value, unless the call declined.
pub(super) fn returned(output: &dyn Operand) -> Result<Returned, Fault> {
    if let Some(reason) = output.declined() {
        return Err(Fault::Declined(reason));
    }
    let (mut parts, mut rests, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    let (mut roundoffs, mut uncompared) = (Vec::new(), Vec::new());
    output.elements(&mut parts);
    output.rests(&mut rests);
    output.fields(&mut fields);
    output.roundoffs(&mut roundoffs);
    output.uncompared(&mut uncompared);
    let mut fingerprint = Fingerprint::default();
    output.fingerprint(&mut fingerprint);
    Ok(Returned {
        parts,
        rests,
        fields,
        roundoffs,
        uncompared,
        fingerprint: fingerprint.value(),
        failure: output.failure(),
        bytes: output.bytes(),
        ..Returned::default()
    })
}
