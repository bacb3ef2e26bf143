//! How fast the machine is when nobody else is on it, as far as the sentinels can tell.

use super::protocol::Block;

/// A block whose sentinels are slower than the quiet machine by more than this is contaminated. Clock rates move in steps
/// of 3 to 4 %, by 15 % and more within seconds; that cancels in ratios of what is bound by the same thing. What takes the
/// core away costs more.
const CONTAMINATED: f64 = 0.20;

/// Blocks that are needed before a process knows by itself what quiet means.
const FEWEST_BLOCKS: usize = 8;

/// Whether a block was taken on a busy machine: judged by its sentinels alone, never by its own times.
pub fn is_contaminated(chain: f64, quiet: Option<f64>) -> bool {
    quiet.is_some_and(|quiet| chain > quiet * (1.0 + CONTAMINATED))
}

/// The chain's time in a block: the median over its samples.
pub fn chain_of(block: &Block) -> f64 {
    let mut readings: Vec<f64> = block.samples.iter().map(|sample| sample.chain).collect();
    readings.sort_unstable_by(f64::total_cmp);
    readings.get(readings.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The chain's time on the quiet machine: the lower quartile over blocks, which a load of less than three quarters of
/// the time does not move.
pub fn quiet_level(chains: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = chains.iter().copied().filter(|chain| chain.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 4).copied()
}

/// What one process knows about it.
pub(super) struct Quiet {
    given: Option<f64>,
    seen: Vec<f64>,
}

impl Quiet {
    /// Starting from what former launches saw.
    pub(super) fn new(given: Option<f64>) -> Self {
        Quiet { given, seen: Vec::new() }
    }

    /// Takes note of a block; gives its chain.
    pub(super) fn note(&mut self, block: &Block) -> f64 {
        let chain = chain_of(block);
        self.seen.push(chain);
        chain
    }

    /// The level, once it is known.
    pub(super) fn level(&self) -> Option<f64> {
        self.given.or_else(|| {
            (self.seen.len() >= FEWEST_BLOCKS).then(|| quiet_level(&self.seen)).flatten()
        })
    }
}
