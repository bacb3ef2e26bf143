//! Which experiments, and in which order.

use std::path::PathBuf;
use std::time::Duration;

use campaign::Workload;
use campaign::random::Random;

use crate::experiment::{Effect, Experiment, Load, Null, Tool};

/// Everything that is to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How often.
    pub(crate) rounds: u32,
    /// By whom.
    pub(crate) tools: Vec<Tool>,
    /// On which work.
    pub(crate) workloads: Vec<Workload>,
    /// In which sense both are the same.
    pub(crate) nulls: Vec<Null>,
    /// With which differences.
    pub(crate) effects: Vec<Effect>,
    /// Beside which neighbours.
    pub(crate) loads: Vec<Load>,
    /// In which times per comparison.
    pub(crate) budgets: Vec<Duration>,
    /// Comparisons per run.
    pub(crate) cells: u64,
    /// Of the order, and of all seeds that follow.
    pub(crate) seed: u64,
    /// Where records go.
    pub(crate) output: PathBuf,
}

impl Plan {
    /// Every combination once.
    pub(crate) fn experiments(&self) -> Vec<Experiment> {
        let mut experiments = Vec::new();
        for &workload in &self.workloads {
            for &load in &self.loads {
                for &null in &self.nulls {
                    for &effect in &self.effects {
                        for &budget in &self.budgets {
                            experiments.extend(self.tools.iter().map(|&tool| Experiment {
                                workload,
                                load,
                                tool,
                                null,
                                cells: self.cells,
                                budget,
                                effect,
                            }));
                        }
                    }
                }
            }
        }
        experiments
    }

    /// Every combination once, in random order: what changes over time hits all tools alike.
    pub(crate) fn round(&self, random: &mut Random) -> Vec<Experiment> {
        let mut experiments = self.experiments();
        random.shuffle(&mut experiments);
        experiments
    }
}
