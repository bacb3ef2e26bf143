//! What one process of kbench does: it makes data, calls kernels, checks their results and times them.
//!
//! The modules stand in the order in which a run passes through them; none imports one that comes later. What follows them,
//! from launches to reports, is in `kbench-core`, which gives these modules on under its own name.
//!
//! | module | what it gives to the next |
//! |---|---|
//! | [`value`] | elements, operands, data from a seed |
//! | [`gauge`] | what a section of code allocates, and what the processor counts |
//! | [`cuda`] | devices, arrays on them, device code, and time as a device tells it |
//! | [`kernel`] | what the attribute says about a function, as types; calling and timing it |
//! | [`foreign`] | variants that other programs implement |
//! | [`registry`] | all kernels of the linked crates, in a fixed order |
//! | [`plan`] | cells and rows that are selected |
//! | [`check`] | which rows are right, and by how much |
//! | [`worker`] | times of single samples: what one process does when it is told to |
//!
//! [`watch`] tells others how far a run is, [`environment`] describes the machine, [`system`] asks the operating system.

#![cfg_attr(
    not(unix),
    allow(dead_code, unused_imports, reason = "there are worker processes on Unix alone")
)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files as others would"))]

pub mod check;
pub mod cuda;
pub mod environment;
pub mod foreign;
pub mod gauge;
pub mod kernel;
pub mod plan;
pub mod registry;
pub mod value;
pub mod watch;
pub mod worker;

#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod hash;
#[doc(hidden)]
pub mod json;
#[doc(hidden)]
pub mod nearest;
#[doc(hidden)]
pub mod order;
#[doc(hidden)]
pub mod system;
#[doc(hidden)]
pub mod visible;
