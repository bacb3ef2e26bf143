//! Checks that are made by workers, as the controller sees them: code that can take its process along, or break the
//! context of a device, costs a worker and one row.

use std::collections::HashMap;
use std::time::Duration;

use super::link::{Launcher, LinkError, MOST_PARDONS};
use super::protocol::{
    CellRequest, CheckRequest, CheckedReply, DeviceRequest, PROTOCOL, Place, Program, Reply,
    Request, RowRequest, WrongReply,
};
use crate::check::{Attempt, Check, CheckedRow, Checks, Coverage, Origin, Part, Reason, Wrong};
use crate::kernel::VariantEntry;
use crate::plan::{Cell, Plan, Row};
use crate::watch::{Stage, Watch};

/// A variant that took too long at as many sizes is not called at others: that would be a long wait.
const MOST_HANGS: usize = 2;

impl CheckedReply {
    fn into_row(self) -> CheckedRow {
        if let Some(reason) = self.declined {
            return CheckedRow::skipped(reason);
        }
        let wrong = |reply: WrongReply| Wrong {
            reason: Reason::Reported { text: reply.reason, is_fault: reply.is_fault },
            size: reply.size,
            seed: reply.seed,
            origin: reply.origin,
        };
        let outcome = self.wrong.map_or(Ok(()), |reply| Err(wrong(reply)));
        Check { outcome, errors: self.errors, remarks: self.remarks }.into()
    }
}

/// Checks rows by workers, one after the other as long as they break.
pub struct WorkerChecks<'a> {
    /// Where workers come from.
    pub launcher: &'a dyn Launcher,
    /// Where CUDA variants run.
    pub device: DeviceRequest,
    /// How long a call may take.
    pub timeout: Duration,
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
        let mut progress = Progress::new(plan, rows, seed);
        let mut together = true;
        while let Some(first) = progress.found.iter().position(Option::is_none) {
            let waiting = progress.waiting();
            let known = progress.known();
            let request = CheckRequest {
                protocol: PROTOCOL,
                seed,
                coverage,
                cells: waiting.iter().map(|rows| cell_request(plan, rows)).collect(),
                device: self.device.clone(),
                together,
                timeout_seconds: self.timeout.as_secs_f64(),
            };
            let mut doing = Doing::default();
            let asked = self.launcher.launch(0).and_then(|mut link| {
                link.ask(&Request::Check(request), &mut |reply| {
                    progress.hear(reply, &waiting, &mut doing, watch);
                })
            });
            match (asked, doing.calling) {
                (Err(error), Some(index)) if error.is_end() => {
                    progress.blame(index, doing.attempt, &error);
                }
                // The compiler took the process along, and one source at a time tells whose fault it is.
                (Err(error), None) if error.is_end() && together => together = false,
                (Err(error), _) => {
                    progress.give_up(&format!("its check could not be made: {error}"));
                }
                (Ok(_), _) if progress.known() == known => {
                    let row = CheckedRow::skipped("its check gave no answer".to_owned());
                    progress.note(first, row, Reach::Row);
                }
                (Ok(_), _) => {}
            }
        }
        progress.found.into_iter().flatten().collect()
    }
}

/// What a worker was doing when it was last heard of.
#[derive(Default)]
struct Doing {
    /// The row that it was checking.
    calling: Option<usize>,
    /// What it was about to call.
    attempt: Option<Attempt>,
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
    plan: &'a Plan,
    rows: &'a [(usize, usize)],
    seed: u64,
    found: Vec<Option<CheckedRow>>,
    /// Positions among the rows.
    indices: HashMap<(usize, usize), usize>,
    /// How often calls of a variant took too long.
    hangs: HashMap<*const VariantEntry, usize>,
    /// How often the process of a row was ended by somebody else.
    pardons: HashMap<usize, u32>,
}

impl<'a> Progress<'a> {
    fn new(plan: &'a Plan, rows: &'a [(usize, usize)], seed: u64) -> Self {
        let indices = rows.iter().enumerate().map(|(index, row)| (*row, index)).collect();
        let found = vec![None; rows.len()];
        let (hangs, pardons) = Default::default();
        Progress { plan, rows, seed, found, indices, hangs, pardons }
    }

    /// Rows of which nothing is known, those of a cell together.
    fn waiting(&self) -> Vec<Vec<(usize, usize)>> {
        let unknown = self.rows.iter().zip(&self.found).filter(|(_, found)| found.is_none());
        let unknown: Vec<(usize, usize)> = unknown.map(|(row, _)| *row).collect();
        unknown.chunk_by(|a, b| a.0 == b.0).map(<[_]>::to_vec).collect()
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
                *doing = Doing { calling: self.index(waiting, place), attempt: None };
                self.tell(doing.calling, watch);
            }
            Reply::Trying(attempt) => doing.attempt = Some(attempt),
            Reply::Overdue(overdue) => doing.calling = self.index(waiting, overdue.place),
            Reply::Checked(reply) => {
                doing.calling = None;
                if let Some(index) = self.index(waiting, reply.place) {
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
            let (cell, row) = self.rows[index];
            (cell, &self.plan.cells[cell], &self.plan.cells[cell].rows[row])
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
            for other in (0..self.rows.len()).filter(|other| is_meant(*other)) {
                self.found[other].get_or_insert_with(|| row.clone());
            }
        }
        self.found[index] = Some(row);
    }

    /// Notes that the check of a row was the end of its process; one that may be innocent has another chance.
    fn blame(&mut self, index: usize, attempt: Option<Attempt>, error: &LinkError) {
        let pardons = self.pardons.entry(index).or_default();
        if error.is_by_others() && *pardons < MOST_PARDONS {
            *pardons += 1;
            return;
        }
        let (cell, row) = self.rows[index];
        let cell = &self.plan.cells[cell];
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
        Attempt { part: Part::Variant, size, seed: self.seed, origin: Origin::Listed }
    }

    fn give_up(&mut self, reason: &str) {
        for row in &mut self.found {
            row.get_or_insert_with(|| CheckedRow::skipped(reason.to_owned()));
        }
    }

    fn tell(&self, index: Option<usize>, watch: &mut dyn Watch) {
        let Some(index) = index else { return };
        let (cell, row) = self.rows[index];
        let cell = &self.plan.cells[cell];
        let (done, all) = (index as f64, self.rows.len() as f64);
        watch.step(Stage::Checking, done, all, &cell.row_name(&cell.rows[row]));
    }
}

/// Some rows of one cell as a worker knows them.
pub(super) fn cell_request(plan: &Plan, rows: &[(usize, usize)]) -> CellRequest {
    let cell = &plan.cells[rows[0].0];
    let request = |(_, row): &(usize, usize)| {
        let Row { variant, threads, mode, .. } = cell.rows[*row];
        RowRequest { variant: variant.name.to_owned(), threads, mode, program: Program::Now }
    };
    CellRequest {
        kernel: cell.kernel.path(),
        element: cell.kernel.element.to_owned(),
        size: cell.size.values.clone(),
        rows: rows.iter().map(request).collect(),
    }
}

/// A row whose check was the end of a worker.
fn broken(Attempt { part, size, seed, origin }: Attempt, error: &LinkError) -> CheckedRow {
    let text = match part {
        Part::Definition => format!("the kernel's `inputs` or reference {error}"),
        Part::Variant => error.to_string(),
    };
    let wrong = Wrong { reason: Reason::Reported { text, is_fault: true }, size, seed, origin };
    Check::wrong(wrong).into()
}
