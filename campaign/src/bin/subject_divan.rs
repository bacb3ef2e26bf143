//! One task under divan. Which one is in the environment, so that all tasks are the same machine code.

use campaign::{Task, TaskError};
use divan::Bencher;

fn main() -> Result<(), TaskError> {
    Task::from_environment("CAMPAIGN_TASK")?;
    divan::main();
    Ok(())
}

#[divan::bench]
fn work(bencher: Bencher<'_, '_>) {
    let task = Task::from_environment("CAMPAIGN_TASK").expect("`main` has looked");
    bencher.bench_local(|| task.run());
}
