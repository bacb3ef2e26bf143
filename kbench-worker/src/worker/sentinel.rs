//! Sentinels: fixed pieces of work that are timed beside every sample. They tell how fast and how busy the machine was
//! at that moment, whatever is being measured.

use std::cell::OnceCell;
use std::hint::black_box;
use std::thread::available_parallelism;
use std::time::Instant;

use crate::kernel::Caller;

/// Rounds of the chain: about 0.05 ms at 3 GHz, long against the clock and short against a sample.
const CHAIN_ROUNDS: u32 = 30_000;

/// Rounds of the chain that all threads of a row run at once: a third of the other one, because starting them takes time, too.
const CREW_ROUNDS: u32 = 10_000;

/// Words of the sweep's buffer, 8 MiB: more than a core's own caches hold.
const SWEEP_WORDS: usize = 1 << 20;

/// Words of one reading, 1 MiB: about as long as the chain.
const SWEEP_STEP: usize = 1 << 17;

/// Cells whose data is larger than this get the sweep as well: smaller data stays in a core's own cache.
pub(super) const MEMORY_BOUND: usize = 1 << 20;

/// The sentinels of one process.
#[derive(Default)]
pub(super) struct Sentinels {
    /// Cores that this process may use, once somebody has asked.
    cores: OnceCell<usize>,
    /// Made when a cell first wants it: touching its pages takes time.
    buffer: Vec<u64>,
    position: usize,
}

impl Sentinels {
    /// Cores that this process may use.
    pub(super) fn cores(&self) -> usize {
        *self.cores.get_or_init(|| available_parallelism().map_or(1, usize::from))
    }

    /// Nanoseconds of the chain.
    pub(super) fn chain(&self) -> f64 {
        let start = Instant::now();
        black_box(chain(black_box(CHAIN_ROUNDS)));
        nanoseconds(start)
    }

    /// Nanoseconds of a short chain on all threads that a parallel row is called from, until the last has ended. A core that
    /// somebody else has is seen by this alone: the other sentinels run on one thread, which goes elsewhere.
    pub(super) fn crew(&self, caller: &Caller) -> f64 {
        caller.on_all_threads(&|| {});
        let start = Instant::now();
        caller.on_all_threads(&|| {
            black_box(chain(black_box(CREW_ROUNDS)));
        });
        nanoseconds(start)
    }

    /// Nanoseconds of the sweep.
    pub(super) fn sweep(&mut self) -> f64 {
        if self.buffer.is_empty() {
            self.buffer = (0..SWEEP_WORDS as u64).collect();
        }
        // Each reading takes up where the last one ended, so that it never finds its own words in a near cache.
        let words = &self.buffer[self.position..self.position + SWEEP_STEP];
        self.position = (self.position + SWEEP_STEP) % SWEEP_WORDS;
        let start = Instant::now();
        black_box(sum(black_box(words)));
        nanoseconds(start)
    }
}

fn nanoseconds(start: Instant) -> f64 {
    // A clock that stands still would make a logarithm of zero.
    (start.elapsed().as_nanos() as f64).max(1.0)
}

/// Every round needs the result of the one before, so that nothing but the clock rate of the core matters.
#[inline(never)]
fn chain(rounds: u32) -> u64 {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..rounds {
        x = x.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(23) ^ 0x2545_f491_4f6c_dd1d;
    }
    x
}

/// Additions that do not wait for each other, so that nothing but the memory matters.
#[inline(never)]
fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_last_and_the_sweep_is_only_made_when_wanted() {
        let mut sentinels = Sentinels::default();
        assert!(sentinels.chain() > 1_000.0 && sentinels.crew(&Caller::Outside) > 1_000.0);
        assert!(sentinels.buffer.is_empty());
        for _ in 0..=2 * SWEEP_WORDS / SWEEP_STEP {
            assert!(sentinels.sweep() > 1_000.0);
        }
    }
}
