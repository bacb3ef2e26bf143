//! What findings about a whole kernel say of each of its rows, so that a row alone tells them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::index::grouped;
use super::ways::Ways;
use super::{RowReport, ScalingReport, ThreadsReport};
use crate::crossover::{Crossover, ThresholdVerdict};

/// Where the variant of a row wins, along the way that the row is on.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CrossoverContext {
    /// What is said of the author's threshold.
    pub threshold_verdict: Option<ThresholdVerdict>,
    /// The value to write as threshold.
    pub threshold_value: Option<u64>,
    /// Work up to which the winner before the last crossover is shown to win.
    pub crossover_low: Option<f64>,
    /// Work from which on the last winner is shown to win.
    pub crossover_high: Option<f64>,
}

/// A row against the same variant with the smallest thread count.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ScalingContext {
    /// Time with the smallest count over its own.
    pub scaling: Option<f64>,
    /// Lower end of the 95 % interval.
    pub scaling_low: Option<f64>,
    /// Upper end.
    pub scaling_high: Option<f64>,
    /// The same over what so many times the threads could give.
    pub efficiency: Option<f64>,
}

/// What crossovers and rows have in common: kernel, element type, variant, threads and mode.
type Key<'a> = (&'a str, &'a str, &'a str, usize, &'a str);

fn key(found: &Crossover) -> Key<'_> {
    (&found.kernel, &found.element, &found.variant, found.threads, found.mode.name())
}

/// Notes on every row what is known of its variant.
pub fn put_in_context(rows: &mut [RowReport], crossovers: &[Crossover], scaling: &[ScalingReport]) {
    let crossovers = grouped(crossovers, |found| key(found)).into_iter();
    let crossovers: HashMap<Key<'_>, (Ways<'_>, Vec<&Crossover>)> = crossovers
        .map(|found| (key(found[0]), (Ways::new(found.iter().map(|found| &found.held)), found)))
        .collect();
    let mut counts: HashMap<_, &ThreadsReport> = HashMap::new();
    for found in scaling {
        let ScalingReport { kernel, element, variant, size, .. } = found;
        for count in &found.counts {
            counts.entry((kernel, element, variant, size, count.threads)).or_insert(count);
        }
    }
    for row in rows {
        let RowReport { kernel, element, variant, size, threads, mode, .. } = &*row;
        let count = counts.get(&(kernel, element, variant, size, *threads));
        let count = count.map(|count| of_count(count));
        let found = crossovers.get(&(kernel, element, variant, *threads, mode));
        let found = found.and_then(|(ways, found)| Some(found[ways.of(&row.axes).min()?]));
        let found = found.map(of_crossover);
        row.scaling = count.unwrap_or(row.scaling);
        row.crossover = found.unwrap_or(row.crossover);
    }
}

fn of_count(count: &ThreadsReport) -> ScalingContext {
    ScalingContext {
        scaling: Some(count.speedup.value),
        scaling_low: Some(count.speedup.low),
        scaling_high: Some(count.speedup.high),
        efficiency: Some(count.efficiency.value),
    }
}

fn of_crossover(found: &Crossover) -> CrossoverContext {
    let last = found.crossings.last();
    CrossoverContext {
        threshold_verdict: found.threshold.as_ref().map(|threshold| threshold.verdict),
        threshold_value: found.suggestion.as_ref().map(|suggestion| suggestion.value),
        crossover_low: last.map(|crossing| crossing.below.work),
        crossover_high: last.map(|crossing| crossing.above.work),
    }
}
