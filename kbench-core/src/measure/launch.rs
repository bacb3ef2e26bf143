//! One launch of some cells: a worker is started, told what to visit, and heard; and what is done when it ends before its
//! time.

use std::time::Instant;

use super::Assignment;
use super::roster::{Roster, RosterCell};
use super::run::Run;
use super::session::{Guilty, Session};
use crate::worker::{
    Block, LinkError, MOST_PARDONS, PROTOCOL, Preparation, Request, Review, Visit, Visits,
};

/// A launch that takes this many times as long as planned ends, once every cell has had a block.
const PATIENCE: f64 = 1.5;

/// Workers with the data of a cell that may end before their time for reasons unknown. From the first one on, workers
/// announce every call; so the second one usually tells which row it was.
const MOST_LOSSES: usize = 3;

/// The time that calls on other inputs may take, as a share of the time of a launch's blocks.
const SHARE_OF_EXCHANGE: f64 = 0.03;

impl<'a> Run<'a> {
    /// Starts a worker for some rows, and lets it make their data; none when it cannot.
    pub(super) fn start(&mut self, roster: Roster, cells: &[usize]) -> Option<Session<'a>> {
        let begun = Instant::now();
        let number = self.measured.measurement.launches.len() as u64;
        let request = Request::Prepare(self.preparation(&roster, number));
        let link = match self.assignment.launcher.launch(number) {
            Ok(link) => link,
            Err(error) => {
                self.end(cells, &error);
                return None;
            }
        };
        let mut session = Session::new(link, self.assignment.plan, roster);
        if let Err(error) = session.ask(&request, &mut self.measured, &mut |_| {}) {
            self.blame(&session, cells, &error);
            return None;
        }
        let common = session.common_start(begun.elapsed().as_secs_f64());
        for (RosterCell { cell, .. }, ready) in session.roster.cells.iter().zip(&session.ready) {
            let of = cells.iter().find(|at| self.cells[**at].roster.cell == *cell);
            if let (Some(at), Some(ready)) = (of, ready) {
                self.cells[*at].starts.push(common + ready.seconds);
            }
        }
        Some(session)
    }

    /// Measures with a worker, and keeps what it took, also when it ends before its time.
    pub(super) fn launch(&mut self, mut session: Session<'a>, cells: &[usize]) {
        let visits = self.visits(&session, cells);
        let begun = Instant::now();
        let request = Request::Measure(visits);
        let measured = session.ask(&request, &mut self.measured, &mut |_| {});
        match &measured {
            Ok(_) => self.learn_paces(&session, cells, begun.elapsed().as_secs_f64()),
            Err(error) => self.blame(&session, cells, error),
        }
        for at in cells {
            let processes = self.processes(*at) as f64;
            let cell = &mut self.cells[*at];
            let blocks = &session.launch.cells[cell.roster.cell];
            let counted = blocks.iter().filter(|block| !block.requeued);
            cell.taken += counted.map(mirrored_blocks).sum::<f64>() / processes;
        }
        if measured.is_ok() {
            let seconds = begun.elapsed().as_secs_f64();
            self.look_aside(&mut session, cells);
            self.exchange(&mut session, cells, SHARE_OF_EXCHANGE * seconds);
        }
        self.measured.measurement.launches.push(std::mem::take(&mut session.launch));
    }

    /// Checks and counts that need a worker but no clock.
    fn look_aside(&mut self, session: &mut Session<'a>, cells: &[usize]) {
        let rows = session.roster.rows();
        if rows.iter().all(|row| self.rechecked.contains(row)) {
            return;
        }
        let begun = Instant::now();
        let mut requests = vec![Request::Recheck(Review::OF_RESULTS)];
        let has_device = rows.iter().any(|(cell, row)| {
            let row = self.assignment.plan.cells[*cell].row_at(*row);
            row.variant.implementation.is_device()
        });
        let Assignment { inspect, inspect_device, .. } = self.assignment;
        if *inspect || *inspect_device && has_device {
            requests.push(Request::Inspect { processor: *inspect });
        }
        // A worker that ends while it looks is to blame on a row; the next launch looks at the others.
        let is_done = requests.iter().all(|request| {
            let asked = session.ask(request, &mut self.measured, &mut |_| {});
            if let Err(error) = &asked {
                self.blame(session, cells, error);
            }
            asked.is_ok()
        });
        if is_done {
            self.rechecked.extend(rows);
        }
        self.measured.spent.checking += begun.elapsed().as_secs_f64();
    }

    /// Has rows called on other inputs than they were timed on, in the process that has timed them: its last work.
    fn exchange(&mut self, session: &mut Session<'a>, cells: &[usize], seconds: f64) {
        if self.is_broken {
            return;
        }
        let begun = Instant::now();
        let seconds = seconds.min(self.left());
        let request = Request::Recheck(Review::on_other_inputs(seconds));
        if let Err(error) = session.ask(&request, &mut self.measured, &mut |_| {}) {
            self.blame(session, cells, &error);
        }
        self.measured.spent.checking += begun.elapsed().as_secs_f64();
    }

    /// What a worker is to visit.
    fn visits(&self, session: &Session<'a>, cells: &[usize]) -> Visits {
        let Assignment { effort, launcher, .. } = self.assignment;
        let has_set_samples = effort.samples.is_some() || !launcher.is_fresh();
        let mut visits = Vec::new();
        let (mut seconds, mut announce) = (0.0, false);
        for (place, RosterCell { cell, .. }) in session.roster.cells.iter().enumerate() {
            let of = cells.iter().find(|at| self.cells[**at].roster.cell == *cell);
            let Some(at) = of else { continue };
            let rows = session.roster.visit_rows(place, &self.measured);
            if rows.is_empty() {
                continue;
            }
            let (share, costs) = (self.cells[*at].share, self.costs(*at));
            seconds += share.next_seconds(costs) - costs.start;
            announce |= !self.cells[*at].losses.is_empty();
            let (blocks, single) = (share.next_blocks(), share.is_single);
            let quiet = self.measured.measurement.quiet_level(*cell);
            visits.push(Visit { cell: place, blocks, single, reverse: false, quiet, rows });
        }
        Visits {
            cells: visits,
            seconds: if has_set_samples { self.left() } else { PATIENCE * seconds },
            announce,
            settle: false,
            processor: None,
        }
    }

    /// Learns from a launch how long calls and blocks really take.
    fn learn_paces(&mut self, session: &Session<'a>, cells: &[usize], seconds: f64) {
        let mut predicted = 0.0;
        for at in cells {
            // A process that has one row of a cell takes as much less time.
            let processes = self.processes(*at) as f64;
            let cell = &mut self.cells[*at];
            let (known, index) = (&self.measured.rows[cell.roster.cell], cell.roster.cell);
            let (mut took, mut expected) = (0.0, 0.0);
            for sample in session.launch.cells[index].iter().flat_map(|block| &block.samples) {
                let calibration = known.get(sample.row).and_then(|row| row.calibration);
                took += calibration.map_or(0.0, |c| sample.nanoseconds * c.calls.total() as f64);
                expected += calibration.map_or(0.0, |c| c.estimate * c.calls.total() as f64);
            }
            if expected > 0.0 {
                cell.paces.push(took / expected);
            }
            let blocks: f64 = session.launch.cells[index].iter().map(mirrored_blocks).sum();
            if blocks > 0.0 {
                let costs = cell.costs(known, 1.0, 1);
                let warm_up = if cell.done == 0 { 0.0 } else { costs.warm_up };
                predicted += (blocks * costs.block + warm_up) / processes;
            }
        }
        if predicted > 0.0 {
            self.paces.push(seconds / predicted);
        }
    }

    /// Notes that a worker ended before its time: the fault of the row that was being called, a loss when none was.
    fn blame(&mut self, session: &Session<'a>, cells: &[usize], error: &LinkError) {
        self.is_broken = true;
        let is_worth_another_try = |at: &usize| self.cells[*at].losses.len() < MOST_LOSSES;
        match session.guilty(error) {
            Some(guilty) => self.fail(guilty, error),
            // It has said which row it was: that one has failed, and the others go on.
            None if matches!(error, LinkError::Resigned) => {}
            None if error.is_end() && cells.iter().all(is_worth_another_try) => {
                cells.iter().for_each(|at| self.cells[*at].losses.push(error.to_string()));
            }
            None => self.end(cells, error),
        }
    }

    /// Notes why some cells can have no more launches.
    fn end(&mut self, cells: &[usize], error: &LinkError) {
        self.is_broken = true;
        self.measured.interrupted = self.measured.interrupted.or(error.interrupt());
        cells.iter().for_each(|at| self.cells[*at].ended = Some(error.to_string()));
    }

    /// Marks rows whose call was the end of a worker; those that may be innocent have another chance.
    pub(super) fn fail(&mut self, guilty: Guilty, error: &LinkError) {
        let Guilty { place: RosterCell { cell, rows }, is_data } = guilty;
        let known = &mut self.measured.rows[cell];
        if error.is_by_others() && rows.iter().all(|row| known[*row].pardons < MOST_PARDONS) {
            rows.iter().for_each(|row| known[*row].pardons += 1);
            return;
        }
        let failure = match is_data {
            true => format!("the kernel's `inputs` or reference {error}"),
            false => error.to_string(),
        };
        for row in rows {
            known[row].failure.get_or_insert_with(|| failure.clone());
        }
    }

    /// Says why launches of a cell are missing: rows that have samples keep them, others have failed.
    pub(super) fn explain(&mut self, at: usize) {
        let cell = &self.cells[at];
        let losses = cell.losses.len();
        let (reason, remark) = match (&cell.ended, cell.losses.last()) {
            (Some(error), _) => (error, format!("measuring ended early: {error}")),
            (None, Some(error)) => {
                (error, format!("{losses} of its launches did not end well: {error}"))
            }
            (None, None) => return,
        };
        for row in &cell.roster.rows {
            let has_samples = self.measured.measurement.has(cell.roster.cell, *row);
            let known = &mut self.measured.rows[cell.roster.cell][*row];
            if has_samples {
                known.remark.get_or_insert_with(|| remark.clone());
            } else if self.measured.interrupted.is_none() {
                known.failure.get_or_insert_with(|| reason.clone());
            }
        }
    }

    pub(super) fn preparation(&self, roster: &Roster, launch: u64) -> Preparation {
        Preparation {
            protocol: PROTOCOL,
            seed: self.assignment.seed,
            order_seed: self.assignment.order_seed,
            launch,
            cells: roster.requests(self.assignment.plan, self.assignment.checked),
            memory: self.memory,
            calibrate: None,
            device: self.assignment.device.clone(),
            timeout_seconds: self.assignment.timeout.as_secs_f64(),
        }
    }
}

/// How much of a mirrored block a block is: one that is not mirrored has half of the samples.
fn mirrored_blocks(block: &Block) -> f64 {
    let Some(first) = block.samples.first() else { return 1.0 };
    let samples = block.samples.iter().filter(|sample| sample.row == first.row).count();
    if samples == 1 { 0.5 } else { 1.0 }
}
