//! One task under criterion. Which one is in the environment, so that all tasks are the same machine code.

use campaign::Task;
use criterion::{Criterion, criterion_group, criterion_main};

fn work(criterion: &mut Criterion) {
    match Task::from_environment("CAMPAIGN_TASK") {
        Ok(task) => drop(criterion.bench_function("work", |bencher| bencher.iter(|| task.run()))),
        Err(error) => fail(&error),
    }
}

fn fail(error: &campaign::TaskError) -> ! {
    eprintln!("{error}");
    std::process::exit(2)
}

criterion_group!(benches, work);
criterion_main!(benches);
