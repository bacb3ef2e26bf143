//! Checks that are made by workers, as the controller sees them: code that can take its process along, or break the
//! context of a device, costs a worker and one row.
//!
//! Kernels are first checked on all cores at once; what is left in doubt is checked by one worker after the other.

use std::collections::HashMap;
use std::thread::available_parallelism;
use std::time::Duration;

use super::link::{Launcher, LinkError, MOST_PARDONS};
use super::protocol::{
    CellRequest, CheckRequest, CheckedReply, DeviceRequest, PROTOCOL, Place, Program, Reply,
    Request, RowRequest, WrongReply,
};
use super::side_by_side::{Kernels, check_side_by_side};
use crate::check::{
    Attempt, Check, CheckedRow, Checks, Circumstance, Coverage, Origin, Part, Reason, Wrong,
};
use crate::kernel::VariantEntry;
use crate::plan::{Cell, Plan, Row};
use crate::value::Regime;
use crate::watch::{Stage, Watch};

/// A variant that took too long at as many sizes is not called at others: that would be a long wait.
const MOST_HANGS: usize = 2;

/// Rows that are checked once more, each in a process of its own, when one ended and somebody else may have spoilt it.
const MOST_SUSPECTS: usize = 64;

impl CheckedReply {
    pub(super) fn into_row(self) -> CheckedRow {
        if let Some(reason) = self.declined {
            return CheckedRow::skipped(reason);
        }
        let wrong = |reply: WrongReply| Wrong {
            reason: Reason::Reported { text: reply.reason, is_fault: reply.is_fault },
            size: reply.size,
            seed: reply.seed,
            origin: reply.origin,
            circumstance: reply.circumstance,
        };
        let outcome = self.wrong.map_or(Ok(()), |reply| Err(wrong(reply)));
        let CheckedReply {
            errors,
            remarks,
            unchecked,
            mutations,
            coverage,
            digest,
            checked_call,
            ..
        } = self;
        Check { outcome, errors, remarks, unchecked, mutations, coverage, digest, checked_call }
            .into()
    }
}

/// Checks rows by workers: kernels side by side, what is left in doubt one after the other.
pub struct WorkerChecks<'a> {
    /// Where workers come from.
    pub launcher: &'a dyn Launcher,
    /// Where CUDA variants run.
    pub device: DeviceRequest,
    /// How long a call may take.
    pub timeout: Duration,
    /// In which regimes variants are checked; in all when absent.
    pub regimes: Option<Vec<Regime>>,
}

impl Checks for WorkerChecks<'_> {
    fn check(
        &mut self,
        plan: &Plan,
        rows: &[(usize, usize)],
        coverage: Coverage,
        seed: u64,
        watch: &mut dyn Watch,
    ) -> Vec<CheckedRow> {
        let WorkerChecks { launcher, device, timeout, regimes } = self;
        let (timeout, regimes) = (*timeout, regimes.as_deref());
        let inquiry = Inquiry { plan, rows, coverage, regimes, seed, device, timeout };
        let kernels = Kernels::of(&inquiry);
        let cores = available_parallelism().map_or(1, usize::from);
        let launchers = launcher.side_by_side(cores.min(kernels.workers()));
        let mut progress = Progress::new(&inquiry);
        if launchers.len() > 1 {
            progress.found = check_side_by_side(&inquiry, kernels, launchers, watch);
        }
        one_after_the_other(*launcher, progress, watch)
    }
}

/// What workers are asked for.
#[derive(Clone, Copy)]
pub(super) struct Inquiry<'a> {
    pub(super) plan: &'a Plan,
    pub(super) rows: &'a [(usize, usize)],
    pub(super) coverage: Coverage,
    pub(super) regimes: Option<&'a [Regime]>,
    pub(super) seed: u64,
    pub(super) device: &'a DeviceRequest,
    pub(super) timeout: Duration,
}

impl Inquiry<'_> {
    /// The request for some of the rows, those of a cell together.
    pub(super) fn request(&self, waiting: &[Vec<(usize, usize)>], together: bool) -> Request {
        Request::Check(CheckRequest {
            protocol: PROTOCOL,
            seed: self.seed,
            coverage: self.coverage,
            regimes: self.regimes.map(<[_]>::to_vec),
            cells: waiting.iter().map(|rows| cell_request(self.plan, rows)).collect(),
            device: self.device.clone(),
            together,
            timeout_seconds: self.timeout.as_secs_f64(),
        })
    }

    /// Whether a row needs neither a device nor another program.
    pub(super) fn is_host(&self, index: usize) -> bool {
        let (cell, row) = self.rows[index];
        self.plan.cells[cell].rows[row].variant.implementation.is_host()
    }

    /// Tells that a row is checked next, after so many others.
    pub(super) fn tell(&self, index: usize, done: usize, watch: &mut dyn Watch) {
        let (cell, row) = self.rows[index];
        let cell = &self.plan.cells[cell];
        let (done, all) = (done as f64, self.rows.len() as f64);
        watch.step(Stage::Checking, done, all, &cell.row_name(&cell.rows[row]));
    }
}

/// Checks the rows of which nothing is known by workers that follow each other as long as they break.
fn one_after_the_other(
    launcher: &dyn Launcher,
    mut progress: Progress<'_>,
    watch: &mut dyn Watch,
) -> Vec<CheckedRow> {
    let (mut together, mut losses) = (true, 0);
    while let Some(Turn { waiting, alone }) = progress.next_turn() {
        let first = progress.indices[&waiting[0][0]];
        let known = progress.known();
        let request = progress.inquiry.request(&waiting, together);
        let mut doing = Doing::default();
        let asked = launcher.launch(0).and_then(|mut link| {
            link.ask(&request, &mut |reply| progress.hear(reply, &waiting, &mut doing, watch))
        });
        let is_stuck = alone.is_none() && progress.known() == known;
        match asked {
            Err(error) if error.is_end() => match (doing.calling, doing.clearing) {
                (Some(index), _) => progress.accuse(index, doing, alone, &error),
                (None, true) => progress.suspect(doing, alone, &error),
                // The compiler may have taken the process along: one source at a time tells whose fault it is.
                (None, false) => {
                    together = false;
                    losses = if is_stuck { losses + 1 } else { 1 };
                    if losses > MOST_PARDONS {
                        progress.blame(first, None, &error);
                        losses = 0;
                    }
                }
            },
            Err(error) => {
                progress.give_up(&format!("its check could not be made: {error}"));
            }
            Ok(_) if is_stuck => {
                let row = CheckedRow::skipped("its check gave no answer".to_owned());
                progress.note(first, row, Reach::Row);
            }
            Ok(_) => progress.acquit(alone),
        }
    }
    progress.found.into_iter().flatten().collect()
}

/// What the next worker is to do.
struct Turn {
    /// Rows, those of a cell together.
    waiting: Vec<Vec<(usize, usize)>>,
    /// The row that it is about, if it has a process of its own.
    alone: Option<Suspect>,
}

/// A row that may have been the end of a process.
struct Suspect {
    index: usize,
    /// Whose fault it may be if it is not this one's: rows that were checked in the same process before.
    others: Vec<usize>,
}

/// What a worker was doing when it was last heard of.
#[derive(Default)]
struct Doing {
    /// The row that it was checking.
    calling: Option<usize>,
    /// What it was about to call.
    attempt: Option<Attempt>,
    /// Whether it was giving back the data of rows that it had checked.
    clearing: bool,
    /// Those that it had checked.
    checked: Vec<usize>,
}

/// Which rows something is to be known of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// One.
    Row,
    /// Those of the variant.
    Variant,
    /// Those of the cell.
    Cell,
    /// Those of the kernel.
    Kernel,
}

impl Reach {
    /// What broke at a size that nobody listed breaks every row that is checked there; at a listed size, the rows of that
    /// size. What breaks in the code that variants share breaks them all.
    fn of(part: Part, origin: Origin) -> Self {
        match (part, origin) {
            (Part::Variant, Origin::Listed) => Reach::Row,
            (Part::Variant, Origin::Awkward) => Reach::Variant,
            (Part::Definition, Origin::Listed) => Reach::Cell,
            (Part::Definition, Origin::Awkward) => Reach::Kernel,
        }
    }
}

/// What is known of some rows of a plan.
struct Progress<'a> {
    inquiry: Inquiry<'a>,
    found: Vec<Option<CheckedRow>>,
    /// Positions among the rows.
    indices: HashMap<(usize, usize), usize>,
    /// How often calls of a variant took too long.
    hangs: HashMap<*const VariantEntry, usize>,
    /// How often the process of a row was ended by somebody else.
    pardons: Vec<u32>,
    /// Rows that are to be checked alone.
    suspects: Vec<Suspect>,
}

impl<'a> Progress<'a> {
    fn new(inquiry: &Inquiry<'a>) -> Self {
        let rows = inquiry.rows;
        let indices = rows.iter().enumerate().map(|(index, row)| (*row, index)).collect();
        let found = vec![None; rows.len()];
        let pardons = vec![0; rows.len()];
        let (hangs, suspects) = Default::default();
        Progress { inquiry: *inquiry, found, indices, hangs, pardons, suspects }
    }

    /// A row that is to be checked alone, or all rows of which nothing is known; none when there is nothing to do.
    fn next_turn(&mut self) -> Option<Turn> {
        if let Some(suspect) = self.suspects.pop() {
            return Some(Turn {
                waiting: vec![vec![self.inquiry.rows[suspect.index]]],
                alone: Some(suspect),
            });
        }
        let unknown =
            self.inquiry.rows.iter().zip(&self.found).filter(|(_, found)| found.is_none());
        let waiting = by_cell(&unknown.map(|(row, _)| *row).collect::<Vec<_>>());
        (!waiting.is_empty()).then_some(Turn { waiting, alone: None })
    }

    /// How many rows something is known of.
    fn known(&self) -> usize {
        self.found.iter().flatten().count()
    }

    /// Position among the rows of what a worker calls by its place in a request.
    fn index(&self, waiting: &[Vec<(usize, usize)>], Place { cell, row }: Place) -> Option<usize> {
        self.indices.get(waiting.get(cell)?.get(row?)?).copied()
    }

    /// Takes note of what a worker says.
    fn hear(
        &mut self,
        reply: Reply,
        waiting: &[Vec<(usize, usize)>],
        doing: &mut Doing,
        watch: &mut dyn Watch,
    ) {
        match reply {
            Reply::Calling(place) => {
                (doing.calling, doing.attempt) = (self.index(waiting, place), None);
                doing.clearing = place.row.is_none();
                if let Some(index) = doing.calling {
                    self.inquiry.tell(index, self.known(), watch);
                }
            }
            Reply::Called => (doing.calling, doing.clearing) = (None, false),
            Reply::Trying(attempt) => doing.attempt = Some(attempt),
            Reply::Overdue(overdue) => doing.calling = self.index(waiting, overdue.place),
            Reply::Checked(reply) => {
                doing.calling = None;
                if let Some(index) = self.index(waiting, reply.place) {
                    doing.checked.push(index);
                    // Who broke its process, or its device, at any size would do so at every one.
                    let origin = reply.wrong.as_ref().map(|wrong| wrong.origin);
                    let spreads = reply.ends && origin == Some(Origin::Awkward);
                    let reach = if spreads { Reach::Variant } else { Reach::Row };
                    self.note(index, reply.into_row(), reach);
                }
            }
            Reply::Compiling { done, total } => {
                doing.calling = None;
                let what = format!("{done} of {total} CUDA sources");
                watch.step(Stage::Compiling, done as f64, total as f64, &what);
            }
            _ => {}
        }
    }

    /// Notes what was found about a row, and about those of which the same is to be known.
    fn note(&mut self, index: usize, row: CheckedRow, reach: Reach) {
        let place = |index: usize| {
            let (cell, row) = self.inquiry.rows[index];
            (cell, &self.inquiry.plan.cells[cell], &self.inquiry.plan.cells[cell].rows[row])
        };
        let (number, cell, of) = place(index);
        let is_meant = |other: usize| {
            let (its_number, its_cell, its_row) = place(other);
            match reach {
                Reach::Row => false,
                Reach::Variant => std::ptr::eq(its_row.variant, of.variant),
                Reach::Cell => its_number == number,
                Reach::Kernel => std::ptr::eq(its_cell.kernel, cell.kernel),
            }
        };
        if reach != Reach::Row {
            for other in (0..self.inquiry.rows.len()).filter(|other| is_meant(*other)) {
                self.found[other].get_or_insert_with(|| row.clone());
            }
        }
        self.found[index] = Some(row);
    }

    /// A process ended while a row was checked. Somebody who was checked there before may have written where it must not; so
    /// the row is checked alone, unless that would be another long wait.
    fn accuse(&mut self, index: usize, doing: Doing, alone: Option<Suspect>, error: &LinkError) {
        if alone.is_some() || doing.checked.is_empty() || error.is_late() || error.is_by_others() {
            return self.blame(index, doing.attempt, error);
        }
        let others = self.latest_of_kernel(index, &doing.checked);
        self.suspects.push(Suspect { index, others });
    }

    /// A process ended while it gave back the data of rows that were right: somebody has written where it must not.
    fn suspect(&mut self, doing: Doing, alone: Option<Suspect>, error: &LinkError) {
        match (alone, doing.checked.last()) {
            (Some(Suspect { index, .. }), _) => self.blame(index, None, error),
            (None, Some(last)) => {
                let rows = self.latest_of_kernel(*last, &doing.checked).into_iter();
                let suspect = |index| Suspect { index, others: Vec::new() };
                self.suspects.extend(rows.map(suspect));
            }
            (None, None) => {}
        }
    }

    /// A row that was checked alone did nothing wrong; somebody else may have.
    fn acquit(&mut self, alone: Option<Suspect>) {
        let others = alone.map_or_else(Vec::new, |suspect| suspect.others);
        self.suspects.extend(others.into_iter().map(|index| Suspect { index, others: Vec::new() }));
    }

    /// Those of some rows that are of the same kernel as one of them: the last ones.
    fn latest_of_kernel(&self, index: usize, rows: &[usize]) -> Vec<usize> {
        let kernel = |index: usize| self.inquiry.plan.cells[self.inquiry.rows[index].0].kernel;
        let same = rows.iter().rev().filter(|other| std::ptr::eq(kernel(**other), kernel(index)));
        same.copied().take(MOST_SUSPECTS).collect()
    }

    /// Notes that the check of a row was the end of its process; one that may be innocent has another chance.
    fn blame(&mut self, index: usize, attempt: Option<Attempt>, error: &LinkError) {
        let pardons = &mut self.pardons[index];
        if error.is_by_others() && *pardons < MOST_PARDONS {
            *pardons += 1;
            return;
        }
        let (cell, row) = self.inquiry.rows[index];
        let cell = &self.inquiry.plan.cells[cell];
        let variant = cell.rows[row].variant;
        let attempt = attempt.unwrap_or_else(|| self.listed(cell));
        let mut reach = Reach::of(attempt.part, attempt.origin);
        if error.is_late() && reach == Reach::Row {
            let hangs = self.hangs.entry(variant).or_default();
            *hangs += 1;
            if *hangs == MOST_HANGS {
                reach = Reach::Variant;
            }
        }
        self.note(index, broken(attempt, error), reach);
    }

    /// The size of a cell, where nobody said what was about to be called.
    fn listed(&self, cell: &Cell) -> Attempt {
        let size = cell.size.name(cell.kernel.axes);
        Attempt {
            part: Part::Variant,
            size,
            seed: self.inquiry.seed,
            origin: Origin::Listed,
            circumstance: Circumstance::Usual,
        }
    }

    fn give_up(&mut self, reason: &str) {
        for row in &mut self.found {
            row.get_or_insert_with(|| CheckedRow::skipped(reason.to_owned()));
        }
    }
}

/// Rows, those of a cell together.
pub(super) fn by_cell(rows: &[(usize, usize)]) -> Vec<Vec<(usize, usize)>> {
    rows.chunk_by(|a, b| a.0 == b.0).map(<[_]>::to_vec).collect()
}

/// Some rows of one cell as a worker knows them.
pub(super) fn cell_request(plan: &Plan, rows: &[(usize, usize)]) -> CellRequest {
    let cell = &plan.cells[rows[0].0];
    let request = |(_, row): &(usize, usize)| {
        let Row { variant, threads, mode, .. } = cell.rows[*row];
        RowRequest {
            variant: variant.name.to_owned(),
            threads,
            mode,
            digest: None,
            checked_call: None,
            is_compared: true,
            program: Program::Now,
        }
    };
    CellRequest {
        kernel: cell.kernel.path(),
        element: cell.kernel.element.to_owned(),
        size: cell.size.values.clone(),
        rows: rows.iter().map(request).collect(),
    }
}

/// A row whose check was the end of a worker.
fn broken(attempt: Attempt, error: &LinkError) -> CheckedRow {
    let Attempt { part, size, seed, origin, circumstance } = attempt;
    let text = match part {
        Part::Definition => format!("the kernel's `inputs` or reference {error}"),
        Part::Variant => error.to_string(),
    };
    let reason = Reason::Reported { text, is_fault: true };
    let wrong = Wrong { reason, size, seed, origin, circumstance };
    Check::wrong(wrong).into()
}
