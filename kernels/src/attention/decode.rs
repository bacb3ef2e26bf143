//! One query per head against a cache of keys and values: what a model does for every token that it writes.
//!
//! Every key and every value is read once for all query heads that share it, and there is little to compute with it: the
//! kernel is bound by memory. To keep all cores (or all of a device) busy when heads are few, the cache is cut into splits;
//! each leaves partial results, which are joined at the end (Dao et al. 2023, "Flash-Decoding").

use kbench::prelude::*;
use rayon::prelude::*;

use super::dot::{exponentiate, fused, largest, score};
use super::reference::attention_f64;
use super::weighted_mean;
use crate::shared::float::BUFFER;
use crate::shared::scratch::with_scratch;
use crate::shared::simd::{Level, level};
use crate::shared::{BLOCK, COMMON, Float, entry, math, needs_ampere, vectorise};

const SOURCE: Source = Source::new(include_str!("../../cuda/attention_decode.cu"))
    .named("attention_decode.cu")
    .headers(COMMON);

/// Keys that are handled at a time: with their values they stay in a core's cache.
const KEYS: usize = 64;

/// Queries that are handled at a time, so that the keys and values of a block are widened once for all of them.
const FEW: usize = 4;

/// Keys of a split at least, so that joining the splits stays cheap.
const SHORTEST_SPLIT: usize = 4 * KEYS;

/// Numbers of a row of partial results before the weighted sum of values: maximum and sum of weights.
const EXTRA: usize = 2;

/// out ← softmax(q·kᵀ / √head_dim)·v for one query per head.
///
/// `q` and `out` are batch × heads × head_dim, `k` and `v` batch × kv_heads × seq × head_dim.
#[kernel_bench(
    sizes = [
        "tiny" => (seq = 64, head_dim = 64, heads = 4, kv_heads = 1, batch = 1),
        "small" => (seq = 256, head_dim = 64, heads = 8, kv_heads = 2, batch = 1),
        "medium" => (seq = 1000, head_dim = 128, heads = 8, kv_heads = 2, batch = 1),
        "large" => (seq = 1024, head_dim = 128, heads = 32, kv_heads = 8, batch = 4),
    ],
    inputs = |seq, head_dim, heads, kv_heads, batch| (
        normal(batch * heads * head_dim),
        normal(batch * kv_heads * seq * head_dim),
        normal(batch * kv_heads * seq * head_dim),
        seq,
        head_dim,
        zeros(batch * heads * head_dim),
    ),
    valid = heads.is_multiple_of(kv_heads),
    work = |batch, heads, seq| batch * heads * seq, // scores: errors grow with how many of them are added up
    flops = |batch, heads, seq, head_dim| 4 * batch * heads * seq * head_dim,
    reference = attention_decode_f64,
    types = [f32, f16, bf16],
)]
pub fn attention_decode<T: Float>(
    q: &[T],
    k: &[T],
    v: &[T],
    seq: usize,
    head_dim: usize,
    out: &mut [T],
) {
    let (matrix, queries) = (seq * head_dim, q.len() * seq / k.len());
    with_scratch([queries * (EXTRA + head_dim)], |[partial]| {
        let cache = k.chunks(matrix).zip(v.chunks(matrix));
        let heads = q.chunks(queries * head_dim).zip(out.chunks_mut(queries * head_dim));
        for ((q, out), (k, v)) in heads.zip(cache) {
            attend_split(q, k, v, head_dim, partial);
            join(partial, head_dim, 1, out);
        }
    });
}

/// [`attention_decode`] with heads, and splits of the cache when heads are few, shared among all cores.
#[kernel_bench(of = attention_decode, parallel, threshold = tuned(10_000), types = [f32, f16, bf16])]
pub fn attention_decode_rayon<T: Float>(
    q: &[T],
    k: &[T],
    v: &[T],
    seq: usize,
    head_dim: usize,
    out: &mut [T],
) {
    let (matrix, queries) = (seq * head_dim, q.len() * seq / k.len());
    let heads = k.len() / matrix;
    // A few tasks for each core, so that one that is late does not keep all waiting.
    let wanted = (4 * rayon::current_num_threads()).div_ceil(heads);
    let keys = seq.div_ceil(wanted.clamp(1, seq.div_ceil(SHORTEST_SPLIT)));
    let (splits, row) = (seq.div_ceil(keys), EXTRA + head_dim);
    with_scratch([heads * splits * queries * row], |[partial]| {
        partial.par_chunks_mut(queries * row).enumerate().for_each(|(index, partial)| {
            let (head, split) = (index / splits, index % splits);
            let q = &q[head * queries * head_dim..][..queries * head_dim];
            let (first, last) =
                (split * keys * head_dim, matrix.min((split + 1) * keys * head_dim));
            let part = head * matrix + first..head * matrix + last;
            attend_split(q, &k[part.clone()], &v[part], head_dim, partial);
        });
        let outs = out.chunks_mut(queries * head_dim);
        for (out, partial) in outs.zip(partial.chunks_mut(splits * queries * row)) {
            join(partial, head_dim, splits, out);
        }
    });
}

/// [`attention_decode`] with all scores of a query in memory, one head after the other.
#[kernel_bench(
    of = attention_decode,
    types = [f32, f16, bf16],
    valid = batch * heads * seq * head_dim <= 1 << 22, // beyond it takes long, for f16 most of all
)]
pub fn attention_decode_naive<T: Float>(
    q: &[T],
    k: &[T],
    v: &[T],
    seq: usize,
    head_dim: usize,
    out: &mut [T],
) {
    let (matrix, group) = (seq * head_dim, q.len() * seq / k.len());
    with_scratch([seq, head_dim], |[scores, sums]| {
        for (head, (q, out)) in q.chunks(head_dim).zip(out.chunks_mut(head_dim)).enumerate() {
            let first = head / group * matrix;
            let (k, v) = (&k[first..][..matrix], &v[first..][..matrix]);
            weighted_mean(q, (k, v), (scores, sums), out);
        }
    });
}

/// [`attention_decode`] on a GPU: splits of the cache, then a kernel that joins them.
#[kernel_bench(of = attention_decode, cuda, types = [f32, f16, bf16], valid = head_dim <= 256)]
pub fn attention_decode_cuda<T: Float>(
    gpu: &Gpu,
    q: &DeviceSlice<T>,
    k: &DeviceSlice<T>,
    v: &DeviceSlice<T>,
    seq: usize,
    head_dim: usize,
    out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    /// Bytes of the ring of copies of a block: four steps of 128 bytes for 128 threads.
    const RING: usize = 4 * 128 * 128;
    /// Blocks for each multiprocessor: four times as many as run at once, so that few are left over at the end.
    const BLOCKS: usize = 12;
    needs_ampere(gpu)?;
    let (heads, group) = (q.len() / head_dim, q.len() * seq / k.len());
    // Query heads that share keys are handled four at a time.
    let (entry, together, shared) = match (head_dim, group) {
        (64, 1) => (entry!(T, "attention_decode_64x1"), 1, RING),
        (64, _) => (entry!(T, "attention_decode_64x4"), 4, RING),
        (128, 1) => (entry!(T, "attention_decode_128x1"), 1, RING),
        (128, _) => (entry!(T, "attention_decode_128x4"), 4, RING),
        _ => (entry!(T, "attention_decode_any"), 1, 0),
    };
    let blocks = heads / group * group.div_ceil(together);
    let wanted = (BLOCKS * gpu.info().multiprocessors as usize).div_ceil(blocks);
    let keys = seq.div_ceil(wanted.clamp(1, seq.div_ceil(SHORTEST_SPLIT)));
    let splits = seq.div_ceil(keys);
    let mut partial = gpu.scratch::<f32>(heads * splits * (head_dim + EXTRA))?;
    let kernel = gpu.kernel(SOURCE, entry)?.grid((blocks, splits)).block(128).shared(shared);
    let kernel = kernel.arg(q).arg(k).arg(v).arg(&mut partial).arg(seq as u32).arg(group as u32);
    let kernel = if shared == 0 { kernel.arg(head_dim as u32) } else { kernel };
    kernel.arg(keys as u32).launch()?;
    let kernel = gpu.kernel(SOURCE, entry!(T, "attention_decode_join"))?.grid(heads).block(128);
    kernel.arg(&partial).arg(out).arg(head_dim as u32).arg(splits as u32).launch()
}

fn attention_decode_f64(
    q: &[f64],
    k: &[f64],
    v: &[f64],
    seq: usize,
    head_dim: usize,
    out: &mut [f64],
) {
    attention_f64((q, k, v), (1, seq, head_dim), |_| seq, out);
}

/// Partial results of all queries that share some keys: for each a row with maximum, sum of weights, weighted sum of values.
fn attend_split<T: Float>(q: &[T], k: &[T], v: &[T], head_dim: usize, partial: &mut [f32]) {
    // Only floats of 16 bits are widened.
    let widened = usize::from(size_of::<T>() < size_of::<f32>());
    with_scratch([q.len() * widened, KEYS * head_dim * widened], |scratch| {
        let operands = (q, k, v);
        match level() >= Level::Avx2 {
            true => attend::<T, true>(operands, head_dim, scratch, partial),
            false => attend::<T, false>(operands, head_dim, scratch, partial),
        }
    });
}

vectorise! {
    /// Queries and a split of the cache, with the memory that they take: widened queries and rows.
    ///
    /// `FUSED`: products are added without rounding them first, by an instruction that the machine has.
    fn attend<T: Float, const FUSED: bool>(
        operands: (&[T], &[T], &[T]),
        head_dim: usize,
        scratch: [&mut [f32]; 2],
        partial: &mut [f32],
    ) {
        let ((q, k, v), [queries, rows]) = (operands, scratch);
        let scale = 1.0 / (head_dim as f32).sqrt();
        let q = T::read(q, queries);
        for partial in partial.chunks_exact_mut(EXTRA + head_dim) {
            partial.fill(0.0);
            partial[0] = f32::NEG_INFINITY;
        }
        let mut scores = [[0.0; KEYS]; FEW];
        for (k, v) in k.chunks(KEYS * head_dim).zip(v.chunks(KEYS * head_dim)) {
            let few = q.chunks(FEW * head_dim).zip(partial.chunks_mut(FEW * (EXTRA + head_dim)));
            for (q, partial) in few {
                let k = T::read(k, rows);
                for (q, scores) in q.chunks_exact(head_dim).zip(&mut scores) {
                    score::<KEYS, FUSED>(q, k, scale, scores);
                }
                let count = k.len() / head_dim;
                let v = T::read(v, rows);
                let partial = partial.chunks_exact_mut(EXTRA + head_dim);
                for (partial, scores) in partial.zip(&mut scores) {
                    add_values::<FUSED>(partial, &mut scores[..count], v, head_dim);
                }
            }
        }
    }
}

/// Takes a block of values into the partial results of a query.
#[inline(always)]
fn add_values<const FUSED: bool>(
    partial: &mut [f32],
    scores: &mut [f32],
    v: &[f32],
    head_dim: usize,
) {
    let (state, sums) = partial.split_at_mut(EXTRA);
    let larger = largest(scores).max(state[0]);
    let shrink = math::exp(state[0] - larger);
    state[1] = state[1] * shrink + exponentiate(scores, larger);
    state[0] = larger;
    sums.iter_mut().for_each(|sum| *sum *= shrink);
    // Four rows at a time: the sums are read and written a quarter as often.
    let (fours, rest) = scores.as_chunks::<4>();
    for (first, weights) in (0..).step_by(4).zip(fours) {
        let [a, b, c, d] = rows_of(v, head_dim, first);
        for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *sum = fused::<FUSED>(weights[0], *a, *sum);
            *sum = fused::<FUSED>(weights[1], *b, *sum);
            *sum = fused::<FUSED>(weights[2], *c, *sum);
            *sum = fused::<FUSED>(weights[3], *d, *sum);
        }
    }
    for (weight, v) in rest.iter().zip(v[fours.len() * 4 * head_dim..].chunks_exact(head_dim)) {
        sums.iter_mut().zip(v).for_each(|(sum, v)| *sum += weight * v);
    }
}

/// Four rows of a matrix from `first` on.
#[inline(always)]
fn rows_of(matrix: &[f32], length: usize, first: usize) -> [&[f32]; 4] {
    [first, first + 1, first + 2, first + 3].map(|row| &matrix[row * length..][..length])
}

/// The results of all queries of a head from the partial results of its splits, the first of which takes up the others.
///
/// There are few of them, so that it need not be compiled for wide vectors.
fn join<T: Float>(partial: &mut [f32], head_dim: usize, splits: usize, out: &mut [T]) {
    let (first, others) = partial.split_at_mut(partial.len() / splits);
    for other in others.chunks_exact(first.len()) {
        let rows = other.chunks_exact(EXTRA + head_dim);
        for (whole, part) in first.chunks_exact_mut(EXTRA + head_dim).zip(rows) {
            let larger = whole[0].max(part[0]);
            let (old, new) = ((whole[0] - larger).exp(), (part[0] - larger).exp());
            whole.iter_mut().zip(part).for_each(|(whole, part)| *whole = *whole * old + part * new);
            whole[0] = larger;
        }
    }
    let mut buffer = BUFFER;
    for (row, out) in first.chunks_exact(EXTRA + head_dim).zip(out.chunks_exact_mut(head_dim)) {
        let share = 1.0 / row[1];
        for (sums, out) in row[EXTRA..].chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            for (out, sum) in T::output(out, &mut buffer).iter_mut().zip(sums) {
                *out = sum * share;
            }
            T::flush(&buffer, out);
        }
    }
}
