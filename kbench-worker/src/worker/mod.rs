//! Workers: the processes in which calls are timed.
//!
//! A run has several launches, one worker process each, so that the placement of code and data, pools and clocks are
//! sampled instead of being a hidden constant. The controller names cells and rows; a worker makes their data and visits
//! the cells round-robin. One visit is a *block*: every row of the cell in random order and then in the reverse of that
//! order, so that a drift of the machine hits all rows alike and the seed, not the clock, decides who comes first. Before
//! each sample the same row runs untimed for a while, so that it finds the caches as it leaves them; before and after it,
//! *sentinels* tell how fast the machine is at that moment.
//!
//! A block that was taken on a busy machine, as its sentinels tell, is taken once more. No sample is ever left out
//! because of its own time.

mod answer;
mod aside;
mod block;
mod calibrate;
mod checker;
mod checks;
mod devices;
mod duet;
mod exchange;
mod ledger;
mod link;
mod order;
#[cfg(unix)]
mod process;
mod profile;
mod protocol;
mod quiet;
mod reading;
mod sentinel;
#[cfg(unix)]
mod serve;
mod side_by_side;
mod subject;
mod watchdog;

pub use answer::Worker;
pub use calibrate::{MEMORY_CAP, RowCalibration};
pub use checks::WorkerChecks;
pub use duet::Duet;
pub use link::MOST_PARDONS;
pub use link::{Launcher, Link, LinkError, SameProcess};
pub use order::Order;
#[cfg(unix)]
pub use process::Processes;
pub use profile::profile_rows;
pub use protocol::{
    Block, CellRequest, CheckRequest, CheckedReply, DeviceRequest, Done, FailedRow, ForeignRequest,
    InspectedRow, OverdueReply, PROTOCOL, Place, Preparation, PreparedCell, Program, Reply,
    Request, Review, RowRequest, Sample, Sampling, Visit, VisitRow, VisitedBlock, Visits,
    WrongReply,
};
pub use quiet::{chain_of, is_contaminated, is_disturbed, quiet_level};
#[cfg(unix)]
pub use serve::serve;
pub use watchdog::USUAL_TIMEOUT;

#[cfg(test)]
mod tests;
