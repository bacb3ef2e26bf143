//! Whether a target is met.

use serde::{Deserialize, Serialize};

use crate::kernel::Bound;

/// What can be said of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attainment {
    /// The whole interval is on the right side.
    Met,
    /// The whole interval is on the wrong side.
    Missed,
    /// Neither can be said.
    Undecided,
}

impl Attainment {
    /// What an interval says of a limit.
    pub fn of(bound: Bound, limit: f64, (low, high): (f64, f64)) -> Self {
        let (is_above, is_below) = (low >= limit, high < limit);
        match bound {
            Bound::AtLeast if is_above => Attainment::Met,
            Bound::AtLeast if is_below => Attainment::Missed,
            Bound::AtMost if high <= limit => Attainment::Met,
            Bound::AtMost if low > limit => Attainment::Missed,
            _ => Attainment::Undecided,
        }
    }

    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Attainment::Met => "met",
            Attainment::Missed => "missed",
            Attainment::Undecided => "undecided",
        }
    }
}

/// How a speed-up over a yardstick is called: how close a variant comes to it.
pub fn class(speedup: f64) -> &'static str {
    match speedup {
        s if s >= 0.8 => "excellent",
        s if s >= 0.5 => "good",
        s if s >= 0.2 => "fair",
        _ => "needs work",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_met_or_missed_only_when_the_whole_interval_says_so() {
        let at_least = |interval| Attainment::of(Bound::AtLeast, 2.0, interval);
        assert_eq!(at_least((2.0, 2.2)), Attainment::Met);
        assert_eq!(at_least((1.8, 1.99)), Attainment::Missed);
        assert_eq!(at_least((1.9, 2.1)), Attainment::Undecided);
        let at_most = |interval| Attainment::of(Bound::AtMost, 2.0, interval);
        assert_eq!(at_most((1.8, 2.0)), Attainment::Met);
        assert_eq!(at_most((2.01, 2.2)), Attainment::Missed);
        assert_eq!(at_most((1.9, 2.1)), Attainment::Undecided);
        assert_eq!(at_least((f64::NAN, f64::NAN)), Attainment::Undecided);
    }

    #[test]
    fn classes_begin_where_the_guide_says() {
        assert_eq!([0.8, 0.5, 0.2, 0.19].map(class), ["excellent", "good", "fair", "needs work"]);
    }
}
