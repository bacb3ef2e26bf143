//! Other inputs for rows that were timed: a row that keeps what it has seen is found in the process that timed it.

use std::time::Instant;

use super::Worker;
use super::answer::{Say, announce};
use super::aside::{gate_of, refused};
use super::devices::Workshop;
use super::protocol::{Place, Reply};
use super::subject::{Callable, Subject, SubjectRow};
use crate::check::{Candidate, Reason};
use crate::kernel::{Fault, InPlace};

/// Seconds that making a gibibyte of data takes, and going over it as often as for a row.
const MAKING: f64 = 1.0;
const GOING_OVER: f64 = 2.0;

/// Calls of every row, as long as nothing is suspicious.
const CALLS: f64 = 7.0;

/// Data is made once more, and results are looked at: cells that take more of the memory for data than this are left out.
const LARGEST_SHARE: usize = 4;

impl Worker<'_> {
    /// Gives cells other inputs, in random order and for about as long as asked for. Nothing is measured after it.
    pub(super) fn exchange(&mut self, seconds: f64, say: &mut Say<'_>) {
        let mut left = seconds;
        for cell in self.order.permutation(self.subjects.len()) {
            let Some(cost) = self.cost_of_exchange(cell) else { continue };
            // What takes longer than there is time for has its turn in some of the launches.
            if !self.order.is_true(left / cost) {
                continue;
            }
            let begun = Instant::now();
            self.exchange_cell(cell, say);
            left -= begun.elapsed().as_secs_f64();
            if self.devices.lost().is_some() || self.vigil.is_stopping() {
                return;
            }
        }
    }

    /// Seconds that the exchange of a cell takes; none where it has none.
    fn cost_of_exchange(&self, cell: usize) -> Option<f64> {
        let subject = self.subjects[cell].as_ref()?;
        if subject.bytes() > self.memory / LARGEST_SHARE {
            return None;
        }
        let calibrations = self.calibrations[cell].iter().flatten();
        let (rows, calls) = calibrations.fold((0.0, 0.0), |(rows, calls), calibration| {
            (rows + 1.0, calls + CALLS * calibration.estimate * 1e-9)
        });
        let gibibytes = subject.bytes() as f64 / (1u64 << 30) as f64;
        Some(calls + (MAKING + GOING_OVER * rows) * gibibytes)
    }

    /// Exchanges the inputs of one cell, and calls its rows, until one fails.
    fn exchange_cell(&mut self, cell: usize, say: &mut Say<'_>) {
        let Some(subject) = &mut self.subjects[cell] else { return };
        let gate = gate_of(subject, self.seed, &mut self.devices);
        let Subject { kernel, size, data, rows, .. } = subject;
        let data = data.as_mut();
        announce(&self.vigil, Place { cell, row: None }, say);
        let others = gate.other_inputs(size);
        say(Reply::Called);
        let Ok(mut others) = others else { return };
        let others = others.as_mut();
        let mut call = |row: usize, made: &mut dyn FnMut() -> Result<(), Reason>| {
            let place = Place { cell, row: Some(row) };
            announce(&self.vigil, place, say);
            let expected = self.calibrations[cell][row].map(|c| c.sample_cost());
            self.vigil.watch_calls(place, expected.unwrap_or_default());
            let outcome = made();
            match &outcome {
                Err(reason) if !is_declined(reason) => {
                    let is_end = reason.fault().is_some_and(Fault::ends);
                    let ends = self.devices.lost().is_some() || is_end;
                    say(refused((cell, row), reason, ends));
                }
                _ => say(Reply::Called),
            }
            outcome
        };
        let mut known = Vec::new();
        let mut seen: Vec<&SubjectRow> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            // Modes of a device are ways of timing the same calls.
            let is_device = row.variant.implementation.is_device();
            let is_known = |other: &&SubjectRow| std::ptr::eq(other.variant, row.variant);
            let is_measured = self.calibrations[cell][index].is_some();
            let Some(candidate) = candidate(row).filter(|_| is_measured) else { continue };
            if is_device && seen.iter().any(is_known) {
                continue;
            }
            seen.push(row);
            let mut results = Vec::new();
            let outcome = call(index, &mut || {
                results = gate.call_elsewhere(candidate, data, others)?;
                Ok(())
            });
            match outcome {
                Ok(()) => known.push((index, candidate, results)),
                Err(reason) if is_declined(&reason) => {}
                Err(_) => return,
            }
        }
        if !data.exchange(kernel.in_place != InPlace::No, others) {
            return;
        }
        for (index, candidate, known) in known {
            let outcome = call(index, &mut || {
                gate.call_on_other_inputs(candidate, [&mut *data, &mut *others], &known)
            });
            if outcome.is_err_and(|reason| !is_declined(&reason)) {
                return;
            }
        }
    }
}

/// A row that can be given other inputs: what another program has of the data does not change with it.
fn candidate(row: &SubjectRow) -> Option<Candidate<'_>> {
    let Callable { routine, caller } = row.callable.as_ref().ok()?;
    let is_foreign = row.variant.implementation.foreign().is_some();
    let routine = routine.as_ref();
    (!is_foreign).then_some(Candidate { variant: row.variant, routine, caller })
}

fn is_declined(reason: &Reason) -> bool {
    matches!(reason.fault(), Some(Fault::Declined(_)))
}
