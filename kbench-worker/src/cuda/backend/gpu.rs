//! A device with its context, its stream and what is loaded there.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::cublas::CudaBlas;
use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};

use super::blas::BlasLt;
use super::compile::Source;
use super::compiler::Compiler;
use super::launch::{Function, Launch, Module, Recorded};
use super::memory::{
    Allocation, DeviceElement, DeviceSlice, GUARD, Ledger, PATTERN, Shelf, Zone, guarded,
};
use super::scratch::Scratch;
use super::{STICKY, describe, library};
use crate::cuda::{DeviceInfo, GpuError, GpuResult, Unavailable, bytes_in_words};

/// A call that has not come back after this long never will.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A CUDA device, supplied by the runtime to variants that take a `&Gpu`.
///
/// All work goes to one stream of its own, in the order in which it is asked for. What is not done through the methods
/// here (a vendor's library, say) must use that [`stream`](Self::stream) too: work elsewhere is not timed.
pub struct Gpu {
    info: DeviceInfo,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    compiler: Compiler,
    modules: RefCell<HashMap<Source, Rc<Module>>>,
    functions: RefCell<HashMap<FunctionKey, Rc<Function>>>,
    ledger: Rc<Ledger>,
    shelf: Shelf,
    blas: OnceCell<CudaBlas>,
    blas_lt: OnceCell<BlasLt>,
    /// Why nothing can be done in this context any more.
    lost: RefCell<Option<String>>,
    /// Where assembly is written to.
    dump: RefCell<Option<PathBuf>>,
    /// Launches since recording began.
    recorded: RefCell<Option<Vec<Recorded>>>,
    /// Whether the stream records a graph.
    records_graph: Cell<bool>,
    /// Operations that were put on the stream.
    operations: Cell<u64>,
}

/// A source and an entry point by their addresses, which never change: looking one up must not cost what a launch does.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FunctionKey {
    text: (*const u8, usize),
    options: (*const &'static str, usize),
    headers: (*const (&'static str, &'static str), usize),
    name: (*const u8, usize),
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gpu({}: {})", self.info.ordinal, self.info.name)
    }
}

/// A guard zone that was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trespass {
    /// Number of the array.
    pub(crate) array: u64,
    /// Bytes of the array.
    pub(crate) bytes: usize,
    /// Bytes beyond its end, or before its beginning when negative, of the nearest byte that changed.
    pub(crate) distance: i64,
    /// How many bytes changed.
    pub(crate) changed: usize,
}

impl Gpu {
    /// Opens a device by its number.
    pub fn open(ordinal: usize) -> Result<Self, Unavailable> {
        let info = library::device(ordinal)?;
        let broken = |error: DriverError| Unavailable::Broken(format!("{:?}", error.0));
        let context = CudaContext::new(ordinal).map_err(broken)?;
        // SAFETY: everything here goes to one stream, so no event has to keep streams apart; and with tracking on, every
        // launch would wait for and record events of its own.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(broken)?;
        keep_pool(&context).map_err(broken)?;
        let compiler = Compiler::new(architecture(&info.compute_capability));
        Ok(Gpu {
            info,
            context,
            stream,
            compiler,
            modules: RefCell::default(),
            functions: RefCell::default(),
            ledger: Rc::default(),
            shelf: Shelf::default(),
            blas: OnceCell::new(),
            blas_lt: OnceCell::new(),
            lost: RefCell::default(),
            dump: RefCell::default(),
            recorded: RefCell::default(),
            records_graph: Cell::new(false),
            operations: Cell::new(0),
        })
    }

    /// What the driver says about it.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The architecture that device code is compiled for, with what only this generation has.
    pub fn architecture(&self) -> String {
        self.compiler.architecture().to_owned()
    }

    /// A kernel of device code, compiled when it is first asked for and kept on disk for later runs.
    ///
    /// The source is a constant text or a [`Source`], which carries the compiler's options; the name is that of an
    /// `extern "C" __global__` function in it.
    pub fn kernel(&self, source: impl Into<Source>, name: &'static str) -> GpuResult<Launch<'_>> {
        let source = source.into();
        let key = FunctionKey {
            text: (source.text.as_ptr(), source.text.len()),
            options: (source.options.as_ptr(), source.options.len()),
            headers: (source.headers.as_ptr(), source.headers.len()),
            name: (name.as_ptr(), name.len()),
        };
        let known = self.functions.borrow().get(&key).cloned();
        let function = match known {
            Some(function) => function,
            None => {
                let function = Rc::new(Function::load(self, self.module(source)?.as_ref(), name)?);
                self.functions.borrow_mut().insert(key, function.clone());
                function
            }
        };
        Ok(Launch::new(self, function))
    }

    fn module(&self, source: Source) -> GpuResult<Rc<Module>> {
        if let Some(module) = self.modules.borrow().get(&source) {
            return Ok(module.clone());
        }
        self.bind()?;
        let compiled = self.compiler.compile(&source)?;
        if let Some(folder) = self.dump.borrow().as_deref() {
            write_assembly(folder, &source, &compiled.ptx)?;
        }
        let module = Rc::new(Module::load(self, compiled)?);
        self.modules.borrow_mut().insert(source, module.clone());
        Ok(module)
    }

    /// Puts off sources that were never compiled from now on, or does not: calls that ask for one fail.
    pub(crate) fn collect_sources(&self, is_collecting: bool) {
        self.compiler.collect(is_collecting);
    }

    /// Whether a source was put off since this was last asked.
    pub(crate) fn has_put_off(&self) -> bool {
        self.compiler.has_put_off()
    }

    /// Compiles what was put off, side by side; tells how many of how many sources are done.
    pub(crate) fn compile_collected(&self, tell: &mut dyn FnMut(usize, usize)) {
        self.compiler.compile_collected(tell);
    }

    /// Writes the assembly of every kernel that is compiled from now on to a folder.
    pub fn dump_to(&self, folder: Option<PathBuf>) {
        *self.dump.borrow_mut() = folder;
    }

    /// An array of zeros.
    pub fn zeros<T: DeviceElement>(&self, len: usize) -> GpuResult<DeviceSlice<T>> {
        let slice = self.uninitialised(len)?;
        let bytes = len * size_of::<T>();
        self.fill(slice.device_pointer(), 0, bytes)?;
        Ok(slice)
    }

    /// An array for partial results, say, whose content is whatever the last call left there.
    ///
    /// It is kept when it is dropped, and lent again to the next call that asks for as much: only the first one pays for
    /// the allocation.
    pub fn scratch<T: DeviceElement>(&self, len: usize) -> GpuResult<Scratch<'_, T>> {
        Scratch::new(self, len)
    }

    /// An array with the content of a slice.
    pub fn upload<T: DeviceElement>(&self, host: &[T]) -> GpuResult<DeviceSlice<T>> {
        let mut slice = self.uninitialised(host.len())?;
        self.copy_to(host, &mut slice)?;
        Ok(slice)
    }

    /// The content of an array.
    pub fn download<T: DeviceElement>(&self, device: &DeviceSlice<T>) -> GpuResult<Vec<T>> {
        // SAFETY: every pattern of bits is an element.
        let mut host = vec![unsafe { std::mem::zeroed::<T>() }; device.len()];
        self.copy_from(device, &mut host)?;
        Ok(host)
    }

    /// Gives an array the content of a slice of the same length.
    pub fn copy_to<T: DeviceElement>(
        &self,
        host: &[T],
        device: &mut DeviceSlice<T>,
    ) -> GpuResult<()> {
        same_length(host.len(), device.len())?;
        if host.is_empty() {
            return Ok(());
        }
        if self.records_graph.get() {
            return Err(GpuError::Failed("a graph cannot copy from the host".into()));
        }
        let stream = self.stream.cu_stream();
        // SAFETY: both sides have the same length, and the array lives as long as its borrow. The stream records nothing, so the
        // driver has taken the bytes of ordinary memory over when the call returns.
        self.done("copying to the device", unsafe {
            result::memcpy_htod_async(device.device_pointer(), host, stream)
        })
    }

    /// Gives a slice the content of an array of the same length.
    pub fn copy_from<T: DeviceElement>(
        &self,
        device: &DeviceSlice<T>,
        host: &mut [T],
    ) -> GpuResult<()> {
        same_length(host.len(), device.len())?;
        if host.is_empty() {
            return Ok(());
        }
        let stream = self.stream.cu_stream();
        // SAFETY: both sides have the same length, every pattern of bits is an element, and the copy is waited for.
        let copied = unsafe { result::memcpy_dtoh_async(host, device.device_pointer(), stream) };
        self.done("copying to the host", copied)?;
        self.synchronize()
    }

    /// Gives an array the content of another one of the same length.
    pub fn copy_within_device<T: DeviceElement>(
        &self,
        from: &DeviceSlice<T>,
        to: &mut DeviceSlice<T>,
    ) -> GpuResult<()> {
        same_length(from.len(), to.len())?;
        let (from, bytes) = (from.device_pointer(), from.len() * size_of::<T>());
        if bytes == 0 {
            return Ok(());
        }
        self.count_operations(1);
        let stream = self.stream.cu_stream();
        // SAFETY: both arrays live as long as their borrows and have the same length.
        self.done("copying within the device", unsafe {
            result::memcpy_dtod_async(to.device_pointer(), from, bytes, stream)
        })
    }

    /// Waits until everything that was asked for is done. A variant need not: the runtime does.
    pub fn synchronize(&self) -> GpuResult<()> {
        let (start, mut polls) = (Instant::now(), 0u32);
        loop {
            // SAFETY: the stream lives as long as the device.
            match unsafe { sys::cuStreamQuery(self.stream.cu_stream()) } {
                CUresult::CUDA_SUCCESS => return Ok(()),
                CUresult::CUDA_ERROR_NOT_READY if start.elapsed() < PATIENCE => {
                    polls += 1;
                    // At first every microsecond counts; a kernel that takes seconds is not asked a million times.
                    if polls > 100_000 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                CUresult::CUDA_ERROR_NOT_READY => {
                    let text = format!("does not come back within {} s", PATIENCE.as_secs());
                    self.lose(&text);
                    return Err(GpuError::Failed(text));
                }
                code => return self.done("running on the device", Err(DriverError(code))),
            }
        }
    }

    /// Waits until nothing runs on any stream, its own or others.
    pub(crate) fn wait_until_idle(&self) -> GpuResult<()> {
        self.synchronize()?;
        self.bind()?;
        // SAFETY: the context of this device is the current one.
        self.done("running on the device", unsafe { sys::cuCtxSynchronize() }.result())
    }

    /// The stream that all work goes to, in cudarc's terms.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// The context, in cudarc's terms.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// cuBLAS on this device's stream, in cudarc's terms; [`DeviceSlice::device_pointer`] gives it its operands.
    pub fn blas(&self) -> GpuResult<&CudaBlas> {
        if let Some(blas) = self.blas.get() {
            return Ok(blas);
        }
        if !library::has_cublas() {
            return Err(GpuError::Failed(
                "no cuBLAS: libcublas is not found; install the CUDA toolkit".into(),
            ));
        }
        let blas = CudaBlas::new(self.stream.clone())
            .map_err(|error| GpuError::Failed(format!("cuBLAS does not start: {:?}", error.0)))?;
        Ok(self.blas.get_or_init(|| blas))
    }

    /// cuBLASLt on this device's stream: matrix products of all element types, 8-bit floats included.
    pub fn blas_lt(&self) -> GpuResult<&BlasLt> {
        if let Some(blas) = self.blas_lt.get() {
            return Ok(blas);
        }
        let blas = BlasLt::open(self)?;
        Ok(self.blas_lt.get_or_init(|| blas))
    }

    /// Bytes of device memory that could be had.
    pub fn free_bytes(&self) -> GpuResult<usize> {
        let free = self.context.mem_get_info();
        let (free, _) = free.map_err(|error| self.failure("asking for free memory", error))?;
        Ok(free)
    }

    /// Gives memory that is kept for later back to the device.
    pub(crate) fn reclaim(&self) -> GpuResult<()> {
        self.shelf.clear();
        self.synchronize()?;
        // SAFETY: the device is open, and what is in use stays.
        let trimmed = unsafe {
            result::device::get_default_mem_pool(self.context.cu_device())
                .and_then(|pool| result::mem_pool::trim_to(pool, 0))
        };
        self.done("giving memory back", trimmed)
    }

    /// Makes this context the one that the driver's calls of this thread are about.
    pub(super) fn bind(&self) -> GpuResult<()> {
        self.done("choosing a context", self.context.bind_to_thread())
    }

    /// Why nothing can be done here any more, if so: a kernel broke the context, or never came back.
    pub(crate) fn lost(&self) -> Option<String> {
        self.lost.borrow().clone()
    }

    /// Notes that nothing should be done here any more.
    pub(crate) fn lose(&self, why: &str) {
        self.lost.borrow_mut().get_or_insert_with(|| why.to_owned());
    }

    /// The number of the array that is made next.
    pub(crate) fn next_array(&self) -> u64 {
        self.ledger.next()
    }

    pub(super) fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn note_launch(&self, launch: impl FnOnce() -> Recorded) {
        self.count_operations(1);
        if let Some(recorded) = self.recorded.borrow_mut().as_mut() {
            recorded.push(launch());
        }
    }

    /// Notes whether the stream records a graph.
    pub(super) fn note_graph(&self, records: bool) {
        self.records_graph.set(records);
    }

    /// Notes that some operations were put on the stream.
    fn count_operations(&self, number: u64) {
        self.operations.set(self.operations.get() + number);
    }

    /// Operations that were put on the stream so far, as far as they are known here.
    pub(crate) fn operations(&self) -> u64 {
        self.operations.get()
    }

    /// What `code` launches.
    pub(crate) fn record<R>(&self, code: impl FnOnce() -> R) -> (R, Vec<Recorded>) {
        *self.recorded.borrow_mut() = Some(Vec::new());
        let result = code();
        (result, self.recorded.take().unwrap_or_default())
    }

    /// What came of a call of the driver's, in words. An error that breaks the context is remembered.
    pub(super) fn done<R>(&self, doing: &str, outcome: Result<R, DriverError>) -> GpuResult<R> {
        outcome.map_err(|error| self.failure(doing, error))
    }

    fn failure(&self, doing: &str, error: DriverError) -> GpuError {
        let failure = describe(doing, error);
        if STICKY.contains(&error.0) {
            self.lose(&failure.to_string());
        }
        failure
    }

    /// An array whose content is whatever was there.
    pub(super) fn uninitialised<T: DeviceElement>(&self, len: usize) -> GpuResult<DeviceSlice<T>> {
        let too_large = || {
            GpuError::Failed(format!(
                "{len} elements of {} are too many bytes",
                std::any::type_name::<T>()
            ))
        };
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        // The zone behind begins right after the last element, and ends where the next array may begin.
        let whole = guarded(bytes).ok_or_else(too_large)?;
        self.bind()?;
        // Taking the memory and giving it back are operations of the stream, too.
        self.count_operations(2);
        // SAFETY: the memory is given to an array that frees it.
        let base = unsafe { result::malloc_async(self.stream.cu_stream(), whole) };
        let base = match base {
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let free = self.free_bytes().unwrap_or(0);
                return Err(GpuError::Failed(format!(
                    "out of device memory: {} are wanted, and {} are free",
                    bytes_in_words(whole as u64),
                    bytes_in_words(free as u64)
                )));
            }
            other => self.done("allocating device memory", other)?,
        };
        let allocation = Allocation::new(base, bytes, self.ledger.clone(), self.stream.clone());
        self.fill(base, PATTERN, GUARD)?;
        self.fill(base + (GUARD + bytes) as u64, PATTERN, whole - GUARD - bytes)?;
        Ok(DeviceSlice::new(allocation, len))
    }

    pub(super) fn fill(&self, start: u64, byte: u8, bytes: usize) -> GpuResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.count_operations(1);
        let stream = self.stream.cu_stream();
        // SAFETY: the caller owns the memory.
        self.done("filling device memory", unsafe {
            result::memset_d8_async(start, byte, bytes, stream)
        })
    }

    /// The first guard zone that was written to, of the arrays whose numbers are meant. Looking at one takes two copies, and a
    /// worker of a large suite has thousands.
    pub(crate) fn trespass(&self, is_meant: &dyn Fn(u64) -> bool) -> GpuResult<Option<Trespass>> {
        for (array, zone) in self.ledger.zones().into_iter().filter(|(array, _)| is_meant(*array)) {
            let before = self.changed(zone.start - GUARD as u64)?;
            let after = self.changed(zone.start + zone.bytes as u64)?;
            let found = match (before.last(), after.first()) {
                (_, Some(first)) => Some((*first as i64, after.len())),
                (Some(last), None) => Some((*last as i64 - GUARD as i64, before.len())),
                (None, None) => None,
            };
            if let Some((distance, changed)) = found {
                self.mend(zone)?;
                return Ok(Some(Trespass { array, bytes: zone.bytes, distance, changed }));
            }
        }
        Ok(None)
    }

    /// Offsets of bytes of a guard zone that do not hold the pattern.
    fn changed(&self, start: u64) -> GpuResult<Vec<usize>> {
        let mut bytes = vec![0u8; GUARD];
        // SAFETY: the zone belongs to an array that exists, and the copy is waited for.
        let copied =
            unsafe { result::memcpy_dtoh_async(&mut bytes, start, self.stream.cu_stream()) };
        self.done("reading a guard zone", copied)?;
        self.synchronize()?;
        Ok(bytes.iter().enumerate().filter(|(_, b)| **b != PATTERN).map(|(i, _)| i).collect())
    }

    fn mend(&self, zone: Zone) -> GpuResult<()> {
        self.fill(zone.start - GUARD as u64, PATTERN, GUARD)?;
        self.fill(zone.start + zone.bytes as u64, PATTERN, GUARD)
    }
}

/// The architecture of a compute capability, with what only this generation has.
fn architecture(compute_capability: &str) -> String {
    let digits: String = compute_capability.split('.').collect();
    // From 9.0 on, some instructions exist in code for exactly this architecture only.
    let specific = if compute_capability.parse().unwrap_or(0.0) >= 9.0 { "a" } else { "" };
    format!("sm_{digits}{specific}")
}

/// Memory that was freed stays with this process, so that allocating it again costs no call of the system.
fn keep_pool(context: &CudaContext) -> Result<(), DriverError> {
    let device = context.cu_device();
    let mut all = u64::MAX;
    // SAFETY: the device is open, and the attribute is an integer of 64 bits.
    unsafe {
        let pool = result::device::get_default_mem_pool(device)?;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut all).cast::<c_void>()).result()
    }
}

fn same_length(host: usize, device: usize) -> GpuResult<()> {
    match host == device {
        true => Ok(()),
        false => Err(GpuError::Failed(format!(
            "an array of {device} elements cannot take over {host}: lengths must be the same"
        ))),
    }
}

fn write_assembly(folder: &Path, source: &Source, ptx: &str) -> GpuResult<()> {
    let stem = source.name.trim_end_matches(".cu").replace(['/', '\\'], "_");
    let key = super::cache::fingerprint([source.text.as_bytes()]);
    let path = folder.join(format!("{stem}-{:08x}.ptx", key as u32));
    std::fs::create_dir_all(folder)
        .and_then(|()| crate::files::replace(&path, ptx.as_bytes()))
        .map_err(|error| GpuError::Failed(format!("{} cannot be written: {error}", path.display())))
}
