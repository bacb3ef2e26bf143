//! Reductions in independent partial results, so that they stay in vector registers and none waits for the last.

/// Partial results: four vectors of the widest kind, so that none has to wait for the last.
pub const LANES: usize = 64;

/// Takes `step` from each of N lanes, a power of two, with every N-th element to the next; what lacks at the end is `neutral`.
#[inline(always)]
pub fn fold<const N: usize>(
    lanes: [f32; N],
    x: &[f32],
    neutral: f32,
    step: impl Fn(f32, f32) -> f32,
) -> [f32; N] {
    fold_pairs(lanes, x, x, neutral, |lane, x, _| step(lane, x))
}

/// The same with elements of two slices of the same length.
#[inline(always)]
pub fn fold_pairs<const N: usize>(
    mut lanes: [f32; N],
    x: &[f32],
    y: &[f32],
    neutral: f32,
    step: impl Fn(f32, f32, f32) -> f32,
) -> [f32; N] {
    let (x_vectors, x_rest) = x.as_chunks::<N>();
    let (y_vectors, y_rest) = y.as_chunks::<N>();
    for (x, y) in x_vectors.iter().zip(y_vectors) {
        for i in 0..N {
            lanes[i] = step(lanes[i], x[i], y[i]);
        }
    }
    if !x_rest.is_empty() {
        // As a whole vector: if some lanes only were looked at, none of them would stay in a register.
        let (mut x, mut y) = ([neutral; N], [neutral; N]);
        x[..x_rest.len()].copy_from_slice(x_rest);
        y[..y_rest.len()].copy_from_slice(y_rest);
        for i in 0..N {
            lanes[i] = step(lanes[i], x[i], y[i]);
        }
    }
    lanes
}

/// Writes what `value` makes of every element, and takes its sum.
#[inline(always)]
pub fn sum_of_map<const N: usize>(x: &[f32], out: &mut [f32], value: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; N];
    let (x_vectors, x_rest) = x.as_chunks::<N>();
    let (out_vectors, out_rest) = out.as_chunks_mut::<N>();
    for (x, out) in x_vectors.iter().zip(out_vectors) {
        for i in 0..N {
            out[i] = value(x[i]);
            sums[i] += out[i];
        }
    }
    for ((x, out), sum) in x_rest.iter().zip(out_rest).zip(&mut sums) {
        *out = value(*x);
        *sum += *out;
    }
    join(sums, |a, b| a + b)
}

/// Joins lanes pairwise.
#[inline(always)]
pub fn join<const N: usize>(mut lanes: [f32; N], join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = N;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = join(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

/// The larger of two; `a` when `b` is NaN.
#[inline(always)]
pub fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}
