//! Fourier transforms of complex numbers in one, two and three dimensions.
//!
//! Complex numbers are pairs of `f32` in one slice, as most libraries have them, so that a comparison with one costs
//! nobody a conversion. How a transform is computed is decided before it is: a plan has the roots of unity, and a call
//! allocates nothing (scratch memory is made by a thread's first call and kept).
//!
//! Every length works; those with a large prime factor p take time in proportion to n·p.

#![allow(unsafe_code)] // blocks of a matrix are written by several tasks, and pairs are seen as complex numbers

use std::ops::Range;

use kbench::Operand;
use kbench::prelude::*;
use rayon::prelude::*;

use self::steps::{ColumnsInPlace, ColumnsStep, Order, RowsStep, TOGETHER, Turns};
use self::transform::{Lanes, Transform};
use super::parts::Shared;
use super::vector::{LANES, best};
use crate::shared::scratch::{Shelf, with_array};

pub mod device;
mod steps;
mod transform;
#[cfg(feature = "vendor")]
mod vendor;

#[cfg(feature = "vendor")]
pub use self::vendor::RustfftPlan;

/// What it takes to transform n numbers: they are seen as a matrix.
#[derive(Clone, Debug)]
pub struct Plan {
    rows: Transform,
    columns: Transform,
    turns: Turns,
}

/// What there is to see of a plan is what it does: the transform of a chirp, for which it needs all that it has. So
/// plans that are made differently can be compared.
impl Operand for Plan {
    fn elements(&self, parts: &mut Vec<Vec<f64>>) {
        let x = chirp(self.length());
        let mut out = vec![0.0; x.len()];
        fft(&x, self, &mut out);
        out.elements(parts);
    }

    fn roundoffs(&self, parts: &mut Vec<f64>) {
        parts.push(f32::ROUNDOFF);
    }

    fn bytes(&self) -> usize {
        self.rows.bytes() + self.columns.bytes() + self.turns.bytes()
    }
}

/// n numbers e^(−πi·j²/n), whose transform is as large everywhere.
fn chirp(n: usize) -> Vec<f32> {
    let number = |j: usize| transform::root(j * j, 2 * n);
    (0..n).map(number).flat_map(|number| [number.re, number.im]).collect()
}

impl Plan {
    /// The plan for n numbers.
    pub fn new(n: usize) -> Self {
        let rows = rows_of(n);
        let turns = Turns::new(rows, n / rows);
        Plan { rows: Transform::new(n / rows), columns: Transform::new(rows), turns }
    }

    fn length(&self) -> usize {
        self.rows.length() * self.columns.length()
    }
}

/// The divisor of n that is nearest to its root from above; for powers of two at least 16 once n allows it.
fn rows_of(n: usize) -> usize {
    let root = (1..).take_while(|i| i * i <= n).last().unwrap_or(1);
    (root..=n).find(|rows| n.is_multiple_of(*rows)).unwrap_or(n)
}

/// What it takes to transform a matrix: a transform along each axis.
#[derive(Clone, Debug)]
pub struct Plan2d {
    rows: Transform,
    columns: Transform,
}

impl Operand for Plan2d {}

impl Plan2d {
    /// The plan for a matrix of rows × columns.
    pub fn new(rows: usize, columns: usize) -> Self {
        Plan2d { rows: Transform::new(columns), columns: Transform::new(rows) }
    }
}

/// What it takes to transform a stack of matrices.
#[derive(Clone, Debug)]
pub struct Plan3d {
    depth: Transform,
    matrix: Plan2d,
}

impl Operand for Plan3d {}

impl Plan3d {
    /// The plan for depth matrices of rows × columns.
    pub fn new(depth: usize, rows: usize, columns: usize) -> Self {
        Plan3d { depth: Transform::new(depth), matrix: Plan2d::new(rows, columns) }
    }
}

/// The plan for n numbers: roots of unity in f64, rounded once.
#[kernel_bench(
    sizes = ["small" => (n = 1 << 10), "medium" => (n = 1 << 14), "large" => (n = 1 << 20)],
    inputs = |n| (n,),
    reference = fft_plan_f64,
    tolerance = 2e-6, // that of a transform
)]
pub fn fft_plan(n: usize) -> Plan {
    Plan::new(n)
}

/// [`fft_plan`] by the crate rustfft.
#[cfg(feature = "vendor")]
#[kernel_bench(of = fft_plan)]
pub fn fft_plan_rustfft(n: usize) -> RustfftPlan {
    RustfftPlan::new(n)
}

/// outₖ ← Σⱼ xⱼ · e^(−2πi·jk/n)
#[kernel_bench(
    sizes = ["tiny" => (n = 1 << 8), "small" => (n = 1 << 10), "medium" => (n = 1 << 14), "large" => (n = 1 << 20)],
    inputs = |n| (normal(2 * n), Plan::new(n), zeros(2 * n)),
    flops = |n| 5 * n * n.ilog2() as usize, // the usual count, whatever the algorithm
    bytes = |n| 16 * n,
    reference = fft_f64,
    tolerance = 2e-6, // errors add up over log n passes, each with roots and products rounded once; twice that for primes
)]
pub fn fft(x: &[f32], plan: &Plan, out: &mut [f32]) {
    let order = Order::Columns;
    in_order(&plan.columns, Some(&plan.turns), &plan.rows, order, x, out);
}

/// [`fft`] with blocks of both steps shared among all cores.
#[kernel_bench(of = fft, parallel, threshold = tuned(1 << 15))]
pub fn fft_rayon(x: &[f32], plan: &Plan, out: &mut [f32]) {
    let order = Order::Columns;
    on_all_cores(&plan.columns, Some(&plan.turns), &plan.rows, order, x, out);
}

/// [`fft`] by the crate rustfft, which plans at a thread's first call with a length.
#[cfg(feature = "vendor")]
#[kernel_bench(of = fft)]
pub fn fft_rustfft(x: &[f32], _: &Plan, out: &mut [f32]) {
    vendor::transform(x, x.len() / 2, out);
}

/// [`fft`] along the rows of a matrix, then along its columns.
#[kernel_bench(
    sizes = [
        "small" => (rows = 64, columns = 64),
        "medium" => (rows = 256, columns = 256),
        "large" => (rows = 1024, columns = 1024),
    ],
    inputs = |rows, columns| (normal(2 * rows * columns), Plan2d::new(rows, columns), zeros(2 * rows * columns)),
    flops = |rows, columns| 5 * rows * columns * (rows * columns).ilog2() as usize,
    bytes = |rows, columns| 16 * rows * columns,
    reference = fft_2d_f64,
    tolerance = 2e-6, // as in one dimension
)]
pub fn fft_2d(x: &[f32], plan: &Plan2d, out: &mut [f32]) {
    in_order(&plan.columns, None, &plan.rows, Order::Rows, x, out);
}

/// [`fft_2d`] with blocks of columns, then of rows, shared among all cores.
#[kernel_bench(of = fft_2d, parallel, threshold = tuned(1 << 15))]
pub fn fft_2d_rayon(x: &[f32], plan: &Plan2d, out: &mut [f32]) {
    on_all_cores(&plan.columns, None, &plan.rows, Order::Rows, x, out);
}

/// [`fft_2d`] by the crate rustfft, along one axis after the other.
#[cfg(feature = "vendor")]
#[kernel_bench(of = fft_2d)]
pub fn fft_2d_rustfft(x: &[f32], plan: &Plan2d, out: &mut [f32]) {
    vendor::transform_axes(x, &[plan.columns.length(), plan.rows.length()], out);
}

/// [`fft_2d`] of each of a stack of matrices, then [`fft`] along the stack.
#[kernel_bench(
    sizes = [
        "small" => (depth = 16, rows = 16, columns = 16),
        "medium" => (depth = 64, rows = 64, columns = 64),
        "large" => (depth = 128, rows = 128, columns = 128),
    ],
    inputs = |depth, rows, columns| (normal(2 * depth * rows * columns), Plan3d::new(depth, rows, columns), zeros(2 * depth * rows * columns)),
    flops = |depth, rows, columns| 5 * depth * rows * columns * (depth * rows * columns).ilog2() as usize,
    bytes = |depth, rows, columns| 16 * depth * rows * columns,
    reference = fft_3d_f64,
    tolerance = 2e-6, // as in one dimension
)]
pub fn fft_3d(x: &[f32], plan: &Plan3d, out: &mut [f32]) {
    let matrix = x.len() / plan.depth.length();
    for (x, out) in x.chunks_exact(matrix).zip(out.chunks_exact_mut(matrix)) {
        fft_2d(x, &plan.matrix, out);
    }
    stack_step(&plan.depth, &Shared::new(out), matrix / 2, 0..(matrix / 2).div_ceil(LANES));
}

/// [`fft_3d`] with matrices, then blocks of columns of the stack, shared among all cores.
#[kernel_bench(of = fft_3d, parallel, threshold = tuned(1 << 15))]
pub fn fft_3d_rayon(x: &[f32], plan: &Plan3d, out: &mut [f32]) {
    let matrix = x.len() / plan.depth.length();
    x.par_chunks_exact(matrix)
        .zip(out.par_chunks_exact_mut(matrix))
        .for_each(|(x, out)| fft_2d(x, &plan.matrix, out));
    let out = Shared::new(out);
    let blocks = (matrix / 2).div_ceil(LANES);
    tasks(blocks).for_each(|range| stack_step(&plan.depth, &out, matrix / 2, range));
}

/// [`fft_3d`] by the crate rustfft, along one axis after the other.
#[cfg(feature = "vendor")]
#[kernel_bench(of = fft_3d)]
pub fn fft_3d_rustfft(x: &[f32], plan: &Plan3d, out: &mut [f32]) {
    let Plan3d { depth, matrix } = plan;
    let lengths = [depth.length(), matrix.columns.length(), matrix.rows.length()];
    vendor::transform_axes(x, &lengths, out);
}

thread_local! {
    /// The matrix between two steps.
    static MATRIX: Shelf<Lanes> = const { Shelf::new() };
    /// Some blocks of columns or rows.
    static BLOCKS: Shelf<Lanes> = const { Shelf::new() };
}

/// Both steps, block after block.
fn in_order(
    columns: &Transform,
    turns: Option<&Turns>,
    rows: &Transform,
    order: Order,
    x: &[f32],
    out: &mut [f32],
) {
    let out = Shared::new(out);
    let groups = columns.length().div_ceil(LANES);
    with_array(&MATRIX, groups * rows.length(), Lanes::ZERO, |scratch| {
        first_step(columns, turns, x, 0..rows.length().div_ceil(LANES), &Shared::new(scratch));
        second_step(rows, order, scratch, columns.length(), 0, &out);
    });
}

/// Both steps, the blocks of each shared among all cores.
fn on_all_cores(
    columns: &Transform,
    turns: Option<&Turns>,
    rows: &Transform,
    order: Order,
    x: &[f32],
    out: &mut [f32],
) {
    let out = Shared::new(out);
    let groups = columns.length().div_ceil(LANES);
    with_array(&MATRIX, groups * rows.length(), Lanes::ZERO, |scratch| {
        let shared = Shared::new(scratch);
        let blocks = rows.length().div_ceil(LANES);
        tasks(blocks).for_each(|range| first_step(columns, turns, x, range, &shared));
        tasks(groups).for_each(|range| {
            let length = rows.length();
            // SAFETY: no other task has these blocks, and the first step is over.
            let part = unsafe { shared.part(range.start * length..range.end * length) };
            second_step(rows, order, part, columns.length(), range.start, &out);
        });
    });
}

/// Ranges of blocks for tasks: [`TOGETHER`] if there are enough for all cores.
fn tasks(blocks: usize) -> impl IndexedParallelIterator<Item = Range<usize>> {
    let together = (blocks / (2 * rayon::current_num_threads())).clamp(1, TOGETHER);
    (0..blocks.div_ceil(together)).into_par_iter().map(move |task| {
        let start = task * together;
        start..(start + together).min(blocks)
    })
}

/// Parts of a range of blocks that are read and written together.
fn parts(blocks: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = blocks.end;
    blocks.step_by(TOGETHER).map(move |start| start..(start + TOGETHER).min(end))
}

/// The first step for blocks of columns.
fn first_step(
    transform: &Transform,
    turns: Option<&Turns>,
    x: &[f32],
    blocks: Range<usize>,
    scratch: &Shared<'_, Lanes>,
) {
    let room = (TOGETHER.min(blocks.len()) + 1) * transform.length();
    with_array(&BLOCKS, room, Lanes::ZERO, |buffers| {
        for blocks in parts(blocks) {
            let buffers = &mut *buffers;
            best(ColumnsStep { transform, turns, x, blocks, scratch, buffers });
        }
    });
}

/// The second step for blocks of rows, from `first` on.
fn second_step(
    transform: &Transform,
    order: Order,
    scratch: &mut [Lanes],
    rows: usize,
    first: usize,
    out: &Shared<'_, f32>,
) {
    let together = TOGETHER * transform.length();
    with_array(&BLOCKS, together.min(scratch.len()), Lanes::ZERO, |spare| {
        for (part, scratch) in scratch.chunks_mut(together).enumerate() {
            let (spare, first) = (&mut *spare, first + part * TOGETHER);
            best(RowsStep { transform, order, rows, first, scratch, spare, out });
        }
    });
}

/// The transform along the stack, of blocks of columns.
fn stack_step(transform: &Transform, x: &Shared<'_, f32>, columns: usize, blocks: Range<usize>) {
    with_array(&BLOCKS, 2 * TOGETHER * transform.length(), Lanes::ZERO, |buffers| {
        for blocks in parts(blocks) {
            let buffers = &mut *buffers;
            best(ColumnsInPlace { transform, x, columns, blocks, buffers });
        }
    });
}

/// The sums of the definition for short lengths and primes, and by transforms of a part of the length otherwise. `turns` are
/// e^(−2πi·k/N) for all k < N, a multiple of the length.
fn fft_in_f64(x: &[(f64, f64)], turns: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let n = x.len();
    let turned = |(re, im): (f64, f64), numerator: usize| {
        let (cos, sin) = turns[numerator % n * (turns.len() / n)];
        (re * cos - im * sin, re * sin + im * cos)
    };
    let add = |sum: (f64, f64), term: (f64, f64)| (sum.0 + term.0, sum.1 + term.1);
    let factor = (2..).take_while(|f| f * f <= n).find(|f| n.is_multiple_of(*f));
    let Some(factor) = factor.filter(|_| n > 8) else {
        let sum =
            |k: usize| x.iter().enumerate().map(|(j, x)| turned(*x, j * k)).fold((0.0, 0.0), add);
        return (0..n).map(sum).collect();
    };
    let part = |first: usize| {
        fft_in_f64(&x.iter().skip(first).step_by(factor).copied().collect::<Vec<_>>(), turns)
    };
    let parts: Vec<_> = match n < 1 << 14 {
        true => (0..factor).map(part).collect(),
        false => (0..factor).into_par_iter().map(part).collect(),
    };
    let at = |k: usize| {
        let terms =
            parts.iter().enumerate().map(|(first, part)| turned(part[k % part.len()], first * k));
        terms.fold((0.0, 0.0), add)
    };
    (0..n).into_par_iter().with_min_len(1 << 13).map(at).collect()
}

/// Transforms all columns of matrices with rows of `stride` numbers.
fn along_f64(x: &mut [f64], length: usize, stride: usize) {
    let turn = |k: usize| {
        let (sin, cos) = (-std::f64::consts::TAU * k as f64 / length as f64).sin_cos();
        (cos, sin)
    };
    let turns: Vec<_> = (0..length).map(turn).collect();
    for block in x.chunks_exact_mut(2 * length * stride) {
        for first in 0..stride {
            let place = |i: usize| 2 * (i * stride + first);
            let numbers: Vec<_> =
                (0..length).map(|i| (block[place(i)], block[place(i) + 1])).collect();
            for (i, (re, im)) in fft_in_f64(&numbers, &turns).into_iter().enumerate() {
                [block[place(i)], block[place(i) + 1]] = [re, im];
            }
        }
    }
}

/// The transform of a chirp, whose numbers are computed anew.
fn fft_plan_f64(n: usize) -> Vec<f64> {
    let number = |j: usize| {
        let (sin, cos) = (-std::f64::consts::PI * (j * j % (2 * n)) as f64 / n as f64).sin_cos();
        [cos, sin]
    };
    let mut x: Vec<f64> = (0..n).flat_map(number).collect();
    along_f64(&mut x, n, 1);
    x
}

fn fft_f64(x: &[f64], _: &Plan, out: &mut [f64]) {
    out.copy_from_slice(x);
    along_f64(out, x.len() / 2, 1);
}

fn fft_2d_f64(x: &[f64], plan: &Plan2d, out: &mut [f64]) {
    let (rows, columns) = (plan.columns.length(), plan.rows.length());
    out.copy_from_slice(x);
    along_f64(out, columns, 1);
    along_f64(out, rows, columns);
}

fn fft_3d_f64(x: &[f64], plan: &Plan3d, out: &mut [f64]) {
    let Plan3d { depth, matrix } = plan;
    for (x, out) in
        x.chunks_exact(x.len() / depth.length()).zip(out.chunks_exact_mut(x.len() / depth.length()))
    {
        fft_2d_f64(x, matrix, out);
    }
    along_f64(out, depth.length(), matrix.columns.length() * matrix.rows.length());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest difference between what a plan does and what it should do, relative to how large all results are.
    fn error_of(plan: &Plan, expected: &[f64]) -> f64 {
        let mut parts = Vec::new();
        plan.elements(&mut parts);
        let differences = parts[0].iter().zip(expected).map(|(a, b)| (a - b).abs());
        differences.fold(0.0, f64::max) / (plan.length() as f64).sqrt()
    }

    #[test]
    fn every_wrong_root_of_a_plan_is_seen() {
        let (rows, columns) = (32, 32);
        let right = Plan::new(rows * columns);
        let expected = fft_plan_f64(rows * columns);
        assert!(error_of(&right, &expected) < 2e-6);
        let turns = Turns::new(rows, columns + 1);
        assert!(error_of(&Plan { turns, ..right.clone() }, &expected) > 1e-3);
        for (axis, length) in [rows, columns].into_iter().enumerate() {
            let (mut spoiled, places) = (0, Transform::new(length).turns_mut().count());
            for place in 0..places {
                let mut plan = right.clone();
                let transform = if axis == 0 { &mut plan.columns } else { &mut plan.rows };
                let Some(turn) = transform.turns_mut().nth(place) else { continue };
                if turn.re == 1.0 {
                    continue; // no turn at all, and not looked at
                }
                (turn.re, turn.im) = (-turn.re, -turn.im);
                assert!(error_of(&plan, &expected) > 1e-3, "axis {axis}, turn {place}");
                spoiled += 1;
            }
            assert_eq!(spoiled, 21); // three groups of eight, of which the first has no turn
        }
    }

    #[cfg(feature = "vendor")]
    #[test]
    fn axes_of_different_lengths_by_rustfft_are_those_of_ours() {
        let (depth, rows, columns) = (3, 10, 17);
        let x = chirp(depth * rows * columns);
        let plan = Plan3d::new(depth, rows, columns);
        let (mut ours, mut theirs) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        fft_3d(&x, &plan, &mut ours);
        fft_3d_rustfft(&x, &plan, &mut theirs);
        assert!(ours.iter().zip(&theirs).all(|(a, b)| (a - b).abs() < 1e-3));
    }
}
