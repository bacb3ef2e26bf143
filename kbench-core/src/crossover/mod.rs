//! From which size on does a variant win?
//!
//! The sizes of a plan are walked through from both ends, with one-sided tests, until one of them cannot tell who wins; so
//! the winner changes somewhere between the last size that one side is shown to win and the first that the other is. Sizes
//! that nobody listed are then measured between these two, round by round, halving the bracket until it is narrow enough,
//! until no size is left between, or until the sizes between cannot be decided; then it is narrowed from both ends. All
//! kernels of a run share their rounds. Where the winner changes several times, as at the steps of caches, every change
//! is a bracket of its own. No curve is fitted: a fit would be sure of itself also where its form is wrong.

mod contest;
mod curve;
mod evidence;
mod finding;
mod place;
mod search;
mod threshold;

#[cfg(test)]
mod simulation;

pub use contest::ways;
pub(crate) use evidence::changes;
pub use evidence::{Origin, Winner};
#[cfg(test)]
pub(crate) use finding::tests;
pub use finding::{Claim, Crossing, Crossover, EvidenceReport, Limit, Outcome, Source, Suggestion};
pub(crate) use finding::{outcome, whole};
pub use place::Place;
pub use search::{Found, Prober, Search, has_contests, search};
pub use threshold::{ThresholdFinding, ThresholdPlace, ThresholdVerdict};
