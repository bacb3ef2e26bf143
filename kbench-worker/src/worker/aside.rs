//! What a worker does besides timing: looking at results once more, counting, calling for a profiler.

use super::Worker;
use super::answer::{Say, announce, failed, leaking};
use super::block::sample;
use super::calibrate::RowCalibration;
use super::devices::{Devices, Workshop};
use super::protocol::{FailedRow, InspectedRow, Place, Reply};
use super::subject::{Subject, SubjectRow, TimedOutputs};
use crate::check::{Expected, Gate, Reason, Timed};
use crate::cuda::DeviceFigures;
use crate::gauge::Counters;
use crate::kernel::{Backend, CellData, Fault, Mode, VariantEntry};
use crate::plan::Size;

impl Worker<'_> {
    /// Looks once more at every variant's results on the data that it was timed on.
    pub(super) fn recheck(&mut self, say: &mut Say<'_>) {
        for (cell, subject) in self.subjects.iter_mut().enumerate() {
            let Some(subject) = subject else { continue };
            let gate = gate_of(subject, self.seed, &mut self.devices);
            let mut review = CellReview { gate, expected: None, right: Vec::new(), reads: None };
            for row in 0..subject.rows.len() {
                let Some(calibration) = self.calibrations[cell][row] else { continue };
                if subject.rows[row].callable.is_err() {
                    continue;
                }
                let place = Place { cell, row: Some(row) };
                announce(&self.vigil, place, say);
                self.vigil.watch_calls(place, calibration.sample_cost());
                self.ledger.settle();
                let mut tell = |is_begun: bool| match is_begun {
                    true => announce(&self.vigil, Place { cell, row: None }, say),
                    false => say(Reply::Called),
                };
                let found = review.look(subject, row, &calibration, &mut tell);
                self.ledger.note((cell, row));
                if let Err(reason) = found {
                    review.reads = None;
                    let is_end = reason.fault().is_some_and(Fault::ends);
                    let ends = self.devices.lost().is_some() || is_end;
                    say(refused((cell, row), &reason, ends));
                    if ends {
                        return;
                    }
                }
                if let Some(leak) = self.ledger.leak() {
                    return say(leaking(&leak));
                }
                say(Reply::Called);
            }
        }
    }

    /// Counts what one call of every row allocates, and what one sample makes the processor do; finds out what is to be
    /// known of calls on a device.
    pub(super) fn inspect(&mut self, processor: bool, say: &mut Say<'_>) {
        let mut counters = Counters::open().ok();
        for (cell, subject) in self.subjects.iter_mut().enumerate() {
            let Some(subject) = subject else { continue };
            // They are the same in all modes.
            let mut of_device: Vec<(*const VariantEntry, DeviceFigures)> = Vec::new();
            for row in 0..subject.rows.len() {
                let Some(calibration) = self.calibrations[cell][row] else { continue };
                let is_device = subject.rows[row].variant.implementation.is_device();
                if !is_device && !processor {
                    continue;
                }
                let place = Place { cell, row: Some(row) };
                announce(&self.vigil, place, say);
                self.vigil.watch_calls(place, calibration.sample_cost());
                if is_device {
                    let variant = subject.rows[row].variant;
                    let known = of_device.iter().find(|(of, _)| std::ptr::eq(*of, variant));
                    let figures = match known {
                        Some((_, figures)) => Some(Ok(figures.clone())),
                        None => subject.figures(row),
                    };
                    match figures {
                        Some(Ok(figures)) => {
                            of_device.push((variant, figures.clone()));
                            say(Reply::Inspected(InspectedRow {
                                cell,
                                row,
                                allocations: None,
                                counters: None,
                                device: Some(figures),
                            }));
                        }
                        Some(Err(fault)) => {
                            let ends = self.devices.lost().is_some();
                            say(failed(cell, row, &fault, ends));
                            if ends {
                                return;
                            }
                        }
                        None => {}
                    }
                    say(Reply::Called);
                    continue;
                }
                self.ledger.settle();
                let called = subject.call(row).map(|returned| returned.allocations);
                let Ok(allocations) = called else {
                    say(Reply::Called);
                    continue;
                };
                // Only the calling thread is counted, and of a parallel variant that is the one that waits.
                let is_serial = subject.rows[row].variant.backend == Backend::Serial;
                // With cold caches, most of what is counted would be the eviction.
                let is_countable = is_serial && !subject.data.is_cold();
                let counters = counters.as_mut().filter(|_| is_countable).map(|counters| {
                    let once = RowCalibration { wash_out: 0, ..calibration };
                    let (_, figures) = counters.count(|| sample(subject, row, &once));
                    figures.per_call(once.calls.total())
                });
                self.ledger.note((cell, row));
                if let Some(leak) = self.ledger.leak() {
                    return say(leaking(&leak));
                }
                let device = None;
                say(Reply::Inspected(InspectedRow { cell, row, allocations, counters, device }));
                say(Reply::Called);
            }
        }
    }

    /// Calls every row once inside a range of the profiler's.
    pub(super) fn profile(&mut self, say: &mut Say<'_>) {
        for (cell, subject) in self.subjects.iter_mut().enumerate() {
            let Some(subject) = subject else { continue };
            for row in 0..subject.rows.len() {
                announce(&self.vigil, Place { cell, row: Some(row) }, say);
                if let Err(fault) = subject.profile(row) {
                    let ends = self.devices.lost().is_some();
                    say(failed(cell, row, &fault, ends));
                    if ends {
                        return;
                    }
                }
                say(Reply::Called);
            }
        }
    }
}

/// The rules by which results of a subject are compared.
pub(super) fn gate_of(subject: &Subject, seed: u64, devices: &mut Devices) -> Gate {
    let own_function = subject.own_function;
    let is_device = own_function.is_some_and(|own| own.implementation.is_device());
    let device = if is_device { devices.caller(Mode::Hot).ok() } else { None };
    Gate::new(subject.kernel, own_function, seed).with_device(device)
}

/// What is said of a row that is not right any more.
pub(super) fn refused((cell, row): (usize, usize), reason: &Reason, ends: bool) -> Reply {
    match reason.fault() {
        Some(declined @ Fault::Declined(_)) => failed(cell, row, declined, ends),
        _ => {
            let failure = reason.to_string();
            Reply::Failed(FailedRow { cell, row: Some(row), failure, ends })
        }
    }
}

/// The results of one cell after timing, row by row.
struct CellReview {
    gate: Gate,
    /// What should come out: known from the first row on whose results are others than those that a check found right.
    expected: Option<Result<Option<Expected>, Reason>>,
    /// Outputs of variants that were found right. In another mode such a variant should have the same.
    right: Vec<(*const VariantEntry, u64)>,
    /// Digest of the inputs, as long as no row has changed them.
    reads: Option<u64>,
}

/// Told when the reference is about to be called, and when it came back.
type Tell<'a> = dyn FnMut(bool) + 'a;

impl CellReview {
    /// Looks at the results of a row: those of a timed call if they were kept, else those of one more sample.
    fn look(
        &mut self,
        subject: &mut Subject,
        row: usize,
        calibration: &RowCalibration,
        tell: &mut Tell<'_>,
    ) -> Result<(), Reason> {
        let Subject { size, data, rows, reads: reads_before, .. } = subject;
        let SubjectRow { variant, callable, timed, digest, is_compared, .. } = &rows[row];
        let callable = callable.as_ref().map_err(|r| Reason::Fault(Fault::Failed(r.clone())))?;
        let data = data.as_mut();
        let reads = *self.reads.get_or_insert_with(|| data.reads_fingerprint());
        match timed.as_ref().filter(|_| *reads_before == Some(reads)) {
            Some(TimedOutputs::Right) => return Ok(()),
            Some(TimedOutputs::Other(outputs)) => {
                let results = (outputs.clone(), data.roundoffs());
                return self.compare(variant, results, (data, size), tell);
            }
            None => {}
        }
        let (routine, caller) = (callable.routine.as_ref(), &callable.caller);
        let (calls, returns) = (calibration.calls, calibration.returned_bytes > 0);
        let mut timed = Timed { routine, data, caller, calls, returns };
        let same = self.right.iter().find(|(of, _)| std::ptr::eq(*of, *variant));
        if let Some((_, outputs)) = same
            && self.gate.repeats(&mut timed, *outputs)?
        {
            return Ok(());
        }
        let repeated = self.gate.repeat(&mut timed, reads)?;
        let outputs = repeated.outputs;
        if *is_compared && *digest != Some(repeated.digest) {
            let results = repeated.results(timed.data);
            self.compare(variant, results, (timed.data, size), tell)?;
        }
        self.right.push((*variant, outputs));
        Ok(())
    }

    /// Compares results with those of the reference.
    fn compare(
        &mut self,
        variant: &VariantEntry,
        results: (Vec<Vec<f64>>, Vec<f64>),
        (data, size): (&mut dyn CellData, &Size),
        tell: &mut Tell<'_>,
    ) -> Result<(), Reason> {
        let expected = self.expected.get_or_insert_with(|| {
            tell(true);
            let expected = self.gate.expected(data, size);
            tell(false);
            expected
        });
        match expected.as_ref().map_err(Clone::clone)? {
            Some(expected) => self.gate.recheck(variant, size, results, expected),
            None => Ok(()),
        }
    }
}
