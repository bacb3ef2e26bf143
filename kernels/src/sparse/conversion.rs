//! From one format to the other. Columns and values are the same in both.

use kbench::prelude::*;

use super::{ENTRIES_PER_TASK, Pattern, SOURCE, lanes_per_row};

/// Threads of a block of device code.
const THREADS: usize = 256;

/// Entries of a thread of device code: SPARSE_ENTRIES_PER_LANE.
const ENTRIES_PER_THREAD: usize = 4;

/// `row_offsets[r]` ← number of entries in rows before r, from the row of each entry.
#[kernel_bench(
    sizes = [
        "tiny" => (rows = 256, per_row = 16),
        "small" => (rows = 4096, per_row = 16),
        "medium" => (rows = 1 << 16, per_row = 16),
        "large" => (rows = 1 << 18, per_row = 16),
    ],
    inputs = |rows, per_row| (Pattern::random(rows, per_row).row_indices, zeros(rows + 1)),
    reference = count_entries,
)]
pub fn coo_to_csr(row_indices: &[u32], row_offsets: &mut [u32]) {
    offsets_of(row_indices, 0, 0, row_offsets);
}

/// The offsets of the rows from `first_row` on, of which there are as many as there is space for; `entries` are theirs, and
/// the first of them has the number `first_entry`.
fn offsets_of(entries: &[u32], first_row: usize, first_entry: usize, offsets: &mut [u32]) {
    let first_entry = first_entry as u32;
    offsets.fill(first_entry);
    // Every entry says where the next row begins, and the last of its row is right: nobody could predict which one that is.
    // Nothing overflows here; asking for each entry would take as long as all the rest.
    for (number, &row) in entries.iter().enumerate() {
        let next_row = (row as usize).wrapping_sub(first_row).wrapping_add(1);
        if let Some(offset) = offsets.get_mut(next_row) {
            *offset = first_entry.wrapping_add(number as u32).wrapping_add(1);
        }
    }
    // Rows without entries begin where the row before ends.
    let mut begin = 0;
    for offset in offsets {
        begin = begin.max(*offset);
        *offset = begin;
    }
}

/// [`coo_to_csr`] on all cores: halves and halves of halves, cut where a row ends.
#[kernel_bench(of = coo_to_csr, parallel, threshold = tuned(100_000))]
pub fn coo_to_csr_rayon(row_indices: &[u32], row_offsets: &mut [u32]) {
    fn halves(entries: &[u32], first_row: usize, first_entry: usize, offsets: &mut [u32]) {
        if offsets.len() < 2 || entries.len() + offsets.len() <= 2 * ENTRIES_PER_TASK {
            return offsets_of(entries, first_row, first_entry, offsets);
        }
        let (low, high) = offsets.split_at_mut(offsets.len() / 2);
        let row = first_row + low.len();
        let entry = entries.partition_point(|r| (*r as usize) < row);
        rayon::join(
            || halves(&entries[..entry], first_row, first_entry, low),
            || halves(&entries[entry..], row, first_entry + entry, high),
        );
    }
    halves(row_indices, 0, 0, row_offsets);
}

/// [`coo_to_csr`] on a GPU, by those threads that see a row begin.
#[kernel_bench(of = coo_to_csr, cuda)]
pub fn coo_to_csr_cuda(
    gpu: &Gpu,
    row_indices: &DeviceSlice<u32>,
    row_offsets: &mut DeviceSlice<u32>,
) -> GpuResult<()> {
    let (entries, rows) = (row_indices.len(), row_offsets.len() - 1);
    let kernel = gpu.kernel(SOURCE, "coo_to_csr")?.over(entries / ENTRIES_PER_THREAD + 1, THREADS);
    kernel.arg(row_indices).arg(row_offsets).arg(rows as u32).arg(entries as u32).launch()
}

fn count_entries(row_indices: &[u32], row_offsets: &mut [u32]) {
    row_offsets.fill(0);
    for row in row_indices {
        row_offsets[*row as usize + 1] += 1;
    }
    for row in 1..row_offsets.len() {
        row_offsets[row] += row_offsets[row - 1];
    }
}

/// `row_indices[e]` ← the row of entry e, from where each row begins.
#[kernel_bench(
    sizes = [
        "tiny" => (rows = 256, per_row = 16),
        "small" => (rows = 4096, per_row = 16),
        "medium" => (rows = 1 << 16, per_row = 16),
        "large" => (rows = 1 << 18, per_row = 16),
    ],
    inputs = csr_to_coo_inputs,
    reference = find_rows,
)]
pub fn csr_to_coo(row_offsets: &[u32], row_indices: &mut [u32]) {
    rows_of(row_offsets, 0, row_indices);
}

/// The rows of the entries of the rows from `first_row` on, whose offsets are given.
fn rows_of(offsets: &[u32], first_row: usize, entries: &mut [u32]) {
    for (row, ends) in offsets.windows(2).enumerate() {
        let (begin, end) = (ends[0] - offsets[0], ends[1] - offsets[0]);
        entries[begin as usize..end as usize].fill((first_row + row) as u32);
    }
}

/// [`csr_to_coo`] on all cores.
#[kernel_bench(of = csr_to_coo, parallel, threshold = tuned(100_000))]
pub fn csr_to_coo_rayon(row_offsets: &[u32], row_indices: &mut [u32]) {
    fn halves(offsets: &[u32], first_row: usize, entries: &mut [u32]) {
        let rows = offsets.len() - 1;
        if rows < 2 || entries.len() + rows <= 2 * ENTRIES_PER_TASK {
            return rows_of(offsets, first_row, entries);
        }
        let middle = rows / 2;
        let (low, high) = entries.split_at_mut((offsets[middle] - offsets[0]) as usize);
        rayon::join(
            || halves(&offsets[..=middle], first_row, low),
            || halves(&offsets[middle..], first_row + middle, high),
        );
    }
    halves(row_offsets, 0, row_indices);
}

/// [`csr_to_coo`] on a GPU: about half as many lanes of a warp for each row as it has entries on average.
#[kernel_bench(of = csr_to_coo, cuda)]
pub fn csr_to_coo_cuda(
    gpu: &Gpu,
    row_offsets: &DeviceSlice<u32>,
    row_indices: &mut DeviceSlice<u32>,
) -> GpuResult<()> {
    let rows = row_offsets.len() - 1;
    let lanes = lanes_per_row(row_indices.len(), rows);
    let kernel = gpu.kernel(SOURCE, "csr_to_coo")?.over(rows * lanes, THREADS);
    kernel.arg(row_offsets).arg(row_indices).arg(rows as u32).arg(lanes as u32).launch()
}

fn find_rows(row_offsets: &[u32], row_indices: &mut [u32]) {
    let mut row = 0;
    for (entry, found) in row_indices.iter_mut().enumerate() {
        while row_offsets[row + 1] as usize <= entry {
            row += 1;
        }
        *found = row as u32;
    }
}

fn csr_to_coo_inputs(rows: usize, per_row: usize) -> (Vec<u32>, Vec<u32>) {
    let Pattern { row_offsets, row_indices, .. } = Pattern::random(rows, per_row);
    (row_offsets, zeros(row_indices.len()))
}
