//! One launch: blocks of all cells, round-robin, until every row has its samples or the time is over.

use std::time::{Duration, Instant};

use super::calibrate::nanoseconds;
use super::{Block, Calibration, Order, RowCalibration, Sample};
use crate::kernel::{Caller, Calls, CellData, Fault, InPlace, KernelEntry, Routine, guard};
use crate::watch::{Stage, Watch};

/// A cell that is ready to be measured.
pub struct Subject {
    /// Index of the cell in the plan.
    pub cell: usize,
    /// The kernel.
    pub kernel: &'static KernelEntry,
    /// Name for progress.
    pub name: String,
    /// The data that all rows share.
    pub data: Box<dyn CellData>,
    /// The rows, as in the plan.
    pub rows: Vec<SubjectRow>,
}

/// A row that is ready to be measured.
pub struct SubjectRow {
    /// Index in the cell's plan.
    pub index: usize,
    /// The variant's code.
    pub routine: Box<dyn Routine>,
    /// From where it is called.
    pub caller: Caller,
}

/// A row that failed while it was measured.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Index of the cell in the plan.
    pub cell: usize,
    /// Index of the row in the cell's plan.
    pub row: usize,
    /// What happened.
    pub fault: Fault,
}

/// How far a launch may go.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Blocks of every subject.
    pub blocks: Vec<u32>,
    /// When to stop, finished or not.
    pub deadline: Instant,
}

/// Measures all subjects in this process; gives the blocks of each subject and the rows that failed.
///
/// A pass visits every cell once, in random order; the deadline is looked at between blocks.
pub fn run_launch(
    subjects: &mut [Subject],
    calibrations: &[Calibration],
    limits: &Limits,
    order: &mut Order,
    watch: &mut dyn Watch,
) -> (Vec<Vec<Block>>, Vec<Failure>) {
    let mut blocks = vec![Vec::new(); subjects.len()];
    let mut failures: Vec<Failure> = Vec::new();
    let start = Instant::now();
    let (mut done, all) = (0.0, limits.blocks.iter().map(|blocks| f64::from(*blocks)).sum::<f64>());
    'passes: for pass in 0..limits.blocks.iter().copied().max().unwrap_or(0) {
        for subject in order.permutation(subjects.len()) {
            if pass >= limits.blocks[subject] {
                continue;
            }
            if Instant::now() >= limits.deadline {
                break 'passes;
            }
            let name = subjects[subject].name.clone();
            let (passed, total) = time_passed(done / all, limits.deadline, start);
            watch.step(Stage::Measuring, passed, total, &name);
            done += 1.0;
            let cell = subjects[subject].cell;
            let failed: Vec<usize> =
                failures.iter().filter(|f| f.cell == cell).map(|f| f.row).collect();
            let (block, faults) =
                run_block(&mut subjects[subject], &calibrations[subject], &failed, order);
            blocks[subject].push(block);
            failures.extend(faults.into_iter().map(|(row, fault)| Failure { cell, row, fault }));
        }
    }
    (blocks, failures)
}

/// Time that has passed, of the time that the launch will take by its blocks or by its deadline, whichever is less.
fn time_passed(share: f64, deadline: Instant, start: Instant) -> (f64, f64) {
    let passed = start.elapsed().as_secs_f64();
    let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
    (passed, (passed / share).min(passed + left))
}

/// One mirrored block, and the rows that failed in it.
fn run_block(
    subject: &mut Subject,
    calibration: &Calibration,
    failed: &[usize],
    order: &mut Order,
) -> (Block, Vec<(usize, Fault)>) {
    let live: Vec<(usize, RowCalibration)> = calibration
        .rows
        .iter()
        .enumerate()
        .filter(|(i, _)| !failed.contains(&subject.rows[*i].index))
        .filter_map(|(i, row)| Some((i, *row.as_ref().ok()?)))
        .collect();
    let mut block = Block::default();
    let mut faults: Vec<(usize, Fault)> = Vec::new();
    for visit in order.mirrored(live.len()) {
        let (position, calibration) = live[visit];
        let row = &subject.rows[position];
        if faults.iter().any(|(index, _)| *index == row.index) {
            continue;
        }
        let data = subject.data.as_mut();
        let time = guard(|| {
            if subject.kernel.in_place == InPlace::Reuse {
                data.reset();
            }
            if calibration.wash_out > 0 {
                row.routine.sample(data, Calls::once(calibration.wash_out), &row.caller)?;
            }
            row.routine.sample(data, calibration.calls, &row.caller)
        });
        match time.flatten() {
            Ok(time) => {
                let nanoseconds = per_call(time, &calibration);
                block.samples.push(Sample { row: row.index, nanoseconds });
            }
            Err(fault) => faults.push((row.index, fault)),
        }
    }
    (block, faults)
}

/// Time of one call without the clock's part; never below zero.
fn per_call(time: Duration, calibration: &RowCalibration) -> f64 {
    let overhead = calibration.overhead * calibration.calls.batches as f64;
    (nanoseconds(time) - overhead).max(0.0) / calibration.calls.total() as f64
}
