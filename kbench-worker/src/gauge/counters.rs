//! The processor's own counters.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::perf::Perf;

/// What the processor counted on one thread; `None` where it has no such counter or had no room for it.
///
/// Only the program's own instructions are counted, not those of the operating system on its behalf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterFigures {
    /// Clock cycles.
    pub cycles: Option<f64>,
    /// Instructions that were completed.
    pub instructions: Option<f64>,
    /// Misses of the last level of cache.
    pub cache_misses: Option<f64>,
    /// Branches that were predicted wrongly.
    pub branch_misses: Option<f64>,
}

impl CounterFigures {
    /// The mean of one of `calls` calls.
    pub fn per_call(&self, calls: u64) -> Self {
        let mean = |figure: Option<f64>| figure.map(|figure| figure / calls.max(1) as f64);
        CounterFigures {
            cycles: mean(self.cycles),
            instructions: mean(self.instructions),
            cache_misses: mean(self.cache_misses),
            branch_misses: mean(self.branch_misses),
        }
    }

    fn is_silent(&self) -> bool {
        let counted = |figure: Option<f64>| figure.is_some_and(|figure| figure > 0.0);
        !counted(self.cycles) && !counted(self.instructions)
    }
}

/// Why there are no hardware counters, and what would help.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// The kernel keeps them for administrators.
    #[error(
        "the kernel forbids hardware counters (perf_event_paranoid is {paranoid}): \
         run `sudo sysctl kernel.perf_event_paranoid=2`, or give this program CAP_PERFMON"
    )]
    Forbidden {
        /// The kernel's setting.
        paranoid: i32,
    },
    /// The kernel's setting allows them, and something else does not.
    #[error(
        "a container or a security module forbids hardware counters: allow the system call perf_event_open there, \
         in Docker with `--cap-add PERFMON`"
    )]
    Confined,
    /// The processor shows none.
    #[error(
        "this machine shows no hardware counters (a virtual machine without a PMU?): \
         turn the virtual PMU on, or measure outside of the virtual machine"
    )]
    Absent,
    /// They can be opened and stand still.
    #[error(
        "the hardware counters of this machine do not count: end other profilers, \
         or measure outside of the virtual machine"
    )]
    Silent,
    /// Another system, or a processor that is not supported there.
    #[error(
        "hardware counters are read on Linux only (x86-64, ARM, RISC-V, POWER, LoongArch of 64 bits)"
    )]
    OnlyLinux,
    /// Anything else.
    #[error("the kernel gives no hardware counters ({0}): see `man perf_event_open`")]
    Failed(#[source] io::Error),
}

/// Open hardware counters of the thread that opened them.
///
/// Work that this thread hands to others, as to a pool, is not counted. They cannot be sent to another thread, where they
/// would go on counting the first one:
///
/// ```compile_fail
/// fn send(counters: kbench_worker::gauge::Counters) -> impl Send {
///     counters
/// }
/// ```
pub struct Counters {
    perf: Perf,
    /// A pointer is not `Send`.
    this_thread: PhantomData<*const ()>,
}

impl Counters {
    /// Opens the counters of the calling thread, and sees whether they count.
    pub fn open() -> Result<Counters, Unavailable> {
        let mut counters = Counters { perf: Perf::open()?, this_thread: PhantomData };
        let ((), figures) = counters.count(|| {
            (0..10_000).for_each(|turn| {
                black_box(turn);
            });
        });
        if figures.is_silent() { Err(Unavailable::Silent) } else { Ok(counters) }
    }

    /// Runs `code` and gives what the processor counted meanwhile.
    ///
    /// When there are more counters in use than the processor has, they take turns, and the figures are scaled to the
    /// whole of the section. Some ten instructions of the switch itself are part of it: `code` should be long.
    pub fn count<R>(&mut self, code: impl FnOnce() -> R) -> (R, CounterFigures) {
        let (result, [cycles, instructions, cache_misses, branch_misses]) = self.perf.count(code);
        (result, CounterFigures { cycles, instructions, cache_misses, branch_misses })
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(turns: u64) -> u64 {
        (0..turns).fold(0, |sum, turn| black_box(sum + turn))
    }

    #[test]
    fn instructions_grow_with_work_or_their_absence_is_explained() {
        match Counters::open() {
            Ok(mut counters) => {
                let (_, short) = counters.count(|| work(100_000));
                let (_, long) = counters.count(|| work(1_000_000));
                println!("100,000 turns: {short:?}\n1,000,000 turns: {long:?}");
                let ratio = long.instructions.zip(short.instructions).map(|(l, s)| l / s);
                assert!(ratio.is_none_or(|ratio| (8.0..12.0).contains(&ratio)), "{ratio:?}");
                assert!(!long.is_silent(), "{long:?}");
            }
            Err(reason) => {
                println!("{reason}");
                assert_explains_itself(&reason);
            }
        }
    }

    #[test]
    fn every_reason_is_one_line_that_says_what_to_do() {
        assert_eq!(
            Unavailable::Forbidden { paranoid: 3 }.to_string(),
            "the kernel forbids hardware counters (perf_event_paranoid is 3): \
             run `sudo sysctl kernel.perf_event_paranoid=2`, or give this program CAP_PERFMON"
        );
        let other = Unavailable::Failed(io::Error::other("too many open files"));
        assert!(other.to_string().contains("too many open files"), "{other}");
        for reason in [
            Unavailable::Confined,
            Unavailable::Absent,
            Unavailable::Silent,
            Unavailable::OnlyLinux,
            other,
        ] {
            assert_explains_itself(&reason);
        }
    }

    fn assert_explains_itself(reason: &Unavailable) {
        let text = reason.to_string();
        assert!(text.contains("hardware counters"), "{text}");
        assert!(!text.contains('\n') && !text.contains("  "), "{text}");
    }

    #[test]
    fn figures_per_call_are_means_of_those_there_are() {
        let figures = CounterFigures { cycles: Some(10.0), ..CounterFigures::default() };
        let mean = CounterFigures { cycles: Some(2.5), ..CounterFigures::default() };
        assert_eq!(figures.per_call(4), mean);
    }

    #[test]
    fn figures_survive_the_run_document() {
        let figures = CounterFigures { cycles: Some(10.0), ..CounterFigures::default() };
        let text = serde_json::to_string(&figures).expect("numbers");
        assert_eq!(serde_json::from_str::<CounterFigures>(&text).expect("the same"), figures);
        assert_eq!(serde_json::from_str::<CounterFigures>("{}").expect("none"), Default::default());
    }
}
