//! A report that was merged from those of several machines.

use serde::{Deserialize, Serialize};

use super::DeviceReport;
use crate::environment::Environment;

/// The run of one machine in a merged report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartReport {
    /// The run.
    pub run: String,
    /// The key of its machine, which is also on its rows.
    pub machine: String,
    /// When it began, in seconds since 1970.
    pub started: u64,
    /// The share that it measured, such as `slice:1/4`.
    pub partition: Option<String>,
    /// Machine and build.
    pub environment: Environment,
    /// What CUDA variants ran on.
    pub device: Option<DeviceReport>,
    /// What makes its figures doubtful.
    pub warnings: Vec<String>,
    /// How many rows are from it.
    pub rows: usize,
}
