//! Hardware counters by Linux's `perf_event_open`.
//!
//! The counters are one group: they are switched on and off together, and when the processor must share its counters out
//! they take turns together, so that instructions per cycle are those of the same moments.

use std::array;
use std::fs;
use std::io::{self, ErrorKind};

use perf_event::events::{Event, Hardware};
use perf_event::{Builder, CountAndTime, Counter, Group};

use super::Unavailable;

/// The highest setting of `perf_event_paranoid` at which a program may count its own instructions.
const OWN_INSTRUCTIONS_ALLOWED: i32 = 2;

/// `N` events of one thread; those that the machine does not have are `None`.
pub(super) struct Perf<const N: usize = 4> {
    group: Group,
    counters: [Option<Counter>; N],
}

impl Perf {
    /// Cycles, instructions, cache misses, branch misses.
    pub(super) fn open() -> Result<Self, Unavailable> {
        Perf::of([
            Hardware::CPU_CYCLES.into(),
            Hardware::INSTRUCTIONS.into(),
            Hardware::CACHE_MISSES.into(),
            Hardware::BRANCH_MISSES.into(),
        ])
    }
}

impl<const N: usize> Perf<N> {
    fn of(events: [Event; N]) -> Result<Self, Unavailable> {
        let mut group = Group::new().map_err(explain)?;
        let mut refusal = None;
        let counters = events.map(|event| {
            let counter = Builder::new().group(&mut group).kind(event).build();
            counter.map_err(|error| refusal = Some(error)).ok()
        });
        match refusal {
            Some(error) if counters.iter().all(Option::is_none) => Err(explain(error)),
            _ => Ok(Perf { group, counters }),
        }
    }

    /// Runs `code` and gives what each event counted meanwhile.
    ///
    /// If `code` panics the group stays on, which the next section does not notice: it counts from where it starts.
    pub(super) fn count<R>(&mut self, code: impl FnOnce() -> R) -> (R, [Option<f64>; N]) {
        // Resetting would set the counts to zero and not the times by which they are scaled.
        let before = self.read();
        let enabled = self.group.enable();
        let result = code();
        let disabled = self.group.disable();
        let after = self.read();
        let is_whole = enabled.is_ok() && disabled.is_ok();
        let figure = |event: usize| match (&before[event], &after[event]) {
            (Some(before), Some(after)) if is_whole => scaled(before, after),
            _ => None,
        };
        (result, array::from_fn(figure))
    }

    // One by one: reading the group as a whole panics in perf-event 0.4.9 when an event could not join it.
    fn read(&mut self) -> [Option<CountAndTime>; N] {
        self.counters.each_mut().map(|counter| counter.as_mut()?.read_count_and_time().ok())
    }
}

/// The count between two readings, as if it had run all the time; `None` if it never had its turn.
fn scaled(before: &CountAndTime, after: &CountAndTime) -> Option<f64> {
    let count = after.count.checked_sub(before.count)? as f64;
    let enabled = after.time_enabled.checked_sub(before.time_enabled)? as f64;
    let running = after.time_running.checked_sub(before.time_running)? as f64;
    (running > 0.0).then(|| count * (enabled / running))
}

fn explain(error: io::Error) -> Unavailable {
    // Errors that the standard library has no name for, as on all processors that are supported here.
    const NO_DEVICE: i32 = 19;
    const NOT_SUPPORTED: i32 = 95;
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::PermissionDenied, _) => refused(paranoid()),
        (ErrorKind::NotFound, _) | (_, Some(NO_DEVICE | NOT_SUPPORTED)) => Unavailable::Absent,
        _ => Unavailable::Failed(error),
    }
}

fn refused(paranoid: Option<i32>) -> Unavailable {
    match paranoid {
        Some(paranoid) if paranoid > OWN_INSTRUCTIONS_ALLOWED => {
            Unavailable::Forbidden { paranoid }
        }
        _ => Unavailable::Confined,
    }
}

fn paranoid() -> Option<i32> {
    #[allow(clippy::disallowed_methods)] // a file of the system
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use perf_event::events::Software;

    use super::*;

    fn reading(count: u64, time_enabled: u64, time_running: u64) -> CountAndTime {
        CountAndTime { count, time_enabled, time_running }
    }

    #[test]
    fn counts_are_scaled_to_the_whole_section() {
        let before = reading(1_000, 500, 100);
        assert_eq!(scaled(&before, &reading(1_300, 700, 300)), Some(300.0));
        assert_eq!(scaled(&before, &reading(1_300, 700, 150)), Some(1_200.0));
        assert_eq!(scaled(&before, &reading(1_000, 700, 200)), Some(0.0));
    }

    #[test]
    fn a_counter_that_never_ran_has_no_figure() {
        assert_eq!(scaled(&reading(1_000, 500, 100), &reading(1_000, 700, 100)), None);
    }

    #[test]
    fn errors_of_the_system_call_are_told_apart() {
        let explained = |number| explain(io::Error::from_raw_os_error(number));
        for absent in [2, 19, 95] {
            assert!(matches!(explained(absent), Unavailable::Absent), "{absent}");
        }
        for denied in [1, 13] {
            let reason = explained(denied);
            let is_denied = matches!(reason, Unavailable::Forbidden { .. } | Unavailable::Confined);
            assert!(is_denied, "{denied}: {reason}");
        }
        for other in [24, 38] {
            assert!(matches!(explained(other), Unavailable::Failed(_)), "{other}");
        }
    }

    #[test]
    fn a_refusal_blames_the_setting_only_if_it_is_the_reason() {
        assert!(matches!(refused(Some(3)), Unavailable::Forbidden { paranoid: 3 }));
        assert!(matches!(refused(Some(2)), Unavailable::Confined));
        assert!(matches!(refused(None), Unavailable::Confined));
    }

    /// Events of the kernel's own take the same way as those of the processor, and virtual machines have them too.
    #[test]
    fn sections_are_counted_apart_and_an_event_that_is_not_there_has_no_figure() {
        const PAGE: usize = 4096;
        let touch = |pages: usize| {
            black_box(vec![0_u8; pages * PAGE]).iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        };
        let missing = Event::Hardware(Hardware::CPU_CYCLES);
        let mut perf = match Perf::of([Software::PAGE_FAULTS.into(), missing]) {
            Ok(perf) => perf,
            Err(reason) => return println!("not tested: {reason}"),
        };
        let has_cycles = perf.counters[1].is_some();
        touch(5_000);
        let (_, [many, cycles]) = perf.count(|| touch(2_000));
        touch(5_000);
        let (answer, [none, _]) = perf.count(|| 42);
        println!("2,000 pages: {many:?} faults, {cycles:?} cycles; none: {none:?} faults");
        assert_eq!(answer, 42);
        assert_eq!(cycles.is_some(), has_cycles);
        // A huge page is one fault for 512 pages.
        assert!(many.is_some_and(|faults| (3.0..2_500.0).contains(&faults)), "{many:?}");
        assert!(none.is_none_or(|faults| faults < 3.0), "{none:?}");
    }
}
