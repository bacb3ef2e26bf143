//! What all sizes of a kernel say together: who wins how often, by how much, and what to take.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::index::{Index, grouped, repeated};
use super::{GrowthReport, KernelReport, RowReport, ScalingReport, Status};
use super::{sentences, shown, units};
use crate::crossover::Crossover;
use crate::infer::{Judgement, NEGLIGIBLE, Rank};
use crate::order;

/// From here on a difference pays for a second implementation; below, it is to be weighed.
const WORTHWHILE: f64 = 0.10;

/// One variant over all sizes of a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VariantSummary {
    /// The variant.
    pub variant: String,
    /// Threads that it may use.
    pub threads: usize,
    /// Whether others are compared with it.
    pub is_base: bool,
    /// Sizes with figures.
    pub sizes: usize,
    /// Sizes at which it is best, and shown to be.
    pub wins: usize,
    /// Sizes at which it is not shown to be behind the best.
    pub shared_wins: usize,
    /// Geometric mean of its speed-ups.
    pub mean_speedup: Option<f64>,
    /// Lower end of the 95 % interval.
    pub mean_speedup_low: Option<f64>,
    /// Upper end.
    pub mean_speedup_high: Option<f64>,
    /// Geometric mean of the best time over its own.
    pub mean_best_share: f64,
}

/// Every variant with figures, in the order of the rows.
pub(super) fn variants(rows: &[RowReport]) -> Vec<VariantSummary> {
    let ranked = rows.iter().filter(|row| row.status == Status::Ok && row.best_share.is_some());
    grouped(ranked, |row| (&row.variant, row.threads)).iter().map(|group| summary(group)).collect()
}

fn summary(rows: &[&RowReport]) -> VariantSummary {
    let with = |rank: Rank| rows.iter().filter(|row| row.rank == Some(rank)).count();
    let speedups: Vec<f64> = rows.iter().filter_map(|row| row.comparison.speedup).collect();
    // Sizes share their launches, so their errors may go together: the interval is as wide as theirs on average.
    let half = |row: &&&RowReport| {
        let (low, high) = (row.comparison.speedup_low?, row.comparison.speedup_high?);
        Some((high / low).ln() / 2.0)
    };
    let compared = rows.iter().filter(|row| row.comparison.speedup.is_some());
    let halves: Option<Vec<f64>> = compared.map(|row| half(&row)).collect();
    let half = halves.map(|halves| halves.iter().sum::<f64>() / halves.len() as f64);
    let mean = (!speedups.is_empty()).then(|| geometric_mean(&speedups));
    let end = |side: f64| Some(mean? * (side * half?).exp());
    let shares: Vec<f64> = rows.iter().filter_map(|row| row.best_share).collect();
    VariantSummary {
        variant: rows[0].variant.clone(),
        threads: rows[0].threads,
        is_base: rows[0].is_base,
        sizes: rows.len(),
        wins: with(Rank::Alone),
        shared_wins: with(Rank::Shared),
        mean_speedup: mean,
        mean_speedup_low: end(-1.0),
        mean_speedup_high: end(1.0),
        mean_best_share: geometric_mean(&shares),
    }
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// What to take, in words; none when there is nothing to choose from.
///
/// Below 5 % a difference is negligible, and the simpler is taken, which is the base; from 10 % on the faster; between, it is
/// to be weighed. Only what the verdicts of the rows show counts: a variant is taken at every size only if it is shown to be
/// slower at none.
pub(super) fn recommendation(
    rows: &[RowReport],
    variants: &[VariantSummary],
    failed: &HashSet<&str>,
) -> Option<String> {
    // What is best now may be out of the question once it is mended.
    let is_winner =
        |v: &&VariantSummary| v.wins + v.shared_wins > 0 && failed.contains(v.variant.as_str());
    if let Some(broken) = variants.iter().find(is_winner) {
        return Some(format!("mend {} first: it failed, and is not to be taken", broken.variant));
    }
    let sizes = variants.iter().map(|variant| variant.sizes).max()?;
    if variants.len() < 2 {
        return None;
    }
    let is_sound = |v: &&VariantSummary| v.sizes == sizes && !failed.contains(v.variant.as_str());
    let complete: Vec<&VariantSummary> = variants.iter().filter(is_sound).collect();
    let closest = |some: &[&VariantSummary]| {
        let best = some.iter().max_by(|a, b| a.mean_best_share.total_cmp(&b.mean_best_share));
        best.map(|best| ((*best).clone(), full_name(best, variants)))
    };
    let everywhere = if sizes > 1 { " at every size" } else { "" };
    let Some(base) = complete.iter().find(|variant| variant.is_base) else {
        let (_, name) = closest(&complete)?;
        return Some(format!("without a base: {name} comes closest to the best{everywhere}"));
    };
    if base.wins + base.shared_wins == base.sizes {
        return Some(take_base(&base.variant, rows));
    }
    let path = by_size(rows);
    let differences = differences(rows);
    let of = |v: &VariantSummary| differences.get(&(v.variant.as_str(), v.threads)).copied();
    let is_candidate = |v: &&VariantSummary| {
        !v.is_base && of(v).is_some_and(|[faster, slower]| faster > 0 && slower == 0)
    };
    let candidates: Vec<&VariantSummary> = complete.iter().copied().filter(is_candidate).collect();
    let is_enough = |(best, _): &(VariantSummary, String)| {
        1.0 / best.mean_best_share - 1.0 < NEGLIGIBLE || path.words == best.variant
    };
    let (gain, what, extent) = match closest(&candidates).filter(is_enough) {
        Some((best, name)) => {
            let extent = match of(&best).map_or(0, |[faster, _]| faster) {
                all if all == sizes => String::new(),
                some => format!(", shown at {some} of {sizes} sizes"),
            };
            let gain = best.mean_speedup.map_or(0.0, |mean| mean - 1.0);
            (gain, format!("{name}{everywhere}"), extent)
        }
        None => (path.gain, format!("the best of every size ({})", path.words), String::new()),
    };
    let average = if sizes > 1 { " on average" } else { "" };
    let percent = units::percent(gain.max(0.0));
    Some(match gain {
        gain if gain < NEGLIGIBLE => format!(
            "take {}: {what} would gain {percent}{average}, which is negligible",
            base.variant
        ),
        gain if gain < WORTHWHILE => {
            format!("weigh it: {what} gains {percent}{average} over {}{extent}", base.variant)
        }
        gain => format!("take {what}: {}×{average}{extent}", units::ratio(1.0 + gain)),
    })
}

/// The advice where no row that the variants are first judged by is shown to be faster than the base.
fn take_base(base: &str, rows: &[RowReport]) -> String {
    match rows.iter().find(|row| row.judgement() == Some(Judgement::Faster)) {
        Some(row) => {
            let RowReport { variant, mode, .. } = row;
            format!("take {base}: {variant} is shown to be faster in mode {mode} alone")
        }
        None => format!("take {base}: nothing is shown to be faster"),
    }
}

/// A variant with its thread count, where it has several.
fn full_name(variant: &VariantSummary, all: &[VariantSummary]) -> String {
    let is_other =
        |v: &VariantSummary| v.variant == variant.variant && v.threads != variant.threads;
    match all.iter().any(is_other) {
        true => format!("{} with {} threads", variant.variant, variant.threads),
        false => variant.variant.clone(),
    }
}

/// At how many sizes each variant, by name and thread count, is called faster than the base, and slower.
fn differences(rows: &[RowReport]) -> HashMap<(&str, usize), [usize; 2]> {
    let mut counts: HashMap<(&str, usize), [usize; 2]> = HashMap::new();
    for row in rows.iter().filter(|row| row.rank.is_some()) {
        let [faster, slower] = counts.entry((&row.variant, row.threads)).or_default();
        *faster += usize::from(row.judgement() == Some(Judgement::Faster));
        *slower += usize::from(row.judgement() == Some(Judgement::Slower));
    }
    counts
}

/// What to take at every size.
struct BySize {
    /// By growing work: `a up to 64×64, b from 192×192 on`.
    words: String,
    /// What that gains over the base, by the geometric mean of the speed-ups that are shown.
    gain: f64,
}

fn by_size(rows: &[RowReport]) -> BySize {
    let mut cells: Vec<&[RowReport]> = rows.chunk_by(|a, b| a.size == b.size).collect();
    order::sort_by(&mut cells, |a, b| {
        a[0].work.unwrap_or(0.0).total_cmp(&b[0].work.unwrap_or(0.0))
    });
    let mut parts: Vec<(&str, &RowReport, &RowReport)> = Vec::new();
    let mut gains: Vec<f64> = Vec::new();
    for cell in cells {
        let wins = |row: &&RowReport| matches!(row.rank, Some(Rank::Alone | Rank::Shared));
        let last = parts.last().map(|(name, ..)| *name);
        // One that shares the win goes on where it has won before; otherwise the base is the simpler.
        let same = cell.iter().filter(wins).find(|row| Some(row.variant.as_str()) == last);
        let base = cell.iter().filter(wins).find(|row| row.is_base);
        let best = cell.iter().filter(wins).max_by(|a, b| {
            a.best_share.partial_cmp(&b.best_share).unwrap_or(std::cmp::Ordering::Equal)
        });
        let Some(winner) = same.or(base).or(best) else { continue };
        let is_faster = winner.judgement() == Some(Judgement::Faster);
        gains.push(winner.comparison.speedup.filter(|_| is_faster).unwrap_or(1.0));
        match parts.last_mut().filter(|_| same.is_some()) {
            Some((_, _, to)) => *to = winner,
            None => parts.push((&winner.variant, winner, winner)),
        }
    }
    let count = parts.len();
    let place = |row: &RowReport| super::kernel_table::short_size(row);
    let part = |(i, (name, from, to)): (usize, &(&str, &RowReport, &RowReport))| match i {
        0 if count == 1 => (*name).to_owned(),
        0 => format!("{name} up to {}", place(to)),
        i if i + 1 == count => format!("{name} from {} on", place(from)),
        _ if from.size == to.size => format!("{name} at {}", place(from)),
        _ => format!("{name} from {} to {}", place(from), place(to)),
    };
    let words = parts.iter().enumerate().map(part).collect::<Vec<_>>().join(", ");
    BySize { words, gain: geometric_mean(&gains) - 1.0 }
}

/// Every kernel as a whole; rows of one kernel and element type follow each other.
pub fn kernel_reports(
    rows: &[RowReport],
    searched: &[RowReport],
    crossovers: &[Crossover],
    scaling: &[ScalingReport],
    growth: &[GrowthReport],
) -> Vec<KernelReport> {
    let crossovers = Index::new(crossovers, |found| (&found.kernel, &found.element));
    let scaling = Index::new(scaling, |found| (&found.kernel, &found.element));
    let growth = Index::new(growth, |found| (&found.kernel, &found.element));
    let searched = Index::new(searched, |row| (&row.kernel, &row.element));
    let report = |rows: &[RowReport]| {
        let (kernel, element) = (&rows[0].kernel, &rows[0].element);
        let key = (kernel, element);
        let variants = variants(rows);
        let by_size = shown::by_size(rows);
        let all = crossovers.of(&key).iter().copied();
        let here: Vec<Crossover> = all.map(|found| shown::as_shown(found, &by_size)).collect();
        let several = repeated(here.iter().map(|found| (&found.variant, found.mode)));
        let is_one_of_many = |found: &Crossover| several.contains(&(&found.variant, found.mode));
        let all = rows.iter().chain(searched.of(&key).iter().copied());
        let failed: HashSet<&str> = all
            .filter(|row| matches!(row.status, Status::Failed(_)))
            .map(|row| row.variant.as_str())
            .collect();
        let findings = here
            .iter()
            .flat_map(|found| sentences::crossover(found, is_one_of_many(found)))
            .chain(sentences::untried(rows, &here))
            .chain(sentences::targets(rows))
            .chain(scaling.of(&key).iter().copied().filter_map(sentences::law))
            .chain(sentences::growth(growth.of(&key).iter().copied()))
            .chain(sentences::wins(&variants))
            .collect();
        KernelReport {
            kernel: kernel.clone(),
            element: element.clone(),
            recommendation: recommendation(rows, &variants, &failed),
            variants,
            findings,
        }
    };
    rows.chunk_by(RowReport::is_of_same_kernel).map(report).collect()
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    /// Rows of two sizes: the base takes 100, the variant what is given, at sizes 10 and 20.
    fn rows(small: f64, large: f64) -> Vec<RowReport> {
        let cell = |size: usize, time: f64| {
            let best = time.min(100.0);
            let rank = |own: f64| Some(if own == best { Rank::Alone } else { Rank::Behind });
            let base = RowReport {
                is_base: true,
                best_share: Some(best / 100.0),
                rank: rank(100.0),
                ..row("base", size)
            };
            let mut other =
                RowReport { best_share: Some(best / time), rank: rank(time), ..row("other", size) };
            other.comparison.speedup = Some(100.0 / time);
            let verdict = if time < 100.0 { "faster" } else { "slower" };
            other.comparison.verdict = Some(verdict.into());
            [base, other]
        };
        [cell(10, small), cell(20, large)].concat()
    }

    fn advice(small: f64, large: f64) -> String {
        let rows = rows(small, large);
        recommendation(&rows, &variants(&rows), &HashSet::new()).expect("two variants")
    }

    #[test]
    fn wins_and_means_are_counted_over_all_sizes() {
        let all = variants(&rows(200.0, 50.0));
        assert_eq!([(all[0].wins, all[0].sizes), (all[1].wins, all[1].sizes)], [(1, 2), (1, 2)]);
        assert!(all[1].mean_speedup.is_some_and(|mean| (mean - 1.0).abs() < 1e-12), "{all:?}");
        assert!((all[0].mean_best_share - 0.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_small_difference_is_negligible_a_middling_one_is_weighed_and_a_large_one_is_taken() {
        assert_eq!(advice(150.0, 120.0), "take base: nothing is shown to be faster");
        assert_eq!(
            advice(99.0, 97.0),
            "take base: other at every size would gain 2.0 % on average, which is negligible"
        );
        assert_eq!(
            advice(94.0, 93.0),
            "weigh it: other at every size gains 7.0 % on average over base"
        );
        assert_eq!(advice(80.0, 50.0), "take other at every size: 1.58× on average");
        let by_size =
            "take the best of every size (base up to 10, other from 20 on): 1.41× on average";
        assert_eq!(advice(200.0, 50.0), by_size);
    }

    #[test]
    fn a_variant_that_failed_somewhere_is_not_taken_anywhere() {
        let fast = rows(200.0, 50.0);
        let advice = recommendation(&fast, &variants(&fast), &["other"].into());
        assert_eq!(advice.as_deref(), Some("mend other first: it failed, and is not to be taken"));
        let slow = rows(200.0, 150.0);
        let advice = recommendation(&slow, &variants(&slow), &["other"].into());
        assert_eq!(advice.as_deref(), Some("take base: nothing is shown to be faster"));
    }
}
