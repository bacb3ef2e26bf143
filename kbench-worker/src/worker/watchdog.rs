//! The clock beside a kernel that may never return.
//!
//! A thread of the worker looks now and then whether the call of user code that it saw last is still the same one. When it
//! has lasted longer than it may, the thread tells the controller whose call it is, with everything that was measured
//! before, and ends the process: nothing else stops a call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::protocol::Place;
use crate::kernel::current_call;

/// Time between two looks, at most: each costs a few microseconds of a processor that may be measuring.
const LONGEST_TICK: Duration = Duration::from_millis(500);

/// Looks in the time that a call may take.
const LOOKS: u32 = 10;

/// A sample may take this many times as long as it should, and a while more: machines stop and start.
const SLACK: f64 = 20.0;

/// The while.
const WHILE: Duration = Duration::from_secs(5);

/// A call may take this long when nobody says how long.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(60);

/// What a worker is doing, as its watchdog sees it.
#[derive(Clone)]
pub(super) struct Vigil {
    task: Arc<Mutex<Task>>,
    stopping: Arc<AtomicBool>,
    busy: Arc<AtomicBool>,
    is_of_process: bool,
}

#[derive(Clone, Copy)]
struct Task {
    place: Option<Place>,
    /// Longest time of any call.
    timeout: Duration,
    /// Longest time of the current one.
    limit: Duration,
}

impl Vigil {
    /// Nothing is being called yet, and nobody looks: in a process that does other things as well.
    pub(super) fn new() -> Self {
        let task = Task { place: None, timeout: USUAL_TIMEOUT, limit: USUAL_TIMEOUT };
        let (stopping, busy) = Default::default();
        Vigil { task: Arc::new(Mutex::new(task)), stopping, busy, is_of_process: false }
    }

    /// That of a process which does nothing but what it is asked for.
    pub(super) fn of_process() -> Self {
        Vigil { is_of_process: true, ..Vigil::new() }
    }

    /// Whether the process does nothing else.
    pub(super) fn is_of_process(&self) -> bool {
        self.is_of_process
    }

    /// No call may take longer from now on.
    pub(super) fn set_timeout(&self, timeout: Duration) {
        let mut task = self.task();
        (task.timeout, task.limit) = (timeout, timeout);
    }

    /// What is called next is of a row, or makes the data of a cell.
    pub(super) fn watch(&self, place: Place) {
        let mut task = self.task();
        (task.place, task.limit) = (Some(place), task.timeout);
    }

    /// A sample is taken next, that should last as long as this.
    pub(super) fn watch_sample(&self, place: Place, expected: Duration) {
        let mut task = self.task();
        task.place = Some(place);
        task.limit = task.timeout.min(WHILE).saturating_add(expected.mul_f64(SLACK));
    }

    /// So many calls as make a sample come next, the first ones of this process perhaps: they have the time of a call, and
    /// that of a sample where it is longer.
    pub(super) fn watch_calls(&self, place: Place, expected: Duration) {
        self.watch_sample(place, expected);
        let mut task = self.task();
        task.limit = task.limit.max(task.timeout);
    }

    /// Nothing is called that a row is to blame for.
    pub(super) fn watch_nothing(&self) {
        let mut task = self.task();
        (task.place, task.limit) = (None, task.timeout);
    }

    /// Nobody wants more than what is finished.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Whether nobody wants more than what is finished.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// A request is being answered, or it is not any more.
    pub(super) fn set_busy(&self, is_busy: bool) {
        self.busy.store(is_busy, Ordering::SeqCst);
    }

    /// Whether a request is being answered.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::SeqCst)
    }

    fn task(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A call that took too long.
pub(super) struct Overdue {
    pub(super) place: Place,
    /// How long it was waited for.
    pub(super) waited: Duration,
}

/// Looks at a worker until a call of its is overdue.
pub(super) fn watch_over(vigil: &Vigil) -> Overdue {
    let mut seen = None;
    let mut waited = Duration::ZERO;
    loop {
        let Task { limit, .. } = *vigil.task();
        let tick = (limit / LOOKS).min(LONGEST_TICK);
        let begun = Instant::now();
        std::thread::sleep(tick);
        // A process that was stopped for an hour has not called anything for an hour.
        let passed = begun.elapsed().min(2 * tick);
        let call = current_call();
        waited = if call.is_some() && call == seen { waited + passed } else { Duration::ZERO };
        seen = call;
        let Task { place, limit, .. } = *vigil.task();
        if let Some(place) = place
            && waited >= limit
        {
            return Overdue { place, waited };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_time_that_calibration_found_and_a_while_more() {
        let vigil = Vigil::new();
        let place = Place { cell: 1, row: Some(2) };
        vigil.watch(place);
        assert_eq!(vigil.task().limit, USUAL_TIMEOUT);
        vigil.watch_sample(place, Duration::from_millis(10));
        assert_eq!(vigil.task().limit, WHILE + Duration::from_millis(200));
        vigil.watch_calls(place, Duration::from_secs(1));
        assert_eq!(vigil.task().limit, USUAL_TIMEOUT);
        vigil.watch_calls(place, Duration::from_secs(100));
        assert_eq!(vigil.task().limit, WHILE + Duration::from_secs(2000));
        vigil.set_timeout(Duration::from_millis(500));
        vigil.watch_sample(place, Duration::ZERO);
        assert_eq!(vigil.task().limit, Duration::from_millis(500));
    }
}
