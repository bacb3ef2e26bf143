//! Looking once more at variants that were timed, on the data and in the memory that they were timed on.

use super::Reason;
use super::compare::{Limits, compare};
use super::exercise::{Expected, all_outputs, root_mean_square};
use super::gate::{Callable, Called, Gate, Subject, digest_of, results_of};
use super::memory::{MANY_ELEMENTS, Pace};
use crate::kernel::{
    Caller, Calls, CellData, Fault, InPlace, Returned, Routine, VariantEntry, guard,
};
use crate::plan::Size;
use crate::value::{Draw, Fingerprint, Poison};

/// How far the seed of other inputs is from that of those that rows are timed on.
const OTHERS: u64 = 2;

/// A result is taken for that of other inputs when it is so far off, relative to its magnitude.
const FAR_OFF: f64 = 1e-3;

/// How often times on new inputs are taken again before a variant is said to keep answers; an even number leaves the data as it is.
const TRIES: usize = 2;

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

/// Other inputs than rows were timed on.
pub struct Others {
    /// They, or those that they were exchanged with.
    pub data: Box<dyn CellData>,
    /// What should come out of them.
    expected: Expected,
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
        let errors = compare(self.kernel.outputs, &parts, expected, &limits);
        match errors.map_err(after_timing)? {
            errors if errors.pass() => Ok(()),
            errors => Err(after_timing(Reason::Inexact { errors: errors.into() })),
        }
    }

    /// Other inputs of a size than rows were timed on, with what a row makes of them in memory of their own; none where that tells
    /// nothing. `data` is what the row was timed on.
    pub fn others(
        &self,
        of: Candidate<'_>,
        size: &Size,
        data: &mut dyn CellData,
    ) -> Result<Option<Others>, Reason> {
        let mut others = self.source.drawn(Draw::of(self.seed.wrapping_add(OTHERS)), size)?;
        let parts = |data: &mut dyn CellData| {
            let called = self.call(of.callable(), data, Poison::First)?;
            Ok::<_, Reason>(all_outputs(data, called.returned).parts)
        };
        // The row has seen its own inputs last, as all others have; sums of few numbers may be near zero by chance.
        let (parts, own) = (parts(others.as_mut())?, parts(data)?);
        let is_finite = parts.iter().flatten().all(|element| element.is_finite());
        if !is_finite || parts.iter().all(Vec::is_empty) || own == parts {
            return Ok(None);
        }
        let scale =
            |(own, part): (&Vec<f64>, &Vec<f64>)| root_mean_square(own).max(root_mean_square(part));
        let scales = own.iter().zip(&parts).map(scale).collect();
        let expected = Expected { parts, scales, spread: None };
        Ok(Some(Others { data: others, expected }))
    }

    /// Calls a variant, in the memory that it was timed on, with other inputs: once while they are new, and once more. `others` has
    /// them or the inputs that the variant was timed on, which are exchanged.
    pub fn calls_on_others(
        &self,
        of: Candidate<'_>,
        size: &Size,
        data: &mut dyn CellData,
        others: &mut Others,
    ) -> Result<(), Reason> {
        let subject = Subject { variant: of.variant, callable: of.callable() };
        let called = self.called_when_ready(subject, data)?;
        let new = called.seconds;
        let Others { data: other, expected } = others;
        // Kept answers are far off, and so may these be: what is expected is no reference's.
        let wide = |limits: Limits| match limits.roundoff() {
            0.0 => limits,
            _ => limits.at_least(FAR_OFF.max(4.0 * limits.usual())),
        };
        let limits = self.limits(of.variant, &called.roundoffs, expected, size);
        let limits: Vec<Limits> = limits.into_iter().map(wide).collect();
        let outputs = all_outputs(data, called.returned);
        let errors = compare(self.kernel.outputs, &outputs.parts, expected, &limits);
        let remembers = |reason| after_timing(Reason::Remembers { reason: Box::new(reason) });
        let errors = errors.map_err(remembers)?;
        if !errors.pass() {
            return Err(remembers(Reason::Inexact { errors: errors.into() }));
        }
        if !of.caller.is_host() || size.product() < Some(MANY_ELEMENTS) {
            return Ok(());
        }
        let seen = self.called_when_ready(subject, data)?.seconds;
        let pace = Pace { new, seen };
        if !pace.keeps_answers() {
            return Ok(());
        }
        // Anything may disturb a call.
        let mut keeps_answers = true;
        for _ in 0..TRIES {
            data.exchange(self.kernel.in_place != InPlace::No, other.as_mut());
            let [new, seen] = [(); 2].map(|()| self.called_when_ready(subject, data));
            keeps_answers &= Pace { new: new?.seconds, seen: seen?.seconds }.keeps_answers();
        }
        if keeps_answers { Err(after_timing(pace.reason())) } else { Ok(()) }
    }

    /// A call on poisoned outputs, with all data in the caches as far as it fits.
    fn called_when_ready(
        &self,
        subject: Subject<'_>,
        data: &mut dyn CellData,
    ) -> Result<Called, Reason> {
        self.prepare(data, Poison::First);
        data.read();
        self.wake(subject);
        self.call_as_is(subject.callable, data, Poison::First).map_err(after_timing)
    }
}
