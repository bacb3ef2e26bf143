//! Calling and timing a CUDA variant.
//!
//! The kernel's data is uploaded once per process and stays on the device; all CUDA variants of a cell share it. The gate
//! sees a device as it sees a processor: what the host holds is copied to the device, the variant is called, and what it
//! wrote comes back, so that every rule about outputs, inputs and poison is the same. Guard zones around the arrays show
//! what went astray.

mod resident;
mod transfers;
mod variant;

pub use resident::Resident;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Instant;

use self::resident::{Beside, fresh_copies, look_for_trespass, renew, settle};
use self::transfers::transfers;
use self::variant::{Variant, VariantOf};
use super::data::Stale;
use super::routine::{Fetched, Limits, Sampled, returned};
use super::{Caller, Calls, CellData, Fault, InPlace, Kernel, Mode, Returned, Routine};
use crate::cuda::{
    DeviceArguments, DeviceFigures, DeviceReading, Gpu, GpuError, Graph, MOST_QUEUED, Profiler,
    Queue, Stopwatch, Timing, summarise,
};
use crate::value::{Declined, Operand};

/// Times that a gate may open by itself before the variant is to blame.
const GATES: u32 = 2;

/// Calls after which other streams are looked at: the host may be interrupted in one of them.
const LOOKS: usize = 3;

/// Operations that a call is taken to put on the stream at least.
const OF_A_LIBRARY: u64 = 2;

/// What a kernel's arguments are on a device.
pub type OnDevice<'a, K> = <<K as Kernel>::Arguments<'a> as DeviceArguments<'a>>::Device;

/// A function that calls a CUDA variant.
pub type DeviceCall<K> = for<'a> fn(&'a Gpu, OnDevice<'a, K>) -> Box<dyn Operand>;

/// A routine that runs on a CUDA device.
pub fn device<K>(call: DeviceCall<K>) -> Box<dyn Routine>
where
    K: Kernel,
    for<'a> K::Arguments<'a>: DeviceArguments<'a>,
{
    Box::new(Device::new(Box::new(VariantOf::<K>(call))))
}

struct Device {
    variant: Box<dyn Variant>,
    /// Recorded calls, by their number.
    graphs: RefCell<HashMap<u64, Graph>>,
    /// Whether a call waits for the device, so that nothing can be queued behind a gate.
    waits: Cell<bool>,
    /// Operations that one call puts on the stream.
    operations: Cell<u64>,
    /// Whether its code is on the device: loading it waits for the device, which must not wait for a gate.
    is_loaded: Cell<bool>,
}

impl From<GpuError> for Fault {
    fn from(error: GpuError) -> Self {
        match error {
            GpuError::Failed(text) => Fault::Device(text),
            GpuError::Declined(Declined(reason)) => Fault::Declined(reason),
        }
    }
}

impl Routine for Device {
    fn call(&self, data: &mut dyn CellData, caller: &Caller) -> Result<Returned, Fault> {
        let (stopwatch, _) = on_device(caller)?;
        let gpu = stopwatch.gpu();
        data.resident().stale = Stale::Content;
        self.settle(gpu, data)?;
        let mut returned = returned(self.first(gpu, data).as_ref())?;
        if returned.failure.is_some() {
            // A failure may have broken the context as well; whoever asks next is told.
            let _ = gpu.synchronize();
            return Ok(returned);
        }
        gpu.synchronize()?;
        look_for_trespass(gpu, self.variant.parameters(), data.resident(), Beside::All)?;
        returned.changed_input = !self.variant.kept(gpu, data)?;
        self.variant.fetch(gpu, data, None)?;
        Ok(returned)
    }

    fn sample(
        &self,
        data: &mut dyn CellData,
        calls: Calls,
        caller: &Caller,
    ) -> Result<Sampled, Fault> {
        let (stopwatch, mode) = on_device(caller)?;
        if !self.is_loaded.get() {
            self.load(stopwatch.gpu(), data)?;
        }
        self.settle(stopwatch.gpu(), data)?;
        let mut sampled = Sampled::default();
        for _ in 0..calls.batches {
            let batch = self.batch(stopwatch, data, calls.per_batch, mode)?;
            sampled.time += batch.time;
            sampled.device = match (sampled.device, batch.device) {
                (Some(former), Some(latter)) => Some(former.with(latter)),
                (former, latter) => latter.or(former),
            };
        }
        Ok(sampled)
    }

    fn limits(&self, data: &dyn CellData, caller: &Caller) -> Limits {
        let Ok((stopwatch, mode)) = on_device(caller) else { return Limits::NONE };
        let queued = (MOST_QUEUED / self.operations.get()).max(1);
        let near = stopwatch.gpu().info().l2_bytes as usize / 4;
        let fresh = match self.variant.in_place() {
            InPlace::Fresh => (near / data.written_bytes().max(1)).max(1) as u64,
            InPlace::No | InPlace::Reuse => u64::MAX,
        };
        Limits::on_device(mode, queued.min(fresh))
    }

    fn fetch(
        &self,
        data: &mut dyn CellData,
        caller: &Caller,
        inputs: bool,
    ) -> Result<Fetched, Fault> {
        let (stopwatch, mode) = on_device(caller)?;
        let gpu = stopwatch.gpu();
        look_for_trespass(gpu, self.variant.parameters(), data.resident(), Beside::Own)?;
        let changed_input = inputs && !self.variant.kept(gpu, data)?;
        // End to end, results are on the host already.
        if mode != Mode::EndToEnd {
            let last = data.resident().last;
            self.variant.fetch(gpu, data, last)?;
        }
        Ok(Fetched { changed_input })
    }

    fn figures(
        &self,
        data: &mut dyn CellData,
        caller: &Caller,
    ) -> Option<Result<DeviceFigures, Fault>> {
        Some(self.inspect(data, caller))
    }

    fn profile(&self, data: &mut dyn CellData, caller: &Caller, name: &str) -> Result<(), Fault> {
        let (stopwatch, _) = on_device(caller)?;
        let gpu = stopwatch.gpu();
        self.settle(gpu, data)?;
        // Once outside of the range, so that code is loaded and caches are as in any later call.
        self.checked(gpu, data, None)?;
        self.renew(gpu, data)?;
        let mut outcome = Ok(());
        Profiler::open().within(gpu, name, || {
            outcome = self.checked(gpu, data, None);
            Ok(())
        })?;
        outcome
    }
}

impl Device {
    fn new(variant: Box<dyn Variant>) -> Self {
        Device {
            variant,
            graphs: RefCell::default(),
            waits: Cell::new(false),
            operations: Cell::new(OF_A_LIBRARY),
            is_loaded: Cell::new(false),
        }
    }

    /// See [`settle`].
    fn settle(&self, gpu: &Gpu, data: &mut dyn CellData) -> Result<(), Fault> {
        settle(gpu, self.variant.as_ref(), data)
    }

    /// See [`renew`].
    fn renew(&self, gpu: &Gpu, data: &mut dyn CellData) -> Result<(), Fault> {
        renew(gpu, self.variant.as_ref(), data)
    }

    /// A call from which is learnt how many operations it puts on the stream.
    fn first(&self, gpu: &Gpu, data: &mut dyn CellData) -> Box<dyn Operand> {
        let before = gpu.operations();
        let output = self.variant.call(gpu, data, None);
        // A library puts operations on the stream that nobody counts.
        self.operations.set((gpu.operations() - before).max(OF_A_LIBRARY));
        self.is_loaded.set(true);
        output
    }

    /// A call whose results do not matter.
    fn load(&self, gpu: &Gpu, data: &mut dyn CellData) -> Result<(), Fault> {
        let stale = std::mem::replace(&mut data.resident().stale, Stale::Initial);
        self.settle(gpu, data)?;
        let failure = self.first(gpu, data).failure();
        gpu.synchronize()?;
        // What was to be brought up to date still is, and so is what this call wrote.
        data.resident().stale = if stale == Stale::No { Stale::Initial } else { stale };
        failure.map_or(Ok(()), |failure| Err(Fault::Failed(failure)))
    }

    /// One call, of which only failure matters.
    fn checked(
        &self,
        gpu: &Gpu,
        data: &mut dyn CellData,
        copy: Option<usize>,
    ) -> Result<(), Fault> {
        match self.variant.call(gpu, data, copy).failure() {
            Some(failure) => Err(Fault::Failed(failure)),
            None => Ok(()),
        }
    }

    fn batch(
        &self,
        stopwatch: &Stopwatch,
        data: &mut dyn CellData,
        calls: u64,
        mode: Mode,
    ) -> Result<Sampled, Fault> {
        if mode == Mode::EndToEnd {
            return self.end_to_end(stopwatch.gpu(), data, calls);
        }
        // A gate that had to open by itself may be the host's fault, once. When it happens again, a call waits for the
        // device: its launches are part of its time.
        for _ in 0..GATES {
            let timing = self.timed(stopwatch, data, calls, mode)?;
            if !timing.expired {
                return Ok(self.sampled(timing));
            }
            if self.variant.in_place() == InPlace::Reuse {
                self.renew(stopwatch.gpu(), data)?;
            }
        }
        self.waits.set(mode != Mode::Graph);
        Ok(self.sampled(self.timed(stopwatch, data, calls, mode)?))
    }

    fn sampled(&self, timing: Timing) -> Sampled {
        let reading = DeviceReading { gated: !self.waits.get(), ..timing.reading };
        Sampled { time: timing.time, device: Some(reading) }
    }

    fn timed(
        &self,
        stopwatch: &Stopwatch,
        data: &mut dyn CellData,
        calls: u64,
        mode: Mode,
    ) -> Result<Timing, Fault> {
        let gpu = stopwatch.gpu();
        let queue = if self.waits.get() { Queue::Open } else { Queue::Gated };
        let is_fresh = self.variant.in_place() == InPlace::Fresh;
        match mode {
            Mode::Cold => {
                let written = data.resident().written_bytes();
                let data = RefCell::new(data);
                let mut prepare = |_| match is_fresh {
                    true => Ok(fresh_copies(gpu, data.borrow_mut().resident(), 1)?),
                    false => Ok(()),
                };
                let copy = is_fresh.then_some(0);
                let mut call = |_| self.checked(gpu, &mut **data.borrow_mut(), copy);
                stopwatch.cold(calls, queue, written, &mut prepare, &mut call)
            }
            Mode::Graph => {
                if is_fresh {
                    fresh_copies(gpu, data.resident(), calls)?;
                }
                if calls == 0 {
                    return stopwatch.hot(0, queue, &mut |_| Ok::<(), Fault>(()));
                }
                let mut graphs = self.graphs.borrow_mut();
                let graph: &Graph = match graphs.entry(calls) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        new.insert(self.capture(stopwatch, data, calls, is_fresh)?)
                    }
                };
                // Once untimed: what another graph, or an emptied cache, costs the first calls is no property of them.
                stopwatch.replay(graph)?;
                gpu.synchronize()?;
                match self.variant.in_place() {
                    InPlace::No => {}
                    InPlace::Fresh => fresh_copies(gpu, data.resident(), calls)?,
                    InPlace::Reuse => self.renew(gpu, data)?,
                }
                Ok(stopwatch.graph(graph)?)
            }
            Mode::Hot | Mode::Warm | Mode::EndToEnd => {
                if is_fresh {
                    fresh_copies(gpu, data.resident(), calls)?;
                }
                let copy = |call: u64| is_fresh.then_some(call as usize);
                stopwatch.hot(calls, queue, &mut |call| self.checked(gpu, data, copy(call)))
            }
        }
    }

    fn capture(
        &self,
        stopwatch: &Stopwatch,
        data: &mut dyn CellData,
        calls: u64,
        is_fresh: bool,
    ) -> Result<Graph, Fault> {
        let gpu = stopwatch.gpu();
        let copy = |call: u64| is_fresh.then_some(call as usize);
        let captured = stopwatch.capture(calls, &mut |call| self.checked(gpu, data, copy(call)));
        captured.map_err(|fault| match gpu.lost() {
            Some(_) => fault,
            None => Fault::Declined(format!("cannot be recorded in a CUDA graph: {fault}")),
        })
    }

    /// From data on the host to results on the host, by the host's clock.
    fn end_to_end(&self, gpu: &Gpu, data: &mut dyn CellData, calls: u64) -> Result<Sampled, Fault> {
        gpu.synchronize()?;
        let start = Instant::now();
        for _ in 0..calls {
            self.variant.copy_inputs(gpu, data)?;
            self.checked(gpu, data, None)?;
            self.variant.fetch(gpu, data, None)?;
            gpu.synchronize()?;
        }
        Ok(Sampled { time: start.elapsed(), device: None })
    }

    /// Nanoseconds that the device is still busy when the stream is done with a call, which nobody times: the least of a few
    /// calls.
    fn elsewhere(&self, gpu: &Gpu, data: &mut dyn CellData) -> Result<f64, Fault> {
        let mut least = f64::INFINITY;
        for _ in 0..LOOKS {
            self.renew(gpu, data)?;
            gpu.wait_until_idle()?;
            self.checked(gpu, data, None)?;
            gpu.synchronize()?;
            let done = Instant::now();
            gpu.wait_until_idle()?;
            least = least.min(done.elapsed().as_nanos() as f64);
        }
        Ok(least)
    }

    fn inspect(&self, data: &mut dyn CellData, caller: &Caller) -> Result<DeviceFigures, Fault> {
        let (stopwatch, _) = on_device(caller)?;
        let gpu = stopwatch.gpu();
        self.settle(gpu, data)?;
        let (before, resident) = (gpu.ledger().bytes(), data.resident().bytes());
        gpu.ledger().mark();
        let (called, recorded) = gpu.record(|| self.checked(gpu, data, None));
        called?;
        gpu.synchronize()?;
        let scratch = gpu.ledger().peak() - before;
        Ok(DeviceFigures {
            transfers: transfers(gpu, self.variant.as_ref(), data)?,
            peak_bytes: (resident + scratch) as u64,
            elsewhere_ns: self.elsewhere(gpu, data)?,
            kernels: summarise(gpu, &recorded),
        })
    }
}

/// The stopwatch and the mode of a caller that is on a device.
fn on_device(caller: &Caller) -> Result<(&Stopwatch, Mode), Fault> {
    let Caller::Device(stopwatch, mode) = caller else {
        unreachable!("a CUDA variant is called on a device");
    };
    match stopwatch.gpu().lost() {
        Some(why) => Err(Fault::Device(format!("the device was lost before: {why}"))),
        None => Ok((stopwatch, *mode)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_that_declines_is_not_at_fault() {
        let declined = GpuError::from(Declined("this device is too old".into()));
        assert_eq!(Fault::from(declined), Fault::Declined("this device is too old".into()));
        let failed = GpuError::Failed("it is lost".into());
        assert_eq!(Fault::from(failed), Fault::Device("it is lost".into()));
    }
}
