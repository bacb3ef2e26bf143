//! Two builds of one program, measured in turns as if they were one worker.
//!
//! A kept program of another day and the one of today are two processes that live side by side. To their controller they
//! are one worker whose cells have rows of both ([`Program`]): a block of a cell is a block of one process and then one of
//! the other, with a coin for who comes first, and its samples together. Who comes second runs where the first one did. So
//! what the machine does from one moment to the next is the same for both, launches sample the placement of both, and a row
//! is compared with its former self in the way in which it is compared with its base.
//!
//! Their data is not the same, though. A system is apt to hand the pages that one process gave back to the next one that
//! asks, so that who asks first has the same pages in every launch. So they take turns in that, too.
//!
//! Whatever befalls the older program costs its own rows, and never the run.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::Order;
use super::link::{Launcher, Link, LinkError};
use super::protocol::{
    Block, CellRequest, Done, FailedRow, Place, Preparation, PreparedCell, Program, Reply, Request,
    Visit, VisitRow, VisitedBlock, Visits,
};
use super::quiet::Quiet;

/// Launches of two programs at once.
pub struct Duet<'a> {
    /// The program of today.
    pub now: &'a dyn Launcher,
    /// The older one.
    pub past: &'a dyn Launcher,
    /// Seed of who comes first.
    pub seed: u64,
}

impl Launcher for Duet<'_> {
    fn launch(&self, launch: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        let now = Side::new(self.now.launch(launch)?, Program::Now);
        let order = Order::new(self.seed.rotate_left(29), launch);
        let (past, lost, failed) = (None, None, BTreeSet::new());
        let mut pair = Pair { now, past, launcher: self.past, launch, lost, order, failed };
        pair.start_past();
        Ok(Box::new(pair))
    }

    fn is_fresh(&self) -> bool {
        self.now.is_fresh()
    }
}

/// A row as the controller numbers it: its cell, and its place among the rows of both programs.
type Numbers = (usize, usize);

/// One of both processes, with its own numbers of cells and rows.
struct Side<'a> {
    link: Box<dyn Link + 'a>,
    program: Program,
    /// Its cells.
    cells: Vec<SideCell>,
    /// What it was about to call when it was last heard of, in its own numbers.
    calling: Option<Place>,
}

/// A cell of one process.
struct SideCell {
    /// The controller's number of it.
    number: usize,
    /// The controller's numbers of its rows.
    rows: Vec<usize>,
    /// How many rows the controller's cell has.
    width: usize,
    /// Whether its data is there.
    is_prepared: bool,
}

impl<'a> Side<'a> {
    fn new(link: Box<dyn Link + 'a>, program: Program) -> Self {
        Side { link, program, cells: Vec::new(), calling: None }
    }

    /// Takes its part of some cells; gives it as a request.
    fn take(
        &mut self,
        cells: &[CellRequest],
        is_meant: impl Fn(usize, usize) -> bool,
    ) -> Vec<CellRequest> {
        self.cells.clear();
        let mut requests = Vec::new();
        for (number, cell) in cells.iter().enumerate() {
            let is_own =
                |row: &usize| cell.rows[*row].program == self.program && is_meant(number, *row);
            let rows: Vec<usize> = (0..cell.rows.len()).filter(is_own).collect();
            if rows.is_empty() {
                continue;
            }
            let own = rows.iter().map(|row| cell.rows[*row].clone()).collect();
            requests.push(CellRequest { rows: own, ..cell.clone() });
            let width = cell.rows.len();
            self.cells.push(SideCell { number, rows, width, is_prepared: false });
        }
        requests
    }

    /// Asks the process, and hears its replies in the controller's numbers.
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let Side { link, program, cells, calling } = self;
        let done = link.ask(request, &mut |reply| {
            match &reply {
                Reply::Calling(place) => *calling = Some(*place),
                Reply::Called | Reply::Prepared(_) | Reply::Failed(_) => *calling = None,
                _ => {}
            }
            if let Reply::Prepared(prepared) = &reply
                && let Some(cell) = cells.get_mut(prepared.cell)
            {
                cell.is_prepared = true;
            }
            for reply in renumbered(cells, *program, reply) {
                hear(reply);
            }
        })?;
        *calling = None;
        Ok(done)
    }

    /// The part of a visit that this process makes; none where it has no row of it that has not failed.
    fn visit(&self, visit: &Visit, failed: &BTreeSet<Numbers>) -> Option<Visit> {
        let cell = self.cells.iter().position(|c| c.number == visit.cell && c.is_prepared)?;
        let own = |asked: &VisitRow| {
            let row = self.cells[cell].rows.iter().position(|row| *row == asked.row)?;
            (!failed.contains(&(visit.cell, asked.row))).then_some(VisitRow { row, ..*asked })
        };
        let rows: Vec<VisitRow> = visit.rows.iter().filter_map(own).collect();
        (!rows.is_empty()).then_some(Visit { cell, blocks: 1, rows })
    }

    /// The controller's numbers of the rows that a sudden end is to be blamed on: the one that was being called, or all.
    fn guilty(&self) -> Vec<Numbers> {
        let all = |cell: &SideCell| cell.rows.iter().map(|row| (cell.number, *row)).collect();
        let called = self.calling.and_then(|Place { cell, row }| {
            let cell = self.cells.get(cell)?;
            Some(row.map_or_else(|| all(cell), |row| vec![(cell.number, cell.rows[row])]))
        });
        called.unwrap_or_else(|| self.cells.iter().flat_map(all).collect::<Vec<_>>())
    }
}

/// A reply in the controller's numbers. What is about a whole cell is, for the older program, about its own rows of it.
fn renumbered(cells: &[SideCell], program: Program, reply: Reply) -> Vec<Reply> {
    let of_row = |cell: usize, row: usize| -> Option<Numbers> {
        let cell = cells.get(cell)?;
        Some((cell.number, *cell.rows.get(row)?))
    };
    let failures = |failed: FailedRow, wrap: fn(FailedRow) -> Reply| -> Vec<Reply> {
        let Some(cell) = cells.get(failed.cell) else { return Vec::new() };
        let ends = failed.ends && program == Program::Now;
        let rows: Vec<Option<usize>> = match (failed.row, program) {
            (Some(row), _) => vec![cell.rows.get(row).copied()],
            (None, Program::Now) => vec![None],
            (None, Program::Past) => cell.rows.iter().copied().map(Some).collect(),
        };
        let one = |row| wrap(FailedRow { cell: cell.number, row, ends, ..failed.clone() });
        rows.into_iter().map(one).collect()
    };
    let one = match reply {
        // Who ends while the older program is called is not for the controller to find out.
        Reply::Calling(_) | Reply::Called if program == Program::Past => None,
        Reply::Calling(Place { cell, row }) => cells.get(cell).map(|own| {
            let row = row.and_then(|row| own.rows.get(row).copied());
            Reply::Calling(Place { cell: own.number, row })
        }),
        Reply::Prepared(prepared) => cells.get(prepared.cell).map(|own| {
            let mut calibrations = vec![None; own.width];
            for (row, found) in own.rows.iter().zip(prepared.calibrations) {
                calibrations[*row] = found;
            }
            Reply::Prepared(PreparedCell { cell: own.number, calibrations, ..prepared })
        }),
        Reply::Block(VisitedBlock { cell, mut block }) => {
            block.samples.retain_mut(|sample| match of_row(cell, sample.row) {
                Some((_, row)) => {
                    sample.row = row;
                    true
                }
                None => false,
            });
            cells.get(cell).map(|own| Reply::Block(VisitedBlock { cell: own.number, block }))
        }
        Reply::Failed(failed) => return failures(failed, Reply::Failed),
        Reply::Declined(failed) => return failures(failed, Reply::Declined),
        Reply::Inspected(mut inspected) => of_row(inspected.cell, inspected.row).map(|numbers| {
            (inspected.cell, inspected.row) = numbers;
            Reply::Inspected(inspected)
        }),
        other => Some(other),
    };
    one.into_iter().collect()
}

/// Two workers as one.
struct Pair<'a> {
    now: Side<'a>,
    past: Option<Side<'a>>,
    /// Where another of the older program comes from.
    launcher: &'a dyn Launcher,
    launch: u64,
    /// Why the older program is not there any more.
    lost: Option<String>,
    order: Order,
    /// Rows that failed, in the controller's numbers.
    failed: BTreeSet<Numbers>,
}

impl Link for Pair<'_> {
    fn ask(&mut self, request: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        match request {
            Request::Prepare(preparation) => self.prepare(preparation, hear),
            Request::Measure(visits) => self.measure(visits, hear),
            // What was checked and counted on its day needs no second time.
            other if self.now.cells.is_empty() => {
                debug_assert!(!matches!(other, Request::Check(_)));
                Ok(Done::default())
            }
            other => self.now.ask(other, hear),
        }
    }
}

impl Pair<'_> {
    /// Starts the older program, or notes why it cannot be.
    fn start_past(&mut self) {
        match self.launcher.launch(self.launch) {
            Ok(link) => self.past = Some(Side::new(link, Program::Past)),
            Err(error) => (self.past, self.lost) = (None, Some(error.to_string())),
        }
    }

    /// Lets both make their data. Cells that are calibrated are first made by the program of today: what it leaves out for
    /// want of time, the older one need not make.
    fn prepare(
        &mut self,
        preparation: &Preparation,
        hear: &mut dyn FnMut(Reply),
    ) -> Result<Done, LinkError> {
        self.failed.clear();
        let mut done = Done::default();
        let past_is_first = preparation.calibrate.is_none() && self.order.permutation(2)[0] == 1;
        if past_is_first {
            self.prepare_past(preparation, &mut done, hear);
        }
        let cells = self.now.take(&preparation.cells, |_, _| true);
        if !cells.is_empty() {
            let request = Request::Prepare(Preparation { cells, ..preparation.clone() });
            add(&mut done, self.now.ask(&request, hear)?);
        }
        if !past_is_first {
            self.prepare_past(preparation, &mut done, hear);
        }
        Ok(done)
    }

    /// Lets the older program make its data. A row that ends it is left out, and the others have another process; that comes
    /// to an end, because each time a row fails.
    fn prepare_past(
        &mut self,
        preparation: &Preparation,
        done: &mut Done,
        hear: &mut dyn FnMut(Reply),
    ) {
        let is_left_out =
            |number: usize| self.now.cells.iter().any(|c| c.number == number && !c.is_prepared);
        let wanted: Vec<usize> =
            (0..preparation.cells.len()).filter(|number| !is_left_out(*number)).collect();
        loop {
            let failed = self.failed.clone();
            let is_meant = |number: usize, row: usize| {
                wanted.contains(&number) && !failed.contains(&(number, row))
            };
            let Some(past) = self.past.as_mut() else {
                let mut rows = all_past_rows(&preparation.cells);
                rows.retain(|(number, row)| is_meant(*number, *row));
                return self.give_up(&rows, hear);
            };
            let cells = past.take(&preparation.cells, is_meant);
            if cells.is_empty() {
                return;
            }
            let request = Request::Prepare(patient(Preparation { cells, ..preparation.clone() }));
            self.ask_past(&request, done, hear);
            if self.past.is_some() {
                return;
            }
            if self.failed.len() > failed.len() {
                self.start_past();
            }
        }
    }

    /// Visits the cells round-robin, each block of the one followed by one of the other.
    fn measure(&mut self, visits: &Visits, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let begun = Instant::now();
        let time = Duration::try_from_secs_f64(visits.seconds.max(0.0)).unwrap_or_default();
        let mut left: Vec<u32> = visits.cells.iter().map(|visit| visit.blocks).collect();
        let (mut done, mut is_first) = (Done::default(), true);
        let mut quiet = Quiet::new(visits.quiet);
        while left.iter().any(|blocks| *blocks > 0) {
            for next in self.order.permutation(left.len()) {
                if left[next] == 0 {
                    continue;
                }
                let rest = time.saturating_sub(begun.elapsed());
                // A start that took long is no reason to come back with nothing.
                if rest.is_zero() && !is_first {
                    return Ok(done);
                }
                is_first = false;
                left[next] -= 1;
                let visit = &visits.cells[next];
                let (cells, seconds) = (Vec::new(), rest.as_secs_f64());
                let limits = Visits { cells, seconds, quiet: quiet.level(), ..*visits };
                let blocks = self.both(visit, &limits, &mut done, hear)?;
                if blocks.is_empty() {
                    left[next] = 0;
                }
                for block in blocks {
                    quiet.note(&block);
                    hear(Reply::Block(VisitedBlock { cell: visit.cell, block }));
                }
            }
        }
        Ok(done)
    }

    /// One block of both; more where one of them was disturbed.
    fn both(
        &mut self,
        visit: &Visit,
        limits: &Visits,
        done: &mut Done,
        hear: &mut dyn FnMut(Reply),
    ) -> Result<Vec<Block>, LinkError> {
        let ask = |visit, processor| {
            Request::Measure(Visits {
                cells: vec![visit],
                settle: true,
                processor,
                ..limits.clone()
            })
        };
        let (mut now, mut past) = (Vec::new(), Vec::new());
        // Where the first one was, the second one goes.
        let mut processor = None;
        for turn in self.order.permutation(2) {
            if turn == 0
                && let Some(own) = self.now.visit(visit, &self.failed)
            {
                let failed = &mut self.failed;
                let asked = self.now.ask(&ask(own, processor), &mut |reply| {
                    note(failed, &reply);
                    keep(&mut now, reply, hear);
                })?;
                processor = asked.processor;
                add(done, asked);
            }
            let own = self.past.as_ref().and_then(|past| past.visit(visit, &self.failed));
            if turn == 1
                && let Some(own) = own
            {
                let request = ask(own, processor);
                processor =
                    self.ask_past(&request, done, &mut |reply| keep(&mut past, reply, hear));
            }
        }
        Ok(together(now, past))
    }

    /// Asks the older program; should it end, its rows fail, and the other goes on alone.
    /// Gives the processor on which it was.
    fn ask_past(
        &mut self,
        request: &Request,
        done: &mut Done,
        hear: &mut dyn FnMut(Reply),
    ) -> Option<usize> {
        let past = self.past.as_mut()?;
        let failed = &mut self.failed;
        let asked = past.ask(request, &mut |reply| {
            note(failed, &reply);
            hear(reply);
        });
        match asked {
            Ok(asked) => {
                add(done, asked);
                asked.processor
            }
            Err(error) => {
                // Who gave up has said which row it was.
                let resigned = matches!(error, LinkError::Resigned);
                let guilty = if resigned { Vec::new() } else { past.guilty() };
                self.lost = Some(error.to_string());
                self.past = None;
                self.give_up(&guilty, hear);
                None
            }
        }
    }

    /// Lets rows of the older program fail.
    fn give_up(&mut self, rows: &[Numbers], hear: &mut dyn FnMut(Reply)) {
        let failure =
            format!("the baseline's executable: {}", self.lost.as_deref().unwrap_or_default());
        for (cell, row) in rows {
            self.failed.insert((*cell, *row));
            let (cell, row) = (*cell, Some(*row));
            hear(Reply::Failed(FailedRow { cell, row, failure: failure.clone(), ends: false }));
        }
    }
}

/// Calibration that takes its time: the program of today has calibrated the same cells in what there was.
fn patient(mut preparation: Preparation) -> Preparation {
    /// Longer than any run.
    const SECONDS: f64 = 1e6;
    if let Some(sampling) = preparation.calibrate.as_mut() {
        sampling.patience_seconds = SECONDS;
    }
    preparation
}

fn all_past_rows(cells: &[CellRequest]) -> Vec<Numbers> {
    let of_cell = |(number, cell): (usize, &CellRequest)| -> Vec<Numbers> {
        let is_past = |row: &usize| cell.rows[*row].program == Program::Past;
        (0..cell.rows.len()).filter(is_past).map(|row| (number, row)).collect()
    };
    cells.iter().enumerate().flat_map(of_cell).collect()
}

/// Keeps blocks back until both have theirs, and passes everything else on.
fn keep(blocks: &mut Vec<Block>, reply: Reply, hear: &mut dyn FnMut(Reply)) {
    match reply {
        Reply::Block(visited) => blocks.push(visited.block),
        other => hear(other),
    }
}

/// Notes rows that fail.
fn note(failed: &mut BTreeSet<Numbers>, reply: &Reply) {
    if let Reply::Failed(row) | Reply::Declined(row) = reply
        && let Some(number) = row.row
    {
        failed.insert((row.cell, number));
    }
}

/// The last block of one with the last of the other, and so on; what one had to repeat stays alone.
fn together(mut now: Vec<Block>, mut past: Vec<Block>) -> Vec<Block> {
    let mut blocks = Vec::new();
    loop {
        blocks.push(match (now.pop(), past.pop()) {
            (None, None) => break,
            (Some(alone), None) | (None, Some(alone)) => alone,
            (Some(mut block), Some(other)) => {
                block.samples.extend(other.samples);
                block.requeued |= other.requeued;
                block.throttled |= other.throttled;
                block
            }
        });
    }
    blocks.reverse();
    blocks
}

fn add(done: &mut Done, more: Done) {
    done.inside_seconds += more.inside_seconds;
    done.calibration_seconds += more.calibration_seconds;
}
