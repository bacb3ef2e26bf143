//! Circumstances in which kernels go wrong that are right on random numbers in fresh memory: other numbers, other inputs in the
//! same memory, many calls, memory that ends with the data, and pools of other sizes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::compare::{Limits, compare};
use super::exercise::{Exercise, Expected, Trial, all_outputs};
use super::gate::{Callable, Called, Gate, PATIENCE};
use super::{Attempt, Check, Circumstance, Origin, Part, Reason, Remark, Tell, Wrong};
use crate::kernel::{Backend, Caller, CellData, InPlace, KernelEntry, VariantEntry, guard};
use crate::plan::Size;
use crate::value::{Pages, Poison, Regime, Side};

/// Reductions of so many inputs may overflow where the squares of the inputs do: those that are longer are not checked there.
const SHORT: f64 = 4.0;

/// How much further off than the own function a variant may be in a regime.
const OWN_SHARE: f64 = 4.0;

/// Calls that are made with the same input, and the time that they may take.
const CALLS: usize = 1_100;
const TIME_OF_CALLS: Duration = Duration::from_millis(25);

/// How long a variant is called from a pool of several threads.
const TIME_IN_POOL: Duration = Duration::from_millis(4);

/// Threads of the pools from which parallel variants are called.
const POOLS: [usize; 4] = [1, 2, 3, 16];

/// Times are compared where a call goes over so many elements: branch prediction cannot learn them.
const MANY_ELEMENTS: u64 = 20_000;

/// How many times as long a call takes on new inputs if answers are kept, and by how much longer.
const KEPT_RATIO: f64 = 4.0;
const KEPT_SECONDS: f64 = 20e-6;

/// Calls of which the fastest is taken.
const TIMED_CALLS: usize = 5;

/// Smaller sizes that are tried where a variant has failed.
const MOST_SHRINKS: usize = 24;

/// A variant, and how it is called.
#[derive(Clone, Copy)]
struct Subject<'a> {
    variant: &'a VariantEntry,
    callable: Callable<'a>,
}

impl Gate {
    /// Checks a variant that is right at the awkward sizes in all circumstances. What was found goes into its check.
    pub(super) fn check_circumstances(
        &mut self,
        variant: &VariantEntry,
        sizes: &[Size],
        begun: Instant,
        check: &mut Check,
        tell: &mut Tell<'_>,
    ) {
        let (routine, caller) = (variant.implementation.routine(), self.caller(variant));
        let subject = Subject { variant, callable: (routine.as_ref(), &caller) };
        let outcome = self.circumstances(subject, sizes, begun, check, tell);
        if let Err(wrong) = outcome {
            check.outcome = Err(*wrong);
        }
    }

    fn circumstances(
        &mut self,
        subject: Subject<'_>,
        sizes: &[Size],
        begun: Instant,
        check: &mut Check,
        tell: &mut Tell<'_>,
    ) -> Result<(), Box<Wrong>> {
        let is_host = subject.variant.implementation.is_host();
        let is_deterministic = !check.remarks.contains(&Remark::NotDeterministic);
        let (Some(small), Some(large)) = (sizes.get(sizes.len() / 2), sizes.last()) else {
            return Ok(());
        };
        // Calls of other programs and of devices take longer.
        let of_regimes = if is_host { &[small, large][..] } else { &[small][..] };
        for regime in self.regimes() {
            if begun.elapsed() > PATIENCE {
                check.remarks.push(Remark::Shortened);
                return Ok(());
            }
            let (mut is_compared, mut fails) = (false, false);
            for size in of_regimes {
                is_compared |= self.check_regime(subject, size, regime, tell)?;
                let trial = Trial { regime, ..self.usual(size) };
                fails |= matches!(self.exercises.get(&trial), Some(Err(_)));
            }
            check.coverage.regimes.extend(is_compared.then_some(regime));
            check.coverage.failed.extend((fails && !is_compared).then_some(regime));
        }
        if !is_host || self.regimes.is_some() {
            return Ok(());
        }
        for size in [small, large] {
            check.coverage.repeated |= self.check_exchange(subject, size, tell)?;
        }
        if is_deterministic {
            self.check_repetition(subject, small, tell)?;
        }
        for size in [small, large] {
            check.coverage.guarded |= self.check_pages(subject, size, tell)?;
        }
        if subject.variant.backend == Backend::Parallel {
            check.coverage.pools = self.check_pools(subject, large, tell)?;
        }
        Ok(())
    }

    /// The regimes in which variants of the kernel are checked.
    fn regimes(&self) -> Vec<Regime> {
        let of_kernel = match self.kernel.regimes {
            Some(chosen) => chosen.names.iter().filter_map(|name| Regime::of_name(name)).collect(),
            None => Regime::AUTOMATIC.to_vec(),
        };
        match &self.regimes {
            None => of_kernel,
            // Those on request are requested by that.
            Some(wanted) => wanted
                .iter()
                .filter(|regime| of_kernel.contains(regime) || Regime::ON_REQUEST.contains(regime))
                .copied()
                .collect(),
        }
    }

    /// Checks a variant on data of a regime; gives whether there was something to compare.
    fn check_regime(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        regime: Regime,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Box<Wrong>> {
        match self.try_regime(subject, size, regime, tell) {
            Ok(is_compared) => Ok(is_compared),
            Err(wrong) => Err(self.shrink(subject, size, wrong, &mut |gate, size| {
                gate.try_regime(subject, size, regime, tell).err()
            })),
        }
    }

    /// The smallest size near a wrong result's that shows one, too.
    fn shrink(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        wrong: Box<Wrong>,
        fails: &mut dyn FnMut(&mut Self, &Size) -> Option<Box<Wrong>>,
    ) -> Box<Wrong> {
        let (mut smallest, mut found, mut tries) = (size.clone(), wrong, 0);
        'smaller: loop {
            for axis in 0..smallest.values.len() {
                let value = smallest.values[axis];
                for smaller in [1, value / 2, value.saturating_sub(1)] {
                    if smaller == 0 || smaller >= value {
                        continue;
                    }
                    let mut values = smallest.values.clone();
                    values[axis] = smaller;
                    if !is_defined(self.kernel, subject.variant, &values) {
                        continue;
                    }
                    tries += 1;
                    if tries > MOST_SHRINKS {
                        return found;
                    }
                    let size = Size::of(values);
                    if let Some(wrong) = fails(self, &size) {
                        (smallest, found) = (size, wrong);
                        continue 'smaller;
                    }
                }
            }
            return found;
        }
    }

    fn try_regime(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        regime: Regime,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Box<Wrong>> {
        let usual = self.usual(size);
        let trial = Trial { regime, ..usual.clone() };
        if !self.exercises.contains_key(&trial) {
            tell(attempt(self.kernel, &trial, Part::Definition, Circumstance::of(regime)));
            let mut exercise = self.source.exercise(&trial);
            if let Ok(exercise) = &mut exercise {
                self.scale(exercise, &trial, &usual, subject.variant);
            }
            self.exercises.insert(trial.clone(), exercise);
        }
        if !self.can_tell(subject, &trial, &usual) {
            return Ok(false);
        }
        if !subject.variant.is_base && !self.own_errors.contains_key(&trial) {
            let error = self.own_error(&trial);
            self.own_errors.insert(trial.clone(), error);
        }
        match self.find(subject.variant, subject.callable, &trial, tell) {
            Ok(_) => Ok(true),
            Err(wrong) if wrong.is_declined() => Ok(false),
            Err(wrong) => Err(Box::new(wrong)),
        }
    }

    /// Says by what errors on data of a regime are measured.
    fn scale(&self, exercise: &mut Exercise, trial: &Trial, usual: &Trial, variant: &VariantEntry) {
        let roundoffs = self.roundoffs(variant, exercise);
        let Some(expected) = &mut exercise.expected else { return };
        expected.scale_by_numbers(trial.regime, &roundoffs);
        let usual = self.exercises.get(usual).and_then(|usual| usual.as_ref().ok());
        let usual = usual.and_then(|usual| usual.expected.as_ref());
        if let (Some(usual), false) = (usual, trial.regime.is_extreme()) {
            // What cancels to nothing has the rounding errors of what it is made of.
            for (scale, usual) in expected.scales.iter_mut().zip(&usual.scales) {
                *scale = scale.max(*usual);
            }
        }
    }

    /// The first of the usual trials of an awkward size.
    fn usual(&self, size: &Size) -> Trial {
        let (origin, regime) = (Origin::Awkward, Regime::Usual);
        Trial { size: size.clone(), seed: self.seed, origin, regime }
    }

    /// Whether the data of a regime is any other than the usual, and results are known that the variant can give.
    fn can_tell(&self, subject: Subject<'_>, trial: &Trial, usual: &Trial) -> bool {
        let exercise = |trial: &Trial| self.exercises.get(trial).and_then(|e| e.as_ref().ok());
        let Some(exercise_of_regime) = exercise(trial) else { return false };
        let Some(expected) = &exercise_of_regime.expected else { return false };
        let is_other = exercise(usual).is_none_or(|usual| {
            let inputs = |of: &Exercise| (of.reads, of.initial);
            inputs(usual) != inputs(exercise_of_regime)
        });
        let roundoffs = self.roundoffs(subject.variant, exercise_of_regime);
        let limits = self.limits(subject.variant, &roundoffs, expected, &trial.size);
        let is_extreme = trial.regime.is_extreme();
        let is_special = matches!(trial.regime, Regime::Infinite | Regime::Nan);
        let is_short = limits.iter().all(|limits| limits.terms() <= SHORT);
        let has_results = (0..expected.parts.len()).all(|part| {
            // Where elements do not depend on each other, those that are numbers can be compared.
            is_special
                || expected.is_representable(
                    part,
                    (limits[part].roundoff(), trial.regime),
                    is_short,
                )
        });
        is_other && has_results && (!is_extreme || is_short)
    }

    /// Rounding errors of the types of all outputs, as far as they are known before a call.
    fn roundoffs(&self, variant: &VariantEntry, exercise: &Exercise) -> Vec<f64> {
        let known = self.known_roundoffs.get(&std::ptr::from_ref(variant));
        known.cloned().unwrap_or_else(|| exercise.data.roundoffs())
    }

    /// How far the own function is off on some data.
    fn own_error(&mut self, trial: &Trial) -> Option<f64> {
        let own = self.source.own_function.filter(|own| own.implementation.is_host())?;
        let mut exercise = self.exercises.remove(trial)?.ok()?;
        let routine = own.implementation.routine();
        let called =
            self.call((routine.as_ref(), &Caller::Outside), exercise.data.as_mut(), Poison::First);
        let error = called.ok().and_then(|called| {
            let expected = exercise.expected.as_ref()?;
            let limits = self.limits(own, &called.roundoffs, expected, &trial.size);
            let outputs = all_outputs(exercise.data.as_ref(), called.returned);
            compare(self.kernel.outputs, &outputs.parts, expected, &limits).ok()
        });
        self.exercises.insert(trial.clone(), Ok(exercise));
        error.map(|errors| errors.norm).filter(|norm| norm.is_finite())
    }

    /// By how much results may be off in a regime: the own function by half of its digits, the others by some times as much as the
    /// own function.
    pub(super) fn limits_in_regime(
        &self,
        variant: &VariantEntry,
        limits: Vec<Limits>,
        trial: &Trial,
    ) -> Vec<Limits> {
        if trial.regime == Regime::Usual {
            return limits;
        }
        let own = self.own_errors.get(trial).copied().flatten().unwrap_or(0.0);
        let is_special = matches!(trial.regime, Regime::Infinite | Regime::Nan);
        let is_short = !is_special && limits.iter().all(|limits| limits.terms() <= SHORT);
        let largest = |limits: &Limits| trial.regime.largest_result(limits.roundoff());
        let widened =
            limits.into_iter().map(|limits| limits.in_regime(is_short.then(|| largest(&limits))));
        let widened = widened.map(|limits| match variant.is_base {
            true => limits.at_least(limits.roundoff().sqrt()),
            // One that has lost half of its digits is wrong itself.
            false if own <= limits.roundoff().sqrt() => limits.at_least(OWN_SHARE * own),
            false => limits,
        });
        widened.collect()
    }

    /// Puts other inputs into the memory of the first ones, and calls without touching the outputs.
    fn check_exchange(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Box<Wrong>> {
        let (first, circumstance) = (self.usual(size), Circumstance::Exchanged);
        let other = Trial { seed: self.seed.wrapping_add(1), ..first.clone() };
        let Some([mut here, mut there]) = self.take_both(&first, &other) else { return Ok(false) };
        tell(attempt(self.kernel, &first, Part::Variant, circumstance));
        let outcome = self.exchange(subject, &first, [&mut here, &mut there]);
        let outcome = outcome.and_then(|is_exchanged| {
            self.keep(&first, here)?;
            self.keep(&other, there)?;
            Ok(is_exchanged)
        });
        outcome.map_err(|reason| wrong_in(self.kernel, &first, reason, circumstance))
    }

    fn take_both(&mut self, first: &Trial, other: &Trial) -> Option<[Exercise; 2]> {
        let is_known = |trial| matches!(self.exercises.get(trial), Some(Ok(exercise)) if exercise.expected.is_some());
        if !is_known(first) || !is_known(other) {
            return None;
        }
        let mut take = |trial| self.exercises.remove(trial).and_then(Result::ok);
        Some([take(first)?, take(other)?])
    }

    fn exchange(
        &self,
        subject: Subject<'_>,
        trial: &Trial,
        [here, there]: [&mut Exercise; 2],
    ) -> Result<bool, Reason> {
        let (Some(expected), Some(expected_of_others)) = (&here.expected, &there.expected) else {
            return Ok(false);
        };
        let own = self.inputs_of(here.data.as_mut());
        let others = self.inputs_of(there.data.as_mut());
        let data = here.data.as_mut();
        let fits = self.put(data, &others) && data.reads_fingerprint() == there.reads;
        // A type of the user's may hold more than the numbers that it shows.
        let of_put = self.source.expected(data, trial).ok().flatten();
        if !fits || of_put.is_none_or(|of_put| of_put.parts != expected_of_others.parts) {
            self.put(data, &own);
            return Ok(false);
        }
        // What is kept for the first number and the last one does not hold for these.
        let mixed = mixed(&own, &others);
        self.put(data, &mixed);
        let is_finite =
            |of: &Expected| of.parts.iter().flatten().all(|element| element.is_finite());
        let expected_of_mixed = self.source.expected(data, trial).ok().flatten().filter(is_finite);
        self.put(data, &own);
        self.call(subject.callable, data, Poison::First)?;
        let mut steps = vec![(&others, expected_of_others), (&own, expected)];
        steps.extend(expected_of_mixed.as_ref().map(|expected| (&mixed, expected)));
        for (inputs, expected) in steps {
            self.put(data, inputs);
            let called = self.call_as_is(subject.callable, data, Poison::First)?;
            self.compare_call(subject, data, called, expected, trial)
                .map_err(|reason| Reason::Remembers { reason: Box::new(reason) })?;
        }
        if trial.size.product() >= Some(MANY_ELEMENTS) {
            self.time_new_inputs(subject, data, [&own, &others])?;
        }
        Ok(self.put(data, &own) && data.reads_fingerprint() == here.reads)
    }

    /// Whether calls on new inputs take far longer than on those of the call before.
    fn time_new_inputs(
        &self,
        subject: Subject<'_>,
        data: &mut dyn CellData,
        inputs: [&Inputs; 2],
    ) -> Result<(), Reason> {
        // Twice, for anything may disturb a call.
        for attempt in [1, 2] {
            let (mut new, mut seen) = (f64::INFINITY, f64::INFINITY);
            for call in 0..TIMED_CALLS {
                self.put(data, inputs[call % 2]);
                for fastest in [&mut new, &mut seen] {
                    data.reset();
                    let called = self.call_as_is(subject.callable, data, Poison::First)?;
                    *fastest = called.seconds.min(*fastest);
                }
            }
            if new < KEPT_RATIO * seen || new - seen < KEPT_SECONDS {
                return Ok(());
            }
            if attempt == 2 {
                let words = |seconds: f64| format!("{:.3} µs", seconds * 1e6);
                return Err(Reason::KeepsAnswers { new: words(new), seen: words(seen) });
            }
        }
        Ok(())
    }

    /// All numbers of some inputs.
    fn inputs_of(&self, data: &mut dyn CellData) -> Inputs {
        let mut inputs = Vec::new();
        data.each_input(self.kernel.in_place != InPlace::No, &mut |numbers| {
            inputs.push(Array { is_real: numbers.roundoff() > 0.0, bits: numbers.bits() });
        });
        inputs
    }

    /// Overwrites all numbers of the inputs, and leaves outputs as they are unless they are read; gives whether the numbers fit.
    fn put(&self, data: &mut dyn CellData, inputs: &Inputs) -> bool {
        let (mut rest, mut fits) = (inputs.iter(), true);
        let reads_outputs = self.kernel.in_place != InPlace::No;
        data.each_input(reads_outputs, &mut |numbers| {
            fits &= rest.next().is_some_and(|array| numbers.set_bits(&array.bits));
        });
        if reads_outputs {
            data.reset();
        }
        fits && rest.next().is_none()
    }

    /// How far the results of a call are off; an error if that is too far.
    fn compare_call(
        &self,
        subject: Subject<'_>,
        data: &dyn CellData,
        called: Called,
        expected: &Expected,
        trial: &Trial,
    ) -> Result<f64, Reason> {
        let limits = self.limits(subject.variant, &called.roundoffs, expected, &trial.size);
        let limits = self.limits_in_regime(subject.variant, limits, trial);
        let outputs = all_outputs(data, called.returned);
        let errors = compare(self.kernel.outputs, &outputs.parts, expected, &limits)?;
        match errors.pass() {
            true => Ok(errors.norm),
            false => Err(Reason::Inexact { errors: errors.into() }),
        }
    }

    /// Calls a variant many times on the same input.
    fn check_repetition(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Result<(), Box<Wrong>> {
        let (trial, circumstance) = (self.usual(size), Circumstance::Repeated);
        let Some(Ok(mut exercise)) = self.exercises.remove(&trial) else { return Ok(()) };
        tell(attempt(self.kernel, &trial, Part::Variant, circumstance));
        let outcome = self.repeat_calls(subject, &mut exercise, &trial);
        let outcome = outcome.and_then(|()| self.keep(&trial, exercise));
        outcome.map_err(|reason| wrong_in(self.kernel, &trial, reason, circumstance))
    }

    fn repeat_calls(
        &self,
        subject: Subject<'_>,
        exercise: &mut Exercise,
        trial: &Trial,
    ) -> Result<(), Reason> {
        let Exercise { data, expected: Some(expected), .. } = exercise else { return Ok(()) };
        let data = data.as_mut();
        let first = self.call(subject.callable, data, Poison::First)?.fingerprint;
        let begun = Instant::now();
        for call in 2..CALLS {
            if self.kernel.in_place != InPlace::No {
                data.reset();
            }
            let called = self.call_as_is(subject.callable, data, Poison::First)?;
            // Threads may add up in another order.
            if called.fingerprint != first
                && self.compare_call(subject, data, called, expected, trial).is_err()
            {
                return Err(Reason::Sporadic { call });
            }
            if begun.elapsed() > TIME_OF_CALLS {
                break;
            }
        }
        Ok(())
    }

    /// Calls a variant with its data beside pages that may not be touched.
    fn check_pages(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Box<Wrong>> {
        let trial = self.usual(size);
        let Some(Ok(mut exercise)) = self.exercises.remove(&trial) else { return Ok(false) };
        let mut is_guarded = true;
        for (side, circumstance) in
            [(Side::End, Circumstance::PageEnd), (Side::Start, Circumstance::PageStart)]
        {
            tell(attempt(self.kernel, &trial, Part::Variant, circumstance));
            let guarded = self.call_beside_pages(subject, &mut exercise, &trial, side);
            is_guarded &=
                guarded.map_err(|reason| wrong_in(self.kernel, &trial, reason, circumstance))?;
        }
        self.keep(&trial, exercise)
            .map_err(|reason| wrong_in(self.kernel, &trial, reason, Circumstance::PageStart))?;
        Ok(is_guarded)
    }

    /// Keeps data for others, unless a call has changed its inputs.
    fn keep(&mut self, trial: &Trial, exercise: Exercise) -> Result<(), Reason> {
        if exercise.data.reads_fingerprint() != exercise.reads {
            return Err(Reason::ChangedInput);
        }
        self.exercises.insert(trial.clone(), Ok(exercise));
        Ok(())
    }

    fn call_beside_pages(
        &self,
        subject: Subject<'_>,
        exercise: &mut Exercise,
        trial: &Trial,
        side: Side,
    ) -> Result<bool, Reason> {
        let is_fixed = |variant: &VariantEntry| variant.has_fixed_outputs;
        let outputs = is_fixed(subject.variant) && self.source.own_function.is_none_or(is_fixed);
        let data = exercise.data.as_mut();
        self.prepare(data, Poison::First);
        let mut pages = Pages::new(side);
        data.relocate(outputs, &mut pages);
        let called = match pages.failure() {
            None => Some(self.call_as_is(subject.callable, data, Poison::First)),
            Some(_) => None,
        };
        pages.turn();
        data.relocate(outputs, &mut pages);
        let (Some(called), Some(expected)) = (called, &exercise.expected) else { return Ok(false) };
        self.compare_call(subject, data, called?, expected, trial)?;
        Ok(true)
    }

    /// Calls a parallel variant from pools of several sizes; gives these.
    fn check_pools(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Result<Vec<usize>, Box<Wrong>> {
        let mut called_from = Vec::new();
        for threads in POOLS {
            let Some(pool) = self.pool(threads) else { continue };
            let callable = (subject.callable.0, &Caller::Pool(pool));
            let circumstance = Circumstance::Pool(threads);
            for regime in [Regime::Usual, Regime::Sorted, Regime::Sparse] {
                let usual = self.usual(size);
                let trial = Trial { regime, ..usual.clone() };
                if !self.can_tell(subject, &trial, &usual) && regime != Regime::Usual {
                    continue;
                }
                let Some(Ok(mut exercise)) = self.exercises.remove(&trial) else { continue };
                tell(attempt(self.kernel, &trial, Part::Variant, circumstance));
                let outcome = self.call_in_pool(subject, callable, &mut exercise, &trial);
                let outcome = outcome.and_then(|()| self.keep(&trial, exercise));
                outcome.map_err(|reason| wrong_in(self.kernel, &trial, reason, circumstance))?;
            }
            called_from.push(threads);
        }
        Ok(called_from)
    }

    /// Calls a variant from a pool; many times where there are several threads, for it may be that they disturb each other.
    fn call_in_pool(
        &self,
        subject: Subject<'_>,
        callable: Callable<'_>,
        exercise: &mut Exercise,
        trial: &Trial,
    ) -> Result<(), Reason> {
        let Exercise { data, expected: Some(expected), .. } = exercise else { return Ok(()) };
        let (mut known, begun) = (None, Instant::now());
        loop {
            let called = self.call(callable, data.as_mut(), Poison::First)?;
            let fingerprint = called.fingerprint;
            if known.replace(fingerprint) != Some(fingerprint) {
                self.compare_call(subject, data.as_ref(), called, expected, trial)?;
            }
            if callable.1.threads() == Some(1) || begun.elapsed() > TIME_IN_POOL {
                return Ok(());
            }
        }
    }

    fn pool(&mut self, threads: usize) -> Option<Arc<rayon::ThreadPool>> {
        if let Some(pool) = self.pools.get(&threads) {
            return Some(pool.clone());
        }
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()?);
        self.pools.insert(threads, pool.clone());
        Some(pool)
    }
}

/// All numbers of some inputs, array by array.
type Inputs = Vec<Array>;

/// The numbers of an array.
#[derive(Clone)]
struct Array {
    is_real: bool,
    bits: Vec<u64>,
}

/// The first inputs with the inner numbers of the others; whole numbers, which may be indices, stay.
fn mixed(own: &Inputs, others: &Inputs) -> Inputs {
    let mix = |(own, others): (&Array, &Array)| {
        let mut mixed = own.clone();
        let length = own.bits.len();
        if own.is_real && length > 2 && length == others.bits.len() {
            let inner = 1..length - 1;
            mixed.bits[inner.clone()].copy_from_slice(&others.bits[inner]);
        }
        mixed
    };
    own.iter().zip(others).map(mix).collect()
}

fn is_defined(kernel: &KernelEntry, variant: &VariantEntry, values: &[usize]) -> bool {
    let holds = || {
        kernel.definition.valid(values) && variant.valid.is_none_or(|valid| (valid.holds)(values))
    };
    guard(holds) == Ok(true)
}

fn attempt(kernel: &KernelEntry, trial: &Trial, part: Part, circumstance: Circumstance) -> Attempt {
    let size = trial.size.name(kernel.axes);
    Attempt { part, size, seed: trial.seed, origin: trial.origin, circumstance }
}

fn wrong_in(
    kernel: &KernelEntry,
    trial: &Trial,
    reason: Reason,
    circumstance: Circumstance,
) -> Box<Wrong> {
    Box::new(Wrong { circumstance, ..trial.wrong(kernel, reason) })
}
