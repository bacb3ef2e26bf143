//! Kernels on a GPU whose difference is known, and kernels that do wrong: what kbench's promises are tried on where there
//! is a device.

use std::cell::RefCell;

use kbench::cuda::devices;
use kbench::prelude::*;
use kbench::{Declined, GpuError};

const SOURCE: Source = Source::new(include_str!("../../gpu/subject.cu")).named("subject.cu");

/// Rounds of the arithmetic kernel; one per cent of them is a whole number.
const ROUNDS: u32 = 20_000;

/// Words of 16 bytes that the memory kernel reads: 100 MB, more than a cache holds.
const WORDS: usize = 6_250_000;

/// y ← 2·x, by so many rounds of arithmetic.
fn arithmetic_by(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    y: &mut DeviceSlice<f32>,
    rounds: u32,
) -> GpuResult<()> {
    let n = x.len();
    gpu.kernel(SOURCE, "arithmetic")?.over(n, 256).arg(x).arg(y).arg(n).arg(rounds).launch()
}

/// y ← 2·x, bound by arithmetic.
#[kernel_bench(sizes = [131_072, 132_096, 133_120, 134_144, 135_168], inputs = |n| (uniform(n), zeros(n)), cuda, reference = twice_f64)]
pub fn arithmetic(gpu: &Gpu, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
    arithmetic_by(gpu, x, y, ROUNDS)
}

/// The same once more.
#[kernel_bench(of = arithmetic, cuda, name = "twin")]
pub fn arithmetic_twin(gpu: &Gpu, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
    arithmetic_by(gpu, x, y, ROUNDS)
}

/// With one per cent more work.
#[kernel_bench(of = arithmetic, cuda, name = "heavier")]
pub fn arithmetic_heavier(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    y: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    arithmetic_by(gpu, x, y, ROUNDS + ROUNDS / 100)
}

thread_local! {
    /// What the memory kernels read: made once in every process, and not part of the data that is checked.
    static ARRAY: RefCell<Option<DeviceSlice<u32>>> = const { RefCell::new(None) };
}

thread_local! {
    /// The same device once more, which has a stream of its own.
    static ELSEWHERE: RefCell<Option<Gpu>> = const { RefCell::new(None) };
}

/// y ← 2·x beside reading so many words of an array.
fn memory_by(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    y: &mut DeviceSlice<f32>,
    words: usize,
) -> GpuResult<()> {
    ARRAY.with_borrow_mut(|array| {
        let array = match array {
            Some(array) => array,
            None => array.insert(gpu.zeros(4 * (WORDS + WORDS / 100))?),
        };
        let kernel = gpu.kernel(SOURCE, "memory")?.grid(1024).block(256);
        kernel.arg(x).arg(y).arg(x.len()).arg(&*array).arg(words).launch()
    })
}

/// y ← 2·x, bound by memory.
#[kernel_bench(
    sizes = [1024, 1280, 1536, 1792, 2048],
    inputs = |n| (uniform(n), zeros(n)),
    cuda,
    reference = twice_f64,
    bytes = |n| 16 * WORDS + 8 * n,
)]
pub fn memory(gpu: &Gpu, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
    memory_by(gpu, x, y, WORDS)
}

/// The same once more.
#[kernel_bench(of = memory, cuda, name = "twin")]
pub fn memory_twin(gpu: &Gpu, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
    memory_by(gpu, x, y, WORDS)
}

/// With one per cent more work.
#[kernel_bench(of = memory, cuda, name = "heavier")]
pub fn memory_heavier(gpu: &Gpu, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
    memory_by(gpu, x, y, WORDS + WORDS / 100)
}

/// y ← 2·x on the host, the base of those that do wrong.
#[kernel_bench(sizes = [1000], inputs = |n| (uniform(n), zeros(n)), reference = twice_f64)]
pub fn faults(x: &[f32], y: &mut [f32]) {
    x.iter().zip(y).for_each(|(x, y)| *y = 2.0 * x);
}

macro_rules! faulty {
    ($($(#[$doc:meta])* $name:ident($gpu:ident, $x:ident, $y:ident) $body:block)*) => {$(
        $(#[$doc])*
        #[kernel_bench(of = faults, cuda)]
        pub fn $name($gpu: &Gpu, $x: &DeviceSlice<f32>, $y: &mut DeviceSlice<f32>) -> GpuResult<()> $body
    )*};
}

faulty! {
    /// Does what it should.
    right(gpu, x, y) {
        gpu.kernel(SOURCE, "twice")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()
    }

    /// Waits for the device, as a careless author does.
    waits(gpu, x, y) {
        gpu.kernel(SOURCE, "twice")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()?;
        gpu.synchronize()
    }

    /// Does most of its work where nobody times it.
    escapes(gpu, x, y) {
        ELSEWHERE.with_borrow_mut(|elsewhere| {
            let other = match elsewhere {
                Some(known) => known,
                None => {
                    let opened = Gpu::open(gpu.info().ordinal);
                    elsewhere.insert(opened.map_err(|why| GpuError::Failed(why.to_string()))?)
                }
            };
            // Work that fills all multiprocessors would hold up the kernel below, and be part of its time.
            other.kernel(SOURCE, "dawdle")?.launch()
        })?;
        gpu.kernel(SOURCE, "twice")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()
    }

    /// Writes beside its output.
    out_of_bounds(gpu, x, y) {
        gpu.kernel(SOURCE, "out_of_bounds")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()
    }

    /// Leaves the last elements alone.
    unwritten_tail(gpu, x, y) {
        let kernel = gpu.kernel(SOURCE, "unwritten_tail")?.over(x.len().div_ceil(4), 256);
        kernel.arg(x).arg(y).arg(x.len()).launch()
    }

    /// Gives another answer each time.
    race(gpu, x, y) {
        gpu.kernel(SOURCE, "race")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()
    }

    /// Never ends.
    forever(gpu, x, y) {
        let flag = gpu.zeros::<u32>(1)?;
        gpu.kernel(SOURCE, "forever")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).arg(&flag).launch()
    }

    /// Breaks the context.
    illegal_address(gpu, x, y) {
        gpu.kernel(SOURCE, "illegal_address")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()
    }

    /// Overwrites its input.
    changes_input(gpu, x, y) {
        gpu.kernel(SOURCE, "changes_input")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()
    }

    /// Asks for more memory than there is.
    greedy(gpu, x, y) {
        let _all = gpu.zeros::<f64>(1 << 40)?;
        gpu.kernel(SOURCE, "twice")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()
    }

    /// Forgets an argument.
    forgetful(gpu, x, y) {
        gpu.kernel(SOURCE, "twice")?.over(x.len(), 256).arg(x).arg(y).launch()
    }

    /// Does not compile.
    misspelt(gpu, x, y) {
        const MISSPELT: Source = Source::new("extern \"C\" __global__ void twice(float* x) {\n    x = unknown;\n}\n").named("misspelt.cu");
        gpu.kernel(MISSPELT, "twice")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()
    }
}

/// y ← 2·y + x, which needs fresh data for every call.
#[kernel_bench(sizes = [1000], inputs = |n| (uniform(n), uniform(n)), in_place)]
pub fn fresh(x: &[f32], y: &mut [f32]) {
    x.iter().zip(y).for_each(|(x, y)| *y = 2.0 * *y + x);
}

/// The same on a GPU.
#[kernel_bench(of = fresh, cuda)]
pub fn fresh_cuda(gpu: &Gpu, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
    gpu.kernel(SOURCE, "grow")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).arg(2.0f32).launch()
}

/// y ← x − y, of which a call on the last result is as good.
#[kernel_bench(sizes = [1000], inputs = |n| (uniform(n), uniform(n)), in_place = reuse)]
pub fn reused(x: &[f32], y: &mut [f32]) {
    x.iter().zip(y).for_each(|(x, y)| *y = x - *y);
}

/// The same on a GPU.
#[kernel_bench(of = reused, cuda)]
pub fn reused_cuda(gpu: &Gpu, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
    gpu.kernel(SOURCE, "grow")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).arg(-1.0f32).launch()
}

/// Looks for a device on its own, as a function of the host can.
#[kernel_bench(sizes = [1], inputs = |_| ())]
pub fn looks() -> Result<bool, Declined> {
    devices().map(|found| !found.is_empty()).map_err(|reason| Declined(reason.to_string()))
}

fn twice_f64(x: &[f64], y: &mut [f64]) {
    x.iter().zip(y).for_each(|(x, y)| *y = 2.0 * x);
}

kbench::main!(measure);
