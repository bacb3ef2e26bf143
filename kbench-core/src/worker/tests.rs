//! A worker in this process, asked as a controller would.

use super::*;
use crate::kernel::{Mode, Routine, serial};
use crate::registry::Registry;
use crate::registry::tests::{Double, right, variant_of_double};

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
    Preparation { protocol, seed: 1, launch: 0, cells, memory, calibrate: Some(SAMPLING), device }
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
    let rows = rows.filter_map(|(row, c)| Some(VisitRow { row, calibration: (*c)? })).collect();
    Visit { cell: prepared.cell, blocks, rows }
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
    Visits { cells, seconds: 10.0, quiet: None, announce: false }
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
    let visits = Visits { quiet: Some(1.0), ..visits(vec![visit(&prepared[0], 5)]) };
    let replies = answers(&mut worker, &Request::Measure(visits));
    let blocks = blocks(&replies);
    assert_eq!(blocks.len(), 10, "twice as many as were asked for");
    assert_eq!(blocks.iter().filter(|visited| visited.block.requeued).count(), 5);
}

#[test]
fn a_launch_that_is_late_takes_one_block() {
    let registry = registry();
    let mut worker = Worker::new(&registry);
    let cells = vec![cell(16, &["double"]), cell(1024, &["double"])];
    let cells = prepared(&mut worker, cells).iter().map(|cell| visit(cell, 5)).collect();
    let visits = Visits { seconds: -0.1, ..visits(cells) };
    assert_eq!(blocks(&answers(&mut worker, &Request::Measure(visits))).len(), 1);
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
    let unprepared = measure(vec![Visit { cell: 7, blocks: 1, rows: vec![] }]);
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

/// The examples of the document are requests and replies of this very protocol.
#[test]
fn the_document_shows_the_protocol_as_it_is() {
    let text = include_str!("../../../docs/worker-protocol.md");
    let examples: Vec<&str> = text.split("```json\n").skip(1).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let json = example.split("```").next().expect("an end");
        let request: Request = serde_json::from_str(json).expect("a request");
        let again = serde_json::to_value(&request).expect("JSON");
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(json).expect("JSON"));
    }
    let sample = text.split("A sample is `").nth(1).and_then(|rest| rest.split('`').next());
    serde_json::from_str::<Sample>(sample.expect("a sample")).expect("a sample");
    for word in ["recheck", "inspect", "profile"] {
        let json = format!("{{\"request\":\"{word}\"}}");
        assert!(text.contains(&json));
        serde_json::from_str::<Request>(&json).expect("a request");
    }
    assert!(text.starts_with(&format!("# The worker protocol, version {PROTOCOL}\n")));
}
