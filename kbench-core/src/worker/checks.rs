//! Checks that are made by a worker, on both sides of the channel: code that can take its process along, or break the
//! context of a device, costs a worker and one row.

use super::devices::Workshop;
use super::link::{Launcher, LinkError};
use super::protocol::{
    CellRequest, CheckRequest, CheckedReply, DeviceRequest, PROTOCOL, Place, Program, Reply,
    Request, RowRequest, WrongReply,
};
use super::subject::Names;
use crate::check::{
    Bench, Check, CheckedRow, Coverage, DeviceChecks, ErrorFigures, Origin, Reason, Wrong,
};
use crate::kernel::{Fault, KernelEntry, Mode, VariantEntry};
use crate::plan::{Plan, Row, Size};
use crate::registry::{RegisteredKernel, Registry};
use crate::watch::{Stage, Watch};

impl CheckedReply {
    fn of(place: Place, check: Check) -> Self {
        let is_fault =
            |reason: &Reason| matches!(reason, Reason::Fault(_) | Reason::Definition { .. });
        let mut reply = CheckedReply {
            place,
            wrong: None,
            declined: None,
            ends: false,
            errors: None,
            remarks: check.remarks,
        };
        // JSON knows no infinity; what is that far off is told in words.
        let finite = |e: &ErrorFigures| e.norm.is_finite() && e.maximum.is_finite();
        reply.errors = check.errors.filter(finite).map(|errors| ErrorFigures {
            worst: errors.worst.filter(|w| w.got.is_finite() && w.expected.is_finite()),
            ..errors
        });
        match check.outcome {
            Ok(()) => {}
            Err(Wrong { reason: Reason::Fault(Fault::Declined(reason)), .. }) => {
                reply.declined = Some(reason);
            }
            Err(Wrong { reason, size, seed, origin }) => {
                let is_fault = is_fault(&reason);
                let reason = reason.to_string();
                reply.wrong = Some(WrongReply { reason, is_fault, size, seed, origin });
            }
        }
        reply
    }

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

/// Rounds in which sources of CUDA variants are put off: each finds those that the sources of the former one kept hidden,
/// which are few. In a further round every source is compiled when it is asked for.
const MOST_ROUNDS: usize = 3;

/// Does what a request asks for; an error says why it makes no sense.
pub(super) fn check(
    registry: &Registry,
    workshop: &mut dyn Workshop,
    request: &CheckRequest,
    say: &mut dyn FnMut(Reply),
) -> Result<(), String> {
    if request.protocol != PROTOCOL {
        return Err(format!(
            "the controller speaks version {} of the protocol, this worker {PROTOCOL}",
            request.protocol
        ));
    }
    let names = Names::of(registry);
    let mut checker = Checker {
        kernels: request.cells.iter().map(|cell| names.find(cell)).collect::<Result<_, _>>()?,
        request,
        workshop,
        bench: None,
        say,
    };
    let outcome = checker.all_rows();
    workshop.collect_sources(false);
    outcome
}

/// The checks of one request.
struct Checker<'a> {
    request: &'a CheckRequest,
    /// The kernels of its cells.
    kernels: Vec<&'a RegisteredKernel>,
    workshop: &'a mut dyn Workshop,
    /// Of one kernel at a time, whose cells follow each other: it keeps its data on the device, and all that is there is looked at
    /// after every call.
    bench: Option<(&'a KernelEntry, Bench)>,
    say: &'a mut dyn FnMut(Reply),
}

/// What came of a row.
enum Answer {
    /// It was checked.
    Checked,
    /// It was checked, and the process is of no use any more.
    Last,
    /// It waits for a source.
    PutOff,
}

impl Checker<'_> {
    /// Checks all rows, those that wait for a source once more when it is compiled.
    fn all_rows(&mut self) -> Result<(), String> {
        let cells = self.request.cells.iter().enumerate();
        let places = cells.flat_map(|(cell, wanted)| {
            (0..wanted.rows.len()).map(move |row| Place { cell, row: Some(row) })
        });
        let mut waiting: Vec<Place> = places.collect();
        for round in 0.. {
            let is_collecting = self.request.together && round < MOST_ROUNDS;
            waiting = self.round(&waiting, is_collecting)?;
            if waiting.is_empty() {
                break;
            }
            let Checker { workshop, say, .. } = self;
            workshop.compile_collected(&mut |done, total| say(Reply::Compiling { done, total }));
        }
        Ok(())
    }

    /// Checks some rows; gives those that wait for a source.
    fn round(&mut self, places: &[Place], is_collecting: bool) -> Result<Vec<Place>, String> {
        let mut put_off: Vec<Place> = Vec::new();
        // At other sizes a variant waits for the same source.
        let mut waiting: Vec<*const VariantEntry> = Vec::new();
        for cell in places.chunk_by(|a, b| a.cell == b.cell) {
            for place in cell {
                let variant: *const VariantEntry = self.variant(*place)?;
                if waiting.contains(&variant) {
                    put_off.push(*place);
                    continue;
                }
                match self.row(*place, is_collecting)? {
                    Answer::Checked => {}
                    Answer::Last => return Ok(Vec::new()), // the rest is for another process
                    Answer::PutOff => {
                        waiting.push(variant);
                        put_off.push(*place);
                    }
                }
            }
            let Place { cell, .. } = cell[0];
            if let Some((_, bench)) = &mut self.bench {
                bench.forget(&Size::of(self.request.cells[cell].size.clone()));
            }
        }
        Ok(put_off)
    }

    fn row(&mut self, place: Place, is_collecting: bool) -> Result<Answer, String> {
        let (kernel, variant) = (self.kernels[place.cell], self.variant(place)?);
        (self.say)(Reply::Calling(place));
        let is_device = variant.implementation.is_device();
        let device = is_device.then(|| self.workshop.caller(Mode::Hot));
        self.workshop.collect_sources(is_collecting);
        let reply = match device.transpose() {
            Ok(device) => {
                let CheckRequest { coverage, seed, cells, .. } = self.request;
                self.bench.take_if(|(of, _)| !std::ptr::eq(*of, kernel.entry));
                let (_, bench) = self.bench.get_or_insert_with(|| {
                    let own = kernel.own_function();
                    (kernel.entry, Bench::new(kernel.entry, own, *coverage, *seed, device))
                });
                let size = Size::of(cells[place.cell].size.clone());
                let check = bench.check_row(variant, &size);
                if self.workshop.has_put_off() && self.workshop.lost().is_none() {
                    // What was found of the variant, or of the own function, is about the source alone.
                    self.bench = None;
                    return Ok(Answer::PutOff);
                }
                CheckedReply::of(place, check)
            }
            Err(reason) => {
                let (wrong, errors, remarks) = (None, None, Vec::new());
                let (declined, ends) = (Some(reason), false);
                CheckedReply { place, wrong, declined, ends, errors, remarks }
            }
        };
        let ends = self.workshop.lost().is_some();
        (self.say)(Reply::Checked(CheckedReply { ends, ..reply }));
        Ok(if ends { Answer::Last } else { Answer::Checked })
    }

    fn variant(&self, Place { cell, row }: Place) -> Result<&'static VariantEntry, String> {
        let row = &self.request.cells[cell].rows[row.unwrap_or_default()];
        self.kernels[cell].variant(&row.variant)
    }
}

/// Checks rows by workers, one after the other as long as they break.
pub struct WorkerChecks<'a> {
    /// Where workers come from.
    pub launcher: &'a dyn Launcher,
    /// Where CUDA variants run.
    pub device: DeviceRequest,
}

impl DeviceChecks for WorkerChecks<'_> {
    fn check(
        &mut self,
        plan: &Plan,
        rows: &[(usize, usize)],
        coverage: Coverage,
        seed: u64,
        watch: &mut dyn Watch,
    ) -> Vec<CheckedRow> {
        let mut progress = Progress { plan, rows, found: vec![None; rows.len()] };
        let mut together = true;
        while let Some(first) = progress.found.iter().position(Option::is_none) {
            let waiting = progress.waiting();
            let known = progress.known();
            let cells = waiting.iter().map(|rows| cell_request(plan, rows)).collect();
            let device = self.device.clone();
            let request =
                CheckRequest { protocol: PROTOCOL, seed, coverage, cells, device, together };
            let index = |place: Place| progress_index(rows, &waiting, place);
            let mut calling = None;
            let asked = self.launcher.launch(0).and_then(|mut link| {
                link.ask(&Request::Check(request), &mut |reply| match reply {
                    Reply::Calling(place) => {
                        calling = index(place);
                        progress.tell(calling, watch);
                    }
                    Reply::Checked(reply) => {
                        calling = None;
                        if let Some(index) = index(reply.place) {
                            let ends = reply.ends;
                            progress.note(index, reply.into_row(), ends);
                        }
                    }
                    Reply::Compiling { done, total } => {
                        calling = None;
                        let what = format!("{done} of {total} CUDA sources");
                        watch.step(Stage::Compiling, done as f64, total as f64, &what);
                    }
                    _ => {}
                })
            });
            match (asked, calling) {
                (Err(error), Some(index)) if error.is_end() => {
                    progress.note(index, broken(plan, rows[index], seed, &error), true);
                }
                // The compiler took the process along, and one source at a time tells whose fault it is.
                (Err(error), None) if error.is_end() && together => together = false,
                (Err(error), _) => {
                    progress.give_up(&format!("its check could not be made: {error}"));
                }
                (Ok(_), _) if progress.known() == known => {
                    let row = CheckedRow::skipped("its check gave no answer".to_owned());
                    progress.note(first, row, false);
                }
                (Ok(_), _) => {}
            }
        }
        progress.found.into_iter().flatten().collect()
    }
}

/// Position among some rows of what a worker calls by its place in a request.
fn progress_index(
    rows: &[(usize, usize)],
    waiting: &[Vec<(usize, usize)>],
    Place { cell, row }: Place,
) -> Option<usize> {
    let wanted = waiting.get(cell)?.get(row?)?;
    rows.iter().position(|row| row == wanted)
}

/// What is known of some rows of a plan.
struct Progress<'a> {
    plan: &'a Plan,
    rows: &'a [(usize, usize)],
    found: Vec<Option<CheckedRow>>,
}

impl Progress<'_> {
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

    /// Notes what was found about a row; a variant that broke its process, or its device, is not called again at other
    /// sizes.
    fn note(&mut self, index: usize, row: CheckedRow, ends: bool) {
        let variant = |index: usize| {
            let (cell, row) = self.rows[index];
            self.plan.cells[cell].rows[row].variant
        };
        let broken = variant(index);
        for later in (index + 1..self.rows.len()).filter(|_| ends) {
            if std::ptr::eq(variant(later), broken) {
                self.found[later].get_or_insert_with(|| row.clone());
            }
        }
        self.found[index] = Some(row);
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
fn broken(plan: &Plan, (cell, _): (usize, usize), seed: u64, error: &LinkError) -> CheckedRow {
    let cell = &plan.cells[cell];
    let text = format!("ended the process that checked it: {error}");
    let wrong = Wrong {
        reason: Reason::Reported { text, is_fault: true },
        size: cell.size.name(cell.kernel.axes),
        seed,
        origin: Origin::Listed,
    };
    Check { outcome: Err(wrong), errors: None, remarks: Vec::new() }.into()
}
