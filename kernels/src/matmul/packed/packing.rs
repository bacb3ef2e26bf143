//! Operands on their way into the engine: every element is read once, becomes `f32`, and lies where the innermost loop wants it.
//!
//! Loops here are plain ones: what iterators do inside of their own functions need not become part of ours, and then it is not
//! compiled for vectors. A range is told by where it begins and how long it is.

#![allow(unsafe_code)] // instructions that are known to be there

use super::micro::{DISTANCE, Micro, TURNED};
use super::{Read, Second, pieces};
use crate::shared::vectorise;

/// Rows of a from `row` on, as many as there is room for.
pub(super) fn pack_rows<A: Read>(a: &A, row: usize, depths: (usize, usize), to: &mut [f32]) {
    vectorise!(copy_rows::<A>, (a, row, depths, to));
}

#[inline(always)]
fn copy_rows<A: Read>(a: &A, row: usize, (depth, depths): (usize, usize), to: &mut [f32]) {
    for (i, to) in to.chunks_exact_mut(DISTANCE).enumerate() {
        a(row + i, depth, &mut to[..depths]);
    }
}

/// A panel of b: as many rows as there are steps of depth, each as wide as a tile of registers, zeros at the end.
pub(super) fn pack_panel<K: Micro, B: Read>(
    b: &Second<B>,
    depths: (usize, usize),
    columns: (usize, usize),
    to: &mut [f32],
) {
    match b {
        Second::AsIs(b) => vectorise!(copy_panel::<K, B>, (b, depths, columns, to)),
        Second::Transposed(b) => vectorise!(turn_panel::<K, B>, (b, depths, columns, to)),
    }
}

#[inline(always)]
fn copy_panel<K: Micro, B: Read>(
    b: &B,
    (depth, depths): (usize, usize),
    (column, columns): (usize, usize),
    to: &mut [f32],
) {
    for (to, row) in to.chunks_exact_mut(K::COLUMNS).zip(depth..depth + depths) {
        if columns == K::COLUMNS {
            // Apart, so that the compiler knows how long a row is.
            b(row, column, &mut to[..K::COLUMNS]);
        } else {
            b(row, column, &mut to[..columns]);
            to[columns..].fill(0.0);
        }
    }
}

#[inline(always)]
fn turn_panel<K: Micro, B: Read>(
    b: &B,
    (depth, depths): (usize, usize),
    (column, columns): (usize, usize),
    to: &mut [f32],
) {
    for (across, width) in pieces(K::COLUMNS, TURNED) {
        for (first, length) in pieces(depths, TURNED) {
            let mut square = [[0.0; TURNED]; TURNED];
            let existing = columns.saturating_sub(across).min(width);
            for (line, column) in square[..existing].iter_mut().zip(column + across..) {
                if length == TURNED {
                    b(column, depth + first, line);
                } else {
                    b(column, depth + first, &mut line[..length]);
                }
            }
            // SAFETY: callers found the instructions of `K` by `level`.
            unsafe { K::turn(&mut square) };
            let rows = to[first * K::COLUMNS..].chunks_exact_mut(K::COLUMNS);
            for (to, line) in rows.zip(&square[..length]) {
                if width == TURNED {
                    to[across..][..TURNED].copy_from_slice(line);
                } else {
                    to[across..][..width].copy_from_slice(&line[..width]);
                }
            }
        }
    }
}
