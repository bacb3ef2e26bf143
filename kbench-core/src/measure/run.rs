//! A run of the measuring stage: all cells are calibrated, planned together, and measured in rounds of launches.
//!
//! A round has at most one launch of every cell. Cells whose data fits in memory together share a worker. After every round
//! what is left of the time is shared out anew, with what calls and starts have really taken; a few times the figures are
//! looked at, and the time of cells that are decided goes to those that are not.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::cell::{CellRun, middle};
use super::roster::{Roster, RosterCell};
use super::schedule::{Costs, Demand, FEWEST_LAUNCHES, PILOT_LAUNCHES, Share, share_out, shortage};
use super::session::Session;
use super::stage::{Caution, wants_samples};
use super::{Assignment, Family, Isolation, Look, Measured, Onlooker, OpenCell, Outlook};
use crate::check::{CheckedRow, Standing};
use crate::environment::free_memory;
use crate::kernel::Mode;
use crate::order;
use crate::watch::{Planned, Stage, Watch};
use crate::worker::{LinkError, Order, Preparation, Reply, Request, RowCalibration};

/// Share of the time that is left that one worker may calibrate for; then what it has is measured once, and the next worker
/// goes on.
const CALIBRATION_SHARE: f64 = 0.25;

/// Limit of the data of the cells of one worker, in bytes. A virtual machine takes back pages that stay free for seconds and
/// returns them slowly; with little data, the next worker gets the pages that the last one freed. With 1 GiB, making the data
/// of the library's suite took twice as long.
const WORKER_MEMORY: usize = 256 << 20;

/// The same limit for runs with rows on a device or in another program, whose workers start slowly: 1 GiB, or this share of
/// the free memory if that is more.
const DEVICE_WORKER_MEMORY: usize = 1 << 30;
const DEVICE_WORKER_SHARE: u64 = 24;

/// Parts of the run after which the figures are looked at.
const LOOKS: [f64; 4] = [0.1, 0.2, 0.4, 0.7];

/// Launches whose paces tell how fast the run is.
const RECENT: usize = 25;

/// What is borrowed of a reserve is longer than the launches it is for, by a share of them and by some seconds.
const PLANNING_SHARE: f64 = 0.01;
const PLANNING_SECONDS: f64 = 0.005;

/// A part of a launch that is missing because of rounding.
const ROUNDING: f64 = 1e-9;

/// The measuring stage while it goes on.
pub(super) struct Run<'a> {
    pub(super) assignment: &'a Assignment<'a>,
    pub(super) measured: Measured,
    /// The cells that are calibrated.
    pub(super) cells: Vec<CellRun>,
    /// Wall time of the blocks of launches against what times of calls predict.
    pub(super) paces: Vec<f64>,
    /// Cells and rows whose results were checked again after timing, and whose events were counted.
    pub(super) rechecked: HashSet<(usize, usize)>,
    /// Whether the worker of the current launch ended before its time.
    pub(super) is_broken: bool,
    order: Order,
    /// Bytes that the data of the cells of one worker may take together.
    pub(super) memory: usize,
    begun: Instant,
    end: Instant,
    /// Seconds by which the end may move for rows that would have fewer than five launches.
    reserve: f64,
    /// Seconds by which the end has moved.
    borrowed: f64,
    rounds: u32,
    looks: usize,
}

impl<'a> Run<'a> {
    pub(super) fn new(assignment: &'a Assignment<'a>, measured: Measured) -> Self {
        let begun = Instant::now();
        Run {
            assignment,
            measured,
            cells: Vec::new(),
            paces: Vec::new(),
            rechecked: HashSet::new(),
            is_broken: false,
            order: Order::new(assignment.order_seed.rotate_left(17), 0),
            memory: worker_memory(assignment),
            begun,
            end: begun + assignment.time.min(A_YEAR),
            reserve: assignment.reserve.min(A_YEAR).as_secs_f64(),
            borrowed: 0.0,
            rounds: 0,
            looks: 0,
        }
    }

    /// From where a former run over the same plan ended. Nothing leaves early any more: the looks have been spent.
    pub(super) fn again(assignment: &'a Assignment<'a>, mut measured: Measured) -> Self {
        let cells = std::mem::take(&mut measured.cells);
        let rows = |cell: &CellRun| {
            let RosterCell { cell, rows } = cell.roster.clone();
            rows.into_iter().map(move |row| (cell, row))
        };
        Run {
            rechecked: cells.iter().flat_map(rows).collect(),
            cells,
            looks: LOOKS.len(),
            ..Run::new(assignment, measured)
        }
    }

    /// Seconds until the end.
    pub(super) fn left(&self) -> f64 {
        let end = self.end + Duration::from_secs_f64(self.borrowed);
        end.saturating_duration_since(Instant::now()).as_secs_f64()
    }

    /// Borrows of the reserve what the fewest launches of some cells need. What they turn out not to need goes back: it is for
    /// the search.
    fn borrow_for(&mut self, cells: &[usize]) {
        let (_, demands) = self.demands(cells);
        let now = Instant::now();
        let own = self.end.saturating_duration_since(now).as_secs_f64();
        let missing = shortage(&demands, own);
        let late = now.saturating_duration_since(self.end).as_secs_f64();
        // A little more, for the time until it is planned.
        let wanted = late + missing * (1.0 + PLANNING_SHARE) + PLANNING_SECONDS;
        self.borrowed = if missing > 0.0 { wanted.min(self.reserve) } else { 0.0 };
    }

    /// Notes that a worker was lost. Its time comes on top of the budget: a row that hangs for a minute must not take it from
    /// the others.
    fn lose(&mut self, since: Instant) {
        let lost = since.elapsed();
        self.measured.spent.lost += lost.as_secs_f64();
        self.end += lost;
        self.begun += lost;
    }

    /// Calibrates all cells, as many at a time as fit in the memory of a worker; that worker then measures their first launch.
    pub(super) fn calibrate(&mut self, watch: &mut dyn Watch, onlooker: &mut Onlooker<'_>) {
        let checked = self.assignment.checked;
        let mut waiting: Vec<usize> = (0..self.assignment.plan.cells.len()).collect();
        let mut caution = Caution::default();
        loop {
            waiting.retain(|cell| wants_samples(&checked[*cell], &self.measured.rows[*cell]));
            if !waiting.is_empty() && self.left() == 0.0 {
                self.borrowed = self.reserve;
            }
            let left = self.left();
            if waiting.is_empty() || left == 0.0 || self.measured.interrupted.is_some() {
                return;
            }
            let (opened, part) = caution.part(&waiting);
            let begun = Instant::now();
            match self.open(opened, part * left, watch) {
                Ok(Some(session)) => {
                    let cells = session.roster.cells.len();
                    let share = self.left() * cells as f64 / waiting.len() as f64;
                    let cells: Vec<usize> = (self.cells.len() - cells..self.cells.len()).collect();
                    // Of a reserve the first launch takes no more than the fewest launches need.
                    let share = match self.borrowed > 0.0 {
                        true => share.min(shortage(&self.demands(&cells).1, 0.0)),
                        false => share,
                    };
                    self.first_launch(session, &cells, share);
                    onlooker(&self.measured);
                    let has = |cell: &usize| self.cells.iter().any(|of| of.roster.cell == *cell);
                    waiting.retain(|cell| !has(cell));
                }
                // The row that ended the worker has failed; all others try again, together.
                Ok(None) => self.lose(begun),
                Err(LinkError::Interrupted(interrupt)) => {
                    self.measured.interrupted = Some(interrupt);
                }
                Err(error) if error.is_end() && caution.is_worth_another_try(opened.len()) => {
                    self.lose(begun);
                }
                Err(error) => {
                    for cell in opened {
                        for row in &mut self.measured.rows[*cell] {
                            row.failure.get_or_insert_with(|| error.to_string());
                        }
                    }
                }
            }
        }
    }

    /// Starts a worker and lets it calibrate as many of the waiting cells as memory and patience allow; none when it ended and a
    /// row is to blame.
    fn open(
        &mut self,
        waiting: &[usize],
        left: f64,
        watch: &mut dyn Watch,
    ) -> Result<Option<Session<'a>>, LinkError> {
        let begun = Instant::now();
        let Assignment { plan, effort, launcher, .. } = self.assignment;
        let number = self.measured.measurement.launches.len() as u64;
        let roster = live(self.assignment, &self.measured, waiting);
        let mut session = Session::new(launcher.launch(number)?, plan, roster);
        let patience = Duration::from_secs_f64(left * CALIBRATION_SHARE);
        let request = Request::Prepare(Preparation {
            calibrate: Some(effort.sampling(patience)),
            ..self.preparation(&session.roster, number)
        });
        let (names, known) = (session.roster.clone(), self.cells.len() as f64);
        let calibrated = session.ask(&request, &mut self.measured, &mut |reply| {
            if let Reply::Calling(place) = reply
                && let Some(cell) = names.cell(place.cell)
            {
                let (done, all) = (known + place.cell as f64, known + names.cells.len() as f64);
                watch.step(Stage::Calibrating, done, all, &plan.cells[cell].name());
            }
        });
        let ready: Vec<_> = session.ready.iter().map_while(|ready| *ready).collect();
        match calibrated {
            Ok(_) if ready.is_empty() => Err(LinkError::Idle),
            Ok(done) => {
                session.roster.cells.truncate(ready.len());
                let all = begun.elapsed().as_secs_f64() - done.calibration_seconds;
                let common = session.common_start(all);
                for (roster, ready) in session.roster.cells.iter().zip(ready) {
                    self.harmonise(roster);
                    let cell = CellRun::new(roster.clone(), ready.bytes, ready.seconds + common);
                    self.cells.push(cell);
                }
                Ok(Some(session))
            }
            Err(LinkError::Resigned) => Ok(None),
            Err(error) => match session.guilty(&error) {
                Some(guilty) => {
                    self.fail(guilty, &error);
                    Ok(None)
                }
                None => Err(error),
            },
        }
    }

    /// Gives rows that take about as long the same number of calls: what a sample costs once, and not per call, is then
    /// the same share of each.
    fn harmonise(&mut self, RosterCell { cell, rows }: &RosterCell) {
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
                    known[row].calibration = Some(calibration.with_calls_of(leader));
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

    /// The first launch of cells that a worker has just calibrated, as long as it would be if all others took as long.
    fn first_launch(&mut self, session: Session<'a>, cells: &[usize], seconds: f64) {
        self.plan(cells, seconds);
        let planned: Vec<usize> =
            cells.iter().copied().filter(|at| self.cells[*at].share.launches > 0).collect();
        if planned.is_empty() {
            return;
        }
        let begun = Instant::now();
        self.is_broken = false;
        match self.assignment.isolation {
            Isolation::Shared => self.launch(session, &planned),
            Isolation::Isolated => {
                drop(session);
                self.isolated(&planned);
            }
        }
        if self.is_broken {
            self.make_up_for(begun);
            self.batch(&planned);
        } else {
            planned.iter().for_each(|at| self.cells[*at].done += 1);
        }
    }

    /// Measures rounds of launches until the time is over or nothing is open.
    pub(super) fn measure(&mut self, watch: &mut dyn Watch, onlooker: &mut Onlooker<'_>) {
        let all: Vec<usize> = (0..self.cells.len()).collect();
        self.borrow_for(&all);
        self.plan(&all, self.left());
        self.announce(watch);
        loop {
            self.borrow_for(&all);
            self.plan(&all, self.left());
            self.look();
            let (due, rounds) = self.due();
            if due.is_empty() {
                return;
            }
            self.rounds += 1;
            let (passed, ahead) = (self.begun.elapsed().as_secs_f64(), self.ahead());
            let text = format!("launch {} of {}", self.rounds + 1, self.rounds + rounds);
            for (index, batch) in self.batches(&due).iter().enumerate() {
                if self.measured.interrupted.is_some() {
                    return;
                }
                if index > 0 && self.left() == 0.0 {
                    // The rest of the round has its turn if more can be borrowed for it.
                    break;
                }
                let part = ahead / f64::from(rounds) * index as f64 / due.len() as f64;
                watch.step(Stage::Measuring, passed + part, passed + ahead, &text);
                self.batch(batch);
                onlooker(&self.measured);
            }
        }
    }

    /// Says what is planned.
    fn announce(&self, watch: &mut dyn Watch) {
        let open = || (0..self.cells.len()).filter(|at| self.is_open(*at));
        let launches = |at: usize| self.cells[at].done + self.cells[at].share.launches;
        let bounds = open().map(launches).min().zip(open().map(launches).max());
        if bounds.is_some() {
            let rows = open().map(|at| self.live_cell(at).rows.len()).sum();
            watch.planned(Planned { rows, launches: bounds, seconds: self.ahead() });
        }
    }

    /// Shares some seconds out among some cells.
    fn plan(&mut self, cells: &[usize], seconds: f64) {
        let (open, demands) = self.demands(cells);
        let shares = share_out(&demands, seconds);
        cells.iter().for_each(|at| self.cells[*at].share = Share::default());
        for (at, share) in open.into_iter().zip(shares) {
            self.cells[at].share = share;
        }
    }

    /// Those of some cells that are open, with what is to be planned for them.
    fn demands(&self, cells: &[usize]) -> (Vec<usize>, Vec<Demand>) {
        let open = cells.iter().copied();
        let open: Vec<usize> = open.filter(|at| self.is_open(*at)).collect();
        let demand = |at: &usize| {
            let cell = &self.cells[*at];
            let known = &self.measured.rows[cell.roster.cell];
            cell.demand(known, self.costs(*at), self.assignment)
        };
        let demands = open.iter().map(demand).collect();
        (open, demands)
    }

    fn is_open(&self, at: usize) -> bool {
        let cell = &self.cells[at];
        cell.is_open(&self.measured.rows[cell.roster.cell])
    }

    /// What a launch costs a cell.
    pub(super) fn costs(&self, at: usize) -> Costs {
        let cell = &self.cells[at];
        let known = &self.measured.rows[cell.roster.cell];
        cell.costs(known, self.correction(), self.processes(at))
    }

    /// How much longer blocks take than the times of their calls predict, usually.
    pub(super) fn correction(&self) -> f64 {
        middle(&self.paces[self.paces.len().saturating_sub(RECENT)..]).unwrap_or(1.0)
    }

    /// Processes of one launch that visit a cell: isolated rows have one each.
    pub(super) fn processes(&self, at: usize) -> usize {
        match self.assignment.isolation {
            Isolation::Shared => 1,
            Isolation::Isolated => self.live_cell(at).rows.len().max(1),
        }
    }

    /// Seconds that all planned launches will take.
    fn ahead(&self) -> f64 {
        let seconds = |at: usize| {
            let Share { launches, blocks, .. } = self.cells[at].share;
            let Costs { start, warm_up, block } = self.costs(at);
            f64::from(launches) * (start + warm_up) + blocks * block
        };
        (0..self.cells.len()).map(seconds).sum()
    }

    /// Cells that are part of the next round, and how many rounds there are to be. A cell with fewer launches than others is
    /// part of some rounds, evenly.
    fn due(&mut self) -> (Vec<usize>, u32) {
        let rounds = self.cells.iter().map(|cell| cell.share.launches).max().unwrap_or(0);
        let mut due = Vec::new();
        for (at, cell) in self.cells.iter_mut().enumerate().filter(|(_, c)| c.share.launches > 0) {
            cell.credit += f64::from(cell.share.launches) / f64::from(rounds);
            if cell.credit >= 1.0 - ROUNDING {
                cell.credit -= 1.0;
                due.push(at);
            }
        }
        (due, rounds)
    }

    /// Cells that share a worker: neighbours in the plan, as many as fit in its memory.
    fn batches(&self, due: &[usize]) -> Vec<Vec<usize>> {
        let mut batches: Vec<Vec<usize>> = Vec::new();
        let mut taken = 0;
        for at in due {
            let bytes = self.cells[*at].bytes;
            match batches.last_mut().filter(|_| taken + bytes <= self.memory) {
                Some(batch) => batch.push(*at),
                None => {
                    batches.push(vec![*at]);
                    taken = 0;
                }
            }
            taken += bytes;
        }
        batches
    }

    /// One launch of some cells. One that ends before its time is made up for, in time of its own; that comes to an end,
    /// because each time a row fails, or there is one more loss.
    fn batch(&mut self, cells: &[usize]) {
        loop {
            let open: Vec<usize> = cells.iter().copied().filter(|at| self.is_open(*at)).collect();
            if open.is_empty() || self.measured.interrupted.is_some() {
                return;
            }
            let begun = Instant::now();
            self.is_broken = false;
            match self.assignment.isolation {
                Isolation::Shared => {
                    let roster = self.roster(&open);
                    if let Some(session) = self.start(roster, &open) {
                        self.launch(session, &open);
                    }
                }
                Isolation::Isolated => self.isolated(&open),
            }
            if !self.is_broken {
                open.iter().for_each(|at| self.cells[*at].done += 1);
                self.learn_spreads(&open);
                return;
            }
            self.make_up_for(begun);
        }
    }

    /// Notes the time of a launch that ended before its time, unless the user wanted that.
    fn make_up_for(&mut self, begun: Instant) {
        if self.measured.interrupted.is_none() {
            self.lose(begun);
        }
    }

    /// One launch of every row of some cells.
    fn isolated(&mut self, cells: &[usize]) {
        let roster = self.roster(cells);
        let rows = roster.cells.iter().map(|cell| cell.rows.len()).max().unwrap_or(0);
        for row in self.order.permutation(rows) {
            if let Some(session) = self.start(roster.only(row), cells) {
                self.launch(session, cells);
            }
            if self.is_broken {
                return;
            }
        }
    }

    /// Finds out where the variance of cells comes from that have had enough launches for it.
    fn learn_spreads(&mut self, cells: &[usize]) {
        let is_due = |at: &usize| self.cells[*at].done == PILOT_LAUNCHES;
        let due: Vec<usize> = cells.iter().copied().filter(is_due).collect();
        let judge = self.assignment.judge;
        let spreads = judge.spreads(&self.measured.measurement, &self.standing(&due));
        for (at, spread) in due.into_iter().zip(spreads) {
            self.cells[at].spread = spread;
        }
    }

    /// Looks at the figures if that is due; cells that are decided leave.
    fn look(&mut self) {
        let passed = self.begun.elapsed().as_secs_f64();
        let progress = passed / (passed + self.ahead());
        let due = LOOKS.iter().filter(|part| **part <= progress).count();
        if due <= self.looks || progress >= 1.0 {
            return;
        }
        self.looks = due;
        let is_ready = |at: &usize| self.is_open(*at) && self.cells[*at].done >= FEWEST_LAUNCHES;
        let ready: Vec<usize> = (0..self.cells.len()).filter(is_ready).collect();
        let (judge, cells) = (self.assignment.judge, self.standing(&ready));
        let family = family(self.assignment, &self.measured);
        let outlooks = judge.outlooks(&self.measured.measurement, &cells, INTERIM, family);
        for ((at, open), outlooks) in ready.into_iter().zip(&cells).zip(outlooks) {
            self.cells[at].was_looked_at = true;
            self.dismiss(at, open, &outlooks);
        }
        let all: Vec<usize> = (0..self.cells.len()).collect();
        self.plan(&all, self.left());
    }

    /// Lets the rows of a cell leave that are decided, unless others are compared with them.
    fn dismiss(&mut self, at: usize, open: &OpenCell<'_>, outlooks: &[Outlook]) {
        let of =
            |row: usize| outlooks[open.rows.iter().position(|other| *other == row).unwrap_or(0)];
        let mut needed: Vec<usize> = Vec::new();
        for row in open.rows.iter().copied().filter(|row| of(*row) != Outlook::Decided) {
            needed.push(row);
            needed.extend(open.compared().filter(|(_, of)| *of == row).map(|(with, _)| with));
        }
        let cell = &mut self.cells[at];
        cell.outlook = outlooks.iter().copied().max().unwrap_or(Outlook::Decided);
        for row in open.rows.iter().filter(|row| !needed.contains(row)) {
            cell.left.push(*row);
            self.measured.looks[open.index][*row] = Some(INTERIM);
        }
    }

    /// Some cells as the judge sees them.
    fn standing(&self, cells: &[usize]) -> Vec<OpenCell<'a>> {
        let open_cell = |at: &usize| {
            let RosterCell { cell: index, rows } = self.live_cell(*at);
            OpenCell { index, cell: &self.assignment.plan.cells[index], rows }
        };
        cells.iter().map(open_cell).collect()
    }

    /// Some cells with those of their rows that have not failed.
    pub(super) fn roster(&self, cells: &[usize]) -> Roster {
        Roster { cells: cells.iter().map(|at| self.live_cell(*at)).collect() }
    }

    fn live_cell(&self, at: usize) -> RosterCell {
        let cell = &self.cells[at];
        cell.live(&self.measured.rows[cell.roster.cell])
    }

    /// What was measured, once it has ended.
    pub(super) fn finish(mut self) -> Measured {
        for at in 0..self.cells.len() {
            self.explain(at);
            let CellRun { roster, was_looked_at, .. } = &self.cells[at];
            let last = if *was_looked_at { Look { is_last: true, ..INTERIM } } else { Look::ONLY };
            for row in &roster.rows {
                self.measured.looks[roster.cell][*row].get_or_insert(last);
            }
        }
        self.measured.cells = self.cells;
        self.measured
    }
}

/// One of the looks before the end.
const INTERIM: Look = Look { interim: LOOKS.len() as u32, is_last: false };

/// A budget beyond all clocks ends in a year.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Bytes that the data of the cells of one worker may take together.
fn worker_memory(assignment: &Assignment<'_>) -> usize {
    let is_admitted = |checked: &CheckedRow| matches!(checked.standing, Standing::Admitted);
    let rows = assignment.plan.cells.iter().zip(assignment.checked);
    let mut rows = rows.flat_map(|(cell, checked)| cell.rows.iter().zip(checked));
    let is_host_only =
        rows.all(|(row, checked)| row.variant.implementation.is_host() || !is_admitted(checked));
    if is_host_only {
        return WORKER_MEMORY;
    }
    let share = free_memory().map_or(0, |bytes| (bytes / DEVICE_WORKER_SHARE) as usize);
    share.max(DEVICE_WORKER_MEMORY)
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

/// The comparisons that the report will have.
fn family(assignment: &Assignment<'_>, measured: &Measured) -> Family {
    let mut family = Family { comparisons: 0, decided: 0 };
    for (index, cell) in assignment.plan.cells.iter().enumerate() {
        let rows = live(assignment, measured, &[index]).cells.swap_remove(0).rows;
        for (_, row) in (OpenCell { index, cell, rows }).compared() {
            family.comparisons += 1;
            family.decided += usize::from(measured.looks[index][row].is_some());
        }
    }
    family
}
