use std::ffi::OsStr;
use std::path::Path;

use crate::registry::Registry;
use crate::worker::{ForeignRequest, Launcher, SameProcess};

/// The argument that makes a program a worker.
const ARGUMENT: &str = "--worker";

/// Where the launches of a run come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workers {
    /// This very process: there is one launch, and verdicts are provisional.
    #[default]
    SameProcess,
    /// This program, started again and again. Its `main` must begin with [`Workers::here`].
    ThisProgram,
}

impl Workers {
    /// The first thing in `main` of a program that drives a [`Suite`](crate::Suite) itself: where the program was
    /// started as a worker this serves its controller and does not return.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let workers = kbench_core::Workers::here();
    /// let report = kbench_core::Suite::discover()?.configure(|c| c.workers = workers).run()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn here() -> Self {
        // With anything behind it, it is the flag that names a foreign worker.
        let mut words = std::env::args_os().skip(1);
        if words.next().as_deref() != Some(OsStr::new(ARGUMENT)) || words.next().is_some() {
            return Workers::available();
        }
        let served = match Registry::collect() {
            Ok(registry) => serve(&registry),
            Err(error) => Err(std::io::Error::other(error)),
        };
        if let Err(error) = served {
            eprintln!(
                "error: `{ARGUMENT}` alone is for kbench itself, which talks to workers: {error}\n\
                 note: to name a foreign worker, write {ARGUMENT} NAME or {ARGUMENT} NAME=COMMAND"
            );
            std::process::exit(2);
        }
        std::process::exit(0)
    }

    /// What this system can do.
    fn available() -> Self {
        if cfg!(unix) { Workers::ThisProgram } else { Workers::SameProcess }
    }

    /// The launcher of these workers, which know of foreign ones; this process where no other can be had.
    pub(crate) fn launcher<'r>(
        self,
        registry: &'r Registry,
        seed: u64,
        foreign: Option<ForeignRequest>,
    ) -> Box<dyn Launcher + 'r> {
        #[cfg(unix)]
        if self == Workers::ThisProgram
            && let Ok(processes) = crate::worker::Processes::of_this_program(ARGUMENT, seed)
        {
            return Box::new(processes.knowing(foreign));
        }
        let _ = (seed, foreign);
        Box::new(SameProcess(registry))
    }

    /// The launcher of another build of this program; none where there are no other processes.
    pub(crate) fn launcher_of(self, program: &Path, seed: u64) -> Option<Box<dyn Launcher>> {
        #[cfg(unix)]
        if self == Workers::ThisProgram {
            let program = program.to_owned();
            return Some(Box::new(crate::worker::Processes::of(program, ARGUMENT, seed)));
        }
        let _ = (program, seed);
        None
    }
}

#[cfg(unix)]
fn serve(registry: &Registry) -> std::io::Result<()> {
    crate::worker::serve(registry)
}

#[cfg(not(unix))]
fn serve(_: &Registry) -> std::io::Result<()> {
    Err(std::io::Error::other("there are no workers on this system"))
}
