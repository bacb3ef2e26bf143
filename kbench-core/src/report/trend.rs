//! What the stored runs of one machine say about a row, one after the other.

/// A row over the stored runs of one machine, oldest first.
#[derive(Clone, Debug)]
pub struct Trend {
    /// `module::path::kernel/variant/type/axis=value,axis=value`.
    pub name: String,
    /// Threads it may use.
    pub threads: usize,
    /// State of the caches.
    pub mode: String,
    /// The row in every run that has it.
    pub points: Vec<TrendPoint>,
    /// Indices of points at which a new level begins.
    pub changes: Vec<usize>,
}

/// A row in one run.
#[derive(Clone, Debug)]
pub struct TrendPoint {
    /// The run.
    pub run: String,
    /// When it began, in seconds since 1970.
    pub started: u64,
    /// The commit that was checked out then.
    pub git_commit: Option<String>,
    /// Nanoseconds of one call.
    pub time_ns: f64,
    /// Lower end of the 95 % interval.
    pub low_ns: Option<f64>,
    /// Upper end.
    pub high_ns: Option<f64>,
}
