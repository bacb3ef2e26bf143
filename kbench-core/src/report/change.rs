//! What a run says about another, older one.

use serde::{Deserialize, Serialize};

/// A row against the same row of a baseline; all empty without one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChangeReport {
    /// Nanoseconds of one call of the baseline's: measured beside this run where its executable was kept, else its own
    /// figure.
    pub baseline_time_ns: Option<f64>,
    /// Time now over time then, less one: 0.03 is 3 % slower.
    pub change: Option<f64>,
    /// Lower end of the interval by which it is judged.
    pub change_low: Option<f64>,
    /// Upper end.
    pub change_high: Option<f64>,
    /// Probability of such a change between equals.
    pub change_p: Option<f64>,
    /// The same, adjusted for all changes of the report.
    pub change_p_adjusted: Option<f64>,
    /// The verdict in words; `advisory` in front where there is too little history to tell.
    pub change_verdict: Option<String>,
    /// The change that could have been seen.
    pub change_detectable: Option<f64>,
    /// Most bytes during a call now over then, less one; where both runs counted them.
    pub memory_change: Option<f64>,
}

/// The baseline of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BaselineReport {
    /// Its name.
    pub name: String,
    /// The run that it is.
    pub run: String,
    /// When that began, in seconds since 1970.
    pub started: u64,
    /// The commit that was checked out then.
    pub git_commit: Option<String>,
    /// How rows were compared with it.
    pub method: Method,
    /// Why its executable was not measured beside this one.
    pub reason: Option<String>,
    /// Rows of the baseline that this run should have and has not.
    pub gone: Vec<String>,
    /// Rows that the baseline has not.
    pub fresh: Vec<String>,
    /// Crossovers of both.
    pub shifts: Vec<ShiftReport>,
}

/// How a run is compared with a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The executable of the baseline was measured in turns with that of the run.
    Interleaved,
    /// By what the ratios of earlier runs of the machine let one expect.
    History,
}

/// A crossover then and now, as amounts of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShiftReport {
    /// `module::path::kernel`.
    pub kernel: String,
    /// Element type.
    #[serde(rename = "type")]
    pub element: String,
    /// The variant.
    pub variant: String,
    /// The axes that are held, as in `dim=64`; empty when none is.
    pub held: String,
    /// The bracket of the baseline; none where the variant did not cross its base.
    pub then: Option<[f64; 2]>,
    /// The bracket of this run.
    pub now: Option<[f64; 2]>,
    /// Whether the variant now wins at every size.
    pub wins_everywhere: bool,
    /// Octaves between the brackets, positive when the variant wins later than it did; zero when they meet.
    pub octaves: Option<f64>,
}
