//! How the time of a run is shared out: launches and blocks for every cell.
//!
//! All cells are planned together. Each row gets the same time, except that a cell never gets less than its fewest
//! launches take, and never more than it wants. Within its time a cell has as many launches as their starts are worth,
//! because launches are the repetitions of the tests.

use super::Spread;
use crate::order;

/// Launches that every cell gets if they fit at all: with fewer, placement is not sampled.
pub(super) const FEWEST_LAUNCHES: u32 = 5;

/// More launches than this gain nothing: the quantile of Student's t is that of the normal distribution.
const MOST_LAUNCHES: u32 = 40;

/// Variance between launches, beyond what their blocks explain, against that between blocks, where nothing is known yet:
/// about what the kernels of the library show.
const USUAL_RATIO: f64 = 0.07;

/// The ratio that a few launches show is worth as many degrees of freedom as they have; the usual one as many as this.
const USUAL_WEIGHT: f64 = 4.0;

/// Launches after which the variances of a cell are known well enough.
pub(super) const PILOT_LAUNCHES: u32 = 4;

/// A block of one sample of each row takes this part of a mirrored one.
const SINGLE_BLOCK: f64 = 0.5;

/// A launch that misses its time by this part of it fits.
const ROUNDING: f64 = 1e-6;

/// Steps of the bisection for the time of a row.
const STEPS: u32 = 60;

/// What a launch costs a cell, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// The cell's part of starting a worker, and making its data.
    pub(super) start: f64,
    /// The untimed calls before the first block.
    pub(super) warm_up: f64,
    /// One mirrored block.
    pub(super) block: f64,
}

impl Costs {
    /// Seconds of a launch before its first block.
    fn before(self) -> f64 {
        self.start + self.warm_up
    }

    /// Seconds of the shortest launch: one sample of each row.
    fn shortest(self) -> f64 {
        self.before() + SINGLE_BLOCK * self.block
    }
}

/// A cell that is to be planned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) costs: Costs,
    /// Rows that are measured.
    pub(super) rows: usize,
    /// Launches that it has had.
    pub(super) done: u32,
    /// Blocks that it has had.
    pub(super) taken: f64,
    /// Blocks that it wants in all; none for as many as there is time for.
    pub(super) wanted: Option<f64>,
    /// A number of launches that the user has set.
    pub(super) fixed: Option<u32>,
    /// Where its variance comes from, once that is known.
    pub(super) spread: Option<Spread>,
}

impl Demand {
    /// Seconds that were spent on it.
    fn spent(&self) -> f64 {
        f64::from(self.done) * self.costs.before() + self.taken * self.costs.block
    }

    /// Launches that it must still have.
    fn fewest(&self) -> u32 {
        self.fixed.unwrap_or(FEWEST_LAUNCHES).saturating_sub(self.done)
    }

    /// Seconds that its fewest launches still take.
    fn least(&self) -> f64 {
        f64::from(self.fewest()) * self.costs.shortest()
    }

    /// Blocks that it still wants. The number that it wants in all falls when the machine becomes slower; launches that it must
    /// still have keep a block each.
    fn open_blocks(&self) -> Option<f64> {
        let least = f64::from(self.fewest()) * SINGLE_BLOCK;
        self.wanted.map(|wanted| (wanted - self.taken).max(least))
    }

    /// Seconds for which it still has a use.
    fn most(&self) -> f64 {
        let (Some(wanted), Some(open)) = (self.wanted, self.open_blocks()) else {
            return f64::INFINITY;
        };
        let left = open * self.costs.block;
        let launches = self.fixed.unwrap_or_else(|| {
            let seconds = wanted * self.costs.block;
            launches(seconds, self.costs, self.spread).min((wanted as u32).max(1))
        });
        left + f64::from(launches.saturating_sub(self.done)) * self.costs.before()
    }

    /// Seconds from now on when every row of the run has as many in all.
    fn seconds(&self, per_row: f64) -> f64 {
        let least = self.least();
        (per_row * self.rows as f64 - self.spent()).clamp(least, self.most().max(least))
    }

    /// Launches and blocks in so many seconds.
    fn share(&self, seconds: f64) -> Share {
        let Costs { block, .. } = self.costs;
        let fewest = self.fewest();
        let fitting = (seconds / self.costs.shortest() + ROUNDING) as u32;
        let more = match self.fixed {
            Some(_) => fewest,
            None => {
                let best = launches(self.spent() + seconds, self.costs, self.spread);
                // A cell that has had its launches and still has time takes one more.
                best.saturating_sub(self.done).max(fewest).max(1)
            }
        };
        let launches = more.min(fitting);
        let blocks = (seconds - f64::from(launches) * self.costs.before()) / block;
        let blocks = blocks.min(self.open_blocks().unwrap_or(f64::INFINITY));
        if blocks <= 0.0 || launches == 0 {
            return Share::default();
        }
        // More launches than blocks would repeat nothing but starts.
        let launches = launches.min((blocks / SINGLE_BLOCK).ceil() as u32).max(1);
        Share { launches, blocks, is_single: blocks < f64::from(launches) }
    }
}

/// Seconds that the fewest launches of some cells take beyond those that there are.
pub(super) fn shortage(cells: &[Demand], seconds: f64) -> f64 {
    (cells.iter().map(Demand::least).sum::<f64>() - seconds).max(0.0)
}

/// What a cell gets from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Share {
    pub(super) launches: u32,
    /// Mirrored blocks in all of them.
    pub(super) blocks: f64,
    /// Whether time is so short that a block has one sample of each row, and is not mirrored.
    pub(super) is_single: bool,
}

impl Share {
    /// Blocks of the next launch.
    pub(super) fn next_blocks(&self) -> u32 {
        ((self.blocks / f64::from(self.launches.max(1))).round() as u32).max(1)
    }

    /// Seconds of the next launch.
    pub(super) fn next_seconds(&self, costs: Costs) -> f64 {
        let per_block = if self.is_single { SINGLE_BLOCK } else { 1.0 };
        costs.before() + f64::from(self.next_blocks()) * per_block * costs.block
    }
}

/// Shares a time out among all cells.
pub(super) fn share_out(demands: &[Demand], seconds: f64) -> Vec<Share> {
    let least: f64 = demands.iter().map(Demand::least).sum();
    if least > seconds {
        return share_scarce(demands, seconds);
    }
    let needed = |per_row: f64| demands.iter().map(|d| d.seconds(per_row)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    while needed(high) < seconds && high < 1e9 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if needed(middle) <= seconds { low = middle } else { high = middle }
    }
    demands.iter().map(|demand| demand.share(demand.seconds(low))).collect()
}

/// Shares a time out in which not even the fewest launches of all cells fit. Cells whose rows take least come first, so that
/// most rows are measured well; but before that, every cell has one launch.
fn share_scarce(demands: &[Demand], seconds: f64) -> Vec<Share> {
    let per_row = |at: usize| demands[at].costs.shortest() / demands[at].rows.max(1) as f64;
    let order = order::positions(demands.len(), &|a, b| per_row(a).total_cmp(&per_row(b)));
    let mut granted = vec![0; demands.len()];
    let mut left = seconds;
    let mut grant = |wanted: &dyn Fn(&Demand) -> u32| {
        for &at in &order {
            let shortest = demands[at].costs.shortest();
            let fitting = (left / shortest + ROUNDING) as u32;
            let more = wanted(&demands[at]).saturating_sub(granted[at]).min(fitting);
            granted[at] += more;
            left -= f64::from(more) * shortest;
        }
    };
    grant(&|demand| demand.fewest().min(u32::from(demand.done == 0)));
    grant(&Demand::fewest);
    let share = |(demand, launches): (&Demand, u32)| {
        demand.share(f64::from(launches) * demand.costs.shortest())
    };
    demands.iter().zip(granted).map(share).collect()
}

/// The number of launches that tells two rows apart best in a given time, at least [`FEWEST_LAUNCHES`].
///
/// With b blocks in each of n launches an interval is t(n − 1) · √((σ²_launches + σ²_blocks / b) / n) to either side, and
/// the time is n · (start + b · block) (Kalibera and Jones 2013).
fn launches(seconds: f64, costs: Costs, spread: Option<Spread>) -> u32 {
    let ratio = match spread {
        Some(Spread { blocks, launches }) if blocks > 0.0 => {
            let own = f64::from(PILOT_LAUNCHES - 1);
            let shown = (launches / blocks).powi(2);
            (USUAL_WEIGHT * USUAL_RATIO + own * shown) / (USUAL_WEIGHT + own)
        }
        _ => USUAL_RATIO,
    };
    let half_width = |launches: u32| {
        let n = f64::from(launches);
        let blocks = (seconds / n - costs.before()) / costs.block;
        let is_possible = blocks >= SINGLE_BLOCK || launches == FEWEST_LAUNCHES;
        is_possible
            .then(|| student(n - 1.0) * ((ratio + 1.0 / blocks.max(SINGLE_BLOCK)) / n).sqrt())
    };
    let widths = (FEWEST_LAUNCHES..=MOST_LAUNCHES).filter_map(|n| Some((n, half_width(n)?)));
    widths.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(FEWEST_LAUNCHES, |(launches, _)| launches)
}

/// Student's t at 99 %, about where the differences of a suite are judged, by the expansion of Cornish and Fisher around the
/// normal quantile.
fn student(df: f64) -> f64 {
    const NORMAL: f64 = 2.326;
    const TERMS: [f64; 3] = [3.73, 5.72, 6.71];
    NORMAL + TERMS[0] / df + TERMS[1] / df.powi(2) + TERMS[2] / df.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { start: 0.005, warm_up: 0.004, block: 0.008 };

    const CELL: Demand = Demand {
        costs: COSTS,
        rows: 2,
        done: 0,
        taken: 0.0,
        wanted: None,
        fixed: None,
        spread: None,
    };

    /// Cells whose calls are so many times as long.
    fn cells(factors: &[f64]) -> Vec<Demand> {
        let times = |costs: Costs, factor: f64| Costs {
            start: costs.start,
            warm_up: factor * costs.warm_up,
            block: factor * costs.block,
        };
        factors.iter().map(|f| Demand { costs: times(COSTS, *f), ..CELL }).collect()
    }

    fn cost(demand: &Demand, share: &Share) -> f64 {
        f64::from(share.launches) * demand.costs.before() + share.blocks * demand.costs.block
    }

    #[test]
    fn all_of_the_time_is_used_and_no_more() {
        let demands = cells(&[1.0, 3.0, 10.0, 0.1]);
        for seconds in [1.1, 5.0, 60.0] {
            let shares = share_out(&demands, seconds);
            let used: f64 = demands.iter().zip(&shares).map(|(d, s)| cost(d, s)).sum();
            assert!(used <= seconds * 1.001 && used > 0.95 * seconds, "{used} of {seconds}");
        }
    }

    /// The bug of planning each group by itself: shortened until one launch was left.
    #[test]
    fn short_time_costs_blocks_and_not_launches() {
        let demands = cells(&[1.0, 2.0, 4.0, 8.0, 16.0]);
        let least: f64 = demands.iter().map(Demand::least).sum();
        for share in share_out(&demands, 1.02 * least) {
            assert!(share.launches >= FEWEST_LAUNCHES, "{share:?}");
        }
    }

    #[test]
    fn the_shortage_is_what_the_fewest_launches_take_beyond_the_time() {
        let demands = cells(&[1.0, 2.0]);
        let least: f64 = demands.iter().map(Demand::least).sum();
        assert_eq!(shortage(&demands, 2.0 * least), 0.0);
        assert!((shortage(&demands, 0.25 * least) - 0.75 * least).abs() < 1e-9);
    }

    #[test]
    fn a_row_with_long_calls_takes_no_more_than_its_share_or_its_least() {
        let demands = cells(&[1.0, 1.0, 50.0]);
        let shares = share_out(&demands, 5.0);
        assert_eq!(shares[2].launches, FEWEST_LAUNCHES);
        assert!(shares[2].is_single && !shares[0].is_single);
        assert!(cost(&demands[2], &shares[2]) < 1.01 * demands[2].least());
        assert!(shares[0].launches >= 15, "{shares:?}");
    }

    #[test]
    fn where_not_all_launches_fit_most_cells_have_theirs() {
        let launches = |factors: &[f64], seconds| -> Vec<u32> {
            share_out(&cells(factors), seconds).iter().map(|share| share.launches).collect()
        };
        assert_eq!(launches(&[1.0, 2.0, 100.0], 2.0), [5, 5, 2]);
        assert_eq!(launches(&[1.0, 2.0, 400.0], 1.0), [5, 5, 0]);
        assert_eq!(launches(&[1.0, 1.0, 1.0], 0.05), [1, 1, 1]);
    }

    #[test]
    fn what_a_cell_has_had_counts_and_what_it_does_not_want_goes_to_the_others() {
        let fresh = share_out(&cells(&[1.0, 1.0]), 4.0);
        let mut demands = cells(&[1.0, 1.0]);
        (demands[0].done, demands[0].taken) = (10, 100.0);
        let shares = share_out(&demands, 4.0 - demands[0].spent());
        let total = demands[0].taken + shares[0].blocks;
        assert!((total / fresh[0].blocks - 1.0).abs() < 0.1, "{fresh:?} {shares:?}");
        demands[0].wanted = Some(100.0);
        let shares = share_out(&demands, 4.0);
        assert_eq!(shares[0], Share::default());
        assert!(shares[1].blocks > 1.5 * fresh[1].blocks, "{shares:?}");
    }

    #[test]
    fn a_number_of_launches_that_is_set_is_kept_as_far_as_it_fits() {
        let demand = Demand { fixed: Some(3), wanted: Some(12.0), ..CELL };
        let share = share_out(&[demand], 60.0)[0];
        assert_eq!((share.launches, share.blocks), (3, 12.0));
        assert_eq!(share_out(&[demand], 0.03)[0].launches, 2);
    }

    #[test]
    fn launches_that_are_set_are_kept_when_the_blocks_are_all_taken() {
        let done = Demand { fixed: Some(5), wanted: Some(12.0), done: 4, taken: 12.0, ..CELL };
        let share = share_out(&[done], 60.0)[0];
        assert_eq!((share.launches, share.blocks), (1, SINGLE_BLOCK));
        assert_eq!(share_out(&[Demand { done: 5, ..done }], 60.0)[0], Share::default());
    }

    #[test]
    fn variance_between_launches_asks_for_more_of_them() {
        let count = |launches| launches_of(COSTS, 1.0, Spread { blocks: 0.01, launches });
        assert!(count(0.0) < count(0.01), "{} {}", count(0.0), count(0.01));
    }

    #[test]
    fn starts_that_take_long_are_rare_and_cheap_ones_are_many() {
        let spread = Spread { blocks: 0.01, launches: 0.003 };
        let count = |start| launches_of(Costs { start, ..COSTS }, 5.0, spread);
        let counts = [0.001, 0.1, 0.3, 1.0].map(count);
        assert!(counts.is_sorted_by(|a, b| a > b), "{counts:?}");
        assert_eq!((counts[0], counts[3]), (MOST_LAUNCHES, FEWEST_LAUNCHES));
    }

    /// By R: `qt(0.99, c(4, 9, 39))`.
    #[test]
    fn the_quantile_is_that_of_student() {
        for (df, expected) in [(4.0, 3.746_947), (9.0, 2.821_438), (39.0, 2.425_841)] {
            assert!((student(df) / expected - 1.0).abs() < 0.01, "{} {expected}", student(df));
        }
    }

    fn launches_of(costs: Costs, seconds: f64, spread: Spread) -> u32 {
        launches(seconds, costs, Some(spread))
    }
}
