//! A figure and how well it is known.

use serde::{Deserialize, Deserializer, Serialize};

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The figure.
    pub value: f64,
    /// Lower end.
    #[serde(deserialize_with = "lower_end")]
    pub low: f64,
    /// Upper end.
    #[serde(deserialize_with = "upper_end")]
    pub high: f64,
}

/// JSON has no infinity: an interval without an end is written with `null` in its place.
fn lower_end<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NEG_INFINITY))
}

pub(crate) fn upper_end<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

impl Interval {
    /// Equally far to both sides.
    pub(super) fn around(value: f64, half: f64) -> Self {
        Interval { value, low: value - half, high: value + half }
    }

    /// Whether the interval covers a figure.
    pub fn covers(&self, figure: f64) -> bool {
        self.low <= figure && figure <= self.high
    }

    /// The same figure with an interval that reaches as far as that of another as well.
    pub(super) fn reaching(self, other: &Interval) -> Self {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high), ..self }
    }

    /// The same with all three figures put through a rising function.
    pub(super) fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Interval { value: rising(self.value), low: rising(self.low), high: rising(self.high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_covers_its_ends_and_what_lies_between() {
        let interval = Interval::around(1.0, 0.5).map(|figure| 2.0 * figure);
        assert_eq!(interval, Interval { value: 2.0, low: 1.0, high: 3.0 });
        assert!(interval.covers(1.0) && interval.covers(2.5) && interval.covers(3.0));
        let other = Interval { value: 9.0, low: 1.5, high: 9.5 };
        assert_eq!(interval.reaching(&other), Interval { value: 2.0, low: 1.0, high: 9.5 });
        assert!(!interval.covers(0.999) && !interval.covers(3.001));
    }
}
