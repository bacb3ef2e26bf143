//! A sparse matrix times a vector.

use kbench::prelude::*;
use rayon::prelude::*;

use super::{ENTRIES_PER_TASK, Pattern, SOURCE, lanes_per_row};

/// Sums of a row that do not wait for each other.
const LANES: usize = 4;

/// Threads of a block of device code.
const THREADS: usize = 256;

/// Entries of a warp of device code in the product by COO: SPARSE_ENTRIES_PER_WARP.
const ENTRIES_PER_WARP: usize = 512;

/// y ← A·x, with A in CSR and in COO: each variant looks at what its format has.
#[kernel_bench(
    sizes = [
        "tiny" => (rows = 256, per_row = 16),
        "small" => (rows = 4096, per_row = 16),
        "medium" => (rows = 1 << 16, per_row = 16),
        "large" => (rows = 1 << 18, per_row = 16),
    ],
    inputs = spmv_inputs,
    flops = |rows, per_row| 2 * rows * per_row,
    bytes = |rows, per_row| 8 * rows * per_row + 12 * rows + 4, // columns and values; offsets, x and y
    reference = spmv_f64,
)]
pub fn spmv(
    row_offsets: &[u32],
    _row_indices: &[u32],
    column_indices: &[u32],
    values: &[f32],
    x: &[f32],
    y: &mut [f32],
) {
    multiply_rows(row_offsets, column_indices, values, x, y);
}

/// Some rows of a product, with the offsets of those rows.
fn multiply_rows(offsets: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: &mut [f32]) {
    for (y, ends) in y.iter_mut().zip(offsets.windows(2)) {
        let entries = ends[0] as usize..ends[1] as usize;
        *y = row_times_vector(&columns[entries.clone()], &values[entries], x);
    }
}

#[inline(always)]
fn row_times_vector(columns: &[u32], values: &[f32], x: &[f32]) -> f32 {
    let (columns, columns_rest) = columns.as_chunks::<LANES>();
    let (values, values_rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (columns, values) in columns.iter().zip(values) {
        for ((sum, column), value) in sums.iter_mut().zip(columns).zip(values) {
            *sum += value * x[*column as usize];
        }
    }
    for ((sum, column), value) in sums.iter_mut().zip(columns_rest).zip(values_rest) {
        *sum += value * x[*column as usize];
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// [`spmv`] by CSR, with rows shared among all cores.
#[kernel_bench(of = spmv, parallel, threshold = tuned(50_000))]
pub fn spmv_rayon(
    row_offsets: &[u32],
    _row_indices: &[u32],
    column_indices: &[u32],
    values: &[f32],
    x: &[f32],
    y: &mut [f32],
) {
    let rows = y.len();
    let rows_of_task = (rows * ENTRIES_PER_TASK).div_ceil(values.len().max(1)).clamp(1, rows);
    y.par_chunks_mut(rows_of_task).enumerate().for_each(|(task, y)| {
        let offsets = &row_offsets[task * rows_of_task..][..y.len() + 1];
        multiply_rows(offsets, column_indices, values, x, y);
    });
}

/// [`spmv`] by COO.
#[kernel_bench(of = spmv, bytes = |rows, per_row| 12 * rows * per_row + 8 * rows)]
pub fn spmv_coo(
    _row_offsets: &[u32],
    row_indices: &[u32],
    column_indices: &[u32],
    values: &[f32],
    x: &[f32],
    y: &mut [f32],
) {
    multiply_entries((row_indices, column_indices, values), x, 0, y);
}

/// [`spmv`] by COO, with entries shared among all cores: halves and halves of halves, cut where a row ends.
#[kernel_bench(of = spmv, parallel, threshold = tuned(50_000), bytes = |rows, per_row| 12 * rows * per_row + 8 * rows)]
pub fn spmv_coo_rayon(
    _row_offsets: &[u32],
    row_indices: &[u32],
    column_indices: &[u32],
    values: &[f32],
    x: &[f32],
    y: &mut [f32],
) {
    fn halves(entries: Entries<'_>, x: &[f32], first_row: usize, y: &mut [f32]) {
        let (rows, columns, values) = entries;
        if rows.len() <= ENTRIES_PER_TASK || y.len() < 2 {
            return multiply_entries(entries, x, first_row, y);
        }
        // The row of the entry in the middle, but neither the first row nor one beyond the last.
        let row =
            rows[rows.len() / 2].clamp(first_row as u32 + 1, (first_row + y.len() - 1) as u32);
        let (low_y, high_y) = y.split_at_mut(row as usize - first_row);
        let entry = rows.partition_point(|r| *r < row);
        let low = (&rows[..entry], &columns[..entry], &values[..entry]);
        let high = (&rows[entry..], &columns[entry..], &values[entry..]);
        rayon::join(|| halves(low, x, first_row, low_y), || halves(high, x, row as usize, high_y));
    }
    halves((row_indices, column_indices, values), x, 0, y);
}

/// Rows, columns and values of entries.
type Entries<'a> = (&'a [u32], &'a [u32], &'a [f32]);

/// The part of a product that entries of the rows from `first_row` on make.
fn multiply_entries(
    (rows, columns, values): Entries<'_>,
    x: &[f32],
    first_row: usize,
    y: &mut [f32],
) {
    y.fill(0.0);
    let (mut row, mut sum) = (first_row, 0.0);
    for ((&r, &column), value) in rows.iter().zip(columns).zip(values) {
        // A sum stays in a register as long as its row goes on.
        if r as usize != row {
            y[row - first_row] = sum;
            (row, sum) = (r as usize, 0.0);
        }
        sum += value * x[column as usize];
    }
    y[row - first_row] = sum;
}

/// [`spmv`] by CSR on a GPU: about half as many lanes of a warp for each row as it has entries on average.
#[kernel_bench(of = spmv, cuda)]
pub fn spmv_cuda(
    gpu: &Gpu,
    row_offsets: &DeviceSlice<u32>,
    _row_indices: &DeviceSlice<u32>,
    column_indices: &DeviceSlice<u32>,
    values: &DeviceSlice<f32>,
    x: &DeviceSlice<f32>,
    y: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let rows = y.len();
    let lanes = lanes_per_row(values.len(), rows);
    let kernel = gpu.kernel(SOURCE, "spmv_csr")?.over(rows * lanes, THREADS);
    let kernel = kernel.arg(row_offsets).arg(column_indices).arg(values).arg(x).arg(y);
    kernel.arg(rows as u32).arg(lanes as u32).launch()
}

/// [`spmv`] by COO on a GPU: as many entries for each warp, and a second launch for rows that more than one warp has a part
/// of.
#[kernel_bench(of = spmv, cuda, bytes = |rows, per_row| 12 * rows * per_row + 8 * rows)]
pub fn spmv_coo_cuda(
    gpu: &Gpu,
    _row_offsets: &DeviceSlice<u32>,
    row_indices: &DeviceSlice<u32>,
    column_indices: &DeviceSlice<u32>,
    values: &DeviceSlice<f32>,
    x: &DeviceSlice<f32>,
    y: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let (rows, entries) = (y.len(), values.len());
    // One entry more: where the last row ends, those without entries are told zero.
    let warps = (entries + 1).div_ceil(ENTRIES_PER_WARP);
    let mut rest_rows = gpu.scratch::<u32>(warps)?;
    let mut rest_sums = gpu.scratch::<f32>(warps)?;
    let kernel = gpu.kernel(SOURCE, "spmv_coo")?.over(warps * 32, THREADS);
    let kernel = kernel.arg(row_indices).arg(column_indices).arg(values).arg(x).arg(&mut *y);
    let kernel = kernel.arg(&mut rest_rows).arg(&mut rest_sums);
    kernel.arg(rows as u32).arg(entries as u32).launch()?;
    let kernel = gpu.kernel(SOURCE, "spmv_coo_rest")?.over(warps, THREADS);
    kernel.arg(&rest_rows).arg(&rest_sums).arg(y).arg(rows as u32).arg(warps as u32).launch()
}

fn spmv_f64(
    row_offsets: &[u32],
    row_indices: &[u32],
    column_indices: &[u32],
    values: &[f64],
    x: &[f64],
    y: &mut [f64],
) {
    assert_eq!(row_offsets[y.len()] as usize, values.len());
    y.fill(0.0);
    for entry in 0..values.len() {
        y[row_indices[entry] as usize] += values[entry] * x[column_indices[entry] as usize];
    }
}

type SpmvInputs = (Vec<u32>, Vec<u32>, Vec<u32>, Vec<f32>, Vec<f32>, Vec<f32>);

fn spmv_inputs(rows: usize, per_row: usize) -> SpmvInputs {
    let Pattern { row_offsets, row_indices, column_indices } = Pattern::random(rows, per_row);
    let values = normal(column_indices.len());
    (row_offsets, row_indices, column_indices, values, normal(rows), zeros(rows))
}
