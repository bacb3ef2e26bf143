//! Who is best in a cell.

use serde::{Deserialize, Serialize};

use super::test::Mean;
use super::verdict::is_equivalent;
use super::{Comparison, Observations, Rules, compare};
use crate::measure::Look;

/// Where a row stands among all rows of its cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Time of the best row over its own.
    pub share: f64,
    /// Whether it wins.
    pub rank: Rank,
}

/// Whether a row wins its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rank {
    /// It takes the least time, and all others are shown to take more.
    Alone,
    /// It takes the least time, or is not shown to take more than the one that does.
    Shared,
    /// It is shown to take more time than the best.
    Behind,
}

impl Rank {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Rank::Alone => "alone",
            Rank::Shared => "shared",
            Rank::Behind => "behind",
        }
    }
}

/// Where each of some rows stands; none for rows without figures. The chance that any row of the cell is wrongly
/// behind is the significance of the rules.
pub fn standings(
    observations: &Observations,
    rows: &[usize],
    look: &dyn Fn(usize) -> Look,
    rules: Rules,
) -> Vec<Option<Standing>> {
    let time = |row: &usize| Some(Mean::of(&observations.times(*row))?.value);
    let timed: Vec<(usize, f64)> = rows.iter().filter_map(|row| Some((*row, time(row)?))).collect();
    let Some(&(best, least)) = timed.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return vec![None; rows.len()];
    };
    // The best is chosen by its time, so every pair may have been the one that is compared.
    let pairs = timed.len() * (timed.len() - 1) / 2;
    let level = rules.significance / pairs.max(1) as f64;
    let standing = |row: &usize| {
        let time = timed.iter().find(|(other, _)| other == row)?.1;
        let comparison = compare(observations, best, *row, look(*row)).filter(|_| *row != best);
        let is_behind = comparison.is_some_and(|c| is_behind(&c, level, rules));
        let share = comparison.map_or((least - time).exp(), |comparison| comparison.speedup);
        let rank = if is_behind { Rank::Behind } else { Rank::Shared };
        Some(Standing { share: share.min(1.0), rank })
    };
    let mut standings: Vec<Option<Standing>> = rows.iter().map(standing).collect();
    let is_winner = |s: &&mut Standing| s.rank == Rank::Shared;
    let mut winners: Vec<&mut Standing> =
        standings.iter_mut().flatten().filter(is_winner).collect();
    if let [only] = winners.as_mut_slice() {
        only.rank = Rank::Alone;
    }
    standings
}

fn is_behind(comparison: &Comparison, level: f64, rules: Rules) -> bool {
    comparison.test.difference < 0.0
        && comparison.test.p / comparison.share < level
        && !is_equivalent(comparison, rules)
}

#[cfg(test)]
mod tests {
    use super::super::observe::tests::launch;
    use super::*;
    use crate::measure::Measurement;

    fn of(base: f64, row: f64, wobble: f64) -> Vec<Option<Standing>> {
        let at = |i: i32| row * (1.0 + wobble * f64::from(i % 3 - 1));
        let launches = (0..10).map(|i| launch(&[(base, at(i), 5.0); 4])).collect();
        let measurement = Measurement { launches };
        let observations = Observations::of(&measurement, 0);
        standings(&observations, &[0, 1, 2], &|_| Look::ONLY, Rules::default())
    }

    #[test]
    fn the_best_wins_alone_when_all_others_are_shown_to_be_behind() {
        let standings = of(100.0, 80.0, 0.001);
        let (base, row) = (standings[0].expect("timed"), standings[1].expect("timed"));
        assert_eq!((base.rank, row.rank), (Rank::Behind, Rank::Alone));
        assert!((base.share - 0.8).abs() < 0.01 && row.share == 1.0, "{standings:?}");
        assert_eq!(standings[2], None, "a row without figures has no place");
    }

    #[test]
    fn what_is_not_shown_to_be_behind_shares_the_win() {
        for (row, wobble) in [(100.5, 0.2), (100.1, 1e-6)] {
            let standings = of(100.0, row, wobble);
            let places: Vec<Rank> = standings.iter().flatten().map(|s| s.rank).collect();
            assert_eq!(places, [Rank::Shared, Rank::Shared], "{row} {wobble}");
        }
    }
}
