//! The measuring stage with workers that live in this process but count as launches of their own.

mod beside;

use std::cell::Cell as Counter;
use std::time::{Duration, Instant};

use super::*;
use crate::check::{Coverage, check_plan};
use crate::fixtures::{Double, right, variant_of_double};
use crate::infer::Rules;
use crate::kernel::{Routine, VariantEntry, serial};
use crate::plan::{Plan, Selection};
use crate::registry::Registry;
use crate::worker::{
    DeviceRequest, Done, Duet, Launcher, Link, LinkError, Place, Reply, Request, SameProcess,
    USUAL_TIMEOUT, Worker, WorkerChecks,
};

/// Right, and slow enough to fill a budget with a few calls.
fn slow() -> Box<dyn Routine> {
    serial::<Double, _, _>(|reads, writes| {
        std::thread::sleep(Duration::from_millis(20));
        reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = 2.0 * x);
    })
}

/// Right, and slower than it could be.
fn slower() -> Box<dyn Routine> {
    serial::<Double, _, _>(|reads, writes| {
        std::thread::sleep(Duration::from_micros(300));
        reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = 2.0 * x);
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

/// The same, with somebody who changes requests and replies on their way.
struct Meddled<'r> {
    registry: &'r Registry,
    request: fn(&mut Request),
    reply: fn(&mut Reply),
}

impl Launcher for Meddled<'_> {
    fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        let Meddled { registry, request, reply } = *self;
        Ok(Box::new(MeddledLink { worker: Worker::new(registry), request, reply }))
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

struct MeddledLink<'r> {
    worker: Worker<'r>,
    request: fn(&mut Request),
    reply: fn(&mut Reply),
}

impl Link for MeddledLink<'_> {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let mut request = request.clone();
        (self.request)(&mut request);
        self.worker.ask(&request, &mut |mut reply| {
            (self.reply)(&mut reply);
            hear(reply);
        })
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
        let plan = Plan::new(&registry, &Selection::default(), &[], &[]).expect("a plan");
        Bench { registry, plan, effort, isolation: Isolation::Shared }
    }

    fn measure(&self, launcher: &dyn Launcher) -> Measured {
        self.measure_by(launcher, &Rules::default())
    }

    /// All rows, in turns with those of an older program.
    fn measure_beside(&self, now: &dyn Launcher, past: &dyn Launcher) -> Measured {
        let has = |cell: &crate::plan::Cell| vec![true; cell.rows.len()];
        let rows: Vec<Vec<bool>> = self.plan.cells.iter().map(has).collect();
        self.measure_with(&Duet::new(now, past, 1), &Rules::default(), &rows)
    }

    fn measure_by(&self, launcher: &dyn Launcher, judge: &dyn Judge) -> Measured {
        self.measure_with(launcher, judge, &[])
    }

    fn measure_with(
        &self,
        launcher: &dyn Launcher,
        judge: &dyn Judge,
        past: &[Vec<bool>],
    ) -> Measured {
        self.measure_in((self.effort.budget.time(), Duration::ZERO), launcher, judge, past)
    }

    /// In some time, or with a reserve if it is short.
    fn measure_in(
        &self,
        (time, reserve): (Duration, Duration),
        launcher: &dyn Launcher,
        judge: &dyn Judge,
        past: &[Vec<bool>],
    ) -> Measured {
        let here = SameProcess(&self.registry);
        let (device, timeout) = (DeviceRequest::default(), USUAL_TIMEOUT);
        let mut checks =
            WorkerChecks { launcher: &here, device: device.clone(), timeout, regimes: None };
        let coverage = Coverage::EverySize;
        let checked = check_plan(&self.plan, coverage, 1, &Ok(()), &mut checks, &mut ());
        let assignment = Assignment {
            plan: &self.plan,
            checked: &checked,
            effort: &self.effort,
            time,
            reserve,
            seed: 1,
            order_seed: 1,
            isolation: self.isolation,
            inspect: false,
            inspect_device: true,
            device: &device,
            timeout,
            past,
            launcher,
            judge,
        };
        measure_plan(&assignment, &mut (), &mut |_| {})
    }
}

fn pair() -> [&'static VariantEntry; 2] {
    [variant_of_double("double", 1, right), variant_of_double("twin", 2, right)]
}

#[test]
fn rows_whose_turn_did_not_come_are_completed_and_others_stay_as_they_are() {
    let row = |skipped: Option<&str>, bytes| RowMeasured {
        skipped: skipped.map(Into::into),
        bytes: Some(bytes),
        ..RowMeasured::default()
    };
    let of = |rows, look| Measured {
        measurement: Measurement { launches: vec![Launch::default()] },
        rows: vec![rows],
        looks: vec![vec![look; 2]],
        ..Measured::default()
    };
    let mut measured = of(vec![row(None, 1.0), row(Some("no time"), 2.0)], None);
    measured.complete(of(vec![row(Some("not asked"), 3.0), row(None, 4.0)], Some(Look::ONLY)));
    let bytes: Vec<Option<f64>> = measured.rows[0].iter().map(|row| row.bytes).collect();
    assert_eq!(bytes, [Some(1.0), Some(4.0)]);
    assert!(!measured.is_skipped(0, 1) && measured.looks[0] == [None, Some(Look::ONLY)]);
    assert_eq!(measured.measurement.launches.len(), 2);
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
    let effort = Effort { budget: Budget::Fixed(Duration::from_millis(120)), ..Effort::quick() };
    let bench = Bench::new(&[variant_of_double("double", 1, slow)], effort);
    let start = Instant::now();
    let measured = bench.measure(&SameProcess(&bench.registry));
    let skipped: Vec<&String> =
        measured.rows.iter().flatten().filter_map(|row| row.skipped.as_ref()).collect();
    assert!(!skipped.is_empty(), "three cells of 20 ms a call do not fit in 120 ms");
    assert!(skipped.iter().all(|reason| reason.contains("raise --budget")), "{skipped:?}");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_budget_that_calibration_has_used_up_measures_nothing() {
    let effort = Effort { budget: Budget::Fixed(Duration::from_millis(30)), ..Effort::default() };
    let bench = Bench::new(&[variant_of_double("double", 1, slow)], effort);
    let measured = bench.measure(&Again(&bench.registry));
    assert!(measured.measurement.launches.is_empty());
    let skipped = |row: &RowMeasured| row.skipped.as_ref().is_some_and(|s| s.contains("--budget"));
    assert!(measured.rows.iter().flatten().all(skipped), "{:?}", measured.rows);
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
    assert!(measured.looks.iter().flatten().all(|look| *look == Some(Look::ONLY)));
}

#[test]
fn without_a_wish_the_number_of_launches_follows_from_the_time() {
    let budget = Duration::from_millis(600);
    let effort =
        Effort { budget: Budget::Fixed(budget), measurement_time: budget, ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let start = Instant::now();
    let measured = bench.measure(&Again(&bench.registry));
    let launches = measured.measurement.launches.len();
    // Forty at most, and further ones in what time they have left.
    assert!((5..=45).contains(&launches), "{launches}");
    assert!(start.elapsed() < 3 * budget, "{:?}", start.elapsed());
}

/// Everything looks as if it took twenty times as long as it does, for which eight blocks would be enough.
#[test]
fn a_calibration_that_was_disturbed_does_not_leave_a_cell_with_few_blocks() {
    fn disturb(reply: &mut Reply) {
        if let Reply::Prepared(cell) = reply {
            cell.calibrations.iter_mut().flatten().for_each(|row| row.estimate *= 20.0);
        }
    }
    let fewest_blocks = |launches: Option<u32>| {
        let measurement_time = Duration::from_millis(100);
        let effort = Effort { measurement_time, launches, ..Effort::default() };
        let bench = Bench::new(&pair(), effort);
        let registry = &bench.registry;
        let measured = bench.measure(&Meddled { registry, request: |_| {}, reply: disturb });
        let of_cell = |cell: usize| -> usize {
            measured.measurement.launches.iter().map(|launch| launch.cells[cell].len()).sum()
        };
        (0..bench.plan.cells.len()).map(of_cell).min().unwrap_or(0)
    };
    for launches in [None, Some(6)] {
        // A busy machine has time for fewer, now and then; the mistake would show every time.
        let attempts = std::iter::repeat_with(|| fewest_blocks(launches)).take(5);
        let most = attempts.take_while(|blocks| *blocks <= 25).collect::<Vec<_>>();
        assert!(most.len() < 5, "{most:?} of about a hundred blocks");
    }
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

/// Calls the first cell decided at every look, and no other.
struct Hasty;

impl Judge for Hasty {
    fn outlooks(
        &self,
        _: &Measurement,
        cells: &[OpenCell<'_>],
        _: Look,
        _: Family,
    ) -> Vec<Vec<Outlook>> {
        let outlook = |index| if index == 0 { Outlook::Decided } else { Outlook::Open };
        cells.iter().map(|open| vec![outlook(open.index); open.rows.len()]).collect()
    }

    fn spreads(&self, _: &Measurement, cells: &[OpenCell<'_>]) -> Vec<Option<Spread>> {
        vec![None; cells.len()]
    }
}

/// What is kept for the search is given to rows that would have too few launches without it, and to no others.
#[test]
fn a_reserve_is_for_rows_that_would_have_fewer_than_five_launches() {
    let effort = Effort { launches: None, ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let launches = |times: (Duration, Duration)| {
        let again = Again(&bench.registry);
        let measured = bench.measure_in(times, &again, &Hasty, &[]);
        let rows = (0..bench.plan.cells.len()).map(|cell| {
            let cells = measured.measurement.launches.iter().map(|launch| &launch.cells[cell]);
            cells.filter(|blocks| !blocks.is_empty()).count()
        });
        rows.min().unwrap_or(0)
    };
    let (none, minute) = (Duration::ZERO, Duration::from_secs(60));
    let without = launches((Duration::from_millis(1), none));
    let begun = Instant::now();
    let with = launches((Duration::from_millis(1), minute));
    assert!(without < 5 && with >= 5, "{without} launches without it, {with} with it");
    assert!(begun.elapsed() < minute / 2, "no more of it than that takes");
}

/// Calls that seem to take a second until they are measured: five launches of them would take all of the reserve.
#[test]
fn what_is_borrowed_of_a_reserve_and_not_needed_goes_back() {
    fn overestimated(reply: &mut Reply) {
        let Reply::Prepared(prepared) = reply else { return };
        for calibration in prepared.calibrations.iter_mut().flatten() {
            (calibration.estimate, calibration.calls) = (1e9, crate::kernel::Calls::once(1));
        }
    }
    let effort = Effort { launches: None, ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let late = Meddled { registry: &bench.registry, request: |_| {}, reply: overestimated };
    let minute = Duration::from_secs(60);
    let begun = Instant::now();
    bench.measure_in((Duration::from_millis(1), minute), &late, &Hasty, &[]);
    assert!(begun.elapsed() < minute / 2, "{:?}", begun.elapsed());
}

/// What one worker gives back, the next one gets.
#[test]
fn workers_of_rows_on_the_host_have_little_data_at_a_time() {
    fn note(request: &mut Request) {
        if let Request::Prepare(preparation) = request {
            assert_eq!(preparation.memory, 256 << 20);
        }
    }
    let effort = Effort { samples: Some(4), launches: Some(2), ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let noted = Meddled { registry: &bench.registry, request: note, reply: |_| {} };
    let measured = bench.measure(&noted);
    assert_eq!(measured.measurement.launches.len(), 2);
}

#[test]
fn a_decided_cell_leaves_at_the_first_look() {
    let effort = Effort {
        budget: Budget::Fixed(Duration::from_secs(4)),
        launches: None,
        ..Effort::default()
    };
    let bench = Bench::new(&pair(), effort);
    let measured = bench.measure_by(&Again(&bench.registry), &Hasty);
    let interim = Look { interim: 4, is_last: false };
    let last = Look { is_last: true, ..interim };
    assert_eq!(measured.looks, [interim, last, last].map(|look| vec![Some(look); 2]));
    let launches = &measured.measurement.launches;
    let blocks = |launch: usize, cell: usize| -> usize {
        launches[launch].cells[cell].iter().filter(|block| !block.requeued).count()
    };
    let with = |cell: usize| (0..launches.len()).filter(|launch| blocks(*launch, cell) > 0).count();
    assert!((5..with(1)).contains(&with(0)), "{} of {} launches", with(0), with(1));
}

/// Side by side with a run in which nothing is decided; a machine may be slower in one of both, but hardly five times.
#[test]
fn the_time_of_a_decided_cell_goes_to_the_others() {
    let effort = Effort {
        budget: Budget::Fixed(Duration::from_secs(2)),
        launches: None,
        ..Effort::default()
    };
    let bench = Bench::new(&pair(), effort);
    let others = |judge: &dyn Judge| -> usize {
        let measured = bench.measure_by(&Again(&bench.registry), judge);
        let blocks = |launch: &Launch| launch.cells[1].len() + launch.cells[2].len();
        measured.measurement.launches.iter().map(blocks).sum()
    };
    let has_more = |_: u32| {
        let (with, without) = (others(&Hasty), others(&()));
        with as f64 > 1.1 * without as f64
    };
    assert!((0..5).any(has_more), "others have no more blocks when a cell leaves");
}

/// What a worker does in a given launch instead of its work.
#[derive(Clone, Copy)]
enum Fate {
    /// Ends while it makes the data of its first cell.
    DiesInData,
    /// Ends while it calls the second row of the first cell for the first time.
    DiesInRow,
    /// Ends later, when nobody is announced.
    DiesLater,
    /// The same, in a call of the second row of the first cell, should anybody want to know.
    DiesLaterInRow,
    /// Says something that makes no sense while it calibrates.
    TalksNonsense,
    /// Ends while it looks at the results of the second row.
    DiesInRecheck,
    /// Cannot be started.
    NeverStarts,
}

/// Workers of which some meet their fate.
struct Doomed<'r> {
    registry: &'r Registry,
    launches: Counter<u32>,
    fate: Fate,
    /// The launches in which it happens.
    when: std::ops::RangeInclusive<u32>,
}

impl Launcher for Doomed<'_> {
    fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        self.launches.set(self.launches.get() + 1);
        let worker = Worker::new(self.registry);
        match self.fate {
            _ if !self.when.contains(&self.launches.get()) => Ok(Box::new(worker)),
            Fate::NeverStarts => Err(LinkError::Start(std::io::Error::other("no more processes"))),
            fate => Ok(Box::new(Dies { worker, fate })),
        }
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

struct Dies<'r> {
    worker: Worker<'r>,
    fate: Fate,
}

impl Link for Dies<'_> {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let at = |row| Reply::Calling(Place { cell: 0, row });
        let last_words = match (self.fate, request) {
            (Fate::DiesInData, Request::Prepare(_)) => at(None),
            (Fate::DiesInRow, Request::Measure(_)) => at(Some(1)),
            (Fate::DiesInRecheck, Request::Recheck(_)) => at(Some(1)),
            (Fate::DiesLaterInRow, Request::Measure(visits)) if visits.announce => at(Some(1)),
            (Fate::DiesLater | Fate::DiesLaterInRow, Request::Measure(_)) => Reply::Called,
            (Fate::TalksNonsense, Request::Prepare(_)) => {
                hear(at(Some(1)));
                let error = Reply::from_json("hello").expect_err("no reply");
                return Err(LinkError::Nonsense { line: "hello".into(), error });
            }
            _ => return self.worker.ask(request, hear),
        };
        hear(last_words);
        Err(LinkError::Ended { how: "signal: 11".into(), by_others: false, words: None })
    }
}

/// Measures five launches of a pair; gives what came of it, and the rows that failed as (cell, row).
fn doomed(fate: Fate, when: std::ops::RangeInclusive<u32>) -> (Measured, Vec<(usize, usize)>) {
    let effort = Effort { launches: Some(5), samples: Some(20), ..Effort::default() };
    let bench = Bench::new(&pair(), effort);
    let launches = Counter::new(0);
    let measured = bench.measure(&Doomed { registry: &bench.registry, launches, fate, when });
    let mut failed = Vec::new();
    for (cell, rows) in measured.rows.iter().enumerate() {
        for (row, known) in rows.iter().enumerate() {
            if known.failure.as_ref().is_some_and(|failure| failure.contains("signal: 11")) {
                failed.push((cell, row));
            }
        }
    }
    (measured, failed)
}

#[test]
fn a_worker_that_ends_costs_what_it_was_calling_and_nothing_else() {
    for (fate, when, expected) in [
        (Fate::DiesInRow, 2..=2, vec![(0, 1)]),
        (Fate::DiesInRecheck, 1..=1, vec![(0, 1)]),
        (Fate::DiesInData, 1..=1, vec![(0, 0), (0, 1)]),
        (Fate::DiesInData, 3..=3, vec![(0, 0), (0, 1)]),
        // Found out by the next worker, which announces every call.
        (Fate::DiesLaterInRow, 1..=2, vec![(0, 1)]),
    ] {
        let (measured, failed) = doomed(fate, when);
        assert_eq!(failed, expected);
        let launches = &measured.measurement.launches;
        let visited = launches.iter().filter(|launch| !launch.cells[2].is_empty()).count();
        assert!(visited >= 5, "the others go on, and what was lost is made up for: {visited}");
    }
}

#[test]
fn a_worker_that_ends_when_nobody_was_announced_costs_a_launch_which_is_made_up_for() {
    let (measured, failed) = doomed(Fate::DiesLater, 2..=3);
    assert!(failed.is_empty(), "{failed:?}");
    let launches = &measured.measurement.launches;
    assert_eq!(launches.iter().filter(|launch| !launch.cells[0].is_empty()).count(), 5);
    let told = |row: &RowMeasured| {
        row.remark.as_ref().is_some_and(|remark| remark.contains("2 of its launches"))
    };
    assert!(measured.rows.iter().flatten().all(told), "{:?}", measured.rows);
}

#[test]
fn rows_that_no_worker_lives_to_measure_have_failed_and_were_not_skipped() {
    let (measured, failed) = doomed(Fate::DiesLater, 1..=99);
    assert_eq!(failed.len(), 6, "{failed:?}");
    assert!(measured.rows.iter().flatten().all(|row| row.skipped.is_none()));
}

/// The second row of every cell is never reached; its sibling is.
#[test]
fn a_row_without_samples_is_no_measured_row_because_its_sibling_is_one() {
    fn starve(request: &mut Request) {
        if let Request::Measure(visits) = request {
            visits.cells.iter_mut().for_each(|cell| cell.rows.truncate(1));
        }
    }
    let bench = Bench::new(&pair(), Effort { samples: Some(4), ..Effort::quick() });
    let registry = &bench.registry;
    let measured = bench.measure(&Meddled { registry, request: starve, reply: |_| {} });
    for rows in &measured.rows {
        assert!(rows[0].skipped.is_none() && rows[1].skipped.is_some(), "{rows:?}");
    }
}

#[test]
fn nonsense_fails_what_is_waiting_with_its_text() {
    let (measured, _) = doomed(Fate::TalksNonsense, 1..=99);
    for row in measured.rows.iter().flatten() {
        let failure = row.failure.as_ref();
        assert!(failure.is_some_and(|failure| failure.contains("answered `hello`")), "{row:?}");
    }
}

#[test]
fn what_was_measured_is_kept_when_no_further_worker_can_be_had() {
    for (fate, when) in [(Fate::NeverStarts, 3..=9), (Fate::DiesLater, 2..=99)] {
        let (measured, failed) = doomed(fate, when);
        assert!(failed.is_empty(), "{failed:?}");
        let rows = || measured.rows.iter().flatten();
        assert!(rows().all(|row| row.failure.is_none()));
        let told = |row: &RowMeasured| {
            row.remark.as_ref().is_some_and(|remark| remark.contains("ended early"))
        };
        assert!(rows().all(told), "{:?}", measured.rows);
        assert!(measured.measurement.launches.iter().any(|launch| !launch.cells[0].is_empty()));
    }
}

#[test]
fn results_are_looked_at_again_in_every_group() {
    thread_local! { static CALLS: Counter<u32> = const { Counter::new(0) }; }
    /// Right when it is checked, and wrong after thousands of calls.
    fn tires() -> Box<dyn Routine> {
        serial::<Double, _, _>(|reads, writes| {
            CALLS.set(CALLS.get() + 1);
            let factor = if CALLS.get() > 20_000 { 3.0 } else { 2.0 };
            reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = factor * x);
        })
    }
    // Warming up takes so long that not all cells are calibrated together.
    let warm_up = Duration::from_millis(200);
    let effort =
        Effort { budget: Budget::Fixed(Duration::from_secs(3)), warm_up, ..Effort::quick() };
    let entries = [variant_of_double("double", 1, right), variant_of_double("tires", 2, tires)];
    for isolation in [Isolation::Shared, Isolation::Isolated] {
        CALLS.set(0);
        let bench = Bench { isolation, ..Bench::new(&entries, effort.clone()) };
        let measured = bench.measure(&Again(&bench.registry));
        assert!(measured.measurement.launches.len() > 1, "one launch for every group");
        for rows in &measured.rows {
            assert!(rows[0].failure.is_none() && rows[1].failure.is_some(), "{rows:?}");
        }
    }
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

/// Workers of which the first hangs while it calibrates a row, for longer than the budget.
struct Hanging<'r>(&'r Registry, Counter<bool>);

impl Launcher for Hanging<'_> {
    fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        Ok(Box::new(HangingLink(self, Worker::new(self.0))))
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

struct HangingLink<'r>(&'r Hanging<'r>, Worker<'r>);

impl Link for HangingLink<'_> {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let HangingLink(Hanging(_, has_hung), worker) = self;
        if has_hung.replace(true) {
            return worker.ask(request, hear);
        }
        hear(Reply::Calling(Place { cell: 0, row: Some(1) }));
        std::thread::sleep(Duration::from_millis(1500));
        Err(LinkError::Overdue { seconds: 1.5 })
    }
}

#[test]
fn a_row_that_hangs_takes_no_time_from_the_others() {
    let budget = Duration::from_secs(1);
    let effort = Effort { budget: Budget::Fixed(budget), samples: Some(8), ..Effort::quick() };
    let bench = Bench::new(&pair(), effort);
    let measured = bench.measure(&Hanging(&bench.registry, Counter::new(false)));
    let failed = |cell: usize, row: usize| measured.rows[cell][row].failure.is_some();
    assert!(failed(0, 1));
    for (cell, planned) in bench.plan.cells.iter().enumerate() {
        for row in (0..planned.rows.len()).filter(|row| (cell, *row) != (0, 1)) {
            let name = planned.row_name(&planned.rows[row]);
            assert!(!failed(cell, row) && measured.measurement.has(cell, row), "{name}");
        }
    }
    let spent = measured.spent;
    assert!(spent.lost >= 1.5 && spent.measuring > 0.0, "{spent:?}");
}
