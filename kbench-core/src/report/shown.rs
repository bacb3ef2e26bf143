//! Crossovers as the verdicts of the table let one tell them.
//!
//! The search of crossovers has an error rate of its own: it may show a winner where the report as a whole, with its many
//! comparisons and its margin, names no difference, and the other way round. What is said below a table follows from the
//! table: at the sizes that it lists a variant wins where its verdict is *faster*, and loses where it is *slower*. Sizes that
//! the search measured between them keep the winner that it found.

use std::collections::HashMap;

use super::RowReport;
use super::index::Index;
use crate::crossover::{
    Crossing, Crossover, EvidenceReport, Limit, Origin, ThresholdVerdict, Winner, changes, outcome,
};
use crate::infer::Judgement;

/// Rows of a kernel by variant and size.
pub(super) type Rows<'a> = Index<'a, (&'a str, &'a str), RowReport>;

/// Rows of a kernel by variant and size.
pub(super) fn by_size(rows: &[RowReport]) -> Rows<'_> {
    Index::new(rows, |row| (row.variant.as_str(), row.size.as_str()))
}

/// A crossover as the verdicts of some rows tell it.
pub(super) fn as_shown(found: &Crossover, rows: &Rows<'_>) -> Crossover {
    let mut shown = found.clone();
    let is_against_base = found.evidence.iter().all(|known| {
        let opponent = rows.of(&(found.base.as_str(), known.place.size.as_str()));
        opponent.is_empty() || opponent.iter().any(|row| row.is_base)
    });
    // The verdicts of the table are about the base.
    if !is_against_base {
        return shown;
    }
    let judgement_at = |size: &str| {
        let here = rows.of(&(found.variant.as_str(), size)).iter();
        let mut same = here.filter(|row| row.threads == found.threads);
        same.find(|row| row.mode == found.mode.name())?.judgement()
    };
    for known in shown.evidence.iter_mut().filter(|known| known.origin == Origin::Listed) {
        if let Some(judgement) = judgement_at(&known.place.size) {
            known.winner = winner(judgement);
        }
    }
    let winners = |evidence: &[EvidenceReport]| -> Vec<Option<Winner>> {
        evidence.iter().map(|known| known.winner).collect()
    };
    let told = winners(&shown.evidence);
    if told != winners(&found.evidence) {
        shown.outcome = outcome(&told);
        let known = Index::new(&found.crossings, ends);
        let crossing = |(below, above)| crossing(found, &known, (below, above), &told);
        shown.crossings = changes(&told).into_iter().filter_map(crossing).collect();
    }
    if let Some(threshold) = &mut shown.threshold {
        threshold.costs.retain(|cost| {
            let loser = if cost.claimed { Winner::Base } else { Winner::Variant };
            judgement_at(&cost.place.size).is_none_or(|found| winner(found) == Some(loser))
        });
        let is_left = |claimed: bool| threshold.costs.iter().any(|cost| cost.claimed == claimed);
        let is_wrong =
            matches!(threshold.verdict, ThresholdVerdict::TooLow | ThresholdVerdict::TooHigh);
        threshold.verdict = match threshold.verdict {
            _ if is_wrong && is_left(true) => ThresholdVerdict::TooLow,
            _ if is_wrong && is_left(false) => ThresholdVerdict::TooHigh,
            _ if is_wrong => ThresholdVerdict::Undecided,
            verdict => verdict,
        };
    }
    shown
}

/// Which of both takes less time by a verdict on the variant.
fn winner(judgement: Judgement) -> Option<Winner> {
    match judgement {
        Judgement::Faster => Some(Winner::Variant),
        Judgement::Slower => Some(Winner::Base),
        Judgement::Equivalent | Judgement::Near | Judgement::Inconclusive => None,
    }
}

/// The sizes at the ends of a crossing.
fn ends(crossing: &Crossing) -> (&str, &str) {
    (&crossing.below.size, &crossing.above.size)
}

/// The change of the winner between two sizes: as the search found it, or between others.
fn crossing(
    found: &Crossover,
    known: &Index<'_, (&str, &str), Crossing>,
    (below, above): (usize, usize),
    winners: &[Option<Winner>],
) -> Option<Crossing> {
    let (from, to) = (&found.evidence[below].place, &found.evidence[above].place);
    let mut between = known.of(&(from.size.as_str(), to.size.as_str())).iter();
    if let Some(known) = between.find(|known| Some(known.winner) == winners[above]) {
        return Some((*known).clone());
    }
    Some(Crossing {
        below: from.clone(),
        above: to.clone(),
        winner: winners[above]?,
        estimate: to.clone(),
        octaves: (to.work / from.work).log2(),
        limit: if above - below > 1 { Limit::Undecided } else { Limit::Time },
    })
}

/// The listed sizes outside of every crossing at which no winner is shown.
pub(super) fn undecided(found: &Crossover) -> Vec<&str> {
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for (at, known) in found.evidence.iter().enumerate() {
        positions.entry(&known.place.size).or_insert(at);
    }
    let position = |size: &str| positions.get(size).copied().unwrap_or(0);
    // How far the crossings reach that begin at the position before.
    let mut reaches = vec![0; found.evidence.len() + 2];
    for crossing in &found.crossings {
        let (below, above) = (position(&crossing.below.size), position(&crossing.above.size));
        reaches[below + 1] = above.max(reaches[below + 1]);
    }
    let mut open = Vec::new();
    let mut furthest = 0;
    for ((at, known), reach) in found.evidence.iter().enumerate().zip(reaches) {
        furthest = reach.max(furthest);
        if furthest <= at && known.origin == Origin::Listed && known.winner.is_none() {
            open.push(known.place.size.as_str());
        }
    }
    open
}
