//! What findings about a whole kernel say of each of its rows, so that a row alone tells them.

use serde::{Deserialize, Serialize};

use super::index::Index;
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
    let crossovers = Index::new(crossovers, |found| {
        (found.kernel.as_str(), found.element.as_str(), found.variant.as_str())
    });
    let scaling = Index::new(scaling, |found| {
        (found.kernel.as_str(), found.element.as_str(), found.variant.as_str())
    });
    for row in rows {
        let variant = (row.kernel.as_str(), row.element.as_str(), row.variant.as_str());
        let here = scaling.of(&variant).iter().filter(|found| found.size == row.size);
        let count = here.flat_map(|found| &found.counts).find(|count| count.threads == row.threads);
        if let Some(found) = crossovers.of(&variant).iter().find(|found| is_on_way(row, found)) {
            let last = found.crossings.last();
            row.crossover = CrossoverContext {
                threshold_verdict: found.threshold.as_ref().map(|threshold| threshold.verdict),
                threshold_value: found.suggestion.as_ref().map(|suggestion| suggestion.value),
                crossover_low: last.map(|crossing| crossing.below.work),
                crossover_high: last.map(|crossing| crossing.above.work),
            };
        }
        if let Some(count) = count {
            row.scaling = ScalingContext {
                scaling: Some(count.speedup.value),
                scaling_low: Some(count.speedup.low),
                scaling_high: Some(count.speedup.high),
                efficiency: Some(count.efficiency.value),
            };
        }
    }
}

/// Whether what was found about a row's variant is about sizes like its own.
fn is_on_way(row: &RowReport, found: &Crossover) -> bool {
    row.threads == found.threads
        && row.mode == found.mode.name()
        && found.held.iter().all(|(axis, value)| row.axes.get(axis) == Some(value))
}
