//! Looking once more at variants that were timed, on the data and in the memory that they were timed on.

use super::Reason;
use super::compare::compare;
use super::exercise::{Expected, all_outputs};
use super::gate::{Callable, Gate, Subject, digest_of, results_of};
use super::memory::MANY_ELEMENTS;
use crate::kernel::{
    Caller, Calls, CellData, Fault, InPlace, Returned, Routine, VariantEntry, guard,
};
use crate::plan::Size;
use crate::value::{Draw, Fingerprint, Poison};

/// Added to the seed for inputs that rows are not timed on.
const OTHER_SEED: u64 = 2;

/// Results that are so far apart, relative to their magnitude, are not of the same inputs: rounding moves none as far.
const FAR_OFF: f64 = 1e-2;

/// Elements of an output that are compared: a kept answer is wrong in most of them.
const MOST_COMPARED: usize = 4096;

/// Calls on new inputs, and on those of the call before, of which the fastest are compared; an even number.
const TIMED_CALLS: usize = 2;

/// A variant with the data that it was timed on.
pub struct Timed<'a> {
    /// Its routine.
    pub routine: &'a dyn Routine,
    /// The data.
    pub data: &'a mut dyn CellData,
    /// From where it was called.
    pub caller: &'a Caller,
    /// As often as in a sample.
    pub calls: Calls,
    /// Whether a call returns something.
    pub returns: bool,
}

fn after_timing(reason: Reason) -> Reason {
    Reason::AfterTiming(Box::new(reason))
}

/// Digest of inputs that are only read and of outputs that are only written, by a variant that returns nothing.
pub fn plain_digest(reads: u64, writes: u64) -> u64 {
    digest_of(reads, results_of(writes, Fingerprint::default().value()))
}

/// A row that was timed.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    /// What it is.
    pub variant: &'a VariantEntry,
    /// What is called.
    pub routine: &'a dyn Routine,
    /// From where.
    pub caller: &'a Caller,
}

impl<'a> Candidate<'a> {
    fn callable(self) -> Callable<'a> {
        (self.routine, self.caller)
    }
}

/// What one more sample gave on the data that a variant was timed on.
pub struct Repeated {
    /// Elements of the return value.
    returned: Vec<Vec<f64>>,
    roundoffs: Vec<f64>,
    /// Digest of the data and of these results.
    pub digest: u64,
    /// Fingerprint of the outputs.
    pub outputs: u64,
}

impl Repeated {
    /// All elements of the results, and their relative rounding errors; the outputs are still in the data.
    pub fn results(self, data: &dyn CellData) -> (Vec<Vec<f64>>, Vec<f64>) {
        ([data.outputs(), self.returned].concat(), self.roundoffs)
    }
}

impl Gate {
    /// What should come out of the data that rows of a size are timed on.
    pub fn expected(
        &self,
        data: &mut dyn CellData,
        size: &Size,
    ) -> Result<Option<Expected>, Reason> {
        self.source.expected(data, &self.listed(size))
    }

    /// Takes one more sample on the data that a variant was timed on, by the same loop with as many calls, so that one that is
    /// right only at first, or only when called once, is found. `reads` is the digest of the inputs.
    pub fn repeat(&self, timed: &mut Timed<'_>, reads: u64) -> Result<Repeated, Reason> {
        let inputs = self.inputs_digest(timed.data, reads);
        // What a sample's calls return on the host is not seen, nor whether they fail.
        let is_called = timed.returns || timed.caller.is_host();
        let returned = if is_called { self.called(timed)? } else { Returned::nothing() };
        // A sample of one call on the host would be the same once more.
        if timed.calls.total() > 1 || !timed.caller.is_host() {
            self.sample(timed, !is_called)?;
        }
        let data = &timed.data;
        if data.reads_fingerprint() != reads || returned.changed_input {
            return Err(after_timing(Reason::ChangedInput));
        }
        let outputs = data.writes_fingerprint();
        let digest = digest_of(inputs, results_of(outputs, returned.fingerprint));
        let roundoffs = [data.roundoffs(), returned.roundoffs].concat();
        Ok(Repeated { returned: returned.parts, roundoffs, digest, outputs })
    }

    /// One more call on poisoned outputs.
    fn called(&self, timed: &mut Timed<'_>) -> Result<Returned, Reason> {
        let fault = |fault| after_timing(Reason::Fault(fault));
        self.prepare(timed.data, Poison::Second);
        let returned = guard(|| timed.routine.call(timed.data, timed.caller)).flatten();
        let returned = returned.map_err(fault)?;
        match returned.failure {
            Some(failure) => Err(fault(Fault::Failed(failure))),
            None => Ok(returned),
        }
    }

    /// Takes one more sample of a variant that was found right in another mode, and tells whether its outputs are the same.
    pub fn repeats(&self, timed: &mut Timed<'_>, outputs: u64) -> Result<bool, Reason> {
        self.sample(timed, false)?;
        Ok(timed.data.writes_fingerprint() == outputs)
    }

    /// One more sample on poisoned outputs, which must have kept the inputs if they are looked at.
    fn sample(&self, timed: &mut Timed<'_>, inputs: bool) -> Result<(), Reason> {
        let fault = |fault| after_timing(Reason::Fault(fault));
        let Timed { routine, data, caller, calls, .. } = timed;
        self.prepare(*data, Poison::First);
        // The outputs of a kernel that goes on from its last result are known after one call only.
        let calls = if self.kernel.in_place == InPlace::Reuse { Calls::once(1) } else { *calls };
        guard(|| routine.sample(*data, calls, caller)).flatten().map_err(fault)?;
        let fetched = guard(|| routine.fetch(*data, caller, inputs)).flatten().map_err(fault)?;
        match fetched.changed_input {
            true => Err(after_timing(Reason::ChangedInput)),
            false => Ok(()),
        }
    }

    /// Compares what a variant gave after it was timed with what should come out.
    pub fn recheck(
        &self,
        variant: &VariantEntry,
        size: &Size,
        (parts, roundoffs): (Vec<Vec<f64>>, Vec<f64>),
        expected: &Expected,
    ) -> Result<(), Reason> {
        let limits = self.limits(variant, &roundoffs, expected, size);
        let errors = compare(&parts, expected, &limits);
        match errors.map_err(after_timing)? {
            errors if errors.pass() => Ok(()),
            errors => Err(after_timing(Reason::Inexact { errors: errors.into() })),
        }
    }

    /// Inputs of a size that rows were not timed on.
    pub fn other_inputs(&self, size: &Size) -> Result<Box<dyn CellData>, Reason> {
        self.source.drawn(Draw::of(self.seed.wrapping_add(OTHER_SEED)), size)
    }

    /// Some results of a row on other inputs in other memory than it was timed on. It has seen its own inputs last.
    pub fn call_elsewhere(
        &self,
        of: Candidate<'_>,
        data: &mut dyn CellData,
        others: &mut dyn CellData,
    ) -> Result<Vec<Vec<f64>>, Reason> {
        let called = self.call(of.callable(), others, Poison::First).map_err(after_timing)?;
        let results = some_of(all_outputs(others, called.returned).parts);
        self.call(of.callable(), data, Poison::First).map_err(after_timing)?;
        Ok(results)
    }

    /// Calls a row on other inputs in the memory that it was timed on. `known` is what it gave for them in other memory; `others` has
    /// the inputs that it was timed on.
    pub fn call_on_other_inputs(
        &self,
        of: Candidate<'_>,
        [data, others]: [&mut dyn CellData; 2],
        known: &[Vec<f64>],
    ) -> Result<(), Reason> {
        let called = self.call(of.callable(), data, Poison::First).map_err(after_timing)?;
        if are_far_apart(&some_of(all_outputs(data, called.returned).parts), known) {
            return Err(after_timing(Reason::GivesOldResults));
        }
        let elements = data.size().iter().try_fold(1u64, |all, axis| all.checked_mul(*axis as u64));
        if !of.caller.is_host() || elements < Some(MANY_ELEMENTS) {
            return Ok(());
        }
        let subject = Subject { variant: of.variant, callable: of.callable() };
        match self.kept_answers(subject, [data, others], TIMED_CALLS) {
            Some(pace) => Err(after_timing(pace.reason())),
            None => Ok(()),
        }
    }
}

/// Some elements of all results.
fn some_of(parts: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let some = |part: Vec<f64>| {
        let step = part.len().div_ceil(MOST_COMPARED).max(1);
        part.into_iter().step_by(step).collect()
    };
    parts.into_iter().map(some).collect()
}

/// Whether some results cannot be of the same inputs.
fn are_far_apart(results: &[Vec<f64>], known: &[Vec<f64>]) -> bool {
    let is_far = |(results, known): (&Vec<f64>, &Vec<f64>)| {
        let (mut difference, mut magnitude) = (0.0, 0.0);
        for (result, known) in results.iter().zip(known) {
            if result.is_finite() && known.is_finite() {
                difference += (result - known).powi(2);
                magnitude += known.powi(2);
            }
        }
        results.len() != known.len() || difference > FAR_OFF.powi(2) * magnitude
    };
    results.len() != known.len() || results.iter().zip(known).any(is_far)
}
