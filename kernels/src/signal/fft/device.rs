//! Transforms on a GPU: passes over columns of numbers, each of which reads and writes global memory once.

use kbench::prelude::*;
use kbench::{DeviceValue, Upload};

use super::{Plan, Plan2d, Plan3d};
use crate::shared::COMMON;

const SOURCE: Source =
    Source::new(include_str!("../../../cuda/fft.cu")).named("fft.cu").headers(COMMON);

/// Numbers of a thread.
const PER_THREAD: usize = 16;
/// Numbers of a block at most: 1024 threads, and 136 KiB of shared memory. Where a device has less, it is half of them.
const MOST_NUMBERS: usize = 1 << 14;
/// Numbers of a block, unless there must be more.
const BLOCK_NUMBERS: usize = 1 << 12;
/// Columns that make up whole sectors of 32 bytes.
const SECTOR: usize = 4;
/// Blocks that keep a large device busy: columns are shared among fewer threads rather than leave processors idle.
const ENOUGH_BLOCKS: usize = 264;
/// From here on two passes over short columns are faster than one block of one column.
const FROM_TWO_PASSES: usize = 1 << 13;

/// Entry points for columns of 16 numbers, of 32, and so on.
const ENTRIES: [&str; 10] = [
    "fft_columns_4",
    "fft_columns_5",
    "fft_columns_6",
    "fft_columns_7",
    "fft_columns_8",
    "fft_columns_9",
    "fft_columns_10",
    "fft_columns_11",
    "fft_columns_12",
    "fft_columns_13",
];

/// What a plan is on a device: the shape of the data. Roots of unity are computed there.
#[derive(Debug)]
pub struct DevicePlan {
    depth: usize,
    rows: usize,
    columns: usize,
}

impl DeviceValue for DevicePlan {
    fn duplicate(&self, _: &Gpu) -> GpuResult<Self> {
        Ok(DevicePlan { ..*self })
    }

    fn assign(&mut self, other: &Self, _: &Gpu) -> GpuResult<()> {
        *self = DevicePlan { ..*other };
        Ok(())
    }

    fn device_bytes(&self) -> usize {
        0
    }
}

macro_rules! upload {
    ($($plan:ty: |$from:ident| $depth:expr, $rows:expr, $columns:expr;)*) => {$(
        impl Upload for $plan {
            type Device = DevicePlan;

            fn upload(&self, _: &Gpu) -> GpuResult<DevicePlan> {
                let $from = self;
                Ok(DevicePlan { depth: $depth, rows: $rows, columns: $columns })
            }

            fn copy_to(&self, device: &mut DevicePlan, gpu: &Gpu) -> GpuResult<()> {
                *device = self.upload(gpu)?;
                Ok(())
            }

            fn copy_from(&mut self, _: &DevicePlan, _: &Gpu) -> GpuResult<()> {
                Ok(())
            }
        }
    )*};
}

upload! {
    Plan: |plan| 1, 1, plan.rows.length() * plan.columns.length();
    Plan2d: |plan| 1, plan.columns.length(), plan.rows.length();
    Plan3d: |plan| plan.depth.length(), plan.matrix.columns.length(), plan.matrix.rows.length();
}

/// Where the numbers of columns are: logarithms of the distance from number to number of a column, of the columns of a
/// matrix, and of the distance from matrix to matrix.
#[derive(Clone, Copy)]
struct Layout {
    stride: u32,
    inner: u32,
    outer: u32,
}

impl Layout {
    /// Rows of so many numbers are the columns.
    fn rows(length: usize) -> Self {
        Layout { stride: 0, inner: 0, outer: length.ilog2() }
    }

    /// The columns of matrices.
    fn columns(length: usize, columns: usize) -> Self {
        let (length, columns) = (length.ilog2(), columns.ilog2());
        Layout { stride: columns, inner: columns, outer: length + columns }
    }

    /// As device code has it: a struct of bytes.
    fn bytes(self) -> u32 {
        self.stride | self.inner << 8 | self.outer << 16
    }
}

/// A pass: so many columns of a length, from one layout to another.
struct Pass {
    length: usize,
    columns: usize,
    from: Layout,
    to: Layout,
    /// Number k of column j is turned by e^(−2πi·jk/n); 1 for none.
    turned_by: usize,
}

impl Pass {
    /// Along so many rows of a length.
    fn along_rows(length: usize, rows: usize) -> Self {
        let layout = Layout::rows(length);
        Pass { length, columns: rows, from: layout, to: layout, turned_by: 1 }
    }

    /// Along the columns of matrices.
    fn along_columns(length: usize, columns: usize, matrices: usize) -> Self {
        let layout = Layout::columns(length, columns);
        Pass { length, columns: columns * matrices, from: layout, to: layout, turned_by: 1 }
    }

    /// From one array to another, or without the first in place, which needs both layouts to be the same.
    fn launch(
        &self,
        gpu: &Gpu,
        from: Option<&DeviceSlice<f32>>,
        to: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        let Pass { length, columns, turned_by, .. } = *self;
        let layouts = (self.from.bytes(), self.to.bytes());
        if length < PER_THREAD {
            let kernel = gpu.kernel(SOURCE, "fft_short_columns")?.over(columns, 256);
            let kernel = if let Some(from) = from { kernel.arg(from) } else { kernel.arg(&*to) };
            let kernel = kernel.arg(to).arg(length.ilog2()).arg(columns as u32);
            return kernel.arg(layouts.0).arg(layouts.1).launch();
        }
        let block = self.columns_of_block(most_numbers(gpu));
        let kernel = gpu.kernel(SOURCE, ENTRIES[(length / PER_THREAD).ilog2() as usize])?;
        let kernel = kernel.grid(columns / block).block(block * length / PER_THREAD);
        let kernel = kernel.shared(shared_bytes(block, length));
        let kernel = if let Some(from) = from { kernel.arg(from) } else { kernel.arg(&*to) };
        let kernel = kernel.arg(to).arg(block.ilog2()).arg(turned_by.ilog2());
        kernel.arg(layouts.0).arg(layouts.1).launch()
    }

    fn columns_of_block(&self, most_numbers: usize) -> usize {
        let by_columns = self.from.stride > 0 || self.to.stride > 0;
        let fewest = if by_columns { SECTOR.min(most_numbers / self.length) } else { 1 };
        let mut block = (BLOCK_NUMBERS / self.length).max(fewest).min(self.columns);
        while block > fewest && self.columns / block < ENOUGH_BLOCKS && block * self.length > 1024 {
            block /= 2;
        }
        block
    }
}

/// Bytes of the columns of a block, with gaps after every 16 numbers and every column.
fn shared_bytes(columns: usize, length: usize) -> usize {
    8 * columns * (length + length / 16 + 16 / columns)
}

/// Numbers that a block can have on this device.
fn most_numbers(gpu: &Gpu) -> usize {
    let needed = shared_bytes(SECTOR, MOST_NUMBERS / SECTOR) as u64;
    if needed <= gpu.info().block_shared_bytes { MOST_NUMBERS } else { MOST_NUMBERS / 2 }
}

/// [`fft`](super::fft) on a GPU: in one block, or in two passes over a matrix.
#[kernel_bench(of = super::fft, cuda, valid = n.is_power_of_two() && n <= 1 << 26)]
pub fn fft_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    plan: &DevicePlan,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let n = plan.columns;
    if n < FROM_TWO_PASSES {
        return Pass::along_rows(n, 1).launch(gpu, Some(x), out);
    }
    let rows = 1 << n.ilog2().div_ceil(2);
    let columns = n / rows;
    let mut scratch = gpu.scratch::<f32>(2 * n)?;
    let first = Pass { turned_by: n, ..Pass::along_columns(rows, columns, 1) };
    first.launch(gpu, Some(x), &mut scratch)?;
    let second = Pass { to: Layout::columns(columns, rows), ..Pass::along_rows(columns, rows) };
    second.launch(gpu, Some(&scratch), out)
}

/// [`fft_2d`](super::fft_2d) on a GPU: a pass over rows, and a pass over columns in place.
#[kernel_bench(
    of = super::fft_2d,
    cuda,
    valid = rows.is_power_of_two() && columns.is_power_of_two() && rows.max(columns) <= 1 << 13,
)]
pub fn fft_2d_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    plan: &DevicePlan,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let DevicePlan { depth, rows, columns } = *plan;
    Pass::along_rows(columns, depth * rows).launch(gpu, Some(x), out)?;
    Pass::along_columns(rows, columns, depth).launch(gpu, None, out)
}

/// [`fft_3d`](super::fft_3d) on a GPU: a pass along each axis, all but the first in place.
#[kernel_bench(
    of = super::fft_3d,
    cuda,
    valid = depth.is_power_of_two() && rows.is_power_of_two() && columns.is_power_of_two()
        && depth.max(rows).max(columns) <= 1 << 13,
)]
pub fn fft_3d_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    plan: &DevicePlan,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    fft_2d_cuda(gpu, x, plan, out)?;
    Pass::along_columns(plan.depth, plan.rows * plan.columns, 1).launch(gpu, None, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_into_the_shared_memory_of_every_device() {
        for (most_numbers, bytes) in [(MOST_NUMBERS, 163 << 10), (MOST_NUMBERS / 2, 99 << 10)] {
            for length in (4..=13).map(|log| 1 << log) {
                for pass in [Pass::along_columns(length, 1 << 13, 1), Pass::along_rows(length, 8)] {
                    let columns = pass.columns_of_block(most_numbers);
                    assert!(columns >= 1 && shared_bytes(columns, length) <= bytes, "{length}");
                }
            }
        }
    }
}
