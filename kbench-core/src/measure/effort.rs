//! How much time a run may take, and how it is spent.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::worker::Sampling;

/// Blocks that every cell should get: enough for a test, however long a call takes.
pub(super) const FEWEST_BLOCKS: u32 = 8;

/// A scaled budget is that of this many rows; with fewer, each row has as much time.
const FEW_ROWS: f64 = 36.0;

/// A scaled budget is doubled with this many rows.
const MANY_ROWS: f64 = 3000.0;

/// Share of a row's part of the budget that may go into warming it up.
const WARM_UP_SHARE: f64 = 0.02;

/// Wall time of a run, from the first check to the last sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// The same for any number of rows.
    Fixed(Duration),
    /// That of 36 rows: fewer rows take less time, and more take longer.
    Scaled(Duration),
}

impl Budget {
    /// The time, of 36 rows where it is scaled.
    pub fn time(self) -> Duration {
        let (Budget::Fixed(time) | Budget::Scaled(time)) = self;
        time
    }

    fn for_rows(self, rows: usize) -> Duration {
        match self {
            Budget::Fixed(time) => time,
            Budget::Scaled(time) => {
                time.mul_f64((rows as f64 / FEW_ROWS).min(1.0 + rows as f64 / MANY_ROWS))
            }
        }
    }
}

impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        seconds(&self.time(), serializer)
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        duration(deserializer).map(Budget::Fixed)
    }
}

/// Time limits of a run; each can be set by a flag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Wall time of the run, from the first check to the last sample.
    pub budget: Budget,
    /// Time spent in timed samples per row, unless `samples` says otherwise.
    #[serde(serialize_with = "seconds", deserialize_with = "duration")]
    pub measurement_time: Duration,
    /// Samples per row.
    pub samples: Option<u32>,
    /// Untimed calls of each row before its calibration.
    #[serde(serialize_with = "seconds", deserialize_with = "duration")]
    pub warm_up: Duration,
    /// How short they may be where there is little time for each row.
    #[serde(skip)]
    pub shortest_warm_up: Duration,
    /// What a sample should last: long against the clock, short against the machine's moods.
    #[serde(serialize_with = "seconds", deserialize_with = "duration")]
    pub sample_time: Duration,
    /// A fixed number of calls per sample, instead of calibration.
    pub iterations: Option<u64>,
    /// A fixed number of launches, instead of one that follows from costs and variances.
    pub launches: Option<u32>,
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

impl Effort {
    /// For a look in passing.
    pub fn quick() -> Self {
        Effort {
            budget: Budget::Fixed(Duration::from_secs(20)),
            measurement_time: Duration::from_millis(100),
            warm_up: Duration::from_millis(5),
            launches: Some(1),
            ..Effort::default()
        }
    }

    /// For a figure that is to be published.
    pub fn thorough() -> Self {
        Effort {
            budget: Budget::Scaled(Duration::from_secs(1080)),
            measurement_time: Duration::from_secs(5),
            warm_up: Duration::from_millis(100),
            ..Effort::default()
        }
    }

    /// The same for a run with so many rows.
    pub(crate) fn for_rows(&self, rows: usize) -> Self {
        let budget = self.budget.for_rows(rows);
        let share = budget.mul_f64(WARM_UP_SHARE / rows.max(1) as f64);
        let warm_up = share.max(self.shortest_warm_up).min(self.warm_up);
        Effort { budget: Budget::Fixed(budget), warm_up, ..self.clone() }
    }

    /// What workers need to know of it to calibrate.
    pub(super) fn sampling(&self, patience: Duration) -> Sampling {
        Sampling {
            sample_seconds: self.sample_time.as_secs_f64(),
            warm_up_seconds: self.warm_up.as_secs_f64(),
            iterations: self.iterations,
            patience_seconds: patience.as_secs_f64(),
        }
    }

    /// Blocks that a cell should get whose slowest row takes `slowest` per sample; two samples per row make a block.
    pub fn blocks(&self, slowest: Duration) -> u32 {
        if let Some(samples) = self.samples {
            return samples.div_ceil(2);
        }
        let sample = slowest.max(self.sample_time).as_secs_f64();
        let blocks = self.measurement_time.as_secs_f64() / (2.0 * sample);
        (blocks as u32).max(FEWEST_BLOCKS)
    }
}

impl Default for Effort {
    fn default() -> Self {
        Effort {
            budget: Budget::Scaled(Duration::from_secs(180)),
            measurement_time: Duration::from_secs(1),
            samples: None,
            warm_up: Duration::from_millis(20),
            shortest_warm_up: Duration::from_millis(2),
            sample_time: Duration::from_micros(500),
            iterations: None,
            launches: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_rows_take_longer_unless_a_budget_was_given() {
        let seconds = |effort: Effort, rows| effort.for_rows(rows).budget.time().as_secs();
        let rows = [2, 30, 900, 3000];
        assert_eq!(rows.map(|rows| seconds(Effort::default(), rows)), [10, 150, 234, 360]);
        assert_eq!(rows.map(|rows| seconds(Effort::thorough(), rows)), [60, 900, 1404, 2160]);
        assert_eq!(rows.map(|rows| seconds(Effort::quick(), rows)), [20; 4]);
        let budget = Budget::Fixed(Duration::from_secs(150));
        let given = Effort { budget, ..Effort::default() };
        assert_eq!(rows.map(|rows| seconds(given.clone(), rows)), [150; 4]);
    }

    #[test]
    fn rows_that_have_little_time_are_warmed_up_for_a_part_of_it() {
        let millis = |effort: Effort, rows| effort.for_rows(rows).warm_up.as_millis();
        let rows = [1, 600, 1000, 1200, 3000];
        assert_eq!(rows.map(|rows| millis(Effort::default(), rows)), [20, 7, 4, 4, 2]);
        let budget = Budget::Fixed(Duration::from_secs(20));
        let hasty = Effort { budget, ..Effort::default() };
        assert_eq!(rows.map(|rows| millis(hasty.clone(), rows)), [20, 2, 2, 2, 2]);
        assert_eq!(rows.map(|rows| millis(Effort::quick(), rows)), [5, 2, 2, 2, 2]);
        let wished = Effort { shortest_warm_up: hasty.warm_up, ..hasty };
        assert_eq!(rows.map(|rows| millis(wished.clone(), rows)), [20; 5]);
    }

    #[test]
    fn long_calls_get_fewer_blocks_but_never_too_few() {
        let effort = Effort::default();
        assert_eq!(effort.blocks(Duration::from_micros(500)), 1000);
        assert_eq!(effort.blocks(Duration::from_millis(20)), 25);
        assert_eq!(effort.blocks(Duration::from_secs(20)), FEWEST_BLOCKS);
        let fixed = Effort { samples: Some(30), ..Effort::default() };
        assert_eq!(fixed.blocks(Duration::from_secs(20)), 15);
    }
}
