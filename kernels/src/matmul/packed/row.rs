//! A single row times a matrix: every element of b is used once, so nothing is packed and memory decides.

use super::{Read, Second};
use crate::shared::vectorise;

/// Columns of c that stay in the first-level cache while rows of b are added to them.
const COLUMNS: usize = 8192;
/// Columns that are read at a time.
const PIECE: usize = 256;
/// Rows of b that are added at a time, so that c is read and written less often.
const ROWS: usize = 4;
/// Steps of depth of a transposed b that are read at a time, and sums that are independent of each other.
const DEPTH: usize = 256;
const LANES: usize = 32;

/// c ← a·b for columns of b from `column` on, as many as c has.
pub(super) fn multiply<B: Read>(a: &[f32], b: &Second<B>, column: usize, c: &mut [f32]) {
    match b {
        Second::AsIs(b) => vectorise!(add_rows::<B>, (a, b, column, c)),
        Second::Transposed(b) => vectorise!(dot_rows::<B>, (a, b, column, c)),
    }
}

#[inline(always)]
fn add_rows<B: Read>(a: &[f32], b: &B, column: usize, c: &mut [f32]) {
    let mut rows = [[0.0; PIECE]; ROWS];
    for (block, c) in c.chunks_mut(COLUMNS).enumerate() {
        c.fill(0.0);
        for (group, a) in a.chunks(ROWS).enumerate() {
            // Rows beyond the last one keep what they have, and count nothing.
            let mut factors = [0.0; ROWS];
            factors[..a.len()].copy_from_slice(a);
            for (piece, c) in c.chunks_mut(PIECE).enumerate() {
                let column = column + block * COLUMNS + piece * PIECE;
                for (i, row) in rows.iter_mut().enumerate().take(a.len()) {
                    b(group * ROWS + i, column, &mut row[..c.len()]);
                }
                let [first, second, third, fourth] = &rows;
                let pairs = first.iter().zip(second).zip(third.iter().zip(fourth));
                for (c, ((first, second), (third, fourth))) in c.iter_mut().zip(pairs) {
                    *c += (factors[0] * first + factors[1] * second)
                        + (factors[2] * third + factors[3] * fourth);
                }
            }
        }
    }
}

#[inline(always)]
fn dot_rows<B: Read>(a: &[f32], b: &B, column: usize, c: &mut [f32]) {
    let mut row = [0.0; DEPTH];
    for (j, c) in c.iter_mut().enumerate() {
        let mut sums = [0.0; LANES];
        for (index, a) in a.chunks(DEPTH).enumerate() {
            let row = &mut row[..a.len()];
            b(column + j, index * DEPTH, row);
            let (vectors, rest) = a.as_chunks::<LANES>();
            let (row_vectors, row_rest) = row.as_chunks::<LANES>();
            for (a, b) in vectors.iter().zip(row_vectors) {
                for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                    *sum += a * b;
                }
            }
            for (sum, (a, b)) in sums.iter_mut().zip(rest.iter().zip(row_rest)) {
                *sum += a * b;
            }
        }
        *c = sums.iter().sum();
    }
}
