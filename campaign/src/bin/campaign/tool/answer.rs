//! What a tool says of a pair, in one language for all tools.

use serde::{Deserialize, Serialize};

/// What a tool says of the other task, compared with the base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Logarithm of the other's time over the base's.
    pub(crate) estimate: f64,
    /// Its 95 % interval, where the tool gives one.
    pub(crate) interval: Option<Interval>,
    /// What it concludes.
    pub(crate) verdict: Verdict,
}

/// Between two logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// The lower end.
    pub(crate) low: f64,
    /// The upper end.
    pub(crate) high: f64,
}

/// What a tool concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The other takes less time.
    DifferentFaster,
    /// The other takes more time.
    DifferentSlower,
    /// No difference that matters, says the tool.
    Same,
    /// The tool does not commit itself.
    Inconclusive,
    /// The run failed, or its answer could not be read.
    Error,
}

impl Verdict {
    /// A difference in the direction of an estimate.
    pub(crate) fn different(estimate: f64) -> Self {
        if estimate < 0.0 { Verdict::DifferentFaster } else { Verdict::DifferentSlower }
    }

    /// Whether it claims a difference.
    pub(crate) fn is_different(self) -> bool {
        matches!(self, Verdict::DifferentFaster | Verdict::DifferentSlower)
    }
}
