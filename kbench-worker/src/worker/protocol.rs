//! What controller and worker say to each other: one JSON object per line. `docs/worker-protocol.md` tells the same in
//! words, for those who write a worker in another language.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::calibrate::RowCalibration;
use super::watchdog::USUAL_TIMEOUT;
use crate::check::{
    Attempt, CheckedCall, Circumstance, Coverage, Covered, ErrorFigures, Mutations, Origin, Remark,
};
use crate::cuda::{Ceilings, DeviceFigures, DeviceReading};
use crate::foreign::Announcement;
use crate::gauge::{Allocations, CounterFigures};
use crate::kernel::Mode;
use crate::value::Regime;

/// Version of the protocol; grows when a worker of the former version would misunderstand a request.
pub const PROTOCOL: u32 = 2;

/// What the controller asks for. A worker answers each request with any number of replies, of which the last one is
/// [`Reply::Done`] or [`Reply::Refused`]; it ends when there are no more requests.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Make the data of some cells, and calibrate them if asked to. Gives [`Reply::Prepared`] for every cell.
    Prepare(Preparation),
    /// Take samples. Gives [`Reply::Block`] for every block and [`Reply::Failed`] for rows that fail.
    Measure(Visits),
    /// Look once more at rows that were timed, on the data that they were timed on. Gives [`Reply::Failed`] for wrong rows.
    Recheck(Review),
    /// Count allocations of one call and processor events of one sample of every row, and tell what is to be known of
    /// calls on a device. Gives [`Reply::Inspected`].
    Inspect {
        /// Whether rows on a processor are inspected, too.
        processor: bool,
    },
    /// Compare results with the reference, without preparing anything. Gives [`Reply::Checked`] for every row.
    Check(CheckRequest),
    /// Call every row once inside a range of the profiler's. Gives [`Reply::Failed`] for rows that fail.
    Profile,
    /// Tell what the device is capable of. Gives [`Reply::Ceilings`].
    Ceilings(DeviceRequest),
    /// Know what other programs implement, as they announced it.
    Enlist(ForeignRequest),
}

/// How rows that were timed are looked at once more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Review {
    /// Whether results are compared with the reference.
    #[serde(default = "yes")]
    pub results: bool,
    /// Seconds for calls on other inputs, after which the data is no longer that which was timed.
    #[serde(default)]
    pub exchange_seconds: f64,
}

fn yes() -> bool {
    true
}

impl Review {
    /// Results alone are compared.
    pub const OF_RESULTS: Self = Review { results: true, exchange_seconds: 0.0 };

    /// Rows are called on other inputs for about so many seconds.
    pub fn on_other_inputs(exchange_seconds: f64) -> Self {
        Review { results: false, exchange_seconds }
    }
}

/// Other programs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForeignRequest {
    /// What they have announced.
    pub workers: Vec<Announcement>,
    /// Where their CUDA variants run.
    pub device: DeviceRequest,
    /// Seconds that one of them may take to begin.
    pub timeout_seconds: f64,
}

impl ForeignRequest {
    /// How long one of them may take to begin.
    pub(super) fn patience(&self) -> Duration {
        Duration::try_from_secs_f64(self.timeout_seconds).unwrap_or(USUAL_TIMEOUT)
    }
}

/// Which cells a launch is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Preparation {
    /// Version of the protocol.
    pub protocol: u32,
    /// Seed of the data.
    pub seed: u64,
    /// Seed of the order of cells and samples, and of the placement of data.
    #[serde(default)]
    pub order_seed: u64,
    /// Number of the launch: every launch has an order and a placement of its own.
    pub launch: u64,
    /// The cells.
    pub cells: Vec<CellRequest>,
    /// Bytes that the data of all cells may take together; further cells are left out.
    pub memory: usize,
    /// How to find the number of calls in a sample; none when the controller knows them already.
    pub calibrate: Option<Sampling>,
    /// Where CUDA variants run.
    #[serde(default)]
    pub device: DeviceRequest,
    /// Seconds that a call of user code may take; a worker in which one takes longer ends.
    #[serde(default = "usual_timeout")]
    pub timeout_seconds: f64,
}

fn usual_timeout() -> f64 {
    USUAL_TIMEOUT.as_secs_f64()
}

/// One cell, by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellRequest {
    /// `module::path::kernel`.
    pub kernel: String,
    /// Element type.
    #[serde(rename = "type")]
    pub element: String,
    /// Values of the axes, in the kernel's order.
    pub size: Vec<usize>,
    /// The rows.
    pub rows: Vec<RowRequest>,
}

/// One row of a cell, by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowRequest {
    /// The variant.
    pub variant: String,
    /// Threads of its own pool; none for the calling thread or rayon's global pool.
    pub threads: Option<usize>,
    /// How its calls are timed.
    #[serde(default)]
    pub mode: Mode,
    /// Digest of its data and its results, as a check found them to be right: only other results are compared again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<u64>,
    /// What a check saw of one of its calls: calibration need not find it out again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_call: Option<CheckedCall>,
    /// Whether its results are compared with the reference after timing: not where that would take too long.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub is_compared: bool,
    /// Which build of the program is asked; a worker need not know.
    #[serde(skip)]
    pub program: Program,
}

fn is_yes(yes: &bool) -> bool {
    *yes
}

/// A build of the program that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// The one that runs.
    #[default]
    Now,
    /// An older one that was kept.
    Past,
}

/// What samples should be like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Seconds that a sample should last.
    pub sample_seconds: f64,
    /// Seconds of untimed calls before a row is calibrated.
    pub warm_up_seconds: f64,
    /// A fixed number of calls per sample.
    pub iterations: Option<u64>,
    /// Seconds after which no further cell is calibrated, and of a cell with many rows no further row.
    pub patience_seconds: f64,
}

/// Which device rows run on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRequest {
    /// Its number.
    #[serde(default)]
    pub ordinal: usize,
    /// Folder to which the assembly of device code is written.
    #[serde(default)]
    pub dump: Option<PathBuf>,
    /// Whether all devices are left alone, also by functions of the host that look for one.
    #[serde(default)]
    pub off: bool,
}

/// Which rows to check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckRequest {
    /// Version of the protocol.
    pub protocol: u32,
    /// Seed of the data.
    pub seed: u64,
    /// At which sizes.
    pub coverage: Coverage,
    /// In which regimes; in all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regimes: Option<Vec<Regime>>,
    /// The cells with their rows; modes do not matter.
    pub cells: Vec<CellRequest>,
    /// Where CUDA variants run.
    #[serde(default)]
    pub device: DeviceRequest,
    /// Whether the sources of CUDA variants are compiled side by side, and not each when it is first asked for.
    #[serde(default)]
    pub together: bool,
    /// Seconds that a call of user code may take; a worker in which one takes longer ends.
    #[serde(default = "usual_timeout")]
    pub timeout_seconds: f64,
}

/// What was found about a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CheckedReply {
    /// The row. [`Reply::from_json`] reads it by itself.
    #[serde(flatten, skip_deserializing)]
    pub place: Place,
    /// What is wrong with it.
    pub wrong: Option<WrongReply>,
    /// Why it cannot run, when that is nobody's fault.
    pub declined: Option<String>,
    /// Whether its process is of no use to others any more: its device is lost, or threads were left in it.
    pub ends: bool,
    /// Distance from the reference.
    pub errors: Option<ErrorFigures>,
    /// Remarks.
    pub remarks: Vec<Remark>,
    /// Why its results were not compared, or not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// How many mistakes in its results would be noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutations: Option<Mutations>,
    /// Under which circumstances it was called.
    #[serde(default)]
    pub coverage: Covered,
    /// Digest of its data and its results, if they are right and two calls gave the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<u64>,
    /// Its last call; none where it was not called at its own size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_call: Option<CheckedCall>,
}

/// What is wrong with a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WrongReply {
    /// In words.
    pub reason: String,
    /// Whether it broke, and did not just give a wrong result.
    pub is_fault: bool,
    /// At which size.
    pub size: String,
    /// With which seed.
    pub seed: u64,
    /// Who chose the size.
    pub origin: Origin,
    /// What else is special about the call.
    #[serde(default, skip_serializing_if = "Circumstance::is_usual")]
    pub circumstance: Circumstance,
}

/// Which blocks to take.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Visits {
    /// The cells to visit, round-robin.
    pub cells: Vec<Visit>,
    /// Seconds after which no block is begun, except the first of every cell.
    pub seconds: f64,
    /// Whether every sample is announced: a worker has ended, and nobody knows why.
    #[serde(default)]
    pub announce: bool,
    /// Whether another process was measured since the last request, so that caches are not as this one left them.
    #[serde(default)]
    pub settle: bool,
    /// The processor to run on, if that is allowed: the one on which that other process was.
    #[serde(default)]
    pub processor: Option<usize>,
}

/// Blocks of one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Visit {
    /// Position among the prepared cells.
    pub cell: usize,
    /// How many blocks.
    pub blocks: u32,
    /// Whether a block has one sample of each row, in random order, instead of two in mirrored order.
    #[serde(default)]
    pub single: bool,
    /// Whether the rows of such a block come in the reverse of the order of the last one.
    #[serde(default)]
    pub reverse: bool,
    /// Nanoseconds of the chain beside the rows of this cell when the machine is quiet, as far as is known.
    #[serde(default)]
    pub quiet: Option<f64>,
    /// Calls per sample of the rows that are measured.
    pub rows: Vec<VisitRow>,
}

/// Calls per sample of one row.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct VisitRow {
    /// Nanoseconds of the short chain on all threads of a parallel row when the machine is quiet, as far as is known.
    #[serde(default)]
    pub crew: Option<f64>,
    /// Position among the rows of the prepared cell.
    pub row: usize,
    /// What calibration found.
    pub calibration: RowCalibration,
}

impl VisitRow {
    /// The same with untimed calls.
    pub(super) fn warming_up(self) -> Self {
        VisitRow { calibration: self.calibration.warm_up(), ..self }
    }
}

/// What a worker answers.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// Code of the user's is about to run, for the first time in this process or because the controller wants to know
    /// every time: should the process end here, this is why.
    Calling(Place),
    /// What was announced came back.
    Called,
    /// A variant is about to be checked at a size: should the process end here, this is where.
    Trying(Attempt),
    /// A call took longer than it may; the process ends.
    Overdue(OverdueReply),
    /// A cell is ready.
    Prepared(PreparedCell),
    /// A block was taken.
    Block(VisitedBlock),
    /// A row failed; it is left out from now on.
    Failed(FailedRow),
    /// A row cannot be measured like this, which is no fault of it; it is left out from now on.
    Declined(FailedRow),
    /// What was found out about a row.
    Inspected(InspectedRow),
    /// What was found when its results were compared.
    Checked(CheckedReply),
    /// Sources of CUDA variants are being compiled side by side: no row is to blame should the process end here.
    Compiling {
        /// Sources that are done.
        done: usize,
        /// All of them.
        total: usize,
    },
    /// What the device is capable of.
    Ceilings(Ceilings),
    /// The request is done.
    Done(Done),
    /// The request cannot be met.
    Refused {
        /// Why.
        reason: String,
    },
}

/// A row of a cell, or what makes the data of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Position among the cells of the request.
    pub cell: usize,
    /// Position among its rows; none when the data of the cell is made.
    pub row: Option<usize>,
}

/// A call that took too long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverdueReply {
    /// Whose call it is. [`Reply::from_json`] reads it by itself.
    #[serde(flatten, skip_deserializing)]
    pub place: Place,
    /// How long it was waited for.
    pub seconds: f64,
}

/// A cell that is ready to be measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PreparedCell {
    /// Position in the request.
    pub cell: usize,
    /// Bytes that its data takes.
    pub bytes: usize,
    /// Bytes that one call moves by default: every operand once, outputs once more when they are also read.
    pub moved_bytes: usize,
    /// Seconds that making its data took.
    #[serde(default)]
    pub seconds: f64,
    /// What calibration found, in the order of the rows; none for rows that failed or whose turn did not come, and when it was
    /// not asked for.
    pub calibrations: Vec<Option<RowCalibration>>,
}

/// One block of one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VisitedBlock {
    /// Position among the prepared cells.
    pub cell: usize,
    /// The block. [`Reply::from_json`] reads it by itself.
    #[serde(flatten, skip_deserializing)]
    pub block: Block,
}

/// One visit to all rows of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// In the order in which they were taken.
    pub samples: Vec<Sample>,
    /// Whether the sentinels were so slow that the block was taken once more.
    pub requeued: bool,
    /// Whether something slowed the device down that is no property of a kernel; it was taken once more, too.
    #[serde(default)]
    pub throttled: bool,
}

/// The time of one sample, and of the sentinels beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Index of the row in its cell.
    pub row: usize,
    /// Nanoseconds per call, without the overhead of the clock.
    #[serde(deserialize_with = "not_negative")]
    pub nanoseconds: f64,
    /// Nanoseconds of the arithmetic chain: the geometric mean of before and after.
    #[serde(deserialize_with = "positive")]
    pub chain: f64,
    /// Nanoseconds of the memory sweep, for cells whose data does not fit in a core's own cache: the geometric mean of
    /// before and after the block.
    #[serde(default, deserialize_with = "some_positive")]
    pub sweep: Option<f64>,
    /// Nanoseconds of a short chain on all threads of a parallel row at once, until the last has ended: the longer of before
    /// and after.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_positive")]
    pub crew: Option<f64>,
    /// What was read on the device, for samples that were timed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceReading>,
}

/// A row that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedRow {
    /// Position among the prepared cells.
    pub cell: usize,
    /// Position among its rows; none when the whole cell failed.
    pub row: Option<usize>,
    /// What happened, in words.
    pub failure: String,
    /// Whether it broke something that this process cannot do without: it ends, and others are to go on in another one.
    #[serde(default)]
    pub ends: bool,
}

/// What was counted of a row, per call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InspectedRow {
    /// Position among the prepared cells.
    pub cell: usize,
    /// Position among its rows.
    pub row: usize,
    /// Allocations of one call; none when the allocator is not installed.
    pub allocations: Option<Allocations>,
    /// Events of the processor per call.
    pub counters: Option<CounterFigures>,
    /// What is to be known of calls on a device.
    #[serde(default)]
    pub device: Option<DeviceFigures>,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// Seconds of it that were spent inside kernels or sentinels.
    pub inside_seconds: f64,
    /// Seconds of it that were spent calibrating, inside or not.
    pub calibration_seconds: f64,
    /// The processor on which it ended; none where the system does not tell.
    #[serde(default)]
    pub processor: Option<usize>,
}

/// A time that cannot be nothing: ratios are taken with it.
pub(super) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let time = not_negative(deserializer)?;
    if time > 0.0 { Ok(time) } else { Err(D::Error::custom("no time at all")) }
}

fn some_positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let time: Option<f64> = Option::deserialize(deserializer)?;
    match time {
        Some(time) if time <= 0.0 => Err(D::Error::custom(format!("a time of {time} ns"))),
        time => Ok(time),
    }
}

fn not_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let time = f64::deserialize(deserializer)?;
    if time >= 0.0 { Ok(time) } else { Err(D::Error::custom(format!("a time of {time} ns"))) }
}

impl Reply {
    /// Whether no further reply follows to the same request.
    pub fn is_last(&self) -> bool {
        matches!(self, Reply::Done(_) | Reply::Refused { .. })
    }
}

impl Request {
    /// How long a call of user code may take from now on, where the request says so.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let seconds = match self {
            Request::Prepare(preparation) => preparation.timeout_seconds,
            Request::Check(check) => check.timeout_seconds,
            _ => return None,
        };
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// How long a worker may be silent after it was asked. It tells by itself when a call takes too long; this is for one
    /// that cannot even do that.
    pub(super) fn longest_silence(&self, timeout: Duration) -> Duration {
        /// Calls of user code between two replies: data, reference, and several of a variant.
        const CALLS: u32 = 8;
        /// A process needs time to start, to open a device, to compare results.
        const OTHERWISE: Duration = Duration::from_secs(30);
        let Request::Measure(visits) = self else {
            return timeout.saturating_mul(CALLS).saturating_add(OTHERWISE);
        };
        // Blocks are told of when there are many. The first one is taken however little time there is.
        let seconds = 2.0 * (visits.seconds.max(0.0) + visits.longest_block());
        let measuring = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        timeout.saturating_mul(2).saturating_add(measuring).saturating_add(OTHERWISE)
    }
}

impl Visits {
    /// Seconds that a block of the longest cell should take, with the samples before it that are not reported.
    fn longest_block(&self) -> f64 {
        let seconds = |visit: &Visit| -> f64 {
            visit.rows.iter().map(|row| 3.0 * row.calibration.sample_cost().as_secs_f64()).sum()
        };
        self.cells.iter().map(seconds).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Calls;

    #[test]
    fn a_long_block_is_a_long_silence() {
        let calibration = RowCalibration {
            calls: Calls::once(1),
            wash_out: 0,
            overhead: 0.0,
            estimate: 2e9,
            returned_bytes: 0,
            preparation: 0.0,
        };
        let rows = (0..60).map(|row| VisitRow { row, calibration, crew: None }).collect();
        let visits = Visits {
            cells: vec![Visit {
                cell: 0,
                blocks: 1,
                single: false,
                reverse: false,
                quiet: None,
                rows,
            }],
            seconds: 10.0,
            announce: false,
            settle: false,
            processor: None,
        };
        let longest = Request::Measure(visits).longest_silence(Duration::from_secs(60));
        assert!(longest > Duration::from_secs(3 * 60 * 2), "{longest:?}");
    }

    #[test]
    fn figures_that_no_worker_finds_are_no_reply() {
        let sample = |time: &str, chain: &str| {
            format!(
                r#"{{"reply":"block","cell":0,"requeued":false,
                    "samples":[{{"row":0,"nanoseconds":{time},"chain":{chain},"sweep":null}}]}}"#
            )
        };
        let prepared = |calls: &str, estimate: &str| {
            format!(
                r#"{{"reply":"prepared","cell":0,"bytes":1,"moved_bytes":1,"calibrations":[{{"calls":{calls},
                    "wash_out":1,"overhead":1.0,"estimate":{estimate},"returned_bytes":0,"preparation":0.0}}]}}"#
            )
        };
        let read = |text: &str| Reply::from_json(text).map_err(|e| e.to_string());
        let one = r#"{"per_batch":1,"batches":1}"#;
        assert!(read(&sample("0.0", "1.0")).is_ok() && read(&prepared(one, "1.0")).is_ok());
        let many = r#"{"per_batch":18446744073709551615,"batches":2}"#;
        for (text, reason) in [
            (sample("-1.0", "1.0"), "a time of -1 ns"),
            (sample("1.0", "0.0"), "no time at all"),
            (sample("1e999", "1.0"), "out of range"),
            (prepared(r#"{"per_batch":0,"batches":1}"#, "1.0"), "a sample of no call"),
            (prepared(many, "1.0"), "more than can be counted"),
            (prepared(one, "-5.0"), "a time of -5 ns"),
        ] {
            let error = read(&text).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
    }
}
