//! Cells on a GPU.

use kbench::prelude::*;
use kbench::{DeviceValue, Upload};

use super::Cell;
use crate::shared::COMMON;

const SOURCE: Source =
    Source::new(include_str!("../../../cuda/recurrent.cu")).named("recurrent.cu").headers(COMMON);

/// A cell whose weights are on a device.
#[derive(Debug)]
pub struct DeviceCell {
    hidden: usize,
    input_weights: DeviceSlice<f32>,
    hidden_weights: DeviceSlice<f32>,
    input_bias: DeviceSlice<f32>,
    hidden_bias: DeviceSlice<f32>,
}

impl Upload for Cell {
    type Device = DeviceCell;

    fn upload(&self, gpu: &Gpu) -> GpuResult<DeviceCell> {
        Ok(DeviceCell {
            hidden: self.hidden,
            input_weights: self.input_weights.upload(gpu)?,
            hidden_weights: self.hidden_weights.upload(gpu)?,
            input_bias: self.input_bias.upload(gpu)?,
            hidden_bias: self.hidden_bias.upload(gpu)?,
        })
    }

    fn copy_to(&self, device: &mut DeviceCell, gpu: &Gpu) -> GpuResult<()> {
        self.input_weights.copy_to(&mut device.input_weights, gpu)?;
        self.hidden_weights.copy_to(&mut device.hidden_weights, gpu)?;
        self.input_bias.copy_to(&mut device.input_bias, gpu)?;
        self.hidden_bias.copy_to(&mut device.hidden_bias, gpu)
    }

    fn copy_from(&mut self, device: &DeviceCell, gpu: &Gpu) -> GpuResult<()> {
        self.input_weights.copy_from(&device.input_weights, gpu)?;
        self.hidden_weights.copy_from(&device.hidden_weights, gpu)?;
        self.input_bias.copy_from(&device.input_bias, gpu)?;
        self.hidden_bias.copy_from(&device.hidden_bias, gpu)
    }
}

impl DeviceValue for DeviceCell {
    fn duplicate(&self, gpu: &Gpu) -> GpuResult<Self> {
        Ok(DeviceCell {
            hidden: self.hidden,
            input_weights: self.input_weights.duplicate(gpu)?,
            hidden_weights: self.hidden_weights.duplicate(gpu)?,
            input_bias: self.input_bias.duplicate(gpu)?,
            hidden_bias: self.hidden_bias.duplicate(gpu)?,
        })
    }

    fn assign(&mut self, other: &Self, gpu: &Gpu) -> GpuResult<()> {
        self.input_weights.assign(&other.input_weights, gpu)?;
        self.hidden_weights.assign(&other.hidden_weights, gpu)?;
        self.input_bias.assign(&other.input_bias, gpu)?;
        self.hidden_bias.assign(&other.hidden_bias, gpu)
    }

    fn device_bytes(&self) -> usize {
        let weights = self.input_weights.device_bytes() + self.hidden_weights.device_bytes();
        weights + self.input_bias.device_bytes() + self.hidden_bias.device_bytes()
    }
}

/// Up to this batch a warp computes a hidden unit; above, a block computes a tile of units and rows.
const MOST_BY_WARPS: usize = 16;

/// [`lstm_cell`](super::lstm_cell) on a GPU: products and gates in one launch.
#[kernel_bench(of = super::lstm_cell, cuda)]
pub fn lstm_cell_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    h: &DeviceSlice<f32>,
    c: &DeviceSlice<f32>,
    cell: &DeviceCell,
    h_out: &mut DeviceSlice<f32>,
    c_out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let batch = h.len() / cell.hidden;
    let units = cell.hidden.div_ceil(8);
    let launch = if batch <= MOST_BY_WARPS {
        gpu.kernel(SOURCE, "lstm_cell_warps")?.grid((units, batch.div_ceil(4))).block(256)
    } else {
        gpu.kernel(SOURCE, "lstm_cell_tiles")?.grid((units, batch.div_ceil(64))).block(512)
    };
    let launch = launch.arg(x).arg(h).arg(c);
    let launch = launch.arg(&cell.input_weights).arg(&cell.hidden_weights);
    let launch = launch.arg(&cell.input_bias).arg(&cell.hidden_bias).arg(h_out).arg(c_out);
    launch.arg(batch as u32).arg(cell.hidden as u32).arg((x.len() / batch) as u32).launch()
}

/// [`gru_cell`](super::gru_cell) on a GPU: products and gates in one launch.
#[kernel_bench(of = super::gru_cell, cuda)]
pub fn gru_cell_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    h: &DeviceSlice<f32>,
    cell: &DeviceCell,
    h_out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let batch = h.len() / cell.hidden;
    let units = cell.hidden.div_ceil(8);
    let launch = if batch <= MOST_BY_WARPS {
        gpu.kernel(SOURCE, "gru_cell_warps")?.grid((units, batch.div_ceil(4))).block(256)
    } else {
        gpu.kernel(SOURCE, "gru_cell_tiles")?.grid((units, batch.div_ceil(64))).block(512)
    };
    let launch = launch.arg(x).arg(h);
    let launch = launch.arg(&cell.input_weights).arg(&cell.hidden_weights);
    let launch = launch.arg(&cell.input_bias).arg(&cell.hidden_bias).arg(h_out);
    launch.arg(batch as u32).arg(cell.hidden as u32).arg((x.len() / batch) as u32).launch()
}
