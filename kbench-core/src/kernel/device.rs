//! Calling and timing a CUDA variant.
//!
//! The kernel's data is uploaded once per process and stays on the device; all CUDA variants of a cell share it. The gate
//! sees a device as it sees a processor: what the host holds is copied to the device, the variant is called, and what it
//! wrote comes back, so that every rule about outputs, inputs and poison is the same. Guard zones around the arrays show
//! what went astray.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::data::{Data, Stale, typed};
use super::routine::{Limits, Sampled, returned};
use super::{Caller, Calls, CellData, Fault, InPlace, Kernel, Mode, Returned, Routine};
use crate::cuda::{
    DeviceArguments, DeviceFigures, DeviceReading, Gpu, GpuError, GpuResult, Graph, Held,
    MOST_QUEUED, Pinned, Profiler, Queue, Slot, Stopwatch, Timing, Transfers, human_bytes,
    summarise,
};
use crate::value::Operand;

/// Calls of one sample that each find cold caches: emptying the cache takes longer than most of them.
const MOST_COLD: u64 = 8;

/// Samples on a device are longer than others: what a batch leaves in the cache, to be written back when the device is idle,
/// must not count.
const STRETCH: f64 = 4.0;

/// Copies of which the median is the time of a transfer.
const TRANSFERS: usize = 9;

/// Bytes of pinned memory that are asked for to time transfers.
const MOST_PINNED: usize = 1 << 30;

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
    Box::new(Device::<K> {
        call,
        graphs: RefCell::default(),
        waits: Cell::new(false),
        launches: Cell::new(2),
        is_loaded: Cell::new(false),
        kernel: PhantomData,
    })
}

/// The data of a cell on the device.
#[derive(Default)]
pub(super) struct Resident {
    /// In the order of the parameters; empty before it is uploaded.
    slots: Vec<Slot>,
    /// Initial content of those that are written.
    initial: Vec<Box<dyn Held>>,
    /// Fresh outputs for kernels that work in place.
    copies: Vec<Vec<Box<dyn Held>>>,
    /// The copy that was written last, when one was.
    last: Option<usize>,
}

struct Device<K: Kernel>
where
    for<'a> K::Arguments<'a>: DeviceArguments<'a>,
{
    call: DeviceCall<K>,
    /// Recorded calls, by their number.
    graphs: RefCell<HashMap<u64, Graph>>,
    /// Whether a call waits for the device, so that nothing can be queued behind a gate.
    waits: Cell<bool>,
    /// Launches of one call.
    launches: Cell<u64>,
    /// Whether its code is on the device: loading it waits for the device, which must not wait for a gate.
    is_loaded: Cell<bool>,
    kernel: PhantomData<fn() -> K>,
}

impl From<GpuError> for Fault {
    fn from(error: GpuError) -> Self {
        Fault::Device(error.0)
    }
}

impl<K: Kernel> Routine for Device<K>
where
    for<'a> K::Arguments<'a>: DeviceArguments<'a>,
{
    fn call(&self, data: &mut dyn CellData, caller: &Caller) -> Result<Returned, Fault> {
        let (stopwatch, _) = on_device(caller)?;
        let (gpu, data) = (stopwatch.gpu(), typed::<K>(data));
        data.stale = Stale::Content;
        settle(gpu, data)?;
        let mut returned = returned(self.first(gpu, data).as_ref());
        if returned.failure.is_some() {
            // A failure may have broken the context as well; whoever asks next is told.
            let _ = gpu.synchronize();
            return Ok(returned);
        }
        gpu.synchronize()?;
        look_for_trespass(gpu, data)?;
        let Data { reads, writes, device, .. } = data;
        returned.changed_input =
            !K::arguments(reads, writes).kept(gpu, &mut lenders(&mut device.slots))?;
        K::arguments(reads, writes).copy_from(gpu, &mut lenders(&mut device.slots))?;
        Ok(returned)
    }

    fn sample(
        &self,
        data: &mut dyn CellData,
        calls: Calls,
        caller: &Caller,
    ) -> Result<Sampled, Fault> {
        let (stopwatch, mode) = on_device(caller)?;
        let data = typed::<K>(data);
        if !self.is_loaded.get() {
            self.load(stopwatch.gpu(), data)?;
        }
        settle(stopwatch.gpu(), data)?;
        let mut sampled = Sampled::default();
        for _ in 0..calls.batches {
            let batch = self.batch(stopwatch, data, calls.per_batch, mode)?;
            sampled.time += batch.time;
            sampled.device = batch.device;
        }
        Ok(sampled)
    }

    fn limits(&self, data: &dyn CellData, caller: &Caller) -> Limits {
        let Ok((stopwatch, mode)) = on_device(caller) else { return Limits::NONE };
        let queued = (MOST_QUEUED / self.launches.get().max(1)).max(1);
        let near = stopwatch.gpu().info().l2_bytes as usize / 4;
        let fresh = match K::ENTRY.in_place {
            InPlace::Fresh => (near / data.written_bytes().max(1)).max(1) as u64,
            InPlace::No | InPlace::Reuse => u64::MAX,
        };
        let per_batch = queued.min(fresh);
        match mode {
            Mode::Hot => Limits { per_batch, stretch: STRETCH, ..Limits::NONE },
            // A graph is launched once untimed by itself, and of cold calls none should find what another left.
            Mode::Graph => Limits { per_batch, wash_out: false, stretch: STRETCH, ..Limits::NONE },
            Mode::Cold => Limits { total: MOST_COLD, wash_out: false, ..Limits::NONE },
            Mode::Warm | Mode::EndToEnd => Limits::NONE,
        }
    }

    fn fetch(&self, data: &mut dyn CellData, caller: &Caller) -> Result<(), Fault> {
        let (stopwatch, mode) = on_device(caller)?;
        let (gpu, data) = (stopwatch.gpu(), typed::<K>(data));
        look_for_trespass(gpu, data)?;
        if mode == Mode::EndToEnd {
            return Ok(()); // its results are on the host already
        }
        let Data { reads, writes, device, .. } = data;
        let Resident { slots, copies, last, .. } = device;
        let copy = last.map(|last| copies[last].as_mut_slice());
        K::arguments(reads, writes).copy_from(gpu, &mut lenders_with(slots, copy))?;
        Ok(())
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
        let (gpu, data) = (stopwatch.gpu(), typed::<K>(data));
        settle(gpu, data)?;
        // Once outside of the range, so that code is loaded and caches are as in any later call.
        self.checked(gpu, data, None)?;
        gpu.synchronize()?;
        let mut outcome = Ok(());
        Profiler::open().within(gpu, name, || {
            outcome = self.checked(gpu, data, None);
            Ok(())
        })?;
        outcome
    }
}

impl<K: Kernel> Device<K>
where
    for<'a> K::Arguments<'a>: DeviceArguments<'a>,
{
    /// One call, on the given copy of the outputs.
    fn once(&self, gpu: &Gpu, data: &mut Data<K>, copy: Option<usize>) -> Box<dyn Operand> {
        let Resident { slots, copies, .. } = &mut data.device;
        let copy = copy.map(|copy| copies[copy].as_mut_slice());
        let arguments =
            <K::Arguments<'_> as DeviceArguments<'_>>::lend(&mut lenders_with(slots, copy));
        (self.call)(gpu, arguments)
    }

    /// A call from which is learnt how many launches it makes.
    fn first(&self, gpu: &Gpu, data: &mut Data<K>) -> Box<dyn Operand> {
        let before = gpu.launches();
        let output = self.once(gpu, data, None);
        self.launches.set((gpu.launches() - before).max(1));
        self.is_loaded.set(true);
        output
    }

    /// A call whose results do not matter.
    fn load(&self, gpu: &Gpu, data: &mut Data<K>) -> Result<(), Fault> {
        let stale = std::mem::replace(&mut data.stale, Stale::Initial);
        settle(gpu, data)?;
        let failure = self.first(gpu, data).failure();
        gpu.synchronize()?;
        // What was to be brought up to date still is, and so is what this call wrote.
        data.stale = if stale == Stale::No { Stale::Initial } else { stale };
        failure.map_or(Ok(()), |failure| Err(Fault::Failed(failure)))
    }

    /// One call, of which only failure matters.
    fn checked(&self, gpu: &Gpu, data: &mut Data<K>, copy: Option<usize>) -> Result<(), Fault> {
        match self.once(gpu, data, copy).failure() {
            Some(failure) => Err(Fault::Failed(failure)),
            None => Ok(()),
        }
    }

    fn batch(
        &self,
        stopwatch: &Stopwatch,
        data: &mut Data<K>,
        calls: u64,
        mode: Mode,
    ) -> Result<Sampled, Fault> {
        if mode == Mode::EndToEnd {
            return self.end_to_end(stopwatch.gpu(), data, calls);
        }
        let timing = self.timed(stopwatch, data, calls, mode)?;
        if !timing.expired {
            return Ok(self.sampled(timing));
        }
        // The gate had to open by itself: a call waits for the device. Its launches are part of its time.
        self.waits.set(true);
        Ok(self.sampled(self.timed(stopwatch, data, calls, mode)?))
    }

    fn sampled(&self, timing: Timing) -> Sampled {
        let reading = DeviceReading { gated: !self.waits.get(), ..timing.reading };
        Sampled { time: timing.time, device: Some(reading) }
    }

    fn timed(
        &self,
        stopwatch: &Stopwatch,
        data: &mut Data<K>,
        calls: u64,
        mode: Mode,
    ) -> Result<Timing, Fault> {
        let gpu = stopwatch.gpu();
        let queue = if self.waits.get() { Queue::Open } else { Queue::Gated };
        let is_fresh = K::ENTRY.in_place == InPlace::Fresh;
        match mode {
            Mode::Cold => {
                let data = RefCell::new(data);
                let mut prepare = |_| match is_fresh {
                    true => Ok(fresh_copies(gpu, &mut data.borrow_mut().device, 1)?),
                    false => Ok(()),
                };
                let copy = is_fresh.then_some(0);
                let mut call = |_| self.checked(gpu, &mut data.borrow_mut(), copy);
                stopwatch.cold(calls, queue, &mut prepare, &mut call)
            }
            Mode::Graph => {
                if is_fresh {
                    fresh_copies(gpu, &mut data.device, calls)?;
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
                match K::ENTRY.in_place {
                    InPlace::No => {}
                    InPlace::Fresh => fresh_copies(gpu, &mut data.device, calls)?,
                    InPlace::Reuse => {
                        data.stale = Stale::Initial;
                        settle(gpu, data)?;
                    }
                }
                Ok(stopwatch.graph(graph)?)
            }
            Mode::Hot | Mode::Warm | Mode::EndToEnd => {
                if is_fresh {
                    fresh_copies(gpu, &mut data.device, calls)?;
                }
                let copy = |call: u64| is_fresh.then_some(call as usize);
                stopwatch.hot(calls, queue, &mut |call| self.checked(gpu, data, copy(call)))
            }
        }
    }

    fn capture(
        &self,
        stopwatch: &Stopwatch,
        data: &mut Data<K>,
        calls: u64,
        is_fresh: bool,
    ) -> Result<Graph, Fault> {
        let gpu = stopwatch.gpu();
        let copy = |call: u64| is_fresh.then_some(call as usize);
        stopwatch.capture(calls, &mut |call| self.checked(gpu, data, copy(call))).map_err(|fault| {
            Fault::Declined(format!("cannot be recorded in a CUDA graph: {fault}"))
        })
    }

    /// From data on the host to results on the host, by the host's clock.
    fn end_to_end(&self, gpu: &Gpu, data: &mut Data<K>, calls: u64) -> Result<Sampled, Fault> {
        let in_place = K::ENTRY.in_place != InPlace::No;
        gpu.synchronize()?;
        let start = Instant::now();
        for _ in 0..calls {
            let Data { reads, initial, device, .. } = data;
            K::arguments(reads, initial).copy_to(gpu, in_place, &mut lenders(&mut device.slots))?;
            self.checked(gpu, data, None)?;
            let Data { reads, writes, device, .. } = data;
            K::arguments(reads, writes).copy_from(gpu, &mut lenders(&mut device.slots))?;
            gpu.synchronize()?;
        }
        Ok(Sampled { time: start.elapsed(), device: None })
    }

    fn inspect(&self, data: &mut dyn CellData, caller: &Caller) -> Result<DeviceFigures, Fault> {
        let (stopwatch, _) = on_device(caller)?;
        let (gpu, data) = (stopwatch.gpu(), typed::<K>(data));
        settle(gpu, data)?;
        let (before, resident) = (gpu.ledger().bytes(), data.device.bytes());
        gpu.ledger().mark();
        let (called, recorded) = gpu.record(|| self.checked(gpu, data, None));
        called?;
        gpu.synchronize()?;
        let scratch = gpu.ledger().peak() - before;
        Ok(DeviceFigures {
            transfers: transfers(gpu, data)?,
            peak_bytes: (resident + scratch) as u64,
            written_bytes: data.device.written().map(|slot| slot.value.device_bytes() as u64).sum(),
            kernels: summarise(gpu, &recorded),
        })
    }
}

impl Resident {
    fn written(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.is_written)
    }

    /// Bytes of the arguments.
    fn bytes(&self) -> usize {
        self.slots.iter().map(|slot| slot.value.device_bytes()).sum()
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

/// All slots, as they are lent.
fn lenders(slots: &mut [Slot]) -> impl Iterator<Item = &mut (dyn Held + 'static)> {
    slots.iter_mut().map(|slot| slot.value.as_mut())
}

/// The same with a copy in place of those that are written.
fn lenders_with<'a>(
    slots: &'a mut [Slot],
    copy: Option<&'a mut [Box<dyn Held>]>,
) -> impl Iterator<Item = &'a mut (dyn Held + 'static)> {
    let mut copy = copy.map(|copy| copy.iter_mut());
    slots.iter_mut().map(move |slot| {
        let replaced = copy.as_mut().filter(|_| slot.is_written).and_then(Iterator::next);
        match replaced {
            Some(value) => value.as_mut(),
            None => slot.value.as_mut(),
        }
    })
}

/// Brings the data to the device, or the device up to date with the host.
fn settle<K: Kernel>(gpu: &Gpu, data: &mut Data<K>) -> Result<(), Fault>
where
    for<'a> K::Arguments<'a>: DeviceArguments<'a>,
{
    let Data { reads, writes, initial, device, stale, .. } = data;
    if device.slots.is_empty() {
        let (needed, free) = (reads.bytes() + 2 * writes.bytes(), gpu.free_bytes()?);
        if needed > free {
            return Err(Fault::Declined(format!(
                "needs {} of device memory, and {} are free",
                human_bytes(needed),
                human_bytes(free)
            )));
        }
        K::arguments(reads, initial).upload(gpu, &mut device.slots)?;
        let written = device.slots.iter().filter(|slot| slot.is_written);
        device.initial = written.map(|s| s.value.duplicate(gpu)).collect::<GpuResult<_>>()?;
    }
    match stale {
        Stale::No => {}
        Stale::Initial => {
            let Resident { slots, initial, .. } = device;
            let written = slots.iter_mut().filter(|slot| slot.is_written);
            for (slot, initial) in written.zip(initial) {
                slot.value.assign(initial.as_mut(), gpu)?;
            }
        }
        Stale::Content => {
            K::arguments(reads, writes).copy_to(gpu, true, &mut lenders(&mut device.slots))?;
        }
    }
    device.last = None;
    *stale = Stale::No;
    gpu.synchronize()?;
    Ok(())
}

/// As many fresh outputs as there are calls.
fn fresh_copies(gpu: &Gpu, device: &mut Resident, calls: u64) -> GpuResult<()> {
    let Resident { initial, copies, last, .. } = device;
    for copy in copies.iter_mut().take(calls as usize) {
        for (value, initial) in copy.iter_mut().zip(initial.iter_mut()) {
            value.assign(initial.as_mut(), gpu)?;
        }
    }
    while copies.len() < calls as usize {
        copies.push(initial.iter().map(|value| value.duplicate(gpu)).collect::<GpuResult<_>>()?);
    }
    *last = (calls as usize).checked_sub(1);
    gpu.synchronize()
}

/// Fails when something was written beside an array.
fn look_for_trespass<K: Kernel>(gpu: &Gpu, data: &Data<K>) -> Result<(), Fault> {
    let Some(trespass) = gpu.trespass()? else { return Ok(()) };
    let owner = data.device.slots.iter().position(|slot| slot.arrays.contains(&trespass.array));
    let name = match owner.and_then(|slot| K::ENTRY.parameters.get(slot)) {
        Some(name) => format!("`{name}`"),
        None => "an array that is none of its parameters".to_owned(),
    };
    let side = match trespass.distance {
        0.. => format!("{} byte(s) after its end", trespass.distance),
        before => format!("{} byte(s) before its beginning", -before),
    };
    Err(Fault::Device(format!(
        "writes out of bounds of {name}, which has {} bytes: {} byte(s) beside it changed, the nearest {side}",
        trespass.bytes, trespass.changed
    )))
}

/// Times of the copies that one call needs.
fn transfers<K: Kernel>(gpu: &Gpu, data: &mut Data<K>) -> Result<Transfers, Fault>
where
    for<'a> K::Arguments<'a>: DeviceArguments<'a>,
{
    let in_place = K::ENTRY.in_place != InPlace::No;
    let sizes = |up: bool| -> Vec<usize> {
        let slots = data.device.slots.iter();
        let moved = slots.filter(|s| if up { in_place || !s.is_written } else { s.is_written });
        moved.map(|slot| slot.value.device_bytes()).filter(|bytes| *bytes > 0).collect()
    };
    let (up, down) = (sizes(true), sizes(false));
    let h2d_pinned_ns = pinned(gpu, &up, Way::Up)?;
    let d2h_pinned_ns = pinned(gpu, &down, Way::Down)?;
    let Data { reads, writes, initial, device, .. } = data;
    let h2d_ns = median(gpu, &mut || {
        K::arguments(reads, initial).copy_to(gpu, in_place, &mut lenders(&mut device.slots))
    })?;
    let d2h_ns = median(gpu, &mut || {
        K::arguments(reads, writes).copy_from(gpu, &mut lenders(&mut device.slots))
    })?;
    Ok(Transfers {
        h2d_ns: Some(h2d_ns),
        h2d_pinned_ns,
        d2h_ns: Some(d2h_ns),
        d2h_pinned_ns,
        h2d_bytes: up.iter().sum::<usize>() as u64,
        d2h_bytes: down.iter().sum::<usize>() as u64,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// The same number of copies of the same sizes, from or to pinned memory; none where that is too much to ask for.
fn pinned(gpu: &Gpu, sizes: &[usize], way: Way) -> Result<Option<f64>, Fault> {
    let all: usize = sizes.iter().sum();
    if all > MOST_PINNED {
        return Ok(None);
    }
    let mut host = Pinned::new(gpu, all)?;
    host.bytes_mut().fill(0x5a);
    let mut device = sizes.iter().map(|n| gpu.zeros::<u8>(*n)).collect::<GpuResult<Vec<_>>>()?;
    let time = median(gpu, &mut || {
        let mut rest = host.bytes_mut();
        for device in &mut device {
            let (part, others) = rest.split_at_mut(device.len());
            match way {
                Way::Up => gpu.copy_to(part, device)?,
                Way::Down => gpu.copy_from(device, part)?,
            }
            rest = others;
        }
        Ok(())
    })?;
    Ok(Some(time))
}

/// Nanoseconds of some copies by the host's clock, until the device is done.
fn median(gpu: &Gpu, copy: &mut dyn FnMut() -> GpuResult<()>) -> Result<f64, Fault> {
    let mut times = Vec::with_capacity(TRANSFERS);
    let begun = Instant::now();
    while times.is_empty() || times.len() < TRANSFERS && begun.elapsed() < Duration::from_secs(1) {
        gpu.synchronize()?;
        let start = Instant::now();
        copy()?;
        gpu.synchronize()?;
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
