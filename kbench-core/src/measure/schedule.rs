//! How many launches a run has: many, because they are the repetitions; not too many, because each one costs a start.

use super::Spread;

/// Fewer launches than this are no sample of placements: then one long launch tells more, provisionally.
pub(super) const FEWEST_LAUNCHES: u32 = 5;

/// Launches when nothing is known about variances yet.
const USUAL_LAUNCHES: u32 = 20;

/// Launches when starting one costs little against measuring, however alike they are.
const GOOD_LAUNCHES: u32 = 15;

/// More launches than this gain nothing: the quantile of Student's t is that of the normal distribution.
const MOST_LAUNCHES: u32 = 40;

/// Share of the time that may go into starting workers and making their data.
pub(super) const START_SHARE: f64 = 0.08;

/// The same up to [`ENOUGH_LAUNCHES`]: with few launches, one more narrows Student's t by more than its start costs.
const FIRST_START_SHARE: f64 = 0.25;

/// Launches that are worth more than the usual share of the time: from five to ten, the quantile of Student's t falls by
/// a fifth, from ten to fifteen by a twentieth.
const ENOUGH_LAUNCHES: u32 = 10;

/// Launches after which variances are believed.
pub(super) const PILOT_LAUNCHES: u32 = 4;

/// Shares of the planned launches after which the figures are looked at.
const INTERIM_LOOKS: [f64; 3] = [0.4, 0.6, 0.8];

/// With fewer launches than this, looking before the end gains little.
const FEWEST_FOR_LOOKS: u32 = 8;

/// What a launch costs, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Starting a worker and making its data.
    pub(super) start: f64,
    /// The first calls of every row, which are not timed.
    pub(super) warm_up: f64,
    /// One block of every cell.
    pub(super) pass: f64,
}

impl Costs {
    /// Launches that fit in a given time, with one pass each.
    pub(super) fn fit(self, seconds: f64) -> u32 {
        (seconds / (self.start + self.warm_up + self.pass)) as u32
    }
}

/// The number of launches in a given time.
///
/// With b blocks in each of n launches a mean has the variance (σ²_launches + σ²_blocks / b) / n, and the time is
/// n · (start + b · pass); the best b is √(start / pass) · σ_blocks / σ_launches (Kalibera and Jones 2013).
pub(super) fn launches(seconds: f64, costs: Costs, spread: Option<Spread>) -> u32 {
    let Costs { start, warm_up, pass } = costs;
    let fit = costs.fit(seconds);
    if fit < FEWEST_LAUNCHES {
        return 1;
    }
    let affordable = |share: f64| (share * seconds / start) as u32;
    let first = affordable(FIRST_START_SHARE).min(ENOUGH_LAUNCHES);
    let worth_their_start = affordable(START_SHARE).max(first).max(FEWEST_LAUNCHES);
    let best = match spread {
        Some(Spread { blocks, launches }) if launches > 0.0 => {
            let per_launch = ((start + warm_up) / pass).sqrt() * blocks / launches;
            let per_launch = per_launch.max(1.0);
            (seconds / (start + warm_up + per_launch * pass)) as u32
        }
        // No variance between launches: what counts is the number of blocks alone.
        Some(_) => GOOD_LAUNCHES,
        None => USUAL_LAUNCHES,
    };
    best.clamp(GOOD_LAUNCHES, MOST_LAUNCHES).min(fit).min(worth_their_start)
}

/// After how many launches the figures are looked at before the end.
pub(super) fn interim_looks(launches: u32) -> Vec<u32> {
    if launches < FEWEST_FOR_LOOKS {
        return Vec::new();
    }
    INTERIM_LOOKS.map(|share| (share * f64::from(launches)).ceil() as u32).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { start: 0.005, warm_up: 0.004, pass: 0.008 };

    #[test]
    fn little_time_gives_one_launch_and_plenty_gives_the_usual_number() {
        assert_eq!(launches(0.05, COSTS, None), 1);
        assert_eq!(launches(2.0, COSTS, None), USUAL_LAUNCHES);
    }

    #[test]
    fn variance_between_launches_asks_for_more_of_them() {
        let few = launches(10.0, COSTS, Some(Spread { blocks: 0.01, launches: 0.0001 }));
        let many = launches(10.0, COSTS, Some(Spread { blocks: 0.01, launches: 0.01 }));
        assert!(few < many && many == MOST_LAUNCHES, "{few} {many}");
    }

    #[test]
    fn starts_that_take_long_are_rare() {
        let count = |start| {
            let costs = Costs { start, ..COSTS };
            launches(60.0, costs, Some(Spread { blocks: 0.01, launches: 0.01 }))
        };
        assert_eq!(count(0.201), 23, "as many as a start share of 8 % has");
        assert_eq!(count(1.2), ENOUGH_LAUNCHES, "the first ten may take 25 %");
        assert_eq!(count(2.0), 7);
        assert_eq!(count(5.0), FEWEST_LAUNCHES);
    }

    #[test]
    fn looks_come_before_the_end_and_only_when_there_is_something_to_see() {
        assert_eq!(interim_looks(12), [5, 8, 10]);
        assert_eq!(interim_looks(20), [8, 12, 16]);
        assert!(interim_looks(5).is_empty());
    }
}
