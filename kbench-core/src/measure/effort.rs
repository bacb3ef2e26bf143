//! How much time a run may take, and how it is spent.

use std::time::Duration;

/// Time limits of a run; each can be set by a flag.
#[derive(Clone, Debug, PartialEq)]
pub struct Effort {
    /// Wall time of the whole measuring stage.
    pub budget: Duration,
    /// Time spent in timed samples per row, unless `samples` says otherwise.
    pub measurement_time: Duration,
    /// Samples per row.
    pub samples: Option<u32>,
    /// Untimed calls of each row before its calibration.
    pub warm_up: Duration,
    /// What a sample should last: long against the clock, short against the machine's moods.
    pub sample_time: Duration,
    /// A fixed number of calls per sample, instead of calibration.
    pub iterations: Option<u64>,
}

impl Effort {
    /// For a look in passing.
    pub fn quick() -> Self {
        Effort {
            budget: Duration::from_secs(20),
            measurement_time: Duration::from_millis(100),
            warm_up: Duration::from_millis(5),
            sample_time: Duration::from_millis(1),
            ..Effort::default()
        }
    }

    /// For a figure that is to be published.
    pub fn thorough() -> Self {
        Effort {
            budget: Duration::from_secs(900),
            measurement_time: Duration::from_secs(5),
            warm_up: Duration::from_millis(100),
            ..Effort::default()
        }
    }

    /// Samples that every row should get.
    pub fn wanted_samples(&self) -> u32 {
        self.samples.unwrap_or_else(|| {
            let samples = self.measurement_time.as_secs_f64() / self.sample_time.as_secs_f64();
            samples.clamp(4.0, 100_000.0) as u32
        })
    }
}

impl Default for Effort {
    fn default() -> Self {
        Effort {
            budget: Duration::from_secs(120),
            measurement_time: Duration::from_secs(1),
            samples: None,
            warm_up: Duration::from_millis(20),
            sample_time: Duration::from_millis(2),
            iterations: None,
        }
    }
}
