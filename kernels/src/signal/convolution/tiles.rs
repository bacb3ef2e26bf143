//! Results of a few output channels for a few pixels at a time, which stay in registers until they are complete.

#![allow(unsafe_code)] // tasks write pixels of the same rows

use std::ops::Range;

use super::{CHANNELS, Filters, PIXELS, Shape};
use crate::shared::scratch::{Shelf, with_array};
use crate::signal::parts::Shared;
use crate::signal::vector::{LANES, Task, Vector, best};

thread_local! {
    /// A panel of the matrix of patches.
    static PANEL: Shelf<Pixels> = const { Shelf::new() };
}

/// A number of each pixel of a panel.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Pixels(pub(super) [f32; PIXELS]);

/// Some rows of the image, in all output channels.
pub(super) struct Direct<'a> {
    pub(super) shape: Shape,
    pub(super) padded: &'a [f32],
    pub(super) filters: &'a [Filters],
    pub(super) rows: Range<usize>,
    pub(super) out: &'a Shared<'a, f32>,
}

impl Task for Direct<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(mut self) {
        for y in std::mem::take(&mut self.rows) {
            for group in 0..self.shape.channels_out.div_ceil(CHANNELS) {
                for x in (0..self.shape.size).step_by(PIXELS) {
                    if V::MANY {
                        self.tile::<V, CHANNELS, 2>(group, 0, y, x);
                        continue;
                    }
                    for part in 0..2 {
                        self.tile::<V, { CHANNELS / 2 }, 1>(group, part, y, x);
                        self.tile::<V, { CHANNELS / 2 }, 1>(group, part, y, x + LANES);
                    }
                }
            }
        }
    }
}

impl Direct<'_> {
    /// The results of a part of a group of channels, for some vectors of a row.
    #[inline(always)]
    fn tile<V: Vector, const C: usize, const P: usize>(
        &self,
        group: usize,
        part: usize,
        y: usize,
        x: usize,
    ) {
        let Direct { shape, padded, filters, out, .. } = self;
        let (row, plane, patch) = (shape.padded_row(), shape.padded_plane(), shape.patch());
        let mut sums = [[V::splat(0.0); P]; C];
        let mut filters = filters[group * patch..][..patch].iter();
        for plane in padded.chunks_exact(plane) {
            for v in 0..shape.kernel {
                let pixels = &plane[(y + v) * row + x..][..shape.kernel - 1 + P * LANES];
                for (pixels, filters) in pixels.windows(P * LANES).zip(&mut filters) {
                    add_products(&mut sums, filters, part, pixels);
                }
            }
        }
        let pixels = y * shape.size + x..y * shape.size + (x + P * LANES).min(shape.size);
        write_tile(*shape, sums, group * CHANNELS + part * C, pixels, out);
    }
}

/// sums[c] ← sums[c] + filters[c] · pixels, for a part of the channels
#[inline(always)]
fn add_products<V: Vector, const C: usize, const P: usize>(
    sums: &mut [[V; P]; C],
    filters: &Filters,
    part: usize,
    pixels: &[f32],
) {
    let (filters, pixels) = (&filters.as_chunks::<C>().0[part], pixels.as_chunks::<LANES>().0);
    let mut vectors = [V::splat(0.0); P];
    for (vector, pixels) in vectors.iter_mut().zip(pixels) {
        *vector = V::load(pixels);
    }
    for c in 0..C {
        let weight = V::splat(filters[c]);
        for p in 0..P {
            sums[c][p] = weight.multiply_add(vectors[p], sums[c][p]);
        }
    }
}

/// Results of channels from `first` on: as many channels as there are, and as many pixels.
#[inline(always)]
fn write_tile<V: Vector, const C: usize, const P: usize>(
    shape: Shape,
    sums: [[V; P]; C],
    first: usize,
    pixels: Range<usize>,
    out: &Shared<'_, f32>,
) {
    if pixels.is_empty() {
        return;
    }
    for (channel, sums) in (first..shape.channels_out).zip(sums) {
        let start = channel * shape.plane();
        // SAFETY: no other task has these pixels: `prepared` made sure that all pixels of all channels have places of their own.
        let out = unsafe { out.part(start + pixels.start..start + pixels.end) };
        for (to, sum) in out.chunks_mut(LANES).zip(sums) {
            let mut numbers = [0.0; LANES];
            sum.store(&mut numbers);
            to.copy_from_slice(&numbers[..to.len()]);
        }
    }
}

/// The panel of patches of some pixels, and its product with all filters.
pub(super) fn patches(
    shape: Shape,
    padded: &[f32],
    filters: &[Filters],
    panel: usize,
    out: &Shared<'_, f32>,
) {
    let pixels = panel * PIXELS..(panel * PIXELS + PIXELS).min(shape.plane());
    with_array(&PANEL, shape.patch(), Pixels([0.0; PIXELS]), |panel| {
        gather(shape, padded, pixels.clone(), panel);
        best(Product { shape, panel, filters, pixels, out });
    });
}

/// Row (i, v, u) of the panel has what weight (i, v, u) is multiplied with, for every pixel.
pub(super) fn gather(shape: Shape, padded: &[f32], pixels: Range<usize>, panel: &mut [Pixels]) {
    let Shape { size, kernel, .. } = shape;
    let row = shape.padded_row();
    let mut pixel = pixels.start;
    while pixel < pixels.end {
        // Pixels of one row of the image are neighbours.
        let (y, x) = (pixel / size, pixel % size);
        let run = (size - x).min(pixels.end - pixel);
        let to = pixel - pixels.start;
        for (planes, panel) in
            padded.chunks_exact(shape.padded_plane()).zip(panel.chunks_exact_mut(kernel * kernel))
        {
            for (v, panel) in panel.chunks_exact_mut(kernel).enumerate() {
                let from = &planes[(y + v) * row + x..];
                for (u, panel) in panel.iter_mut().enumerate() {
                    copy(&from[u..u + run], &mut panel.0[to..to + run]);
                }
            }
        }
        pixel += run;
    }
}

/// A whole panel's width is copied without a call.
#[inline(always)]
fn copy(from: &[f32], to: &mut [f32]) {
    match (from.as_chunks::<PIXELS>().0, to.as_chunks_mut::<PIXELS>().0) {
        ([from], [to]) => *to = *from,
        _ => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
    }
}

/// A panel times the filters of all output channels.
pub(super) struct Product<'a> {
    pub(super) shape: Shape,
    pub(super) panel: &'a [Pixels],
    pub(super) filters: &'a [Filters],
    pub(super) pixels: Range<usize>,
    pub(super) out: &'a Shared<'a, f32>,
}

impl Task for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        for group in 0..self.shape.channels_out.div_ceil(CHANNELS) {
            if V::MANY {
                self.tile::<V, CHANNELS, 2>(group, 0, 0);
                continue;
            }
            for part in 0..2 {
                self.tile::<V, { CHANNELS / 2 }, 1>(group, part, 0);
                self.tile::<V, { CHANNELS / 2 }, 1>(group, part, LANES);
            }
        }
    }
}

impl Product<'_> {
    /// The results of a part of a group of channels, for some vectors of pixels.
    #[inline(always)]
    fn tile<V: Vector, const C: usize, const P: usize>(
        &self,
        group: usize,
        part: usize,
        first: usize,
    ) {
        let Product { shape, panel, filters, pixels, out } = self;
        let filters = &filters[group * shape.patch()..];
        let mut sums = [[V::splat(0.0); P]; C];
        for (pixels, filters) in panel.iter().zip(filters) {
            add_products(&mut sums, filters, part, &pixels.0[first..first + P * LANES]);
        }
        let range = pixels.start + first..(pixels.start + first + P * LANES).min(pixels.end);
        write_tile(*shape, sums, group * CHANNELS + part * C, range, out);
    }
}
