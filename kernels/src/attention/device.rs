//! Launches of device code for many queries.

use kbench::prelude::*;

use crate::shared::{COMMON, Float, entry, needs_ampere, needs_hopper};

const SOURCE: Source =
    Source::new(include_str!("../../cuda/attention.cu")).named("attention.cu").headers(COMMON);
const TENSOR: Source = Source::new(include_str!("../../cuda/attention_tensor.cu"))
    .named("attention_tensor.cu")
    .headers(COMMON);

const HOPPER: Source = Source::new(include_str!("../../cuda/attention_hopper.cu"))
    .named("attention_hopper.cu")
    .headers(COMMON);

/// The longest head of the tiled kernel.
pub(super) const WIDEST: usize = 128;

/// Queries, keys and values.
type Operands<'a, T> = (&'a DeviceSlice<T>, &'a DeviceSlice<T>, &'a DeviceSlice<T>);

/// A block of 256 threads for every 64 queries of a head.
pub(super) fn tiled<T: Float, const CAUSAL: bool>(
    gpu: &Gpu,
    (q, k, v): Operands<'_, T>,
    (seq, head_dim): (usize, usize),
    out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    const TILE: usize = 64;
    let width = if head_dim <= 64 { 64 } else { WIDEST };
    let entry = match (CAUSAL, width) {
        (false, 64) => entry!(T, "attention_tiled_64"),
        (false, _) => entry!(T, "attention_tiled_128"),
        (true, 64) => entry!(T, "attention_causal_tiled_64"),
        (true, _) => entry!(T, "attention_causal_tiled_128"),
    };
    // Queries, keys or values, and weights, in rows that are padded by four floats.
    let shared = (2 * TILE * (width + 4) + TILE * (TILE + 4)) * size_of::<f32>();
    let heads = q.len() / (seq * head_dim);
    let kernel = gpu.kernel(SOURCE, entry)?;
    let kernel = kernel.grid(heads * seq.div_ceil(TILE)).block(256).shared(shared);
    let kernel = kernel.arg(q).arg(k).arg(v).arg(out).arg(seq as u32).arg(head_dim as u32);
    kernel.arg((q.len() / k.len()) as u32).launch()
}

/// A block of four warps for every 128 queries of a head.
pub(super) fn tensor<T: Float, const CAUSAL: bool>(
    gpu: &Gpu,
    (q, k, v): Operands<'_, T>,
    (seq, head_dim): (usize, usize),
    out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    const QUERIES: usize = 128;
    const KEYS: usize = 64;
    needs_ampere(gpu)?;
    // There is no kernel for f32.
    let entry = match (CAUSAL, head_dim) {
        (false, 64) => ["", "attention_tensor_64_f16", "attention_tensor_64_bf16"],
        (false, _) => ["", "attention_tensor_128_f16", "attention_tensor_128_bf16"],
        (true, 64) => ["", "attention_causal_tensor_64_f16", "attention_causal_tensor_64_bf16"],
        (true, _) => ["", "attention_causal_tensor_128_f16", "attention_causal_tensor_128_bf16"],
    };
    // Queries, and two tiles each of keys and values.
    let shared = (QUERIES + 4 * KEYS) * head_dim * size_of::<T>();
    let heads = q.len() / (seq * head_dim);
    let kernel = gpu.kernel(TENSOR, T::one_of(entry))?;
    let kernel = kernel.grid(heads * seq.div_ceil(QUERIES)).block(128).shared(shared);
    let kernel = kernel.arg(q).arg(k).arg(v).arg(out).arg(seq as u32);
    kernel.arg((q.len() / k.len()) as u32).launch()
}

/// Three groups of four warps for every 128 queries of a head.
pub(super) fn hopper<T: Float, const CAUSAL: bool>(
    gpu: &Gpu,
    (q, k, v): Operands<'_, T>,
    (seq, head_dim): (usize, usize),
    out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    const QUERIES: usize = 128;
    const KEYS: usize = 128;
    needs_hopper(gpu)?;
    let entry = match (CAUSAL, head_dim) {
        (false, 64) => ["", "attention_hopper_64_f16", "attention_hopper_64_bf16"],
        (false, _) => ["", "attention_hopper_128_f16", "attention_hopper_128_bf16"],
        (true, 64) => ["", "attention_causal_hopper_64_f16", "attention_causal_hopper_64_bf16"],
        (true, _) => ["", "attention_causal_hopper_128_f16", "attention_causal_hopper_128_bf16"],
    };
    // Queries, and two tiles each of keys and values.
    let shared = (QUERIES + 4 * KEYS) * head_dim * size_of::<T>();
    let heads = q.len() / (seq * head_dim);
    let kernel = gpu.kernel(HOPPER, T::one_of(entry))?;
    let kernel = kernel.grid(heads * seq.div_ceil(QUERIES)).block(384).shared(shared);
    let kernel = kernel.arg(q).arg(k).arg(v).arg(out).arg(seq as u32);
    kernel.arg((q.len() / k.len()) as u32).launch()
}

/// Scores, softmax and means, each by a kernel of its own.
pub(super) fn naive<T: Float, const CAUSAL: bool>(
    gpu: &Gpu,
    (q, k, v): Operands<'_, T>,
    (seq, head_dim): (usize, usize),
    out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    let [scores_of, softmax, values] = match CAUSAL {
        false => [
            entry!(T, "attention_naive_scores"),
            "attention_naive_softmax",
            entry!(T, "attention_naive_values"),
        ],
        true => [
            entry!(T, "attention_causal_naive_scores"),
            "attention_causal_naive_softmax",
            entry!(T, "attention_causal_naive_values"),
        ],
    };
    let rows = q.len() / head_dim;
    let (seq_of, head_of, group) = (seq as u32, head_dim as u32, (q.len() / k.len()) as u32);
    let mut scores = gpu.scratch::<f32>(rows * seq)?;
    let kernel = gpu.kernel(SOURCE, scores_of)?.over(rows * seq, 256).arg(q).arg(k);
    kernel.arg(&mut scores).arg(rows * seq).arg(seq_of).arg(head_of).arg(group).launch()?;
    let kernel = gpu.kernel(SOURCE, softmax)?.grid(rows).block(256);
    kernel.arg(&mut scores).arg(seq_of).launch()?;
    let kernel = gpu.kernel(SOURCE, values)?.over(q.len(), 256).arg(&scores).arg(v);
    kernel.arg(out).arg(q.len()).arg(seq_of).arg(head_of).arg(group).launch()
}
