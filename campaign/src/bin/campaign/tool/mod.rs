//! How each tool is run on a pair, and what its answer counts as.

mod answer;
mod criterion;
mod divan;
mod kbench;
mod process;
mod tango;
mod workshop;

pub(crate) use answer::{Answer, Interval, Verdict};
pub(crate) use process::Failure;
pub(crate) use workshop::{SetUpError, Workshop};

use crate::experiment::{Experiment, Tool};

/// Runs an experiment; one answer for each of its pairs.
pub(crate) fn compare(
    experiment: &Experiment,
    seed: u64,
    workshop: &Workshop,
) -> Result<Vec<Answer>, Failure> {
    match experiment.tool {
        Tool::Kbench => kbench::compare(experiment, seed, workshop),
        Tool::Criterion => criterion::compare(experiment, workshop).map(|answer| vec![answer]),
        Tool::Divan => divan::compare(experiment, workshop).map(|answer| vec![answer]),
        Tool::Tango => tango::compare(experiment, workshop).map(|answer| vec![answer]),
    }
}
