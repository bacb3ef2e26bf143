//! What it takes to get a processor or a GPU to work: finding out what it can do, making threads, contexts and streams,
//! compiling device code, launching it.
//!
//! All but a launch is work of the host, and is timed by its clock: those kernels open a device themselves, and decline
//! where there is none, or where `--no-gpu` leaves it alone.

mod features;
#[cfg(feature = "cuda")]
mod host;

pub use features::*;
#[cfg(feature = "cuda")]
pub use host::*;

use kbench::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::shared::COMMON;

const SOURCE: Source =
    Source::new(include_str!("../../cuda/device.cu")).named("device.cu").headers(COMMON);

/// Starts a pool of threads, has each of them do something and lets it go; gives the number of threads that did.
#[kernel_bench(sizes = [1, 2, 4, 8], inputs = |threads| threads, reference = all_threads)]
pub fn create_pool(threads: usize) -> Result<usize, rayon::ThreadPoolBuildError> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    Ok(pool.broadcast(|_| ()).len())
}

fn all_threads(threads: usize) -> usize {
    threads
}

/// Launches a kernel that does next to nothing: out ← number of its blocks.
#[kernel_bench(
    cuda,
    sizes = [1, 128, 1024],
    inputs = |blocks| (blocks, zeros(1)),
    reference = number_of_blocks,
)]
pub fn launch(gpu: &Gpu, blocks: usize, out: &mut DeviceSlice<u32>) -> GpuResult<()> {
    gpu.kernel(SOURCE, "count_blocks")?.grid(blocks).block(32).arg(out).launch()
}

fn number_of_blocks(blocks: usize, out: &mut [u32]) {
    out[0] = blocks as u32;
}
