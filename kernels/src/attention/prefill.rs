//! Many queries: every position of a sequence asks at once.

use kbench::prelude::*;
use rayon::prelude::*;

use super::device;
use super::reference::attention_f64;
use super::tiles::{Block, QUERIES, attend_block};
use super::weighted_mean;
use crate::shared::Float;
use crate::shared::scratch::with_scratch;

/// Attention without and with a mask: the same code, told by `CAUSAL`.
macro_rules! attention {
    (
        $(#[$documentation:meta])*
        $kernel:ident { $rayon:ident, $naive:ident, $cuda:ident, $tensor:ident, $hopper:ident, $cuda_naive:ident, $exact:ident }
        flops = $flops:literal, CAUSAL = $causal:literal, visible = |$query:ident, $seq:ident| $visible:expr
    ) => {
        $(#[$documentation])*
        ///
        /// `q` and `out` are batch × heads × seq × head_dim, `k` and `v` batch × kv_heads × seq × head_dim.
        #[kernel_bench(
            sizes = [
                "tiny" => (seq = 33, head_dim = 64, heads = 2, kv_heads = 1, batch = 1),
                "small" => (seq = 128, head_dim = 64, heads = 8, kv_heads = 2, batch = 1),
                "medium" => (seq = 200, head_dim = 64, heads = 8, kv_heads = 2, batch = 2),
                "large" => (seq = 512, head_dim = 128, heads = 8, kv_heads = 2, batch = 1),
            ],
            inputs = |seq, head_dim, heads, kv_heads, batch| (
                normal(batch * heads * seq * head_dim),
                normal(batch * kv_heads * seq * head_dim),
                normal(batch * kv_heads * seq * head_dim),
                seq,
                head_dim,
                zeros(batch * heads * seq * head_dim),
            ),
            valid = heads.is_multiple_of(kv_heads),
            // Scores. The default tolerance, 8·u·√(scores per output element), is then some 8 to 16 roundings: tensor
            // cores take weights that are rounded to 16 bits, and errors of many of them partly cancel in a mean.
            work = |batch, heads, seq| batch * heads * seq * seq,
            flops = |batch, heads, seq, head_dim| $flops * batch * heads * seq * seq * head_dim,
            reference = $exact,
            types = [f32, f16, bf16],
        )]
        pub fn $kernel<T: Float>(q: &[T], k: &[T], v: &[T], seq: usize, head_dim: usize, out: &mut [T]) {
            for (head, out) in out.chunks_mut(seq * head_dim).enumerate() {
                for (index, out) in out.chunks_mut(QUERIES * head_dim).enumerate() {
                    attend_block(block_of::<T, $causal>((q, k, v), (head, index), (seq, head_dim)), out);
                }
            }
        }

        #[doc = concat!("[`", stringify!($kernel), "`] with blocks of queries shared among all cores.")]
        #[kernel_bench(of = $kernel, parallel, threshold = tuned(12_000), types = [f32, f16, bf16])]
        pub fn $rayon<T: Float>(q: &[T], k: &[T], v: &[T], seq: usize, head_dim: usize, out: &mut [T]) {
            out.par_chunks_mut(seq * head_dim).enumerate().for_each(|(head, out)| {
                out.par_chunks_mut(QUERIES * head_dim).enumerate().for_each(|(index, out)| {
                    attend_block(block_of::<T, $causal>((q, k, v), (head, index), (seq, head_dim)), out);
                });
            });
        }

        #[doc = concat!("[`", stringify!($kernel), "`] with all scores of a query in memory, one query after the other.")]
        #[kernel_bench(
            of = $kernel,
            types = [f32, f16, bf16],
            valid = batch * heads * seq * seq * head_dim <= 1 << 27, // beyond it takes seconds, for f16 most of all
        )]
        pub fn $naive<T: Float>(q: &[T], k: &[T], v: &[T], seq: usize, head_dim: usize, out: &mut [T]) {
            let group = q.len() / k.len();
            with_scratch([seq, head_dim], |[scores, sums]| {
                for (index, (q, out)) in q.chunks(head_dim).zip(out.chunks_mut(head_dim)).enumerate() {
                    let (head, $query) = (index / seq / group * seq * head_dim, index % seq);
                    let $seq = seq;
                    let visible = $visible;
                    let (k, v) = (&k[head..][..visible * head_dim], &v[head..][..visible * head_dim]);
                    weighted_mean(q, (k, v), (&mut scores[..visible], sums), out);
                }
            });
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on a GPU in plain arithmetic, tile by tile.")]
        #[kernel_bench(of = $kernel, cuda, types = [f32, f16, bf16], valid = head_dim <= device::WIDEST)]
        pub fn $cuda<T: Float>(
            gpu: &Gpu,
            q: &DeviceSlice<T>,
            k: &DeviceSlice<T>,
            v: &DeviceSlice<T>,
            seq: usize,
            head_dim: usize,
            out: &mut DeviceSlice<T>,
        ) -> GpuResult<()> {
            device::tiled::<T, $causal>(gpu, (q, k, v), (seq, head_dim), out)
        }

        #[doc = concat!("[`", stringify!($kernel), "`] by the tensor cores of a GPU.")]
        #[kernel_bench(of = $kernel, cuda, types = [f16, bf16], valid = head_dim == 64 || head_dim == 128)]
        pub fn $tensor<T: Float>(
            gpu: &Gpu,
            q: &DeviceSlice<T>,
            k: &DeviceSlice<T>,
            v: &DeviceSlice<T>,
            seq: usize,
            head_dim: usize,
            out: &mut DeviceSlice<T>,
        ) -> GpuResult<()> {
            device::tensor::<T, $causal>(gpu, (q, k, v), (seq, head_dim), out)
        }

        #[doc = concat!("[`", stringify!($kernel), "`] by the tensor cores of a GPU as Hopper has them.")]
        #[kernel_bench(of = $kernel, cuda, types = [f16, bf16], valid = head_dim == 64 || head_dim == 128)]
        pub fn $hopper<T: Float>(
            gpu: &Gpu,
            q: &DeviceSlice<T>,
            k: &DeviceSlice<T>,
            v: &DeviceSlice<T>,
            seq: usize,
            head_dim: usize,
            out: &mut DeviceSlice<T>,
        ) -> GpuResult<()> {
            device::hopper::<T, $causal>(gpu, (q, k, v), (seq, head_dim), out)
        }

        #[doc = concat!("[`", stringify!($kernel), "`] on a GPU with all scores in its memory.")]
        #[kernel_bench(
            of = $kernel,
            cuda,
            types = [f32, f16, bf16],
            valid = batch * heads * seq * seq <= 1 << 28, // 1 GiB of scores
        )]
        pub fn $cuda_naive<T: Float>(
            gpu: &Gpu,
            q: &DeviceSlice<T>,
            k: &DeviceSlice<T>,
            v: &DeviceSlice<T>,
            seq: usize,
            head_dim: usize,
            out: &mut DeviceSlice<T>,
        ) -> GpuResult<()> {
            device::naive::<T, $causal>(gpu, (q, k, v), (seq, head_dim), out)
        }

        fn $exact(q: &[f64], k: &[f64], v: &[f64], seq: usize, head_dim: usize, out: &mut [f64]) {
            let visible = |$query: usize| {
                let $seq = seq;
                $visible
            };
            attention_f64((q, k, v), (seq, seq, head_dim), visible, out);
        }
    };
}

attention! {
    /// out ← softmax(q·kᵀ / √head_dim)·v for each head.
    attention_prefill {
        attention_prefill_rayon, attention_prefill_naive, attention_prefill_cuda,
        attention_prefill_cuda_tensor, attention_prefill_cuda_hopper, attention_prefill_cuda_naive, attention_prefill_f64
    }
    flops = 4, CAUSAL = false, visible = |_query, seq| seq
}

attention! {
    /// out ← softmax(q·kᵀ / √head_dim)·v for each head, where a query sees the keys up to its own position.
    attention_causal {
        attention_causal_rayon, attention_causal_naive, attention_causal_cuda,
        attention_causal_cuda_tensor, attention_causal_cuda_hopper, attention_causal_cuda_naive, attention_causal_f64
    }
    flops = 2, CAUSAL = true, visible = |query, _seq| query + 1
}

/// Block `index` of the queries of a head, with the keys and values that it shares with others.
fn block_of<'a, T: Float, const CAUSAL: bool>(
    (q, k, v): (&'a [T], &'a [T], &'a [T]),
    (head, index): (usize, usize),
    (seq, head_dim): (usize, usize),
) -> Block<'a, T> {
    let (matrix, group) = (seq * head_dim, q.len() / k.len());
    let of_head = |x: &'a [T], head: usize| &x[head * matrix..][..matrix];
    let first = index * QUERIES;
    let queries = QUERIES.min(seq - first);
    Block {
        q: &of_head(q, head)[first * head_dim..][..queries * head_dim],
        k: of_head(k, head / group),
        v: of_head(v, head / group),
        head_dim,
        causal_from: CAUSAL.then_some(first),
    }
}
