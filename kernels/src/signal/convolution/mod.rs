//! Convolution of images with small square filters, as neural networks have it: stride 1, and zeros around the image, so
//! that results have its size.
//!
//! Images are channel by channel, row by row. Two ways are compared: directly on a copy of the image with its border of
//! zeros, or by a product with the matrix of all patches ("im2col"), of which a panel of a few pixels exists at a time.

use kbench::prelude::*;
use rayon::prelude::*;

use self::tiles::{Direct, patches};
use super::parts::Shared;
use super::vector::{LANES, best};
use crate::shared::area;
use crate::shared::scratch::{Shelf, with_array, with_scratch};

pub mod device;
mod tiles;

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
    prepared(shape, image, weights, out, |padded, filters, out| {
        best(Direct { shape, padded, filters, rows: 0..size, out });
    });
}

/// [`conv2d`] with rows of the image shared among all cores.
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
    let rows = size.div_ceil(4 * rayon::current_num_threads());
    prepared(shape, image, weights, out, |padded, filters, out| {
        (0..size.div_ceil(rows)).into_par_iter().for_each(|task| {
            let rows = task * rows..(task * rows + rows).min(size);
            best(Direct { shape, padded, filters, rows, out });
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
    prepared(shape, image, weights, out, |padded, filters, out| {
        let panels = 0..shape.plane().div_ceil(PIXELS);
        panels.for_each(|panel| patches(shape, padded, filters, panel, out));
    });
}

/// [`conv2d_im2col`] with panels shared among all cores.
#[kernel_bench(of = conv2d, name = "im2col_rayon", parallel, threshold = tuned(2_000_000))]
pub fn conv2d_im2col_rayon(
    image: &[f32],
    weights: &[f32],
    channels_in: usize,
    size: usize,
    kernel: usize,
    out: &mut [f32],
) {
    let shape = Shape::of(weights, channels_in, size, kernel);
    prepared(shape, image, weights, out, |padded, filters, out| {
        let panels = (0..shape.plane().div_ceil(PIXELS)).into_par_iter();
        panels.for_each(|panel| patches(shape, padded, filters, panel, out));
    });
}

thread_local! {
    /// The weights of all groups of output channels.
    static FILTERS: Shelf<Filters> = const { Shelf::new() };
}

/// A weight of each channel of a group.
type Filters = [f32; CHANNELS];

/// Calls a function for every image, with its padded copy, the weights by groups of channels, and its results.
fn prepared(
    shape: Shape,
    image: &[f32],
    weights: &[f32],
    out: &mut [f32],
    mut function: impl FnMut(&[f32], &[Filters], &Shared<'_, f32>),
) {
    let groups = shape.channels_out.div_ceil(CHANNELS);
    let plane = area(shape.size, shape.size);
    let images = image.chunks_exact(area(shape.channels_in, plane));
    let outs = out.chunks_exact_mut(area(shape.channels_out, plane));
    with_array(&FILTERS, groups * shape.patch(), [0.0; CHANNELS], |filters| {
        group(shape, weights, filters);
        with_scratch([shape.padded_image()], |[padded]| {
            for (image, out) in images.zip(outs) {
                pad(shape, image, padded);
                function(padded, filters, &Shared::new(out));
            }
        });
    });
}

/// Weights of the channels of a group become neighbours; channels that do not exist have zeros.
fn group(shape: Shape, weights: &[f32], filters: &mut [Filters]) {
    filters.fill([0.0; CHANNELS]);
    for (channel, weights) in weights.chunks_exact(shape.patch()).enumerate() {
        let group = &mut filters[channel / CHANNELS * shape.patch()..];
        for (to, weight) in group.iter_mut().zip(weights) {
            to[channel % CHANNELS] = *weight;
        }
    }
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

#[cfg(test)]
mod tests {
    use super::tiles::{Pixels, Product, gather};
    use super::*;
    use crate::signal::vector::{Portable, Task};

    /// size² wraps to the 4096 pixels that there are: rows of several tasks would be the same pixels.
    #[test]
    #[should_panic(expected = "sizes do not fit")]
    fn an_image_whose_pixels_wrap_is_refused() {
        let (image, weights) = ([0.0; 4096], [1.0; CHANNELS]);
        conv2d_rayon(&image, &weights, 1, (1 << 63) + 64, 1, &mut [0.0; 4096 * CHANNELS]);
    }

    #[test]
    fn every_machine_computes_the_same() {
        let shape = Shape { channels_in: 3, channels_out: 13, size: 37, kernel: 3 };
        let numbers =
            |n: usize| (0..n).map(|i| ((i * 29) % 31) as f32 - 15.0).collect::<Vec<f32>>();
        let (image, weights) = (numbers(3 * 37 * 37), numbers(13 * 27));
        let mut results = [(); 3].map(|()| vec![0.0; 13 * 37 * 37]);
        let [ours, direct, product] = &mut results;
        conv2d(&image, &weights, 3, 37, 3, ours);
        prepared(shape, &image, &weights, direct, |padded, filters, out| {
            Direct { shape, padded, filters, rows: 0..37, out }.run::<Portable>();
        });
        prepared(shape, &image, &weights, product, |padded, filters, out| {
            for first in (0..37 * 37).step_by(PIXELS) {
                let pixels = first..(first + PIXELS).min(37 * 37);
                let mut panel = vec![Pixels([0.0; PIXELS]); shape.patch()];
                gather(shape, padded, pixels.clone(), &mut panel);
                Product { shape, panel: &panel, filters, pixels, out }.run::<Portable>();
            }
        });
        // All sums are of small integers, which are exact in any order.
        assert!(ours == direct && ours == product);
    }
}
