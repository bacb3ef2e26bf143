//! Cells that are measured together, launch by launch.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::effort::FEWEST_BLOCKS;
use super::roster::{Roster, RosterCell};
use super::schedule::{
    Costs, FEWEST_LAUNCHES, PILOT_LAUNCHES, START_SHARE, interim_looks, launches,
};
use super::session::Session;
use super::{Assignment, Indexed, Isolation, Look, Measured, Outlook, Spread};
use crate::check::Standing;
use crate::watch::{Stage, Watch};
use crate::worker::{
    LinkError, Order, PROTOCOL, Preparation, Reply, Request, RowCalibration, Visit, Visits,
    chain_of, quiet_level,
};

/// Data of cells that are visited round-robin may take this much memory together; more cells make another group.
const GROUP_MEMORY: usize = 1 << 30;

/// Share of the time that is left that calibration may take before what it has is measured.
const CALIBRATION_SHARE: f64 = 0.25;

/// Seconds that the sentinels of one sample take, roughly; the first launch shows how wrong that is.
const SENTINEL_SECONDS: f64 = 0.15e-3;

/// Part of a block's time that goes into the first, untimed calls of a launch: one sample of every row instead of two.
const WARM_UP_BLOCKS: f64 = 0.5;

/// A launch that has less than this part of the planned time is not worth starting.
const WORTHWHILE: f64 = 0.5;

/// Where time is short a launch ends by the clock: it is given this many times the blocks that should fit.
const AMPLE: f64 = 2.0;

/// Launches that may be lost to workers that end before their time.
const LOST_LAUNCHES: u32 = 3;

/// Cells that share their launches.
pub(super) struct Group<'a> {
    assignment: &'a Assignment<'a>,
    measured: &'a mut Measured,
    /// The cells with their admitted rows.
    pub(super) roster: Roster,
    /// What can be said of each cell.
    outlooks: Vec<Outlook>,
    /// The worker that calibrated; it also measures the first launch.
    first: Option<Session<'a>>,
    /// Seconds that a launch takes besides measuring.
    start: f64,
    /// Wall time of blocks against what calibration predicts.
    correction: f64,
    /// Launches whose worker ended before its time.
    lost: u32,
    /// Whether results were looked at after timing, and what is counted was counted.
    looked_aside: bool,
    /// Why there are no more launches.
    ended: bool,
    order: Order,
}

/// What is planned for a group.
struct Schedule {
    begun: Instant,
    /// When it must end.
    end: Instant,
    /// Blocks that every cell should get in all.
    blocks: Vec<f64>,
    /// Whether the time ends before every cell has the blocks that it should have; then launches are as long as they
    /// may be.
    is_bound: bool,
    /// Blocks that every cell has got.
    taken: Vec<f64>,
    /// How many launches there are to be.
    launches: u32,
    /// How many there may be: one for every block.
    most: u32,
    /// How many there have been.
    done: u32,
    /// After how many of them the figures are looked at.
    looks: Vec<u32>,
}

impl Schedule {
    /// Seconds of a launch when all are alike.
    fn slot(&self) -> f64 {
        (self.end - self.begun).as_secs_f64() / f64::from(self.launches)
    }

    fn launches_left(&self) -> f64 {
        f64::from(self.launches.saturating_sub(self.done).max(1))
    }

    /// Blocks of a cell in the next launch.
    fn per_launch(&self, position: usize) -> f64 {
        ((self.blocks[position] - self.taken[position]) / self.launches_left()).max(1.0)
    }
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
            start: 0.0,
            correction: 1.0,
            lost: 0,
            looked_aside: false,
            ended: false,
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
                group.start = begun.elapsed().as_secs_f64() - done.calibration_seconds;
                session.roster = group.roster.clone();
                group.first = Some(session);
                group.harmonise();
            }
            Err(error) if session.calling.is_none() => return Err(error),
            Err(error) => group.blame(&session, &error),
        }
        Ok(group)
    }

    /// Gives rows that take about as long the same number of calls: what a sample costs once, and not per call, is then
    /// the same share of each.
    fn harmonise(&mut self) {
        for RosterCell { cell, rows } in &self.roster.cells {
            let known = &mut self.measured.rows[*cell];
            let mut calibrated: Vec<(usize, RowCalibration)> =
                rows.iter().filter_map(|row| Some((*row, known[*row].calibration?))).collect();
            calibrated.sort_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
            let mut leader: Option<RowCalibration> = None;
            for (row, calibration) in calibrated {
                match leader.filter(|leader| calibration.is_like(leader)) {
                    Some(RowCalibration { calls, wash_out, .. }) => {
                        known[row].calibration =
                            Some(RowCalibration { calls, wash_out, ..calibration });
                    }
                    None => leader = Some(calibration),
                }
            }
        }
    }

    /// Whether the worker that calibrated is still there.
    pub(super) fn is_calibrated(&self) -> bool {
        self.first.is_some()
    }

    /// Takes the samples of all cells in their share of the time.
    pub(super) fn measure(mut self, share: Duration, watch: &mut dyn Watch) {
        if self.assignment.effort.iterations.is_none() {
            self.fit(share);
        }
        let mut schedule = self.schedule(share);
        while schedule.done < schedule.launches && !self.ended && self.open_cells().next().is_some()
        {
            let left = schedule.end.saturating_duration_since(Instant::now()).as_secs_f64();
            let slot = left / schedule.launches_left();
            if schedule.done > 0 && slot < WORTHWHILE * schedule.slot() {
                break;
            }
            let passed = schedule.begun.elapsed().as_secs_f64();
            let ahead = schedule.launches_left() * self.launch_seconds(&schedule).min(slot);
            let text = format!("launch {} of {}", schedule.done + 1, schedule.launches);
            watch.step(Stage::Measuring, passed, passed + ahead, &text);
            self.round(&mut schedule, slot);
            schedule.done += 1;
            if schedule.done == PILOT_LAUNCHES && self.assignment.effort.launches.is_none() {
                self.plan_anew(&mut schedule);
            }
            if schedule.looks.contains(&schedule.done) {
                self.look(&schedule);
            }
        }
        let last = Look { interim: schedule.looks.len() as u32, is_last: true };
        for RosterCell { cell, .. } in &self.roster.cells {
            self.measured.looks[*cell].get_or_insert(last);
        }
    }

    /// Shortens samples when the fewest blocks or launches would not fit in the time.
    fn fit(&mut self, share: Duration) {
        let pass: f64 = self.open_cells().map(|position| self.block_seconds(position)).sum();
        let needed = if self.assignment.launcher.is_fresh() {
            f64::from(self.assignment.effort.launches.unwrap_or(FEWEST_LAUNCHES))
                * (self.start + (1.0 + WARM_UP_BLOCKS) * pass)
        } else {
            f64::from(FEWEST_BLOCKS) * pass
        };
        let factor = share.as_secs_f64() / needed;
        if factor >= 1.0 {
            return;
        }
        for RosterCell { cell, rows } in &self.roster.cells {
            for row in rows {
                let calibration = &mut self.measured.rows[*cell][*row].calibration;
                *calibration = calibration.map(|calibration| calibration.shortened(factor));
            }
        }
    }

    fn schedule(&self, share: Duration) -> Schedule {
        let effort = self.assignment.effort;
        let share = share.as_secs_f64();
        let positions = 0..self.roster.cells.len();
        let blocks: Vec<f64> = positions
            .clone()
            .map(|position| {
                let samples = self.calibrations(position).map(|row| row.sample_time());
                f64::from(effort.blocks(samples.max().unwrap_or_default()))
            })
            .collect();
        let wanted: f64 = positions.map(|p| blocks[p] * self.block_seconds(p)).sum();
        let costs = self.costs();
        let most = blocks.iter().copied().fold(1.0, f64::max) as u32;
        let count = match effort.launches {
            _ if !self.assignment.launcher.is_fresh() => 1,
            Some(count) => count.min(costs.fit(share)).max(1),
            None => launches(share.min((1.0 + START_SHARE) * wanted), costs, None).min(most),
        };
        let available = share - f64::from(count) * (costs.start + costs.warm_up);
        let scale = (available / wanted).clamp(0.0, 1.0);
        let begun = Instant::now();
        Schedule {
            begun,
            end: begun + Duration::from_secs_f64(share),
            taken: vec![0.0; blocks.len()],
            is_bound: scale < 1.0,
            blocks: blocks.into_iter().map(|blocks| blocks * scale).collect(),
            launches: count,
            most,
            done: 0,
            looks: interim_looks(count),
        }
    }

    /// Decides once more how many launches there are, now that variances are known.
    fn plan_anew(&self, schedule: &mut Schedule) {
        let open: Vec<usize> = self.open_cells().collect();
        let measurement = &self.measured.measurement;
        let found = self.assignment.judge.spreads(measurement, &self.indexed(&open));
        let mut spreads: Vec<Spread> = found.into_iter().flatten().collect();
        spreads.sort_by(|a, b| (a.launches / a.blocks).total_cmp(&(b.launches / b.blocks)));
        let passed = schedule.begun.elapsed().as_secs_f64();
        let planned = passed + schedule.launches_left() * self.launch_seconds(schedule);
        let seconds = planned.min((schedule.end - schedule.begun).as_secs_f64());
        let middle = spreads.get(spreads.len() / 2).copied();
        let best = launches(seconds, self.costs(), middle).min(schedule.most);
        schedule.launches = best.max(schedule.done + 1);
        schedule.looks = interim_looks(schedule.launches);
    }

    /// Looks at the figures; cells that are decided leave.
    fn look(&mut self, schedule: &Schedule) {
        let look = Look { interim: schedule.looks.len() as u32, is_last: false };
        let comparisons = comparisons(self.assignment, self.measured);
        let open: Vec<usize> = (0..self.outlooks.len())
            .filter(|position| self.outlooks[*position] != Outlook::Decided)
            .collect();
        let measurement = &self.measured.measurement;
        let cells = self.indexed(&open);
        let outlooks = self.assignment.judge.outlooks(measurement, &cells, look, comparisons);
        for (position, outlook) in open.into_iter().zip(outlooks) {
            self.outlooks[position] = outlook;
            if outlook == Outlook::Decided {
                self.measured.looks[self.roster.cells[position].cell] = Some(look);
            }
        }
    }

    /// Some cells of the roster as the plan has them.
    fn indexed(&self, positions: &[usize]) -> Vec<Indexed<'a>> {
        let cells = &self.assignment.plan.cells;
        let index = |position: &usize| self.roster.cells[*position].cell;
        positions.iter().map(|position| (index(position), &cells[index(position)])).collect()
    }

    /// One launch, or one of every row when rows are isolated.
    fn round(&mut self, schedule: &mut Schedule, slot: f64) {
        let open = self.open_cells().map(|position| self.live_cell(position));
        let roster = Roster { cells: open.collect() };
        match (self.assignment.isolation, self.first.take()) {
            // Nobody can be decided before the first launch, so the worker that calibrated has all that is wanted.
            (Isolation::Shared, Some(session)) => self.launch(session, schedule, slot),
            (Isolation::Shared, None) => {
                if let Some(session) = self.start(roster) {
                    self.launch(session, schedule, slot - self.start);
                }
            }
            (Isolation::Isolated, first) => {
                if let Some(mut session) = first {
                    self.look_aside(&mut session, schedule);
                }
                let rows = roster.cells.iter().map(|cell| cell.rows.len()).max().unwrap_or(0);
                for row in self.order.permutation(rows) {
                    if let Some(session) = self.start(roster.only(row)) {
                        self.launch(session, schedule, slot / rows as f64 - self.start);
                    }
                }
            }
        }
    }

    /// Starts a worker for some rows, and lets it make their data; none when it cannot.
    fn start(&mut self, roster: Roster) -> Option<Session<'a>> {
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
        self.start = begun.elapsed().as_secs_f64();
        Some(session)
    }

    /// Measures with a worker, and keeps what it took, also when it ends before its time.
    fn launch(&mut self, mut session: Session<'a>, schedule: &mut Schedule, seconds: f64) {
        let visits = self.visits(&session, schedule, seconds);
        let begun = Instant::now();
        let measured = session.ask(&Request::Measure(visits), self.measured, &mut |_| {});
        match &measured {
            Ok(_) => self.correct(&session, begun.elapsed().as_secs_f64()),
            Err(error) => self.blame(&session, error),
        }
        for (position, RosterCell { cell, .. }) in self.roster.cells.iter().enumerate() {
            let counted = session.launch.cells[*cell].iter().filter(|block| !block.requeued);
            schedule.taken[position] += counted.count() as f64 / self.processes(position) as f64;
        }
        if measured.is_ok() && self.assignment.isolation == Isolation::Shared {
            self.look_aside(&mut session, schedule);
        }
        self.measured.measurement.launches.push(std::mem::take(&mut session.launch));
        let ended = Instant::now();
        drop(session);
        self.start += ended.elapsed().as_secs_f64();
    }

    /// Checks and counts that need a worker but no clock; their time is not that of measuring.
    fn look_aside(&mut self, session: &mut Session<'a>, schedule: &mut Schedule) {
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
        schedule.end += begun.elapsed();
    }

    /// What a worker is to visit: as planned, and more of the open cells when others have left.
    fn visits(&self, session: &Session<'a>, schedule: &Schedule, seconds: f64) -> Visits {
        let seconds_of = |wanted: Outlook, blocks: &dyn Fn(usize) -> f64| -> f64 {
            (0..self.outlooks.len())
                .filter(|position| self.outlooks[*position] == wanted)
                .map(|position| blocks(position) * self.block_seconds(position))
                .sum()
        };
        let freed = seconds_of(Outlook::Decided, &|p| schedule.blocks[p] - schedule.taken[p]);
        let gain = freed.max(0.0) / schedule.launches_left() / seconds_of(Outlook::Open, &|_| 1.0);
        let positions: HashMap<usize, usize> =
            self.roster.cells.iter().enumerate().map(|(i, cell)| (cell.cell, i)).collect();
        let planned = |position: usize| {
            let extra = if self.outlooks[position] == Outlook::Open { gain } else { 0.0 };
            schedule.per_launch(position) + extra
        };
        let planned_seconds: f64 = session
            .roster
            .cells
            .iter()
            .filter_map(|cell| positions.get(&cell.cell))
            .map(|position| planned(*position) * self.block_seconds(*position))
            .sum();
        let stretch = match schedule.is_bound {
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
    fn quiet(&self) -> Option<f64> {
        let launches = &self.measured.measurement.launches;
        let chains: Vec<f64> =
            launches.iter().flat_map(|l| l.cells.iter().flatten()).map(chain_of).collect();
        quiet_level(&chains)
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
            self.correction *= seconds / predicted;
        }
    }

    /// Finds out whose fault it is that a worker ended before its time.
    fn blame(&mut self, session: &Session<'a>, error: &LinkError) {
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
    fn give_up(&mut self, error: &LinkError) {
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

    fn preparation(&self, roster: &Roster, launch: u64) -> Preparation {
        Preparation {
            protocol: PROTOCOL,
            seed: self.assignment.seed,
            launch,
            cells: roster.requests(self.assignment.plan),
            memory: GROUP_MEMORY,
            calibrate: None,
        }
    }

    /// Cells that still want samples.
    fn open_cells(&self) -> impl Iterator<Item = usize> {
        (0..self.roster.cells.len()).filter(|position| {
            self.outlooks[*position] != Outlook::Decided
                && self.calibrations(*position).next().is_some()
        })
    }

    /// A cell with those of its rows that have not failed.
    fn live_cell(&self, position: usize) -> RosterCell {
        let RosterCell { cell, rows } = &self.roster.cells[position];
        let known = &self.measured.rows[*cell];
        let rows = rows.iter().copied().filter(|row| known[*row].is_live()).collect();
        RosterCell { cell: *cell, rows }
    }

    /// Calibrations of a cell's live rows.
    fn calibrations(&self, position: usize) -> impl Iterator<Item = RowCalibration> {
        let RosterCell { cell, rows } = &self.roster.cells[position];
        let known = rows.iter().map(|row| &self.measured.rows[*cell][*row]);
        known.filter(|row| row.is_live()).filter_map(|row| row.calibration)
    }

    /// Seconds of one block of a cell.
    fn block_seconds(&self, position: usize) -> f64 {
        let rows = self.calibrations(position);
        let samples: f64 =
            rows.map(|row| 2.0 * (row.sample_cost().as_secs_f64() + SENTINEL_SECONDS)).sum();
        samples * self.correction
    }

    /// Seconds of the next launch, as planned.
    fn launch_seconds(&self, schedule: &Schedule) -> f64 {
        let blocks = |position| schedule.per_launch(position) + WARM_UP_BLOCKS;
        let cells = self.open_cells();
        self.start + cells.map(|p| blocks(p) * self.block_seconds(p)).sum::<f64>()
    }

    fn costs(&self) -> Costs {
        let pass: f64 = self.open_cells().map(|position| self.block_seconds(position)).sum();
        let positions = 0..self.roster.cells.len();
        let processes = positions.map(|position| self.processes(position)).max().unwrap_or(1);
        Costs { start: self.start * processes as f64, warm_up: WARM_UP_BLOCKS * pass, pass }
    }

    /// Processes of one launch that visit a cell: isolated rows have one each.
    fn processes(&self, position: usize) -> usize {
        match self.assignment.isolation {
            Isolation::Shared => 1,
            Isolation::Isolated => self.live_cell(position).rows.len().max(1),
        }
    }
}

/// The admitted rows of some cells that have not failed.
fn live(assignment: &Assignment<'_>, measured: &Measured, cells: &[usize]) -> Roster {
    let rows = |cell: usize| {
        let admitted = assignment.checked[cell].iter().zip(&measured.rows[cell]).enumerate();
        admitted
            .filter(|(_, (row, known))| {
                matches!(row.standing, Standing::Admitted) && known.is_live()
            })
            .map(|(index, _)| index)
            .collect()
    };
    Roster { cells: cells.iter().map(|&cell| RosterCell { cell, rows: rows(cell) }).collect() }
}

/// Comparisons that the report will have.
fn comparisons(assignment: &Assignment<'_>, measured: &Measured) -> usize {
    let of_cell = |(index, cell): (usize, &crate::plan::Cell)| {
        let roster = live(assignment, measured, &[index]);
        let rows = &roster.cells[0].rows;
        let compared = cell.base.is_some_and(|base| rows.contains(&base));
        if compared { rows.len().saturating_sub(1) } else { 0 }
    };
    assignment.plan.cells.iter().enumerate().map(of_cell).sum()
}
