//! How the time of a run is shared out: launches and blocks for every cell.
//!
//! All cells are planned together. Each row gets the same time, except that a cell never gets less than its fewest
//! launches take, and never more than it wants. Within its time a cell has as many launches as their starts are worth,
//! because launches are the repetitions of the tests.

use super::Spread;
use crate::order;

/// Launches that every cell gets if they fit at all: with fewer, placement is not sampled.
pub(super) const FEWEST_LAUNCHES: u32 = 5;

/// Launches when nothing is known about variances yet.
const USUAL_LAUNCHES: u32 = 20;

/// Launches when starting one costs little against measuring, however alike they are.
const GOOD_LAUNCHES: u32 = 15;

/// More launches than this gain nothing: the quantile of Student's t is that of the normal distribution.
const MOST_LAUNCHES: u32 = 40;

/// Share of a cell's time that may go into starting workers and making its data.
const START_SHARE: f64 = 0.08;

/// The same up to [`ENOUGH_LAUNCHES`]: with few launches, one more narrows Student's t by more than its start costs.
const FIRST_START_SHARE: f64 = 0.25;

/// Launches that are worth more than the usual share of the time: from five to ten, the quantile of Student's t falls by
/// a fifth, from ten to fifteen by a twentieth.
const ENOUGH_LAUNCHES: u32 = 10;

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
    /// The first call of every row, which is not timed.
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

    /// Seconds for which it still has a use.
    fn most(&self) -> f64 {
        let Some(wanted) = self.wanted else { return f64::INFINITY };
        let left = (wanted - self.taken).max(0.0) * self.costs.block;
        let launches = self.fixed.unwrap_or_else(|| {
            let seconds = wanted * self.costs.block * (1.0 + START_SHARE);
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
        let wanted = self.wanted.map_or(f64::INFINITY, |wanted| (wanted - self.taken).max(0.0));
        let blocks = blocks.min(wanted);
        if blocks <= 0.0 || launches == 0 {
            return Share::default();
        }
        // More launches than blocks would repeat nothing but starts.
        let launches = launches.min((blocks / SINGLE_BLOCK).ceil() as u32).max(1);
        Share { launches, blocks, is_single: blocks < f64::from(launches) }
    }
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

/// The number of launches that are best in a given time, at least [`FEWEST_LAUNCHES`].
///
/// With b blocks in each of n launches a mean has the variance (σ²_launches + σ²_blocks / b) / n, and the time is
/// n · (start + b · block); the best b is √(start / block) · σ_blocks / σ_launches (Kalibera and Jones 2013).
fn launches(seconds: f64, costs: Costs, spread: Option<Spread>) -> u32 {
    let fit = (seconds / (costs.before() + costs.block)) as u32;
    let affordable = |share: f64| (share * seconds / costs.start) as u32;
    let first = affordable(FIRST_START_SHARE).min(ENOUGH_LAUNCHES);
    let worth_their_start = affordable(START_SHARE).max(first);
    let best = match spread {
        Some(Spread { blocks, launches }) if launches > 0.0 => {
            let per_launch = (costs.before() / costs.block).sqrt() * blocks / launches;
            (seconds / (costs.before() + per_launch.max(1.0) * costs.block)) as u32
        }
        // No variance between launches: what counts is the number of blocks alone.
        Some(_) => GOOD_LAUNCHES,
        None => USUAL_LAUNCHES,
    };
    let best = best.clamp(GOOD_LAUNCHES, MOST_LAUNCHES);
    best.min(fit).min(worth_their_start).max(FEWEST_LAUNCHES)
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
            assert_eq!(share.launches, FEWEST_LAUNCHES, "{share:?}");
        }
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
    fn variance_between_launches_asks_for_more_of_them() {
        let count = |launches| launches_of(COSTS, 10.0, Spread { blocks: 0.01, launches });
        assert!(count(0.0001) < count(0.01) && count(0.01) == MOST_LAUNCHES);
    }

    #[test]
    fn starts_that_take_long_are_rare() {
        let spread = Spread { blocks: 0.01, launches: 0.01 };
        let count = |start| launches_of(Costs { start, ..COSTS }, 60.0, spread);
        assert_eq!(count(0.201), 23, "as many as a start share of 8 % has");
        assert_eq!(count(1.2), ENOUGH_LAUNCHES, "the first ten may take 25 %");
        assert_eq!(count(2.0), 7);
        assert_eq!(count(5.0), FEWEST_LAUNCHES);
    }

    fn launches_of(costs: Costs, seconds: f64, spread: Spread) -> u32 {
        launches(seconds, costs, Some(spread))
    }
}
