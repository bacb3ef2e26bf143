//! The crate under `tests/downstream`, which is nobody's member, driven as its author would.

mod cargo;
mod crossovers;
// It puts libraries in the way of CUDA's, by the loader of Linux.
#[cfg(target_os = "linux")]
mod devices;
// These expect worker processes, which are there on Unix alone.
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod foreign;
// It reads `/proc`.
#[cfg(target_os = "linux")]
mod interrupts;
#[cfg(unix)]
mod launches;
mod library;
mod limits;
mod production;
#[cfg(unix)]
mod results;
mod support;
mod surroundings;
#[cfg(unix)]
mod trust;
mod tuning;
