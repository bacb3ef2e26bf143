//! Ranks of rows whose verdicts have changed.

use super::RowReport;
use crate::infer::{Judgement, Rank, Side, best, ranks};

/// Ranks rows by the verdicts that they have now. Which of them were shown to be behind the best stays as it was, where the
/// best is still the same.
pub(crate) fn rank_again(rows: &mut [RowReport]) {
    for cell in rows.chunk_by_mut(|a, b| a.is_of_same_kernel(b) && a.size == b.size) {
        let ranked: Vec<usize> = (0..cell.len()).filter(|row| cell[*row].rank.is_some()).collect();
        let side = |row: &usize| {
            let row = &cell[*row];
            let judgement = row.comparison.verdict.as_deref().and_then(Judgement::of);
            match judgement {
                Some(judgement) => Side::Judged(judgement),
                None if row.is_base => Side::Base,
                None => Side::Unjudged,
            }
        };
        let sides: Vec<Side> = ranked.iter().map(side).collect();
        let time = |at: usize| cell[ranked[at]].time_ns.unwrap_or(f64::INFINITY);
        let Some(best) = best(&sides, &time) else { continue };
        let is_behind = |at: usize| cell[ranked[at]].rank == Some(Rank::Behind);
        let is_same_best = !is_behind(best);
        let found = ranks(&sides, best, &|at| is_same_best && is_behind(at));
        let least = time(best);
        let shares: Vec<f64> = (0..ranked.len()).map(|at| (least / time(at)).min(1.0)).collect();
        for ((row, rank), share) in ranked.into_iter().zip(found).zip(shares) {
            cell[row].rank = Some(rank);
            cell[row].best_share = Some(share);
        }
    }
}
