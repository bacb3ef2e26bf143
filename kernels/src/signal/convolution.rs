//! Convolution of images with small square filters, as neural networks have it: stride 1, and zeros around the image, so
//! that results have its size.
//!
//! Images are channel by channel, row by row. Two ways are compared: directly on a copy of the image with its border of
//! zeros, or by a product with the matrix of all patches ("im2col"), of which a panel of a few pixels exists at a time.

#![allow(unsafe_code)] // tasks write pixels of the same rows

use std::cell::RefCell;
use std::ops::Range;

use kbench::prelude::*;
use rayon::prelude::*;

use super::parts::{Shared, with_scratch};
use super::vector::{LANES, Task, Vector, best};
use crate::shared::COMMON;

const SOURCE: Source =
    Source::new(include_str!("../../cuda/convolution.cu")).named("convolution.cu").headers(COMMON);

/// Output channels that are computed together: each number of the image is used for all of them.
const CHANNELS: usize = 8;
/// Pixels that are computed together: two vectors.
const PIXELS: usize = 2 * LANES;

/// The shape of a convolution.
#[derive(Clone, Copy)]
struct Shape {
    channels_in: usize,
    channels_out: usize,
    size: usize,
    kernel: usize,
}

impl Shape {
    fn of(weights: &[f32], channels_in: usize, size: usize, kernel: usize) -> Self {
        let channels_out = weights.len() / (channels_in * kernel * kernel);
        Shape { channels_in, channels_out, size, kernel }
    }

    /// Pixels of a channel.
    fn plane(self) -> usize {
        self.size * self.size
    }

    /// From row to row of the image with its border; there is room for whole vectors.
    fn padded_row(self) -> usize {
        self.size.next_multiple_of(PIXELS) + self.kernel - 1
    }

    /// From channel to channel of the image with its border.
    fn padded_plane(self) -> usize {
        (self.size + self.kernel - 1) * self.padded_row()
    }

    /// Numbers of an image with its border.
    fn padded_image(self) -> usize {
        self.channels_in * self.padded_plane()
    }

    /// Numbers that a pixel depends on.
    fn patch(self) -> usize {
        self.channels_in * self.kernel * self.kernel
    }
}

/// out[b, o, y, x] ← Σ w[o, i, v, u] · image[b, i, y + v − ⌊kernel/2⌋, x + u − ⌊kernel/2⌋] over i, v and u, with 0 outside
#[kernel_bench(
    sizes = [
        "tiny" => (batch = 1, channels_in = 8, channels_out = 8, size = 16, kernel = 3),
        "small" => (batch = 1, channels_in = 16, channels_out = 32, size = 32, kernel = 3),
        "pointwise" => (batch = 1, channels_in = 128, channels_out = 128, size = 28, kernel = 1),
        "wide" => (batch = 1, channels_in = 16, channels_out = 32, size = 64, kernel = 5),
        "medium" => (batch = 1, channels_in = 64, channels_out = 64, size = 56, kernel = 3),
        "large" => (batch = 4, channels_in = 64, channels_out = 64, size = 56, kernel = 3),
    ],
    inputs = |batch, channels_in, channels_out, size, kernel| (
        normal(batch * channels_in * size * size),
        normal(channels_out * channels_in * kernel * kernel),
        channels_in,
        size,
        kernel,
        zeros(batch * channels_out * size * size),
    ),
    work = |batch, channels_in, channels_out, size, kernel| batch * channels_in * channels_out * size * size * kernel * kernel,
    flops = |batch, channels_in, channels_out, size, kernel| 2 * batch * channels_in * channels_out * size * size * kernel * kernel,
    valid = kernel % 2 == 1,
    reference = conv2d_f64,
)]
pub fn conv2d(
    image: &[f32],
    weights: &[f32],
    channels_in: usize,
    size: usize,
    kernel: usize,
    out: &mut [f32],
) {
    let shape = Shape::of(weights, channels_in, size, kernel);
    let images = image.chunks_exact(channels_in * shape.plane());
    with_scratch(&PADDED, shape.padded_image(), 0.0, |padded| {
        for (image, out) in images.zip(out.chunks_exact_mut(shape.channels_out * shape.plane())) {
            pad(shape, image, padded);
            let groups = out.chunks_mut(CHANNELS * shape.plane());
            for (out, weights) in groups.zip(weights.chunks(CHANNELS * shape.patch())) {
                best(Direct { shape, padded, weights, out });
            }
        }
    });
}

/// [`conv2d`] with groups of output channels shared among all cores.
#[kernel_bench(of = conv2d, parallel, threshold = tuned(2_000_000))]
pub fn conv2d_rayon(
    image: &[f32],
    weights: &[f32],
    channels_in: usize,
    size: usize,
    kernel: usize,
    out: &mut [f32],
) {
    let shape = Shape::of(weights, channels_in, size, kernel);
    let images = image.len() / (channels_in * shape.plane());
    with_scratch(&PADDED, images * shape.padded_image(), 0.0, |padded| {
        padded
            .par_chunks_exact_mut(shape.padded_image())
            .zip(image.par_chunks_exact(channels_in * shape.plane()))
            .for_each(|(padded, image)| pad(shape, image, padded));
        padded
            .par_chunks_exact(shape.padded_image())
            .zip(out.par_chunks_exact_mut(shape.channels_out * shape.plane()))
            .for_each(|(padded, out)| {
                out.par_chunks_mut(CHANNELS * shape.plane())
                    .zip(weights.par_chunks(CHANNELS * shape.patch()))
                    .for_each(|(out, weights)| best(Direct { shape, padded, weights, out }));
            });
    });
}

/// [`conv2d`] as a product with the matrix of patches, panel by panel.
#[kernel_bench(of = conv2d, name = "im2col")]
pub fn conv2d_im2col(
    image: &[f32],
    weights: &[f32],
    channels_in: usize,
    size: usize,
    kernel: usize,
    out: &mut [f32],
) {
    let shape = Shape::of(weights, channels_in, size, kernel);
    let images = image.chunks_exact(channels_in * shape.plane());
    with_scratch(&PADDED, shape.padded_image(), 0.0, |padded| {
        for (image, out) in images.zip(out.chunks_exact_mut(shape.channels_out * shape.plane())) {
            pad(shape, image, padded);
            let out = Shared::new(out);
            for panel in 0..shape.plane().div_ceil(PIXELS) {
                patches(shape, padded, weights, panel, &out);
            }
        }
    });
}

/// [`conv2d_im2col`] with panels shared among all cores.
#[kernel_bench(of = conv2d, name = "im2col_rayon", parallel, threshold = tuned(1_000_000))]
pub fn conv2d_im2col_rayon(
    image: &[f32],
    weights: &[f32],
    channels_in: usize,
    size: usize,
    kernel: usize,
    out: &mut [f32],
) {
    let shape = Shape::of(weights, channels_in, size, kernel);
    let images = image.chunks_exact(channels_in * shape.plane());
    with_scratch(&PADDED, shape.padded_image(), 0.0, |padded| {
        for (image, out) in images.zip(out.chunks_exact_mut(shape.channels_out * shape.plane())) {
            pad(shape, image, padded);
            let (padded, out) = (&*padded, Shared::new(out));
            (0..shape.plane().div_ceil(PIXELS))
                .into_par_iter()
                .for_each(|panel| patches(shape, padded, weights, panel, &out));
        }
    });
}

/// [`conv2d`] on a GPU: tiles of the image in shared memory.
#[kernel_bench(of = conv2d, cuda, name = "direct_cuda")]
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
    const TILE: (usize, usize, usize) = (8, 32, 32);
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

/// [`conv2d`] on a GPU as a product with the matrix of patches, whose tiles are put together in shared memory.
#[kernel_bench(of = conv2d, cuda, name = "implicit_cuda")]
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

thread_local! {
    /// An image, or several, with a border of zeros.
    static PADDED: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
    /// A panel of the matrix of patches.
    static PANEL: RefCell<Vec<[f32; PIXELS]>> = const { RefCell::new(Vec::new()) };
}

/// Copies an image into the middle of zeros.
fn pad(shape: Shape, image: &[f32], padded: &mut [f32]) {
    let Shape { size, kernel, .. } = shape;
    let border = kernel / 2;
    padded.fill(0.0);
    let planes = padded.chunks_exact_mut(shape.padded_plane());
    for (padded, plane) in planes.zip(image.chunks_exact(shape.plane())) {
        let rows = padded.chunks_exact_mut(shape.padded_row()).skip(border);
        for (padded, row) in rows.zip(plane.chunks_exact(size)) {
            padded[border..border + size].copy_from_slice(row);
        }
    }
}

/// All pixels of a group of output channels.
struct Direct<'a> {
    shape: Shape,
    padded: &'a [f32],
    weights: &'a [f32],
    out: &'a mut [f32],
}

impl Task for Direct<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Direct { shape, padded, weights, out } = self;
        let Shape { size, kernel, .. } = shape;
        let (row, plane, patch) = (shape.padded_row(), shape.padded_plane(), shape.patch());
        // Channels that do not exist are computed from the weights of the first, and not written.
        let filters: [&[f32]; CHANNELS] = std::array::from_fn(|channel| {
            let start = if channel * patch < weights.len() { channel * patch } else { 0 };
            &weights[start..start + patch]
        });
        for y in 0..size {
            for x in (0..size).step_by(PIXELS) {
                let mut sums = [[V::splat(0.0); 2]; CHANNELS];
                let mut place = 0;
                for planes in padded.chunks_exact(plane) {
                    for v in 0..kernel {
                        for u in 0..kernel {
                            let start = (y + v) * row + x + u;
                            add_products(
                                &mut sums,
                                &filters,
                                place,
                                &planes[start..start + PIXELS],
                            );
                            place += 1;
                        }
                    }
                }
                let range = x..(x + PIXELS).min(size);
                for (out, sums) in out.chunks_exact_mut(size * size).zip(sums) {
                    write_pixels(sums, &mut out[y * size..][range.clone()]);
                }
            }
        }
    }
}

/// sums[c] ← sums[c] + filters[c][place] · pixels
#[inline(always)]
fn add_products<V: Vector>(
    sums: &mut [[V; 2]; CHANNELS],
    filters: &[&[f32]; CHANNELS],
    place: usize,
    pixels: &[f32],
) {
    let [low, high] = pixels.as_chunks::<LANES>().0 else { return };
    let (low, high) = (V::load(low), V::load(high));
    for (sums, filter) in sums.iter_mut().zip(filters) {
        let weight = V::splat(filter[place]);
        sums[0] = weight.multiply_add(low, sums[0]);
        sums[1] = weight.multiply_add(high, sums[1]);
    }
}

/// As many pixels as there is room for.
#[inline(always)]
fn write_pixels<V: Vector>(sums: [V; 2], out: &mut [f32]) {
    let mut pixels = [0.0; PIXELS];
    for (to, sum) in pixels.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
        sum.store(to);
    }
    out.copy_from_slice(&pixels[..out.len()]);
}

/// The panel of patches of some pixels, and its product with all filters.
fn patches(shape: Shape, padded: &[f32], weights: &[f32], panel: usize, out: &Shared<'_, f32>) {
    let pixels = panel * PIXELS..(panel * PIXELS + PIXELS).min(shape.plane());
    with_scratch(&PANEL, shape.patch(), [0.0; PIXELS], |panel| {
        gather(shape, padded, pixels.clone(), panel);
        for (group, weights) in weights.chunks(CHANNELS * shape.patch()).enumerate() {
            let first = group * CHANNELS;
            best(Product { shape, panel, weights, first, pixels: pixels.clone(), out });
        }
    });
}

/// Row (i, v, u) of the panel has what weight (i, v, u) is multiplied with, for every pixel.
fn gather(shape: Shape, padded: &[f32], pixels: Range<usize>, panel: &mut [[f32; PIXELS]]) {
    let Shape { size, kernel, .. } = shape;
    let row = shape.padded_row();
    let mut rows = panel.iter_mut();
    for plane in padded.chunks_exact(shape.padded_plane()) {
        for v in 0..kernel {
            for (u, to) in (0..kernel).zip(&mut rows) {
                // Pixels of one row of the image are neighbours.
                let mut pixel = pixels.start;
                while pixel < pixels.end {
                    let (y, x) = (pixel / size, pixel % size);
                    let run = (size - x).min(pixels.end - pixel);
                    let from = &plane[(y + v) * row + x + u..][..run];
                    to[pixel - pixels.start..][..run].copy_from_slice(from);
                    pixel += run;
                }
            }
        }
    }
}

/// A panel times the filters of a group of output channels.
struct Product<'a> {
    shape: Shape,
    panel: &'a [[f32; PIXELS]],
    weights: &'a [f32],
    first: usize,
    pixels: Range<usize>,
    out: &'a Shared<'a, f32>,
}

impl Task for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Product { shape, panel, weights, first, pixels, out } = self;
        let patch = shape.patch();
        let filters: [&[f32]; CHANNELS] = std::array::from_fn(|channel| {
            let start = if channel * patch < weights.len() { channel * patch } else { 0 };
            &weights[start..start + patch]
        });
        let mut sums = [[V::splat(0.0); 2]; CHANNELS];
        for (place, pixels) in panel.iter().enumerate() {
            add_products(&mut sums, &filters, place, pixels);
        }
        let channels = weights.len() / patch;
        for (channel, sums) in (first..first + channels).zip(sums) {
            let start = channel * shape.plane();
            // SAFETY: no other panel has these pixels.
            write_pixels(sums, unsafe { out.part(start + pixels.start..start + pixels.end) });
        }
    }
}

fn conv2d_f64(
    image: &[f64],
    weights: &[f64],
    channels_in: usize,
    size: usize,
    kernel: usize,
    out: &mut [f64],
) {
    let (plane, patch, border) = (size * size, channels_in * kernel * kernel, kernel / 2);
    let channels_out = weights.len() / patch;
    out.par_chunks_exact_mut(plane).enumerate().for_each(|(index, out)| {
        let (b, o) = (index / channels_out, index % channels_out);
        out.fill(0.0);
        for (w, weight) in weights[o * patch..][..patch].iter().enumerate() {
            let (i, v, u) = (w / (kernel * kernel), w / kernel % kernel, w % kernel);
            let image = &image[(b * channels_in + i) * plane..][..plane];
            for y in 0..size {
                for x in 0..size {
                    // What is outside of the image has wrapped around to a large number.
                    let (from_y, from_x) =
                        ((y + v).wrapping_sub(border), (x + u).wrapping_sub(border));
                    if from_y < size && from_x < size {
                        out[y * size + x] += weight * image[from_y * size + from_x];
                    }
                }
            }
        }
    });
}
