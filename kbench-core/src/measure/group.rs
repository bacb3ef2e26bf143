//! Cells that are measured together, launch by launch.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::roster::{Roster, RosterCell};
use super::schedule::PILOT_LAUNCHES;
use super::session::Session;
use super::timetable::Timetable;
use super::{Assignment, Isolation, Look, Measured, Onlooker, OpenCell, Outlook};
use crate::check::Standing;
use crate::kernel::Mode;
use crate::order;
use crate::watch::{Stage, Watch};
use crate::worker::{LinkError, Order, Preparation, Reply, Request, RowCalibration};

/// Share of the time that is left that calibration may take before what it has is measured.
const CALIBRATION_SHARE: f64 = 0.25;

/// A launch that has less than this part of the planned time is not worth starting.
const WORTHWHILE: f64 = 0.5;

/// Cells that share their launches.
pub(super) struct Group<'a> {
    pub(super) assignment: &'a Assignment<'a>,
    pub(super) measured: &'a mut Measured,
    /// The cells with their admitted rows.
    pub(super) roster: Roster,
    /// What can be said of each cell.
    pub(super) outlooks: Vec<Outlook>,
    /// The worker that calibrated; it also measures the first launch.
    pub(super) first: Option<Session<'a>>,
    /// Seconds that each launch took besides measuring.
    pub(super) starts: Vec<f64>,
    /// Wall time of the blocks of each launch against what calibration predicts.
    pub(super) paces: Vec<f64>,
    /// How workers ended before their time when nobody knows what they were calling.
    pub(super) losses: Vec<String>,
    /// Whether the worker of the current round ended before its time.
    pub(super) is_broken: bool,
    /// Cells and rows whose results were looked at after timing, and of which was counted what is counted.
    pub(super) looked_at: HashSet<(usize, usize)>,
    /// Why there can be no more launches.
    pub(super) ended: Option<String>,
    pub(super) order: Order,
}

impl<'a> Group<'a> {
    /// Starts a worker and lets it calibrate as many of the waiting cells as memory and patience allow.
    pub(super) fn open(
        assignment: &'a Assignment<'a>,
        measured: &'a mut Measured,
        waiting: &[usize],
        left: Duration,
        watch: &mut dyn Watch,
    ) -> Result<Self, LinkError> {
        let begun = Instant::now();
        let number = measured.measurement.launches.len() as u64;
        let roster = live(assignment, measured, waiting);
        let mut group = Group {
            assignment,
            measured,
            roster: Roster { cells: Vec::new() },
            outlooks: Vec::new(),
            first: None,
            starts: Vec::new(),
            paces: Vec::new(),
            losses: Vec::new(),
            is_broken: false,
            looked_at: HashSet::new(),
            ended: None,
            order: Order::new(assignment.seed.rotate_left(17), number),
        };
        let link = assignment.launcher.launch(number)?;
        let mut session = Session::new(link, assignment.plan, roster);
        let request = Request::Prepare(Preparation {
            calibrate: Some(assignment.effort.sampling(left.mul_f64(CALIBRATION_SHARE))),
            ..group.preparation(&session.roster, number)
        });
        let names = session.roster.clone();
        let calibrated = session.ask(&request, group.measured, &mut |reply| {
            if let Reply::Calling(place) = reply
                && let Some(cell) = names.cell(place.cell)
            {
                let (done, all) = (place.cell as f64, names.cells.len() as f64);
                watch.step(Stage::Calibrating, done, all, &assignment.plan.cells[cell].name());
            }
        });
        let ready = session.ready.iter().filter(|ready| **ready).count();
        group.roster.cells = session.roster.cells[..ready].to_vec();
        group.outlooks = vec![Outlook::Open; ready];
        match calibrated {
            Ok(_) if ready == 0 => return Err(LinkError::Idle),
            Ok(done) => {
                group.starts = vec![begun.elapsed().as_secs_f64() - done.calibration_seconds];
                session.roster = group.roster.clone();
                group.first = Some(session);
                group.harmonise();
            }
            Err(LinkError::Resigned) => {}
            Err(error) => match session.guilty(&error) {
                Some(guilty) => group.fail(guilty, &error),
                None => return Err(error),
            },
        }
        Ok(group)
    }

    /// Gives rows that take about as long the same number of calls: what a sample costs once, and not per call, is then
    /// the same share of each.
    fn harmonise(&mut self) {
        for RosterCell { cell, rows } in &self.roster.cells {
            let known = &mut self.measured.rows[*cell];
            let planned = &self.assignment.plan.cells[*cell];
            let mut calibrated: Vec<(usize, RowCalibration)> =
                rows.iter().filter_map(|row| Some((*row, known[*row].calibration?))).collect();
            order::sort_by(&mut calibrated, |a, b| a.1.estimate.total_cmp(&b.1.estimate));
            let mut leaders: Vec<(Mode, RowCalibration)> = Vec::new();
            for (row, calibration) in calibrated {
                let mode = planned.row_at(row).mode;
                // Later ones are slower: the last of its mode is closest.
                let leader = leaders.iter().rev().find(|(other, _)| *other == mode);
                match leader.filter(|(_, leader)| calibration.is_like(leader)) {
                    Some((_, leader)) => {
                        known[row].calibration = Some(calibration.with_calls_of(leader))
                    }
                    None => leaders.push((mode, calibration)),
                }
            }
            for row in 0..planned.rows.len().min(known.len()) {
                let former = known.get(planned.past_of(row)).and_then(|past| past.calibration);
                if let (Some(today), Some(former)) = (known[row].calibration, former)
                    && today.is_akin(&former)
                {
                    known[planned.past_of(row)].calibration = Some(former.with_calls_of(&today));
                }
            }
        }
    }

    /// Whether the worker that calibrated is still there.
    pub(super) fn is_calibrated(&self) -> bool {
        self.first.is_some()
    }

    /// Takes the samples of all cells in their share of the time.
    pub(super) fn measure(
        mut self,
        share: Duration,
        watch: &mut dyn Watch,
        onlooker: &mut Onlooker<'_>,
    ) {
        if self.assignment.effort.iterations.is_none() {
            self.fit(share);
        }
        let mut timetable = self.timetable(share);
        while timetable.done < timetable.launches && self.open_cells().next().is_some() {
            let left = timetable.end.saturating_duration_since(Instant::now()).as_secs_f64();
            let slot = left / timetable.launches_left();
            if left == 0.0 || timetable.done > 0 && slot < WORTHWHILE * timetable.slot() {
                break;
            }
            let passed = timetable.begun.elapsed().as_secs_f64();
            let ahead = timetable.launches_left() * self.launch_seconds(&timetable).min(slot);
            let text = format!("launch {} of {}", timetable.done + 1, timetable.launches);
            watch.step(Stage::Measuring, passed, passed + ahead, &text);
            self.is_broken = false;
            let (begun, aside) = (Instant::now(), self.measured.spent.aside());
            self.round(&mut timetable, slot);
            onlooker(self.measured);
            if self.ended.is_some() {
                break;
            }
            if self.is_broken {
                // It is made up for, in time of its own. That comes to an end: each time a row fails, or there is one more
                // loss.
                let aside = Duration::from_secs_f64(self.measured.spent.aside() - aside);
                let lost = begun.elapsed().saturating_sub(aside);
                self.measured.spent.lost += lost.as_secs_f64();
                timetable.postpone(lost);
                continue;
            }
            timetable.done += 1;
            if timetable.done == PILOT_LAUNCHES {
                self.plan_anew(&mut timetable);
            }
            if timetable.looks.contains(&timetable.done) {
                self.look(&timetable);
            }
        }
        let last = Look { interim: timetable.looks.len() as u32, is_last: true };
        for RosterCell { cell, .. } in &self.roster.cells {
            self.measured.looks[*cell].get_or_insert(last);
        }
        self.explain();
    }

    /// Looks at the figures; cells that are decided leave.
    fn look(&mut self, timetable: &Timetable) {
        let look = Look { interim: timetable.looks.len() as u32, is_last: false };
        let comparisons = comparisons(self.assignment, self.measured);
        let open: Vec<usize> = (0..self.outlooks.len())
            .filter(|position| self.outlooks[*position] != Outlook::Decided)
            .collect();
        let measurement = &self.measured.measurement;
        let cells = self.standing(&open);
        let outlooks = self.assignment.judge.outlooks(measurement, &cells, look, comparisons);
        for (position, outlook) in open.into_iter().zip(outlooks) {
            self.outlooks[position] = outlook;
            if outlook == Outlook::Decided {
                self.measured.looks[self.roster.cells[position].cell] = Some(look);
            }
        }
    }

    /// Some cells of the roster as whoever judges them sees them.
    pub(super) fn standing(&self, positions: &[usize]) -> Vec<OpenCell<'a>> {
        let open_cell = |position: &usize| {
            let RosterCell { cell: index, rows } = self.live_cell(*position);
            OpenCell { index, cell: &self.assignment.plan.cells[index], rows }
        };
        positions.iter().map(open_cell).collect()
    }

    /// One launch, or one of every row when rows are isolated.
    fn round(&mut self, timetable: &mut Timetable, slot: f64) {
        let open = self.open_cells().map(|position| self.live_cell(position));
        let roster = Roster { cells: open.collect() };
        match (self.assignment.isolation, self.first.take()) {
            // Nobody can be decided before the first launch, so the worker that calibrated has all that is wanted.
            (Isolation::Shared, Some(session)) => self.launch(session, timetable, slot),
            (Isolation::Shared, None) => {
                if let Some(session) = self.start(roster) {
                    self.launch(session, timetable, slot - self.start_seconds());
                }
            }
            (Isolation::Isolated, first) => {
                drop(first);
                let rows = roster.cells.iter().map(|cell| cell.rows.len()).max().unwrap_or(0);
                for row in self.order.permutation(rows) {
                    if let Some(session) = self.start(roster.only(row)) {
                        self.launch(session, timetable, slot / rows as f64 - self.start_seconds());
                    }
                }
            }
        }
    }

    /// Cells that still want samples.
    pub(super) fn open_cells(&self) -> impl Iterator<Item = usize> {
        (0..self.roster.cells.len()).filter(|position| {
            self.outlooks[*position] != Outlook::Decided
                && self.calibrations(*position).next().is_some()
        })
    }

    /// A cell with those of its rows that have not failed.
    pub(super) fn live_cell(&self, position: usize) -> RosterCell {
        let RosterCell { cell, rows } = &self.roster.cells[position];
        let known = &self.measured.rows[*cell];
        let rows = rows.iter().copied().filter(|row| known[*row].is_live()).collect();
        RosterCell { cell: *cell, rows }
    }

    /// Calibrations of a cell's live rows.
    pub(super) fn calibrations(&self, position: usize) -> impl Iterator<Item = RowCalibration> {
        let RosterCell { cell, rows } = &self.roster.cells[position];
        let known = rows.iter().map(|row| &self.measured.rows[*cell][*row]);
        known.filter(|row| row.is_live()).filter_map(|row| row.calibration)
    }
}

/// The admitted rows of some cells that have not failed.
fn live(assignment: &Assignment<'_>, measured: &Measured, cells: &[usize]) -> Roster {
    let rows = |cell: usize| {
        let known = &measured.rows[cell];
        let is_admitted = |row: &usize| {
            matches!(assignment.checked[cell][*row].standing, Standing::Admitted)
                && known[*row].is_live()
        };
        let mut now: Vec<usize> = (0..assignment.checked[cell].len()).filter(is_admitted).collect();
        // The base first: where there is no time for all rows, the others would be worth nothing without it.
        let base = assignment.plan.cells[cell].base;
        if let Some(place) = now.iter().position(|row| Some(*row) == base) {
            now[..=place].rotate_right(1);
        }
        let has_past = |row: &&usize| assignment.past.get(cell).is_some_and(|past| past[**row]);
        let past = now.iter().filter(has_past).map(|row| assignment.plan.cells[cell].past_of(*row));
        let past: Vec<usize> = past.filter(|place| known[*place].is_live()).collect();
        [now, past].concat()
    };
    Roster { cells: cells.iter().map(|&cell| RosterCell { cell, rows: rows(cell) }).collect() }
}

/// Comparisons that the report will have.
fn comparisons(assignment: &Assignment<'_>, measured: &Measured) -> usize {
    let of_cell = |(index, cell): (usize, &crate::plan::Cell)| {
        let roster = live(assignment, measured, &[index]);
        let rows = &roster.cells[0].rows;
        let open = OpenCell { index, cell, rows: rows.clone() };
        open.compared().count()
    };
    assignment.plan.cells.iter().enumerate().map(of_cell).sum()
}
