//! An older program beside the one of today.

use std::cell::RefCell;

use super::*;
use crate::system::Interrupt;
use crate::worker::Program;

/// What was asked of which program, and how that ended.
type Log = RefCell<Vec<(Program, Request, Done)>>;

/// Launches that are written down.
struct Noted<'a>(Program, &'a dyn Launcher, &'a Log);

impl Launcher for Noted<'_> {
    fn launch(&self, launch: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        Ok(Box::new(NotedLink(self, self.1.launch(launch)?)))
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

struct NotedLink<'a>(&'a Noted<'a>, Box<dyn Link + 'a>);

impl Link for NotedLink<'_> {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let NotedLink(Noted(program, _, log), link) = self;
        let done = link.ask(request, hear)?;
        log.borrow_mut().push((*program, request.clone(), done));
        Ok(done)
    }
}

/// An older program beside the one of today, whose variants are slower or break.
fn beside(past: &[&'static VariantEntry]) -> (Bench, Measured) {
    let effort = Effort { samples: Some(16), launches: Some(4), ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let older = Registry::of(past.iter().copied()).expect("fine");
    let (now, past) = (Again(&bench.registry), Again(&older));
    let measured = bench.measure_beside(&now, &past);
    (bench, measured)
}

#[test]
fn an_older_program_is_measured_block_by_block_beside_this_one() {
    let older = [variant_of_double("double", 1, slower), variant_of_double("twin", 2, right)];
    let (bench, measured) = beside(&older);
    assert_eq!(measured.measurement.launches.len(), 4);
    for (index, cell) in bench.plan.cells.iter().enumerate() {
        let [slow, same] = [0, 1].map(|row| cell.past_of(row));
        for block in measured.measurement.launches.iter().flat_map(|l| &l.cells[index]) {
            let of = |row: usize| block.samples.iter().filter(|s| s.row == row).count();
            // What was disturbed is repeated by the program that it disturbed, alone.
            let counts = [0, 1, slow, same].map(of);
            assert!(counts == [2; 4] || block.requeued, "{counts:?}");
        }
        let seen = crate::infer::Observations::of(&measured.measurement, index);
        let found = crate::infer::compare(&seen, slow, 0, Look::ONLY).expect("enough");
        assert!(found.speedup > 1.2, "{}: {found:?}", cell.name());
    }
}

/// Whatever differs between both besides the program would be taken for a difference of the programs.
#[test]
fn an_older_program_has_the_same_processor_caches_and_calls() {
    fn calibrated(reply: &mut Reply, estimate: f64, calls: u64) {
        let Reply::Prepared(prepared) = reply else { return };
        for calibration in prepared.calibrations.iter_mut().flatten() {
            (calibration.estimate, calibration.calls.per_batch) = (estimate, calls);
        }
    }
    let effort = Effort { samples: Some(48), launches: Some(12), ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let meddled = |reply| Meddled { registry: &bench.registry, request: |_| {}, reply };
    let now = meddled(|reply| calibrated(reply, 1e3, 30));
    let past = meddled(|reply| calibrated(reply, 2e3, 15));
    let log = Log::default();
    let (now, past) = (Noted(Program::Now, &now, &log), Noted(Program::Past, &past, &log));
    bench.measure_beside(&now, &past);
    let mut blocks = Vec::new();
    let mut prepared = Vec::new();
    for (program, request, done) in log.take() {
        match request {
            Request::Measure(visits) => blocks.push((program, visits, done)),
            Request::Prepare(preparation) if preparation.calibrate.is_none() => {
                prepared.push(program);
            }
            _ => {}
        }
    }
    for block in blocks.chunks(4) {
        let [(one, first, done), (other, second, _), third, fourth] = block else {
            panic!("{block:?}")
        };
        assert_ne!(one, other);
        assert_eq!((&third.0, &fourth.0), (other, one), "the same forth and back");
        assert_eq!((first.processor, second.processor), (None, done.processor));
        // The caches are its own where a program has just been measured.
        let settles = [first, second, &third.1, &fourth.1].map(|visits| visits.settle);
        assert_eq!(settles, [true, true, false, true]);
        let reverses = [first, second, &third.1, &fourth.1].map(|v| v.cells[0].reverse);
        assert_eq!(reverses, [false, false, true, true]);
        let calls = |visits: &crate::worker::Visits| -> Vec<_> {
            visits.cells[0].rows.iter().map(|row| row.calibration.calls).collect()
        };
        assert_eq!(calls(first), calls(second));
    }
    let first: Vec<Program> = prepared.chunks(2).map(|turn| turn[0]).collect();
    assert!(first.contains(&Program::Now) && first.contains(&Program::Past), "{first:?}");
    assert!(blocks.iter().any(|(program, ..)| *program == Program::Past));
}

#[test]
fn what_befalls_an_older_program_costs_its_own_rows_alone() {
    fn broken() -> Box<dyn Routine> {
        serial::<Double, _, _>(|reads, _| assert!(reads.0.is_empty(), "of another day"))
    }
    let older = [variant_of_double("double", 1, broken), variant_of_double("twin", 2, right)];
    // It has not the variant at all, or one that breaks.
    for older in [&older[1..], &older[..]] {
        let older: Vec<_> = older.to_vec();
        let base = VariantEntry { is_base: true, ..*older[0] };
        let older = if older.len() == 1 { vec![&*Box::leak(Box::new(base))] } else { older };
        let (bench, measured) = beside(&older);
        for (index, cell) in bench.plan.cells.iter().enumerate() {
            let rows = &measured.rows[index];
            assert!(rows[..2].iter().all(|row| row.failure.is_none()), "{rows:?}");
            assert!((0..2).all(|row| measured.measurement.has(index, row)));
            assert!(rows[cell.past_of(0)].failure.is_some(), "{rows:?}");
        }
    }
}

/// Workers that answer, until those of some launches end while they measure.
struct Mortal<'r> {
    registry: &'r Registry,
    end: fn(launch: u64) -> Option<LinkError>,
    /// Requests to measure that were made.
    asked: Counter<usize>,
}

impl Launcher for Mortal<'_> {
    fn launch(&self, launch: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        Ok(Box::new(MortalLink(self, Worker::new(self.registry), launch)))
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

struct MortalLink<'r>(&'r Mortal<'r>, Worker<'r>, u64);

impl Link for MortalLink<'_> {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let MortalLink(Mortal { end, asked, .. }, worker, launch) = self;
        if let Request::Measure(_) = request {
            asked.set(asked.get() + 1);
            if asked.get().is_multiple_of(4)
                && let Some(error) = end(*launch)
            {
                return Err(error);
            }
        }
        worker.ask(request, hear)
    }
}

/// The rows of an older program that failed, and whether all of them were measured, when its workers end like this.
fn beside_mortals(end: fn(u64) -> Option<LinkError>) -> (Vec<String>, bool, Measured) {
    let effort = Effort { samples: Some(16), launches: Some(4), ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let past = Mortal { registry: &bench.registry, end, asked: Counter::new(0) };
    let measured = bench.measure_beside(&Again(&bench.registry), &past);
    let mut failures = Vec::new();
    let mut is_measured = true;
    for (index, cell) in bench.plan.cells.iter().enumerate() {
        for row in [0, 1].map(|row| cell.past_of(row)) {
            failures.extend(measured.rows[index][row].failure.clone());
            is_measured &= measured.measurement.has(index, row);
        }
    }
    (failures, is_measured, measured)
}

fn killed() -> LinkError {
    LinkError::Ended { how: "SIGKILL".into(), by_others: true, words: None }
}

#[test]
fn an_older_program_that_somebody_kills_loses_a_launch_and_no_row() {
    let (failures, is_measured, measured) = beside_mortals(|launch| (launch == 1).then(killed));
    assert!(failures.is_empty() && is_measured, "{failures:?}");
    assert_eq!(measured.measurement.launches.len(), 4);
    let (failures, _, _) = beside_mortals(|_| Some(killed()));
    assert!(!failures.is_empty(), "the third time is no accident");
}

#[test]
fn an_interrupt_while_an_older_program_is_measured_loses_nothing_of_it() {
    let (failures, is_measured, measured) = beside_mortals(|launch| {
        (launch == 2).then_some(LinkError::Interrupted(Interrupt::Keyboard))
    });
    assert!(failures.is_empty() && is_measured, "{failures:?}");
    assert_eq!(measured.interrupted, Some(Interrupt::Keyboard));
    assert_eq!(measured.spent.lost, 0.0, "whoever is interrupted has measured until then");
}
