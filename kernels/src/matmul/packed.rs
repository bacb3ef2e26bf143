//! The engine of matrix products on the CPU: c ← a·b in f32 from operands of any element type.
//!
//! Its structure is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (ACM TOMS 34,
//! 2008): a slab of b is copied into panels as wide as a tile of registers, a block of a into rows that fit into the
//! second-level cache, and a tile of c is summed up in registers from both. Copying costs little, as every element that
//! is copied is used hundreds of times; and while copying, elements of any type become `f32`, and a transposed b is
//! turned over.
//!
//! ```
//! # use kernels::matmul::packed::{Second, Shape, multiply, rows};
//! let (a, b) = ([1.0, 2.0], [half::bf16::from_f32(3.0), half::bf16::from_f32(4.0)]);
//! let mut c = [0.0; 1];
//! multiply(Shape { m: 1, n: 1, k: 2 }, rows(&a, 2), Second::Transposed(rows(&b, 2)), &mut c);
//! assert_eq!(c, [11.0]);
//! ```

#![allow(unsafe_code)] // threads write rectangles of one matrix, with instructions that are known to be there

mod micro;
mod packing;
mod row;

use rayon::prelude::*;

use crate::shared::float::BUFFER;
use crate::shared::scratch::with_scratch;
#[cfg(target_arch = "x86_64")]
use crate::shared::simd::Level;
use crate::shared::simd::level;
use crate::shared::{BLOCK, Float};
use micro::{DEPTH, DISTANCE, Micro, Rectangle, Start, Target, block};
use packing::{pack_panel, pack_rows};

/// Rows of a that are packed together: with their depth they take a quarter of a second-level cache of 2 MiB.
const BLOCK_ROWS: usize = 560;
/// Columns of b that are packed together: with their depth they stay in the third-level cache.
const BLOCK_COLUMNS: usize = 4096;
/// What all cores pack together before they multiply: at most 32 MiB of each operand.
const SHARED_ROWS: usize = 4096;
const SHARED_DEPTH: usize = 8 * DEPTH;

/// Strips and panels of c that make a task, where there are enough of them.
const TASK_STRIPS: usize = 12;
const TASK_PANELS: usize = 8;
/// Tasks that a thread should have at least, so that all are done at about the same time.
const TASKS_PER_THREAD: usize = 4;
/// Multiplications that are not worth the cost of sharing them, that make a task, and that are worth packing together.
const LEAST_SHARED: usize = 1 << 21;
const LEAST_TASK: usize = 1 << 19;
const LEAST_TOGETHER: usize = 1 << 25;
/// Columns of c that make a task at least, where it has a single row.
const COLUMNS_PER_TASK: usize = 512;
/// Rows of a that are packed by a task at least.
const ROWS_PER_TASK: usize = 32;

/// Sizes of a product: a is m × k, b is k × n, c is m × n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of a and c.
    pub m: usize,
    /// Columns of b and c.
    pub n: usize,
    /// Columns of a, rows of b.
    pub k: usize,
}

/// Reads a matrix as `f32`: elements of a row, from a column on, into a slice. A closure should be
/// `#[inline(always)]`: then it becomes part of the packing loops.
pub trait Read: Fn(usize, usize, &mut [f32]) + Sync {}

impl<R: Fn(usize, usize, &mut [f32]) + Sync> Read for R {}

/// The second operand, as it lies in memory.
#[derive(Clone, Copy, Debug)]
pub enum Second<R> {
    /// k rows of n.
    AsIs(R),
    /// n rows of k, as weights usually are.
    Transposed(R),
}

/// Reads a row-major matrix of floats.
pub fn rows<T: Float>(matrix: &[T], columns: usize) -> impl Read + '_ {
    #[inline(always)]
    move |row, column, to| {
        let from = &matrix[row * columns + column..][..to.len()];
        let mut buffer = BUFFER;
        for (from, to) in from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)) {
            to.copy_from_slice(T::read(from, &mut buffer));
        }
    }
}

/// c ← a·b in one thread.
pub fn multiply<A: Read, B: Read>(shape: Shape, a: A, b: Second<B>, c: &mut [f32]) {
    if shape.m == 1 {
        return with_row(shape, a, c, |a, c| row::multiply(a, &b, 0, c));
    }
    if shape.k == 0 {
        return c.fill(0.0);
    }
    match level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => serial::<micro::Avx512, A, B>(shape, &a, &b, c),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => serial::<micro::Avx2, A, B>(shape, &a, &b, c),
        _ => serial::<micro::Portable, A, B>(shape, &a, &b, c),
    }
}

/// c ← a·b on all cores.
pub fn multiply_parallel<A: Read, B: Read>(shape: Shape, a: A, b: Second<B>, c: &mut [f32]) {
    if shape.m * shape.n * shape.k < LEAST_SHARED {
        return multiply(shape, a, b, c);
    }
    if shape.m == 1 {
        return with_row(shape, a, c, |a, c| {
            let wide = c.len().div_ceil(rayon::current_num_threads()).max(COLUMNS_PER_TASK);
            let parts = c.par_chunks_mut(wide).enumerate();
            parts.for_each(|(index, c)| row::multiply(a, &b, index * wide, c));
        });
    }
    match level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => parallel::<micro::Avx512, A, B>(shape, &a, &b, c),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => parallel::<micro::Avx2, A, B>(shape, &a, &b, c),
        _ => parallel::<micro::Portable, A, B>(shape, &a, &b, c),
    }
}

/// Reads the only row of a.
fn with_row<A: Read>(shape: Shape, a: A, c: &mut [f32], body: impl FnOnce(&[f32], &mut [f32])) {
    assert_eq!(c.len(), shape.n, "c is not 1 × {}", shape.n);
    with_scratch([shape.k], |[row]| {
        a(0, 0, row);
        body(row, c);
    });
}

/// A range of at most `step` from each multiple of it on.
fn pieces(end: usize, step: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..end).step_by(step).map(move |first| (first, step.min(end - first)))
}

fn serial<K: Micro, A: Read, B: Read>(shape: Shape, a: &A, b: &Second<B>, c: &mut [f32]) {
    let Shape { m, n, k } = shape;
    let whole = Rectangle { row: 0, rows: m, column: 0, columns: n };
    // SAFETY: this is the only thread, and callers found the instructions of `K` by `level`.
    unsafe { multiply_part::<K, A, B>(k, a, b, &Target::new(c, m, n), whole) };
}

/// Packs what belongs to a rectangle of c, and multiplies it.
///
/// # Safety
///
/// Nobody else may use the rectangle meanwhile, and the machine must have the instructions of `K`.
unsafe fn multiply_part<K: Micro, A: Read, B: Read>(
    k: usize,
    a: &A,
    b: &Second<B>,
    target: &Target<'_>,
    whole: Rectangle,
) {
    let panel = DEPTH * K::COLUMNS;
    let length_a = whole.rows.min(BLOCK_ROWS) * DISTANCE;
    let length_b = whole.columns.min(BLOCK_COLUMNS).div_ceil(K::COLUMNS) * panel;
    with_scratch([length_b, length_a], |[packed_b, packed_a]| {
        for (left, columns) in pieces(whole.columns, BLOCK_COLUMNS) {
            let column = whole.column + left;
            for (depth, depths) in pieces(k, DEPTH) {
                for ((across, columns), to) in
                    pieces(columns, K::COLUMNS).zip(packed_b.chunks_exact_mut(panel))
                {
                    pack_panel::<K, B>(b, (depth, depths), (column + across, columns), to);
                }
                for (top, rows) in pieces(whole.rows, BLOCK_ROWS) {
                    let packed_a = &mut packed_a[..rows * DISTANCE];
                    let part = Rectangle { row: whole.row + top, rows, column, columns };
                    pack_rows(a, part.row, (depth, depths), packed_a);
                    // SAFETY: as the caller promises.
                    unsafe { block::<K>(packed_a, packed_b, depths, start(depth), target, part) };
                }
            }
        }
    });
}

/// What a slab that begins at a depth is added to.
fn start(depth: usize) -> Start {
    if depth == 0 { Start::Zero } else { Start::Sum }
}

fn parallel<K: Micro, A: Read, B: Read>(shape: Shape, a: &A, b: &Second<B>, c: &mut [f32]) {
    let Shape { m, n, k } = shape;
    let target = Target::new(c, m, n);
    if m * n * k < LEAST_TOGETHER {
        return multiply_apart::<K, A, B>(shape, a, b, &target);
    }
    let panel = DEPTH * K::COLUMNS;
    let slabs = k.min(SHARED_DEPTH).div_ceil(DEPTH);
    let length_a = slabs * m.min(SHARED_ROWS) * DISTANCE;
    let length_b = slabs * n.min(BLOCK_COLUMNS).div_ceil(K::COLUMNS) * panel;
    with_scratch([length_b, length_a], |[packed_b, packed_a]| {
        for (column, columns) in pieces(n, BLOCK_COLUMNS) {
            for (row, rows) in pieces(m, SHARED_ROWS) {
                for (depth, depths) in pieces(k, SHARED_DEPTH) {
                    let part = Rectangle { row, rows, column, columns };
                    let slabs = Slabs { first: depth, end: depth + depths };
                    pack_together::<K, A, B>((a, packed_a), (b, packed_b), part, slabs);
                    multiply_together::<K>(packed_a, packed_b, part, slabs, &target);
                }
            }
        }
    });
}

/// Multiplies a rectangle of c in each task, which packs its operands itself: nobody waits for anybody.
fn multiply_apart<K: Micro, A: Read, B: Read>(
    Shape { m, n, k }: Shape,
    a: &A,
    b: &Second<B>,
    target: &Target<'_>,
) {
    let wanted = (m * n * k / LEAST_TASK).min(rayon::current_num_threads());
    let parts = Parts::new::<K>(Rectangle { row: 0, rows: m, column: 0, columns: n }, wanted);
    (0..parts.count()).into_par_iter().with_max_len(1).for_each(|index| {
        // SAFETY: tasks have rectangles of their own, and callers found the instructions of `K` by `level`.
        unsafe { multiply_part::<K, A, B>(k, a, b, target, parts.part(index)) };
    });
}

/// A rectangle of c, cut into tasks.
#[derive(Clone, Copy)]
struct Parts {
    whole: Rectangle,
    tall: usize,
    wide: usize,
}

impl Parts {
    /// Tasks as large as the second-level cache likes, or smaller ones where fewer than wanted would come of it.
    fn new<K: Micro>(whole: Rectangle, wanted: usize) -> Self {
        let (mut strips, mut panels) = (TASK_STRIPS, TASK_PANELS);
        loop {
            let parts = Parts { whole, tall: strips * K::ROWS, wide: panels * K::COLUMNS };
            if parts.count() >= wanted || strips * panels == 1 {
                return parts;
            }
            if parts.tall >= parts.wide && strips > 1 || panels == 1 {
                strips = strips.div_ceil(2);
            } else {
                panels = panels.div_ceil(2);
            }
        }
    }

    fn down(self) -> usize {
        self.whole.rows.div_ceil(self.tall)
    }

    fn count(self) -> usize {
        self.down() * self.whole.columns.div_ceil(self.wide)
    }

    fn part(self, index: usize) -> Rectangle {
        let (top, left) = (index % self.down() * self.tall, index / self.down() * self.wide);
        Rectangle {
            row: self.whole.row + top,
            rows: self.tall.min(self.whole.rows - top),
            column: self.whole.column + left,
            columns: self.wide.min(self.whole.columns - left),
        }
    }
}

/// A range of depth that is packed in slabs of [`DEPTH`].
#[derive(Clone, Copy)]
struct Slabs {
    first: usize,
    end: usize,
}

impl Slabs {
    fn count(self) -> usize {
        (self.end - self.first).div_ceil(DEPTH)
    }

    /// Where a slab begins, and how deep it is.
    fn slab(self, index: usize) -> (usize, usize) {
        let depth = self.first + index * DEPTH;
        (depth, DEPTH.min(self.end - depth))
    }
}

/// Packs rows of a and panels of b that belong to a rectangle of c, slab after slab, on all cores.
fn pack_together<K: Micro, A: Read, B: Read>(
    (a, packed_a): (&A, &mut [f32]),
    (b, packed_b): (&Second<B>, &mut [f32]),
    part: Rectangle,
    slabs: Slabs,
) {
    let Rectangle { row, rows, column, columns } = part;
    let panels = columns.div_ceil(K::COLUMNS);
    let packed_a = &mut packed_a[..slabs.count() * rows * DISTANCE];
    let packed_b = &mut packed_b[..slabs.count() * panels * DEPTH * K::COLUMNS];
    let pack_a = || {
        let rows_of_slabs = packed_a.par_chunks_exact_mut(DISTANCE).enumerate();
        rows_of_slabs.with_min_len(ROWS_PER_TASK).for_each(|(index, to)| {
            pack_rows(a, row + index % rows, slabs.slab(index / rows), to);
        });
    };
    let pack_b = || {
        let panels_of_slabs = packed_b.par_chunks_exact_mut(DEPTH * K::COLUMNS).enumerate();
        panels_of_slabs.for_each(|(index, to)| {
            let across = index % panels * K::COLUMNS;
            let width = K::COLUMNS.min(columns - across);
            pack_panel::<K, B>(b, slabs.slab(index / panels), (column + across, width), to);
        });
    };
    rayon::join(pack_a, pack_b);
}

/// Multiplies what was packed together, a rectangle of c for each task.
fn multiply_together<K: Micro>(
    packed_a: &[f32],
    packed_b: &[f32],
    whole: Rectangle,
    slabs: Slabs,
    target: &Target<'_>,
) {
    let panels = whole.columns.div_ceil(K::COLUMNS);
    let parts = Parts::new::<K>(whole, TASKS_PER_THREAD * rayon::current_num_threads());
    (0..parts.count()).into_par_iter().with_max_len(1).for_each(|task| {
        let part = parts.part(task);
        let (top, left) = (part.row - whole.row, part.column - whole.column);
        for index in 0..slabs.count() {
            let (depth, depths) = slabs.slab(index);
            let a = &packed_a[(index * whole.rows + top) * DISTANCE..];
            let b = &packed_b[(index * panels * K::COLUMNS + left) * DEPTH..];
            // SAFETY: tasks have rectangles of their own, and callers found the instructions of `K` by `level`.
            unsafe { block::<K>(a, b, depths, start(depth), target, part) };
        }
    });
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    /// Small whole numbers: sums of their products are exact, whatever the order.
    fn whole_numbers(length: usize, step: usize) -> Vec<f32> {
        (0..length).map(|i| (i * step % 17) as f32 - 8.0).collect()
    }

    fn transposed(matrix: &[f32], columns: usize) -> Vec<f32> {
        let rows = matrix.len() / columns;
        (0..matrix.len()).map(|i| matrix[i % rows * columns + i / rows]).collect()
    }

    fn expected(Shape { m, n, k }: Shape, a: &[f32], b: &[f32]) -> Vec<f32> {
        let element = |i: usize| (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum();
        (0..m * n).map(element).collect()
    }

    /// Every edge of tiles, panels, slabs and blocks.
    const SHAPES: [[usize; 3]; 10] = [
        [1, 1, 1],
        [2, 1, 1],
        [16, 16, 16],
        [14, 32, DEPTH],
        [15, 33, DEPTH + 1],
        [29, 95, 2 * DEPTH + 3],
        [BLOCK_ROWS + 1, 17, 5],
        [3, BLOCK_COLUMNS + 1, 2],
        [2, 3, SHARED_DEPTH + 1],
        [350, 370, 300],
    ];

    fn agrees<K: Micro>() {
        for [m, n, k] in SHAPES {
            let shape = Shape { m, n, k };
            let (a, b) = (whole_numbers(m * k, 5), whole_numbers(k * n, 7));
            let turned = transposed(&b, n);
            let expected = expected(shape, &a, &b);
            let as_is = Second::AsIs(rows(&b, n));
            let turned = Second::Transposed(rows(&turned, k));
            let mut c = vec![f32::NAN; m * n];
            serial::<K, _, _>(shape, &rows(&a, k), &as_is, &mut c);
            assert!(c == expected, "{shape:?} in one thread");
            c.fill(f32::NAN);
            parallel::<K, _, _>(shape, &rows(&a, k), &as_is, &mut c);
            assert!(c == expected, "{shape:?} on all cores");
            c.fill(f32::NAN);
            serial::<K, _, _>(shape, &rows(&a, k), &turned, &mut c);
            assert!(c == expected, "{shape:?} with b turned");
        }
    }

    #[test]
    fn all_instructions_agree_with_three_loops() {
        agrees::<micro::Portable>();
        #[cfg(target_arch = "x86_64")]
        {
            if level() >= Level::Avx2 {
                agrees::<micro::Avx2>();
            }
            if level() >= Level::Avx512 {
                agrees::<micro::Avx512>();
            }
        }
    }

    #[test]
    fn an_empty_sum_is_zero() {
        let mut c = [f32::NAN; 6];
        multiply(
            Shape { m: 2, n: 3, k: 0 },
            rows::<f32>(&[], 0),
            Second::AsIs(rows::<f32>(&[], 3)),
            &mut c,
        );
        assert_eq!(c, [0.0; 6]);
    }

    /// m · n wraps to 0, the length of c.
    #[test]
    #[should_panic(expected = "sizes do not fit")]
    fn sizes_whose_product_wraps_are_refused() {
        let ones = |_: usize, _: usize, to: &mut [f32]| to.fill(1.0);
        multiply(Shape { m: 2, n: 1 << 63, k: 1 }, ones, Second::AsIs(ones), &mut []);
    }

    /// m · n wraps to the length of c.
    #[test]
    #[should_panic(expected = "sizes do not fit")]
    fn sizes_whose_product_wraps_are_refused_on_all_cores() {
        let ones = |_: usize, _: usize, to: &mut [f32]| to.fill(1.0);
        let shape = Shape { m: 2, n: (1 << 63) + LEAST_SHARED / 2, k: 1 };
        multiply_parallel(shape, ones, Second::AsIs(ones), &mut vec![0.0; LEAST_SHARED]);
    }

    #[test]
    fn a_single_row_agrees_with_three_loops() {
        for (n, k) in [(1, 1), (3, 2), (513, 7), (70, 300), (4100, 1031)] {
            let shape = Shape { m: 1, n, k };
            let (a, b) = (whole_numbers(k, 5), whole_numbers(k * n, 7));
            let turned = transposed(&b, n);
            let expected = expected(shape, &a, &b);
            let mut c = vec![f32::NAN; n];
            multiply(shape, rows(&a, k), Second::AsIs(rows(&b, n)), &mut c);
            assert!(c == expected, "{shape:?}");
            c.fill(f32::NAN);
            multiply_parallel(shape, rows(&a, k), Second::Transposed(rows(&turned, k)), &mut c);
            assert!(c == expected, "{shape:?} with b turned");
        }
    }

    #[test]
    fn operands_of_any_type_are_read_as_f32() {
        let shape = Shape { m: 19, n: 37, k: 70 };
        let (a, b) = (whole_numbers(19 * 70, 5), whole_numbers(70 * 37, 7));
        let narrow: Vec<bf16> = a.iter().copied().map(bf16::from_f32).collect();
        let bytes: Vec<i8> = b.iter().map(|&b| b as i8).collect();
        let read = |row: usize, column: usize, to: &mut [f32]| {
            let from = &bytes[row * 37 + column..];
            to.iter_mut().zip(from).for_each(|(to, from)| *to = f32::from(*from));
        };
        let mut c = vec![f32::NAN; 19 * 37];
        multiply_parallel(shape, rows(&narrow, 70), Second::AsIs(read), &mut c);
        assert!(c == expected(shape, &a, &b));
    }
}
