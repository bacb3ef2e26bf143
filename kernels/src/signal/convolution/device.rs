//! Convolutions on a GPU.

use kbench::prelude::*;

use crate::shared::COMMON;

const SOURCE: Source = Source::new(include_str!("../../../cuda/convolution.cu"))
    .named("convolution.cu")
    .headers(COMMON);

/// [`conv2d`](super::conv2d) on a GPU: tiles of the image in shared memory.
#[kernel_bench(of = super::conv2d, cuda, name = "direct_cuda")]
pub fn conv2d_cuda(
    gpu: &Gpu,
    image: &DeviceSlice<f32>,
    weights: &DeviceSlice<f32>,
    channels_in: usize,
    size: usize,
    kernel: usize,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    /// Rows, columns and channels of a block's results, as in the device code.
    const TILE: (usize, usize, usize) = (8, 16, 32);
    let (channels_out, batch) = (
        weights.len() / (channels_in * kernel * kernel),
        image.len() / (channels_in * size * size),
    );
    let tiles = size.div_ceil(TILE.0) * size.div_ceil(TILE.1);
    let name = match kernel {
        1 => "conv2d_direct_1",
        3 => "conv2d_direct_3",
        5 => "conv2d_direct_5",
        _ => return implicit(gpu, image, weights, channels_in, size, kernel, out),
    };
    let launch = gpu.kernel(SOURCE, name)?.grid((tiles, channels_out.div_ceil(TILE.2), batch));
    let launch = launch.block(256).arg(image).arg(weights).arg(out);
    launch.arg(channels_in as u32).arg(channels_out as u32).arg(size as u32).launch()
}

/// [`conv2d`](super::conv2d) on a GPU as a product with the matrix of patches, whose tiles are put together in shared memory.
#[kernel_bench(of = super::conv2d, cuda, name = "implicit_cuda")]
pub fn conv2d_implicit_cuda(
    gpu: &Gpu,
    image: &DeviceSlice<f32>,
    weights: &DeviceSlice<f32>,
    channels_in: usize,
    size: usize,
    kernel: usize,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    implicit(gpu, image, weights, channels_in, size, kernel, out)
}

fn implicit(
    gpu: &Gpu,
    image: &DeviceSlice<f32>,
    weights: &DeviceSlice<f32>,
    channels_in: usize,
    size: usize,
    kernel: usize,
    out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    /// Channels and pixels of a block's results, as in the device code.
    const TILE: (usize, usize) = (64, 64);
    let channels_out = weights.len() / (channels_in * kernel * kernel);
    let pixels = image.len() / channels_in;
    let launch = gpu.kernel(SOURCE, "conv2d_implicit")?;
    let launch = launch.grid((pixels.div_ceil(TILE.1), channels_out.div_ceil(TILE.0))).block(256);
    let launch = launch.arg(image).arg(weights).arg(out).arg(channels_in as u32);
    launch.arg(channels_out as u32).arg(size as u32).arg(kernel as u32).arg(pixels as u32).launch()
}
