//! A suite of 544 rows whose truth is known, under kbench: [`campaign::truth`] draws it from the number of the suite.
//!
//! All variants of a kernel are the same machine code and give the same result; their amounts differ by the drawn effects.
//! Every cell has 16 to 64 MiB of data, also where only one element is read, so that launches cost what they cost in real
//! suites. The pairs of `affine` have no data: their sizes are amounts of work.

use std::hint::black_box;

use campaign::ORIGINAL;
use campaign::chain::{chain, chain_in_parts};
use campaign::sweep::{sweep, sweep_in_parts};
use campaign::truth::{Cell, Kernel, affine_base, affine_variant, crossover};
use kbench::prelude::*;

/// What every variant writes.
const ANSWER: f32 = 7.0;

/// How often: of outputs with fewer elements than this, kbench makes the data twice to check them.
const ANSWERS: usize = 16;

/// Parts of parallel work for every thread: so many that waiting for the last one does not count.
const PARTS: usize = 32;

/// Does what a variant of a cell does; number 0 is the base.
#[inline(never)]
fn perform(kernel: Kernel, id: u64, suite: u64, variant: u64, data: &[f32], out: &mut [f32]) {
    let amount = Cell { kernel, suite, id }.amount(variant);
    // With as much for every thread, a call takes as long on any number of them.
    let threads = rayon::current_num_threads();
    let of_all = amount * threads as u64;
    black_box(data.first());
    match kernel {
        Kernel::Arithmetic => {
            black_box(chain::<ORIGINAL>(amount));
        }
        Kernel::Memory => {
            black_box(sweep::<ORIGINAL>(data, amount));
        }
        Kernel::ParallelArithmetic => {
            black_box(chain_in_parts(of_all, threads * PARTS));
        }
        Kernel::ParallelMemory => {
            black_box(sweep_in_parts(data, of_all, threads * PARTS));
        }
    }
    out.fill(ANSWER);
}

/// What should come out of every kernel with data; no work is done for it.
fn answer(_data: &[f32], _id: u64, _suite: u64, out: &mut [f32]) {
    out.fill(ANSWER);
}

/// What should come out of `affine`.
fn affine_answer(_n: usize, _crossover: usize, out: &mut [f32]) {
    out.fill(ANSWER);
}

/// The data of a cell.
fn data(kernel: Kernel, id: usize, suite: usize) -> Vec<f32> {
    normal(Cell { kernel, suite: suite as u64, id: id as u64 }.elements())
}

/// A kernel with its base and four variants.
macro_rules! kernel {
    (
        $kernel:expr, $backend:ident, $base:ident, $ids:tt,
        $($variant:ident = $number:literal),+
    ) => {
        #[kernel_bench(
            sizes = { id: $ids, suite: [0] },
            inputs = |id, suite| (data($kernel, id, suite), id as u64, suite as u64, zeros(ANSWERS)),
            reference = answer,
            work = |_| 1,
            bytes = |_| 0,
            $backend,
        )]
        fn $base(data: &[f32], id: u64, suite: u64, out: &mut [f32]) {
            perform($kernel, id, suite, 0, data, out);
        }

        $(
            #[kernel_bench(of = $base, $backend)]
            fn $variant(data: &[f32], id: u64, suite: u64, out: &mut [f32]) {
                perform($kernel, id, suite, $number, data, out);
            }
        )+
    };
}

kernel!(
    Kernel::Arithmetic,
    serial,
    arithmetic,
    [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
        26, 27, 28, 29, 30, 31, 32
    ],
    arithmetic_1 = 1,
    arithmetic_2 = 2,
    arithmetic_3 = 3,
    arithmetic_4 = 4
);

kernel!(
    Kernel::Memory,
    serial,
    memory,
    [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
        26, 27, 28, 29, 30, 31, 32
    ],
    memory_1 = 1,
    memory_2 = 2,
    memory_3 = 3,
    memory_4 = 4
);

kernel!(
    Kernel::ParallelArithmetic,
    parallel,
    parallel_arithmetic,
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    parallel_arithmetic_1 = 1,
    parallel_arithmetic_2 = 2,
    parallel_arithmetic_3 = 3,
    parallel_arithmetic_4 = 4
);

kernel!(
    Kernel::ParallelMemory,
    parallel,
    parallel_memory,
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    parallel_memory_1 = 1,
    parallel_memory_2 = 2,
    parallel_memory_3 = 3,
    parallel_memory_4 = 4
);

/// b·n.
#[kernel_bench(
    sizes = { n: [64, 1024, 16_384, 262_144], id: [1, 2, 3, 4, 5, 6, 7, 8], suite: [0] },
    inputs = |n, id, suite| (n, crossover(suite as u64, id as u64), zeros(ANSWERS)),
    reference = affine_answer,
    work = |n| n,
)]
fn affine(n: usize, _crossover: usize, out: &mut [f32]) {
    black_box(chain::<ORIGINAL>(affine_base(n)));
    out.fill(ANSWER);
}

/// a + b·n / 2: as many rounds as the base at the crossover.
#[kernel_bench(of = affine)]
fn affine_1(n: usize, crossover: usize, out: &mut [f32]) {
    black_box(chain::<ORIGINAL>(affine_variant(n, crossover)));
    out.fill(ANSWER);
}

kbench::main!(measure);
