//! Inference: from samples to estimates, tests and verdicts. Nothing here touches a clock.
//!
//! Samples of one process are not independent of each other, so they are never counted as such. The unit of repetition
//! is the launch: per launch, the median over its blocks of the log-ratio of two rows. With a single launch its blocks
//! are merged into a few segments, and every verdict is *provisional*: the placement of code and data was the same
//! throughout. `docs/statistics.md` tells the whole method.

mod compare;
mod discovery;
mod estimate;
mod growth;
mod holm;
mod interval;
mod levels;
mod modes;
mod noise;
mod observe;
mod scaling;
mod standing;
mod stopping;
mod target;
mod test;
mod trend;
mod verdict;

#[cfg(test)]
mod simulation;

pub use compare::{Comparison, compare, compare_among, look_share};
pub use estimate::{Estimate, trend};
pub use growth::{Growth, GrowthPoint, GrowthStep, Knee, growth};
pub use holm::holm;
pub use interval::Interval;
pub(crate) use interval::upper_end;
pub use levels::{Level, LevelRules, levels};
pub use modes::Modes;
pub use noise::{Noise, Noises};
pub use observe::{Observations, Repetition, Scope, contaminated_share};
pub use scaling::{Agreement, Law, ScalingFit, fit_scaling};
pub use standing::{Contention, Rank, Rival, Side, Standing, standings};
pub(crate) use standing::{best, ranks};
pub use target::{Attainment, class};
pub use test::{Mean, Test, hedges_g, student_quantile, student_two_sided};
pub use verdict::{
    ErrorRate, Grounds, Judged, Judgement, NARROW_MARGIN, NEGLIGIBLE, Rules, Verdict, family_size,
    judge,
};
