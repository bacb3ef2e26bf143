//! What is asked of the operating system, and the standard library does not have: signals, groups of processes and
//! how they end, limits of memory, the processor that a thread runs on.
//!
//! Every call of the system's own interface is in this folder. Where a system has no such thing, the functions are there
//! and say so by their results.

#![allow(clippy::disallowed_methods)] // files of the system are as they should be

pub(crate) mod cpu;
#[cfg(unix)]
pub(crate) mod descriptors;
mod disk;
#[cfg(unix)]
pub(crate) mod ending;
mod float_mode;
mod interrupt;
#[cfg(unix)]
mod lines;
pub(crate) mod memory;
#[cfg(unix)]
mod output;
mod process_group;
mod threads;

pub(crate) use disk::{SYNCS_FILE_SYSTEMS, sync_file_system};
pub(crate) use float_mode::FloatMode;
pub use interrupt::Interrupt;
pub use interrupt::{interrupted, listen};
#[cfg(unix)]
pub(crate) use lines::{Heard, Lines, is_pause};
#[cfg(unix)]
pub(crate) use output::Output;
#[cfg(unix)]
pub(crate) use process_group::{
    ProcessGroup, end_others_of_own_group, exit_at_once, own_group, release_stdin, user,
    wait_for_children,
};
pub(crate) use threads::count as threads;
