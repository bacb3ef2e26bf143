//! What is known of a variant against the base, size by size, and where the winner changes.

use serde::{Deserialize, Serialize};

use crate::infer::Comparison;
use crate::plan::Size;

/// Rounds of measuring sizes that nobody listed.
pub(super) const MOST_ROUNDS: u32 = 8;

/// The chance that a bracket ends on the wrong side of the crossover, for each of its two ends.
const SIDE_LEVEL: f64 = 0.025;

/// The level of every one-sided test. The sizes that are planned in advance are walked through from both ends and tested
/// one after the other until one fails: such a fixed sequence spends its level once. Every further round tests one size
/// for each end and spends it once more. So both ends are right in 95 % of all searches, if the winner changes once.
pub(super) const LEVEL: f64 = SIDE_LEVEL / (1 + MOST_ROUNDS) as f64;

/// Who takes less time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Winner {
    /// The base.
    Base,
    /// The variant.
    Variant,
}

/// Why a size was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The kernel lists it, or the command line names it.
    Listed,
    /// The search wanted to know.
    Searched,
}

impl Origin {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Listed => "listed",
            Origin::Searched => "searched",
        }
    }
}

/// A variant against the base at one size.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// On the curve, in octaves.
    pub(super) position: f64,
    pub(super) size: Size,
    pub(super) work: f64,
    pub(super) origin: Origin,
    pub(super) comparison: Comparison,
}

/// Who wins at each of some sizes, which are in the order of positions, where that is shown.
///
/// From either end, sizes are taken one after the other as long as the same side wins: that is the fixed sequence. What
/// lies beyond the first size that breaks it was not planned, and is held to a level that all sizes share.
pub(super) fn winners(evidence: &[Evidence]) -> Vec<Option<Winner>> {
    let at = |level: f64| -> Vec<Option<Winner>> {
        evidence.iter().map(|known| winner(&known.comparison, level)).collect()
    };
    let (in_sequence, alone) = (at(LEVEL), at(LEVEL / evidence.len().max(1) as f64));
    let reached = |first: Option<&Option<Winner>>,
                   sizes: &mut dyn Iterator<Item = &Option<Winner>>| {
        let first = first.copied().flatten();
        sizes.take_while(|winner| first.is_some() && **winner == first).count()
    };
    let below = reached(in_sequence.first(), &mut in_sequence.iter());
    let above = reached(in_sequence.last(), &mut in_sequence.iter().rev());
    let is_reached = |index: usize| index < below || index + above >= evidence.len();
    let chosen = |index: usize| if is_reached(index) { in_sequence[index] } else { alone[index] };
    (0..evidence.len()).map(chosen).collect()
}

/// Who takes less time, when a one-sided test of a level shows it.
pub(super) fn winner(comparison: &Comparison, level: f64) -> Option<Winner> {
    let test = &comparison.test;
    let is_there = test.difference.abs() > comparison.floor;
    if !is_there || test.p / (2.0 * comparison.share) >= level {
        return None;
    }
    Some(if test.difference > 0.0 { Winner::Variant } else { Winner::Base })
}

/// Two sizes with different winners and nothing but undecided ones between them, as indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bracket {
    pub(super) below: usize,
    pub(super) above: usize,
}

/// All changes of the winner, in the order of positions.
pub(super) fn brackets(winners: &[Option<Winner>]) -> Vec<Bracket> {
    let decided: Vec<(usize, Winner)> =
        winners.iter().enumerate().filter_map(|(i, winner)| Some((i, (*winner)?))).collect();
    decided
        .windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .map(|pair| Bracket { below: pair[0].0, above: pair[1].0 })
        .collect()
}

/// The same as positions of the last size of one winner and the first of the next.
pub(crate) fn changes(winners: &[Option<Winner>]) -> Vec<(usize, usize)> {
    brackets(winners).iter().map(|bracket| (bracket.below, bracket.above)).collect()
}

impl Bracket {
    /// The gaps in which one more size would help, between positions of the evidence: the whole bracket when nothing is
    /// known of its inside, else what is beside the undecided sizes, which more time is needed for and not more sizes.
    pub(super) fn gaps(self, positions: &[f64], tolerance: f64) -> Vec<(f64, f64)> {
        let Bracket { below, above } = self;
        let gap = |i: usize, j: usize| (positions[i], positions[j]);
        let (gaps, limit) = match above - below {
            1 => (vec![gap(below, above)], tolerance),
            _ => (vec![gap(below, below + 1), gap(above - 1, above)], tolerance / 2.0),
        };
        gaps.into_iter().filter(|(low, high)| high - low > limit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Winner::{Base, Variant};
    use super::*;
    use crate::infer::{Scope, Test};

    #[test]
    fn every_change_of_the_winner_is_a_bracket_and_undecided_sizes_lie_inside() {
        let winners = [Some(Base), Some(Base), None, Some(Variant), Some(Base), Some(Variant)];
        let bracket = |below, above| Bracket { below, above };
        assert_eq!(brackets(&winners), [bracket(1, 3), bracket(3, 4), bracket(4, 5)]);
        assert!(brackets(&[None, Some(Variant), None]).is_empty());
    }

    /// Evidence whose test has a two-sided p of the given size, positive for the variant.
    fn evidence(p: &[f64]) -> Vec<Evidence> {
        let of = |(i, p): (usize, &f64)| {
            let test =
                Test { difference: p.signum(), error: 1.0, t: p.signum(), df: 9.0, p: p.abs() };
            let comparison = Comparison {
                speedup: p.signum().exp(),
                low: 0.0,
                high: 9.0,
                test,
                welch: None,
                hedges_g: None,
                spread: 0.0,
                scope: Scope::Launches,
                share: 1.0,
                floor: 0.0,
            };
            let (position, size) = (i as f64, Size::of([i]));
            Evidence { position, size, work: 1.0, origin: Origin::Listed, comparison }
        };
        p.iter().enumerate().map(of).collect()
    }

    #[test]
    fn what_lies_beyond_a_break_in_the_sequence_is_held_to_a_stricter_level() {
        let (weak, strong) = (1.9 * LEVEL, 0.1 * LEVEL);
        let sequence = winners(&evidence(&[-weak, -weak, weak, weak]));
        assert_eq!(sequence, [Some(Base), Some(Base), Some(Variant), Some(Variant)]);
        let broken = winners(&evidence(&[-weak, 0.5, -weak, 0.5, weak]));
        assert_eq!(broken, [Some(Base), None, None, None, Some(Variant)]);
        let all_the_same = winners(&evidence(&[-weak, 0.5, -strong, 0.5, weak]));
        assert_eq!(all_the_same[2], Some(Base));
        assert_eq!(winners(&evidence(&[0.5, weak, 0.5])), [None, None, None]);
    }

    #[test]
    fn a_bracket_is_halved_until_its_middle_cannot_be_decided_and_then_narrowed_from_both_ends() {
        let bracket = Bracket { below: 0, above: 1 };
        assert_eq!(bracket.gaps(&[1.0, 3.0], 0.1), [(1.0, 3.0)]);
        assert!(bracket.gaps(&[1.0, 1.09], 0.1).is_empty());
        let around = Bracket { below: 0, above: 2 };
        assert_eq!(around.gaps(&[1.0, 2.0, 3.0], 0.1), [(1.0, 2.0), (2.0, 3.0)]);
        assert_eq!(around.gaps(&[1.0, 2.0, 2.04], 0.1), [(1.0, 2.0)]);
    }
}
