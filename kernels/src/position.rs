//! Rotary position embedding (Su et al. 2021): pairs of elements turned by an angle that grows with the position.

use kbench::prelude::*;
use rayon::prelude::*;

const SOURCE: Source = Source::new(include_str!("../cuda/position.cu")).named("position.cu");

/// Turns every head of every position by the angles of `cos` and `sin`, which hold `head_dim / 2` values per position.
///
/// `x` is sequence × heads × head_dim; element i of a head is paired with element i + head_dim / 2.
#[kernel_bench(
    sizes = [
        "small" => (seq = 16, heads = 8, head_dim = 64),
        "medium" => (seq = 128, heads = 8, head_dim = 128),
        "large" => (seq = 512, heads = 32, head_dim = 128),
    ],
    inputs = |seq, heads, head_dim| (
        normal(seq * heads * head_dim),
        angles(seq, head_dim, f64::cos),
        angles(seq, head_dim, f64::sin),
        head_dim,
    ),
    in_place = reuse, // a rotation keeps the length: the result is as good an input as any
    valid = head_dim.is_multiple_of(2),
    flops = |seq, heads, head_dim| 3 * seq * heads * head_dim,
    bytes = |seq, heads, head_dim| 8 * seq * heads * head_dim + 4 * seq * head_dim,
    reference = rope_f64,
)]
pub fn rope(x: &mut [f32], cos: &[f32], sin: &[f32], head_dim: usize) {
    let (half, heads) = (head_dim / 2, heads(x, cos));
    let positions = x.chunks_exact_mut(2 * half * heads);
    for ((position, cos), sin) in positions.zip(cos.chunks_exact(half)).zip(sin.chunks_exact(half))
    {
        rotate(position, cos, sin);
    }
}

/// [`rope`] with positions shared among all cores.
#[kernel_bench(of = rope, parallel, threshold = tuned(160_000))]
pub fn rope_rayon(x: &mut [f32], cos: &[f32], sin: &[f32], head_dim: usize) {
    let (half, heads) = (head_dim / 2, heads(x, cos));
    x.par_chunks_exact_mut(2 * half * heads)
        .zip(cos.par_chunks_exact(half))
        .zip(sin.par_chunks_exact(half))
        .with_min_len(4)
        .for_each(|((position, cos), sin)| rotate(position, cos, sin));
}

/// [`rope`] on a GPU, one thread per pair.
#[kernel_bench(of = rope, cuda)]
pub fn rope_cuda(
    gpu: &Gpu,
    x: &mut DeviceSlice<f32>,
    cos: &DeviceSlice<f32>,
    sin: &DeviceSlice<f32>,
    head_dim: usize,
) -> GpuResult<()> {
    let (pairs, half, heads) = (x.len() / 2, head_dim / 2, x.len() / (2 * cos.len()));
    let kernel = gpu.kernel(SOURCE, "rope")?.over(pairs, 256);
    kernel.arg(x).arg(cos).arg(sin).arg(pairs).arg(half).arg(heads).launch()
}

/// The tables have half a head per position.
fn heads(x: &[f32], cos: &[f32]) -> usize {
    x.len() / (2 * cos.len())
}

/// All heads of one position, by the same angles.
fn rotate(position: &mut [f32], cos: &[f32], sin: &[f32]) {
    for head in position.chunks_exact_mut(2 * cos.len()) {
        let (first, second) = head.split_at_mut(cos.len());
        for (((a, b), cos), sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
            (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
        }
    }
}

/// The table of one function of the angle position · 10000^(−2i / head_dim).
fn angles(seq: usize, head_dim: usize, function: fn(f64) -> f64) -> Vec<f32> {
    let angle = |position: usize, i: usize| {
        position as f64 * 10_000_f64.powf(-2.0 * i as f64 / head_dim as f64)
    };
    (0..seq)
        .flat_map(|position| (0..head_dim / 2).map(move |i| function(angle(position, i)) as f32))
        .collect()
}

fn rope_f64(x: &mut [f64], cos: &[f64], sin: &[f64], head_dim: usize) {
    let half = head_dim / 2;
    let heads = x.len() / (2 * cos.len());
    for pair in 0..x.len() / 2 {
        let (head, i) = (pair / half, pair % half);
        let angle = head / heads * half + i;
        let (a, b) = (head * head_dim + i, head * head_dim + i + half);
        let turned = (x[a] * cos[angle] - x[b] * sin[angle], x[a] * sin[angle] + x[b] * cos[angle]);
        (x[a], x[b]) = turned;
    }
}
