//! The two steps of every transform here, each of blocks that are independent of each other.
//!
//! A matrix is transformed along its columns, sixteen neighbouring columns at a time, and the blocks are transposed on
//! their way to scratch memory, where sixteen neighbouring rows then lie as the second step needs them. That is a
//! two-dimensional transform. It is a one-dimensional one of rows · columns numbers, too, once number (k, j) in between is
//! turned by e^(−2πi·jk/n) and the result is written by columns (Bailey, "FFTs in External or Hierarchical Memory", 1990).

use std::ops::Range;

use super::transform::{Complex, Lanes, Pair, Transform, root};
use crate::signal::parts::Shared;
use crate::signal::vector::{LANES, Task, Vector};

/// What turns number (k, j) of the first step's result by e^(−2πi·jk/n): the product of a turn of the column within its
/// block and one of the block.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    rows: usize,
    /// For each row k, e^(−2πi·kj/n) for sixteen columns j.
    within: Vec<Lanes>,
    /// For each block b and row k, e^(−2πi·16bk/n).
    blocks: Vec<Complex>,
}

impl Turns {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        let n = rows * columns;
        let sixteen = |k: usize| {
            let roots: [Complex; LANES] = std::array::from_fn(|j| root(k * j, n));
            Lanes { re: roots.map(|root| root.re), im: roots.map(|root| root.im) }
        };
        let within = (0..rows).map(sixteen).collect();
        let blocks = 0..columns.div_ceil(LANES);
        let blocks = blocks.flat_map(|b| (0..rows).map(move |k| root(LANES * b * k % n, n)));
        Turns { rows, within, blocks: blocks.collect() }
    }

    /// Memory of all roots.
    pub(super) fn bytes(&self) -> usize {
        size_of_val::<[Lanes]>(&self.within) + size_of_val::<[Complex]>(&self.blocks)
    }

    #[inline(always)]
    fn of<V: Vector>(&self, row: usize, block: usize) -> Pair<V> {
        let within = Pair::<V>::load(&self.within[row]);
        within.multiply(Pair::splat(self.blocks[block * self.rows + row]))
    }
}

/// Sixteen complex numbers that follow each other in memory.
#[inline(always)]
fn load_pairs<V: Vector>(from: &[f32]) -> Pair<V> {
    let (vectors, rest) = from.as_chunks::<LANES>();
    if let ([low, high, ..], []) = (vectors, rest) {
        let (re, im) = V::separate(V::load(low), V::load(high));
        return Pair { re, im };
    }
    let mut lanes = Lanes::ZERO;
    for (lane, pair) in from.as_chunks::<2>().0.iter().enumerate() {
        [lanes.re[lane], lanes.im[lane]] = *pair;
    }
    Pair::load(&lanes)
}

/// As many of sixteen complex numbers as there is room for.
#[inline(always)]
fn store_pairs<V: Vector>(to: &mut [f32], pair: Pair<V>) {
    let (vectors, rest) = to.as_chunks_mut::<LANES>();
    if let ([low, high, ..], []) = (vectors, &*rest) {
        let (first, second) = V::interleave(pair.re, pair.im);
        first.store(low);
        return second.store(high);
    }
    let mut lanes = Lanes::ZERO;
    pair.store(&mut lanes);
    for (lane, pair) in to.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        *pair = [lanes.re[lane], lanes.im[lane]];
    }
}

/// Sixteen rows of sixteen numbers become columns.
#[inline(always)]
fn transpose<V: Vector>(rows: [Pair<V>; LANES]) -> [Pair<V>; LANES] {
    let (mut re, mut im) = ([rows[0].re; LANES], [rows[0].im; LANES]);
    for (i, row) in rows.iter().enumerate() {
        (re[i], im[i]) = (row.re, row.im);
    }
    V::transpose(&mut re);
    V::transpose(&mut im);
    let mut columns = rows;
    for (i, column) in columns.iter_mut().enumerate() {
        *column = Pair { re: re[i], im: im[i] };
    }
    columns
}

/// Blocks that a task reads or writes together: lines of memory that are neighbours, for pages are far apart.
pub(super) const TOGETHER: usize = 4;

/// Columns of a block: sixteen, or what is left of them.
fn columns_of(block: usize, columns: usize) -> Range<usize> {
    block * LANES..(block * LANES + LANES).min(columns)
}

/// The first step for a few blocks of columns of the matrix `x`: into `scratch`, in blocks of sixteen rows.
pub(super) struct ColumnsStep<'a> {
    pub(super) transform: &'a Transform,
    pub(super) turns: Option<&'a Turns>,
    pub(super) x: &'a [f32],
    pub(super) blocks: Range<usize>,
    pub(super) scratch: &'a Shared<'a, Lanes>,
    /// Room for the blocks, and for one more.
    pub(super) buffers: &'a mut [Lanes],
}

impl Task for ColumnsStep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let ColumnsStep { transform, turns, x, blocks, scratch, buffers } = self;
        let rows = transform.length();
        let columns = x.len() / 2 / rows;
        let (buffers, spare) = buffers.split_at_mut(blocks.len() * rows);
        for (i, row) in x.chunks_exact(2 * columns).enumerate() {
            for (block, buffer) in blocks.clone().zip(buffers.chunks_exact_mut(rows)) {
                let range = columns_of(block, columns);
                load_pairs::<V>(&row[2 * range.start..2 * range.end]).store(&mut buffer[i]);
            }
        }
        for (block, buffer) in blocks.zip(buffers.chunks_exact_mut(rows)) {
            let result = transform.run::<V>(buffer, spare);
            write_transposed::<V>(result, turns, block, columns, scratch);
        }
    }
}

/// Turns the results of a block of columns, and writes them in blocks of sixteen rows.
#[inline(always)]
fn write_transposed<V: Vector>(
    result: &[Lanes],
    turns: Option<&Turns>,
    block: usize,
    columns: usize,
    scratch: &Shared<'_, Lanes>,
) {
    let range = columns_of(block, columns);
    for (group, sixteen) in result.chunks(LANES).enumerate() {
        let mut square = [Pair::<V>::splat(Complex { re: 0.0, im: 0.0 }); LANES];
        for (i, (to, lanes)) in square.iter_mut().zip(sixteen).enumerate() {
            *to = Pair::load(lanes);
            if let Some(turns) = turns {
                *to = to.multiply(turns.of(group * LANES + i, block));
            }
        }
        let (start, end) = (group * columns + range.start, group * columns + range.end);
        // SAFETY: no other block has these columns.
        let to = unsafe { scratch.part(start..end) };
        for (to, pair) in to.iter_mut().zip(transpose(square)) {
            pair.store(to);
        }
    }
}

/// Where the second step writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    /// By rows, as the matrix was.
    Rows,
    /// By columns: the order of a one-dimensional transform.
    Columns,
}

/// The second step for a few blocks of rows, from `first` on, which are all of `scratch`: to their places in `out`, a matrix
/// of so many rows.
pub(super) struct RowsStep<'a> {
    pub(super) transform: &'a Transform,
    pub(super) order: Order,
    pub(super) rows: usize,
    pub(super) first: usize,
    pub(super) scratch: &'a mut [Lanes],
    /// As much room.
    pub(super) spare: &'a mut [Lanes],
    pub(super) out: &'a Shared<'a, f32>,
}

impl Task for RowsStep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let RowsStep { transform, order, rows, first, scratch, spare, out } = self;
        let length = transform.length();
        let blocks = scratch.len() / length;
        let mut results: [&[Lanes]; TOGETHER] = [&[]; TOGETHER];
        let buffers = scratch.chunks_exact_mut(length).zip(spare.chunks_exact_mut(length));
        for (result, (buffer, spare)) in results.iter_mut().zip(buffers) {
            *result = transform.run::<V>(buffer, spare);
        }
        match order {
            Order::Columns => {
                for k in 0..length {
                    for (block, result) in results[..blocks].iter().enumerate() {
                        let range = columns_of(first + block, rows);
                        let (start, end) = (k * rows + range.start, k * rows + range.end);
                        // SAFETY: no other block has these rows.
                        let to = unsafe { out.part(2 * start..2 * end) };
                        store_pairs(to, Pair::<V>::load(&result[k]));
                    }
                }
            }
            Order::Rows => {
                for (block, result) in results[..blocks].iter().enumerate() {
                    write_rows::<V>(result, columns_of(first + block, rows), out);
                }
            }
        }
    }
}

/// Transposes sixteen columns of results back into rows.
#[inline(always)]
fn write_rows<V: Vector>(result: &[Lanes], range: Range<usize>, out: &Shared<'_, f32>) {
    for (group, sixteen) in result.chunks(LANES).enumerate() {
        let mut square = [Pair::<V>::splat(Complex { re: 0.0, im: 0.0 }); LANES];
        for (to, lanes) in square.iter_mut().zip(sixteen) {
            *to = Pair::load(lanes);
        }
        for (row, pair) in range.clone().zip(transpose(square)) {
            let start = row * result.len() + group * LANES;
            // SAFETY: no other block has these rows.
            let to = unsafe { out.part(2 * start..2 * (start + sixteen.len())) };
            store_pairs(to, pair);
        }
    }
}

/// Transforms a few blocks of columns of the matrix `x` in their places.
pub(super) struct ColumnsInPlace<'a> {
    pub(super) transform: &'a Transform,
    pub(super) x: &'a Shared<'a, f32>,
    pub(super) columns: usize,
    pub(super) blocks: Range<usize>,
    /// Twice the room for the blocks.
    pub(super) buffers: &'a mut [Lanes],
}

impl Task for ColumnsInPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let ColumnsInPlace { transform, x, columns, blocks, buffers } = self;
        let length = transform.length();
        let place = |i: usize, block: usize| {
            let range = columns_of(block, columns);
            2 * (i * columns + range.start)..2 * (i * columns + range.end)
        };
        let (buffers, spare) = buffers.split_at_mut(blocks.len() * length);
        for i in 0..length {
            for (block, buffer) in blocks.clone().zip(buffers.chunks_exact_mut(length)) {
                // SAFETY: no other task has these columns.
                load_pairs::<V>(unsafe { x.part(place(i, block)) }).store(&mut buffer[i]);
            }
        }
        let mut results: [&[Lanes]; TOGETHER] = [&[]; TOGETHER];
        let buffers = buffers.chunks_exact_mut(length).zip(spare.chunks_exact_mut(length));
        for (result, (buffer, spare)) in results.iter_mut().zip(buffers) {
            *result = transform.run::<V>(buffer, spare);
        }
        for i in 0..length {
            for (block, result) in blocks.clone().zip(results) {
                // SAFETY: no other task has these columns.
                store_pairs(unsafe { x.part(place(i, block)) }, Pair::<V>::load(&result[i]));
            }
        }
    }
}
