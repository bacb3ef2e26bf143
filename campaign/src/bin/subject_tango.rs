//! Two tasks under tango, which pairs `base/work` of one process with `other/work` of another. Which tasks they are is in
//! the environment, so that all tasks are the same machine code.

use std::process::ExitCode;

use campaign::{Task, TaskError};
use tango_bench::{Benchmark, benchmark_fn, cli};

fn main() -> cli::Result<ExitCode> {
    cli::run(vec![
        benchmark("base/work", "CAMPAIGN_BASE")?,
        benchmark("other/work", "CAMPAIGN_OTHER")?,
    ])
}

fn benchmark(name: &'static str, variable: &str) -> Result<Benchmark, TaskError> {
    let task = Task::from_environment(variable)?;
    Ok(benchmark_fn(name, move |bencher| bencher.iter(move || task.run())))
}
