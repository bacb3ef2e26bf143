//! Reading memory: a walk around a ring that does not fit into the caches near the core.
//!
//! A walk goes on where the last one stopped. A task of more chunks is therefore no task of more memory: whatever the
//! caches keep, the time is proportional to the number of chunks.

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

/// Elements of the ring: 16 MiB.
pub const ELEMENTS: usize = 4 << 20;

/// Chunks of the smaller task: about once around, and 0.5 % of it is a whole number.
pub const CHUNKS: u64 = 4000;

/// Elements of a chunk: 4 KiB, a page.
const CHUNK: usize = 1024;

/// Independent sums, so that additions do not wait for each other: eight vectors of four.
const LANES: usize = 32;

/// The chunk at which the next walk begins; all walks share it.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The sum of as many chunks, on from where the last walk stopped; of a ring without a whole chunk, nothing.
///
/// `WHICH` makes functions of their own; see [`crate::chain::chain`].
#[inline(never)]
pub fn sweep<const WHICH: u8>(ring: &[f32], chunks: u64) -> f32 {
    black_box(WHICH);
    let (ring, _) = ring.as_chunks::<CHUNK>();
    if ring.is_empty() {
        return 0.0;
    }
    let next = NEXT.load(Ordering::Relaxed) % ring.len();
    let (sum, next) = walk(ring, next, chunks);
    NEXT.store(next, Ordering::Relaxed);
    sum
}

/// The same walk, cut into parts of equal length for the threads of the current pool.
#[inline(never)]
pub fn sweep_in_parts(ring: &[f32], chunks: u64, parts: usize) -> f32 {
    let (ring, _) = ring.as_chunks::<CHUNK>();
    if ring.is_empty() {
        return 0.0;
    }
    let next = NEXT.load(Ordering::Relaxed) as u64;
    let edge = |part: usize| next + chunks * part as u64 / parts as u64;
    let place = |chunk: u64| (chunk % ring.len() as u64) as usize;
    let part = |part: usize| walk(ring, place(edge(part)), edge(part + 1) - edge(part)).0;
    let sum = (0..parts).into_par_iter().with_max_len(1).map(part).sum();
    NEXT.store(place(edge(parts)), Ordering::Relaxed);
    sum
}

/// The sum of as many chunks from one on, and the chunk after the last.
#[inline(always)]
fn walk(ring: &[[f32; CHUNK]], mut next: usize, chunks: u64) -> (f32, usize) {
    let mut sums = [0.0f32; LANES];
    for _ in 0..chunks {
        for lanes in ring[next].as_chunks::<LANES>().0 {
            sums.iter_mut().zip(lanes).for_each(|(sum, element)| *sum += element);
        }
        next = if next + 1 == ring.len() { 0 } else { next + 1 };
    }
    (sums.iter().sum(), next)
}

/// The ring of this process, for tools that do not make data themselves.
pub fn ring() -> &'static [f32] {
    static RING: OnceLock<Vec<f32>> = OnceLock::new();
    RING.get_or_init(|| vec![1.0; ELEMENTS])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{COPY, ORIGINAL};

    #[test]
    fn copies_have_addresses_of_their_own() {
        let original: fn(&[f32], u64) -> f32 = black_box(sweep::<ORIGINAL>);
        let copy: fn(&[f32], u64) -> f32 = black_box(sweep::<COPY>);
        assert_ne!(original as usize, copy as usize);
    }

    #[test]
    fn a_walk_reads_as_many_chunks_as_it_is_told() {
        let ring = vec![1.0; 3 * CHUNK];
        for chunks in [0, 1, 3, 7] {
            assert_eq!(sweep::<ORIGINAL>(&ring, chunks), chunks as f32 * CHUNK as f32);
        }
        assert_eq!(sweep::<COPY>(&ring[..CHUNK - 1], 5), 0.0);
    }

    #[test]
    fn parts_read_as_many_chunks_as_the_whole() {
        let ring = vec![1.0; 3 * CHUNK];
        for (chunks, parts) in [(0, 4), (3, 4), (7, 2), (100, 64)] {
            let sum = sweep_in_parts(&ring, chunks, parts);
            assert_eq!(sum, chunks as f32 * CHUNK as f32, "{chunks} in {parts}");
        }
        assert_eq!(sweep_in_parts(&ring[..CHUNK - 1], 5, 2), 0.0);
    }
}
