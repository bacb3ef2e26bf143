//! Other inputs for rows that were timed: a row that keeps what it has seen is found in the process that timed it.

use std::time::Duration;

use super::Worker;
use super::answer::{Say, announce, failed};
use super::devices::Workshop;
use super::protocol::{FailedRow, Place, Reply};
use super::subject::{Callable, Subject};
use crate::check::{Candidate, Gate, Reason};
use crate::kernel::{Fault, InPlace, Mode};

/// Seconds that data of a gibibyte takes.
const MAKING: f64 = 1.0;

/// Calls of every row, as long as nothing is suspicious.
const CALLS: f64 = 3.0;

impl Worker<'_> {
    /// Gives cells other inputs, in random order and for about as long as asked for. Nothing is measured after it.
    pub(super) fn exchange(&mut self, seconds: f64, say: &mut Say<'_>) {
        let mut left = seconds;
        for cell in self.order.permutation(self.subjects.len()) {
            let cost = self.cost_of_exchange(cell);
            // What takes longer than there is time for has its turn in some of the launches.
            if cost <= 0.0 || !self.order.is_true(left / cost) {
                continue;
            }
            left -= cost;
            if self.exchange_cell(cell, say) || self.vigil.is_stopping() {
                return;
            }
        }
    }

    /// Seconds that the exchange of a cell takes; 0 where there is nothing to exchange.
    fn cost_of_exchange(&self, cell: usize) -> f64 {
        let Some(subject) = &self.subjects[cell] else { return 0.0 };
        let calls = self.calibrations[cell].iter().flatten();
        let calls = calls.map(|calibration| CALLS * calibration.estimate * 1e-9).sum::<f64>();
        calls + MAKING * subject.bytes() as f64 / (1u64 << 30) as f64
    }

    /// Exchanges the inputs of one cell, and calls its rows; gives whether the process is of no use any more.
    fn exchange_cell(&mut self, cell: usize, say: &mut Say<'_>) -> bool {
        let Some(subject) = &mut self.subjects[cell] else { return false };
        let is_device = subject.own_function.is_some_and(|own| own.implementation.is_device());
        let device = if is_device { self.devices.caller(Mode::Hot).ok() } else { None };
        let gate = Gate::new(subject.kernel, subject.own_function, self.seed).with_device(device);
        let rows: Vec<usize> = (0..subject.rows.len())
            .filter(|row| self.calibrations[cell][*row].is_some() && subject.is_exchangeable(*row))
            .collect();
        // The kernel's own function tells what should come out.
        let Some(first) = rows.iter().copied().max_by_key(|row| subject.rows[*row].variant.is_base)
        else {
            return false;
        };
        let in_place = subject.kernel.in_place != InPlace::No;
        let Subject { size, data, rows: subject_rows, .. } = subject;
        let data = data.as_mut();
        let candidate = |row: usize| {
            let row = &subject_rows[row];
            let Callable { routine, caller } = row.callable.as_ref().ok()?;
            Some(Candidate { variant: row.variant, routine: routine.as_ref(), caller })
        };
        let Some(of_first) = candidate(first) else { return false };
        let cost =
            |row: usize| self.calibrations[cell][row].map_or(Duration::ZERO, |c| c.sample_cost());
        announce(&self.vigil, Place { cell, row: None }, say);
        let others = gate.others(of_first, size, data);
        say(Reply::Called);
        // What fails here has failed in a check, or will where it is called next.
        let Ok(Some(mut others)) = others else { return self.devices.lost().is_some() };
        if !data.exchange(in_place, others.data.as_mut()) {
            return false;
        }
        for row in rows {
            let Some(candidate) = candidate(row) else { continue };
            let place = Place { cell, row: Some(row) };
            announce(&self.vigil, place, say);
            self.vigil.watch_calls(place, cost(row));
            let found = gate.calls_on_others(candidate, size, data, &mut others);
            let Err(reason) = found else {
                say(Reply::Called);
                continue;
            };
            let ends = self.devices.lost().is_some();
            if !matches!(reason.fault(), Some(Fault::Declined(_))) {
                say(refused((cell, row), &reason, ends));
            }
            return ends;
        }
        false
    }
}

/// What is said of a row that is wrong on other inputs.
fn refused((cell, row): (usize, usize), reason: &Reason, ends: bool) -> Reply {
    match reason.fault() {
        Some(fault) => failed(cell, row, fault, ends),
        None => {
            let failure = reason.to_string();
            Reply::Failed(FailedRow { cell, row: Some(row), failure, ends })
        }
    }
}
