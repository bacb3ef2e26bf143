//! What can be counted about a call besides its time.
//!
//! [`Allocator`] counts memory on every thread, where the user has installed it; [`Counters`] reads the processor's own
//! counters for the calling thread, where the operating system gives them. Both say so when they have nothing to count
//! with, and neither belongs around code that is being timed: a section is run for its figures alone.

mod allocations;
mod counters;

#[cfg_attr(
    not(all(
        target_os = "linux",
        any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "powerpc64",
            target_arch = "loongarch64",
        )
    )),
    path = "no_perf.rs"
)]
mod perf;

pub use allocations::{Allocations, Allocator, count, is_installed};
pub(crate) use allocations::{count_once, uncounted};
pub use counters::{CounterFigures, Counters, Unavailable};
