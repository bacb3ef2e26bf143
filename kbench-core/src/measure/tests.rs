//! The measuring stage with workers that live in this process but count as launches of their own.

use std::cell::Cell as Counter;
use std::time::{Duration, Instant};

use super::*;
use crate::check::{Coverage, check_plan};
use crate::infer::Rules;
use crate::kernel::{Routine, VariantEntry, serial};
use crate::plan::{Plan, Selection};
use crate::registry::Registry;
use crate::registry::tests::{Double, right, variant_of_double};
use crate::worker::{Done, Launcher, Link, LinkError, Place, Reply, Request, SameProcess, Worker};

/// Right, and slow enough to fill a budget with a few calls.
fn slow() -> Box<dyn Routine> {
    serial::<Double, _, _>(|reads, writes| {
        std::thread::sleep(Duration::from_millis(20));
        reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = 2.0 * x);
    })
}

/// Right, and three times the work.
fn thrice() -> Box<dyn Routine> {
    serial::<Double, _, _>(|reads, writes| {
        for _ in 0..3 {
            let pairs = std::hint::black_box(&reads.0).iter().zip(&mut writes.0);
            pairs.for_each(|(x, y)| *y = std::hint::black_box(2.0 * x));
        }
    })
}

/// Launches that are as good as processes.
struct Again<'r>(&'r Registry);

impl Launcher for Again<'_> {
    fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        Ok(Box::new(Worker::new(self.0)))
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

struct Bench {
    registry: Registry,
    plan: Plan,
    effort: Effort,
    isolation: Isolation,
}

impl Bench {
    fn new(entries: &[&'static VariantEntry], effort: Effort) -> Self {
        let registry = Registry::of(entries.iter().copied()).expect("fine");
        let plan = Plan::new(&registry, &Selection::default(), &[]).expect("a plan");
        Bench { registry, plan, effort, isolation: Isolation::Shared }
    }

    fn measure(&self, launcher: &dyn Launcher) -> Measured {
        let checked = check_plan(&self.plan, Coverage::EverySize, 1, &mut ());
        let assignment = Assignment {
            plan: &self.plan,
            checked: &checked,
            effort: &self.effort,
            seed: 1,
            isolation: self.isolation,
            inspect: false,
            launcher,
            judge: &Rules::default(),
        };
        measure_plan(&assignment, &mut ())
    }
}

fn pair() -> [&'static VariantEntry; 2] {
    [variant_of_double("double", 1, right), variant_of_double("twin", 2, right)]
}

#[test]
fn every_row_gets_its_samples() {
    let effort = Effort { samples: Some(10), ..Effort::quick() };
    let bench = Bench::new(&[variant_of_double("double", 1, right)], effort);
    let measured = bench.measure(&SameProcess(&bench.registry));
    assert_eq!(measured.measurement.launches.len(), 1);
    for (cell, blocks) in bench.plan.cells.iter().zip(&measured.measurement.launches[0].cells) {
        let counted = blocks.iter().filter(|block| !block.requeued).count();
        assert_eq!(counted, 5, "{}", cell.name());
        assert!(blocks.iter().all(|b| b.samples.len() == 2 && b.samples[0].nanoseconds > 0.0));
        assert!(blocks.iter().all(|b| b.samples.iter().all(|sample| sample.chain > 0.0)));
    }
    assert!(measured.spent.inside > 0.0 && measured.spent.inside <= measured.spent.measuring);
}

#[test]
fn a_budget_that_ends_skips_what_is_left_and_says_so() {
    let effort = Effort { budget: Duration::from_millis(200), ..Effort::quick() };
    let bench = Bench::new(&[variant_of_double("double", 1, slow)], effort);
    let start = Instant::now();
    let measured = bench.measure(&SameProcess(&bench.registry));
    let skipped: Vec<&String> =
        measured.rows.iter().flatten().filter_map(|row| row.skipped.as_ref()).collect();
    assert!(!skipped.is_empty(), "three cells of 20 ms a call do not fit in 200 ms");
    assert!(skipped.iter().all(|reason| reason.contains("raise --budget")), "{skipped:?}");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn all_cells_share_as_many_launches_as_were_asked_for() {
    let effort = Effort { launches: Some(6), samples: Some(24), ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let measured = bench.measure(&Again(&bench.registry));
    let launches = &measured.measurement.launches;
    assert_eq!(launches.len(), 6);
    for launch in launches {
        assert!(launch.cells.iter().all(|blocks| !blocks.is_empty()), "each cell in each launch");
    }
    assert!(measured.looks.iter().all(|look| *look == Some(Look::ONLY)), "{:?}", measured.looks);
}

#[test]
fn without_a_wish_the_number_of_launches_follows_from_the_time() {
    let budget = Duration::from_millis(600);
    let effort = Effort { budget, measurement_time: budget, ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let start = Instant::now();
    let measured = bench.measure(&Again(&bench.registry));
    let launches = measured.measurement.launches.len();
    assert!((5..=40).contains(&launches), "{launches}");
    assert!(start.elapsed() < 3 * budget, "{:?}", start.elapsed());
}

#[test]
fn isolated_rows_share_no_launch() {
    let effort = Effort { launches: Some(3), samples: Some(12), ..Effort::default() };
    let bench = Bench { isolation: Isolation::Isolated, ..Bench::new(&pair(), effort) };
    let measured = bench.measure(&Again(&bench.registry));
    let launches = &measured.measurement.launches;
    assert_eq!(launches.len(), 6, "three for every row");
    let mut of_rows = [0, 0];
    for launch in launches {
        let rows = |cell: &Vec<crate::worker::Block>| -> Vec<usize> {
            cell.iter().flat_map(|block| block.samples.iter().map(|sample| sample.row)).collect()
        };
        let rows: Vec<usize> = launch.cells.iter().flat_map(rows).collect();
        assert!(rows.iter().all(|row| *row == rows[0]), "{rows:?}");
        of_rows[rows[0]] += 1;
    }
    assert_eq!(of_rows, [3, 3]);
}

/// A difference that nobody can miss ends its cell at the first look, and what is not decided goes on to the end.
#[test]
fn a_decided_cell_leaves_early() {
    let budget = Duration::from_secs(3);
    let launches = Some(20);
    let effort = Effort { budget, measurement_time: budget, launches, ..Effort::default() };
    let entries = [variant_of_double("double", 1, right), variant_of_double("thrice", 2, thrice)];
    let bench = Bench::new(&entries, effort);
    let measured = bench.measure(&Again(&bench.registry));
    let early = |look: &Option<Look>| look.is_some_and(|look| !look.is_last);
    assert!(measured.looks.iter().any(early), "{:?}", measured.looks);
    let cell = measured.looks.iter().position(early).expect("one that left");
    let launches = &measured.measurement.launches;
    let visited = launches.iter().filter(|launch| !launch.cells[cell].is_empty()).count();
    assert!(visited < 20, "it was in {visited} launches");
}

/// A worker that ends in its second launch while it calls a row for the first time.
struct Dying<'r> {
    registry: &'r Registry,
    launches: Counter<u32>,
}

impl Launcher for Dying<'_> {
    fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        self.launches.set(self.launches.get() + 1);
        let worker = Worker::new(self.registry);
        Ok(if self.launches.get() == 2 { Box::new(Dies(worker)) } else { Box::new(worker) })
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

struct Dies<'r>(Worker<'r>);

impl Link for Dies<'_> {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        match request {
            Request::Measure(_) => {
                hear(Reply::Calling(Place { cell: 0, row: 1 }));
                Err(LinkError::Ended("signal: 11".into()))
            }
            other => self.0.ask(other, hear),
        }
    }
}

#[test]
fn a_worker_that_ends_costs_the_row_that_it_was_calling() {
    let effort = Effort { launches: Some(5), samples: Some(20), ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let launcher = Dying { registry: &bench.registry, launches: Counter::new(0) };
    let measured = bench.measure(&launcher);
    let failures: Vec<&str> =
        measured.rows.iter().flatten().filter_map(|row| row.failure.as_deref()).collect();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("signal: 11"), "{failures:?}");
    assert!(measured.rows[0][1].failure.is_some());
    assert_eq!(measured.measurement.launches.len(), 5, "the others go on");
}

#[test]
fn a_program_that_cannot_be_started_fails_its_rows_with_a_hint() {
    struct Missing;
    impl Launcher for Missing {
        fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
            Err(LinkError::Start(std::io::Error::other("no such file")))
        }
        fn is_fresh(&self) -> bool {
            true
        }
    }
    let bench = Bench::new(&pair(), Effort::quick());
    let measured = bench.measure(&Missing);
    for row in measured.rows.iter().flatten() {
        assert!(row.failure.as_ref().is_some_and(|f| f.contains("cannot be started")), "{row:?}");
    }
}
