//! What a device is capable of, measured: no kernel should be faster than this.

use cudarc::driver::sys;

use super::blas::MatrixProduct;
use super::cache;
use super::gpu::Gpu;
use super::memory::{DeviceElement, DeviceSlice};
use super::stopwatch::{INSTRUMENTS, Queue, Stopwatch};
use crate::cuda::{Ceilings, GpuError, GpuResult, TypeRate};
use crate::json;
use crate::value::{Element, F8E4M3};

/// Bytes that are read, written or copied: many times what caches hold.
const LARGE: usize = 2 << 30;

/// Rows and columns of the matrices.
const MATRIX: usize = 8192;

/// The same for f64 and f32, which take long.
const SLOW_MATRIX: usize = 4096;

/// Spans of which the median counts.
const SPANS: usize = 9;

/// What the file with ceilings is named after: a change here makes every machine measure again.
const EDITION: u32 = 1;

impl Stopwatch {
    /// What this device is capable of: measured now, or kept from an earlier run with the same device and driver.
    pub fn ceilings(&self) -> GpuResult<Ceilings> {
        let info = self.gpu().info();
        let driver = info.driver.as_deref().unwrap_or(&info.cuda);
        let name = format!("ceilings/{}-{driver}-{EDITION}.json", info.uuid);
        let kept = cache::read(&name).and_then(|kept| String::from_utf8(kept).ok());
        let kept = kept.and_then(|kept| json::parse(&kept).ok());
        let kept = kept.and_then(|kept| json::read(&kept).ok());
        if let Some(ceilings) = kept {
            return Ok(ceilings);
        }
        let ceilings = self.measure_ceilings()?;
        // What was measured on a device that others use is no ceiling.
        let is_shared = info.other_processes.is_some_and(|others| others > 0);
        if let Some(text) = serde_json::to_vec_pretty(&ceilings).ok().filter(|_| !is_shared) {
            cache::write(&name, &text);
        }
        Ok(ceilings)
    }

    fn measure_ceilings(&self) -> GpuResult<Ceilings> {
        let gpu = self.gpu();
        // What kernels read at once.
        let large = LARGE.min(gpu.free_bytes()? / 8) & !15;
        let [copy, read, fill] = self.bandwidths(large, 4)?;
        let l2_bytes = gpu.info().l2_bytes;
        // An eighth of the cache: it is divided in parts, each of which may hold copies of its own.
        let near = self.near_bandwidth(l2_bytes as usize / 8)?;
        Ok(Ceilings {
            copy_bytes_per_s: copy,
            memory_bytes_per_s: copy.max(read).max(fill),
            l2_bytes_per_s: near,
            l2_bytes,
            matrix: self.matrix_rates(),
        })
    }

    /// Bytes per second of copying, reading and filling arrays of some bytes, a multiple of 16.
    fn bandwidths(&self, bytes: usize, calls: u64) -> GpuResult<[f64; 3]> {
        let gpu = self.gpu();
        let (from, to) = (random::<u32>(gpu, bytes / 4, WORDS)?, gpu.zeros::<u32>(bytes / 4)?);
        let blocks = 8 * gpu.info().multiprocessors as usize;
        let through = |name: &'static str| {
            let kernel = gpu.kernel(INSTRUMENTS, name)?.grid(blocks).block(512);
            kernel.arg(&from).arg(&to).arg(bytes / 16).launch()
        };
        let copy = self.rate(calls, &mut |_| through("kbench_copy"))?;
        let read = self.rate(calls, &mut |_| through("kbench_read"))?;
        let fill =
            self.rate(calls, &mut |call| gpu.fill(to.device_pointer(), call as u8, bytes))?;
        let stream = gpu.stream().cu_stream();
        let engine = self.rate(calls, &mut |_| {
            let (to, from) = (to.device_pointer(), from.device_pointer());
            // SAFETY: both arrays have so many bytes and outlive the copy, which is waited for.
            gpu.done(
                "copying",
                unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) }.result(),
            )
        })?;
        let bytes = bytes as f64;
        Ok([2.0 * bytes * copy.max(engine), bytes * read, bytes * fill])
    }

    /// Bytes per second of reading an array that stays in the second-level cache.
    fn near_bandwidth(&self, bytes: usize) -> GpuResult<f64> {
        const PASSES: u32 = 64;
        let gpu = self.gpu();
        let (from, to) = (random::<u32>(gpu, bytes / 4, WORDS)?, gpu.zeros::<u32>(4096)?);
        let blocks = 4 * gpu.info().multiprocessors as usize;
        let rate = self.rate(4, &mut |_| {
            let kernel = gpu.kernel(INSTRUMENTS, "kbench_read_often")?.grid(blocks).block(512);
            kernel.arg(&from).arg(&to).arg(bytes / 16).arg(PASSES).launch()
        })?;
        Ok(rate * f64::from(PASSES) * bytes as f64)
    }

    /// Calls per second.
    fn rate(&self, calls: u64, call: &mut dyn FnMut(u64) -> GpuResult<()>) -> GpuResult<f64> {
        self.hot(calls, Queue::Open, call)?;
        let mut times = Vec::with_capacity(SPANS);
        for _ in 0..SPANS {
            times.push(self.hot(calls, Queue::Gated, call)?.time.as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok(calls as f64 / times[SPANS / 2].max(1e-9))
    }

    /// Rates of those element types that the library multiplies on this device.
    fn matrix_rates(&self) -> Vec<TypeRate> {
        let (large, slow) = (MATRIX, SLOW_MATRIX);
        let square = |n| MatrixProduct::new(n, n, n);
        let rates = [
            ("f64", self.matrix_rate::<f64, f64>(slow, square(slow), DOUBLES)),
            ("f32", self.matrix_rate::<f32, f32>(slow, square(slow), SINGLES)),
            ("tf32", self.matrix_rate::<f32, f32>(large, square(large).tf32(), SINGLES)),
            ("f16", self.matrix_rate::<half::f16, half::f16>(large, square(large), HALVES)),
            ("bf16", self.matrix_rate::<half::bf16, half::bf16>(large, square(large), BRAINS)),
            (
                "e4m3",
                self.matrix_rate::<F8E4M3, half::bf16>(large, square(large).transposed(), E4M3),
            ),
            ("i8", self.matrix_rate::<i8, i32>(large, square(large).transposed(), WORDS)),
        ];
        let known = |(element, rate): (&str, GpuResult<f64>)| {
            let flops_per_s = rate.ok().filter(|rate| rate.is_finite())?;
            Some(TypeRate { element: element.to_owned(), flops_per_s })
        };
        rates.into_iter().filter_map(known).collect()
    }

    fn matrix_rate<T: Element + DeviceElement, D: Element + DeviceElement>(
        &self,
        n: usize,
        product: MatrixProduct,
        bits: Bits,
    ) -> GpuResult<f64> {
        let gpu = self.gpu();
        let (a, b) = (random::<T>(gpu, n * n, bits)?, random::<T>(gpu, n * n, bits)?);
        let mut d = gpu.zeros::<D>(n * n)?;
        let blas = gpu.blas_lt()?;
        Ok(product.flops() * self.rate(3, &mut |_| blas.multiply(&product, &a, &b, &mut d))?)
    }
}

/// Which bits of a word are random, and which are set: numbers between about 0.5 and 2 of either sign.
#[derive(Clone, Copy)]
struct Bits {
    mask: u32,
    set: u32,
}

const WORDS: Bits = Bits { mask: u32::MAX, set: 0 };
const SINGLES: Bits = Bits { mask: 0x80ff_ffff, set: 0x3f00_0000 };
/// The lower half of a double is any bits; both halves of a word pair get the same treatment.
const DOUBLES: Bits = Bits { mask: 0x800f_ffff, set: 0x3fe0_0000 };
const HALVES: Bits = Bits { mask: 0x87ff_87ff, set: 0x3800_3800 };
const BRAINS: Bits = Bits { mask: 0x80ff_80ff, set: 0x3f00_3f00 };
const E4M3: Bits = Bits { mask: 0x8787_8787, set: 0x3030_3030 };

/// An array of numbers that look random.
fn random<T: DeviceElement>(gpu: &Gpu, len: usize, bits: Bits) -> GpuResult<DeviceSlice<T>> {
    let slice = gpu.zeros::<T>(len)?;
    let words = len * size_of::<T>() / 4;
    if words == 0 {
        return Err(GpuError::Failed("too few elements for a word".into()));
    }
    let scramble = gpu.kernel(INSTRUMENTS, "kbench_scramble")?.grid(1024).block(256);
    scramble.arg(&slice).arg(words).arg(bits.mask).arg(bits.set).launch()?;
    Ok(slice)
}
