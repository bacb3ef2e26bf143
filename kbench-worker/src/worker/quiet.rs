//! How fast the machine is when nobody else is on it, as far as the sentinels can tell.

use super::protocol::{Block, Sample, VisitRow};

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

/// A sample of a parallel row beside which the chain on all threads takes so many nanoseconds more than on the quiet machine
/// is disturbed: a thread had to wait for a core, which lasts for a slice of time, about a millisecond. Waking many threads
/// takes some tens of microseconds more or less.
const DISTURBED: f64 = 100e3;

/// Whether a sample of a parallel row was taken while one of its threads had to wait: judged by the sentinel alone.
pub fn is_disturbed(sample: &Sample, quiet: Option<f64>) -> bool {
    let crew = sample.crew.zip(quiet);
    crew.is_some_and(|(crew, quiet)| crew > quiet + DISTURBED)
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

/// What one process knows about the threads of the rows of a cell.
pub(super) struct QuietCrews(Vec<(usize, Quiet)>);

impl QuietCrews {
    /// Starting from what former launches saw.
    pub(super) fn new(rows: &[VisitRow]) -> Self {
        QuietCrews(rows.iter().map(|row| (row.row, Quiet::new(row.crew))).collect())
    }

    /// Takes note of a block; gives whether a thread of a parallel row had to wait.
    pub(super) fn note(&mut self, block: &Block) -> bool {
        let mut any = false;
        for sample in &block.samples {
            let Some((_, quiet)) = self.0.iter_mut().find(|(row, _)| *row == sample.row) else {
                continue;
            };
            quiet.seen.extend(sample.crew);
            any |= is_disturbed(sample, quiet.level());
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_for_a_core_disturbs_its_sample_and_no_other() {
        let sample = |row, crew| Sample {
            row,
            nanoseconds: 1.0,
            chain: 1.0,
            sweep: None,
            crew,
            device: None,
        };
        let quiet = Some(20e3);
        assert!(is_disturbed(&sample(1, Some(1020e3)), quiet));
        assert!(!is_disturbed(&sample(1, Some(45e3)), quiet), "waking takes some time or other");
        assert!(
            !is_disturbed(&sample(0, None), quiet) && !is_disturbed(&sample(1, Some(1e9)), None)
        );
        let block = |crew| Block {
            samples: vec![sample(0, None), sample(1, Some(crew))],
            ..Block::default()
        };
        let mut crews = QuietCrews([0, 1].map(|row| (row, Quiet::new(None))).into());
        assert!((0..8).all(|_| !crews.note(&block(20e3))), "the level is not known yet");
        assert!(crews.note(&block(600e3)) && !crews.note(&block(21e3)));
    }
}
