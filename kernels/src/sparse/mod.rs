//! Matrices that are mostly zeros, in two formats with the same entries in the same order, row by row and by rising column
//! within a row.
//!
//! | format | which row an entry is in | good for |
//! |---|---|---|
//! | CSR, compressed sparse rows | `row_offsets[r]..row_offsets[r + 1]` are the entries of row r | rows shared among cores |
//! | COO, coordinates | `row_indices[e]` is the row of entry e | entries shared evenly, however long rows are |
//!
//! What kernels here wait for is the vector: its elements are taken from anywhere.

mod conversion;
mod product;

pub use conversion::*;
pub use product::*;

use kbench::prelude::*;

use crate::shared::COMMON;

const SOURCE: Source =
    Source::new(include_str!("../../cuda/sparse.cu")).named("sparse.cu").headers(COMMON);

/// Entries of a task: each costs more than an element elsewhere.
const ENTRIES_PER_TASK: usize = 1 << 13;

/// Where the entries of a square matrix are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Where each row begins, and the number of all entries.
    pub row_offsets: Vec<u32>,
    /// The row of each entry.
    pub row_indices: Vec<u32>,
    /// The column of each entry.
    pub column_indices: Vec<u32>,
}

impl Pattern {
    /// Rows of 0 to 2·per_row entries, by chance, but for the first, so that no matrix is empty; within a row, one entry in
    /// each of as many equal parts of the columns.
    pub fn random(rows: usize, per_row: usize) -> Self {
        let mut lengths: Vec<u32> = integers(rows, 0..2 * per_row as i64 + 1);
        lengths[0] = per_row as u32;
        let lengths: Vec<usize> = lengths.iter().map(|length| rows.min(*length as usize)).collect();
        let entries = lengths.iter().sum();
        let mut places = range::<Vec<f64>>(entries, 0.0..1.0).into_iter();
        let mut pattern = Pattern {
            row_offsets: vec![0],
            row_indices: Vec::with_capacity(entries),
            column_indices: Vec::with_capacity(entries),
        };
        for (row, &length) in lengths.iter().enumerate() {
            for (part, place) in places.by_ref().take(length).enumerate() {
                let (begin, end) = (part * rows / length, (part + 1) * rows / length);
                let column = begin + (place * (end - begin) as f64) as usize;
                pattern.row_indices.push(row as u32);
                pattern.column_indices.push(column as u32);
            }
            pattern.row_offsets.push(pattern.row_indices.len() as u32);
        }
        pattern
    }
}

/// Lanes of a warp that share a row in device code: half as many as it has entries on average, so that few of them are
/// idle and each has another entry to ask for.
fn lanes_per_row(entries: usize, rows: usize) -> usize {
    (entries / rows.max(1) / 2).next_power_of_two().clamp(2, 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_sorted_and_both_formats_agree() {
        for (rows, per_row) in [(1, 1), (7, 3), (100, 8), (1000, 20), (10, 100)] {
            let Pattern { row_offsets, row_indices, column_indices } =
                Pattern::random(rows, per_row);
            assert_eq!(row_offsets.len(), rows + 1);
            for row in 0..rows {
                let entries = row_offsets[row] as usize..row_offsets[row + 1] as usize;
                assert!(row_indices[entries.clone()].iter().all(|r| *r as usize == row));
                let columns = &column_indices[entries];
                assert!(columns.windows(2).all(|pair| pair[0] < pair[1]), "{columns:?}");
                assert!(columns.iter().all(|column| (*column as usize) < rows));
            }
            assert_eq!(row_offsets[rows] as usize, row_indices.len());
        }
    }
}
