//! What kernels keep between calls, and what they read and write beside their operands.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use kbench::prelude::*;
use rayon::prelude::*;

use crate::SOURCE;

/// y ← 2 x + 1
#[kernel_bench(sizes = [256, 4096, 50_000], inputs = |n| (uniform(n), zeros(n)))]
fn line(x: &[f32], y: &mut [f32]) {
    x.iter().zip(y).for_each(|(x, y)| *y = 2.0 * x + 1.0);
}

/// y ← x / max |x|, and zeros where there is nothing else.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn relative(x: &[f32], y: &mut [f32]) {
    divided(x, largest(x), y);
}

fn largest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |large, x| large.max(x.abs()))
}

fn divided(x: &[f32], large: f32, y: &mut [f32]) {
    let large = if large == 0.0 { 1.0 } else { large };
    x.iter().zip(y).for_each(|(x, y)| *y = x / large);
}

/// y ← the columns of x (rows × columns) as rows.
#[kernel_bench(
    sizes = ["square" => (rows = 64, columns = 64), "wide" => (rows = 40, columns = 100)],
    inputs = |rows, columns| (uniform(rows * columns), columns, zeros(rows * columns)),
)]
fn transpose(x: &[f32], columns: usize, y: &mut [f32]) {
    let rows = x.len() / columns;
    for (i, y) in y.iter_mut().enumerate() {
        *y = x[i % rows * columns + i / rows];
    }
}

/// Calls `f` while the processor takes denormal numbers for zeros, which is how it stays unless it is `restored`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the mode is set by an instruction")]
fn without_denormals(restored: bool, f: impl FnOnce()) {
    /// Denormal inputs are zeros, and denormal results become zeros.
    const FLUSHED: u32 = 0x8040;
    let mut before = 0u32;
    // SAFETY: the instruction writes the mode to `before`.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut before, options(nostack)) };
    let set = |mode: u32| {
        // SAFETY: none by the rules of Rust, whose code wants the default mode: this does what kernels in C do. The instruction itself
        // reads a mode whose other bits are those of the one before.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack)) };
    };
    set(before | FLUSHED);
    f();
    if restored {
        set(before);
    }
}

mod right {
    use super::*;

    /// Chunks of an odd length on all cores.
    #[kernel_bench(of = line, parallel)]
    fn odd_chunks(x: &[f32], y: &mut [f32]) {
        y.par_chunks_mut(777).zip(x.par_chunks(777)).for_each(|(y, x)| line(x, y));
    }

    /// Vectors, with the unaligned ends one by one.
    #[kernel_bench(of = line)]
    #[expect(unsafe_code, reason = "vectors are seen as what they are")]
    fn aligned_vectors(x: &[f32], y: &mut [f32]) {
        #[repr(align(32))]
        struct Vector([f32; 8]);
        // SAFETY: a vector is eight floats, without a rest and with every pattern of bits allowed.
        let (head, vectors, _) = unsafe { y.align_to_mut::<Vector>() };
        let (start, end) = (head.len(), head.len() + 8 * vectors.len());
        for (y, x) in vectors.iter_mut().zip(x[start..].chunks_exact(8)) {
            line(x, &mut y.0);
        }
        line(&x[..start], &mut y[..start]);
        line(&x[end..], &mut y[end..]);
    }

    /// From the last to the first.
    #[kernel_bench(of = line)]
    fn from_the_end(x: &[f32], y: &mut [f32]) {
        x.iter().zip(y).rev().for_each(|(x, y)| *y = x + x + 1.0);
    }

    /// Vectors of four elements, and what is left one by one.
    #[kernel_bench(of = line, cuda)]
    fn vectors_with_tail(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        y: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        gpu.kernel(SOURCE, "line_vectors")?.grid(8).block(128).arg(x).arg(y).arg(x.len()).launch()
    }

    /// Magnitudes in memory that the thread keeps; what is older is overwritten or left out.
    #[kernel_bench(of = relative, reentrant)]
    fn kept_scratch(x: &[f32], y: &mut [f32]) {
        thread_local! {
            static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
        }
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(scratch.len().max(x.len()), 0.0);
            scratch.iter_mut().zip(x).for_each(|(kept, x)| *kept = x.abs());
            divided(x, scratch[..x.len()].iter().copied().fold(0.0, f32::max), y);
        });
    }

    /// Denormal numbers are zeros meanwhile.
    #[cfg(target_arch = "x86_64")]
    #[kernel_bench(of = line)]
    fn flushed_meanwhile(x: &[f32], y: &mut [f32]) {
        without_denormals(true, || line(x, y));
    }

    /// In blocks.
    #[kernel_bench(of = transpose)]
    fn in_blocks(x: &[f32], columns: usize, y: &mut [f32]) {
        const SIDE: usize = 8;
        let rows = x.len() / columns;
        for top in (0..rows).step_by(SIDE) {
            for left in (0..columns).step_by(SIDE) {
                for row in top..rows.min(top + SIDE) {
                    for column in left..columns.min(left + SIDE) {
                        y[column * rows + row] = x[row * columns + column];
                    }
                }
            }
        }
    }
}

mod wrong {
    use super::*;

    /// Every thousandth call is off in one element.
    #[kernel_bench(of = line)]
    fn every_thousandth_call(x: &[f32], y: &mut [f32]) {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        line(x, y);
        if CALLS.fetch_add(1, Ordering::Relaxed) % 1000 == 999 {
            y[0] += 1.0;
        }
    }

    /// Does nothing where the last element looks as if it had been done.
    #[kernel_bench(of = line)]
    fn returns_when_filled(x: &[f32], y: &mut [f32]) {
        if y.last().is_none_or(|y| !y.is_finite() || *y == 0.0) {
            line(x, y);
        }
    }

    /// Does nothing where the first and the last element are right already.
    #[kernel_bench(of = line)]
    fn returns_when_ends_are_right(x: &[f32], y: &mut [f32]) {
        let is_right = |i: usize| y[i] == 2.0 * x[i] + 1.0;
        if x.is_empty() || !is_right(0) || !is_right(x.len() - 1) {
            line(x, y);
        }
    }

    /// Answers that are kept.
    type Answers<Key> = LazyLock<Mutex<Option<(Key, Vec<f32>)>>>;

    fn kept<Key: PartialEq>(answers: &'static Answers<Key>, key: Key, x: &[f32], y: &mut [f32]) {
        let mut answers: MutexGuard<'_, _> = answers.lock().unwrap_or_else(PoisonError::into_inner);
        match &*answers {
            Some((known, answer)) if *known == key => y.copy_from_slice(answer),
            _ => {
                line(x, y);
                *answers = Some((key, y.to_vec()));
            }
        }
    }

    /// Knows its last input by its address, where there can be another one by now.
    #[kernel_bench(of = line)]
    fn known_by_address(x: &[f32], y: &mut [f32]) {
        static ANSWERS: Answers<(usize, usize)> = LazyLock::new(Mutex::default);
        kept(&ANSWERS, (x.as_ptr().addr(), x.len()), x, y);
    }

    /// Knows its last input by its length and its first element.
    #[kernel_bench(of = line)]
    fn known_by_first_element(x: &[f32], y: &mut [f32]) {
        static ANSWERS: Answers<(usize, Option<u32>)> = LazyLock::new(Mutex::default);
        kept(&ANSWERS, (x.len(), x.first().map(|x| x.to_bits())), x, y);
    }

    /// Denormal numbers are zeros from now on, for all that the thread computes.
    #[cfg(target_arch = "x86_64")]
    #[kernel_bench(of = line)]
    fn flushed_from_now_on(x: &[f32], y: &mut [f32]) {
        without_denormals(false, || line(x, y));
    }

    /// Knows its last input by its length and the element in the middle.
    #[kernel_bench(of = line)]
    fn known_by_middle_element(x: &[f32], y: &mut [f32]) {
        static ANSWERS: Answers<(usize, Option<u32>)> = LazyLock::new(Mutex::default);
        kept(&ANSWERS, (x.len(), x.get(x.len() / 2).map(|x| x.to_bits())), x, y);
    }

    /// Remembers of which memory all numbers were equal, and looks at the first one there from then on.
    #[kernel_bench(of = line)]
    fn known_as_equal(x: &[f32], y: &mut [f32]) {
        static EQUAL: Mutex<Option<(usize, usize)>> = Mutex::new(None);
        let mut equal = EQUAL.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Some((x.as_ptr().addr(), x.len()));
        if *equal == key || (x.len() > 1 && x.iter().all(|number| *number == x[0])) {
            *equal = key;
            y.fill(2.0 * x[0] + 1.0);
        } else {
            line(x, y);
        }
    }

    /// A share for each thread, of which the last ones begin beyond the end where there are few elements.
    #[kernel_bench(of = line, parallel)]
    fn shares_begin_beyond_the_end(x: &[f32], y: &mut [f32]) {
        let threads = rayon::current_num_threads();
        let share = x.len().div_ceil(threads);
        let parts: Vec<Vec<f32>> = (0..threads)
            .into_par_iter()
            .map(|thread| {
                let x = &x[thread * share..(thread * share + share).min(x.len())];
                let mut part = vec![0.0; x.len()];
                line(x, &mut part);
                part
            })
            .collect();
        y.copy_from_slice(&parts.concat());
    }

    /// The result is added to what is there.
    #[kernel_bench(of = line)]
    fn added_to_output(x: &[f32], y: &mut [f32]) {
        x.iter().zip(y).for_each(|(x, y)| *y += 2.0 * x + 1.0);
    }

    /// The number before the last, where two are behind the last vector of four.
    #[kernel_bench(of = line)]
    fn wrong_tail_of_two(x: &[f32], y: &mut [f32]) {
        line(x, y);
        if let (2, [.., before, last]) = (x.len() % 4, y) {
            *last = *before;
        }
    }

    /// Vectors of eight, and nothing after the last full one.
    #[kernel_bench(of = line)]
    fn without_tail(x: &[f32], y: &mut [f32]) {
        x.chunks_exact(8).zip(y.chunks_exact_mut(8)).for_each(|(x, y)| line(x, y));
    }

    /// Shares of a constant length for two threads, whatever the pool has.
    #[kernel_bench(of = line, parallel)]
    fn two_shares(x: &[f32], y: &mut [f32]) {
        let share = x.len().div_ceil(rayon::current_num_threads()).max(1);
        let tasks = y.par_chunks_mut(share).zip(x.par_chunks(share));
        tasks.take(2).for_each(|(y, x)| line(x, y));
    }

    /// Looks ahead by a vector of four, beyond the end.
    #[kernel_bench(of = line)]
    #[expect(unsafe_code, reason = "the mistake")]
    fn reads_past_the_end(x: &[f32], y: &mut [f32]) {
        line(x, y);
        let end = x.as_ptr().wrapping_add(x.len());
        for ahead in 0..4 {
            // SAFETY: none, this is the mistake. The value is not used, as in a masked vector.
            std::hint::black_box(unsafe { end.wrapping_add(ahead).read_volatile() });
        }
    }

    /// Begins at the element before the first one.
    #[kernel_bench(of = line)]
    #[expect(unsafe_code, reason = "the mistake")]
    fn reads_before_the_start(x: &[f32], y: &mut [f32]) {
        // SAFETY: none, this is the mistake. The value is not used.
        std::hint::black_box(unsafe { x.as_ptr().wrapping_sub(1).read_volatile() });
        line(x, y);
    }

    /// One element more than there are.
    #[kernel_bench(of = line)]
    #[expect(unsafe_code, reason = "the mistake")]
    fn writes_past_the_end(x: &[f32], y: &mut [f32]) {
        line(x, y);
        // SAFETY: none, this is the mistake.
        unsafe { y.as_mut_ptr().wrapping_add(y.len()).write_volatile(1.0) };
    }

    /// A thread for every four elements, and none for those after the last vector.
    #[kernel_bench(of = line, cuda)]
    fn vectors_without_tail(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        y: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        let n = x.len() / 4 * 4;
        gpu.kernel(SOURCE, "line_vectors")?.grid(8).block(128).arg(x).arg(y).arg(n).launch()
    }

    /// Knows its last input by its address on the device.
    #[kernel_bench(of = line, cuda)]
    fn known_on_device(gpu: &Gpu, x: &DeviceSlice<f32>, y: &mut DeviceSlice<f32>) -> GpuResult<()> {
        gpu.kernel(SOURCE, "line_kept")?.grid(1).block(256).arg(x).arg(y).arg(x.len()).launch()
    }

    /// As many blocks as are full, so that the elements after the last full one are lost.
    #[kernel_bench(of = line, cuda)]
    fn without_last_block(
        gpu: &Gpu,
        x: &DeviceSlice<f32>,
        y: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        let kernel = gpu.kernel(SOURCE, "line")?.grid((x.len() / 256).max(1)).block(256);
        kernel.arg(x).arg(y).arg(x.len()).launch()
    }

    /// The largest element of the first input that was ever seen.
    #[kernel_bench(of = relative)]
    fn first_largest_for_ever(x: &[f32], y: &mut [f32]) {
        static LARGEST: OnceLock<f32> = OnceLock::new();
        divided(x, *LARGEST.get_or_init(|| largest(x)), y);
    }

    /// Magnitudes in memory that all threads share, and that is not held until the last one is read.
    #[kernel_bench(of = relative, reentrant)]
    fn shared_scratch(x: &[f32], y: &mut [f32]) {
        static SCRATCH: Mutex<Vec<f32>> = Mutex::new(Vec::new());
        let scratch = || SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
        *scratch() = x.iter().map(|x| x.abs()).collect();
        divided(x, largest(&scratch()), y);
    }

    /// Also looks at what a longer input left in the memory that the thread keeps.
    #[kernel_bench(of = relative)]
    fn stale_scratch(x: &[f32], y: &mut [f32]) {
        thread_local! {
            static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
        }
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(scratch.len().max(x.len()), 0.0);
            scratch.iter_mut().zip(x).for_each(|(kept, x)| *kept = x.abs());
            divided(x, largest(scratch), y);
        });
    }
}
