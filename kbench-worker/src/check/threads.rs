//! Kernels on other threads than usual: in pools of other sizes, and in several calls at once.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use super::compare::judge;
use super::exercise::{Exercise, Expected, Trial, all_outputs};
use super::gate::{Gate, Subject, prepare, results_of};
use super::{Circumstance, Part, Reason, Tell, Wrong};
use crate::gauge::uncounted;
use crate::kernel::{Caller, Fault, Outputs, guard};
use crate::plan::Size;
use crate::value::{Poison, Regime};

/// How long a variant is called from a pool of several threads.
const TIME_IN_POOL: Duration = Duration::from_millis(3);

/// Threads of the pools from which parallel variants are called.
const POOLS: [usize; 4] = [1, 2, 3, 16];

/// Threads that call a reentrant variant at once, and for how long.
const CALLERS: usize = 4;
const TIME_AT_ONCE: Duration = Duration::from_millis(10);

/// Different results of one caller that are looked at.
const MOST_RESULTS: usize = 8;

/// What a call gave, with the rounding errors of its types.
type OfCall = (Outputs, Vec<f64>);

impl Gate {
    /// Calls a parallel variant from pools of several sizes; gives these.
    pub(super) fn check_pools(
        &mut self,
        subject: Subject<'_>,
        (size, regimes): (&Size, &[Regime]),
        tell: &mut Tell<'_>,
    ) -> Result<Vec<usize>, Box<Wrong>> {
        let mut called_from = Vec::new();
        for threads in POOLS {
            let Some(pool) = self.pool(threads) else { continue };
            let caller = Caller::Pool(pool);
            let of_pool = Subject { callable: (subject.callable.0, &caller), ..subject };
            let circumstance = Circumstance::Pool(threads);
            for regime in regimes {
                let trial = Trial { regime: *regime, ..self.usual(size) };
                if !self.can_tell(subject, &trial) && *regime != Regime::Usual {
                    continue;
                }
                let Some(Ok(mut exercise)) = self.exercises.remove(&trial) else { continue };
                tell(trial.attempt_in(self.kernel, Part::Variant, circumstance));
                let outcome = self.call_in_pool(of_pool, &mut exercise, &trial);
                let outcome = outcome.and_then(|()| self.keep(&trial, exercise));
                outcome.map_err(|reason| trial.wrong_in(self.kernel, reason, circumstance))?;
            }
            called_from.push(threads);
        }
        Ok(called_from)
    }

    /// Calls a variant from a pool; many times where there are several threads, for it may be that they disturb each other.
    fn call_in_pool(
        &self,
        subject: Subject<'_>,
        exercise: &mut Exercise,
        trial: &Trial,
    ) -> Result<(), Reason> {
        let Exercise { data, expected: Some(expected), .. } = exercise else { return Ok(()) };
        let (mut known, begun) = (None, Instant::now());
        loop {
            self.prepare(data.as_mut(), Poison::First);
            self.wake(subject);
            let called = self.call_as_is(subject.callable, data.as_mut(), Poison::First)?;
            let fingerprint = called.fingerprint;
            if known.replace(fingerprint) != Some(fingerprint) {
                self.compare_call(subject, data.as_ref(), called, expected, trial)?;
            }
            if subject.callable.1.threads() == Some(1) || begun.elapsed() > TIME_IN_POOL {
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

    /// Calls a variant that claims to be reentrant from several threads at once, each with data of its own; gives whether there was
    /// something to compare.
    pub(super) fn check_at_once(
        &mut self,
        subject: Subject<'_>,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Box<Wrong>> {
        let (trial, circumstance) = (self.usual(size), Circumstance::AtOnce(CALLERS));
        let exercises = &self.exercises;
        let expected = |trial: &Trial| exercises.get(trial)?.as_ref().ok()?.expected.as_ref();
        // Neighbours have other data, so that one that takes a neighbour's is seen.
        let trials =
            [0, 1].map(|step| Trial { seed: trial.seed.wrapping_add(step), ..trial.clone() });
        let [Some(first), Some(second)] = trials.each_ref().map(expected) else { return Ok(false) };
        tell(trial.attempt_in(self.kernel, Part::Variant, circumstance));
        let outcome = self.call_at_once(subject, &trials, [first, second]);
        outcome.map_err(|reason| trial.wrong_in(self.kernel, reason, circumstance))
    }

    fn call_at_once(
        &self,
        subject: Subject<'_>,
        trials: &[Trial; 2],
        expected: [&Expected; 2],
    ) -> Result<bool, Reason> {
        let (kernel, implementation) = (self.kernel, subject.variant.implementation);
        let can_begin = AtomicBool::new(false);
        let call = |trial: &Trial| -> Result<Vec<OfCall>, Fault> {
            let mut data = guard(|| kernel.definition.data(&trial.size.values, trial.seed))?;
            let routine = implementation.routine();
            let (mut known, mut results) = (HashSet::new(), Vec::new());
            while !can_begin.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let begun = Instant::now();
            while begun.elapsed() < TIME_AT_ONCE && results.len() < MOST_RESULTS {
                prepare(kernel, data.as_mut(), Poison::First);
                let returned = guard(|| routine.call(data.as_mut(), &Caller::Outside)).flatten()?;
                if known.insert(results_of(data.writes_fingerprint(), returned.fingerprint)) {
                    let roundoffs = [data.roundoffs(), returned.roundoffs.clone()].concat();
                    results.push((all_outputs(data.as_ref(), returned), roundoffs));
                }
            }
            Ok(results)
        };
        let results = std::thread::scope(|scope| {
            // Where a thread cannot be had, the others are enough: each says whose data it has.
            let callers: Vec<_> = (0..CALLERS)
                .filter_map(|caller| {
                    let (call, which) = (&call, caller % 2);
                    let call = move || Ok((which, uncounted(|| call(&trials[which]))?));
                    std::thread::Builder::new().spawn_scoped(scope, call).ok()
                })
                .collect();
            can_begin.store(true, Ordering::Relaxed);
            let join = |caller: ScopedJoinHandle<'_, _>| {
                caller.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            callers.into_iter().map(join).collect::<Result<Vec<(usize, Vec<OfCall>)>, Fault>>()
        });
        let results = results.map_err(Reason::Fault)?;
        let is_made = results.len() > 1;
        for (which, results) in results {
            for (outputs, roundoffs) in results {
                if let Some(failure) = outputs.failure {
                    return Err(Reason::Fault(Fault::Failed(failure)));
                }
                let (trial, expected) = (&trials[which], expected[which]);
                let limits = self.limits(subject.variant, &roundoffs, expected, &trial.size);
                judge(&outputs, expected, &limits)?;
            }
        }
        Ok(is_made)
    }
}
