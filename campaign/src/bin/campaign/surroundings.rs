//! What the machine did beside us, where the system tells (Linux).

use std::fs;
use std::time::Instant;

/// Time of processors in `/proc` is counted in hundredths of a second, whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processors that did not work for us, on average over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Others {
    /// Those that other processes used.
    pub(crate) foreign: f64,
    /// Those that a hypervisor kept for itself.
    pub(crate) stolen: f64,
}

/// A reading of all counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    at: Instant,
    ticks: Option<Ticks>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    busy: f64,
    stolen: f64,
    ours: f64,
}

impl Reading {
    /// Now.
    pub(crate) fn now() -> Self {
        let read = |file| fs::read_to_string(file).ok();
        let ticks = || Ticks::parse(&read("/proc/stat")?, &read("/proc/self/stat")?);
        Reading { at: Instant::now(), ticks: ticks() }
    }

    /// What others did since; our children count as ours once they have been waited for.
    pub(crate) fn others_since(&self) -> Option<Others> {
        let now = Reading::now();
        let (before, after) = (self.ticks?, now.ticks?);
        let seconds = now.at.duration_since(self.at).as_secs_f64();
        let cores = |ticks: f64| ticks / TICKS_PER_SECOND / seconds;
        let foreign = (after.busy - before.busy) - (after.ours - before.ours);
        Some(Others {
            // Counters are rounded, each by itself.
            foreign: cores(foreign.max(0.0)),
            stolen: cores(after.stolen - before.stolen),
        })
    }
}

impl Ticks {
    /// From the first line of `/proc/stat` (user, nice, system, idle, waiting, interrupts hard and soft, stolen) and from
    /// `/proc/self/stat`, whose fields after the name in parentheses begin with the third.
    fn parse(all: &str, own: &str) -> Option<Self> {
        let numbers = |text: &str| -> Vec<f64> {
            text.split_whitespace().map(|field| field.parse().unwrap_or(f64::NAN)).collect()
        };
        let all = numbers(all.lines().next()?.strip_prefix("cpu ")?);
        let own = numbers(own.rsplit_once(')')?.1);
        let [user, nice, system, _, _, hard, soft, stolen] = *all.first_chunk()?;
        // Fields 14 to 17: user and system time, ours and of children that were waited for.
        let ours = own.get(11..15)?.iter().sum();
        Some(Ticks { busy: user + nice + system + hard + soft, stolen, ours })
    }
}

/// Of the last minute.
pub(crate) fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_where_the_kernel_puts_them() {
        let all = "cpu  100 20 30 4000 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let own = "42 (a (strange) name) S 1 42 42 0 -1 4194304 1 2 3 4 11 12 13 14 20 0 1 0 99\n";
        let expected = Ticks { busy: 163.0, stolen: 8.0, ours: 50.0 };
        assert_eq!(Ticks::parse(all, own), Some(expected));
        assert_eq!(Ticks::parse("intr 1 2 3", own), None);
    }
}
