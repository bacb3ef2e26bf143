//! Steps that only training has.

use kbench::prelude::*;
use rayon::prelude::*;

use crate::shared::float::BUFFER;
use crate::shared::tasks::GRAIN;
use crate::shared::{BLOCK, COMMON, Float, entry, vectorise};

const SOURCE: Source =
    Source::new(include_str!("../cuda/training.cu")).named("training.cu").headers(COMMON);

/// out ← x / (1 − p) where an element is kept, and 0 where it is dropped, which happens with probability p.
///
/// Element i is dropped if word i mod 4 of Philox's block i div 4, as a fraction of 2³², is less than p. No word
/// depends on another, so every variant drops the same elements, in whatever order it computes them.
#[kernel_bench(
    sizes = [
        "tiny" => (n = 1 << 12),
        "small" => (n = 1 << 16),
        "medium" => (n = 1 << 20),
        "large" => (n = 1 << 22),
    ],
    inputs = |n| (normal(n), 0.1, 0x5eed_0123_4567_89ab, zeros(n)),
    flops = |n| n,
    reference = dropout_f64,
    types = [f32, f16, bf16],
)]
pub fn dropout<T: Float>(x: &[T], p: f32, seed: u64, out: &mut [T]) {
    drop_elements(x, 0, Rule::new(p), seed, out);
}

/// [`dropout`] on all cores.
#[kernel_bench(of = dropout, parallel, threshold = tuned(50_000), types = [f32, f16, bf16])]
pub fn dropout_rayon<T: Float>(x: &[T], p: f32, seed: u64, out: &mut [T]) {
    let rule = Rule::new(p);
    let tasks = out.par_chunks_mut(GRAIN).zip(x.par_chunks(GRAIN)).enumerate();
    tasks.for_each(|(task, (out, x))| {
        let first = (task * GRAIN / WORDS) as u64;
        drop_elements(x, first, rule, seed, out);
    });
}

/// [`dropout`] on a GPU.
#[kernel_bench(of = dropout, cuda, types = [f32, f16, bf16])]
pub fn dropout_cuda<T: Float>(
    gpu: &Gpu,
    x: &DeviceSlice<T>,
    p: f32,
    seed: u64,
    out: &mut DeviceSlice<T>,
) -> GpuResult<()> {
    /// Vectors of 16 bytes that a thread handles: PACKS of the device code.
    const PACKS: usize = 2;
    let n = x.len();
    let Rule { least, scale } = Rule::new(p);
    let threads = n.div_ceil(PACKS * 16 / size_of::<T>());
    let kernel = gpu.kernel(SOURCE, entry!(T, "dropout"))?.over(threads, 128);
    kernel.arg(x).arg(out).arg(n).arg(least).arg(scale).arg(seed).launch()
}

/// Which words keep their element, and by what it is multiplied.
#[derive(Clone, Copy)]
struct Rule {
    /// The least word that keeps an element: p·2³², rounded up.
    least: u32,
    /// 1 / (1 − p); 0 if everything is dropped.
    scale: f32,
}

impl Rule {
    fn new(p: f32) -> Self {
        let least = (f64::from(p) * 2f64.powi(32)).ceil() as u32;
        Rule { least, scale: if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 } }
    }
}

vectorise! {
    fn drop_elements<T: Float>(x: &[T], first_block: u64, rule: Rule, seed: u64, out: &mut [T]) {
        let (mut inputs, mut outputs) = (BUFFER, BUFFER);
        let mut words = [0; BLOCK];
        let mut counter = first_block;
        for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            for (block, words) in words.as_chunks_mut::<WORDS>().0.iter_mut().enumerate() {
                let counter = counter + block as u64;
                *words = philox([counter, counter >> 32, 0, 0], [seed, seed >> 32]);
            }
            counter += (BLOCK / WORDS) as u64;
            let x = T::read(x, &mut inputs);
            let results = T::output(out, &mut outputs);
            for ((out, x), word) in results.iter_mut().zip(x).zip(&words) {
                *out = if *word < rule.least { 0.0 } else { x * rule.scale };
            }
            T::flush(&outputs, out);
        }
    }
}

/// Words of 32 bits that Philox makes of a counter.
const WORDS: usize = 4;

/// Philox4x32-10, a generator without state: a bijection of counters for every key (Salmon and others, "Parallel random
/// numbers: as easy as 1, 2, 3", 2011).
///
/// Of every number only the low 32 bits count. They are kept in 64, as the products are, so that a loop over counters
/// is vectorised with no more than two multiplications and some logic per round.
#[inline(always)]
fn philox([mut a, mut b, mut c, mut d]: [u64; 4], [mut e, mut f]: [u64; 2]) -> [u32; WORDS] {
    const ROUNDS: usize = 10;
    const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
    /// The golden ratio, and √3 − 1.
    const STEPS: [u64; 2] = [0x9e37_79b9, 0xbb67_ae85];
    const LOW: u64 = 0xffff_ffff;
    for _ in 0..ROUNDS {
        let (left, right) = ((a & LOW) * MULTIPLIERS[0], (c & LOW) * MULTIPLIERS[1]);
        [a, b, c, d] = [(right >> 32) ^ b ^ e, right, (left >> 32) ^ d ^ f, left];
        (e, f) = (e.wrapping_add(STEPS[0]), f.wrapping_add(STEPS[1]));
    }
    [a as u32, b as u32, c as u32, d as u32]
}

/// One word at a time, from the paper's own description: each round is two multiplications, whose halves are exchanged
/// and mixed with the key.
fn dropout_f64(x: &[f64], p: f64, seed: u64, out: &mut [f64]) {
    for i in 0..x.len() {
        let block = i as u64 / 4;
        let mut counter = [block as u32, (block >> 32) as u32, 0, 0];
        for round in 0..10u32 {
            let key0 = (seed as u32).wrapping_add(round.wrapping_mul(0x9e37_79b9));
            let key1 = ((seed >> 32) as u32).wrapping_add(round.wrapping_mul(0xbb67_ae85));
            let product0 = u64::from(counter[0]) * 0xd251_1f53;
            let product1 = u64::from(counter[2]) * 0xcd9e_8d57;
            counter = [
                (product1 / (1 << 32)) as u32 ^ counter[1] ^ key0,
                (product1 % (1 << 32)) as u32,
                (product0 / (1 << 32)) as u32 ^ counter[3] ^ key1,
                (product0 % (1 << 32)) as u32,
            ];
        }
        let fraction = f64::from(counter[i % 4]) / 2f64.powi(32);
        out[i] = if fraction < p { 0.0 } else { x[i] / (1.0 - p) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_words() {
        // The test vectors of the authors' library, Random123.
        let known = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            (
                [0xffff_ffff; 4],
                [0xffff_ffff; 2],
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, words) in known {
            assert_eq!(philox(counter, key), words);
        }
    }

    #[test]
    fn every_variant_drops_the_same_elements_about_as_many_as_it_should() {
        let n = 3 * GRAIN + 5;
        let (x, mut serial, mut parallel) = (vec![1.0f32; n], vec![0.0; n], vec![0.0; n]);
        dropout(&x, 0.25, 7, &mut serial);
        dropout_rayon(&x, 0.25, 7, &mut parallel);
        assert_eq!(serial, parallel);
        let dropped = serial.iter().filter(|value| **value == 0.0).count() as f64 / n as f64;
        assert!((dropped - 0.25).abs() < 0.01, "{dropped}");
        assert!(serial.iter().all(|value| [0.0, 1.0 / 0.75].contains(value)));
    }

    #[test]
    fn all_or_nothing_is_dropped_at_the_ends() {
        let mut out = [7.0f32; 100];
        dropout(&[3.0; 100], 0.0, 1, &mut out);
        assert_eq!(out, [3.0; 100]);
        dropout(&[3.0; 100], 1.0, 1, &mut out);
        assert_eq!(out, [0.0; 100]);
    }
}
