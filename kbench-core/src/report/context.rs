//! What findings about a whole kernel say of each of its rows, so that a row alone tells them.

use serde::{Deserialize, Serialize};

use super::{RowReport, ScalingReport};
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

/// Notes on every row what is known of its variant.
pub fn put_in_context(rows: &mut [RowReport], crossovers: &[Crossover], scaling: &[ScalingReport]) {
    for row in rows {
        if let Some(found) = crossovers.iter().find(|found| is_on_way(row, found)) {
            let last = found.crossings.last();
            row.crossover = CrossoverContext {
                threshold_verdict: found.threshold.as_ref().map(|threshold| threshold.verdict),
                threshold_value: found.suggestion.as_ref().map(|suggestion| suggestion.value),
                crossover_low: last.map(|crossing| crossing.below.work),
                crossover_high: last.map(|crossing| crossing.above.work),
            };
        }
        let is_of_row = |found: &&ScalingReport| {
            is_of(row, &found.kernel, &found.element, &found.variant) && found.size == row.size
        };
        let counts = scaling.iter().filter(is_of_row).flat_map(|found| &found.counts);
        if let Some(count) = counts.into_iter().find(|count| count.threads == row.threads) {
            row.scaling = ScalingContext {
                scaling: Some(count.speedup.value),
                scaling_low: Some(count.speedup.low),
                scaling_high: Some(count.speedup.high),
                efficiency: Some(count.efficiency.value),
            };
        }
    }
}

fn is_of(row: &RowReport, kernel: &str, element: &str, variant: &str) -> bool {
    row.kernel == kernel && row.element == element && row.variant == variant
}

fn is_on_way(row: &RowReport, found: &Crossover) -> bool {
    is_of(row, &found.kernel, &found.element, &found.variant)
        && row.threads == found.threads
        && row.mode == found.mode.name()
        && found.held.iter().all(|(axis, value)| row.axes.get(axis) == Some(value))
}
