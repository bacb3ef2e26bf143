//! Reductions in independent partial results, so that they stay in vector registers and none waits for the last.

/// Partial results: four vectors of the widest kind, so that none has to wait for the last.
pub const LANES: usize = 64;

/// Partial results of one kind each.
pub type Lanes = [f32; LANES];

/// Takes `step` from each lane with every [`LANES`]-th element to the next; what lacks at the end is `neutral`.
#[inline(always)]
pub fn fold(lanes: Lanes, x: &[f32], neutral: f32, step: impl Fn(f32, f32) -> f32) -> Lanes {
    fold_pairs(lanes, x, x, neutral, |lane, x, _| step(lane, x))
}

/// The same with elements of two slices of the same length.
#[inline(always)]
pub fn fold_pairs(
    mut lanes: Lanes,
    x: &[f32],
    y: &[f32],
    neutral: f32,
    step: impl Fn(f32, f32, f32) -> f32,
) -> Lanes {
    let (x_vectors, x_rest) = x.as_chunks::<LANES>();
    let (y_vectors, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in x_vectors.iter().zip(y_vectors) {
        for i in 0..LANES {
            lanes[i] = step(lanes[i], x[i], y[i]);
        }
    }
    if !x_rest.is_empty() {
        // As a whole vector: if some lanes only were looked at, none of them would stay in a register.
        let (mut x, mut y) = ([neutral; LANES], [neutral; LANES]);
        x[..x_rest.len()].copy_from_slice(x_rest);
        y[..y_rest.len()].copy_from_slice(y_rest);
        for i in 0..LANES {
            lanes[i] = step(lanes[i], x[i], y[i]);
        }
    }
    lanes
}

/// Joins lanes pairwise.
#[inline(always)]
pub fn join(mut lanes: Lanes, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = LANES;
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
