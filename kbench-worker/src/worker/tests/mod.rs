//! A worker in this process, asked as a controller would.

mod sources;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use super::*;
use crate::check::{CheckedRow, Checks, Coverage, Standing};
use crate::kernel::{
    Erased, Implementation, Kernel, KernelEntry, Mode, Routine, Sizes, Values, VariantEntry, serial,
};
use crate::plan::{Plan, Selection};
use crate::registry::Registry;
use crate::registry::fixtures::{Double, cuda_variant_of_double, right, variant_of_double};
use crate::value::{CAN_EVICT, Fingerprint, Operand};
use crate::watch::{Stage, Watch};

mod exchange;

const SAMPLING: Sampling = Sampling {
    sample_seconds: 1e-4,
    warm_up_seconds: 0.0,
    iterations: None,
    patience_seconds: 10.0,
};

fn registry() -> Registry {
    Registry::of([variant_of_double("double", 1, right), variant_of_double("twice", 2, right)])
        .expect("fine")
}

fn cell(size: usize, variants: &[&str]) -> CellRequest {
    let row = |variant: &&str| RowRequest {
        variant: (*variant).to_owned(),
        threads: None,
        mode: Mode::Warm,
        digest: None,
        checked_call: None,
        is_compared: true,
        program: Program::Now,
    };
    CellRequest {
        kernel: "demo::double".into(),
        element: "f32".into(),
        size: vec![size],
        rows: variants.iter().map(row).collect(),
    }
}

fn preparation(cells: Vec<CellRequest>) -> Preparation {
    let (protocol, memory) = (PROTOCOL, usize::MAX);
    let device = DeviceRequest::default();
    let (calibrate, timeout_seconds) = (Some(SAMPLING), 60.0);
    let (seed, order_seed, launch) = (1, 1, 0);
    Preparation {
        protocol,
        seed,
        order_seed,
        launch,
        cells,
        memory,
        calibrate,
        device,
        timeout_seconds,
    }
}

fn answers(worker: &mut Worker<'_>, request: &Request) -> Vec<Reply> {
    let mut replies = Vec::new();
    worker.answer(request, &mut |reply| replies.push(reply));
    replies
}

/// Prepares some cells; gives what calibration found.
fn prepared(worker: &mut Worker<'_>, cells: Vec<CellRequest>) -> Vec<PreparedCell> {
    let replies = answers(worker, &Request::Prepare(preparation(cells)));
    let prepared = |reply| match reply {
        Reply::Prepared(prepared) => Some(prepared),
        _ => None,
    };
    replies.into_iter().filter_map(prepared).collect()
}

fn visit(prepared: &PreparedCell, blocks: u32) -> Visit {
    let rows = prepared.calibrations.iter().enumerate();
    let rows = rows
        .filter_map(|(row, c)| Some(VisitRow { row, calibration: (*c)?, crew: None }))
        .collect();
    Visit { cell: prepared.cell, blocks, single: false, reverse: false, quiet: None, rows }
}

fn blocks(replies: &[Reply]) -> Vec<&VisitedBlock> {
    let mut blocks = Vec::new();
    for reply in replies {
        if let Reply::Block(block) = reply {
            blocks.push(block);
        }
    }
    blocks
}

fn visits(cells: Vec<Visit>) -> Visits {
    Visits { cells, seconds: 10.0, announce: false, settle: false, processor: None }
}

fn measure(cells: Vec<Visit>) -> Request {
    Request::Measure(visits(cells))
}

fn refusal(replies: &[Reply]) -> &str {
    match replies {
        [.., Reply::Refused { reason }] => reason,
        other => panic!("no refusal in {other:?}"),
    }
}

#[test]
fn blocks_are_mirrored_and_cells_take_turns() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let cells = vec![cell(16, &["double", "twice"]), cell(1024, &["double", "twice"])];
    let visits: Vec<Visit> = prepared(&mut worker, cells).iter().map(|p| visit(p, 6)).collect();
    let replies = answers(&mut worker, &measure(visits));
    let blocks = blocks(&replies);
    let counted = |cell| blocks.iter().filter(|b| b.cell == cell && !b.block.requeued).count();
    assert_eq!((counted(0), counted(1)), (6, 6));
    for visited in &blocks {
        let rows: Vec<usize> = visited.block.samples.iter().map(|sample| sample.row).collect();
        assert!(rows == [0, 1, 1, 0] || rows == [1, 0, 0, 1], "{rows:?}");
    }
    for pass in blocks[..12].chunks(2).filter(|pass| pass.iter().all(|b| !b.block.requeued)) {
        assert_ne!(pass[0].cell, pass[1].cell, "every cell has its turn before one has two");
    }
    let Some(Reply::Done(done)) = replies.last() else { panic!("{replies:?}") };
    assert!(done.inside_seconds > 12.0 * 4.0 * 0.5e-4, "{done:?}");
}

#[test]
fn a_block_on_a_busy_machine_is_taken_again_but_not_for_ever() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let prepared = prepared(&mut worker, vec![cell(16, &["double", "twice"])]);
    // A chain of one nanosecond: no block will ever be as quiet as that.
    let visits = visits(vec![Visit { quiet: Some(1.0), ..visit(&prepared[0], 5) }]);
    let replies = answers(&mut worker, &Request::Measure(visits));
    let blocks = blocks(&replies);
    assert_eq!(blocks.len(), 10, "twice as many as were asked for");
    assert_eq!(blocks.iter().filter(|visited| visited.block.requeued).count(), 5);
}

#[test]
fn who_settles_takes_one_sample_that_is_not_reported_before_each_block() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let prepared = prepared(&mut worker, vec![cell(16, &["double", "twice"])]);
    let visits = Visits { settle: true, announce: true, ..visits(vec![visit(&prepared[0], 3)]) };
    let replies = answers(&mut worker, &Request::Measure(visits));
    assert_eq!(blocks(&replies).len(), 3);
    assert_eq!(calls_before_blocks(&replies), [5, 5, 5, 0], "all rows are warm from calibration");
}

/// Calls that are announced before each block.
fn calls_before_blocks(replies: &[Reply]) -> Vec<usize> {
    let mut announced = vec![0];
    for reply in replies {
        match reply {
            Reply::Calling(_) => *announced.last_mut().expect("one") += 1,
            Reply::Block(_) => announced.push(0),
            _ => {}
        }
    }
    announced
}

thread_local! {
    /// How often all of an [`Observed`] was read.
    static READS: Cell<usize> = const { Cell::new(0) };
}

/// An input that notes when its bits are read.
struct Observed;

impl Operand for Observed {
    fn fingerprint(&self, _: &mut Fingerprint) {
        READS.set(READS.get() + 1);
    }
}

/// A kernel that has such an input and no output.
struct Observing;

impl Kernel for Observing {
    type Axes = ();
    type Reads = Observed;
    type Writes = ();
    type Arguments<'a> = &'a Observed;
    const ENTRY: &'static KernelEntry = &KernelEntry {
        name: "observing",
        sizes: Sizes::Grid(&[Values::List(&[16, 1024])]),
        parameters: &["x"],
        outputs: &[],
        reference: None,
        regimes: None,
        definition: &Erased::<Self>::NEW,
        ..*Double::ENTRY
    };
    fn axes(_: &[usize]) {}
    fn inputs((): &()) -> (Observed, ()) {
        (Observed, ())
    }
    fn arguments<'a>(reads: &'a Observed, (): &'a mut ()) -> &'a Observed {
        reads
    }
    fn restore((): &mut (), (): &()) {}
}

/// Its one variant, and cells of it.
fn observing() -> (Registry, Vec<CellRequest>) {
    let implementation = Implementation::Host(|| serial::<Observing, _, _>(|_, ()| {}));
    let base = variant_of_double("double", 1, right);
    let variant = VariantEntry { kernel: Observing::ENTRY, implementation, ..*base };
    let registry = Registry::of([&*Box::leak(Box::new(variant))]).expect("fine");
    let kernel = Observing::ENTRY.path();
    let cells =
        [16, 1024].map(|size| CellRequest { kernel: kernel.clone(), ..cell(size, &["double"]) });
    (registry, cells.to_vec())
}

/// Blocks of some cells, and how often data was read beside them.
fn reads_beside(worker: &mut Worker<'_>, cells: Vec<Visit>) -> (Vec<usize>, usize) {
    READS.set(0);
    let replies = answers(worker, &measure(cells));
    (blocks(&replies).iter().map(|block| block.cell).collect(), READS.get())
}

#[test]
fn the_data_of_a_cell_is_read_before_a_block_that_follows_another_cell() {
    let (registry, cells) = observing();
    let mut worker = Worker::new(&registry);
    let cells = prepared(&mut worker, cells);
    let all = cells.iter().map(|cell| visit(cell, 3)).collect();
    let (blocks, reads) = reads_beside(&mut worker, all);
    let came_back = blocks.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(came_back >= 3, "{blocks:?}");
    assert_eq!(reads, came_back + 1, "once more before the first one");
    let (_, reads) = reads_beside(&mut worker, vec![visit(&cells[0], 3)]);
    assert_eq!(reads, 0, "a cell that is alone keeps its caches");
}

#[test]
fn before_its_first_block_a_process_calls_every_row_or_reads_the_data_where_calls_are_long() {
    let (registry, cells) = observing();
    let found = prepared(&mut Worker::new(&registry), cells.clone()).remove(0);
    let warmed_up = |estimate: Option<f64>| {
        let mut worker = Worker::new(&registry);
        let preparation = Preparation { calibrate: None, ..preparation(cells.clone()) };
        answers(&mut worker, &Request::Prepare(preparation));
        let mut visit = visit(&found, 1);
        let calibration = &mut visit.rows[0].calibration;
        calibration.estimate = estimate.unwrap_or(calibration.estimate);
        READS.set(0);
        let replies = answers(&mut worker, &measure(vec![visit]));
        let called = replies.iter().filter(|reply| matches!(reply, Reply::Calling(_))).count();
        (called, READS.get())
    };
    assert_eq!([warmed_up(None), warmed_up(Some(1e7))], [(1, 0), (0, 1)]);
}

#[test]
fn a_launch_that_is_late_takes_one_block_of_every_cell() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let cells = vec![cell(16, &["double"]), cell(1024, &["double"])];
    let cells = prepared(&mut worker, cells).iter().map(|cell| visit(cell, 5)).collect();
    let visits = Visits { seconds: -0.1, ..visits(cells) };
    let replies = answers(&mut worker, &Request::Measure(visits));
    let mut cells: Vec<usize> = blocks(&replies).iter().map(|visited| visited.cell).collect();
    cells.sort_unstable();
    assert_eq!(cells, [0, 1]);
}

#[test]
fn a_single_block_has_one_sample_of_every_row() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let prepared = prepared(&mut worker, vec![cell(16, &["double", "twice"])]);
    let visits = visits(vec![Visit { single: true, ..visit(&prepared[0], 20) }]);
    let replies = answers(&mut worker, &Request::Measure(visits));
    let rows = |visited: &&VisitedBlock| -> Vec<usize> {
        visited.block.samples.iter().map(|sample| sample.row).collect()
    };
    let orders: Vec<Vec<usize>> = blocks(&replies).iter().map(rows).collect();
    assert!(orders.iter().all(|order| *order == [0, 1] || *order == [1, 0]), "{orders:?}");
    assert!(orders.iter().any(|order| *order != orders[0]), "in random order: {orders:?}");
}

#[test]
fn a_reversed_block_has_the_rows_of_the_last_one_in_reverse() {
    let registry = Registry::of([
        variant_of_double("double", 1, right),
        variant_of_double("twice", 2, right),
        variant_of_double("thrice", 3, right),
    ]);
    let registry = registry.expect("fine");
    let mut worker = Worker::new(&registry);
    let prepared = prepared(&mut worker, vec![cell(16, &["double", "twice", "thrice"])]);
    let mut seen = HashSet::new();
    for _ in 0..20 {
        // With a level of infinity no block is taken again.
        let quiet = Some(f64::INFINITY);
        let mut rows = |reverse| -> Vec<usize> {
            let visit = Visit { single: true, reverse, quiet, ..visit(&prepared[0], 1) };
            let replies = answers(&mut worker, &Request::Measure(visits(vec![visit])));
            blocks(&replies)[0].block.samples.iter().map(|sample| sample.row).collect()
        };
        let forth = rows(false);
        let mut back = rows(true);
        back.reverse();
        assert_eq!(forth, back);
        seen.insert(forth);
    }
    assert!(seen.len() > 1, "in random order: {seen:?}");
}

/// Every call under a clock of its own, because the next one would find what this one left.
#[test]
fn cold_calls_are_timed_one_by_one_and_take_longer() {
    if !CAN_EVICT {
        return;
    }
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let mut time = |mode| {
        let mut cell = cell(1 << 16, &["double", "twice"]);
        cell.rows.iter_mut().for_each(|row| row.mode = mode);
        let prepared = prepared(&mut worker, vec![cell]);
        let calls: Vec<(u64, u64)> = prepared[0]
            .calibrations
            .iter()
            .flatten()
            .map(|found| (found.calls.per_batch, found.wash_out))
            .collect();
        let replies = answers(&mut worker, &measure(vec![visit(&prepared[0], 9)]));
        let blocks = blocks(&replies);
        let samples = blocks.iter().flat_map(|visited| &visited.block.samples);
        let mut times: Vec<f64> = samples.map(|sample| sample.nanoseconds).collect();
        times.sort_unstable_by(f64::total_cmp);
        (calls, times[times.len() / 2])
    };
    let ((warm_calls, warm), (cold_calls, cold)) = (time(Mode::Warm), time(Mode::Cold));
    assert_eq!(cold_calls, [(1, 0); 2]);
    assert_ne!(warm_calls, cold_calls);
    assert!(cold > warm, "{cold} ns cold, {warm} ns warm");
}

#[test]
fn every_sample_is_announced_when_the_controller_wants_to_know() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let prepared = prepared(&mut worker, vec![cell(16, &["double", "twice"])]);
    let visits = Visits { announce: true, ..visits(vec![visit(&prepared[0], 3)]) };
    let replies = answers(&mut worker, &Request::Measure(visits));
    let mut announced = Vec::new();
    for reply in &replies {
        match reply {
            Reply::Calling(place) => announced.push(place.row),
            Reply::Block(visited) => {
                let rows: Vec<_> = visited.block.samples.iter().map(|s| Some(s.row)).collect();
                assert!(announced.ends_with(&rows), "{announced:?} {rows:?}");
            }
            _ => {}
        }
    }
    let last = &replies[replies.len() - 3..];
    assert!(matches!(last, [Reply::Called, Reply::Block(_), Reply::Done(_)]), "{last:?}");
}

#[test]
fn large_cells_are_anchored_by_the_memory_as_well() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let prepared = prepared(&mut worker, vec![cell(16, &["double"]), cell(1 << 19, &["double"])]);
    let cells = prepared.iter().map(|cell| visit(cell, 1)).collect();
    let replies = answers(&mut worker, &measure(cells));
    for visited in blocks(&replies) {
        let swept = visited.block.samples.iter().all(|sample| sample.sweep.is_some());
        assert_eq!(swept, visited.cell == 1);
    }
}

#[test]
fn a_row_that_fails_is_named_before_it_is_called_and_left_out_afterwards() {
    fn panics() -> Box<dyn Routine> {
        serial::<Double, (), _>(|_, _: &mut (Vec<f32>,)| panic!("not today"))
    }
    let registry =
        Registry::of([variant_of_double("double", 1, right), variant_of_double("bad", 2, panics)])
            .expect("fine");
    let mut worker = Worker::new(&registry);
    let request = Request::Prepare(preparation(vec![cell(16, &["double", "bad"])]));
    let replies = answers(&mut worker, &request);
    let position = |wanted: &dyn Fn(&Reply) -> bool| replies.iter().position(wanted);
    let calling = position(&|r| matches!(r, Reply::Calling(Place { cell: 0, row: Some(1) })));
    let failed = position(
        &|r| matches!(r, Reply::Failed(FailedRow { row: Some(1), failure, .. }) if failure.contains("not today")),
    );
    assert!(calling.is_some() && calling < failed, "{replies:?}");
}

#[test]
fn requests_that_make_no_sense_are_refused_with_a_reason() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let ask = |worker: &mut Worker<'_>, preparation: Preparation| {
        refusal(&answers(worker, &Request::Prepare(preparation))).to_owned()
    };
    let foreign = Preparation { protocol: 99, ..preparation(vec![]) };
    assert!(ask(&mut worker, foreign).contains("version 99"));
    let unknown = CellRequest { kernel: "demo::triple".into(), ..cell(16, &["double"]) };
    assert!(ask(&mut worker, preparation(vec![unknown])).contains("no kernel `demo::triple`"));
    let flat = CellRequest { size: vec![1, 2], ..cell(16, &["double"]) };
    assert!(ask(&mut worker, preparation(vec![flat])).contains("has 1 axes"));
    let unprepared = measure(vec![Visit {
        cell: 7,
        blocks: 1,
        single: false,
        reverse: false,
        quiet: None,
        rows: vec![],
    }]);
    let replies = answers(&mut worker, &unprepared);
    assert!(refusal(&replies).contains("cell 7 was not prepared"));
}

#[test]
fn memory_and_patience_leave_out_the_last_cells() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let cells = || vec![cell(1024, &["double"]), cell(4096, &["double"]), cell(16, &["double"])];
    let small = Preparation { memory: 20_000, ..preparation(cells()) };
    let impatient = Sampling { patience_seconds: 0.0, ..SAMPLING };
    let hasty = Preparation { calibrate: Some(impatient), ..preparation(cells()) };
    for request in [small, hasty] {
        let replies = answers(&mut worker, &Request::Prepare(request));
        let prepared = replies.iter().filter(|reply| matches!(reply, Reply::Prepared(_))).count();
        assert_eq!(prepared, 1, "{replies:?}");
    }
}

#[test]
fn impatience_leaves_out_the_last_of_many_rows_and_none_of_few() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let impatient = Sampling { patience_seconds: 0.0, ..SAMPLING };
    for (rows, calibrated) in [(16, 16), (40, 16)] {
        let cells = vec![cell(16, &vec!["double"; rows])];
        let request = Preparation { calibrate: Some(impatient), ..preparation(cells) };
        let replies = answers(&mut worker, &Request::Prepare(request));
        let found = replies.iter().find_map(|reply| match reply {
            Reply::Prepared(PreparedCell { calibrations, .. }) => Some(calibrations),
            _ => None,
        });
        let found = found.expect("a cell was prepared");
        assert_eq!((found.len(), found.iter().flatten().count()), (rows, calibrated));
    }
}

/// What a worker does when it is asked to check rows.
type Answers = fn(&CheckRequest, &mut dyn FnMut(Reply)) -> Result<Done, LinkError>;

/// Workers that answer one after the other as told; notes whether each was asked to compile side by side.
struct Scripted {
    answers: RefCell<Vec<Answers>>,
    together: RefCell<Vec<bool>>,
}

impl Launcher for Scripted {
    fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        Ok(Box::new(ScriptedLink(self)))
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

struct ScriptedLink<'a>(&'a Scripted);

impl Link for ScriptedLink<'_> {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let Request::Check(request) = request else { panic!("{request:?}") };
        self.0.together.borrow_mut().push(request.together);
        let answer = self.0.answers.borrow_mut().remove(0);
        answer(request, hear)
    }
}

/// The only row of a cell is right.
fn checked(cell: usize, ends: bool) -> Reply {
    let place = Place { cell, row: Some(0) };
    Reply::Checked(CheckedReply { place, ends, ..CheckedReply::default() })
}

fn all_are_right(request: &CheckRequest, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
    (0..request.cells.len()).for_each(|cell| hear(checked(cell, false)));
    Ok(Done::default())
}

/// Notes what goes on.
#[derive(Default)]
struct Noted(Vec<(Stage, String)>);

impl Watch for Noted {
    fn step(&mut self, stage: Stage, _: f64, _: f64, what: &str) {
        self.0.push((stage, what.to_owned()));
    }
}

/// Has three rows on a device checked by workers that answer as told, all of which must be admitted in the end; gives whether
/// each worker was asked to compile side by side, and what was told.
fn admitted_by(answers: Vec<Answers>) -> (Vec<bool>, Noted) {
    let others = [("fast", 2), ("faster", 3), ("fastest", 4)];
    let others = others.map(|(name, line)| cuda_variant_of_double(name, line, right));
    let registry = Registry::of(others.into_iter().chain([variant_of_double("double", 1, right)]))
        .expect("fine");
    let plan = Plan::new(&registry, &Selection::default(), &[], &[Mode::Hot]).expect("a plan");
    let launcher = Scripted { answers: RefCell::new(answers), together: RefCell::default() };
    let mut checks = WorkerChecks {
        launcher: &launcher,
        device: DeviceRequest::default(),
        timeout: USUAL_TIMEOUT,
        regimes: None,
    };
    let mut watch = Noted::default();
    let rows = [(0, 1), (1, 2), (2, 3)];
    let found = checks.check(&plan, &rows, Coverage::EverySize, 1, &mut watch);
    assert_eq!(found.len(), rows.len());
    assert!(found.iter().all(|row| matches!(row.standing, Standing::Admitted)), "{found:?}");
    assert!(launcher.answers.borrow().is_empty(), "every worker is needed");
    (launcher.together.take(), watch)
}

#[test]
fn a_compiler_that_ends_its_process_costs_no_row() {
    let ends: Answers = |_, hear| {
        hear(Reply::Calling(Place { cell: 2, row: Some(0) }));
        hear(Reply::Compiling { done: 1, total: 2 });
        Err(LinkError::Ended { how: "a compiler's mistake".into(), by_others: false, words: None })
    };
    let (together, watch) = admitted_by(vec![ends, all_are_right]);
    assert_eq!(together, [true, false], "the second compiles one source at a time");
    assert!(watch.0.contains(&(Stage::Compiling, "1 of 2 CUDA sources".into())), "{:?}", watch.0);
}

#[test]
fn rows_that_were_put_off_by_a_worker_that_ended_are_for_the_next_one() {
    let breaks: Answers = |_, hear| {
        hear(Reply::Calling(Place { cell: 0, row: Some(0) }));
        hear(Reply::Calling(Place { cell: 1, row: Some(0) }));
        hear(checked(1, true));
        Ok(Done::default())
    };
    assert_eq!(admitted_by(vec![breaks, all_are_right]).0, [true, true]);
}

/// The process ended.
fn crash() -> LinkError {
    LinkError::Ended { how: "SIGABRT".into(), by_others: false, words: None }
}

/// Has three rows checked by workers that answer as told; gives which of them are right.
fn judged_by(answers: Vec<Answers>) -> [bool; 3] {
    let variants = [("double", 1), ("fast", 2), ("faster", 3)];
    let variants = variants.map(|(name, line)| variant_of_double(name, line, right));
    let registry = Registry::of(variants).expect("fine");
    let plan = Plan::new(&registry, &Selection::default(), &[], &[]).expect("a plan");
    let launcher = Scripted { answers: RefCell::new(answers), together: RefCell::default() };
    let device = DeviceRequest::default();
    let mut checks =
        WorkerChecks { launcher: &launcher, device, timeout: USUAL_TIMEOUT, regimes: None };
    let found = checks.check(&plan, &[(0, 0), (0, 1), (0, 2)], Coverage::EverySize, 1, &mut ());
    assert!(launcher.answers.borrow().is_empty(), "every worker is needed");
    let is_right = |row: &CheckedRow| matches!(row.standing, Standing::Admitted);
    <[bool; 3]>::try_from(found.iter().map(is_right).collect::<Vec<_>>()).expect("three")
}

/// The row of a cell is right.
fn right_row(row: usize) -> Reply {
    let Reply::Checked(reply) = checked(0, false) else { unreachable!() };
    Reply::Checked(CheckedReply { place: Place { cell: 0, row: Some(row) }, ..reply })
}

fn calling(row: Option<usize>) -> Reply {
    Reply::Calling(Place { cell: 0, row })
}

#[test]
fn a_row_is_checked_alone_before_it_is_blamed_for_what_another_may_have_done() {
    let second_breaks: Answers = |_, hear| {
        hear(right_row(0));
        hear(calling(Some(1)));
        Err(crash())
    };
    let breaks_alone: Answers = |request, hear| {
        assert_eq!(request.cells[0].rows.len(), 1);
        hear(calling(Some(0)));
        Err(crash())
    };
    let is_right: Answers = |request, hear| {
        assert_eq!(request.cells[0].rows.len(), 1);
        all_are_right(request, hear)
    };
    // The accused has done it.
    let found = judged_by(vec![second_breaks, breaks_alone, is_right]);
    assert_eq!(found, [true, false, true]);
    // It was the one before it, which breaks when its data is given back.
    let breaks_late: Answers = |_, hear| {
        hear(right_row(0));
        hear(calling(None));
        Err(crash())
    };
    let found = judged_by(vec![second_breaks, is_right, breaks_late, is_right]);
    assert_eq!(found, [false, true, true]);
}

#[test]
fn who_spoils_the_heap_is_found_when_its_data_is_given_back() {
    let breaks_late: Answers = |request, hear| {
        (0..request.cells[0].rows.len()).for_each(|row| hear(right_row(row)));
        hear(calling(None));
        Err(crash())
    };
    let is_right: Answers = |request, hear| {
        assert_eq!(request.cells[0].rows.len(), 1);
        all_are_right(request, hear)
    };
    // The last one is tried first.
    let alone: [Answers; 3] = [is_right, breaks_late, is_right];
    let found = judged_by([&[breaks_late][..], &alone].concat());
    assert_eq!(found, [true, false, true]);
}

#[test]
fn workers_that_end_before_they_call_anybody_cost_one_row_and_not_all() {
    let ends: Answers = |_, _| Err(crash());
    let rest: Answers = |request, hear| {
        (0..request.cells[0].rows.len()).for_each(|row| hear(right_row(row)));
        Ok(Done::default())
    };
    assert_eq!(judged_by(vec![ends, ends, rest]), [true; 3], "twice is bad luck");
    assert_eq!(judged_by(vec![ends, ends, ends, rest]), [false, true, true]);
}

#[test]
fn a_worker_that_makes_no_sense_costs_the_row_that_it_was_calling() {
    let babbles: Answers = |_, hear| {
        hear(calling(Some(0)));
        let error = Reply::from_json("hello").expect_err("no reply");
        Err(LinkError::Nonsense { line: "hello".into(), error })
    };
    let rest: Answers = |request, hear| {
        assert_eq!(request.cells[0].rows.len(), 2);
        (0..2).for_each(|row| hear(right_row(row)));
        Ok(Done::default())
    };
    assert_eq!(judged_by(vec![babbles, rest]), [false, true, true]);
}

/// The reference of a kernel may take as long as any call, and is nobody's fault.
#[test]
fn references_are_announced_before_results_are_looked_at_once_more() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    prepared(&mut worker, vec![cell(16, &["double", "twice"])]);
    let replies = answers(&mut worker, &Request::Recheck(Review::OF_RESULTS));
    let told: Vec<Option<Option<usize>>> = replies
        .iter()
        .map(|reply| match reply {
            Reply::Calling(place) => Some(place.row),
            _ => None,
        })
        .collect();
    assert_eq!(told, [Some(Some(0)), Some(None), None, None, Some(Some(1)), None, None]);
}

thread_local! {
    /// Whether [`fickle`] is wrong.
    static IS_SPOILT: Cell<bool> = const { Cell::new(false) };
}

/// Right until it is spoilt.
fn fickle() -> Box<dyn Routine> {
    serial::<Double, _, _>(|reads, writes| {
        let factor = if IS_SPOILT.get() { 3.0 } else { 2.0 };
        reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = factor * x);
    })
}

/// A cell with the digests that a check finds.
fn checked_cell(registry: &Registry, variants: &[&str]) -> CellRequest {
    let mut wanted = cell(1024, variants);
    let (seed, coverage, device) = (1, Coverage::EverySize, DeviceRequest::default());
    let (protocol, together, timeout_seconds, regimes) = (PROTOCOL, false, 60.0, None);
    let cells = vec![wanted.clone()];
    let request = CheckRequest {
        protocol,
        seed,
        coverage,
        regimes,
        cells,
        device,
        together,
        timeout_seconds,
    };
    for reply in answers(&mut Worker::new(registry), &Request::Check(request)) {
        if let Reply::Checked(CheckedReply { place, digest, checked_call, .. }) = reply {
            assert!(digest.is_some(), "it is right, and its bits are always the same");
            assert!(checked_call.is_some(), "it was called at this size");
            wanted.rows[place.row.expect("a row")].digest = digest;
        }
    }
    wanted
}

#[test]
fn results_with_the_bits_of_the_check_need_no_reference_and_others_are_compared() {
    let double = variant_of_double("double", 1, right);
    let registry = Registry::of([double, variant_of_double("fickle", 2, fickle)]).expect("fine");
    let mut wanted = checked_cell(&registry, &["double", "fickle"]);
    // The reference is called, and a row has failed.
    let looked_at = |wanted: &CellRequest, is_spoilt: bool| {
        let mut worker = Worker::new(&registry);
        prepared(&mut worker, vec![wanted.clone()]);
        IS_SPOILT.set(is_spoilt);
        let replies = answers(&mut worker, &Request::Recheck(Review::OF_RESULTS));
        IS_SPOILT.set(false);
        let is_called = |reply: &Reply| matches!(reply, Reply::Calling(Place { row: None, .. }));
        let has_failed = |reply: &Reply| {
            matches!(reply, Reply::Failed(FailedRow { row: Some(1), failure, .. })
                if failure.starts_with("right before timing but not after it: relative error"))
        };
        (replies.iter().any(is_called), replies.iter().any(has_failed))
    };
    assert_eq!(looked_at(&wanted, false), (false, false));
    assert_eq!(looked_at(&wanted, true), (true, true));
    // Results on other data are compared, although they are right.
    wanted.rows[0].digest = wanted.rows[0].digest.map(|digest| digest ^ 1);
    assert_eq!(looked_at(&wanted, false), (true, false));
    wanted.rows[0].is_compared = false;
    assert_eq!(looked_at(&wanted, false), (false, false), "a reference that takes too long");
}

thread_local! {
    /// Calls of [`counted`], and the number of the one that gives something else.
    static COUNTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

fn counted() -> Box<dyn Routine> {
    serial::<Double, _, _>(|reads, writes| {
        let (calls, wrong) = COUNTED.get();
        COUNTED.set((calls + 1, wrong));
        let factor = if calls + 1 == wrong { 3.0 } else { 2.0 };
        reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = factor * x);
    })
}

/// Where a sample is one call, its own result is looked at, and no other call is made for that.
#[test]
fn the_result_of_a_timed_call_is_compared_with_the_check() {
    let double = variant_of_double("double", 1, right);
    let registry = Registry::of([double, variant_of_double("counted", 2, counted)]).expect("fine");
    let wanted = checked_cell(&registry, &["double", "counted"]);
    // Calls in the timed block, calls afterwards, and what is wrong.
    let looked_at = |wrong: usize| {
        let mut worker = Worker::new(&registry);
        let calibrate = Some(Sampling { iterations: Some(1), ..SAMPLING });
        let preparation = Preparation { calibrate, ..preparation(vec![wanted.clone()]) };
        let prepared = answers(&mut worker, &Request::Prepare(preparation));
        let prepared = prepared.iter().find_map(|reply| match reply {
            Reply::Prepared(prepared) => Some(visit(prepared, 1)),
            _ => None,
        });
        let mut visit = prepared.expect("prepared");
        visit.rows.iter_mut().for_each(|row| row.calibration.wash_out = 0);
        COUNTED.set((0, wrong));
        answers(&mut worker, &measure(vec![visit]));
        let (timed, _) = COUNTED.get();
        let replies = answers(&mut worker, &Request::Recheck(Review::OF_RESULTS));
        let failure = replies.into_iter().find_map(|reply| match reply {
            Reply::Failed(FailedRow { row: Some(1), failure, .. }) => Some(failure),
            _ => None,
        });
        (timed, COUNTED.get().0 - timed, failure)
    };
    assert_eq!(looked_at(0), (2, 0, None));
    let (_, afterwards, failure) = looked_at(1);
    assert_eq!(afterwards, 0);
    let failure = failure.expect("the first timed call is wrong");
    let said = "right before timing but not after it: relative error";
    assert!(failure.starts_with(said), "{failure}");
}

/// The examples of the document are requests and replies of this very protocol.
#[test]
fn the_document_shows_the_protocol_as_it_is() {
    let text = include_str!("../../../../docs/worker-protocol.md");
    let examples: Vec<&str> = text.split("```json\n").skip(1).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let json = example.split("```").next().expect("an end");
        let request = Request::from_json(json).expect("a request");
        let again = serde_json::to_value(&request).expect("JSON");
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(json).expect("JSON"));
    }
    let sample = text.split("A sample is `").nth(1).and_then(|rest| rest.split('`').next());
    serde_json::from_str::<Sample>(sample.expect("a sample")).expect("a sample");
    for word in ["recheck", "inspect", "profile"] {
        let json = format!("{{\"request\":\"{word}\"}}");
        assert!(text.contains(&json));
        Request::from_json(&json).expect("a request");
    }
    assert!(text.starts_with(&format!("# The worker protocol, version {PROTOCOL}\n")));
}
