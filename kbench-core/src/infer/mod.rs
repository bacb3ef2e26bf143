//! Inference: from samples to estimates, tests and verdicts. Nothing here touches a clock.
//!
//! Samples of one process are not independent of each other, so they are never counted as such. The unit of repetition
//! is the launch; with a single launch its blocks are merged into a few segments, each represented by its median, and
//! every verdict is *provisional*: the placement of code and data was the same throughout.

mod estimate;
mod holm;
mod verdict;
mod welch;

pub use estimate::{Estimate, Observations, Scope};
pub use holm::holm;
pub use verdict::{Comparison, Judged, Judgement, Rules, Verdict, compare, judge};
pub use welch::{Welch, student_quantile, student_two_sided};
