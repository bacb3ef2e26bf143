//! One block: every row of a cell in random order and then in the reverse of that order, each sample between two readings
//! of the chain, and the whole between two readings of the sweep.

use std::time::{Duration, Instant};

use super::calibrate::{RowCalibration, nanoseconds};
use super::protocol::{Block, Sample, VisitRow};
use super::sentinel::{MEMORY_BOUND, Sentinels};
use super::subject::{Subject, SubjectRow};
use crate::kernel::{Backend, Calls, Fault, InPlace, Sampled, guard};

/// What a visit to a cell gave.
#[derive(Default)]
pub(super) struct Visited {
    pub(super) block: Block,
    /// Rows that failed, and how.
    pub(super) faults: Vec<(usize, Fault)>,
    /// Nanoseconds inside kernels and sentinels.
    pub(super) inside: f64,
}

/// Takes one block of the given rows, in the given order; each sample is announced before it is taken, and so is the end.
pub(super) fn visit(
    subject: &mut Subject,
    rows: &[VisitRow],
    turns: &[usize],
    sentinels: &mut Sentinels,
    announce: &mut dyn FnMut(Option<&VisitRow>),
) -> Visited {
    let mut visited = Visited::default();
    let first_sweep = read_sweep(subject, sentinels, &mut visited);
    let mut before = sentinels.chain();
    visited.inside += before;
    for position in turns.iter().copied() {
        let VisitRow { row, calibration, .. } = rows[position];
        if visited.faults.iter().any(|(failed, _)| *failed == row) {
            continue;
        }
        announce(Some(&rows[position]));
        if subject.kernel.in_place == InPlace::Reuse {
            // A call on the last result is as good, says its author. But results should neither grow nor vanish, and every row
            // should find the same ones.
            subject.data.reset();
        }
        let right = subject.poison_for(row, &calibration);
        let first_crew = read_crew(subject, row, sentinels, &mut visited);
        let timed = sample(subject, row, &calibration);
        let after = sentinels.chain();
        visited.inside += after;
        let last_crew = read_crew(subject, row, sentinels, &mut visited);
        match timed {
            Ok(Timed { wash_out, sample: Sampled { time, device } }) => {
                visited.inside += nanoseconds(wash_out) + nanoseconds(time);
                let nanoseconds = calibration.per_call(time);
                let chain = between(before, after);
                let crew = first_crew.zip(last_crew).map(|(first, last)| first.max(last));
                let sweep = None;
                right.inspect(|right| subject.look_at(row, *right));
                visited.block.samples.push(Sample { row, nanoseconds, chain, sweep, crew, device });
            }
            Err(fault) => visited.faults.push((row, fault)),
        }
        before = after;
    }
    announce(None);
    let last_sweep = read_sweep(subject, sentinels, &mut visited);
    let sweep = first_sweep.zip(last_sweep).map(|(first, last)| between(first, last));
    visited.block.samples.iter_mut().for_each(|sample| sample.sweep = sweep);
    visited
}

/// The sweep, for a cell whose data does not fit in a core's own cache.
fn read_sweep(subject: &Subject, sentinels: &mut Sentinels, visited: &mut Visited) -> Option<f64> {
    let sweep = (subject.bytes() > MEMORY_BOUND).then(|| sentinels.sweep())?;
    visited.inside += sweep;
    Some(sweep)
}

/// The chain on all threads, for a row that uses several. It also wakes them, as a call just before would have.
fn read_crew(
    subject: &Subject,
    row: usize,
    sentinels: &Sentinels,
    visited: &mut Visited,
) -> Option<f64> {
    let SubjectRow { variant, callable, .. } = &subject.rows[row];
    let callable = callable.as_ref().ok().filter(|_| variant.backend == Backend::Parallel)?;
    // Threads that share their cores with each other always wait.
    let has_cores = callable.caller.threads()? <= sentinels.cores();
    // The time spent includes waking the threads; the reading does not.
    let begun = Instant::now();
    let crew = has_cores.then(|| sentinels.crew(&callable.caller))?;
    visited.inside += nanoseconds(begun.elapsed());
    Some(crew)
}

/// The geometric mean of two readings.
fn between(before: f64, after: f64) -> f64 {
    (before * after).sqrt()
}

/// Times of one sample and of the untimed calls before it.
pub(super) struct Timed {
    pub(super) wash_out: Duration,
    pub(super) sample: Sampled,
}

/// One sample of one row, after its wash-out.
pub(super) fn sample(
    subject: &mut Subject,
    row: usize,
    calibration: &RowCalibration,
) -> Result<Timed, Fault> {
    let Subject { data, rows, .. } = subject;
    let callable = rows[row].callable.as_ref().map_err(|reason| Fault::Failed(reason.clone()))?;
    let data = data.as_mut();
    guard(|| {
        let wash_out = match calibration.wash_out {
            0 => Duration::ZERO,
            calls => callable.routine.sample(data, Calls::once(calls), &callable.caller)?.time,
        };
        let sample = callable.routine.sample(data, calibration.calls, &callable.caller)?;
        Ok(Timed { wash_out, sample })
    })
    .flatten()
}
