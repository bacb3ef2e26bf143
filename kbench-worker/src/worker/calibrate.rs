//! How many calls make a sample.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::protocol::{Sampling, positive};
use super::subject::{Callable, Subject};
use crate::check::CheckedCall;
use crate::kernel::{
    Calls, CellData, Fault, InPlace, KernelEntry, Limits, Returned, guard, next_call,
};

/// Memory that fresh copies and kept return values of one batch may take: they should still be in a cache, as the data
/// of any other kernel is, and making them should not take longer than the calls.
pub const MEMORY_CAP: usize = 1 << 20;

/// A fresh copy counts as at least this much: a type that does not tell what it owns looks as small as its pointer.
const LEAST_COPY: usize = 16 << 10;

/// Attempts of which the fastest tells how long a call takes: a single one may have been interrupted for many times as
/// long.
const FEWEST_ATTEMPTS: u32 = 3;

/// A call that takes as long as this many nanoseconds twice is a sample by itself, and is not tried again. Where both were
/// interrupted for as long, samples are shorter than they should be, and no less right.
const LONG_CALL: f64 = 5e6;

/// A sample of this many calls is warm after a tenth of them.
const MANY_CALLS: u64 = 10;

/// As many calls as these take minutes if each takes as long as an instruction.
const MOST_CALLS: u64 = 1 << 40;

/// Rows whose calls take no more than this many times as long as those of another are given as many of them.
const ALIKE: f64 = 1.25;

/// The same for a row and its former self. Where caches are not as either left them, the number of calls is part of what is
/// measured; and calibration, which sees each of them once, may have met the one on a slower processor than the other.
const AKIN: f64 = 4.0;

/// Calls per sample of one row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowCalibration {
    /// Timed calls.
    pub calls: Calls,
    /// Untimed calls before each sample.
    pub wash_out: u64,
    /// Nanoseconds that a sample with no call takes: the clock's part of every batch.
    pub overhead: f64,
    /// Nanoseconds of one call, roughly.
    #[serde(deserialize_with = "positive")]
    pub estimate: f64,
    /// Bytes that a call returns.
    pub returned_bytes: usize,
    /// Nanoseconds per call that go into preparing fresh data between batches, roughly.
    pub preparation: f64,
}

impl RowCalibration {
    /// Share of a sample that is overhead.
    pub fn overhead_share(&self) -> f64 {
        let overhead = self.overhead * self.calls.batches as f64;
        overhead / (overhead + self.estimate * self.calls.total() as f64)
    }

    /// Timed part of a sample, roughly.
    pub fn sample_time(&self) -> Duration {
        Duration::from_nanos((self.estimate * self.calls.total() as f64) as u64)
    }

    /// Wall time of a sample with its wash-out, roughly.
    pub fn sample_cost(&self) -> Duration {
        let calls = self.calls.total() as f64 + self.wash_out as f64;
        Duration::from_nanos(((self.estimate + self.preparation) * calls) as u64)
    }

    /// Time of one call without the clock's part; never below zero.
    pub(super) fn per_call(&self, sample: Duration) -> f64 {
        let overhead = self.overhead * self.calls.batches as f64;
        (nanoseconds(sample) - overhead).max(0.0) / self.calls.total() as f64
    }

    /// The untimed calls of a row in a process that has just started: those of a sample, or a tenth of them where they are
    /// many.
    pub fn warm_up(self) -> Self {
        if self.wash_out > 0 && self.calls.total() >= MANY_CALLS {
            RowCalibration { calls: Calls::once(self.wash_out), wash_out: 0, ..self }
        } else {
            self
        }
    }

    /// Whether a single call is long against all that a first one costs more.
    pub fn is_long(&self) -> bool {
        self.estimate >= LONG_CALL
    }

    /// Whether a row takes about as long as another, and neither is bound by memory.
    pub fn is_like(&self, other: &RowCalibration) -> bool {
        let batches = self.calls.batches.max(other.calls.batches);
        batches == 1 && self.estimate <= ALIKE * other.estimate
    }

    /// The same with as many calls as another.
    pub fn with_calls_of(self, other: &RowCalibration) -> Self {
        RowCalibration { calls: other.calls, wash_out: other.wash_out, ..self }
    }

    /// Whether a row can be given as many calls as this one, which is the same row of another build.
    pub fn is_akin(&self, other: &RowCalibration) -> bool {
        let ratio = self.estimate / other.estimate;
        self.returned_bytes == other.returned_bytes && (1.0 / AKIN..=AKIN).contains(&ratio)
    }
}

/// Finds the calls per sample of one row; gives them with the nanoseconds that went into calls.
pub(super) fn calibrate(
    subject: &mut Subject,
    row: usize,
    sampling: &Sampling,
) -> Result<(RowCalibration, f64), Fault> {
    let Subject { kernel, data, rows, .. } = subject;
    let Callable { routine, caller } =
        rows[row].callable.as_ref().map_err(|reason| Fault::Failed(reason.clone()))?;
    guard(|| -> Result<(RowCalibration, f64), Fault> {
        data.reset();
        let checked = rows[row].checked_call;
        let first = match checked.filter(|_| !caller.is_host()) {
            // Of a call elsewhere all data is copied, there and back, to be looked at; samples do not need that.
            Some(CheckedCall { seconds, returned_bytes }) => {
                First { nanoseconds: 1e9 * seconds, is_long: false, returned_bytes, held_bytes: 0 }
            }
            None => {
                let start = Instant::now();
                let Returned { bytes, held_bytes, .. } = routine.call(data.as_mut(), caller)?;
                let nanoseconds = nanoseconds(start.elapsed());
                // Where fresh copies are made, it is to be seen what they cost.
                let known = checked.filter(|_| kernel.in_place != InPlace::Fresh);
                let is_long =
                    known.is_some_and(|call| nanoseconds.min(1e9 * call.seconds) >= LONG_CALL);
                First { nanoseconds, is_long, returned_bytes: bytes, held_bytes }
            }
        };
        let mut limits = routine.limits(data.as_ref(), caller);
        if data.is_cold() && rows[row].variant.implementation.is_host() {
            limits = Limits::COLD;
        } else if !rows[row].variant.implementation.is_device() {
            limits.per_batch = calls_in_memory(kernel, data.as_ref(), first.held_bytes);
        }
        let (mut preparation, mut inside) = (f64::INFINITY, 0.0);
        if first.is_long {
            (preparation, inside) = (0.0, first.nanoseconds);
        }
        let mut time = |calls: u64| {
            next_call();
            let start = Instant::now();
            let timed = routine.sample(data.as_mut(), Calls::once(calls), caller)?.time;
            let outside = nanoseconds(start.elapsed()) - nanoseconds(timed);
            if calls > 0 {
                preparation = preparation.min(outside / calls as f64);
            }
            inside += nanoseconds(timed);
            Ok(nanoseconds(timed))
        };
        let found = find_calls(&mut time, first, limits, sampling)?;
        let found = RowCalibration { preparation, ..found };
        Ok((found, inside))
    })
    .flatten()
}

/// Calls that can be made before fresh copies or kept return values fill the memory they are granted.
fn calls_in_memory(kernel: &KernelEntry, data: &dyn CellData, held_bytes: usize) -> u64 {
    let fresh = match kernel.in_place {
        InPlace::Fresh => data.written_bytes().max(LEAST_COPY),
        InPlace::No | InPlace::Reuse => 0,
    };
    match fresh + held_bytes {
        0 => u64::MAX,
        per_call => (MEMORY_CAP / per_call).max(1) as u64,
    }
}

/// The first call of a row in a process, or the one that was checked.
#[derive(Clone, Copy)]
struct First {
    nanoseconds: f64,
    /// Whether it was long when it was checked, too.
    is_long: bool,
    returned_bytes: usize,
    /// Memory that what it returned owns.
    held_bytes: usize,
}

/// Runs some calls and gives the nanoseconds between the readings of the clock.
type Timer<'a> = dyn FnMut(u64) -> Result<f64, Fault> + 'a;

fn find_calls(
    time: &mut Timer<'_>,
    first: First,
    limits: Limits,
    sampling: &Sampling,
) -> Result<RowCalibration, Fault> {
    let Limits { per_batch: limit, total, wash_out, stretch } = limits;
    let mut overhead = f64::INFINITY;
    for _ in 0..50 {
        overhead = overhead.min(time(0)?);
    }
    let target = 1e9 * stretch * sampling.sample_seconds;
    let estimate = match first.is_long {
        true => first.nanoseconds,
        false => estimate_call(time, overhead, first.nanoseconds, limit.min(total), sampling)?,
    };
    let wanted = (target / estimate).round().max(1.0) as u64;
    let wanted = sampling.iterations.unwrap_or(wanted.min(total));
    let batches = wanted.div_ceil(limit);
    let calls = Calls { per_batch: wanted.div_ceil(batches), batches };
    // A call that is a sample by itself leaves nothing of its predecessor in the caches that matter to it.
    let is_short = estimate <= target && wash_out;
    let wash_out = if is_short { (calls.total() / 10).clamp(1, limit) } else { 0 };
    let (returned_bytes, preparation) = (first.returned_bytes, 0.0);
    Ok(RowCalibration { calls, wash_out, overhead, estimate, returned_bytes, preparation })
}

/// Doubles the number of calls until the clock's resolution no longer matters, then keeps on until warm.
fn estimate_call(
    time: &mut Timer<'_>,
    overhead: f64,
    first_call: f64,
    limit: u64,
    sampling: &Sampling,
) -> Result<f64, Fault> {
    let enough = 1e9 * sampling.sample_seconds / 10.0;
    let start = Instant::now();
    let (mut calls, mut attempts) = (1, 0);
    let mut estimate = f64::INFINITY;
    loop {
        let elapsed = (time(calls)? - overhead).max(1.0);
        if elapsed >= enough || calls >= limit {
            // The fastest of the long enough attempts: the first ones may have paid for page faults and cold caches.
            estimate = estimate.min(elapsed / calls as f64);
            attempts += 1;
            let is_enough = attempts >= FEWEST_ATTEMPTS || elapsed.min(first_call) >= LONG_CALL;
            if is_enough && start.elapsed().as_secs_f64() >= sampling.warm_up_seconds {
                return Ok(estimate);
            }
        } else if calls >= MOST_CALLS {
            let text =
                "takes no time, however often it is called: it does not do what it is asked for";
            return Err(Fault::Failed(text.into()));
        } else {
            calls = (calls * 2).min(limit);
        }
    }
}

pub(super) fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_no_time_however_often_it_is_called_is_not_called_for_ever() {
        let sampling = Sampling {
            sample_seconds: 0.001,
            warm_up_seconds: 0.0,
            iterations: None,
            patience_seconds: 1.0,
        };
        let found = find_calls(&mut |_| Ok(0.0), first(1.0), Limits::NONE, &sampling);
        let fault = found.map(|_| ()).expect_err("no time at all");
        assert!(fault.to_string().contains("takes no time"), "{fault}");
    }

    const SAMPLING: Sampling = Sampling {
        sample_seconds: 0.002,
        warm_up_seconds: 0.0,
        iterations: None,
        patience_seconds: 1.0,
    };

    /// A first call, of whose check nothing is known.
    fn first(nanoseconds: f64) -> First {
        First { nanoseconds, is_long: false, returned_bytes: 0, held_bytes: 0 }
    }

    /// What is found with a clock that takes 40 ns to read.
    fn found(call: f64, limit: u64, sampling: &Sampling) -> RowCalibration {
        let mut clock = |calls| Ok(40.0 + call * calls as f64);
        let limits = Limits { per_batch: limit, ..Limits::NONE };
        find_calls(&mut clock, first(call), limits, sampling).expect("no fault")
    }

    #[test]
    fn a_sample_lasts_as_long_as_wanted() {
        let row = found(25.0, u64::MAX, &SAMPLING);
        assert_eq!(row.overhead, 40.0);
        assert!((row.estimate - 25.0).abs() < 0.1, "{row:?}");
        let lasts = row.estimate * row.calls.total() as f64;
        assert!((lasts / 2e6 - 1.0).abs() < 0.01, "{lasts}");
        assert!(row.overhead_share() < 1e-4);
    }

    #[test]
    fn a_long_call_makes_a_sample_alone() {
        let row = found(1e9, u64::MAX, &SAMPLING);
        assert_eq!((row.calls, row.wash_out), (Calls::once(1), 0));
    }

    #[test]
    fn an_interruption_is_not_taken_for_the_time_of_a_call() {
        let (mut attempts, interrupted) = (0, 2.0 * LONG_CALL);
        let mut clock = |calls: u64| {
            attempts += u32::from(calls > 0);
            let late = if attempts < FEWEST_ATTEMPTS { interrupted } else { 0.0 };
            Ok(40.0 + 1e6 * calls as f64 + late * calls.min(1) as f64)
        };
        let row = find_calls(&mut clock, first(1e6), Limits::NONE, &SAMPLING).expect("no fault");
        assert_eq!((row.calls, row.estimate), (Calls::once(2), 1e6));
    }

    #[test]
    fn a_very_long_call_is_tried_once_and_not_again_when_its_check_was_as_long() {
        for is_long in [false, true] {
            let mut attempts = 0;
            let mut clock = |calls: u64| {
                attempts += calls;
                Ok(40.0 + 1e9 * calls as f64)
            };
            let first = First { is_long, ..first(1e9) };
            let row = find_calls(&mut clock, first, Limits::NONE, &SAMPLING).expect("no fault");
            assert_eq!((row.calls, row.estimate), (Calls::once(1), 1e9));
            assert_eq!(attempts, u64::from(!is_long));
        }
    }

    #[test]
    fn memory_splits_a_sample_into_batches() {
        let row = found(1000.0, 300, &SAMPLING);
        assert!(row.calls.per_batch <= 300 && row.calls.total() >= 2000, "{row:?}");
    }

    #[test]
    fn fixed_iterations_are_kept() {
        let sampling = Sampling { iterations: Some(17), ..SAMPLING };
        let row = found(5.0, u64::MAX, &sampling);
        assert_eq!(row.calls, Calls::once(17));
    }

    #[test]
    fn many_short_calls_are_warm_after_a_tenth_of_them() {
        let row = found(5.0, u64::MAX, &SAMPLING);
        let tenth = row.warm_up();
        assert_eq!((tenth.calls.total(), tenth.wash_out), (row.wash_out, 0));
        assert!((9..=11).contains(&(row.calls.total() / tenth.calls.total())), "{row:?}");
        let few = found(SAMPLING.sample_seconds * 1e9 / 5.0, u64::MAX, &SAMPLING);
        assert_eq!(few.warm_up(), few);
        assert!(!few.is_long() && RowCalibration { estimate: 6e6, ..few }.is_long());
    }

    #[test]
    fn the_clocks_own_part_is_no_part_of_a_time() {
        for (calls, limit, batches) in [(1, u64::MAX, 1), (10, u64::MAX, 1), (40, 10, 4)] {
            let sampling = Sampling { iterations: Some(calls), ..SAMPLING };
            let row = found(25.0, limit, &sampling);
            let sample = Duration::from_nanos(40 * batches + 25 * calls);
            assert_eq!(row.per_call(sample), 25.0, "{calls} calls in {batches} batches");
            assert_eq!(row.per_call(Duration::from_nanos(39)), 0.0, "less than the clock takes");
        }
    }
}
