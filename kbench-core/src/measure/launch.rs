//! One launch of a group: a worker is started, told what to visit, and heard; and what is done when it ends before its
//! time.

use std::collections::HashMap;
use std::time::Instant;

use super::group::Group;
use super::roster::{Roster, RosterCell};
use super::session::Session;
use super::timetable::{Timetable, WARM_UP_BLOCKS};
use super::{Isolation, Outlook};
use crate::worker::{
    LinkError, PROTOCOL, Preparation, Request, Visit, Visits, chain_of, quiet_level,
};

/// Data of cells that are visited round-robin may take this much memory together; more cells make another group.
const GROUP_MEMORY: usize = 1 << 30;

/// Where time is short a launch ends by the clock: it is given this many times the blocks that should fit.
const AMPLE: f64 = 2.0;

/// Launches that may be lost to workers that end before their time.
const LOST_LAUNCHES: u32 = 3;

impl<'a> Group<'a> {
    /// Starts a worker for some rows, and lets it make their data; none when it cannot.
    pub(super) fn start(&mut self, roster: Roster) -> Option<Session<'a>> {
        let begun = Instant::now();
        let number = self.measured.measurement.launches.len() as u64;
        let request = Request::Prepare(self.preparation(&roster, number));
        let link = match self.assignment.launcher.launch(number) {
            Ok(link) => link,
            Err(error) => {
                self.give_up(&error);
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
        if measured.is_ok() && self.assignment.isolation == Isolation::Shared {
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
    pub(super) fn look_aside(&mut self, session: &mut Session<'a>, timetable: &mut Timetable) {
        if self.looked_aside {
            return;
        }
        let begun = Instant::now();
        let mut requests = vec![Request::Recheck];
        if self.assignment.inspect {
            requests.push(Request::Inspect);
        }
        // A worker that ends while it looks is to blame on a row; the next launch looks at the others.
        self.looked_aside = requests.iter().all(|request| {
            let asked = session.ask(request, self.measured, &mut |_| {});
            if let Err(error) = &asked {
                self.blame(session, error);
            }
            asked.is_ok()
        });
        self.measured.spent.checking += begun.elapsed().as_secs_f64();
        timetable.end += begun.elapsed();
    }

    /// What a worker is to visit: as planned, and more of the open cells when others have left.
    pub(super) fn visits(
        &self,
        session: &Session<'a>,
        timetable: &Timetable,
        seconds: f64,
    ) -> Visits {
        let seconds_of = |wanted: Outlook, blocks: &dyn Fn(usize) -> f64| -> f64 {
            (0..self.outlooks.len())
                .filter(|position| self.outlooks[*position] == wanted)
                .map(|position| blocks(position) * self.block_seconds(position))
                .sum()
        };
        let freed = seconds_of(Outlook::Decided, &|p| timetable.blocks[p] - timetable.taken[p]);
        let gain = freed.max(0.0) / timetable.launches_left() / seconds_of(Outlook::Open, &|_| 1.0);
        let positions: HashMap<usize, usize> =
            self.roster.cells.iter().enumerate().map(|(i, cell)| (cell.cell, i)).collect();
        let planned = |position: usize| {
            let extra = if self.outlooks[position] == Outlook::Open { gain } else { 0.0 };
            timetable.per_launch(position) + extra
        };
        let planned_seconds: f64 = session
            .roster
            .cells
            .iter()
            .filter_map(|cell| positions.get(&cell.cell))
            .map(|position| planned(*position) * self.block_seconds(*position))
            .sum();
        let stretch = match timetable.is_bound {
            true => AMPLE * (seconds / planned_seconds).max(1.0),
            false => 1.0,
        };
        let visit = |(place, cell): (usize, &RosterCell)| {
            let position = *positions.get(&cell.cell)?;
            let rows = session.roster.visit_rows(place, self.measured);
            let blocks = (stretch * planned(position)).round() as u32;
            (!rows.is_empty()).then_some(Visit { cell: place, blocks, rows })
        };
        let cells = session.roster.cells.iter().enumerate().filter_map(visit).collect();
        Visits { cells, seconds, quiet: self.quiet() }
    }

    /// How fast the machine is when it is quiet, as far as former launches tell.
    pub(super) fn quiet(&self) -> Option<f64> {
        let launches = &self.measured.measurement.launches;
        let chains: Vec<f64> =
            launches.iter().flat_map(|l| l.cells.iter().flatten()).map(chain_of).collect();
        quiet_level(&chains)
    }

    /// Learns from a launch how long blocks really take.
    pub(super) fn correct(&mut self, session: &Session<'a>, seconds: f64) {
        let predicted: f64 = (0..self.roster.cells.len())
            .map(|position| {
                let blocks = session.launch.cells[self.roster.cells[position].cell].len() as f64;
                let blocks = if blocks > 0.0 { blocks + WARM_UP_BLOCKS } else { 0.0 };
                blocks * self.block_seconds(position)
            })
            .sum();
        if predicted > 0.0 && self.assignment.isolation == Isolation::Shared {
            self.correction *= seconds / predicted;
        }
    }

    /// Finds out whose fault it is that a worker ended before its time.
    pub(super) fn blame(&mut self, session: &Session<'a>, error: &LinkError) {
        let place = session.calling.filter(|_| matches!(error, LinkError::Ended(_)));
        let guilty = place.and_then(|place| {
            let RosterCell { cell, rows } = session.roster.cells.get(place.cell)?;
            let rows = match place.row {
                Some(row) => vec![*rows.get(row)?],
                None => rows.clone(),
            };
            Some((*cell, rows))
        });
        match guilty {
            Some((cell, rows)) => {
                for row in rows {
                    let failure = &mut self.measured.rows[cell][row].failure;
                    failure.get_or_insert_with(|| error.to_string());
                }
            }
            None if matches!(error, LinkError::Ended(_)) && self.lost < LOST_LAUNCHES => {
                self.lost += 1;
            }
            None => self.give_up(error),
        }
    }

    /// Ends the measuring of this group: rows that have samples keep them and say why there are no more.
    pub(super) fn give_up(&mut self, error: &LinkError) {
        self.ended = true;
        for RosterCell { cell, rows } in &self.roster.cells {
            for row in rows {
                let launches = &self.measured.measurement.launches;
                let mut blocks = launches.iter().flat_map(|launch| &launch.cells[*cell]);
                let has_samples = blocks.any(|b| b.samples.iter().any(|s| s.row == *row));
                let known = &mut self.measured.rows[*cell][*row];
                if has_samples {
                    known.remark = Some(format!("measuring ended early: {error}"));
                } else {
                    known.failure.get_or_insert_with(|| error.to_string());
                }
            }
        }
    }

    pub(super) fn preparation(&self, roster: &Roster, launch: u64) -> Preparation {
        Preparation {
            protocol: PROTOCOL,
            seed: self.assignment.seed,
            launch,
            cells: roster.requests(self.assignment.plan),
            memory: GROUP_MEMORY,
            calibrate: None,
        }
    }
}
