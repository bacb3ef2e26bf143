//! Timing on the device.
//!
//! # Cost model
//!
//! A span is what two events of the device have between them. The stream is held by a gate while start event, calls and
//! end event are queued, and then opened: the host's part of launching is over before the first event is taken. Two
//! events around k empty kernels that follow each other take `overhead + k · spacing`; the overhead, measured before the
//! first span counts, is subtracted from every span, so that a span of one call is what that call adds to a stream.
//!
//! Beside every span the host's clock is read, from the opening of the gate until the whole device is idle: what disagrees
//! with the events shows there. (Other streams do not wait for the gate; what a call leaves running there is looked for
//! apart, in calls without a gate.) Stamps of all multiprocessors before and after tell their clock.

use std::cell::{Cell, OnceCell};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUevent, CUresult};
use cudarc::driver::{DriverError, result};

use super::compile::{Source, compile};
use super::gpu::Gpu;
use super::memory::DeviceSlice;
use super::nvml::{Nvml, NvmlDevice};
use crate::cuda::{DeviceReading, GpuError, GpuResult};

/// Kernels of our own.
pub(super) const INSTRUMENTS: Source =
    Source::new(include_str!("instruments.cu")).named("instruments.cu");

/// The gate opens by itself after this long: the call that is being timed waits for the device.
const GATE_PATIENCE: Duration = Duration::from_millis(500);

/// Busy time before anything is measured, so that clocks have risen.
const WARM_UP: Duration = Duration::from_millis(150);

/// Pairs of events from which the overhead is taken.
const OVERHEAD_PAIRS: usize = 41;

/// Kernels between the events of the longer of both spans that give the overhead.
const OVERHEAD_KERNELS: u64 = 9;

/// Figures of NVML are asked for again after this long: asking takes longer than a sample.
const NVML_PERIOD: Duration = Duration::from_millis(25);

/// Operations that may wait behind a closed gate: the stream has room for about a thousand.
pub(crate) const MOST_QUEUED: u64 = 512;

/// A device with everything that is needed to time calls on it.
pub struct Stopwatch {
    gpu: Gpu,
    start: Event,
    end: Event,
    /// Opened by its first word, expired by its second: memory of the host that the device sees.
    flag: Pinned,
    /// Cycles and nanoseconds of every multiprocessor, before and after.
    stamps: [DeviceSlice<u64>; 2],
    /// More than the second-level cache holds.
    flush: OnceCell<DeviceSlice<u8>>,
    /// Nanoseconds that two events take by themselves, once it is known.
    overhead: OnceCell<f64>,
    /// Nanoseconds that two events and the launch of a graph between them take.
    graph_overhead: OnceCell<f64>,
    nvml: Option<NvmlDevice>,
    /// What NVML said last, and when.
    told: Cell<Option<(Instant, DeviceReading)>>,
}

/// What was timed, per call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Time of all calls on the device, without the overhead of the events.
    pub time: Duration,
    /// What was read beside it.
    pub reading: DeviceReading,
    /// Whether the gate opened by itself: the calls wait for the device, and their launches are part of their time.
    pub expired: bool,
}

/// What two events have between them, in nanoseconds.
struct Span {
    device: f64,
    host: f64,
    expired: bool,
}

/// Whether calls are queued behind a closed gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// They are.
    Gated,
    /// They are not: the variant waits for the device, which would wait for the gate.
    Open,
}

impl Stopwatch {
    /// Equips a device and warms it up.
    pub fn new(gpu: Gpu) -> GpuResult<Self> {
        let event = || gpu.done("making an event", Event::new());
        let words = 2 * gpu.info().multiprocessors as usize;
        let stamps = [gpu.zeros(words)?, gpu.zeros(words)?];
        let (start, end, flag) = (event()?, event()?, Pinned::new(&gpu, 64)?);
        let nvml = Nvml::open().and_then(|nvml| nvml.device(&gpu.info().pci_bus_id));
        let flush = OnceCell::new();
        let stopwatch = Stopwatch {
            gpu,
            start,
            end,
            flag,
            stamps,
            flush,
            overhead: OnceCell::new(),
            graph_overhead: OnceCell::new(),
            nvml,
            told: Cell::new(None),
        };
        stopwatch.load()?;
        stopwatch.warm_up(WARM_UP)?;
        Ok(stopwatch)
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The code of the instruments, for others who time with them.
    pub(crate) fn instruments(&self) -> GpuResult<String> {
        Ok(compile(&INSTRUMENTS, &self.gpu.architecture())?.ptx)
    }

    /// Launches every instrument once: what loads code must not do so behind a gate.
    fn load(&self) -> GpuResult<()> {
        self.flag.write(0, 1);
        let gate = self.gpu.kernel(INSTRUMENTS, "kbench_gate")?;
        gate.arg(self.flag.address()).arg(0u64).launch()?;
        self.launch_nothing()?;
        self.stamp(0)?;
        self.gpu.synchronize()
    }

    /// Nanoseconds that two events take by themselves, which are subtracted from every span; measured when it is first
    /// asked for.
    pub fn overhead_ns(&self) -> GpuResult<f64> {
        known_or(&self.overhead, || self.measure_overhead())
    }

    /// The same for a graph between them.
    fn graph_overhead_ns(&self) -> GpuResult<f64> {
        known_or(&self.graph_overhead, || self.measure_graph_overhead())
    }

    /// The highest clock of the multiprocessors, where NVML tells.
    pub fn max_clock_mhz(&self) -> Option<f64> {
        self.gpu.info().max_clock_mhz.map(f64::from)
    }

    /// Keeps the device busy for a while.
    pub fn warm_up(&self, time: Duration) -> GpuResult<()> {
        let (start, slice) = (Instant::now(), Duration::from_millis(5));
        let blocks = 2 * self.gpu.info().multiprocessors as usize;
        while start.elapsed() < time {
            let busy = self.gpu.kernel(INSTRUMENTS, "kbench_busy")?.grid(blocks).block(256);
            busy.arg(slice.as_nanos() as u64).arg(&self.stamps[0]).launch()?;
            self.gpu.synchronize()?;
        }
        Ok(())
    }

    /// Calls that follow each other without a gap, on caches as the last one left them.
    pub fn hot<E: From<GpuError>>(
        &self,
        calls: u64,
        queue: Queue,
        call: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Timing, E> {
        let span = self.span(queue, true, &mut || (0..calls).try_for_each(&mut *call))?;
        let clock = self.clock()?;
        Ok(self.timing(&[span], calls, clock, self.overhead_ns()?))
    }

    /// Calls that each find nothing of their data in the second-level cache; `prepare` is called before each of them,
    /// untimed. Each of them writes `written` bytes.
    pub fn cold<E: From<GpuError>>(
        &self,
        calls: u64,
        queue: Queue,
        written: usize,
        prepare: &mut dyn FnMut(u64) -> Result<(), E>,
        call: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Timing, E> {
        let mut spans = Vec::with_capacity(calls as usize);
        for number in 0..calls {
            prepare(number)?;
            self.flush(number, written)?;
            spans.push(self.span(queue, false, &mut || call(number))?);
        }
        Ok(self.timing(&spans, calls, None, self.overhead_ns()?))
    }

    /// Records calls without running them. A call that copies from the host fails: a graph would copy from where the data was.
    pub fn capture<E: From<GpuError>>(
        &self,
        calls: u64,
        call: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Graph, E> {
        let stream = self.gpu.stream().cu_stream();
        let recording = Recording::begin(&self.gpu)?;
        let called = (0..calls).try_for_each(call);
        let graph = recording.end();
        if let Err(error) = called {
            if let Ok(graph) = graph {
                destroy(graph);
            }
            return Err(error);
        }
        let graph = self.gpu.done("recording a graph", graph)?;
        if graph.is_null() {
            return Err(GpuError::Failed("nothing was recorded in the graph".into()).into());
        }
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph was just recorded.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0) }.result();
        destroy(graph);
        self.gpu.done("making a graph executable", made)?;
        let graph = Graph { executable, calls };
        // SAFETY: the graph is executable.
        let uploaded = unsafe { result::graph::upload(graph.executable, stream) };
        self.gpu.done("uploading a graph", uploaded)?;
        self.gpu.synchronize()?;
        Ok(graph)
    }

    /// Runs recorded calls, untimed.
    pub fn replay(&self, graph: &Graph) -> GpuResult<()> {
        let stream = self.gpu.stream().cu_stream();
        // SAFETY: the graph is executable, and the stream lives as long as the device.
        let launched = unsafe { result::graph::launch(graph.executable, stream) };
        self.gpu.done("launching a graph", launched)
    }

    /// Calls that were recorded in a graph.
    pub fn graph(&self, graph: &Graph) -> GpuResult<Timing> {
        let span = self.span(Queue::Gated, true, &mut || self.replay(graph))?;
        let clock = self.clock()?;
        Ok(self.timing(&[span], graph.calls, clock, self.graph_overhead_ns()?))
    }

    /// Leaves nothing in the second-level cache that a kernel may want: lines that were to stay are released, and twice its
    /// size is overwritten.
    ///
    /// That fills the cache with lines which still have to go to memory, and whoever comes next waits for that: on an H200 about
    /// 9 µs. A kernel that writes as much leaves as much behind, so what it pays is its due; one that only reads would pay for
    /// the flush. So all is read afterwards, and then as much is written again as the kernel is going to write.
    fn flush(&self, number: u64, written: usize) -> GpuResult<()> {
        self.gpu.bind()?;
        // SAFETY: the context of this device is the current one.
        let reset = unsafe { sys::cuCtxResetPersistingL2Cache() };
        // A device that cannot keep lines has none to release.
        if reset != CUresult::CUDA_SUCCESS && reset != CUresult::CUDA_ERROR_NOT_SUPPORTED {
            self.gpu.done("releasing cache lines", Err(DriverError(reset)))?;
        }
        let buffer = match self.flush.get() {
            Some(buffer) => buffer,
            None => {
                let made = self.gpu.zeros(2 * self.gpu.info().l2_bytes as usize)?;
                self.flush.get_or_init(|| made)
            }
        };
        // Below 128, as what reads it writes where all bits are set.
        self.gpu.fill(buffer.device_pointer(), (number % 128) as u8, buffer.len())?;
        let blocks = 8 * self.gpu.info().multiprocessors as usize;
        let read = self.gpu.kernel(INSTRUMENTS, "kbench_read")?.grid(blocks).block(512);
        read.arg(buffer).arg(buffer).arg(buffer.len() / 16).launch()?;
        let owed = written.min(buffer.len() / 2);
        self.gpu.fill(buffer.device_pointer(), (number % 128) as u8, owed)?;
        self.gpu.synchronize()
    }

    /// What two events around some work have between them.
    fn span<E: From<GpuError>>(
        &self,
        queue: Queue,
        stamped: bool,
        work: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Span, E> {
        self.gpu.bind()?;
        let gate = Gate::close(self, queue)?;
        if stamped {
            self.stamp(0)?;
        }
        let mut begun = Instant::now();
        self.record(&self.start)?;
        work()?;
        self.record(&self.end)?;
        if stamped {
            self.stamp(1)?;
        }
        if queue == Queue::Gated {
            begun = Instant::now();
        }
        drop(gate);
        self.gpu.wait_until_idle()?;
        let host = begun.elapsed().as_nanos() as f64;
        // SAFETY: both events were recorded and have passed.
        let elapsed = unsafe { result::event::elapsed(self.start.0, self.end.0) };
        let device = f64::from(self.gpu.done("reading events", elapsed)?) * 1e6;
        let expired = queue == Queue::Gated && self.flag.read(1) != 0;
        Ok(Span { device, host, expired })
    }

    fn record(&self, event: &Event) -> GpuResult<()> {
        let stream = self.gpu.stream().cu_stream();
        // SAFETY: event and stream live as long as the stopwatch.
        self.gpu.done("recording an event", unsafe { result::event::record(event.0, stream) })
    }

    fn stamp(&self, which: usize) -> GpuResult<()> {
        // Twice as many blocks as multiprocessors: each is given at least one.
        let blocks = 2 * self.gpu.info().multiprocessors as usize;
        let stamp = self.gpu.kernel(INSTRUMENTS, "kbench_stamp")?;
        stamp.grid(blocks).block(32).arg(&self.stamps[which]).launch()
    }

    fn timing(&self, spans: &[Span], calls: u64, clock: Option<f64>, overhead: f64) -> Timing {
        let net = |span: &Span| (span.device - overhead).max(0.0);
        let device: f64 = spans.iter().map(net).sum();
        let host: f64 = spans.iter().map(|span| span.host).sum();
        let told = self.told();
        let clock_mhz = clock.or(told.clock_mhz);
        Timing {
            time: Duration::from_nanos(device.round() as u64),
            reading: DeviceReading { host: host / calls.max(1) as f64, clock_mhz, ..told },
            expired: spans.iter().any(|span| span.expired),
        }
    }

    /// Megahertz between the last two stamps: the median of the multiprocessors.
    fn clock(&self) -> GpuResult<Option<f64>> {
        let [before, after] = [&self.stamps[0], &self.stamps[1]].map(|s| self.gpu.download(s));
        let (before, after) = (before?, after?);
        let rate = |(before, after): (&[u64], &[u64])| {
            let cycles = after[0].checked_sub(before[0])? as f64;
            let nanoseconds = after[1].checked_sub(before[1])? as f64;
            // The device's clock moves in steps of up to a microsecond: a shorter span tells nothing.
            (nanoseconds > 20_000.0).then_some(cycles / nanoseconds * 1e3)
        };
        let pairs = before.chunks_exact(2).zip(after.chunks_exact(2));
        let mut rates: Vec<f64> = pairs.filter_map(rate).collect();
        rates.sort_by(f64::total_cmp);
        Ok(rates.get(rates.len() / 2).copied())
    }

    /// What NVML says, or said a moment ago.
    fn told(&self) -> DeviceReading {
        if let Some((when, reading)) = self.told.get()
            && when.elapsed() < NVML_PERIOD
        {
            return reading;
        }
        let reading =
            self.nvml.as_ref().map_or_else(DeviceReading::default, |nvml| DeviceReading {
                clock_mhz: nvml.sm_clock_mhz().map(f64::from),
                temperature: nvml.temperature_celsius(),
                power: nvml.power_watts(),
                throttling: nvml.throttle(),
                ..DeviceReading::default()
            });
        self.told.set(Some((Instant::now(), reading)));
        reading
    }

    /// What two events take by themselves: the part of a span that does not grow with the kernels in it.
    fn measure_overhead(&self) -> GpuResult<f64> {
        let span = |kernels: u64| {
            self.median_span(&mut || (0..kernels).try_for_each(|_| self.launch_nothing()))
        };
        Ok(intercept(span(1)?, span(OVERHEAD_KERNELS)?))
    }

    /// The same with all kernels in a graph.
    fn measure_graph_overhead(&self) -> GpuResult<f64> {
        let span = |kernels: u64| {
            let graph = self.capture(kernels, &mut |_| self.launch_nothing())?;
            self.replay(&graph)?;
            self.median_span(&mut || self.replay(&graph))
        };
        Ok(intercept(span(1)?, span(OVERHEAD_KERNELS)?))
    }

    fn launch_nothing(&self) -> GpuResult<()> {
        self.gpu.kernel(INSTRUMENTS, "kbench_nothing")?.launch()
    }

    fn median_span(&self, work: &mut dyn FnMut() -> GpuResult<()>) -> GpuResult<f64> {
        let mut spans = Vec::with_capacity(OVERHEAD_PAIRS);
        for _ in 0..OVERHEAD_PAIRS {
            spans.push(self.span(Queue::Gated, false, work)?.device);
        }
        spans.sort_by(f64::total_cmp);
        Ok(spans[OVERHEAD_PAIRS / 2])
    }
}

/// What is known, or measured now and known from then on.
fn known_or(known: &OnceCell<f64>, measure: impl FnOnce() -> GpuResult<f64>) -> GpuResult<f64> {
    match known.get() {
        Some(value) => Ok(*value),
        None => {
            let measured = measure()?;
            Ok(*known.get_or_init(|| measured))
        }
    }
}

/// The part of a span that does not grow with its kernels, from spans of one and of [`OVERHEAD_KERNELS`].
fn intercept(one: f64, many: f64) -> f64 {
    let spacing = (many - one) / (OVERHEAD_KERNELS - 1) as f64;
    (one - spacing).max(0.0)
}

/// A gate in the stream that is closed until it is dropped: also when queueing behind it fails.
struct Gate<'s>(Option<&'s Pinned>);

impl<'s> Gate<'s> {
    fn close(stopwatch: &'s Stopwatch, queue: Queue) -> GpuResult<Self> {
        if queue == Queue::Open {
            return Ok(Gate(None));
        }
        let flag = &stopwatch.flag;
        flag.write(0, 0);
        flag.write(1, 0);
        let gate = stopwatch.gpu.kernel(INSTRUMENTS, "kbench_gate")?;
        gate.arg(flag.address()).arg(GATE_PATIENCE.as_nanos() as u64).launch()?;
        Ok(Gate(Some(flag)))
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        if let Some(flag) = self.0 {
            flag.write(0, 1);
        }
    }
}

/// A stream that records what is put on it instead of running it, until this is dropped: also when a call panics, as nothing
/// would run on the stream any more.
struct Recording<'s> {
    gpu: &'s Gpu,
}

impl<'s> Recording<'s> {
    fn begin(gpu: &'s Gpu) -> GpuResult<Self> {
        let stream = gpu.stream().cu_stream();
        let local = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives as long as the device, and nothing else uses it meanwhile.
        gpu.done("recording a graph", unsafe { result::stream::begin_capture(stream, local) })?;
        gpu.note_graph(true);
        Ok(Recording { gpu })
    }

    /// What was recorded; null if nothing was.
    fn end(self) -> Result<sys::CUgraph, DriverError> {
        ManuallyDrop::new(self).end_capture()
    }

    fn end_capture(&self) -> Result<sys::CUgraph, DriverError> {
        self.gpu.note_graph(false);
        // SAFETY: the stream has been capturing since this was made, and each of its two ends comes here once.
        unsafe { result::stream::end_capture(self.gpu.stream().cu_stream()) }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if let Ok(graph) = self.end_capture() {
            destroy(graph);
        }
    }
}

/// Destroys a graph that was recorded, if there is one.
fn destroy(graph: sys::CUgraph) {
    if !graph.is_null() {
        // SAFETY: nobody else has it, and its executable form does not need it.
        let _ = unsafe { result::graph::destroy(graph) };
    }
}

/// Calls that are launched as one.
pub struct Graph {
    executable: sys::CUgraphExec,
    calls: u64,
}

impl Graph {
    /// How many calls there are in it.
    pub fn calls(&self) -> u64 {
        self.calls
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: nobody else has it, and nothing of it is running: every launch is waited for.
        let _ = unsafe { result::graph::exec_destroy(self.executable) };
    }
}

/// An event that can be timed.
struct Event(CUevent);

impl Event {
    fn new() -> Result<Self, DriverError> {
        result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map(Event)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

/// Memory of the host that the device sees, and copies from and to without a detour.
pub(crate) struct Pinned {
    start: *mut u32,
    bytes: usize,
}

impl Pinned {
    pub(crate) fn new(gpu: &Gpu, bytes: usize) -> GpuResult<Self> {
        // SAFETY: the memory is freed when this is dropped.
        let start = unsafe { result::malloc_host(bytes.max(8), sys::CU_MEMHOSTALLOC_DEVICEMAP) };
        let start = gpu.done("pinning memory of the host", start)?;
        Ok(Pinned { start: start.cast::<u32>(), bytes })
    }

    /// The address, which is the same on both sides.
    pub(crate) fn address(&self) -> u64 {
        self.start as u64
    }

    /// All of it.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: it was allocated with this size, any bytes are bytes, and this is the only borrow.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast::<u8>(), self.bytes) }
    }

    fn write(&self, word: usize, value: u32) {
        debug_assert!(4 * word < self.bytes, "within the memory");
        // SAFETY: within the memory; volatile, because the device looks at it meanwhile.
        unsafe { self.start.add(word).write_volatile(value) };
    }

    fn read(&self, word: usize) -> u32 {
        debug_assert!(4 * word < self.bytes, "within the memory");
        // SAFETY: as above.
        unsafe { self.start.add(word).read_volatile() }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        let _ = unsafe { result::free_host(self.start.cast::<c_void>()) };
    }
}
