//! From samples to independent repetitions of their logarithms.

use crate::measure::Measurement;
use crate::order;
use crate::worker::{Block, Sample, chain_of, is_contaminated, is_disturbed};

/// Segments that the blocks of a single launch are merged into: enough degrees of freedom for a t-test, and each long
/// enough that a burst of noise does not fill it.
const SEGMENTS: usize = 12;

/// A mirrored block has two samples of every row; so each is in two pairs with those of another, and half of the pairs
/// are independent.
pub(super) const SAMPLES_PER_BLOCK: usize = 2;

/// Blocks of a cell on a quiet machine must be at least this share; with fewer, all blocks count.
const FEWEST_QUIET: f64 = 0.25;

/// What the observations are repetitions of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Whole processes: placement was sampled.
    Launches,
    /// Parts of one process: placement was the same throughout.
    Segments,
}

/// The speed of the machine beside the rows of a cell, as the sentinels saw it.
#[derive(Clone, Debug, Default)]
struct Calm {
    /// Nanoseconds of the chain when nothing else ran on the machine.
    level: Option<f64>,
    /// Whether so few blocks are quiet that all count.
    counts_all: bool,
    /// The same of the chain on all threads of each parallel row; none for a row of which nearly every sample is disturbed
    /// or in a block that does not count.
    crews: Vec<(usize, Option<f64>)>,
}

impl Calm {
    fn of(measurement: &Measurement, cell: usize) -> Self {
        let blocks = || measurement.launches.iter().flat_map(|launch| &launch.cells[cell]);
        let calm = Calm { level: measurement.quiet_level(cell), ..Calm::default() };
        let quiet = blocks().filter(|block| calm.admits(block)).count();
        let calm = Calm { counts_all: are_few(quiet, blocks().count()), ..calm };
        let crew = |row: usize| {
            let level = measurement.crew_level(cell, row);
            let of_row = |block: &Block, level: Option<f64>| {
                let own = block.samples.iter().filter(|sample| sample.row == row);
                own.filter(|sample| !is_disturbed(sample, level)).count()
            };
            let all = blocks().map(|block| of_row(block, None)).sum();
            let counted = blocks().filter(|block| calm.admits(block));
            let quiet = counted.map(|block| of_row(block, level)).sum();
            (row, level.filter(|_| !are_few(quiet, all)))
        };
        let samples = blocks().flat_map(|block| &block.samples);
        let parallel = samples.filter(|sample| sample.crew.is_some()).map(|sample| sample.row);
        let crews = order::distinct(parallel).into_iter().map(crew).collect();
        Calm { crews, ..calm }
    }

    fn admits(&self, block: &Block) -> bool {
        self.counts_all || (!self.is_busy(block) && !block.throttled)
    }

    fn is_busy(&self, block: &Block) -> bool {
        is_contaminated(chain_of(block), self.level)
    }

    /// Whether no thread of a parallel row had to wait beside a sample.
    fn admits_sample(&self, sample: &Sample) -> bool {
        let crew = self.crews.iter().find(|(row, _)| *row == sample.row);
        !crew.is_some_and(|(_, level)| is_disturbed(sample, *level))
    }
}

/// Whether quiet ones are so few that all count.
fn are_few(quiet: usize, all: usize) -> bool {
    (quiet as f64) < FEWEST_QUIET * all as f64
}

/// The share of all blocks that were taken on a busy machine; none without any.
pub fn contaminated_share<'m>(
    measurements: impl IntoIterator<Item = &'m Measurement>,
) -> Option<f64> {
    let (mut all, mut busy) = (0.0, 0.0);
    for measurement in measurements {
        let cells = measurement.launches.first().map_or(0, |launch| launch.cells.len());
        for cell in 0..cells {
            let calm = Calm::of(measurement, cell);
            for block in measurement.launches.iter().flat_map(|launch| &launch.cells[cell]) {
                all += 1.0;
                let has_waited = !block.samples.iter().all(|sample| calm.admits_sample(sample));
                busy += if calm.is_busy(block) || has_waited { 1.0 } else { 0.0 };
            }
        }
    }
    (all > 0.0).then_some(busy / all)
}

/// What was observed of one cell.
#[derive(Clone, Debug)]
pub struct Observations {
    /// What a repetition is.
    pub scope: Scope,
    /// Blocks that were taken.
    pub blocks: usize,
    /// Of these, blocks on a busy machine.
    pub contaminated: usize,
    /// Whether contaminated blocks had to be counted, for want of others.
    pub is_loaded: bool,
    repetitions: Vec<Vec<BlockRows>>,
}

/// One block: the samples of each row, in the order in which they were taken.
#[derive(Clone, Debug)]
struct BlockRows(Vec<(usize, Vec<Logarithms>)>);

/// Logarithms of one sample.
#[derive(Clone, Copy, Debug)]
struct Logarithms {
    /// ln(ns).
    time: f64,
    /// ln(time / sentinel).
    anchored: f64,
    /// Whether it was timed on a device, for which no sentinel speaks.
    is_device: bool,
}

impl Observations {
    /// What a measurement says about a cell.
    pub fn of(measurement: &Measurement, cell: usize) -> Self {
        let calm = Calm::of(measurement, cell);
        let launches: Vec<&Vec<Block>> = measurement
            .launches
            .iter()
            .map(|launch| &launch.cells[cell])
            .filter(|blocks| !blocks.is_empty())
            .collect();
        let blocks = launches.iter().map(|blocks| blocks.len()).sum();
        let all = || launches.iter().flat_map(|launch| launch.iter());
        let contaminated = all().filter(|block| calm.is_busy(block)).count();
        let is_loaded = are_few(blocks - contaminated, blocks);
        let admitted = |blocks: &&Vec<Block>| -> Vec<BlockRows> {
            let admitted = blocks.iter().filter(|block| calm.admits(block));
            admitted.map(|block| BlockRows::of(block, &calm)).collect()
        };
        let repetitions: Vec<Vec<BlockRows>> =
            launches.iter().map(admitted).filter(|blocks| !blocks.is_empty()).collect();
        let scope = scope(&launches);
        let repetitions = match scope {
            Scope::Launches => repetitions,
            Scope::Segments => repetitions.into_iter().flat_map(segments).collect(),
        };
        Observations { scope, blocks, contaminated, is_loaded, repetitions }
    }

    /// Logarithms of the time of a row in nanoseconds, one for every repetition that has it.
    pub fn times(&self, row: usize) -> Vec<Repetition> {
        self.medians(1, |block| block.of_row(row).map(|sample| sample.time).collect())
    }

    /// Logarithms of the nanoseconds of all samples of a row, one list for every repetition.
    pub fn samples(&self, row: usize) -> Vec<Vec<f64>> {
        let of_block = |block: &BlockRows| block.of_row(row).map(|s| s.time).collect::<Vec<_>>();
        let of = |blocks: &Vec<BlockRows>| blocks.iter().flat_map(of_block).collect();
        self.repetitions.iter().map(of).collect()
    }

    /// Whether two rows were measured beside each other.
    pub fn are_beside(&self, row: usize, other: usize) -> bool {
        let has = |block: &BlockRows, row: usize| block.of_row(row).next().is_some();
        self.repetitions.iter().flatten().any(|block| has(block, row) && has(block, other))
    }

    /// Logarithms of the time of a row against that of the sentinel.
    pub fn anchored(&self, row: usize) -> Vec<Repetition> {
        self.medians(1, |block| block.of_row(row).map(|sample| sample.anchored).collect())
    }

    /// Logarithms of the times of two rows in the same unit: against the sentinel where it speaks for both, in nanoseconds
    /// otherwise.
    pub fn alike(&self, row: usize, other: usize) -> (Vec<Repetition>, Vec<Repetition>) {
        let mut blocks = self.repetitions.iter().flatten();
        let is_device = |row: usize, block: &BlockRows| block.of_row(row).any(|s| s.is_device);
        if blocks.any(|block| is_device(row, block) || is_device(other, block)) {
            (self.times(row), self.times(other))
        } else {
            (self.anchored(row), self.anchored(other))
        }
    }

    /// Logarithms of how many times as long one row takes as another, from blocks that have both.
    pub fn differences(&self, row: usize, other: usize) -> Vec<Repetition> {
        self.medians(SAMPLES_PER_BLOCK, |block| block.differences(row, other))
    }

    /// The median over all values of every repetition that has any; `alike` of them count as one independent value.
    fn medians(&self, alike: usize, values: impl Fn(&BlockRows) -> Vec<f64>) -> Vec<Repetition> {
        let of = |blocks: &Vec<BlockRows>| {
            let values: Vec<f64> = blocks.iter().flat_map(&values).collect();
            Repetition::of(&values, values.len().div_ceil(alike))
        };
        self.repetitions.iter().filter_map(of).collect()
    }
}

/// What one launch, or one segment of a launch, says: a median with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repetition {
    /// The median.
    pub value: f64,
    /// Its variance, as far as the values within the repetition tell; none from a single one.
    pub variance: Option<f64>,
    /// How many independent values it is the median of.
    pub count: usize,
}

impl Repetition {
    /// The median of some values, of which `count` are independent; none of none.
    pub fn of(values: &[f64], count: usize) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Of n independent values the number below the true median is binomial with a standard deviation of √n / 2, so the
        // values at that share of all ranks to either side of the middle are one standard deviation of the median away.
        let variance = (count > 1).then(|| {
            let share = 0.5 - 0.5 / (count as f64).sqrt();
            let below = (share * sorted.len() as f64).floor() as usize;
            ((sorted[sorted.len() - 1 - below] - sorted[below]) / 2.0).powi(2)
        });
        (count > 0).then(|| Repetition { value: median(&sorted), variance, count })
    }
}

/// Launches are repetitions of a row when it is in several of them.
fn scope(launches: &[&Vec<Block>]) -> Scope {
    let mut earlier: Vec<usize> = Vec::new();
    for blocks in launches {
        let samples = blocks.iter().flat_map(|block| &block.samples);
        let rows = order::distinct(samples.map(|sample| sample.row));
        if rows.iter().any(|row| earlier.contains(row)) {
            return Scope::Launches;
        }
        earlier.extend(rows);
    }
    Scope::Segments
}

impl BlockRows {
    fn of(block: &Block, calm: &Calm) -> Self {
        let mut rows: Vec<(usize, Vec<Logarithms>)> = Vec::new();
        for sample in block.samples.iter().filter(|sample| calm.admits_sample(sample)) {
            let logarithms = Logarithms::of(sample);
            match rows.iter_mut().find(|(row, _)| *row == sample.row) {
                Some((_, samples)) => samples.push(logarithms),
                None => rows.push((sample.row, vec![logarithms])),
            }
        }
        BlockRows(rows)
    }

    fn of_row(&self, row: usize) -> impl Iterator<Item = Logarithms> {
        let of_row = self.0.iter().filter(move |(index, _)| *index == row);
        of_row.flat_map(|(_, samples)| samples.iter().copied())
    }

    /// Log-ratios of every sample of one row and every sample of another. The block is mirrored: a drift adds to one what
    /// it takes from another, and their median is free of it; a sample that was hit by something spoils its own pairs and
    /// not the block.
    fn differences(&self, row: usize, other: usize) -> Vec<f64> {
        let with_all = |row: Logarithms| self.of_row(other).map(move |o| row.time - o.time);
        self.of_row(row).flat_map(with_all).collect()
    }
}

impl Logarithms {
    fn of(sample: &Sample) -> Self {
        // A call that was optimised away has no logarithm; the floor keeps it visible and it is flagged.
        let time = sample.nanoseconds.max(1e-3).ln();
        // How busy the processor is does not matter to what runs on a device.
        let sentinel = sample.sweep.unwrap_or(sample.chain).ln();
        let is_device = sample.device.is_some();
        let anchored = if is_device { time } else { time - sentinel };
        Logarithms { time, anchored, is_device }
    }
}

/// At most twelve runs of consecutive blocks.
fn segments(blocks: Vec<BlockRows>) -> Vec<Vec<BlockRows>> {
    let count = SEGMENTS.min(blocks.len());
    (0..count)
        .map(|i| blocks[i * blocks.len() / count..(i + 1) * blocks.len() / count].to_vec())
        .collect()
}

pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n % 2 == 1 { sorted[n / 2] } else { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::measure::Launch;

    /// A launch of one cell with two rows; each block has the times of both and of the chain.
    pub(crate) fn launch(blocks: &[(f64, f64, f64)]) -> Launch {
        let block = |&(base, row, chain): &(f64, f64, f64)| {
            let (sweep, crew, device) = (None, None, None);
            let sample = |row, nanoseconds| Sample { row, nanoseconds, chain, sweep, crew, device };
            let samples = vec![sample(0, base), sample(1, row), sample(1, row), sample(0, base)];
            Block { samples, requeued: false, throttled: false }
        };
        Launch { cells: vec![blocks.iter().map(block).collect()] }
    }

    fn observations(launches: Vec<Launch>) -> Observations {
        let measurement = Measurement { launches };
        Observations::of(&measurement, 0)
    }

    #[test]
    fn one_launch_gives_segments_and_several_give_launches() {
        let one = observations(vec![launch(&[(10.0, 20.0, 5.0); 100])]);
        assert_eq!((one.scope, one.times(0).len(), one.blocks), (Scope::Segments, 12, 100));
        let two = observations(vec![launch(&[(10.0, 20.0, 5.0); 5]), launch(&[(11.0, 22.0, 5.0)])]);
        assert_eq!((two.scope, two.times(1).len()), (Scope::Launches, 2));
        assert!(two.times(2).is_empty());
        assert!(two.differences(1, 0).iter().all(|d| (d.value - 2_f64.ln()).abs() < 1e-12));
    }

    #[test]
    fn a_single_launch_of_each_row_gives_segments() {
        let only = |row: usize| {
            let mut launch = launch(&[(10.0, 20.0, 5.0); 24]);
            let keep = |block: &mut Block| block.samples.retain(|sample| sample.row == row);
            launch.cells[0].iter_mut().for_each(keep);
            launch
        };
        let apart = observations(vec![only(0), only(1)]);
        assert_eq!(
            (apart.scope, apart.times(0).len(), apart.times(1).len()),
            (Scope::Segments, 12, 12)
        );
        assert!(apart.differences(1, 0).is_empty());
    }

    #[test]
    fn every_sample_of_a_row_meets_every_sample_of_the_other_in_its_block() {
        let block = |base: [f64; 2], row: [f64; 2]| {
            let of = |row| {
                move |nanoseconds| Sample {
                    row,
                    nanoseconds,
                    chain: 5.0,
                    sweep: None,
                    crew: None,
                    device: None,
                }
            };
            let samples = base.map(of(0)).into_iter().chain(row.map(of(1))).collect();
            Block { samples, requeued: false, throttled: false }
        };
        let blocks = vec![block([1.0, 2.0], [3.0, 5.0]), block([1.0, 1.0], [1.0, 1.0])];
        let launch = Launch { cells: vec![blocks] };
        let differences = observations(vec![launch.clone(), launch]).differences(0, 1);
        // The logarithms of 1/5, 1/3, 2/5, 2/3 and four times 1.
        let middle = (2.0_f64 / 3.0).ln() / 2.0;
        let is_right = |d: &Repetition| (d.value - middle).abs() < 1e-12 && d.count == 4;
        assert!(differences.iter().all(is_right), "{differences:?}");
    }

    /// In every third block a thread of the second row has to wait: the row takes twice as long, and the sentinel says so.
    #[test]
    fn samples_whose_threads_had_to_wait_do_not_count_unless_most_did() {
        let share_waiting = |every: usize| {
            let mut launch = launch(&[(10.0, 5.0, 5.0); 30]);
            for (i, block) in launch.cells[0].iter_mut().enumerate() {
                let is_late = i % every == 0;
                for sample in block.samples.iter_mut().filter(|sample| sample.row == 1) {
                    sample.crew = Some(if is_late { 1020e3 } else { 20e3 });
                    sample.nanoseconds *= if is_late { 2.0 } else { 1.0 };
                }
            }
            observations(vec![launch.clone(), launch])
        };
        let of = |observed: &Observations| observed.samples(1)[0].len();
        assert_eq!((of(&share_waiting(3)), of(&share_waiting(30))), (40, 58));
        assert!(
            share_waiting(3).differences(0, 1).iter().all(|d| (d.value - 2_f64.ln()).abs() < 1e-9)
        );
        assert_eq!(of(&share_waiting(1)), 60, "there are no others");
    }

    /// Of eight blocks five are contaminated, and in two of the others the threads of the second row had to wait.
    #[test]
    fn a_row_keeps_its_samples_where_contamination_and_waiting_leave_too_few_together() {
        let busy = (10.0, 5.0, 6.1);
        let quiet = (10.0, 5.0, 5.0);
        let mut launch = launch(&[busy, quiet, busy, quiet, busy, quiet, busy, busy]);
        for (i, block) in launch.cells[0].iter_mut().enumerate() {
            let crew = Some(if [1, 3].contains(&i) { 1020e3 } else { 20e3 });
            let own = block.samples.iter_mut().filter(|sample| sample.row == 1);
            own.for_each(|sample| sample.crew = crew);
        }
        let observed = observations(vec![launch]);
        assert_eq!((observed.contaminated, observed.is_loaded), (5, false));
        assert_eq!([observed.times(0).len(), observed.times(1).len()], [3, 3]);
    }

    #[test]
    fn a_busy_machine_is_seen_in_the_sentinels_and_its_blocks_do_not_count() {
        let mut blocks = vec![(10.0, 20.0, 5.0); 10];
        blocks.extend([(30.0, 20.0, 6.1); 5]); // more than a fifth slower
        let observed = observations(vec![launch(&blocks), launch(&blocks)]);
        assert_eq!((observed.blocks, observed.contaminated, observed.is_loaded), (30, 10, false));
        let differences = observed.differences(1, 0);
        assert!(differences.iter().all(|d| (d.value - 2_f64.ln()).abs() < 1e-12));
    }

    #[test]
    fn a_slow_sample_counts_when_the_sentinels_are_calm() {
        let mut blocks = vec![(10.0, 20.0, 5.0); 3];
        blocks.push((1e6, 20.0, 5.0));
        let observed = observations(vec![launch(&blocks), launch(&blocks)]);
        assert_eq!(observed.contaminated, 0);
    }

    #[test]
    fn the_anchor_takes_out_what_the_sentinels_feel() {
        let slow: Vec<(f64, f64, f64)> = vec![(10.0, 20.0, 5.0); 3];
        let fast: Vec<(f64, f64, f64)> = vec![(9.8, 19.6, 4.9); 3];
        let observed = observations(vec![launch(&slow), launch(&fast)]);
        let anchored = observed.anchored(0);
        assert!((anchored[0].value - anchored[1].value).abs() < 1e-12, "{anchored:?}");
        assert!(observed.times(0)[0] != observed.times(0)[1]);
    }

    /// The differences of a launch whose samples are normal.
    fn crossed(blocks: usize) -> Option<Repetition> {
        let block = |_| {
            let samples: Vec<f64> = crate::value::normal(2 * SAMPLES_PER_BLOCK);
            let rows = [(0, [samples[0], samples[1]]), (1, [samples[2], samples[3]])];
            let logarithms = |time| Logarithms { time, anchored: time, is_device: false };
            BlockRows(rows.map(|(row, times)| (row, times.map(logarithms).to_vec())).to_vec())
        };
        let observations = Observations {
            scope: Scope::Launches,
            blocks,
            contaminated: 0,
            is_loaded: false,
            repetitions: vec![(0..blocks).map(block).collect()],
        };
        observations.differences(0, 1).into_iter().next()
    }

    #[test]
    fn the_variance_of_a_median_is_right_in_simulation() {
        use crate::value::{normal, with_seed};
        with_seed(5, || {
            let medians: Vec<Repetition> =
                (0..2000).filter_map(|_| Repetition::of(&normal::<Vec<f64>>(60), 60)).collect();
            let n = medians.len() as f64;
            let spread = medians.iter().map(|m| m.value.powi(2)).sum::<f64>() / n;
            let claimed = medians.iter().filter_map(|m| m.variance).sum::<f64>() / n;
            assert!((0.8..1.4).contains(&(claimed / spread)), "{claimed} {spread}");
        });
        for blocks in [3, 30] {
            let ratio = with_seed(6, || {
                let medians: Vec<Repetition> = (0..2000).filter_map(|_| crossed(blocks)).collect();
                let spread: f64 = medians.iter().map(|m| m.value.powi(2)).sum();
                medians.iter().filter_map(|m| m.variance).sum::<f64>() / spread
            });
            assert!((0.8..1.8).contains(&ratio), "{blocks} blocks: {ratio}");
        }
        let of =
            |values: &[f64]| Repetition::of(values, values.len()).map(|m| (m.value, m.variance));
        assert_eq!(of(&[2.0]), Some((2.0, None)));
        assert_eq!(of(&[1.0, 5.0]), Some((3.0, Some(4.0))));
        assert_eq!(of(&[]), None);
    }
}
