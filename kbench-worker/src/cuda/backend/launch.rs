//! Launching kernels of device code.

use std::cell::Cell;
use std::ffi::{CString, c_void};
use std::rc::Rc;

use cudarc::driver::sys::{self, CUfunction_attribute as Attribute, CUresult};
use cudarc::driver::{DriverError, result};

use super::compile::Compiled;
use super::gpu::Gpu;
use super::memory::{DeviceElement, DeviceSlice, DeviceView, DeviceViewMut};
use super::scratch::Scratch;
use crate::cuda::{DeviceKernel, GpuError, GpuResult};
use crate::value::{F8E4M3, F8E5M2};

/// Shared memory that a block gets without asking for more.
const USUAL_SHARED: u32 = 48 << 10;

/// Blocks of a grid in each direction, on every device that CUDA knows today.
const MOST_BLOCKS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Compiled device code that is loaded; it stays loaded as long as the context.
pub(super) struct Module {
    module: sys::CUmodule,
    compiled: Compiled,
}

impl Module {
    pub(super) fn load(gpu: &Gpu, compiled: Compiled) -> GpuResult<Self> {
        // SAFETY: the image is what NVRTC gave, which is a whole cubin.
        let module = unsafe { result::module::load_data(compiled.cubin.as_ptr().cast::<c_void>()) };
        Ok(Module { module: gpu.done("loading compiled device code", module)?, compiled })
    }
}

/// An entry point of device code.
pub(super) struct Function {
    handle: sys::CUfunction,
    name: &'static str,
    /// Bytes of every parameter.
    parameters: Vec<usize>,
    registers: u32,
    static_shared: u32,
    local_bytes: u32,
    spill_bytes: Option<u32>,
    most_threads: u32,
    /// Dynamic shared memory that it may have.
    granted_shared: Cell<u32>,
}

impl Function {
    pub(super) fn load(gpu: &Gpu, module: &Module, name: &'static str) -> GpuResult<Self> {
        let text = CString::new(name)
            .map_err(|_| GpuError::Failed("a name contains a zero byte".into()))?;
        // SAFETY: the module is loaded.
        let handle = match unsafe { result::module::get_function(module.module, text) } {
            Err(error) if error.0 == CUresult::CUDA_ERROR_NOT_FOUND => {
                return Err(GpuError::Failed(format!(
                    "there is no kernel `{name}` in this source: it must be `extern \"C\" __global__`; {}",
                    entry_points(&module.compiled.ptx)
                )));
            }
            other => gpu.done("finding a kernel", other)?,
        };
        let attribute = |which| {
            // SAFETY: the function belongs to a module that stays loaded.
            let value = unsafe { result::function::get_function_attribute(handle, which) };
            gpu.done("asking for a kernel's resources", value).map(|value| value as u32)
        };
        let static_shared = attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        Ok(Function {
            handle,
            name,
            parameters: parameters(gpu, handle)?,
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            static_shared,
            local_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            spill_bytes: module.compiled.spill_bytes(name),
            most_threads: attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            granted_shared: Cell::new(USUAL_SHARED.saturating_sub(static_shared)),
        })
    }

    /// Lets the kernel have more shared memory than usual.
    fn grant_shared(&self, gpu: &Gpu, bytes: u32) -> GpuResult<()> {
        if bytes <= self.granted_shared.get() {
            return Ok(());
        }
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function belongs to a module that stays loaded.
        gpu.done("asking for shared memory", unsafe {
            result::function::set_function_attribute(self.handle, attribute, bytes as i32)
        })?;
        self.granted_shared.set(bytes);
        Ok(())
    }

    /// Warps of so many threads each that fit on a multiprocessor at once, as a share of those that it can hold.
    fn occupancy(&self, gpu: &Gpu, threads: u32, shared: u32) -> f64 {
        // SAFETY: the function belongs to a module that stays loaded.
        let blocks = unsafe {
            result::occupancy::max_active_block_per_multiprocessor(
                self.handle,
                threads as i32,
                shared as usize,
            )
        };
        let which = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
        let most = gpu.context().attribute(which).unwrap_or(2048);
        f64::from(blocks.unwrap_or(0)) * f64::from(threads.next_multiple_of(32)) / f64::from(most)
    }
}

/// The names that assembly gives to its entry points, in a sentence.
fn entry_points(ptx: &str) -> String {
    let names: Vec<&str> = ptx
        .lines()
        .filter_map(|line| line.split(".entry ").nth(1)?.split(['(', ' ']).next())
        .collect();
    if names.is_empty() { "it has none".into() } else { format!("it has: {}", names.join(", ")) }
}

/// Bytes of every parameter of a kernel.
fn parameters(gpu: &Gpu, handle: sys::CUfunction) -> GpuResult<Vec<usize>> {
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function belongs to a module that stays loaded; both results are integers.
        match unsafe { sys::cuFuncGetParamInfo(handle, sizes.len(), &mut offset, &mut size) } {
            CUresult::CUDA_SUCCESS => sizes.push(size),
            // There are no more.
            CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(sizes),
            code => gpu.done("asking for a kernel's parameters", Err(DriverError(code)))?,
        }
    }
}

/// What one launch was.
#[derive(Clone)]
pub(crate) struct Recorded {
    function: Rc<Function>,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
}

/// Launches of one call, by kernel, in the order of their first.
pub(crate) fn summarise(gpu: &Gpu, recorded: &[Recorded]) -> Vec<DeviceKernel> {
    let mut kernels: Vec<(&Rc<Function>, DeviceKernel)> = Vec::new();
    for Recorded { function, grid, block, shared } in recorded {
        if let Some((_, kernel)) = kernels.iter_mut().find(|(known, _)| Rc::ptr_eq(known, function))
        {
            kernel.launches += 1;
            (kernel.grid, kernel.block) = (*grid, *block);
            continue;
        }
        let occupancy = function.occupancy(gpu, block.iter().product(), *shared);
        let kernel = DeviceKernel {
            name: function.name.to_owned(),
            launches: 1,
            grid: *grid,
            block: *block,
            registers: function.registers,
            shared_bytes: function.static_shared + shared,
            local_bytes: function.local_bytes,
            spill_bytes: function.spill_bytes,
            occupancy,
        };
        kernels.push((function, kernel));
    }
    kernels.into_iter().map(|(_, kernel)| kernel).collect()
}

/// A kernel that is about to be launched: its grid, its blocks and its arguments.
///
/// ```no_run
/// # use kbench_worker::cuda::{DeviceSlice, Gpu, GpuResult};
/// # fn launch(gpu: &Gpu, source: &'static str, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
/// gpu.kernel(source, "double")?.grid(64).block((32, 8)).arg(x).arg(y).arg(x.len()).launch()
/// # }
/// ```
///
/// What runs on the device is not Rust, and can write anywhere on the device: the runtime looks for that when it checks
/// a variant, and keeps it from harming anything but its own process.
#[must_use = "a kernel runs when it is launched"]
pub struct Launch<'g> {
    gpu: &'g Gpu,
    function: Rc<Function>,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    arguments: Words,
}

impl<'g> Launch<'g> {
    pub(super) fn new(gpu: &'g Gpu, function: Rc<Function>) -> Self {
        let arguments = Words::default();
        Launch { gpu, function, grid: [1; 3], block: [1; 3], shared: 0, arguments }
    }

    /// Blocks: a number, or a pair or triple of them.
    pub fn grid(self, blocks: impl Dimensions) -> Self {
        Launch { grid: blocks.dimensions(), ..self }
    }

    /// Threads of a block: a number, or a pair or triple of them.
    pub fn block(self, threads: impl Dimensions) -> Self {
        Launch { block: threads.dimensions(), ..self }
    }

    /// One thread for each of so many elements, in blocks of `threads`.
    pub fn over(self, elements: usize, threads: usize) -> Self {
        self.grid(elements.div_ceil(threads.max(1)).max(1)).block(threads)
    }

    /// Bytes of dynamic shared memory of a block.
    pub fn shared(self, bytes: usize) -> Self {
        Launch { shared: bytes.try_into().unwrap_or(u32::MAX), ..self }
    }

    /// The next argument: an array or a view of one, or a number of exactly the type that the kernel takes (`usize` is
    /// `size_t`).
    pub fn arg(mut self, argument: impl KernelArgument) -> Self {
        argument.push(&mut self.arguments);
        self
    }

    /// Launches it. It runs when everything before it on the device is done; this does not wait for it.
    pub fn launch(mut self) -> GpuResult<()> {
        self.check()?;
        let Launch { gpu, function, grid, block, shared, .. } = &self;
        function.grant_shared(gpu, *shared)?;
        let (handle, stream) = (function.handle, gpu.stream().cu_stream());
        let (grid, block, shared) = (*grid, *block, *shared);
        let mut pointers = self.arguments.pointers();
        // SAFETY: number and sizes of the arguments are those of the kernel, and all of them outlive the call, which copies
        // them. What the kernel does on the device is up to its author.
        let launched = unsafe {
            result::launch_kernel(handle, grid.into(), block.into(), shared, stream, &mut pointers)
        };
        let Launch { gpu, function, .. } = self;
        gpu.done(&format!("launching `{}`", function.name), launched)?;
        gpu.note_launch(|| Recorded { function: function.clone(), grid, block, shared });
        Ok(())
    }

    /// Mistakes that the driver would tell in fewer words, or not at all.
    fn check(&self) -> GpuResult<()> {
        let Launch { function, grid, block, .. } = self;
        let name = function.name;
        check_grid(*grid).map_err(|wrong| GpuError::Failed(format!("`{name}`: {wrong}")))?;
        let (given, taken) = (self.arguments.sizes.len(), function.parameters.len());
        if given != taken {
            return Err(GpuError::Failed(format!(
                "`{name}` takes {taken} argument(s), and {given} are given"
            )));
        }
        let sizes = self.arguments.sizes.iter().zip(&function.parameters).enumerate();
        if let Some((index, (given, taken))) = sizes.into_iter().find(|(_, (g, t))| g != t) {
            return Err(GpuError::Failed(format!(
                "argument {} of `{name}` has {taken} bytes, and {given} are given; `usize` is `size_t`, `u32` is `unsigned`",
                index + 1
            )));
        }
        let threads: u64 = block.iter().map(|n| u64::from(*n)).product();
        if threads > u64::from(function.most_threads) {
            return Err(GpuError::Failed(format!(
                "`{name}` can have {} threads in a block, not {threads}",
                function.most_threads
            )));
        }
        Ok(())
    }
}

/// A grid that no device takes, in words.
fn check_grid(grid: [u32; 3]) -> Result<(), String> {
    for (direction, (blocks, most)) in grid.into_iter().zip(MOST_BLOCKS).enumerate() {
        if blocks == 0 {
            return Err(format!(
                "a grid of {grid:?} has no block; where there is no work, launch nothing"
            ));
        }
        if blocks > most {
            let first = MOST_BLOCKS[0];
            return Err(format!(
                "a grid of {grid:?} has more blocks in direction {} than the {most} that a device takes; the first takes {first}",
                direction + 1
            ));
        }
    }
    Ok(())
}

/// Up to three numbers.
pub trait Dimensions {
    /// All three; 1 for those that are not given.
    fn dimensions(self) -> [u32; 3];
}

/// A count that the driver will refuse by itself when it is too large.
fn narrow(count: usize) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}

impl Dimensions for usize {
    fn dimensions(self) -> [u32; 3] {
        [narrow(self), 1, 1]
    }
}

impl Dimensions for (usize, usize) {
    fn dimensions(self) -> [u32; 3] {
        [narrow(self.0), narrow(self.1), 1]
    }
}

impl Dimensions for (usize, usize, usize) {
    fn dimensions(self) -> [u32; 3] {
        [narrow(self.0), narrow(self.1), narrow(self.2)]
    }
}

/// The bytes of all arguments, each beginning at a multiple of eight.
#[derive(Default)]
pub struct Words {
    words: Vec<u64>,
    starts: Vec<usize>,
    sizes: Vec<usize>,
}

impl Words {
    /// Appends the bytes of a value.
    fn push(&mut self, bytes: &[u8]) {
        self.starts.push(self.words.len());
        self.sizes.push(bytes.len());
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u64::from_ne_bytes(word));
        }
    }

    fn pointers(&mut self) -> Vec<*mut c_void> {
        let words = self.words.as_mut_ptr();
        // SAFETY: every start is an index of the words, or their end for a value without bytes.
        self.starts.iter().map(|start| unsafe { words.add(*start) }.cast::<c_void>()).collect()
    }
}

/// What a kernel of device code can be given.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given to a kernel of device code",
    note = "arrays on the device, views of them, and numbers can"
)]
pub trait KernelArgument {
    /// Appends its bytes.
    #[doc(hidden)]
    fn push(&self, words: &mut Words);
}

macro_rules! number_argument {
    ($($type:ty)*) => {$(
        impl KernelArgument for $type {
            fn push(&self, words: &mut Words) {
                words.push(&self.to_ne_bytes());
            }
        }
    )*};
}

number_argument! { f32 f64 half::f16 half::bf16 i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

macro_rules! tiny_argument {
    ($($type:ty)*) => {$(
        impl KernelArgument for $type {
            fn push(&self, words: &mut Words) {
                words.push(&[self.to_bits()]);
            }
        }
    )*};
}

tiny_argument! { F8E4M3 F8E5M2 }

macro_rules! array_argument {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> KernelArgument for $type {
            fn push(&self, words: &mut Words) {
                words.push(&self.device_pointer().to_ne_bytes());
            }
        }
    )*};
}

array_argument! {
    [T] &DeviceSlice<T>;
    [T] &mut DeviceSlice<T>;
    [T] DeviceView<'_, T>;
    [T] DeviceViewMut<'_, T>;
    [T: DeviceElement] &Scratch<'_, T>;
    [T: DeviceElement] &mut Scratch<'_, T>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_bytes_and_sizes() {
        let mut words = Words::default();
        1.5f32.push(&mut words);
        7usize.push(&mut words);
        3u8.push(&mut words);
        assert_eq!(words.sizes, [4, 8, 1]);
        let pointers = words.pointers();
        // SAFETY: each pointer is to the value that was pushed.
        let (a, n) = unsafe { (*pointers[0].cast::<f32>(), *pointers[1].cast::<usize>()) };
        assert_eq!((a, n), (1.5, 7));
    }

    #[test]
    fn entry_points_are_named() {
        let ptx = ".visible .entry saxpy(\n.param .f32 a\n)\n.visible .entry add(";
        assert_eq!(entry_points(ptx), "it has: saxpy, add");
        assert_eq!(entry_points(""), "it has none");
    }

    #[test]
    fn a_grid_that_no_device_takes_is_told_with_its_limit() {
        assert_eq!(check_grid([i32::MAX as u32, 65_535, 65_535]), Ok(()));
        let too_many = check_grid([1, 1, 65_536]).expect_err("too many");
        assert!(too_many.contains("direction 3 than the 65535"), "{too_many}");
        let none = check_grid([4, 0, 1]).expect_err("none");
        assert!(none.contains("has no block"), "{none}");
    }

    #[test]
    fn dimensions_fill_up_with_ones() {
        assert_eq!(64.dimensions(), [64, 1, 1]);
        assert_eq!((32, 8).dimensions(), [32, 8, 1]);
        assert_eq!(usize::MAX.dimensions()[0], u32::MAX);
    }
}
