//! The report: everything a run found, and the forms in which it is shown.

mod assemble;
mod change;
mod change_table;
mod changes;
#[cfg(test)]
mod consistency;
mod context;
mod crossover_table;
mod device;
mod export;
mod findings;
mod growth;
mod history;
#[cfg(test)]
mod hostile;
mod html;
mod index;
mod kernel_table;
mod key;
mod libtest;
#[cfg(test)]
mod linear;
mod listing;
mod overview;
mod part;
mod plot;
mod progress;
mod ranks;
mod remarks;
mod row;
mod scaling;
mod scaling_table;
mod sentences;
mod shown;
mod style;
mod summary;
mod table;
mod targets;
mod terminal;
mod trend;
mod units;
mod ways;
mod worker;

pub use assemble::{assemble, family_of};
pub use change::{BaselineReport, ChangeReport, Method, ShiftReport};
pub use context::{CrossoverContext, ScalingContext, put_in_context};
pub use device::{DeviceReport, DeviceRow};
pub use export::{Exported, Format, UnknownFormat, csv, export, json, json_compact, json_rows};
pub(crate) use export::{code, prose};
pub use growth::{GrowthReport, growth_reports};
pub use history::history;
pub use html::html;
pub use key::RowKey;
pub use libtest::{TestFormat, test_report};
pub use listing::{ListFormat, list, list_kernels, list_sizes};
pub use part::PartReport;
pub use plot::{plot, sparkline};
pub use progress::Progress;
pub(crate) use ranks::rank_again;
pub use row::{CheckReport, ComparisonReport, Doubt, MemoryReport, RawSamples, RowReport, Status};
pub use scaling::{FitReport, ScalingReport, ThreadsReport, scaling_reports};
pub use style::Style;
pub use summary::{VariantSummary, kernel_reports};
pub use targets::TargetReport;
pub use terminal::terminal;
pub use trend::{Trend, TrendPoint};
pub(crate) use units::{signed_percent, time as readable_time};
pub use worker::WorkerReport;

use serde::{Deserialize, Serialize};

use crate::crossover::Crossover;
use crate::environment::Environment;
use crate::infer::ErrorRate;
use crate::measure::{Effort, Isolation, Spent};

/// Version of the run document; grows when a reader of the former version would misread the new one.
pub const SCHEMA: u32 = 2;

/// What a run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Version of this document.
    pub schema: u32,
    /// What the run is called: the moment of its beginning and a few digits that tell it from others.
    pub run: String,
    /// When the run began, in seconds since 1970.
    pub started: u64,
    /// The command that made it.
    pub command: Vec<String>,
    /// Seed of data and order.
    pub seed: u64,
    /// What was asked for.
    pub plan: PlanReport,
    /// Machine and build.
    pub environment: Environment,
    /// What CUDA variants ran on; none where nothing did.
    pub device: Option<DeviceReport>,
    /// Foreign workers.
    #[serde(default)]
    pub workers: Vec<WorkerReport>,
    /// What makes the figures doubtful.
    pub warnings: Vec<String>,
    /// Processes that measured.
    pub launches: usize,
    /// Share of blocks during which the sentinels said that the machine was busy.
    pub contaminated_share: Option<f64>,
    /// Whether the processor's counters can be read, or why not; none when nobody asked.
    pub counters: Option<String>,
    /// Seconds spent in the stages.
    pub seconds: Seconds,
    /// Rows that the selection left out.
    pub filtered_out: usize,
    /// One row for every variant, element type, size and thread count.
    pub rows: Vec<RowReport>,
    /// What all sizes of each kernel say together.
    pub kernels: Vec<KernelReport>,
    /// From which size on each variant wins.
    pub crossovers: Vec<Crossover>,
    /// How parallel variants scale with threads, when several counts were asked for.
    pub scaling: Vec<ScalingReport>,
    /// How times grow with work.
    pub growth: Vec<GrowthReport>,
    /// Rows of sizes that nobody listed, measured to find crossovers; judged round by round.
    pub searched: Vec<RowReport>,
    /// The program that made it, where it was kept.
    pub executable: Option<Executable>,
    /// What the run was compared with.
    pub baseline: Option<BaselineReport>,
    /// The runs that this one was merged from; empty when it was not.
    pub parts: Vec<PartReport>,
    /// Kernels that were to be measured, and are in no part.
    pub missing: Vec<String>,
    /// Why it has not come to its end; none when it has.
    #[serde(default)]
    pub unfinished: Option<String>,
}

/// A program that is kept by its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executable {
    /// Hash of its content, as digits.
    pub content: String,
    /// Its length.
    pub bytes: u64,
}

/// A kernel as a whole, for one element type.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KernelReport {
    /// `module::path::kernel`.
    pub kernel: String,
    /// Element type.
    #[serde(rename = "type")]
    pub element: String,
    /// Its variants over all sizes.
    pub variants: Vec<VariantSummary>,
    /// What was found, in sentences.
    pub findings: Vec<String>,
    /// What to take, in words.
    pub recommendation: Option<String>,
}

/// What a run was asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanReport {
    /// Limits of time and number.
    pub effort: Effort,
    /// Thread counts of parallel variants; empty means rayon's global pool.
    pub threads: Vec<usize>,
    /// Whether variants shared their launches.
    pub isolation: Isolation,
    /// What the significance is a rate of; the chance of any false difference in older documents.
    #[serde(default = "family")]
    pub error_rate: ErrorRate,
    /// The error rate.
    pub significance: f64,
    /// Differences below this share are none that matter.
    pub margin: f64,
    /// The share of the kernels that was measured, such as `slice:1/4`.
    pub partition: Option<String>,
    /// All kernels that are selected, in whatever share.
    pub kernels: Vec<String>,
    /// Whether speed-ups are against the first selected variant of a kernel, because its own function is not selected.
    #[serde(default)]
    pub has_substitutes: bool,
    /// Whether element types after the first were measured at one size.
    #[serde(default)]
    pub is_brief: bool,
    /// Seed of the order of samples and of the placement of data; none in documents that are older than it.
    #[serde(default)]
    pub order_seed: Option<u64>,
}

fn family() -> ErrorRate {
    ErrorRate::Family
}

/// Where the time of a run went.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// Comparing with references.
    pub checking: f64,
    /// Calibrating and taking samples.
    pub measuring: f64,
    /// Of this, inside kernels or sentinels.
    pub inside: f64,
    /// Of measuring, the search of crossovers.
    pub searching: f64,
    /// The time inside as a share of measuring; none when nothing was measured.
    pub inside_share: Option<f64>,
    /// The limit that was set for measuring.
    pub budget: f64,
    /// Workers that ended before their time, which is not taken from the budget.
    #[serde(default)]
    pub lost: f64,
}

impl Seconds {
    /// Adds what a measuring stage took.
    pub(crate) fn add(&mut self, spent: Spent) {
        self.checking += spent.checking;
        self.measuring += spent.measuring;
        self.inside += spent.inside;
        self.lost += spent.lost;
    }
}

impl Report {
    /// The same about no row: the samples are nearly all of a report, and not to be copied.
    fn without_rows(&self) -> Report {
        Report {
            schema: self.schema,
            run: self.run.clone(),
            started: self.started,
            command: self.command.clone(),
            seed: self.seed,
            plan: self.plan.clone(),
            environment: self.environment.clone(),
            device: self.device.clone(),
            workers: self.workers.clone(),
            warnings: self.warnings.clone(),
            launches: self.launches,
            contaminated_share: self.contaminated_share,
            counters: self.counters.clone(),
            seconds: self.seconds,
            filtered_out: self.filtered_out,
            rows: Vec::new(),
            kernels: self.kernels.clone(),
            crossovers: self.crossovers.clone(),
            scaling: self.scaling.clone(),
            growth: self.growth.clone(),
            searched: Vec::new(),
            executable: self.executable.clone(),
            baseline: self.baseline.clone(),
            parts: self.parts.clone(),
            missing: self.missing.clone(),
            unfinished: self.unfinished.clone(),
        }
    }

    /// Rows whose results are wrong, or that failed to give any.
    pub fn failed(&self) -> impl Iterator<Item = &RowReport> {
        let rows = self.rows.iter().chain(&self.searched);
        rows.filter(|row| matches!(row.status, Status::Failed(_)))
    }
}
