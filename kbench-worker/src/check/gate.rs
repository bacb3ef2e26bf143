//! Running the checks of one kernel.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::compare::{compare, default_tolerance, zeros_pass};
use super::exercise::{Exercise, Expected, Source, Trial, all_outputs};
use super::{
    Attempt, Check, CheckedCall, ErrorFigures, Origin, Part, Reason, Remark, Wrong, awkward_sizes,
};
use crate::kernel::{
    Caller, Calls, CellData, Fault, Implementation, InPlace, KernelEntry, Mode, Returned, Routine,
    VariantEntry, guard,
};
use crate::plan::{Size, sizes_of};
use crate::system::threads;
use crate::value::{Element, Fingerprint, Plain, Poison};

/// After this long no further trial of a variant is begun: a kernel that takes seconds is not checked for minutes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Trials in a row that each leave a thread running: then it is no pool that was started late.
const MOST_LEAVING: usize = 3;

/// A thread that is about to end has ended after this long.
const LAST_BREATH: Duration = Duration::from_millis(50);

/// Why a variant without an output is unchecked.
const NO_OUTPUT: &str =
    "it has no output that would show what it did: return a value, or take a `&mut` parameter";

/// Why one is unchecked whose outputs were empty.
const NO_ELEMENT: &str = "its outputs had no element at any size that was checked";

/// Why one is unchecked that writes or returns something that cannot be looked into.
fn uncompared(kind: &str) -> String {
    format!(
        "`{kind}` cannot be compared; `#[derive(kbench::Operand)]` compares the fields of a struct"
    )
}

/// A default tolerance above this lets mistakes pass that anybody would see.
const LOOSE: f64 = 0.1;

/// The checks of one kernel: data, expected results, and the rules by which variants are compared with them.
pub struct Gate {
    kernel: &'static KernelEntry,
    source: Source,
    seed: u64,
    /// Where CUDA variants are called; none where they cannot be.
    device: Option<Caller>,
    /// Whether all threads of this process are a kernel's.
    counts_threads: bool,
    /// Round-off of what the kernel's own function returns, once somebody has asked.
    precision: OnceCell<Vec<f64>>,
    /// Data and expected results are made once and serve all variants.
    exercises: HashMap<Trial, Result<Exercise, Wrong>>,
}

/// Told of everything that is about to be called.
pub type Tell<'a> = dyn FnMut(Attempt) + 'a;

/// What the two calls of one exercise showed.
struct Finding {
    errors: Option<ErrorFigures>,
    /// Threads that the second call left running.
    left_threads: usize,
    deterministic: bool,
    zeros_pass: bool,
    unknown: bool,
    /// Of data and results, if both calls gave the same and it is right.
    digest: Option<u64>,
    /// The second call.
    checked_call: CheckedCall,
    /// Inputs that hold the same number throughout.
    constant_inputs: Vec<usize>,
    /// Types that cannot be compared.
    uncompared: Vec<&'static str>,
}

/// One call of a variant, as the gate sees it.
struct Called {
    returned: Returned,
    poisoned: Vec<Vec<usize>>,
    fingerprint: u64,
    roundoffs: Vec<f64>,
    changed_input: bool,
    seconds: f64,
}

/// A routine with the place from which it is called.
type Callable<'a> = (&'a dyn Routine, &'a Caller);

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

/// Digest of data and of results, of each of which there is one already.
fn digest_of(inputs: u64, results: u64) -> u64 {
    let mut digest = Fingerprint::default();
    digest.add(inputs);
    digest.add(results);
    digest.value()
}

/// Fingerprint of everything that a call gave: outputs and return value.
fn results_of(outputs: u64, returned: u64) -> u64 {
    outputs ^ returned.rotate_left(17)
}

/// Digest of inputs that are only read and of outputs that are only written, by a variant that returns nothing.
pub fn plain_digest(reads: u64, writes: u64) -> u64 {
    digest_of(reads, results_of(writes, Fingerprint::default().value()))
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

/// Threads that are more than before, and do not end by themselves in a moment.
fn threads_left_since(before: usize) -> usize {
    let start = Instant::now();
    loop {
        let left = threads().unwrap_or(before).saturating_sub(before);
        if left == 0 || start.elapsed() > LAST_BREATH {
            return left;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Gate {
    /// A gate for a kernel; its own function serves as reference when there is no other.
    pub fn new(
        kernel: &'static KernelEntry,
        own_function: Option<&'static VariantEntry>,
        seed: u64,
    ) -> Self {
        let source = Source { kernel, own_function, device: None };
        let (device, exercises) = (None, HashMap::new());
        let precision = OnceCell::new();
        Gate { kernel, source, seed, device, counts_threads: false, precision, exercises }
    }

    /// The same on a machine with a device, on which CUDA variants are called.
    pub fn with_device(mut self, device: Option<Caller>) -> Self {
        self.source.device.clone_from(&device);
        self.device = device;
        self
    }

    /// The same in a process that does nothing else, so that threads that come and stay are a kernel's.
    pub fn counting_threads(self, counts_threads: bool) -> Self {
        Gate { counts_threads, ..self }
    }

    /// Checks a variant at the awkward sizes, with two seeds each; at the smallest listed size when no awkward one is
    /// valid, so that no variant passes without being called.
    pub fn check_awkward(&mut self, variant: &VariantEntry, tell: &mut Tell<'_>) -> Check {
        let sizes = match guard(|| awkward_sizes(self.kernel, variant.valid)) {
            Ok(sizes) => sizes,
            Err(fault) => {
                let reason = Reason::Definition { part: "`valid`", fault };
                return Check::wrong(Wrong {
                    reason,
                    size: "any size".into(),
                    seed: self.seed,
                    origin: Origin::Listed,
                });
            }
        };
        let trial = |size: &Size, step, origin| Trial {
            size: size.clone(),
            seed: self.seed.wrapping_add(step),
            origin,
        };
        let mut trials = Vec::new();
        for size in &sizes {
            trials.extend([0, 1].map(|step| trial(size, step, Origin::Awkward)));
        }
        if trials.is_empty() {
            let listed = sizes_of(self.kernel).unwrap_or_default();
            let defined = |size: &&Size| {
                guard(|| variant.valid.is_none_or(|valid| (valid.holds)(&size.values))) == Ok(true)
            };
            let smallest =
                listed.iter().filter(defined).min_by_key(|size| size.product().unwrap_or(u64::MAX));
            trials.extend(smallest.map(|size| trial(size, 0, Origin::Listed)));
        }
        Check { digest: None, checked_call: None, ..self.check(variant, &trials, tell) }
    }

    /// Checks a variant at one size.
    pub fn check_size(
        &mut self,
        variant: &VariantEntry,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Check {
        self.check(variant, &[self.listed(size)], tell)
    }

    /// Drops the data of a size that no other variant will be checked at.
    pub fn forget(&mut self, size: &Size) {
        self.exercises.remove(&self.listed(size));
    }

    fn listed(&self, size: &Size) -> Trial {
        Trial { size: size.clone(), seed: self.seed, origin: Origin::Listed }
    }

    fn check(&mut self, variant: &VariantEntry, trials: &[Trial], tell: &mut Tell<'_>) -> Check {
        let (routine, caller) = (variant.implementation.routine(), self.caller(variant));
        let (errors, remarks, digest, checked_call) = (None, Vec::new(), None, None);
        let unchecked = None;
        let mut check = Check { outcome: Ok(()), errors, remarks, unchecked, digest, checked_call };
        let mut zeros_always_pass = true;
        let (mut left_threads, mut leaving) = (0, 0);
        let (mut declined, mut is_examined) = (None, false);
        let start = Instant::now();
        for (made, trial) in trials.iter().enumerate() {
            if made > 0 && start.elapsed() > PATIENCE {
                check.remarks.push(Remark::Shortened);
                break;
            }
            match self.find(variant, (routine.as_ref(), &caller), trial, tell) {
                Ok(finding) => {
                    is_examined = true;
                    zeros_always_pass &= finding.zeros_pass;
                    left_threads += finding.left_threads;
                    leaving = if finding.left_threads > 0 { leaving + 1 } else { 0 };
                    self.note(variant, finding, &mut check);
                    // Whoever starts a pool late does so once.
                    if leaving == trials.len().min(MOST_LEAVING) {
                        let reason = Reason::LeftThreads { count: left_threads, calls: leaving };
                        check.outcome = Err(self.wrong(trial, reason));
                        return check;
                    }
                }
                // A size that nobody listed may be one that the variant is not made for.
                Err(wrong) if wrong.is_declined() && trial.origin == Origin::Awkward => {
                    declined.get_or_insert(wrong);
                }
                Err(wrong) => {
                    check.outcome = Err(wrong);
                    return check;
                }
            }
        }
        if let Some(wrong) = declined.filter(|_| !is_examined) {
            check.outcome = Err(wrong);
            return check;
        }
        if check.errors.is_none() && check.unchecked.is_none() && !self.is_unknown(&check) {
            check.unchecked = Some(match self.kernel.outputs.is_empty() {
                true => NO_OUTPUT.to_owned(),
                false => NO_ELEMENT.to_owned(),
            });
        }
        if zeros_always_pass && check.errors.is_some() {
            check.remarks.push(Remark::WeakCheck);
        }
        check
    }

    /// Whether there was nothing here to compare with.
    fn is_unknown(&self, check: &Check) -> bool {
        check.remarks.contains(&Remark::NoReference)
    }

    /// From where a variant is called.
    fn caller(&self, variant: &VariantEntry) -> Caller {
        match (variant.implementation, &self.device) {
            (Implementation::Foreign(_), _) => Caller::Foreign(Mode::Hot, None),
            (Implementation::Device(_), Some(device)) => device.clone(),
            _ => Caller::Outside,
        }
    }

    /// Runs one trial. After a mistake its data is not trusted any more.
    fn find(
        &mut self,
        variant: &VariantEntry,
        routine: Callable<'_>,
        trial: &Trial,
        tell: &mut Tell<'_>,
    ) -> Result<Finding, Wrong> {
        let attempt = |part| Attempt {
            part,
            size: trial.size.name(self.kernel.axes),
            seed: trial.seed,
            origin: trial.origin,
        };
        let mut exercise = self.exercises.remove(trial).unwrap_or_else(|| {
            tell(attempt(Part::Definition));
            self.source.exercise(trial)
        });
        let found = match &mut exercise {
            Err(wrong) => Err(wrong.clone()),
            Ok(exercise) => {
                tell(attempt(Part::Variant));
                let examined = self.examine(variant, routine, exercise);
                examined.map_err(|reason| self.wrong(trial, reason))
            }
        };
        if found.is_ok() || exercise.is_err() {
            self.exercises.insert(trial.clone(), exercise);
        }
        found
    }

    fn wrong(&self, trial: &Trial, reason: Reason) -> Wrong {
        let Trial { size, seed, origin } = trial;
        Wrong { reason, size: size.name(self.kernel.axes), seed: *seed, origin: *origin }
    }

    fn note(&self, variant: &VariantEntry, finding: Finding, check: &mut Check) {
        (check.digest, check.checked_call) = (finding.digest, Some(finding.checked_call));
        let unverified = variant.is_base && self.kernel.reference.is_none() && !finding.unknown;
        // What its author has written is meant.
        let is_given = variant.tolerance.or(self.kernel.tolerance).is_some();
        let is_loose = |errors: &ErrorFigures| errors.tolerance > LOOSE && !is_given;
        let is_loose = finding.errors.as_ref().is_some_and(is_loose);
        let remarks = [
            (!finding.deterministic, Remark::NotDeterministic),
            (unverified, Remark::UnverifiedBase),
            (finding.unknown, Remark::NoReference),
            (is_loose, Remark::LooseCheck),
        ];
        let constant = finding.constant_inputs.iter().map(|input| Remark::ConstantInput(*input));
        for (applies, remark) in remarks.into_iter().chain(constant.map(|remark| (true, remark))) {
            if applies && !check.remarks.contains(&remark) {
                check.remarks.push(remark);
            }
        }
        if let Some(kind) = finding.uncompared.first() {
            check.unchecked.get_or_insert_with(|| uncompared(kind));
        }
        let worst = check.errors.as_ref().map_or(-1.0, ErrorFigures::severity);
        if let Some(errors) = finding.errors.filter(|errors| errors.severity() > worst) {
            check.errors = Some(errors);
        }
    }

    /// Calls the variant twice and looks at everything it did.
    fn examine(
        &self,
        variant: &VariantEntry,
        routine: Callable<'_>,
        exercise: &mut Exercise,
    ) -> Result<Finding, Reason> {
        let (data, before) = (exercise.data.as_mut(), exercise.reads);
        let inputs = self.inputs_digest(data, before);
        let mut first = self.call(routine, data, Poison::First)?;
        if variant.implementation.foreign().is_some() {
            let returned = std::mem::take(&mut first.returned.roundoffs);
            self.check_precision(&returned, data)?;
        }
        let uncompared = [data.uncompared(), first.returned.uncompared.clone()].concat();
        let outputs = all_outputs(data, std::mem::take(&mut first.returned));
        let before_second = threads();
        let second = self.call(routine, data, Poison::Second)?;
        // A driver's threads come and go as it likes.
        let is_counted = self.counts_threads && matches!(routine.1, Caller::Outside);
        let left_threads = before_second.filter(|_| is_counted).map_or(0, threads_left_since);
        if data.reads_fingerprint() != before || first.changed_input || second.changed_input {
            return Err(Reason::ChangedInput);
        }
        if let Some(reason) = self.unwritten(&first, &second) {
            return Err(reason);
        }
        let deterministic = first.fingerprint == second.fingerprint;
        let checked_call =
            CheckedCall { seconds: second.seconds, returned_bytes: second.returned.bytes };
        let finding = Finding {
            errors: None,
            left_threads,
            deterministic,
            zeros_pass: true,
            unknown: false,
            digest: None,
            checked_call,
            constant_inputs: exercise.constant_inputs.clone(),
            uncompared,
        };
        let Some(expected) = &exercise.expected else {
            return Ok(Finding { unknown: true, ..finding });
        };
        if expected.elements() == 0 && outputs.parts.iter().all(Vec::is_empty) {
            return Ok(finding);
        }
        let tolerances = self.tolerances(variant, &first.roundoffs, expected);
        let names = self.kernel.outputs;
        let errors = compare(names, &outputs.parts, expected, &tolerances)?;
        if !errors.pass() {
            return Err(Reason::Inexact { errors });
        }
        let digest = deterministic.then(|| digest_of(inputs, first.fingerprint));
        drop(outputs);
        if !deterministic {
            let outputs = all_outputs(data, second.returned);
            let errors = compare(names, &outputs.parts, expected, &tolerances)?;
            if !errors.pass() {
                return Err(Reason::Unstable { errors });
            }
        }
        let zeros_pass = zeros_pass(expected, &tolerances);
        Ok(Finding { errors: Some(errors), zeros_pass, digest, ..finding })
    }

    fn call(
        &self,
        (routine, caller): Callable<'_>,
        data: &mut dyn CellData,
        poison: Poison,
    ) -> Result<Called, Reason> {
        self.prepare(data, poison);
        let begun = Instant::now();
        let returned = guard(|| routine.call(data, caller)).flatten().map_err(Reason::Fault)?;
        let seconds = begun.elapsed().as_secs_f64();
        if let Some(failure) = returned.failure {
            return Err(Reason::Fault(Fault::Failed(failure)));
        }
        let fingerprint = results_of(data.writes_fingerprint(), returned.fingerprint);
        let roundoffs = [data.roundoffs(), returned.roundoffs.clone()].concat();
        let (poisoned, changed_input) = (data.poisoned(poison), returned.changed_input);
        Ok(Called { returned, poisoned, fingerprint, roundoffs, changed_input, seconds })
    }

    /// Numbers that a foreign variant returns say themselves of what type they are, which has to be that of the kernel's own
    /// function: the tolerance follows from it.
    fn check_precision(&self, returned: &[f64], data: &mut dyn CellData) -> Result<(), Reason> {
        let own = self.source.own_function.filter(|own| !own.implementation.is_device());
        let (Some(own), false) = (own, returned.is_empty()) else { return Ok(()) };
        if self.precision.get().is_none() {
            let results: Vec<_> = data.export_outputs().iter().map(Plain::to_bytes).collect();
            data.reset();
            let routine = own.implementation.routine();
            let called = guard(|| routine.call(data, &Caller::Outside)).flatten();
            let called =
                called.map_err(|fault| Reason::Definition { part: "the own function", fault })?;
            let _ = self.precision.set(called.roundoffs);
            data.import_outputs(&mut results.as_slice());
        }
        match self.precision.get().is_none_or(|known| known == returned) {
            true => Ok(()),
            false => Err(Reason::Fault(Fault::Foreign {
                text: "returns numbers of another type than the kernel's own function does".into(),
                ends: false,
            })),
        }
    }

    /// Positions that kept both patterns.
    fn unwritten(&self, first: &Called, second: &Called) -> Option<Reason> {
        if self.kernel.in_place != InPlace::No {
            return None;
        }
        first.poisoned.iter().zip(&second.poisoned).enumerate().find_map(|(part, (a, b))| {
            let mut both = a.iter().filter(|index| b.binary_search(index).is_ok()).peekable();
            let first = **both.peek()?;
            let output = self.kernel.outputs.get(part).copied().unwrap_or("output").to_owned();
            Some(Reason::Unwritten { output, count: both.count(), first })
        })
    }

    /// What should come out of the data that rows of a size are timed on.
    pub fn expected(
        &self,
        data: &mut dyn CellData,
        size: &Size,
    ) -> Result<Option<Expected>, Reason> {
        self.source.expected(data, size, self.seed)
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
        (parts, roundoffs): (Vec<Vec<f64>>, Vec<f64>),
        expected: &Expected,
    ) -> Result<(), Reason> {
        let tolerances = self.tolerances(variant, &roundoffs, expected);
        let errors = compare(self.kernel.outputs, &parts, expected, &tolerances);
        match errors.map_err(after_timing)? {
            errors if errors.pass() => Ok(()),
            errors => Err(after_timing(Reason::Inexact { errors })),
        }
    }

    /// Digest of all that results depend on: what is only read, and outputs that are read first.
    fn inputs_digest(&self, data: &mut dyn CellData, reads: u64) -> u64 {
        if self.kernel.in_place == InPlace::No {
            return reads;
        }
        data.reset();
        reads ^ data.writes_fingerprint().rotate_left(17)
    }

    fn prepare(&self, data: &mut dyn CellData, poison: Poison) {
        data.reset();
        if self.kernel.in_place == InPlace::No {
            data.poison(poison);
        }
    }

    /// One tolerance for every output. A part whose type does not tell its round-off is taken for single precision.
    fn tolerances(
        &self,
        variant: &VariantEntry,
        roundoffs: &[f64],
        expected: &Expected,
    ) -> Vec<f64> {
        let given = variant.tolerance.or(self.kernel.tolerance);
        (0..expected.parts.len())
            .map(|part| {
                let roundoff = roundoffs.get(part).copied().unwrap_or(f32::ROUNDOFF);
                given.unwrap_or_else(|| default_tolerance(roundoff, expected.terms))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckedRow, Standing};
    use crate::kernel::{Kernel, serial};
    use crate::registry::fixtures::{Double, base, right, unwritten, variant_of_double, wrong};
    use crate::value::Declined;

    fn check(routine: fn() -> Box<dyn Routine>) -> Check {
        let mut gate = Gate::new(Double::ENTRY, Some(base()), 1);
        gate.check_awkward(variant_of_double("candidate", 5, routine), &mut |_| {})
    }

    #[test]
    fn a_right_variant_passes_without_remarks() {
        let check = check(right);
        assert!(check.outcome.is_ok(), "{:?}", check.outcome);
        assert_eq!(check.remarks, []);
        assert!(check.errors.expect("compared").norm < 1e-7);
    }

    #[test]
    fn a_wrong_element_is_named_with_its_error() {
        let text = check(wrong).outcome.expect_err("wrong").to_string();
        assert!(text.contains("worst `y`[") && text.contains("tolerance"), "{text}");
    }

    #[test]
    fn a_variant_that_declines_is_skipped_with_its_reason() {
        let declining = || {
            let decline = |_: &_, _: &mut _| Err::<(), _>(Declined("no such unit".into()));
            serial::<Double, _, _>(decline)
        };
        let row = CheckedRow::from(check(declining));
        assert!(matches!(row.standing, Standing::Skipped(reason) if reason == "no such unit"));
    }

    #[test]
    fn an_unwritten_element_is_named() {
        let text = check(unwritten).outcome.expect_err("wrong").to_string();
        assert!(
            text.contains("1 element(s) of `y` are never written, the first at index 2"),
            "{text}"
        );
        assert!(text.contains("n=3"), "{text}");
    }
}
