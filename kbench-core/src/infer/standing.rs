//! Which variants are the best of a cell.
//!
//! Ranks follow from verdicts. The best of a cell is the fastest of the rows that are shown to be faster than the base, and
//! the base where there is none; so the base is behind exactly when a row is shown to be faster. Every other row that is
//! not shown to be slower than the base is compared with the best. The best is chosen by its time, so every pair of the
//! cell may have been the one that is compared: p counts as many times as there are pairs. All of these comparisons of a
//! report are judged together, by the same rules as those with the base.

use serde::{Deserialize, Serialize};

use super::{Comparison, Judgement, Observations, Rules, compare, judge};
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
    /// It is the best, and all others are shown to take more time.
    Alone,
    /// It is the best, or is not shown to take more time than the best.
    Shared,
    /// It is shown to take more time than the best, or not shown to take less than a base that does.
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

/// A row that competes with the others of its cell.
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// Its number in the cell.
    pub row: usize,
    /// Nanoseconds, as they are printed.
    pub time: f64,
    /// What it is to the base.
    pub side: Side,
    /// The clock's share of its samples.
    pub clock: f64,
}

/// What a row is to the base of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The base itself.
    Base,
    /// It is compared with the base.
    Judged(Judgement),
    /// It is not.
    Unjudged,
}

/// The rows of one cell that compete, and what has to be judged before they can be ranked.
pub struct Contention {
    rivals: Vec<Rival>,
    best: usize,
    /// Rows against the best, by their position; a row that cannot be compared has none.
    claims: Vec<(usize, Option<Comparison>)>,
}

impl Contention {
    /// The contention of a cell; none without rivals.
    pub fn of(
        observations: &Observations,
        look: &dyn Fn(usize) -> Look,
        rivals: Vec<Rival>,
    ) -> Option<Self> {
        let sides = sides(&rivals);
        let best = best(&sides, &|row| rivals[row].time)?;
        let pairs = (rivals.len() * (rivals.len() - 1) / 2).max(1) as f64;
        let claim = |position: usize| {
            let (best, row) = (&rivals[best], &rivals[position]);
            let comparison = compare(observations, best.row, row.row, look(row.row))?;
            let floor = best.clock.max(row.clock);
            Some(Comparison { share: comparison.share / pairs, floor, ..comparison })
        };
        let claims = contested(&sides, best).into_iter().map(|row| (row, claim(row))).collect();
        Some(Contention { rivals, best, claims })
    }

    /// The rows that compete, in the order of their standings.
    pub fn rivals(&self) -> &[Rival] {
        &self.rivals
    }
}

/// The ranks of all rows of all cells of a report, in the order of their rivals.
pub fn standings(cells: &[Contention], rules: Rules) -> Vec<Vec<Standing>> {
    let claims = cells.iter().flat_map(|cell| &cell.claims);
    let claims: Vec<Comparison> = claims.filter_map(|(_, claim)| *claim).collect();
    let mut judged = judge(&claims, rules).into_iter();
    let mut standings = Vec::new();
    for Contention { rivals, best, claims } in cells {
        let mut shown = vec![false; rivals.len()];
        for (position, _) in claims.iter().filter(|(_, claim)| claim.is_some()) {
            let judgement = judged.next().map(|judged| judged.verdict.judgement);
            shown[*position] = judgement == Some(Judgement::Slower);
        }
        let sides = sides(rivals);
        let share = |rival: &Rival| (rivals[*best].time / rival.time).min(1.0);
        let ranks = ranks(&sides, *best, &|row| shown[row]);
        let of = |(rival, rank)| Standing { share: share(rival), rank };
        standings.push(rivals.iter().zip(ranks).map(of).collect());
    }
    standings
}

fn sides(rivals: &[Rival]) -> Vec<Side> {
    rivals.iter().map(|rival| rival.side).collect()
}

/// The best of some rows: of those that are shown to be faster than the base the one that takes the least time, the base
/// where there is none, and of rows without a base the fastest.
pub(crate) fn best(sides: &[Side], time: &dyn Fn(usize) -> f64) -> Option<usize> {
    let fastest = |is: &dyn Fn(Side) -> bool| {
        let all = (0..sides.len()).filter(|row| is(sides[*row]));
        all.min_by(|a, b| time(*a).total_cmp(&time(*b)))
    };
    fastest(&|side| side == Side::Judged(Judgement::Faster))
        .or_else(|| fastest(&|side| side == Side::Base))
        .or_else(|| fastest(&|_| true))
}

/// The rows whose rank does not follow from the verdicts against the base.
fn contested(sides: &[Side], best: usize) -> Vec<usize> {
    let is_open = |row: &usize| match (sides[best], sides[*row]) {
        _ if *row == best => false,
        (Side::Base, side) => side == Side::Unjudged,
        (_, side) => !matches!(side, Side::Base | Side::Judged(Judgement::Slower)),
    };
    (0..sides.len()).filter(is_open).collect()
}

/// Ranks by the verdicts against the base; `shown` says which rows are shown to take more time than the best.
pub(crate) fn ranks(sides: &[Side], best: usize, shown: &dyn Fn(usize) -> bool) -> Vec<Rank> {
    let is_base_behind = sides[best] != Side::Base && sides.contains(&Side::Base);
    let is_shown = |row: usize| match sides[row] {
        Side::Base | Side::Judged(Judgement::Slower) => true,
        Side::Judged(_) if sides[best] == Side::Base => false,
        Side::Judged(_) | Side::Unjudged => shown(row),
    };
    let others = || (0..sides.len()).filter(|row| *row != best);
    let is_alone = others().all(is_shown);
    let rank = |row: usize| match sides[row] {
        _ if row == best && is_alone => Rank::Alone,
        _ if row == best => Rank::Shared,
        _ if is_shown(row) => Rank::Behind,
        Side::Judged(Judgement::Faster) => Rank::Shared,
        _ if is_base_behind => Rank::Behind,
        _ => Rank::Shared,
    };
    (0..sides.len()).map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::super::observe::tests::launch;
    use super::Judgement::{Equivalent, Faster, Inconclusive, Near, Slower};
    use super::Rank::{Alone, Behind, Shared};
    use super::*;
    use crate::measure::Measurement;

    /// Two rows without a base.
    fn of(first: f64, second: f64, wobble: f64) -> Vec<Standing> {
        let at = |i: i32| second * (1.0 + wobble * f64::from(i % 3 - 1));
        let launches = (0..10).map(|i| launch(&[(first, at(i), 5.0); 4])).collect();
        let measurement = Measurement { launches };
        let observations = Observations::of(&measurement, 0);
        let rival = |row, time| Rival { row, time, side: Side::Unjudged, clock: 0.0 };
        let rivals = vec![rival(0, first), rival(1, second)];
        let cell = Contention::of(&observations, &|_| Look::ONLY, rivals).expect("rivals");
        standings(&[cell], Rules::default()).concat()
    }

    #[test]
    fn the_best_wins_alone_when_all_others_are_shown_to_be_behind() {
        let standings = of(100.0, 80.0, 0.001);
        let ranks: Vec<Rank> = standings.iter().map(|standing| standing.rank).collect();
        assert_eq!(ranks, [Behind, Alone]);
        assert!((standings[0].share - 0.8).abs() < 1e-12 && standings[1].share == 1.0);
    }

    #[test]
    fn what_is_not_shown_to_be_behind_shares_the_win() {
        let places: Vec<Rank> = of(100.0, 100.5, 0.2).iter().map(|s| s.rank).collect();
        assert_eq!(places, [Shared, Shared]);
    }

    #[test]
    fn the_best_is_shown_to_be_faster_than_the_base_or_is_the_base() {
        let (times, judged) = ([3.0, 1.0, 2.0], Side::Judged);
        let best = |sides: &[Side]| best(sides, &|row| times[row]);
        let open = [Side::Base, judged(Inconclusive), judged(Near)];
        assert_eq!((best(&open), contested(&open, 0)), (Some(0), vec![]));
        let won = [Side::Base, judged(Inconclusive), judged(Faster)];
        assert_eq!((best(&won), contested(&won, 2)), (Some(2), vec![1]));
        assert_eq!((best(&[Side::Unjudged; 3]), best(&[])), (Some(1), None));
    }

    /// With every combination of verdicts, no row is on the other side of the base than its verdict says.
    #[test]
    fn ranks_never_contradict_verdicts() {
        let all = [Faster, Slower, Equivalent, Near, Inconclusive];
        for (first, second) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
            for shown in [true, false] {
                let sides = [Side::Base, Side::Judged(first), Side::Judged(second)];
                let best = [first, second].iter().position(|judgement| *judgement == Faster);
                let best = best.map_or(0, |position| position + 1);
                let ranks = ranks(&sides, best, &|_| shown);
                let context = format!("{first:?} {second:?} {shown} {ranks:?}");
                let is_behind = ranks.iter().map(|rank| *rank == Behind).collect::<Vec<_>>();
                assert_eq!(is_behind[0], [first, second].contains(&Faster), "{context}");
                for (judgement, row) in [(first, 1), (second, 2)] {
                    match judgement {
                        Slower => assert!(is_behind[row], "{context}"),
                        Faster => assert!(!is_behind[row] || shown, "{context}"),
                        _ => assert_eq!(is_behind[row], is_behind[0], "{context}"),
                    }
                }
                assert_ne!(ranks[best], Behind, "{context}");
                // The base alone wins where all others are shown to be slower.
                assert_eq!(ranks[0] == Alone, (first, second) == (Slower, Slower), "{context}");
            }
        }
    }

    #[test]
    fn a_row_that_may_be_as_fast_as_the_best_keeps_it_from_winning_alone() {
        let sides = [Side::Base, Side::Judged(Faster), Side::Judged(Inconclusive)];
        assert_eq!(ranks(&sides, 1, &|_| false), [Behind, Shared, Behind]);
        assert_eq!(ranks(&sides, 1, &|_| true), [Behind, Alone, Behind]);
    }
}
