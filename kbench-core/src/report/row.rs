//! One row of a report: its figures have the same names in every format.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ChangeReport, CrossoverContext, DeviceRow, ScalingContext, TargetReport, units};
use crate::crossover::Origin;
use crate::gauge::{Allocations, CounterFigures};
use crate::infer::{Judgement, Rank};

/// That a difference is at most ten times says nothing.
const MOST_TOLD: f64 = 9.0;

/// One variant at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowReport {
    /// `module::path::kernel/variant/type/axis=value,axis=value`.
    pub name: String,
    /// `module::path::kernel`.
    pub kernel: String,
    /// The variant.
    pub variant: String,
    /// Whether others are compared with it.
    pub is_base: bool,
    /// Where it runs.
    pub backend: String,
    /// Element type.
    #[serde(rename = "type")]
    pub element: String,
    /// `axis=value,axis=value`.
    pub size: String,
    /// Label of the shape.
    pub label: Option<String>,
    /// Values of the axes.
    pub axes: BTreeMap<String, usize>,
    /// Amount of work.
    pub work: Option<f64>,
    /// Threads it may use.
    pub threads: usize,
    /// State of the caches.
    pub mode: String,
    /// Whether there are figures.
    pub status: Status,
    /// Nanoseconds of one call.
    pub time_ns: Option<f64>,
    /// Lower end of the 95 % interval.
    pub time_low_ns: Option<f64>,
    /// Upper end.
    pub time_high_ns: Option<f64>,
    /// The comparison with the base.
    #[serde(flatten)]
    pub comparison: ComparisonReport,
    /// The comparison with a baseline.
    #[serde(flatten)]
    pub change: ChangeReport,
    /// Bytes moved per second.
    pub bytes_per_s: Option<f64>,
    /// Floating-point operations per second.
    pub flops_per_s: Option<f64>,
    /// Work per second.
    pub items_per_s: Option<f64>,
    /// Share of the ceiling that binds it.
    pub ceiling_share: Option<f64>,
    /// The check.
    #[serde(flatten)]
    pub check: CheckReport,
    /// The claim of its author.
    pub threshold: Option<String>,
    /// The author's targets, judged.
    pub expectations: Vec<TargetReport>,
    /// Time of the best variant of the cell over its own.
    pub best_share: Option<f64>,
    /// Whether it is the best.
    pub rank: Option<Rank>,
    /// How close it comes to the base, when that was named as a yardstick.
    pub class: Option<String>,
    /// Why its size was measured.
    pub origin: Origin,
    /// Where its variant wins.
    #[serde(flatten)]
    pub crossover: CrossoverContext,
    /// How it scales with threads.
    #[serde(flatten)]
    pub scaling: ScalingContext,
    /// Whether its speed-up varies, or its time against the sentinel moves, too much to be relied on; a remark says how.
    pub unstable: bool,
    /// What makes its time doubtful; a remark tells it.
    #[serde(default)]
    pub doubt: Option<Doubt>,
    /// What else is to be known of it.
    pub remarks: Vec<String>,
    /// Calls per sample.
    pub calls: Option<u64>,
    /// Share of the clock in a sample, which was subtracted.
    pub overhead_share: Option<f64>,
    /// Launches that measured it.
    pub launches: usize,
    /// Blocks of its cell.
    pub blocks: usize,
    /// Of these, blocks during which the sentinels said that the machine was busy; they count only where there are few
    /// others.
    pub contaminated: usize,
    /// What one call allocates.
    #[serde(flatten)]
    pub memory: MemoryReport,
    /// What one call makes the processor do.
    #[serde(flatten)]
    pub counters: CounterFigures,
    /// What is to be known of it on a device.
    #[serde(flatten)]
    pub device: DeviceRow,
    /// The machine that it is from, in a report that was merged.
    pub machine: Option<String>,
    /// Every sample.
    #[serde(flatten)]
    pub raw: RawSamples,
}

impl RowReport {
    /// Whether two rows are of the same kernel and element type, and from the same machine.
    pub(super) fn is_of_same_kernel(&self, other: &RowReport) -> bool {
        self.kernel == other.kernel
            && self.element == other.element
            && self.machine == other.machine
    }

    /// What is said of it.
    pub fn judgement(&self) -> Option<Judgement> {
        Judgement::of(self.comparison.verdict.as_deref()?)
    }

    /// The verdict with what it leaves open: `inconclusive, at most 12 %`.
    pub(super) fn verdict_in_full(&self) -> Option<String> {
        let verdict = self.comparison.verdict.clone()?;
        let at_most = self.comparison.at_most.filter(|share| *share < MOST_TOLD);
        Some(match at_most.filter(|_| self.judgement() == Some(Judgement::Inconclusive)) {
            Some(share) => format!("{verdict}, at most {}", units::percent(share)),
            None => verdict,
        })
    }

    /// Why its figures are not to be relied on without a look at its remarks.
    pub(super) fn reservation(&self) -> Option<&'static str> {
        match self.doubt {
            _ if self.unstable => Some("unstable"),
            Some(Doubt::Bimodal) => Some("bimodal"),
            Some(Doubt::Disagreement) => Some("times disagree"),
            None => None,
        }
    }
}

/// What makes the time of a row doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Doubt {
    /// Its samples fall into two groups.
    Bimodal,
    /// The ratio of its own time and the base's lies outside of the interval of the speed-up.
    Disagreement,
}

impl Doubt {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Doubt::Bimodal => "bimodal",
            Doubt::Disagreement => "disagreement",
        }
    }
}

/// Every sample of a row, with what the sentinels said beside it: launch by launch, block by block.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RawSamples {
    /// Nanoseconds per call.
    pub samples: Vec<Vec<Vec<f64>>>,
    /// Nanoseconds of the arithmetic chain.
    pub chains: Vec<Vec<Vec<f64>>>,
    /// Nanoseconds of the memory sweep, for memory-bound cells.
    pub sweeps: Vec<Vec<Vec<f64>>>,
    /// Clocks of a device's multiprocessors, in megahertz.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub clocks: Vec<Vec<Vec<f64>>>,
    /// Degrees Celsius of a device.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub temperatures: Vec<Vec<Vec<f64>>>,
    /// Watts of a device.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub powers: Vec<Vec<Vec<f64>>>,
    /// What held its clock back, as the bits of NVML's clock event reasons.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub throttles: Vec<Vec<Vec<f64>>>,
}

/// Whether there is no figure in any block.
fn is_empty(launches: &[Vec<Vec<f64>>]) -> bool {
    launches.iter().flatten().all(Vec::is_empty)
}

/// A row against its base; all empty for the base itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ComparisonReport {
    /// Time of the base over time of the row.
    pub speedup: Option<f64>,
    /// Lower end of its interval, which excludes 1 exactly when the difference is shown; none of one launch among several.
    pub speedup_low: Option<f64>,
    /// Upper end.
    pub speedup_high: Option<f64>,
    /// Confidence of the interval: 95 % for a single comparison, more among others.
    pub speedup_confidence: Option<f64>,
    /// Probability of such a difference between equals.
    pub p: Option<f64>,
    /// The same, adjusted for all comparisons of the report: below the error rate exactly when a difference is named.
    pub p_adjusted: Option<f64>,
    /// The verdict in words.
    pub verdict: Option<String>,
    /// The largest difference that there can be, as a share.
    pub at_most: Option<f64>,
    /// Statistic of the test that decides: on log-ratios of the launches.
    pub t: Option<f64>,
    /// Its degrees of freedom.
    pub df: Option<f64>,
    /// Welch's statistic, on the launches of both rows as if they were not the same.
    pub welch_t: Option<f64>,
    /// Its degrees of freedom.
    pub welch_df: Option<f64>,
    /// Its probability.
    pub welch_p: Option<f64>,
    /// Hedges' g.
    pub hedges_g: Option<f64>,
    /// The difference that could have been seen.
    pub detectable: Option<f64>,
}

/// What one call allocates; empty where it was not counted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct MemoryReport {
    /// Allocations and reallocations.
    pub allocations: Option<u64>,
    /// Bytes that they asked for.
    pub allocated_bytes: Option<u64>,
    /// Most bytes that were live at once.
    pub allocated_peak_bytes: Option<u64>,
}

impl From<Option<Allocations>> for MemoryReport {
    fn from(counted: Option<Allocations>) -> Self {
        MemoryReport {
            allocations: counted.map(|counted| counted.count),
            allocated_bytes: counted.map(|counted| counted.bytes),
            allocated_peak_bytes: counted.map(|counted| counted.peak),
        }
    }
}

/// What the correctness gate found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CheckReport {
    /// Relative error norm.
    pub error: Option<f64>,
    /// Largest relative error of an element.
    pub error_max: Option<f64>,
    /// The element that is furthest off: `output[index]`.
    #[serde(rename = "error_at")]
    pub worst: Option<String>,
    /// Relative tolerance.
    pub tolerance: Option<f64>,
    /// What it was compared with.
    pub reference: Option<String>,
    /// Under which circumstances it was checked besides at its size.
    #[serde(default)]
    pub checked: Option<String>,
    /// The share of mistakes in the expected results that the comparison notices.
    #[serde(default)]
    pub mutation_score: Option<f64>,
}

/// Whether a row has figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has.
    Ok,
    /// It has, and its results were not compared: it may be wrong.
    Unchecked(String),
    /// It is wrong, or broke.
    Failed(String),
    /// It was not run.
    Skipped(String),
}

/// What is shown in the place of a verdict where results were not compared.
pub(super) const UNCHECKED: &str = "unchecked";

impl Status {
    /// Whether there are figures.
    pub fn has_figures(&self) -> bool {
        matches!(self, Status::Ok | Status::Unchecked(_))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Ok => f.write_str("ok"),
            Status::Unchecked(reason) => write!(f, "unchecked: {reason}"),
            Status::Failed(reason) => write!(f, "failed: {reason}"),
            Status::Skipped(reason) => write!(f, "skipped: {reason}"),
        }
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.split_once(": ") {
            _ if text == "ok" => Ok(Status::Ok),
            Some(("unchecked", reason)) => Ok(Status::Unchecked(reason.to_owned())),
            Some(("failed", reason)) => Ok(Status::Failed(reason.to_owned())),
            Some(("skipped", reason)) => Ok(Status::Skipped(reason.to_owned())),
            _ => Err(serde::de::Error::custom(format!("`{text}` is no status of a row"))),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row of a kernel with one axis that has no figures yet.
    pub(crate) fn row(variant: &str, n: usize) -> RowReport {
        RowReport {
            name: format!("crate::kernel/{variant}/f32/n={n}"),
            kernel: "crate::kernel".into(),
            variant: variant.into(),
            is_base: false,
            backend: "serial".into(),
            element: "f32".into(),
            size: format!("n={n}"),
            label: None,
            axes: [("n".into(), n)].into(),
            work: Some(n as f64),
            threads: 1,
            mode: "warm".into(),
            status: Status::Ok,
            time_ns: None,
            time_low_ns: None,
            time_high_ns: None,
            comparison: ComparisonReport::default(),
            change: ChangeReport::default(),
            bytes_per_s: None,
            flops_per_s: None,
            items_per_s: None,
            ceiling_share: None,
            check: CheckReport::default(),
            threshold: None,
            expectations: Vec::new(),
            best_share: None,
            rank: None,
            class: None,
            origin: Origin::Listed,
            crossover: CrossoverContext::default(),
            scaling: ScalingContext::default(),
            unstable: false,
            doubt: None,
            remarks: Vec::new(),
            calls: None,
            overhead_share: None,
            launches: 0,
            blocks: 0,
            contaminated: 0,
            memory: MemoryReport::default(),
            counters: CounterFigures::default(),
            device: DeviceRow::default(),
            machine: None,
            raw: RawSamples::default(),
        }
    }
}
