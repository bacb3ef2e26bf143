//! One block: every row of a cell in random order and then in the reverse of that order, each sample between two readings
//! of the sentinels.

use std::time::Duration;

use super::Order;
use super::calibrate::{RowCalibration, nanoseconds};
use super::protocol::{Block, Sample, VisitRow};
use super::sentinel::{MEMORY_BOUND, Reading, Sentinels};
use super::subject::Subject;
use crate::kernel::{Calls, Fault, InPlace, guard};

/// What a visit to a cell gave.
#[derive(Default)]
pub(super) struct Visited {
    pub(super) block: Block,
    /// Rows that failed, and how.
    pub(super) faults: Vec<(usize, Fault)>,
    /// Nanoseconds inside kernels and sentinels.
    pub(super) inside: f64,
}

/// Takes one mirrored block of the given rows.
pub(super) fn visit(
    subject: &mut Subject,
    rows: &[VisitRow],
    order: &mut Order,
    sentinels: &mut Sentinels,
) -> Visited {
    let memory_bound = subject.bytes() > MEMORY_BOUND;
    let mut visited = Visited::default();
    let mut before = sentinels.read(memory_bound);
    visited.inside += before.nanoseconds();
    for position in order.mirrored(rows.len()) {
        let VisitRow { row, calibration } = rows[position];
        if visited.faults.iter().any(|(failed, _)| *failed == row) {
            continue;
        }
        let timed = sample(subject, row, &calibration);
        let after = sentinels.read(memory_bound);
        visited.inside += after.nanoseconds();
        match timed {
            Ok(timed) => {
                visited.inside += nanoseconds(timed.wash_out) + nanoseconds(timed.sample);
                visited.block.samples.push(anchored(
                    row,
                    timed.sample,
                    &calibration,
                    before.between(after),
                ));
            }
            Err(fault) => visited.faults.push((row, fault)),
        }
        before = after;
    }
    visited
}

fn anchored(row: usize, time: Duration, calibration: &RowCalibration, anchor: Reading) -> Sample {
    let Reading { chain, sweep } = anchor;
    Sample { row, nanoseconds: calibration.per_call(time), chain, sweep }
}

/// Times of one sample and of the untimed calls before it.
pub(super) struct Timed {
    pub(super) wash_out: Duration,
    pub(super) sample: Duration,
}

/// One sample of one row, after its wash-out.
pub(super) fn sample(
    subject: &mut Subject,
    row: usize,
    calibration: &RowCalibration,
) -> Result<Timed, Fault> {
    let Subject { kernel, data, rows, .. } = subject;
    let callable = rows[row].callable.as_ref().map_err(|reason| Fault::Failed(reason.clone()))?;
    let data = data.as_mut();
    guard(|| {
        if kernel.in_place == InPlace::Reuse {
            data.reset();
        }
        let wash_out = match calibration.wash_out {
            0 => Duration::ZERO,
            calls => callable.routine.sample(data, Calls::once(calls), &callable.caller)?,
        };
        let sample = callable.routine.sample(data, calibration.calls, &callable.caller)?;
        Ok(Timed { wash_out, sample })
    })
    .flatten()
}
