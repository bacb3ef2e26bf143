//! The measuring stage: from admitted rows to samples, within the budget.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::effort::FEWEST_BLOCKS;
use super::launch::Limits;
use super::{
    Block, Calibration, Effort, Launch, Measurement, Order, RowCalibration, Subject, SubjectRow,
    calibrate, run_launch,
};
use crate::check::{CheckedRow, Gate, Standing, Timed};
use crate::kernel::{Caller, Implementation, InPlace, empty_turn, guard};
use crate::plan::{Cell, Plan, Row};
use crate::watch::{Stage, Watch};

/// Data of cells that are visited round-robin may take this much memory together; more cells make another group.
const GROUP_MEMORY: usize = 1 << 30;

/// Share of the time that is left that calibration may take before what it has is measured.
const CALIBRATION_SHARE: f64 = 0.25;

/// What the measuring stage found.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The samples.
    pub measurement: Measurement,
    /// What is known of every row, in the shape of the plan.
    pub rows: Vec<Vec<RowMeasured>>,
    /// Nanoseconds of one turn of a loop that calls nothing.
    pub empty_turn: f64,
}

/// What is known of one row besides its samples.
#[derive(Clone, Debug, Default)]
pub struct RowMeasured {
    /// Calls per sample.
    pub calibration: Option<RowCalibration>,
    /// Bytes that one call moves by default: every operand once, outputs once more when they are also read.
    pub bytes: Option<f64>,
    /// Why it has no samples, or none that count.
    pub failure: Option<String>,
    /// Why its turn did not come.
    pub skipped: Option<String>,
}

/// Measures all admitted rows; `checked` has the shape of the plan.
pub fn measure_plan(
    plan: &Plan,
    checked: &[Vec<CheckedRow>],
    effort: &Effort,
    seed: u64,
    watch: &mut dyn Watch,
) -> Measured {
    let mut stage = MeasuringStage {
        plan,
        checked,
        effort,
        seed,
        order: Order::new(seed, 0),
        deadline: deadline(effort.budget),
        pools: BTreeMap::new(),
        blocks: vec![Vec::new(); plan.cells.len()],
        rows: plan.cells.iter().map(|c| vec![RowMeasured::default(); c.rows.len()]).collect(),
    };
    let admitted =
        |cell: &usize| checked[*cell].iter().any(|row| matches!(row.standing, Standing::Admitted));
    let mut waiting: Vec<usize> = (0..plan.cells.len()).filter(admitted).collect();
    while !waiting.is_empty() {
        let cells = waiting.len();
        let mut group = stage.open_group(&mut waiting, watch);
        stage.measure_group(&mut group, cells, watch);
        stage.recheck(&mut group);
    }
    let launch = Launch { cells: stage.blocks };
    Measured {
        measurement: Measurement { launches: vec![launch] },
        rows: stage.rows,
        empty_turn: empty_turn(),
    }
}

/// When a budget ends; one beyond all clocks ends in a year.
fn deadline(budget: Duration) -> Instant {
    let year = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + budget.min(year)
}

/// The state of the measuring stage.
struct MeasuringStage<'a> {
    plan: &'a Plan,
    checked: &'a [Vec<CheckedRow>],
    effort: &'a Effort,
    seed: u64,
    order: Order,
    deadline: Instant,
    pools: BTreeMap<usize, Arc<rayon::ThreadPool>>,
    blocks: Vec<Vec<Block>>,
    rows: Vec<Vec<RowMeasured>>,
}

/// Cells that are measured together.
struct Group {
    subjects: Vec<Subject>,
    calibrations: Vec<Calibration>,
}

impl MeasuringStage<'_> {
    /// Takes cells from those that wait until memory or time is full, and calibrates them.
    fn open_group(&mut self, waiting: &mut Vec<usize>, watch: &mut dyn Watch) -> Group {
        let mut group = Group { subjects: Vec::new(), calibrations: Vec::new() };
        let mut memory = 0;
        let start = Instant::now();
        let patience = self.deadline.saturating_duration_since(start).mul_f64(CALIBRATION_SHARE);
        while let Some(&cell) = waiting.first() {
            if Instant::now() >= self.deadline {
                self.skip_all(waiting);
                break;
            }
            if !group.subjects.is_empty() && start.elapsed() > patience {
                break;
            }
            let before = group.subjects.len();
            let total = (before + waiting.len()) as f64;
            let name = self.plan.cells[cell].size.name(self.plan.cells[cell].kernel.axes);
            let name = format!("{} {name}", self.plan.cells[cell].kernel.path());
            watch.step(Stage::Calibrating, before as f64, total, &name);
            if let Some(mut subject) = self.subject(cell, name) {
                let bytes = subject.data.read_bytes() + 2 * subject.data.written_bytes();
                if before > 0 && memory + bytes > GROUP_MEMORY {
                    break;
                }
                memory += bytes;
                let calibration = calibrate(&mut subject, self.effort);
                self.note_calibration(&subject, &calibration);
                group.subjects.push(subject);
                group.calibrations.push(calibration);
            }
            waiting.remove(0);
        }
        group
    }

    fn skip_all(&mut self, waiting: &mut Vec<usize>) {
        let reason = self.budget_ended();
        for cell in waiting.drain(..) {
            self.rows[cell].iter_mut().for_each(|row| row.skipped = Some(reason.clone()));
        }
    }

    fn budget_ended(&self) -> String {
        let seconds = self.effort.budget.as_secs_f64();
        format!("the budget of {seconds} s ended before its turn; raise --budget or select less")
    }

    /// Data and routines of one cell; `None` when the data cannot be made, which fails its rows.
    fn subject(&mut self, cell: usize, name: String) -> Option<Subject> {
        let Cell { kernel, size, rows, .. } = &self.plan.cells[cell];
        match guard(|| kernel.definition.data(&size.values, self.seed)) {
            Ok(data) => {
                let moved = data.read_bytes() + data.written_bytes();
                let again = if kernel.in_place == InPlace::No { 0 } else { data.written_bytes() };
                self.rows[cell].iter_mut().for_each(|r| r.bytes = Some((moved + again) as f64));
                let rows = (0..rows.len()).filter_map(|row| self.subject_row(cell, row)).collect();
                Some(Subject { cell, kernel, name, data, rows })
            }
            Err(fault) => {
                let failure = format!("`inputs` of the kernel {fault}");
                self.rows[cell].iter_mut().for_each(|row| row.failure = Some(failure.clone()));
                None
            }
        }
    }

    fn subject_row(&mut self, cell: usize, index: usize) -> Option<SubjectRow> {
        if !matches!(self.checked[cell][index].standing, Standing::Admitted) {
            return None;
        }
        let row = self.plan.cells[cell].rows[index];
        let Implementation::Host(routine) = row.variant.implementation else { return None };
        match self.caller(&row) {
            Ok(caller) => Some(SubjectRow { index, routine: routine(), caller }),
            Err(failure) => {
                self.rows[cell][index].failure = Some(failure);
                None
            }
        }
    }

    fn caller(&mut self, row: &Row) -> Result<Caller, String> {
        let Some(threads) = row.threads else { return Ok(Caller::Outside) };
        if let Some(pool) = self.pools.get(&threads) {
            return Ok(Caller::Pool(pool.clone()));
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| format!("a pool of {threads} threads cannot be built: {error}"))?;
        let pool = Arc::new(pool);
        self.pools.insert(threads, pool.clone());
        Ok(Caller::Pool(pool))
    }

    fn note_calibration(&mut self, subject: &Subject, calibration: &Calibration) {
        for (row, calibration) in subject.rows.iter().zip(&calibration.rows) {
            let known = &mut self.rows[subject.cell][row.index];
            match calibration {
                Ok(calibration) => known.calibration = Some(*calibration),
                Err(fault) => known.failure = Some(fault.to_string()),
            }
        }
    }

    /// Takes the samples of a group in its share of the time that is left.
    fn measure_group(&mut self, group: &mut Group, cells_left: usize, watch: &mut dyn Watch) {
        if group.subjects.is_empty() {
            return;
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        let share = left.mul_f64(group.subjects.len() as f64 / cells_left.max(1) as f64);
        if self.effort.iterations.is_none() {
            self.fit(group, share);
        }
        let Group { subjects, calibrations } = group;
        let blocks = calibrations.iter().map(|calibration| {
            let samples = calibration.rows.iter().flatten().map(RowCalibration::sample_time);
            self.effort.blocks(samples.max().unwrap_or_default())
        });
        let limits = Limits { blocks: blocks.collect(), deadline: Instant::now() + share };
        let (blocks, failures) =
            run_launch(subjects, calibrations, &limits, &mut self.order, watch);
        let reason = self.budget_ended();
        for (subject, blocks) in subjects.iter().zip(blocks) {
            if blocks.is_empty() {
                self.rows[subject.cell]
                    .iter_mut()
                    .for_each(|row| row.skipped = Some(reason.clone()));
            }
            self.blocks[subject.cell] = blocks;
        }
        for failure in failures {
            self.rows[failure.cell][failure.row].failure = Some(failure.fault.to_string());
        }
    }

    /// Shortens samples when the fewest blocks would not fit in the time.
    fn fit(&mut self, group: &mut Group, share: Duration) {
        let calibrations = || group.calibrations.iter().flat_map(|c| c.rows.iter().flatten());
        let pass: Duration = calibrations().map(|row| 2 * row.sample_cost()).sum();
        let needed = pass * FEWEST_BLOCKS;
        if needed <= share {
            return;
        }
        let factor = share.as_secs_f64() / needed.as_secs_f64();
        for calibration in &mut group.calibrations {
            for row in calibration.rows.iter_mut().flatten() {
                *row = row.shortened(factor);
            }
        }
        for (subject, calibration) in group.subjects.iter().zip(&group.calibrations) {
            self.note_calibration(subject, calibration);
        }
    }

    /// Looks once more at every variant's results on the data that it was timed on.
    fn recheck(&mut self, group: &mut Group) {
        for subject in &mut group.subjects {
            let cell = &self.plan.cells[subject.cell];
            let gate = Gate::new(cell.kernel, cell.own_function, self.seed);
            let Subject { data, rows, .. } = subject;
            let expected = gate.expected(data.as_mut(), &cell.size);
            for row in rows {
                let known = &mut self.rows[subject.cell][row.index];
                let was_timed = known.failure.is_none() && known.skipped.is_none();
                let Some(calibration) = known.calibration.filter(|_| was_timed) else { continue };
                let timed = Timed {
                    variant: cell.rows[row.index].variant,
                    routine: row.routine.as_ref(),
                    data: data.as_mut(),
                    caller: &row.caller,
                    calls: calibration.calls,
                };
                let checked = match &expected {
                    Ok(expected) => gate.recheck(timed, expected.as_ref()),
                    Err(reason) => Err(reason.clone()),
                };
                known.failure = checked.err().map(|reason| reason.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Coverage, check_plan};
    use crate::kernel::{Routine, serial};
    use crate::plan::Selection;
    use crate::registry::Registry;
    use crate::registry::tests::{Double, right, variant_of_double};

    /// Right, and slow enough to fill a budget with a few calls.
    fn slow() -> Box<dyn Routine> {
        serial::<Double, _, _>(|reads, writes| {
            std::thread::sleep(Duration::from_millis(20));
            reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = 2.0 * x);
        })
    }

    fn measured(routine: fn() -> Box<dyn Routine>, effort: &Effort) -> (Plan, Measured) {
        let registry = Registry::of([variant_of_double("double", 1, routine)]).expect("fine");
        let plan = Plan::new(&registry, &Selection::default(), &[]).expect("a plan");
        let checked = check_plan(&plan, Coverage::EverySize, 1, &mut ());
        let measured = measure_plan(&plan, &checked, effort, 1, &mut ());
        (plan, measured)
    }

    #[test]
    fn every_row_gets_its_samples() {
        let effort = Effort { samples: Some(10), ..Effort::quick() };
        let (plan, measured) = measured(right, &effort);
        for (cell, blocks) in plan.cells.iter().zip(&measured.measurement.launches[0].cells) {
            assert_eq!(blocks.len(), 5, "{}", cell.size.name(cell.kernel.axes));
            assert!(blocks.iter().all(|b| b.samples.len() == 2 && b.samples[0].nanoseconds > 0.0));
        }
    }

    #[test]
    fn a_budget_that_ends_skips_what_is_left_and_says_so() {
        let effort = Effort { budget: Duration::from_millis(200), ..Effort::quick() };
        let start = Instant::now();
        let (_, measured) = measured(slow, &effort);
        let skipped: Vec<&String> =
            measured.rows.iter().flatten().filter_map(|row| row.skipped.as_ref()).collect();
        assert!(!skipped.is_empty(), "three cells of 20 ms a call do not fit in 200 ms");
        assert!(skipped.iter().all(|reason| reason.contains("raise --budget")), "{skipped:?}");
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}
