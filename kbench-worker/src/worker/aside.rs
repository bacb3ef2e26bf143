//! What a worker does besides timing: looking at results once more, counting, calling for a profiler.

use super::Worker;
use super::answer::{Say, announce, failed, leaking};
use super::block::sample;
use super::calibrate::RowCalibration;
use super::devices::Workshop;
use super::protocol::{FailedRow, InspectedRow, Place, Reply};
use super::subject::{Subject, TimedOutputs};
use crate::check::{Gate, Reason, Timed};
use crate::cuda::DeviceFigures;
use crate::gauge::Counters;
use crate::kernel::{Backend, CellData, Fault, Mode, VariantEntry};

impl Worker<'_> {
    /// Looks once more at every variant's results on the data that it was timed on.
    pub(super) fn recheck(&mut self, say: &mut Say<'_>) {
        for (cell, subject) in self.subjects.iter_mut().enumerate() {
            let Some(subject) = subject else { continue };
            let Subject { kernel, own_function, size, data, rows, reads: reads_before, .. } =
                subject;
            let is_device = own_function.is_some_and(|own| own.implementation.is_device());
            let device = if is_device { self.devices.caller(Mode::Hot).ok() } else { None };
            let gate = Gate::new(kernel, *own_function, self.seed).with_device(device);
            // The reference is called for the first row whose results are others than those that a check found right.
            let mut expected = None;
            // Outputs of variants that were found right. In another mode such a variant should have the same.
            let mut right: Vec<(*const VariantEntry, u64)> = Vec::new();
            // Digest of the inputs, as long as no row has changed them.
            let mut reads = None;
            for (row, found) in rows.iter().enumerate() {
                let calibration = self.calibrations[cell][row];
                let (Some(calibration), Ok(callable)) = (calibration, &found.callable) else {
                    continue;
                };
                let place = Place { cell, row: Some(row) };
                announce(&self.vigil, place, say);
                self.vigil.watch_calls(place, calibration.sample_cost());
                let mut timed = Timed {
                    routine: callable.routine.as_ref(),
                    data: data.as_mut(),
                    caller: &callable.caller,
                    calls: calibration.calls,
                };
                self.ledger.settle();
                let known = right.iter().find(|(of, _)| std::ptr::eq(*of, found.variant));
                let known = known.map(|(_, outputs)| *outputs);
                let reads_now = *reads.get_or_insert_with(|| timed.data.reads_fingerprint());
                let of_timed = found.timed.as_ref().filter(|_| *reads_before == Some(reads_now));
                let mut compare = |results: (Vec<Vec<f64>>, Vec<f64>), data: &mut dyn CellData| {
                    let expected = expected.get_or_insert_with(|| {
                        announce(&self.vigil, Place { cell, row: None }, say);
                        let expected = gate.expected(data, size);
                        say(Reply::Called);
                        expected
                    });
                    match expected.as_ref().map_err(Clone::clone)? {
                        Some(expected) => gate.recheck(found.variant, results, expected),
                        None => Ok(()),
                    }
                };
                let mut look = || -> Result<(), Reason> {
                    match of_timed {
                        Some(TimedOutputs::Right) => return Ok(()),
                        Some(TimedOutputs::Other(outputs)) => {
                            let results = (outputs.clone(), timed.data.roundoffs());
                            return compare(results, timed.data);
                        }
                        None => {}
                    }
                    if let Some(outputs) = known
                        && gate.repeats(&mut timed, outputs)?
                    {
                        return Ok(());
                    }
                    let repeated = gate.repeat(&mut timed, reads_now)?;
                    let outputs = repeated.outputs;
                    if found.is_compared && found.digest != Some(repeated.digest) {
                        compare(repeated.results(timed.data), timed.data)?;
                    }
                    right.push((found.variant, outputs));
                    Ok(())
                };
                let checked = look();
                self.ledger.note((cell, row));
                if let Err(reason) = checked {
                    reads = None;
                    let fault = reason.fault();
                    let ends = self.devices.lost().is_some() || fault.is_some_and(Fault::ends);
                    say(match fault {
                        Some(declined @ Fault::Declined(_)) => failed(cell, row, declined, ends),
                        _ => {
                            let failure = reason.to_string();
                            Reply::Failed(FailedRow { cell, row: Some(row), failure, ends })
                        }
                    });
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
                let counters = counters.as_mut().filter(|_| is_serial).map(|counters| {
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
