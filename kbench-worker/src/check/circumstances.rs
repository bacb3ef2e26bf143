//! Circumstances in which kernels go wrong that are right on random numbers in fresh memory. Here are other numbers; `memory` and
//! `threads` have the others.

use std::time::Instant;

use super::compare::{Limits, compare};
use super::exercise::{Exercise, Expected, FEW_ELEMENTS, Trial, all_outputs};
use super::gate::{Gate, PATIENCE, Subject};
use super::sensitivity::longest;
use super::{Check, Origin, Part, Remark, Tell, Wrong};
use crate::kernel::{Backend, Caller, InPlace, KernelEntry, VariantEntry, guard};
use crate::plan::Size;
use crate::value::{Poison, Regime};

/// Reductions of so many inputs may overflow where the squares of the inputs do: those that are longer are not checked there.
const SHORT: f64 = 4.0;

/// How much further off than the own function a variant may be in a regime.
const OWN_SHARE: f64 = 4.0;

/// Results that change by so much, relative to their magnitude, when inputs do in their last place tell nothing: the sine of a very
/// large number.
const UNSETTLED: f64 = 0.3;

/// Sets of data of a regime where results are few, and one of them may be right by chance.
const SETS_OF_FEW: u64 = 8;

/// Of how many awkward sizes the middle one is taken for most circumstances; kernels of several axes have more, which are larger.
const USUAL_SIZES: usize = 7;

/// Regimes in which results follow from single numbers: they need no more elements than the second largest size has.
const ON_FEWER: [Regime; 8] = [
    Regime::Zeros,
    Regime::Filled,
    Regime::Positive,
    Regime::Negative,
    Regime::Reversed,
    Regime::Ends,
    Regime::Lowered,
    Regime::Large,
];

/// Data on which parallel variants are called from several pools.
const IN_POOLS: [Regime; 3] = [Regime::Usual, Regime::Sorted, Regime::Sparse];

/// Smaller sizes that are tried where a variant has failed.
const MOST_SHRINKS: usize = 24;

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
        let middle = sizes.len().min(USUAL_SIZES) / 2;
        let (Some(small), Some(large)) = (sizes.get(middle), sizes.last()) else {
            return Ok(());
        };
        let below = sizes.iter().nth_back(1).unwrap_or(large);
        let of_small = self.exercises.get(&self.usual(small)).and_then(|found| found.as_ref().ok());
        let elements = of_small.and_then(|of| of.expected.as_ref()).map(Expected::elements);
        let is_few = is_host && elements.is_some_and(|elements| elements < FEW_ELEMENTS);
        let sets_of_small = if is_few { SETS_OF_FEW } else { 1 };
        for regime in self.regimes() {
            if begun.elapsed() > PATIENCE {
                check.remarks.push(Remark::Shortened);
                return Ok(());
            }
            let (mut is_compared, mut fails) = (false, false);
            let larger = if ON_FEWER.contains(&regime) { below } else { large };
            // Calls of other programs and of devices take longer.
            let larger = is_host.then_some((larger, 1));
            for (size, sets) in [(small, sets_of_small)].into_iter().chain(larger) {
                for set in 0..sets {
                    let usual = self.usual_set(size, set);
                    is_compared |= self.check_regime(subject, &usual, regime, tell)?;
                    let trial = Trial { regime, ..usual };
                    fails |= matches!(self.exercises.get(&trial), Some(Err(_)));
                }
            }
            check.coverage.regimes.extend(is_compared.then_some(regime));
            check.coverage.failed.extend((fails && !is_compared).then_some(regime));
        }
        // What another program has of the data does not change with it.
        if self.regimes.is_some() || subject.variant.implementation.foreign().is_some() {
            return Ok(());
        }
        for size in [small, large].into_iter().take(if is_host { 2 } else { 1 }) {
            let exchanged = self.check_exchange(subject, size, tell);
            check.coverage.exchanged |= unless_declined(exchanged)?;
        }
        if is_deterministic {
            check.coverage.repeated = unless_declined(self.check_repetition(subject, small, tell))?;
            if subject.variant.backend == Backend::Parallel {
                unless_declined(self.check_repetition(subject, large, tell))?;
            }
        }
        if !is_host {
            return Ok(());
        }
        for size in [small, large] {
            check.coverage.guarded |= unless_declined(self.check_pages(subject, size, tell))?;
        }
        if subject.variant.backend == Backend::Parallel {
            // Where there are fewer elements than threads, and where there are many for each.
            for (size, regimes) in [(small, &[Regime::Usual][..]), (large, &IN_POOLS)] {
                let pools = self.check_pools(subject, (size, regimes), tell);
                check.coverage.pools = unless_declined(pools)?;
            }
        }
        if subject.variant.is_reentrant {
            check.coverage.at_once = unless_declined(self.check_at_once(subject, small, tell))?;
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
        usual: &Trial,
        regime: Regime,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Box<Wrong>> {
        match self.try_regime(subject, usual, regime, tell) {
            Ok(is_compared) => Ok(is_compared),
            Err(wrong) => Err(self.shrink(subject, &usual.size, wrong, &mut |gate, size| {
                let usual = Trial { size: size.clone(), ..usual.clone() };
                gate.try_regime(subject, &usual, regime, tell).err()
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
        usual: &Trial,
        regime: Regime,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Box<Wrong>> {
        let trial = Trial { regime, ..usual.clone() };
        // A smaller size than those that were checked is new.
        if !self.exercises.contains_key(usual) {
            tell(usual.attempt(self.kernel, Part::Definition));
            let exercise = self.source.exercise(usual);
            self.exercises.insert(usual.clone(), exercise);
        }
        if !self.exercises.contains_key(&trial) {
            tell(trial.attempt(self.kernel, Part::Definition));
            let exercise = self.exercise_of_regime(subject, &trial, usual);
            self.exercises.insert(trial.clone(), exercise);
        }
        if !self.can_tell(subject, &trial) {
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

    /// Data of a regime; without results where it is the usual data.
    fn exercise_of_regime(
        &self,
        subject: Subject<'_>,
        trial: &Trial,
        usual: &Trial,
    ) -> Result<Exercise, Wrong> {
        let data = self.source.data(trial).map_err(|reason| trial.wrong(self.kernel, reason))?;
        let (reads, initial) = (data.reads_fingerprint(), data.writes_fingerprint());
        let is_other = match self.exercises.get(usual) {
            // What outputs hold that are only written does not matter.
            Some(Ok(usual)) if self.kernel.in_place == InPlace::No => usual.reads != reads,
            Some(Ok(usual)) => (usual.reads, usual.initial) != (reads, initial),
            _ => true,
        };
        if !is_other {
            let (expected, constant_inputs) = (None, Vec::new());
            return Ok(Exercise { data, expected, reads, initial, constant_inputs });
        }
        let mut exercise = self.source.exercise(trial)?;
        if let Some(expected) = &mut exercise.expected {
            expected.terms = longest(&self.source, exercise.data.as_mut(), expected);
        }
        self.scale(&mut exercise, trial, usual, subject.variant);
        Ok(exercise)
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
    pub(super) fn usual(&self, size: &Size) -> Trial {
        self.usual_set(size, 0)
    }

    /// One of them by its number.
    fn usual_set(&self, size: &Size, set: u64) -> Trial {
        let (origin, regime) = (Origin::Awkward, Regime::Usual);
        Trial { size: size.clone(), seed: self.seed.wrapping_add(set), origin, regime }
    }

    /// Whether results are known for data that the variant can give.
    pub(super) fn can_tell(&self, subject: Subject<'_>, trial: &Trial) -> bool {
        let Some(Ok(exercise)) = self.exercises.get(trial) else { return false };
        let Some(expected) = &exercise.expected else { return false };
        let roundoffs = self.roundoffs(subject.variant, exercise);
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
        let are_settled =
            (0..expected.parts.len()).all(|part| expected.condition(part) < UNSETTLED);
        has_results && are_settled && (!is_extreme || is_short)
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
            compare(&outputs.parts, expected, &limits).ok()
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
        let widened = limits
            .into_iter()
            .map(|limits| limits.in_regime(trial.regime, is_short.then(|| largest(&limits))));
        let widened = widened.map(|limits| match variant.is_base {
            true => limits.at_least(limits.roundoff().sqrt()),
            // One that has lost half of its digits is wrong itself.
            false if own <= limits.roundoff().sqrt() => limits.at_least(OWN_SHARE * own),
            false => limits,
        });
        widened.collect()
    }
}

/// A check at a size that a variant declines was not made.
fn unless_declined<T: Default>(outcome: Result<T, Box<Wrong>>) -> Result<T, Box<Wrong>> {
    match outcome {
        Err(wrong) if wrong.is_declined() => Ok(T::default()),
        outcome => outcome,
    }
}

fn is_defined(kernel: &KernelEntry, variant: &VariantEntry, values: &[usize]) -> bool {
    let holds = || {
        kernel.definition.valid(values) && variant.valid.is_none_or(|valid| (valid.holds)(values))
    };
    guard(holds) == Ok(true)
}
