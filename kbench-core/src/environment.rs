//! The machine and the build that a run was made with, and what makes its figures doubtful.

use std::fs;

use serde::Serialize;

/// Where and with what a run was made.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// Model of the processor.
    pub cpu: String,
    /// Threads that this process may use.
    pub cores: usize,
    /// Operating system and architecture.
    pub target: &'static str,
    /// The compiler.
    pub rustc: &'static str,
    /// Optimisation level that kbench was built with.
    pub opt_level: &'static str,
    /// Version of kbench.
    pub kbench: &'static str,
}

impl Environment {
    /// Looks at this machine.
    pub fn read() -> Self {
        Environment {
            cpu: cpu_model().unwrap_or_else(|| "unknown processor".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            target: env!("KBENCH_TARGET"),
            rustc: env!("KBENCH_RUSTC"),
            opt_level: env!("KBENCH_OPT_LEVEL"),
            kbench: env!("CARGO_PKG_VERSION"),
        }
    }

    /// What makes measurements of this build doubtful, in plain words.
    pub fn warnings(&self, debug_assertions: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        if matches!(self.opt_level, "0" | "1") {
            warnings.push(format!(
                "debug build: compiled with opt-level {}, so these times say nothing about optimised code; \
                 use `cargo bench`, `--release`, or set `opt-level = 3` in the profile",
                self.opt_level
            ));
        } else if debug_assertions {
            warnings.push(
                "debug assertions are on in the measured code: it checks for overflow, and may not be optimised at all; \
                 use `cargo bench`, `--release`, or set `debug-assertions = false` in the profile"
                    .to_owned(),
            );
        }
        if self.cores == 1 {
            warnings.push("one core: parallel variants cannot be faster here".to_owned());
        }
        warnings
    }
}

fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
