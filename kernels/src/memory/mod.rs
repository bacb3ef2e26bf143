//! Memory itself: what it takes to copy it, to fill it and to get hold of it.
//!
//! Copying and filling do nothing but move bytes, so that they are the ceilings of every kernel that memory bounds.

mod allocation;

pub use allocation::*;

use kbench::prelude::*;
use rayon::prelude::*;

use crate::shared::{COMMON, streaming, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../../cuda/memory.cu")).named("memory.cu").headers(COMMON);

/// Elements of a task: longer than elsewhere, as a core runs through memory and keeps nothing of it.
const STRETCH: usize = 1 << 16;

/// Vectors of four elements that a thread of device code copies.
const COPY_PACKS: usize = 2;

/// Vectors of four elements that a thread of device code fills.
const FILL_PACKS: usize = 4;

/// Threads of a block of device code.
const THREADS: usize = 256;

/// out ← x
#[kernel_bench(
    sizes = ["tiny" => (n = 1 << 12), "small" => (n = 1 << 16), "medium" => (n = 1 << 20), "large" => (n = 1 << 23)],
    inputs = |n| (uniform(n), zeros(n)),
    reference = copy_elements,
)]
pub fn copy(x: &[f32], out: &mut [f32]) {
    out.copy_from_slice(x);
}

/// [`copy`] past the caches: what is written need not be read first, which pays when it is not wanted again soon.
#[kernel_bench(of = copy, name = "copy_streaming")]
pub fn copy_streaming(x: &[f32], out: &mut [f32]) {
    streaming::copy(x, out);
}

/// [`copy`] on all cores.
#[kernel_bench(of = copy, parallel, threshold = tuned(500_000))]
pub fn copy_rayon(x: &[f32], out: &mut [f32]) {
    out.par_chunks_mut(STRETCH).zip(x.par_chunks(STRETCH)).for_each(|(out, x)| copy(x, out));
}

/// [`copy`] on all cores, past the caches.
#[kernel_bench(of = copy, parallel)]
pub fn copy_streaming_rayon(x: &[f32], out: &mut [f32]) {
    out.par_chunks_mut(STRETCH)
        .zip(x.par_chunks(STRETCH))
        .for_each(|(out, x)| streaming::copy(x, out));
}

/// [`copy`] on a GPU.
#[kernel_bench(of = copy, cuda)]
pub fn copy_cuda(gpu: &Gpu, x: &DeviceSlice<f32>, out: &mut DeviceSlice<f32>) -> GpuResult<()> {
    let n = x.len();
    let threads = n.div_ceil(4 * COPY_PACKS);
    gpu.kernel(SOURCE, "copy")?.over(threads, THREADS).arg(x).arg(out).arg(n).launch()
}

/// [`copy`] on a GPU, by its driver.
#[kernel_bench(of = copy, cuda)]
pub fn copy_driver(gpu: &Gpu, x: &DeviceSlice<f32>, out: &mut DeviceSlice<f32>) -> GpuResult<()> {
    gpu.copy_within_device(x, out)
}

fn copy_elements(x: &[f64], out: &mut [f64]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = *x;
    }
}

/// out ← value
#[kernel_bench(
    sizes = ["tiny" => (n = 1 << 12), "small" => (n = 1 << 16), "medium" => (n = 1 << 20), "large" => (n = 1 << 23)],
    inputs = |n| (0.25, zeros(n)),
    reference = fill_elements,
)]
pub fn fill(value: f32, out: &mut [f32]) {
    fill_body(value, out);
}

vectorise! {
    fn fill_body(value: f32, out: &mut [f32]) {
        out.fill(value);
    }
}

/// [`fill`] past the caches.
#[kernel_bench(of = fill, name = "fill_streaming")]
pub fn fill_streaming(value: f32, out: &mut [f32]) {
    streaming::fill(value, out);
}

/// [`fill`] on all cores.
#[kernel_bench(of = fill, parallel, threshold = tuned(500_000))]
pub fn fill_rayon(value: f32, out: &mut [f32]) {
    out.par_chunks_mut(STRETCH).for_each(|out| fill(value, out));
}

/// [`fill`] on all cores, past the caches.
#[kernel_bench(of = fill, parallel)]
pub fn fill_streaming_rayon(value: f32, out: &mut [f32]) {
    out.par_chunks_mut(STRETCH).for_each(|out| streaming::fill(value, out));
}

/// [`fill`] on a GPU.
#[kernel_bench(of = fill, cuda)]
pub fn fill_cuda(gpu: &Gpu, value: f32, out: &mut DeviceSlice<f32>) -> GpuResult<()> {
    let n = out.len();
    let threads = n.div_ceil(4 * FILL_PACKS);
    gpu.kernel(SOURCE, "fill")?.over(threads, THREADS).arg(value).arg(out).arg(n).launch()
}

fn fill_elements(value: f64, out: &mut [f64]) {
    for element in out {
        *element = value;
    }
}
