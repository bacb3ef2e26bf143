//! The measuring stage: from admitted rows to samples, within the budget.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cell::CellRun;
use super::run::Run;
use super::{Effort, Judge, Look, Measurement};
use crate::check::{CheckedRow, Standing};
use crate::cuda::DeviceFigures;
use crate::gauge::{Allocations, CounterFigures};
use crate::kernel::empty_turn;
use crate::plan::{Cell, Plan};
use crate::system::Interrupt;
use crate::watch::Watch;
use crate::worker::{DeviceRequest, Launcher, RowCalibration};

/// Whether the rows of a cell are measured side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// In the same launches, block by block: what disturbs one disturbs the other.
    #[default]
    Shared,
    /// Each in launches of its own, so that none can disturb another.
    Isolated,
}

/// What is to be measured, and how.
#[derive(Clone, Copy)]
pub struct Assignment<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// What the gate found, in the shape of the plan.
    pub checked: &'a [Vec<CheckedRow>],
    /// How long a row is measured, and how.
    pub effort: &'a Effort,
    /// How much of the budget may be taken.
    pub time: Duration,
    /// How much more may be taken for rows that would have no turn, or fewer than five launches.
    pub reserve: Duration,
    /// Seed of the data.
    pub seed: u64,
    /// Seed of the order of samples and of the placement of data.
    pub order_seed: u64,
    /// Whether rows share launches.
    pub isolation: Isolation,
    /// Whether allocations and processor events are counted.
    pub inspect: bool,
    /// Whether transfers, memory and kernels of calls on a device are looked at.
    pub inspect_device: bool,
    /// Where CUDA variants run.
    pub device: &'a DeviceRequest,
    /// How long a call may take.
    pub timeout: Duration,
    /// Rows that an older program has as well, in the shape of the plan; empty when there is none. The launcher's workers
    /// then answer for both.
    pub past: &'a [Vec<bool>],
    /// Where workers come from.
    pub launcher: &'a dyn Launcher,
    /// Who looks at the figures between launches.
    pub judge: &'a dyn Judge,
}

impl Assignment<'_> {
    /// Whether there is a row at a place: one of today, or one that the older program has as well.
    fn has(&self, cell: usize, place: usize) -> bool {
        match place.checked_sub(self.plan.cells[cell].rows.len()) {
            Some(row) => self.past.get(cell).is_some_and(|past| past[row]),
            None => true,
        }
    }
}

/// What the measuring stage found.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The samples.
    pub measurement: Measurement,
    /// What is known of every row, in the shape of the plan; then of those of an older program.
    pub rows: Vec<Vec<RowMeasured>>,
    /// The look at which each row was judged, in the shape of `rows`; none for rows without samples.
    pub looks: Vec<Vec<Option<Look>>>,
    /// Nanoseconds of one turn of a loop that calls nothing.
    pub empty_turn: f64,
    /// Where the time went.
    pub spent: Spent,
    /// Who wanted it to end before its time.
    pub interrupted: Option<Interrupt>,
    /// From where measuring can go on.
    pub(crate) cells: Vec<CellRun>,
}

impl Measured {
    /// The largest share of the clock in the samples of some rows.
    pub fn clock_share(&self, cell: usize, rows: [usize; 2]) -> f64 {
        let calibrations = rows.into_iter().filter_map(|row| self.rows[cell][row].calibration);
        calibrations.map(|calibration| calibration.overhead_share()).fold(0.0, f64::max)
    }

    /// The look at which a row was judged.
    pub fn look(&self, cell: usize, row: usize) -> Look {
        self.looks.get(cell).and_then(|looks| looks[row]).unwrap_or(Look::ONLY)
    }

    /// Whether the turn of a row did not come.
    pub fn is_skipped(&self, cell: usize, row: usize) -> bool {
        self.rows[cell][row].skipped.is_some()
    }

    /// The same with what a later pass over the same plan has found.
    pub fn completed(mut self, later: Measured) -> Self {
        self.complete(later);
        self
    }

    /// Takes over what a later pass over the same plan found about rows whose turn had not come.
    pub fn complete(&mut self, later: Measured) {
        let Measured { measurement, rows, looks, spent, interrupted, .. } = later;
        self.interrupted = self.interrupted.or(interrupted);
        self.measurement.launches.extend(measurement.launches);
        for (cell, rows) in rows.into_iter().enumerate() {
            for (row, found) in rows.into_iter().enumerate() {
                if self.is_skipped(cell, row) {
                    self.rows[cell][row] = found;
                    self.looks[cell][row] = self.looks[cell][row].or(looks[cell][row]);
                }
            }
        }
        self.spent.add(spent);
    }
}

/// A plan with all that was found about it.
pub struct Pass {
    /// What was to be measured.
    pub plan: Plan,
    /// What the gate found, in its shape.
    pub checked: Vec<Vec<CheckedRow>>,
    /// What was measured.
    pub measured: Measured,
}

/// Where the time of the measuring stage went, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Wall time of calibration and launches.
    pub measuring: f64,
    /// Of this, inside kernels or sentinels.
    pub inside: f64,
    /// Wall time of checks that need a worker, which is not part of measuring.
    pub checking: f64,
    /// Wall time of workers that ended before their time, which is not part of measuring either: a row that hangs for a
    /// minute must not take it from the others.
    pub lost: f64,
}

impl Spent {
    /// Adds what another stage took.
    pub(crate) fn add(&mut self, other: Spent) {
        self.measuring += other.measuring;
        self.inside += other.inside;
        self.checking += other.checking;
        self.lost += other.lost;
    }

    /// What comes on top of the budget.
    pub(super) fn aside(&self) -> f64 {
        self.checking + self.lost
    }
}

/// What is known of one row besides its samples.
#[derive(Clone, Debug, Default)]
pub struct RowMeasured {
    /// Calls per sample.
    pub calibration: Option<RowCalibration>,
    /// Bytes that one call moves by default: every operand once, outputs once more when they are also read.
    pub bytes: Option<f64>,
    /// What one call allocates.
    pub allocations: Option<Allocations>,
    /// What one call makes the processor do.
    pub counters: Option<CounterFigures>,
    /// What is to be known of calls on a device.
    pub device: Option<DeviceFigures>,
    /// What else is to be known of it.
    pub remark: Option<String>,
    /// How often its process was ended by somebody else while it was called.
    pub pardons: u32,
    /// Why it has no samples, or none that count.
    pub failure: Option<String>,
    /// Why its turn did not come.
    pub skipped: Option<String>,
    /// Why it cannot be measured like this, which is no fault of it.
    pub declined: Option<String>,
}

impl RowMeasured {
    /// Whether it is still being measured.
    pub(super) fn is_live(&self) -> bool {
        self.failure.is_none() && self.skipped.is_none() && self.declined.is_none()
    }
}

/// Told what there is whenever no worker is measuring.
pub type Onlooker<'a> = dyn FnMut(&Measured) + 'a;

/// Measures all admitted rows.
pub fn measure_plan(
    assignment: &Assignment<'_>,
    watch: &mut dyn Watch,
    onlooker: &mut Onlooker<'_>,
) -> Measured {
    let Assignment { plan, past, .. } = assignment;
    let measured = Measured {
        rows: plan.cells.iter().map(|c| vec![RowMeasured::default(); places(c, past)]).collect(),
        looks: plan.cells.iter().map(|c| vec![None; places(c, past)]).collect(),
        empty_turn: empty_turn(),
        ..Measured::default()
    };
    let start = Instant::now();
    let mut run = Run::new(assignment, measured);
    run.calibrate(watch, onlooker);
    run.measure(watch, onlooker);
    let mut measured = run.finish();
    skip(assignment, &mut measured);
    measured.spent.measuring = start.elapsed().as_secs_f64() - measured.spent.aside();
    measured
}

/// Goes on with measuring the rows of a plan that are still open; `spent` of what it gives is that of this time alone.
pub fn go_on(
    assignment: &Assignment<'_>,
    mut measured: Measured,
    watch: &mut dyn Watch,
    onlooker: &mut Onlooker<'_>,
) -> Measured {
    let start = Instant::now();
    measured.spent = Spent::default();
    let mut run = Run::again(assignment, measured);
    run.measure(watch, onlooker);
    let mut measured = run.finish();
    measured.spent.measuring = start.elapsed().as_secs_f64() - measured.spent.aside();
    measured
}

/// What is learnt from workers that end while nobody is being called: what a row has left behind, such as threads, may be
/// the end of its process later. All others try again; when that happens again and again, in smaller and smaller groups, until
/// one cell is left that is to blame.
#[derive(Default)]
pub(super) struct Caution {
    losses: u32,
    /// Cells that are tried together; none for all of them.
    width: Option<usize>,
}

impl Caution {
    /// Losses after which groups become smaller.
    const MOST_LOSSES: u32 = 3;

    /// The cells that are tried next, and their share of the time.
    pub(super) fn part<'a>(&self, waiting: &'a [usize]) -> (&'a [usize], f64) {
        let width = self.width.unwrap_or(usize::MAX).min(waiting.len());
        (&waiting[..width], width as f64 / waiting.len() as f64)
    }

    /// Notes that a worker was lost; gives whether its cells are to be tried again.
    pub(super) fn is_worth_another_try(&mut self, cells: usize) -> bool {
        self.losses += 1;
        if self.losses <= Caution::MOST_LOSSES {
            return true;
        }
        self.width = Some((cells / 2).max(1));
        cells > 1
    }
}

/// Rows of a cell, those of an older program included.
fn places(cell: &Cell, past: &[Vec<bool>]) -> usize {
    if past.is_empty() { cell.rows.len() } else { cell.past_of(cell.rows.len()) }
}

/// Whether a cell has a row that is admitted and has not failed.
pub(super) fn wants_samples(checked: &[CheckedRow], known: &[RowMeasured]) -> bool {
    let admitted = |row: &CheckedRow| matches!(row.standing, Standing::Admitted);
    checked.iter().zip(known).any(|(row, known)| admitted(row) && known.is_live())
}

/// Marks those rows whose turn did not come.
fn skip(assignment: &Assignment<'_>, measured: &mut Measured) {
    let seconds = assignment.effort.budget.time().as_secs_f64();
    let reason = match measured.interrupted {
        Some(interrupt) => format!("the run was interrupted by {interrupt} before its turn"),
        None => {
            format!(
                "the budget of {seconds} s ended before its turn; raise --budget or select less"
            )
        }
    };
    for cell in 0..assignment.plan.cells.len() {
        if !wants_samples(&assignment.checked[cell], &measured.rows[cell]) {
            continue;
        }
        for (row, known) in measured.rows[cell].iter_mut().enumerate() {
            let is_open = known.failure.is_none() && known.declined.is_none();
            let is_there = assignment.has(cell, row);
            if is_open && is_there && !measured.measurement.has(cell, row) {
                known.skipped.get_or_insert_with(|| reason.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_are_lost_make_groups_smaller_until_one_cell_is_to_blame() {
        let (mut caution, mut waiting) = (Caution::default(), (0..8).collect::<Vec<usize>>());
        // The sixth cell ends every worker that has it.
        let (mut blamed, mut tries): (Vec<usize>, usize) = (Vec::new(), 0);
        while !waiting.is_empty() {
            tries += 1;
            let (opened, share) = caution.part(&waiting);
            let opened = opened.to_vec();
            assert_eq!(share, opened.len() as f64 / waiting.len() as f64);
            if opened.contains(&5) && caution.is_worth_another_try(opened.len()) {
                continue;
            }
            blamed.extend(opened.iter().filter(|cell| **cell == 5));
            waiting.retain(|cell| !opened.contains(cell));
        }
        assert_eq!(blamed, [5]);
        assert!(tries < 20, "{tries}");
    }
}
