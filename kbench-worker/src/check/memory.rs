//! Kernels that depend on more than their arguments: on what was in the same memory before, on how often they were called, on
//! what lies beside their data.

use std::time::{Duration, Instant};

use super::compare::judge;
use super::exercise::{Exercise, Expected, Trial, all_outputs};
use super::gate::{Called, Gate, Subject};
use super::sensitivity::{alter, real_arrays};
use super::{Circumstance, Part, Reason, Tell, Wrong};
use crate::kernel::{Backend, CellData, InPlace, VariantEntry};
use crate::plan::Size;
use crate::value::{Draw, Others, Pages, Places, Poison, Regime, Side, SplitMix};

/// Calls that are made with the same input, and the time that they may take.
const CALLS: usize = 1_100;
const TIME_OF_CALLS: Duration = Duration::from_millis(25);

/// The same on a device, to which data is copied for every call, and at large sizes.
const SHORT_TIME_OF_CALLS: Duration = Duration::from_millis(10);

/// Times are compared where a call goes over so many elements: branch prediction cannot learn them.
pub(super) const MANY_ELEMENTS: u64 = 20_000;

/// How many times as long a call takes on new inputs if answers are kept, and by how much longer.
const KEPT_RATIO: f64 = 4.0;
const KEPT_SECONDS: f64 = 20e-6;

/// Calls of which the fastest are compared, and how often that is tried.
const TIMED_CALLS: usize = 6;
const TRIES: usize = 3;

/// The time of a call on inputs that were not there before, and of one on those of the call before.
pub(super) struct Pace {
    new: f64,
    seen: f64,
}

impl Pace {
    /// Whether the work is not done when the inputs were seen before.
    fn keeps_answers(&self) -> bool {
        self.new >= KEPT_RATIO * self.seen && self.new - self.seen >= KEPT_SECONDS
    }

    pub(super) fn reason(&self) -> Reason {
        let words = |seconds: f64| format!("{:.3} µs", seconds * 1e6);
        Reason::KeepsAnswers { new: words(self.new), seen: words(self.seen) }
    }
}

/// A number that another one of its array was put in the place of.
struct Replaced {
    array: usize,
    index: usize,
    before: f64,
}

/// Data that is put into the memory of other data, and what should come out of it.
struct Mixed {
    data: Box<dyn CellData>,
    expected: Expected,
    trial: Trial,
}

/// Data beside guard pages, which is moved back when this is dropped: also when code of the user's panics.
struct Relocated<'a> {
    data: &'a mut dyn CellData,
    outputs: bool,
    pages: Pages,
}

impl<'a> Relocated<'a> {
    fn new(data: &'a mut dyn CellData, outputs: bool, side: Side) -> Self {
        let mut moved = Relocated { data, outputs, pages: Pages::new(side) };
        moved.data.relocate(outputs, &mut moved.pages);
        moved
    }
}

impl Drop for Relocated<'_> {
    fn drop(&mut self) {
        self.pages.turn();
        self.data.relocate(self.outputs, &mut self.pages);
    }
}

impl Gate {
    /// Puts other inputs into the memory of the first ones, and calls without touching the outputs.
    pub(super) fn check_exchange(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Box<Wrong>> {
        let (first, circumstance) = (self.usual(size), Circumstance::Exchanged);
        let other = Trial { seed: self.seed.wrapping_add(1), ..first.clone() };
        let Some([mut here, mut there]) = self.take_both(&first, &other) else { return Ok(false) };
        tell(first.attempt_in(self.kernel, Part::Definition, circumstance));
        let mut others = self.mixed(&first, &other);
        others.extend(self.zeros(subject, &first));
        tell(first.attempt_in(self.kernel, Part::Variant, circumstance));
        let outcome = self.exchange(subject, &first, [&mut here, &mut there], others);
        let outcome = outcome.and_then(|is_exchanged| {
            self.keep(&first, here)?;
            self.keep(&other, there)?;
            Ok(is_exchanged)
        });
        outcome.map_err(|reason| first.wrong_in(self.kernel, reason, circumstance))
    }

    fn take_both(&mut self, first: &Trial, other: &Trial) -> Option<[Exercise; 2]> {
        let is_known = |trial| matches!(self.exercises.get(trial), Some(Ok(exercise)) if exercise.expected.is_some());
        if !is_known(first) || !is_known(other) {
            return None;
        }
        let mut take = |trial| self.exercises.remove(trial).and_then(Result::ok);
        Some([take(first)?, take(other)?])
    }

    /// Data with the first and the last number of every array of one trial, and the others of another one; and data of which one
    /// number is another: what is kept for the ends of an array, or for a sample of it, does not hold for it.
    fn mixed(&self, first: &Trial, other: &Trial) -> Vec<Mixed> {
        let sets = [(Places::Ends, first, other), (Places::Inner, other, first)];
        let mixed = |(places, of, all): (Places, &Trial, &Trial)| {
            let others = Some(Others { places, seed: of.seed });
            let mut data =
                self.source.drawn(Draw { others, ..Draw::of(all.seed) }, &all.size).ok()?;
            let expected = self.source.expected(data.as_mut(), all).ok()??;
            let is_finite = expected.parts.iter().flatten().all(|element| element.is_finite());
            is_finite.then(|| Mixed { data, expected, trial: all.clone() })
        };
        sets.into_iter().filter_map(mixed).collect()
    }

    /// Zeros, if variants are checked with them: they are sorted, have one sign, and whatever else may be kept in mind.
    fn zeros(&self, subject: Subject<'_>, usual: &Trial) -> Option<Mixed> {
        let trial = Trial { regime: Regime::Zeros, ..usual.clone() };
        let expected = match self.exercises.get(&trial) {
            Some(Ok(exercise)) if self.can_tell(subject, &trial) => exercise.expected.clone()?,
            _ => return None,
        };
        Some(Mixed { data: self.source.data(&trial).ok()?, expected, trial })
    }

    fn exchange(
        &self,
        subject: Subject<'_>,
        trial: &Trial,
        [here, there]: [&mut Exercise; 2],
        mut others: Vec<Mixed>,
    ) -> Result<bool, Reason> {
        let Exercise { data, expected: Some(expected), .. } = here else { return Ok(false) };
        let Exercise { data: other, expected: Some(of_other), .. } = there else {
            return Ok(false);
        };
        let (data, outputs) = (data.as_mut(), self.kernel.in_place != InPlace::No);
        self.call(subject.callable, data, Poison::First)?;
        let compared = |data: &mut dyn CellData, expected: &Expected, trial: &Trial| {
            let called = self.call_as_is(subject.callable, data, Poison::First)?;
            self.compare_call(subject, data, called, expected, trial)
                .map_err(|reason| Reason::Remembers { reason: Box::new(reason) })
        };
        let others = others.iter_mut().map(|of| (&mut of.data, &of.expected, &of.trial));
        for (other, of_other, in_other) in
            [(&mut *other, &*of_other, trial)].into_iter().chain(others)
        {
            if !data.exchange(outputs, other.as_mut()) {
                return Ok(false);
            }
            let outcome = compared(data, of_other, in_other);
            let is_back = data.exchange(outputs, other.as_mut());
            outcome?;
            if !is_back {
                return Ok(false);
            }
            compared(data, expected, trial)?;
        }
        let is_long = trial.size.product() >= Some(MANY_ELEMENTS);
        if is_long && subject.callable.1.is_host() {
            let pace = self.kept_answers(subject, [data, other.as_mut()], TIMED_CALLS);
            return pace.map_or(Ok(true), |pace| Err(pace.reason()));
        }
        Ok(true)
    }

    /// Times of calls on new inputs and on those of the call before, if these show that answers are kept. `calls` is an even number,
    /// so that the data is as it was afterwards.
    pub(super) fn kept_answers(
        &self,
        subject: Subject<'_>,
        [data, other]: [&mut dyn CellData; 2],
        calls: usize,
    ) -> Option<Pace> {
        let mut random = SplitMix(0x6e65_7720_696e);
        let mut last = None;
        // Anything may disturb a call.
        for _ in 0..TRIES {
            let (mut replaced, mut has_failed) = (Vec::new(), false);
            let mut pace = Pace { new: f64::INFINITY, seen: f64::INFINITY };
            for _ in 0..calls {
                match self.replace_number(data, &mut random) {
                    Some(number) => replaced.push(number),
                    // Inputs without real numbers may be indices.
                    None => _ = data.exchange(self.kernel.in_place != InPlace::No, other),
                }
                for fastest in [&mut pace.new, &mut pace.seen] {
                    // A number in another place may break what the kernel relies on: then times tell nothing.
                    match self.call_ready(subject, data) {
                        Ok(called) => *fastest = called.seconds.min(*fastest),
                        Err(_) => has_failed = true,
                    }
                }
            }
            for Replaced { array, index, before } in replaced.into_iter().rev() {
                alter(&self.source, data, array, index, &|_| before);
            }
            if has_failed || !pace.keeps_answers() {
                return None;
            }
            last = Some(pace);
        }
        last
    }

    /// Puts another number of the same array in the place of a number, so that the inputs are new; none where no array has real
    /// numbers.
    fn replace_number(&self, data: &mut dyn CellData, random: &mut SplitMix) -> Option<Replaced> {
        let lengths = real_arrays(&self.source, data);
        let (array, length) = lengths.into_iter().enumerate().max_by_key(|(_, length)| *length)?;
        if length < 2 {
            return None;
        }
        let [index, other] = [(); 2].map(|()| random.below(length as u64) as usize);
        let other = alter(&self.source, data, array, other, &|number| number);
        let before = alter(&self.source, data, array, index, &|_| other);
        Some(Replaced { array, index, before })
    }

    /// A call on fresh outputs, with all data in the caches as far as it fits, and with threads that are awake.
    fn call_ready(&self, subject: Subject<'_>, data: &mut dyn CellData) -> Result<Called, Reason> {
        self.prepare(data, Poison::First);
        data.read();
        self.wake(subject);
        self.call_as_is(subject.callable, data, Poison::First)
    }

    /// Wakes the threads that a variant uses: that would take a part of the next call, and threads that sleep do not meet.
    pub(super) fn wake(&self, subject: Subject<'_>) {
        if subject.variant.backend == Backend::Parallel {
            subject.callable.1.on_all_threads(&|| ());
        }
    }

    /// How far the results of a call are off; an error if that is too far.
    pub(super) fn compare_call(
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
        judge(&outputs, expected, &limits).map(|errors| errors.norm)
    }

    /// Calls a variant many times on the same input; gives whether there was something to compare.
    pub(super) fn check_repetition(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Box<Wrong>> {
        let (trial, circumstance) = (self.usual(size), Circumstance::Repeated);
        let Some(Ok(mut exercise)) = self.exercises.remove(&trial) else { return Ok(false) };
        tell(trial.attempt_in(self.kernel, Part::Variant, circumstance));
        let outcome = self.repeat_calls(subject, &mut exercise, &trial);
        let outcome = outcome.and_then(|is_compared| {
            self.keep(&trial, exercise)?;
            Ok(is_compared)
        });
        outcome.map_err(|reason| trial.wrong_in(self.kernel, reason, circumstance))
    }

    fn repeat_calls(
        &self,
        subject: Subject<'_>,
        exercise: &mut Exercise,
        trial: &Trial,
    ) -> Result<bool, Reason> {
        let Exercise { data, expected: Some(expected), .. } = exercise else { return Ok(false) };
        let data = data.as_mut();
        let first = self.call(subject.callable, data, Poison::First)?.fingerprint;
        let is_long = trial.size.product() >= Some(MANY_ELEMENTS);
        let is_short_of_time = is_long || !subject.callable.1.is_host();
        let time = if is_short_of_time { SHORT_TIME_OF_CALLS } else { TIME_OF_CALLS };
        let begun = Instant::now();
        for call in 2..CALLS {
            if self.kernel.in_place != InPlace::No {
                data.reset();
            }
            self.wake(subject);
            let called = self.call_as_is(subject.callable, data, Poison::First)?;
            // Threads may add up in another order.
            if called.fingerprint != first
                && self.compare_call(subject, data, called, expected, trial).is_err()
            {
                return Err(Reason::Sporadic { call });
            }
            if begun.elapsed() > time {
                break;
            }
        }
        Ok(true)
    }

    /// Calls a variant with its data beside pages that may not be touched; gives whether there was some that could be moved.
    pub(super) fn check_pages(
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
            tell(trial.attempt_in(self.kernel, Part::Variant, circumstance));
            let guarded = self.call_beside_pages(subject, &mut exercise, &trial, side);
            is_guarded &=
                guarded.map_err(|reason| trial.wrong_in(self.kernel, reason, circumstance))?;
        }
        self.keep(&trial, exercise)
            .map_err(|reason| trial.wrong_in(self.kernel, reason, Circumstance::PageStart))?;
        Ok(is_guarded)
    }

    fn call_beside_pages(
        &self,
        subject: Subject<'_>,
        exercise: &mut Exercise,
        trial: &Trial,
        side: Side,
    ) -> Result<bool, Reason> {
        let data = exercise.data.as_mut();
        let called = self.call_moved(subject, data, side);
        let (Some(called), Some(expected)) = (called, &exercise.expected) else { return Ok(false) };
        self.compare_call(subject, data, called?, expected, trial)?;
        Ok(true)
    }

    /// A call on data that is beside pages meanwhile; none where there is none that can be moved.
    fn call_moved(
        &self,
        subject: Subject<'_>,
        data: &mut dyn CellData,
        side: Side,
    ) -> Option<Result<Called, Reason>> {
        let is_fixed = |variant: &VariantEntry| variant.has_fixed_outputs;
        let outputs = is_fixed(subject.variant) && self.source.own_function.is_none_or(is_fixed);
        self.prepare(data, Poison::First);
        let moved = Relocated::new(data, outputs, side);
        let can_call = moved.pages.failure().is_none() && moved.pages.has_moved();
        can_call.then(|| self.call_as_is(subject.callable, moved.data, Poison::First))
    }

    /// Calls a variant with its data at the end of pages before it is called with other data: an access beyond the end ends the
    /// process at once, and does not spoil the memory that all variants share. Large arrays have pages of their own anyway. Other
    /// mistakes are left to other checks.
    pub(super) fn call_at_page_ends(
        &mut self,
        subject: Subject<'_>,
        sizes: &[Size],
        tell: &mut Tell<'_>,
    ) {
        for size in sizes.iter().filter(|size| size.product() < Some(MANY_ELEMENTS)) {
            let trial = self.usual(size);
            let exercise = self.exercises.remove(&trial).unwrap_or_else(|| {
                tell(trial.attempt(self.kernel, Part::Definition));
                self.source.exercise(&trial)
            });
            let Ok(mut exercise) = exercise else { continue };
            tell(trial.attempt_in(self.kernel, Part::Variant, Circumstance::PageEnd));
            let called = self.call_moved(subject, exercise.data.as_mut(), Side::End);
            if called.is_none_or(|called| called.is_ok()) {
                let _ = self.keep(&trial, exercise);
            }
        }
    }

    /// Keeps data for others, unless a call has changed its inputs.
    pub(super) fn keep(&mut self, trial: &Trial, exercise: Exercise) -> Result<(), Reason> {
        if exercise.data.reads_fingerprint() != exercise.reads {
            return Err(Reason::ChangedInput);
        }
        self.exercises.insert(trial.clone(), Ok(exercise));
        Ok(())
    }
}
