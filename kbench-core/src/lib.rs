//! The runtime of kbench.
//!
//! The modules stand in the order in which a run passes through them; none imports one that comes later.
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
//! | [`measure`] | samples of the rows that are right, launch by launch |
//! | [`infer`] | estimates, comparisons and verdicts |
//! | [`crossover`] | from which size on a variant wins, by measuring sizes that nobody listed |
//! | [`report`] | one document, and the forms in which it is shown |
//! | [`store`] | runs that last, read and written |
//! | [`baseline`] | a run against an older one |
//! | [`gate`] | whether a run passes |
//! | [`tuning`] | measured thresholds, as text of the file that the macros read |
//!
//! [`Suite`] drives them; [`harness`] is the command line, which nothing else knows. [`watch`] tells others how far a run
//! is, [`environment`] where it is made; `system`, which nobody outside sees, asks the operating system.

#![cfg_attr(
    not(unix),
    allow(dead_code, unused_imports, reason = "there are worker processes on Unix alone")
)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files as others would"))]

pub mod baseline;
pub mod crossover;
pub mod gate;
pub mod harness;
pub mod infer;
pub mod measure;
pub mod report;
pub mod store;
pub mod tuning;

mod accelerator;
mod calendar;
mod settings;
mod suite;
mod workers;

pub use kbench_worker::{
    check, cuda, environment, foreign, gauge, kernel, plan, registry, value, watch, worker,
};
use kbench_worker::{files, hash, order, system, visible};

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod doorway;

// Fuzz targets have no other kernels either.
#[cfg(any(test, fuzzing))]
#[allow(dead_code, reason = "some are for the tests of kbench-worker alone")]
#[path = "../../kbench-worker/src/registry/fixtures.rs"]
mod fixtures;

pub use suite::{Configuration, DEFAULT_SEED, Journal, Past, Suite, SuiteError};
pub use workers::Workers;

/// What the attribute's expansion names. Not for use by hand: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::cuda::{DeviceArguments, Gpu, Upload};
    pub use crate::kernel::*;
    pub use crate::value::*;
    pub use inventory;
    pub use std::{boxed::Box, option::Option, string::String, vec::Vec};
}

/// The `main` of a benchmark target.
///
/// `kbench::main!();` follows cargo's conventions for `harness = false` targets: it measures when `cargo bench` passes
/// `--bench`, and checks otherwise. `kbench::main!(measure);` measures unless told otherwise, for programs that people
/// start themselves. `kbench::main!(measure, brief);` does so, too; where there is no GPU it measures element types after the
/// first at one size, unless `--all-types` or the name of a kernel, type or size is given.
///
/// A target that lacks `harness = false` has a test that fails and says so.
#[macro_export]
macro_rules! main {
    () => {
        $crate::main! { @main Test }
    };
    (measure) => {
        $crate::main! { @main Measure }
    };
    (measure, brief) => {
        $crate::main! { @main MeasureBriefly }
    };
    (@main $mode:ident) => {
        fn main() -> ::std::process::ExitCode {
            let package = ::core::option_env!("CARGO_PKG_NAME");
            $crate::harness::main($crate::harness::DefaultMode::$mode, package)
        }

        #[::core::prelude::v1::test]
        fn this_target_needs_harness_false_in_its_manifest() {
            let _ = main;
            ::core::panic!(
                "kbench did not run: write `harness = false` below the `name` of this target in Cargo.toml"
            );
        }
    };
}
