//! Products of matrices in `f32`: c (m × n) ← a (m × k) · b (k × n), row by row.

use kbench::prelude::*;
use rayon::prelude::*;

/// c ← a · b
#[kernel_bench(
    sizes = [
        "square" => (m = 64, n = 64, k = 64),
        "oblong" => (m = 48, n = 100, k = 72),
        "deep" => (m = 64, n = 16, k = 1024),
    ],
    inputs = |m, n, k| (uniform(m * k), uniform(k * n), [m, n, k], zeros(m * n)),
    reference = product_f64,
)]
fn product(a: &[f32], b: &[f32], [_, n, k]: [usize; 3], c: &mut [f32]) {
    for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
        c.fill(0.0);
        for (a, b) in a.iter().zip(b.chunks_exact(n)) {
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    }
}

fn product_f64(a: &[f64], b: &[f64], [m, n, k]: [usize; 3], c: &mut [f64]) {
    for i in 0..m * n {
        c[i] = (0..k).map(|l| a[i / n * k + l] * b[l * n + i % n]).sum();
    }
}

/// Rows to columns.
fn transposed(x: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| x.iter().skip(column).step_by(columns).copied()).collect()
}

/// c += a · b for tiles of a side each, which `tiles` cuts a dimension into.
fn tiled(
    (a, b, c): (&[f32], &[f32], &mut [f32]),
    [m, n, k]: [usize; 3],
    tiles: impl Fn(usize) -> Vec<(usize, usize)>,
) {
    c.fill(0.0);
    for (top, bottom) in tiles(m) {
        for (left, right) in tiles(n) {
            for (first, last) in tiles(k) {
                for i in top..bottom {
                    for l in first..last {
                        let b = &b[l * n..];
                        (left..right).for_each(|j| c[i * n + j] += a[i * k + l] * b[j]);
                    }
                }
            }
        }
    }
}

const TILE: usize = 16;

mod right {
    use super::*;

    /// Tiles, of which the last ones are smaller.
    #[kernel_bench(of = product)]
    fn in_tiles(a: &[f32], b: &[f32], shape: [usize; 3], c: &mut [f32]) {
        tiled((a, b, c), shape, |length| {
            (0..length).step_by(TILE).map(|start| (start, length.min(start + TILE))).collect()
        });
    }

    /// Dot products of rows and columns, which are copied to be rows.
    #[kernel_bench(of = product)]
    fn transposed_copy(a: &[f32], b: &[f32], [_, n, k]: [usize; 3], c: &mut [f32]) {
        let columns = transposed(b, n);
        for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
            for (c, b) in c.iter_mut().zip(columns.chunks_exact(k)) {
                *c = a.iter().zip(b).map(|(a, b)| a * b).sum();
            }
        }
    }

    /// Rows on all cores, with fused operations.
    #[kernel_bench(of = product, parallel)]
    fn fused_rows(a: &[f32], b: &[f32], [_, n, k]: [usize; 3], c: &mut [f32]) {
        a.par_chunks_exact(k).zip(c.par_chunks_exact_mut(n)).for_each(|(a, c)| {
            for (j, c) in c.iter_mut().enumerate() {
                *c = (0..k).fold(0.0, |sum, l| a[l].mul_add(b[l * n + j], sum));
            }
        });
    }

    /// One level of Strassen's algorithm on matrices that are filled up with zeros. Its errors are a few times larger, and
    /// relative to the norm of the operands.
    #[kernel_bench(of = product)]
    fn strassen(a: &[f32], b: &[f32], [m, n, k]: [usize; 3], c: &mut [f32]) {
        let [p, q, r] = [m, n, k].map(|length| length.div_ceil(2));
        let quarter = |x: &[f32], (rows, columns): (usize, usize), (height, width), which| {
            let (top, left) = (which / 2 * height, which % 2 * width);
            let at = |i, j| if i < rows && j < columns { x[i * columns + j] } else { 0.0 };
            let row = |i| (0..width).map(move |j| at(top + i, left + j));
            (0..height).flat_map(row).collect::<Vec<f32>>()
        };
        let a: [_; 4] = std::array::from_fn(|which| quarter(a, (m, k), (p, r), which));
        let b: [_; 4] = std::array::from_fn(|which| quarter(b, (k, n), (r, q), which));
        let sum = |x: &[f32], sign: f32, y: &[f32]| -> Vec<f32> {
            x.iter().zip(y).map(|(x, y)| x + sign * y).collect()
        };
        let times = |a: &[f32], b: &[f32]| {
            let mut c = vec![0.0; p * q];
            product(a, b, [p, q, r], &mut c);
            c
        };
        let parts = [
            times(&sum(&a[0], 1.0, &a[3]), &sum(&b[0], 1.0, &b[3])),
            times(&sum(&a[2], 1.0, &a[3]), &b[0]),
            times(&a[0], &sum(&b[1], -1.0, &b[3])),
            times(&a[3], &sum(&b[2], -1.0, &b[0])),
            times(&sum(&a[0], 1.0, &a[1]), &b[3]),
            times(&sum(&a[2], -1.0, &a[0]), &sum(&b[0], 1.0, &b[1])),
            times(&sum(&a[1], -1.0, &a[3]), &sum(&b[2], 1.0, &b[3])),
        ];
        for i in 0..m {
            for j in 0..n {
                let part = |which: usize| parts[which][i % p * q + j % q];
                c[i * n + j] = match (i / p, j / q) {
                    (0, 0) => part(0) + part(3) - part(4) + part(6),
                    (0, _) => part(2) + part(4),
                    (_, 0) => part(1) + part(3),
                    _ => part(0) - part(1) + part(2) + part(5),
                };
            }
        }
    }
}

mod wrong {
    use super::*;

    /// Full tiles, and nothing where a dimension is no multiple of their side.
    #[kernel_bench(of = product)]
    fn full_tiles_alone(a: &[f32], b: &[f32], shape: [usize; 3], c: &mut [f32]) {
        tiled((a, b, c), shape, |length| {
            (0..length / TILE).map(|tile| (tile * TILE, (tile + 1) * TILE)).collect()
        });
    }

    /// Panels of 256 columns, of which all after the first go over blocks of four rows.
    #[kernel_bench(of = product)]
    fn later_panels_without_last_rows(a: &[f32], b: &[f32], [m, n, k]: [usize; 3], c: &mut [f32]) {
        c.fill(0.0);
        for start in (0..k).step_by(256) {
            let rows = if start == 0 { m } else { m / 4 * 4 };
            for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)).take(rows) {
                for l in start..k.min(start + 256) {
                    c.iter_mut().zip(&b[l * n..]).for_each(|(c, b)| *c += a[l] * b);
                }
            }
        }
    }

    /// The second matrix is read by columns, in a loop that does not care for its shape.
    #[kernel_bench(of = product)]
    fn transposed_operand(a: &[f32], b: &[f32], [_, n, k]: [usize; 3], c: &mut [f32]) {
        product(a, &transposed(b, n), [0, n, k], c);
    }

    /// Rows of the second matrix are taken to be as long as those of the first: right for squares.
    #[kernel_bench(of = product)]
    fn stride_of_squares(a: &[f32], b: &[f32], [_, n, k]: [usize; 3], c: &mut [f32]) {
        for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
            for (j, c) in c.iter_mut().enumerate() {
                *c = (0..k).map(|l| a[l] * b[l * k + j]).sum();
            }
        }
    }
}
