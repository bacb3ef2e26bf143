//! Neighbours.

use kbench::prelude::*;
use rayon::prelude::*;

/// out ← (left + 2 x + right) / 4, where the ends are repeated.
#[kernel_bench(sizes = [256, 50_000], inputs = |n| (uniform(n), zeros(n)))]
fn blur(x: &[f32], out: &mut [f32]) {
    blur_from(x, 0, out);
}

/// The part of the result that begins somewhere.
fn blur_from(x: &[f32], start: usize, out: &mut [f32]) {
    for (i, out) in (start..).zip(out) {
        let (left, right) = (x[i.saturating_sub(1)], x[(i + 1).min(x.len() - 1)]);
        *out = 0.25 * left + 0.5 * x[i] + 0.25 * right;
    }
}

/// out ← the sum of four neighbours minus 4 x in rows of a width, with zeros around.
#[kernel_bench(
    sizes = ["square" => (rows = 64, columns = 64), "tall" => (rows = 100, columns = 30)],
    inputs = |rows, columns| (uniform(rows * columns), columns, zeros(rows * columns)),
)]
fn laplacian(x: &[f32], columns: usize, out: &mut [f32]) {
    out.iter_mut().enumerate().for_each(|(i, out)| *out = laplacian_at(x, columns, i));
}

fn laplacian_at(x: &[f32], columns: usize, i: usize) -> f32 {
    let above = if i >= columns { x[i - columns] } else { 0.0 };
    let below = x.get(i + columns).copied().unwrap_or(0.0);
    let left = if !i.is_multiple_of(columns) { x[i - 1] } else { 0.0 };
    let right = if !(i + 1).is_multiple_of(columns) { x[i + 1] } else { 0.0 };
    // In f64, as the sum of large neighbours may be infinite before the centre is subtracted.
    let neighbours: f64 = [above, below, left, right].into_iter().map(f64::from).sum();
    (neighbours - 4.0 * f64::from(x[i])) as f32
}

/// out ← the convolution of x with taps, where x and all taps overlap.
#[kernel_bench(
    sizes = { n: [256, 4096], taps: [5, 8] },
    inputs = |n, taps| (uniform(n + taps - 1), uniform(taps), zeros(n)),
    work = |n, taps| n * taps,
)]
fn convolution(x: &[f32], taps: &[f32], out: &mut [f32]) {
    for (x, out) in x.windows(taps.len()).zip(out) {
        *out = x.iter().zip(taps.iter().rev()).map(|(x, tap)| x * tap).sum();
    }
}

mod right {
    use super::*;

    /// Chunks that read their neighbours.
    #[kernel_bench(of = blur, parallel)]
    fn chunks_with_halo(x: &[f32], out: &mut [f32]) {
        let chunks = out.par_chunks_mut(1000).enumerate();
        chunks.for_each(|(i, out)| blur_from(x, 1000 * i, out));
    }

    /// A window that moves along.
    #[kernel_bench(of = blur)]
    fn moving_window(x: &[f32], out: &mut [f32]) {
        let Some(last) = x.last() else { return };
        let (mut left, mut centre) = (x[0], x[0]);
        let rights = x[1..].iter().chain([last]);
        for (right, out) in rights.zip(out) {
            *out = 0.25 * (left + right) + 0.5 * centre;
            (left, centre) = (centre, *right);
        }
    }

    /// Rows on all cores.
    #[kernel_bench(of = laplacian, parallel)]
    fn parallel_rows(x: &[f32], columns: usize, out: &mut [f32]) {
        out.par_chunks_exact_mut(columns).enumerate().for_each(|(row, out)| {
            let start = row * columns;
            out.iter_mut().zip(start..).for_each(|(out, i)| *out = laplacian_at(x, columns, i));
        });
    }

    /// On a copy with a border of zeros, which needs no condition.
    #[kernel_bench(of = laplacian)]
    fn with_border(x: &[f32], columns: usize, out: &mut [f32]) {
        let width = columns + 2;
        let mut padded = vec![0.0; (x.len() / columns + 2) * width];
        for (row, x) in x.chunks_exact(columns).enumerate() {
            padded[(row + 1) * width + 1..][..columns].copy_from_slice(x);
        }
        for (i, out) in out.iter_mut().enumerate() {
            let at = (i / columns + 1) * width + i % columns + 1;
            let value = |at: usize| f64::from(padded[at]);
            let across = value(at - 1) + value(at + 1) - 2.0 * value(at);
            let down = value(at - width) + value(at + width) - 2.0 * value(at);
            *out = (across + down) as f32;
        }
    }

    /// Every tap is added to all results.
    #[kernel_bench(of = convolution)]
    fn tap_by_tap(x: &[f32], taps: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        for (tap, x) in taps.iter().rev().zip((0..).map(|shift: usize| &x[shift..])) {
            out.iter_mut().zip(x).for_each(|(out, x)| *out = tap.mul_add(*x, *out));
        }
    }
}

mod wrong {
    use super::*;

    /// Every chunk repeats its own ends.
    #[kernel_bench(of = blur, parallel)]
    fn chunks_without_halo(x: &[f32], out: &mut [f32]) {
        x.par_chunks(16_384).zip(out.par_chunks_mut(16_384)).for_each(|(x, out)| blur(x, out));
    }

    /// The right neighbour of a row's last element is the first one of the next row.
    #[kernel_bench(of = laplacian)]
    fn last_column_runs_on(x: &[f32], columns: usize, out: &mut [f32]) {
        for (i, out) in out.iter_mut().enumerate() {
            let next = x.get(i + 1).copied().unwrap_or(0.0);
            let surplus = if (i + 1).is_multiple_of(columns) { next } else { 0.0 };
            *out = laplacian_at(x, columns, i) + surplus;
        }
    }

    /// A correlation: the taps are not reversed.
    #[kernel_bench(of = convolution)]
    fn without_reversal(x: &[f32], taps: &[f32], out: &mut [f32]) {
        for (x, out) in x.windows(taps.len()).zip(out) {
            *out = x.iter().zip(taps).map(|(x, tap)| x * tap).sum();
        }
    }
}
