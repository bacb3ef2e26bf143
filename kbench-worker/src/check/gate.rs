//! Running the checks of one kernel.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::compare::{Limits, compare, judge, zeros_pass};
use super::exercise::{Exercise, Expected, Source, Terms, Trial, all_outputs};
use super::sensitivity::Sensitivity;
use super::{
    Attempt, Check, CheckedCall, Circumstance, ErrorFigures, Mutations, Origin, Part, Reason,
    Remark, Wrong, awkward_sizes,
};
use crate::kernel::{
    Caller, CellData, Fault, Implementation, InPlace, KernelEntry, Mode, Returned, Routine,
    VariantEntry, guard,
};
use crate::plan::{Size, sizes_of};
use crate::system::{FloatMode, threads};
use crate::value::{Element, Fingerprint, Plain, Poison, Regime};

/// After this long no further trial of a variant is begun: a kernel that takes seconds is not checked for minutes.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

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

/// The checks of one kernel: data, expected results, and the rules by which variants are compared with them.
pub struct Gate {
    pub(super) kernel: &'static KernelEntry,
    pub(super) source: Source,
    pub(super) seed: u64,
    /// Where CUDA variants are called; none where they cannot be.
    device: Option<Caller>,
    /// Whether all threads of this process are a kernel's.
    counts_threads: bool,
    /// Round-off of what the kernel's own function returns; found at its first use.
    precision: OnceCell<Vec<f64>>,
    /// Data and expected results are made once and serve all variants.
    pub(super) exercises: HashMap<Trial, Result<Exercise, Wrong>>,
    /// What results depend on; found at its first use.
    sensitivity: OnceCell<Sensitivity>,
    /// How far the own function is off in regimes; none where it is wrong or cannot be called.
    pub(super) own_errors: HashMap<Trial, Option<f64>>,
    /// Rounding errors of the types of all outputs of variants that were called.
    pub(super) known_roundoffs: HashMap<*const VariantEntry, Vec<f64>>,
    /// Pools from which parallel variants are called.
    pub(super) pools: HashMap<usize, Arc<rayon::ThreadPool>>,
    /// In which regimes variants are checked; in all that their kernels name when absent.
    pub(super) regimes: Option<Vec<Regime>>,
}

/// Told of everything that is about to be called.
pub type Tell<'a> = dyn FnMut(Attempt) + 'a;

/// A variant, and how it is called.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) variant: &'a VariantEntry,
    pub(super) callable: Callable<'a>,
}

/// What the two calls of one exercise showed.
pub(super) struct Finding {
    pub(super) errors: Option<ErrorFigures>,
    /// Threads that the second call left running.
    left_threads: usize,
    pub(super) deterministic: bool,
    zeros_pass: bool,
    unknown: bool,
    mutations: Option<Mutations>,
    /// Rounding errors of the types of all outputs.
    roundoffs: Vec<f64>,
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
pub(super) struct Called {
    pub(super) returned: Returned,
    poisoned: Vec<Vec<usize>>,
    pub(super) fingerprint: u64,
    pub(super) roundoffs: Vec<f64>,
    changed_input: bool,
    pub(super) seconds: f64,
}

/// A routine with the place from which it is called.
pub(super) type Callable<'a> = (&'a dyn Routine, &'a Caller);

/// Digest of data and of results, of each of which there is one already.
pub(super) fn digest_of(inputs: u64, results: u64) -> u64 {
    let mut digest = Fingerprint::default();
    digest.add(inputs);
    digest.add(results);
    digest.value()
}

/// Fingerprint of everything that a call gave: outputs and return value.
pub(super) fn results_of(outputs: u64, returned: u64) -> u64 {
    outputs ^ returned.rotate_left(17)
}

/// Gives data fresh outputs, which are poisoned unless they are read.
pub(super) fn prepare(kernel: &KernelEntry, data: &mut dyn CellData, poison: Poison) {
    data.reset();
    if kernel.in_place == InPlace::No {
        data.poison(poison);
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
        let (precision, sensitivity) = (OnceCell::new(), OnceCell::new());
        let (own_errors, regimes, counts_threads) = (HashMap::new(), None, false);
        Gate {
            kernel,
            source,
            seed,
            device,
            counts_threads,
            precision,
            exercises,
            sensitivity,
            own_errors,
            known_roundoffs: HashMap::new(),
            pools: HashMap::new(),
            regimes,
        }
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

    /// The same in some regimes alone.
    pub fn in_regimes(self, regimes: Option<Vec<Regime>>) -> Self {
        Gate { regimes, ..self }
    }

    /// Checks a variant at the awkward sizes, with two seeds each, and there in all circumstances that make kernels go wrong; at the
    /// smallest listed size when no awkward one is valid, so that no variant passes without being called.
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
                    circumstance: Circumstance::Usual,
                });
            }
        };
        let trial = |size: &Size, step, origin| Trial {
            size: size.clone(),
            seed: self.seed.wrapping_add(step),
            origin,
            regime: Regime::Usual,
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
        let begun = Instant::now();
        if variant.implementation.is_host() && self.regimes.is_none() {
            let (routine, caller) = (variant.implementation.routine(), self.caller(variant));
            let subject = Subject { variant, callable: (routine.as_ref(), &caller) };
            self.call_at_page_ends(subject, &sizes, tell);
        }
        let mut check = self.check(variant, &trials, tell);
        if check.outcome.is_ok() && check.errors.is_some() {
            self.check_circumstances(variant, &sizes, begun, &mut check, tell);
        }
        Check { digest: None, checked_call: None, ..check }
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

    pub(super) fn listed(&self, size: &Size) -> Trial {
        let (origin, regime) = (Origin::Listed, Regime::Usual);
        Trial { size: size.clone(), seed: self.seed, origin, regime }
    }

    fn check(&mut self, variant: &VariantEntry, trials: &[Trial], tell: &mut Tell<'_>) -> Check {
        let (routine, caller) = (variant.implementation.routine(), self.caller(variant));
        let mut check = Check::passed();
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
                    // The second of two seeds.
                    let is_second = trial.origin == Origin::Awkward && trial.seed != self.seed;
                    check.coverage.sizes += usize::from(is_second);
                    zeros_always_pass &= finding.zeros_pass;
                    left_threads += finding.left_threads;
                    leaving = if finding.left_threads > 0 { leaving + 1 } else { 0 };
                    self.note(variant, finding, &mut check);
                    // A pool that is started late is started once.
                    if leaving == trials.len().min(MOST_LEAVING) {
                        let reason = Reason::LeftThreads { count: left_threads, calls: leaving };
                        check.outcome = Err(trial.wrong(self.kernel, reason));
                        return check;
                    }
                }
                // An awkward size may be one that the variant is not made for.
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
    pub(super) fn caller(&self, variant: &VariantEntry) -> Caller {
        match (variant.implementation, &self.device) {
            (Implementation::Foreign(_), _) => Caller::Foreign(Mode::Hot, None),
            (Implementation::Device(_), Some(device)) => device.clone(),
            _ => Caller::Outside,
        }
    }

    /// Runs one trial. After a mistake its data is not trusted any more.
    pub(super) fn find(
        &mut self,
        variant: &VariantEntry,
        routine: Callable<'_>,
        trial: &Trial,
        tell: &mut Tell<'_>,
    ) -> Result<Finding, Wrong> {
        let attempt = |part| trial.attempt(self.kernel, part);
        let mut exercise = self.exercises.remove(trial).unwrap_or_else(|| {
            tell(attempt(Part::Definition));
            self.source.exercise(trial)
        });
        let found = match &mut exercise {
            Err(wrong) => Err(wrong.clone()),
            Ok(exercise) => {
                if exercise.expected.is_some() {
                    self.learn(tell);
                }
                tell(attempt(Part::Variant));
                let examined = self.examine(variant, routine, trial, exercise);
                examined.map_err(|reason| trial.wrong(self.kernel, reason))
            }
        };
        if found.is_ok() || exercise.is_err() {
            self.exercises.insert(trial.clone(), exercise);
        }
        found
    }

    fn note(&mut self, variant: &VariantEntry, finding: Finding, check: &mut Check) {
        (check.digest, check.checked_call) = (finding.digest, Some(finding.checked_call));
        self.known_roundoffs.entry(variant).or_insert_with(|| finding.roundoffs.clone());
        let unverified = variant.is_base && self.kernel.reference.is_none() && !finding.unknown;
        let remarks = [
            (!finding.deterministic, Remark::NotDeterministic),
            (unverified, Remark::UnverifiedBase),
            (finding.unknown, Remark::NoReference),
        ];
        let constant = finding.constant_inputs.iter().map(|input| Remark::ConstantInput(*input));
        for (applies, remark) in remarks.into_iter().chain(constant.map(|remark| (true, remark))) {
            if applies && !check.remarks.contains(&remark) {
                check.remarks.push(remark);
            }
        }
        check.mutations = finding.mutations.or(check.mutations.take());
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
        trial: &Trial,
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
        if let Some(reason) = self.unwritten(&first, &second, data) {
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
            mutations: None,
            roundoffs: first.roundoffs.clone(),
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
        let limits = self.limits(variant, &first.roundoffs, expected, &trial.size);
        let limits = self.limits_in_regime(variant, limits, trial);
        let errors = judge(&outputs, expected, &limits)?;
        let mutations = self.mutations(trial, &limits)?;
        let digest = deterministic.then(|| digest_of(inputs, first.fingerprint));
        drop(outputs);
        if !deterministic {
            let outputs = all_outputs(data, second.returned);
            let errors = compare(&outputs.parts, expected, &limits)?;
            if !errors.pass() {
                return Err(Reason::Unstable { errors: errors.into() });
            }
        }
        let zeros_pass = zeros_pass(expected, &limits);
        Ok(Finding { errors: Some(errors), zeros_pass, mutations, digest, ..finding })
    }

    pub(super) fn call(
        &self,
        callable: Callable<'_>,
        data: &mut dyn CellData,
        poison: Poison,
    ) -> Result<Called, Reason> {
        self.prepare(data, poison);
        self.call_as_is(callable, data, poison)
    }

    /// The same with outputs as they are.
    pub(super) fn call_as_is(
        &self,
        (routine, caller): Callable<'_>,
        data: &mut dyn CellData,
        poison: Poison,
    ) -> Result<Called, Reason> {
        let (mode, begun) = (FloatMode::now(), Instant::now());
        let returned = guard(|| routine.call(data, caller)).flatten();
        let seconds = begun.elapsed().as_secs_f64();
        let has_changed_mode = mode.restore();
        let returned = returned.map_err(Reason::Fault)?;
        if has_changed_mode {
            return Err(Reason::FloatMode);
        }
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
    fn unwritten(&self, first: &Called, second: &Called, data: &dyn CellData) -> Option<Reason> {
        if self.kernel.in_place != InPlace::No {
            return None;
        }
        first.poisoned.iter().zip(&second.poisoned).enumerate().find_map(|(part, (a, b))| {
            let mut both = a.iter().filter(|index| b.binary_search(index).is_ok()).peekable();
            let first = **both.peek()?;
            let names = self.kernel.names_of_written(&data.output_fields());
            let output = names.into_iter().nth(part).unwrap_or_default();
            Some(Reason::Unwritten { output, count: both.count(), first })
        })
    }

    /// Digest of all that results depend on: what is only read, and outputs that are read first.
    pub(super) fn inputs_digest(&self, data: &mut dyn CellData, reads: u64) -> u64 {
        if self.kernel.in_place == InPlace::No {
            return reads;
        }
        data.reset();
        reads ^ data.writes_fingerprint().rotate_left(17)
    }

    pub(super) fn prepare(&self, data: &mut dyn CellData, poison: Poison) {
        prepare(self.kernel, data, poison);
    }

    /// What results depend on, at sizes at which the kernel is defined.
    fn sensitivity(&self) -> &Sensitivity {
        self.sensitivity.get_or_init(|| {
            let sizes = guard(|| awkward_sizes(self.kernel, None)).unwrap_or_default();
            Sensitivity::of(&self.source, &sizes, self.seed, &mut |_| {})
        })
    }

    /// Finds out what results depend on, and tells what is called for that.
    fn learn(&mut self, tell: &mut Tell<'_>) {
        if self.sensitivity.get().is_some() {
            return;
        }
        let sizes = guard(|| awkward_sizes(self.kernel, None)).unwrap_or_default();
        let mut of = |trial: &Trial| tell(trial.attempt(self.kernel, Part::Definition));
        let _ = self.sensitivity.set(Sensitivity::of(&self.source, &sizes, self.seed, &mut of));
    }

    /// By how much every output may be off. A part whose type does not tell its round-off is taken for single precision.
    pub(super) fn limits(
        &self,
        variant: &VariantEntry,
        roundoffs: &[f64],
        expected: &Expected,
        size: &Size,
    ) -> Vec<Limits> {
        let given = variant.tolerance.or(self.kernel.tolerance);
        let sensitivity = self.sensitivity();
        let written = self.source.terms(size, expected.elements(), usize::MAX);
        let of = |part: usize| {
            let terms = match (sensitivity.terms(part, size), written) {
                (Some(found), Terms { terms, is_given: true }) => found.max(terms),
                (Some(found), _) => found,
                (None, Terms { terms, .. }) => terms,
            };
            let terms = terms.max(expected.terms.get(part).copied().unwrap_or(1.0));
            let roundoff = roundoffs.get(part).copied().unwrap_or(f32::ROUNDOFF);
            let condition = sensitivity.condition.get(part).copied().unwrap_or(0.0);
            Limits::of(roundoff, terms, condition, sensitivity.of_inputs).or_given(given)
        };
        (0..expected.parts.len()).map(of).collect()
    }

    /// How many mistakes in usual results would be noticed; an error if too few are.
    fn mutations(&self, trial: &Trial, limits: &[Limits]) -> Result<Option<Mutations>, Reason> {
        if trial.regime != Regime::Usual {
            return Ok(None);
        }
        let mutations = self.sensitivity().mutations(limits);
        match mutations.are_missed() {
            true => Err(Reason::LooseCheck { mutations: mutations.into() }),
            false => Ok((!mutations.kinds.is_empty()).then_some(mutations)),
        }
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
