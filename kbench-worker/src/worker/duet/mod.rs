//! Two builds of one program, measured in turns as if they were one worker.
//!
//! A kept program of another day and the one of today are two processes that live side by side. To their controller they
//! are one worker whose cells have rows of both ([`Program`]). A block of a cell is mirrored, like any other: the rows of one
//! process, those of the other, and both in the reverse of that order; a coin decides which process comes first. All of it runs
//! on the processor on which the first process was. So a drift of the machine takes the same from both, launches sample the
//! placement of both, and a row is compared with its former self in the way in which it is compared with its base.
//!
//! Their data is not the same, though. A system is apt to hand the pages that one process gave back to the next one that
//! asks, so that who asks first has the same pages in every launch. So they take turns in that, too.
//!
//! Whatever befalls the older program costs its own rows, and never the run.

mod side;

use std::cell::Cell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use self::side::{Numbers, Side};
use crate::worker::Order;
use crate::worker::link::{Launcher, Link, LinkError, MOST_PARDONS};
use crate::worker::protocol::{
    Block, CellRequest, Done, FailedRow, Preparation, Program, Reply, Request, RowRequest, Visit,
    VisitedBlock, Visits,
};
use crate::worker::quiet::Quiet;

/// Launches of two programs at once.
pub struct Duet<'a> {
    now: &'a dyn Launcher,
    past: &'a dyn Launcher,
    /// Seed of who comes first.
    seed: u64,
    /// How often the older program ended, and nobody knows whose fault it was.
    losses: Cell<u32>,
}

impl<'a> Duet<'a> {
    /// The program of today, the older one, and the seed of who comes first.
    pub fn new(now: &'a dyn Launcher, past: &'a dyn Launcher, seed: u64) -> Self {
        Duet { now, past, seed, losses: Cell::new(0) }
    }
}

impl Launcher for Duet<'_> {
    fn launch(&self, launch: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        let now = Side::new(self.now.launch(launch)?, Program::Now);
        let order = Order::new(self.seed.rotate_left(29), launch);
        let (past, lost, failed) = (None, None, HashSet::new());
        let mut pair = Pair { now, past, duet: self, launch, lost, order, failed };
        pair.start_past()?;
        Ok(Box::new(pair))
    }

    fn is_fresh(&self) -> bool {
        self.now.is_fresh()
    }
}

/// Two workers as one.
struct Pair<'a> {
    now: Side<'a>,
    past: Option<Side<'a>>,
    /// Where another of the older program comes from.
    duet: &'a Duet<'a>,
    launch: u64,
    /// Why the older program is not there any more.
    lost: Option<String>,
    order: Order,
    /// Rows that failed, in the controller's numbers.
    failed: HashSet<Numbers>,
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
    /// Starts the older program, or notes why it cannot be; an error where nobody wants to go on.
    fn start_past(&mut self) -> Result<(), LinkError> {
        match self.duet.past.launch(self.launch) {
            Ok(link) => self.past = Some(Side::new(link, Program::Past)),
            Err(error) if error.interrupt().is_some() => return Err(error),
            Err(error) => (self.past, self.lost) = (None, Some(error.to_string())),
        }
        Ok(())
    }

    /// Lets both make their data. Cells that are calibrated are first made by the program of today: cells and rows that it
    /// leaves out for want of time, the older one leaves out, too.
    fn prepare(
        &mut self,
        preparation: &Preparation,
        hear: &mut dyn FnMut(Reply),
    ) -> Result<Done, LinkError> {
        self.failed.clear();
        let mut done = Done::default();
        let past_is_first = preparation.calibrate.is_none() && self.order.permutation(2)[0] == 1;
        let mut wanted = all_rows(&preparation.cells, Program::Past);
        if past_is_first {
            self.prepare_past(preparation, &wanted, &mut done, hear)?;
        }
        let cells = self.now.take(&preparation.cells, &|_, _| true);
        if !cells.is_empty() {
            let request = Request::Prepare(Preparation { cells, ..preparation.clone() });
            let mut found = HashSet::new();
            let asked = self.now.ask(&request, &mut |reply| {
                if let Reply::Prepared(prepared) = &reply {
                    let rows = prepared.calibrations.iter().enumerate();
                    found.extend(
                        rows.filter_map(|(row, found)| found.map(|_| (prepared.cell, row))),
                    );
                }
                hear(reply);
            })?;
            add(&mut done, asked);
            if preparation.calibrate.is_some() {
                wanted = former_selves(&preparation.cells, &found, wanted);
            }
        }
        if !past_is_first {
            self.prepare_past(preparation, &wanted, &mut done, hear)?;
        }
        Ok(done)
    }

    /// Lets the older program make its data. A row that ends it is left out, and the others have another process; that comes
    /// to an end, because each time a row fails, or there is one more loss.
    fn prepare_past(
        &mut self,
        preparation: &Preparation,
        wanted: &[Numbers],
        done: &mut Done,
        hear: &mut dyn FnMut(Reply),
    ) -> Result<(), LinkError> {
        loop {
            let failed = &self.failed;
            let is_left = |numbers: &&Numbers| !failed.contains(numbers);
            let meant: Vec<Numbers> = wanted.iter().filter(is_left).copied().collect();
            let Some(past) = self.past.as_mut() else {
                self.give_up(&meant, hear);
                return Ok(());
            };
            let is_meant = |number: usize, row: usize| meant.binary_search(&(number, row)).is_ok();
            let cells = past.take(&preparation.cells, &is_meant);
            if cells.is_empty() {
                return Ok(());
            }
            let before = (self.failed.len(), self.duet.losses.get());
            let request = Request::Prepare(patient(Preparation { cells, ..preparation.clone() }));
            self.ask_past(&request, done, hear)?;
            if self.past.is_some() {
                return Ok(());
            }
            if (self.failed.len(), self.duet.losses.get()) != before {
                self.start_past()?;
            }
        }
    }

    /// Visits the cells round-robin, each block of the one followed by one of the other.
    fn measure(&mut self, visits: &Visits, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        let begun = Instant::now();
        let time = Duration::try_from_secs_f64(visits.seconds.max(0.0)).unwrap_or(Duration::MAX);
        let mut left: Vec<u32> = visits.cells.iter().map(|visit| visit.blocks).collect();
        let mut done = Done::default();
        let mut unvisited = left.iter().filter(|blocks| **blocks > 0).count();
        let mut quiet: Vec<Quiet> =
            visits.cells.iter().map(|visit| Quiet::new(visit.quiet)).collect();
        while left.iter().any(|blocks| *blocks > 0) {
            for next in self.order.permutation(left.len()) {
                if left[next] == 0 {
                    continue;
                }
                let rest = time.saturating_sub(begun.elapsed());
                // Every cell has a block in every launch, also when starting took long.
                if rest.is_zero() && unvisited == 0 {
                    return Ok(done);
                }
                unvisited = unvisited.saturating_sub(1);
                left[next] -= 1;
                let visit = Visit { quiet: quiet[next].level(), ..visits.cells[next].clone() };
                let (cells, seconds) = (Vec::new(), rest.as_secs_f64());
                let limits = Visits { cells, seconds, ..*visits };
                let blocks = self.both(&visit, &limits, &mut done, hear)?;
                if blocks.is_empty() {
                    left[next] = 0;
                }
                for block in blocks {
                    quiet[next].note(&block);
                    hear(Reply::Block(VisitedBlock { cell: visit.cell, block }));
                }
            }
        }
        Ok(done)
    }

    /// One block of both, mirrored unless time is short; more where one of them was disturbed.
    fn both(
        &mut self,
        visit: &Visit,
        limits: &Visits,
        done: &mut Done,
        hear: &mut dyn FnMut(Reply),
    ) -> Result<Vec<Block>, LinkError> {
        let announce = limits.announce || self.duet.losses.get() > 0;
        let mut turns = self.order.permutation(2);
        if !visit.single {
            turns.extend([turns[1], turns[0]]);
        }
        let (mut now, mut past) = (Vec::new(), Vec::new());
        // Where the first one was, the second one goes.
        let mut processor = None;
        let mut last = None;
        for (number, turn) in turns.into_iter().enumerate() {
            let (settle, reverse) = (last.replace(turn) != Some(turn), number >= 2);
            let part = Visit { single: true, reverse, ..visit.clone() };
            let ask = |visit, processor| {
                let cells = vec![visit];
                Request::Measure(Visits { cells, settle, announce, processor, ..limits.clone() })
            };
            let mut half = Vec::new();
            if turn == 0
                && let Some(own) = self.now.visit(&part, &self.failed)
            {
                let failed = &mut self.failed;
                let asked = self.now.ask(&ask(own, processor), &mut |reply| {
                    note(failed, &reply);
                    keep(&mut half, reply, hear);
                })?;
                processor = asked.processor;
                add(done, asked);
            }
            let own = self.past.as_ref().and_then(|past| past.visit(&part, &self.failed));
            if turn == 1
                && let Some(own) = own
            {
                let request = ask(own, processor);
                processor =
                    self.ask_past(&request, done, &mut |reply| keep(&mut half, reply, hear))?;
            }
            let known = if turn == 0 { &mut now } else { &mut past };
            *known = together(std::mem::take(known), half);
        }
        Ok(together(now, past))
    }

    /// Asks the older program; should it end, whoever it was calling fails, and the other goes on alone until the next launch.
    /// Gives the processor on which it was; an error where nobody wants to go on.
    fn ask_past(
        &mut self,
        request: &Request,
        done: &mut Done,
        hear: &mut dyn FnMut(Reply),
    ) -> Result<Option<usize>, LinkError> {
        let Some(past) = self.past.as_mut() else { return Ok(None) };
        let failed = &mut self.failed;
        let asked = past.ask(request, &mut |reply| {
            note(failed, &reply);
            hear(reply);
        });
        match asked {
            Ok(asked) => {
                add(done, asked);
                Ok(asked.processor)
            }
            Err(error) if error.interrupt().is_some() => Err(error),
            Err(error) => {
                let losses = &self.duet.losses;
                let is_unclear = error.is_by_others() || past.calling.is_none();
                let guilty = match error {
                    // Who gave up has said which row it was.
                    LinkError::Resigned => Vec::new(),
                    _ if is_unclear && losses.get() < MOST_PARDONS => {
                        losses.set(losses.get() + 1);
                        Vec::new()
                    }
                    _ => past.guilty(),
                };
                self.lost = Some(error.to_string());
                self.past = None;
                self.give_up(&guilty, hear);
                Ok(None)
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

/// The rows of one program, in order.
fn all_rows(cells: &[CellRequest], program: Program) -> Vec<Numbers> {
    let mut all = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        for (row, request) in cell.rows.iter().enumerate() {
            if request.program == program {
                all.push((number, row));
            }
        }
    }
    all
}

/// Those of the older program's rows that are wanted: where today's program has calibrated the same.
fn former_selves(
    cells: &[CellRequest],
    found: &HashSet<Numbers>,
    mut wanted: Vec<Numbers>,
) -> Vec<Numbers> {
    let is_same = |one: &RowRequest, other: &RowRequest| {
        (&one.variant, one.threads, one.mode) == (&other.variant, other.threads, other.mode)
    };
    wanted.retain(|&(number, past)| {
        let rows = &cells[number].rows;
        let mut today = (0..rows.len()).filter(|row| found.contains(&(number, *row)));
        today.any(|row| is_same(&rows[row], &rows[past]))
    });
    wanted
}

/// Keeps blocks back until both have theirs, and passes everything else on.
fn keep(blocks: &mut Vec<Block>, reply: Reply, hear: &mut dyn FnMut(Reply)) {
    match reply {
        Reply::Block(visited) => blocks.push(visited.block),
        other => hear(other),
    }
}

/// Notes rows that fail.
fn note(failed: &mut HashSet<Numbers>, reply: &Reply) {
    if let Reply::Failed(row) | Reply::Declined(row) = reply
        && let Some(number) = row.row
    {
        failed.insert((row.cell, number));
    }
}

/// The last block of one with the last of the other, and so on; what one had to repeat stays alone.
fn together(mut one: Vec<Block>, mut other: Vec<Block>) -> Vec<Block> {
    let mut blocks = Vec::new();
    loop {
        blocks.push(match (one.pop(), other.pop()) {
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
