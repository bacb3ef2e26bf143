//! One launch of a group: a worker is started, told what to visit, and heard; and what is done when it ends before its
//! time.

use std::time::Instant;

use super::Isolation;
use super::group::Group;
use super::roster::{Roster, RosterCell};
use super::session::{Guilty, Session};
use super::timetable::{Timetable, WARM_UP_BLOCKS};
use crate::worker::{LinkError, MOST_PARDONS, PROTOCOL, Preparation, Request, Visit, Visits};

/// Data of cells that are visited round-robin may take this much memory together; more cells make another group.
const GROUP_MEMORY: usize = 1 << 30;

/// Where time is short a launch ends by the clock: it is given this many times the blocks that should fit.
const AMPLE: f64 = 2.0;

/// Workers that may end before their time for reasons unknown. From the first one on, workers announce every call; so the
/// second one usually tells who it was.
const MOST_LOSSES: usize = 3;

impl<'a> Group<'a> {
    /// Starts a worker for some rows, and lets it make their data; none when it cannot.
    pub(super) fn start(&mut self, roster: Roster) -> Option<Session<'a>> {
        let begun = Instant::now();
        let number = self.measured.measurement.launches.len() as u64;
        let request = Request::Prepare(self.preparation(&roster, number));
        let link = match self.assignment.launcher.launch(number) {
            Ok(link) => link,
            Err(error) => {
                self.end(&error);
                return None;
            }
        };
        let mut session = Session::new(link, self.assignment.plan, roster);
        if let Err(error) = session.ask(&request, self.measured, &mut |_| {}) {
            self.blame(&session, &error);
            return None;
        }
        self.starts.push(begun.elapsed().as_secs_f64());
        Some(session)
    }

    /// Measures with a worker, and keeps what it took, also when it ends before its time.
    pub(super) fn launch(
        &mut self,
        mut session: Session<'a>,
        timetable: &mut Timetable,
        seconds: f64,
    ) {
        let visits = self.visits(&session, timetable, seconds);
        let begun = Instant::now();
        let measured = session.ask(&Request::Measure(visits), self.measured, &mut |_| {});
        match &measured {
            Ok(_) => self.correct(&session, begun.elapsed().as_secs_f64()),
            Err(error) => self.blame(&session, error),
        }
        for (position, RosterCell { cell, .. }) in self.roster.cells.iter().enumerate() {
            let counted = session.launch.cells[*cell].iter().filter(|block| !block.requeued);
            timetable.taken[position] += counted.count() as f64 / self.processes(position) as f64;
        }
        if measured.is_ok() {
            self.look_aside(&mut session, timetable);
        }
        self.measured.measurement.launches.push(std::mem::take(&mut session.launch));
        let ended = Instant::now();
        drop(session);
        if let Some(last) = self.starts.last_mut() {
            *last += ended.elapsed().as_secs_f64();
        }
    }

    /// Checks and counts that need a worker but no clock; their time is not that of measuring.
    fn look_aside(&mut self, session: &mut Session<'a>, timetable: &mut Timetable) {
        let rows = session.roster.rows();
        if rows.iter().all(|row| self.looked_at.contains(row)) {
            return;
        }
        let begun = Instant::now();
        let mut requests = vec![Request::Recheck];
        let has_device = rows.iter().any(|(cell, row)| {
            let row = self.assignment.plan.cells[*cell].row_at(*row);
            row.variant.implementation.is_device()
        });
        if self.assignment.inspect || has_device {
            requests.push(Request::Inspect { processor: self.assignment.inspect });
        }
        // A worker that ends while it looks is to blame on a row; the next launch looks at the others.
        let is_done = requests.iter().all(|request| {
            let asked = session.ask(request, self.measured, &mut |_| {});
            if let Err(error) = &asked {
                self.blame(session, error);
            }
            asked.is_ok()
        });
        if is_done {
            self.looked_at.extend(rows);
        }
        self.measured.spent.checking += begun.elapsed().as_secs_f64();
        timetable.postpone(begun.elapsed());
    }

    /// What a worker is to visit.
    fn visits(&self, session: &Session<'a>, timetable: &Timetable, seconds: f64) -> Visits {
        let next = self.next_blocks(timetable);
        let position =
            |cell: &RosterCell| self.roster.cells.iter().position(|c| c.cell == cell.cell);
        let positions: Vec<Option<usize>> = session.roster.cells.iter().map(position).collect();
        let planned: f64 =
            positions.iter().flatten().map(|p| next[*p] * self.block_seconds(*p)).sum();
        let stretch = match timetable.is_bound {
            true => AMPLE * (seconds / planned).max(1.0),
            false => 1.0,
        };
        let visit = |(place, position): (usize, &Option<usize>)| {
            let rows = session.roster.visit_rows(place, self.measured);
            let blocks = (stretch * next[(*position)?]).round() as u32;
            (!rows.is_empty()).then_some(Visit { cell: place, blocks, rows })
        };
        Visits {
            cells: positions.iter().enumerate().filter_map(visit).collect(),
            seconds,
            quiet: self.measured.measurement.quiet_level(),
            announce: !self.losses.is_empty(),
            settle: false,
            processor: None,
        }
    }

    /// Learns from a launch how long blocks really take.
    fn correct(&mut self, session: &Session<'a>, seconds: f64) {
        let predicted: f64 = (0..self.roster.cells.len())
            .map(|position| {
                let blocks = session.launch.cells[self.roster.cells[position].cell].len() as f64;
                let blocks = if blocks > 0.0 { blocks + WARM_UP_BLOCKS } else { 0.0 };
                blocks * self.block_seconds(position)
            })
            .sum();
        if predicted > 0.0 && self.assignment.isolation == Isolation::Shared {
            self.paces.push(self.correction() * seconds / predicted);
        }
    }

    /// Notes that a worker ended before its time: its fault who was being called, a loss when nobody was.
    fn blame(&mut self, session: &Session<'a>, error: &LinkError) {
        self.is_broken = true;
        match session.guilty(error) {
            Some(guilty) => self.fail(guilty, error),
            // It has said which row it was: that one has failed, and the others go on.
            None if matches!(error, LinkError::Resigned) => {}
            None if error.is_end() && self.losses.len() < MOST_LOSSES => {
                self.losses.push(error.to_string());
            }
            None => self.end(error),
        }
    }

    /// Notes why there can be no more launches.
    fn end(&mut self, error: &LinkError) {
        self.measured.interrupted = self.measured.interrupted.or(error.interrupt());
        self.ended = Some(error.to_string());
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

    /// Says why launches are missing: rows that have samples keep them, others have failed.
    pub(super) fn explain(&mut self) {
        let losses = self.losses.len();
        let (reason, remark) = match (&self.ended, self.losses.last()) {
            (Some(error), _) => (error, format!("measuring ended early: {error}")),
            (None, Some(error)) => {
                (error, format!("{losses} of its launches did not end well: {error}"))
            }
            (None, None) => return,
        };
        for (cell, row) in self.roster.rows() {
            let known = &mut self.measured.rows[cell][row];
            if self.measured.measurement.has(cell, row) {
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
            launch,
            cells: roster.requests(self.assignment.plan, self.assignment.checked),
            memory: GROUP_MEMORY,
            calibrate: None,
            device: self.assignment.device.clone(),
            timeout_seconds: self.assignment.timeout.as_secs_f64(),
        }
    }
}
