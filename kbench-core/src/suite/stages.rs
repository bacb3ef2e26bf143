//! The stages from a plan to samples, and what they cost.

use std::time::{Duration, Instant};

use super::compose::Record;
use super::{Configuration, Journal};
use crate::accelerator::Accelerator;
use crate::check::{CheckedRow, Coverage, Standing, check_plan};
use crate::crossover::{Found, Prober};
use crate::measure::{self, Assignment, Judge, Measured, Pass, measure_plan};
use crate::plan::{Cell, Plan};
use crate::system::interrupted;
use crate::watch::{Told, Watch};
use crate::worker::{Duet, Launcher};

/// Share of the time after the checks that is kept for the search of crossovers, when there is one to make.
pub(super) const SEARCH_SHARE: f64 = 0.25;

/// Share of the budget that measuring has however long the checks take: a run without samples says nothing.
const LEAST_MEASURING: f64 = 0.25;

/// Seconds per row below which a round of the search tells little; such a round measures fewer rows.
const SHORTEST_ROUND: f64 = 0.1;

/// With less time than this, listed rows are not measured any further after the search.
const LEAST_MORE: Duration = Duration::from_secs(1);

/// Why a run that is noted while it goes on has no end.
const UNFINISHED: &str = "it was still being measured when this was written";

/// The stages from a plan to samples, and what they cost.
pub(super) struct Stages<'a> {
    pub(super) configuration: &'a Configuration,
    pub(super) launcher: &'a dyn Launcher,
    /// The same with an older build beside it.
    pub(super) duet: Option<&'a Duet<'a>>,
    pub(super) accelerator: &'a Accelerator,
    pub(super) record: &'a mut Record,
    pub(super) watch: &'a mut dyn Watch,
    pub(super) journal: &'a mut dyn Journal,
    /// When the run should end.
    pub(super) end: Instant,
}

impl Stages<'_> {
    /// Checks all listed rows, and measures them in a share of the time that is left then.
    pub(super) fn first_pass(&mut self, plan: Plan, share: f64, judge: &dyn Judge) -> Pass {
        let checked = self.check(&plan, Coverage::EverySize);
        let least = self.configuration.effort.budget.time().mul_f64(LEAST_MEASURING);
        self.end = self.end.max(Instant::now() + least);
        let left = self.left();
        let time = left.mul_f64(share);
        let times = (time, left - time);
        let former = Former::None;
        let measured = self.measure((&plan, &checked), former, Coverage::EverySize, times, judge);
        Pass { plan, checked, measured }
    }

    /// Time until the end of the run.
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Checks the rows of a plan.
    fn check(&mut self, plan: &Plan, coverage: Coverage) -> Vec<Vec<CheckedRow>> {
        let begun = Instant::now();
        let mut checks = self.configuration.checks(self.launcher);
        let (seed, device) = (self.configuration.seed, self.accelerator.available());
        let mut told = told(self.watch, coverage);
        let checked = check_plan(plan, coverage, seed, &device, &mut checks, &mut told);
        self.record.seconds.checking += begun.elapsed().as_secs_f64();
        checked
    }

    /// Gives rows whose turn did not come the time that was kept for the search: what is listed comes first.
    pub(super) fn complete(&mut self, pass: &mut Pass, judge: &dyn Judge) {
        let Pass { plan, checked, measured } = pass;
        let time = self.left();
        let mut waiting = checked.clone();
        let mut is_complete = true;
        for (cell, rows) in waiting.iter_mut().enumerate() {
            let is_admitted =
                |row: usize| matches!(checked[cell][row].standing, Standing::Admitted);
            let is_skipped = |row: usize| is_admitted(row) && measured.is_skipped(cell, row);
            let waits = |row: usize| {
                // What is late is compared with a base that is measured beside it.
                let is_base =
                    |of: usize| is_skipped(of) && plan.cells[cell].base_of(of) == Some(row);
                is_skipped(row) || (0..plan.cells[cell].rows.len()).any(is_base)
            };
            for (row, checked) in rows.iter_mut().enumerate() {
                is_complete &= !is_skipped(row);
                if !waits(row) {
                    checked.standing = Standing::Skipped("it had its turn".into());
                }
            }
        }
        if time.is_zero() || is_complete || measured.interrupted.is_some() {
            return;
        }
        let (coverage, times) = (Coverage::EverySize, (time, Duration::ZERO));
        let former = Former::OfOthers(checked, measured);
        let later = self.measure((plan, &waiting), former, coverage, times, judge);
        measured.complete(later);
    }

    /// Measures the rows of a plan that are admitted in some time, or in some more if it is short.
    fn measure(
        &mut self,
        (plan, checked): (&Plan, &[Vec<CheckedRow>]),
        former: Former<'_>,
        coverage: Coverage,
        (time, reserve): (Duration, Duration),
        judge: &dyn Judge,
    ) -> Measured {
        let Configuration { effort, seed, order_seed, isolation, inspect, device, timeout, .. } =
            self.configuration;
        // Sizes that nobody listed are for crossovers of today.
        let duet = self.duet.filter(|_| coverage == Coverage::EverySize);
        let past = duet.map_or_else(Vec::new, |_| self.configuration.past_rows(plan));
        let assignment = Assignment {
            plan,
            checked,
            effort,
            time,
            reserve,
            seed: *seed,
            order_seed: order_seed.unwrap_or_default(),
            isolation: *isolation,
            inspect: *inspect && coverage == Coverage::EverySize,
            inspect_device: coverage == Coverage::EverySize,
            device,
            timeout: *timeout,
            past: &past,
            launcher: duet.map_or(self.launcher, |duet| duet as &dyn Launcher),
            judge,
        };
        let Stages { configuration, record, watch, journal, .. } = self;
        let (others, own) = match former {
            Former::None => (None, None),
            Former::OfOthers(checked, measured) => (Some((checked, measured)), None),
            Former::OfThese(measured) => (None, Some(measured)),
        };
        let mut note = |measured: &Measured| {
            if coverage != Coverage::EverySize || !journal.is_due() {
                return;
            }
            let (mut checked, mut measured) = (checked, measured.clone());
            if let Some((all, former)) = others {
                checked = all;
                measured = former.clone().completed(measured);
            }
            let mut record = record.clone();
            record.unfinished = Some(UNFINISHED.to_owned());
            record.seconds.add(measured.spent);
            let pass = Pass { plan: plan.clone(), checked: checked.to_vec(), measured };
            journal.note(configuration.report(record, &pass, Found::default()));
        };
        let mut told = told(*watch, coverage);
        let measured = match own {
            Some(own) => measure::go_on(&assignment, own, &mut told, &mut note),
            None => measure_plan(&assignment, &mut told, &mut note),
        };
        self.end += Duration::from_secs_f64(measured.spent.lost);
        self.record.seconds.add(measured.spent);
        measured
    }
}

/// Whoever watches, told of the search what it is.
fn told(watch: &mut dyn Watch, coverage: Coverage) -> Told<'_> {
    match coverage {
        Coverage::MoreSizes => Told::OfSearch(watch),
        Coverage::EverySize | Coverage::Brief | Coverage::Full => Told::AsItIs(watch),
    }
}

impl Prober for Stages<'_> {
    fn room(&self) -> usize {
        (self.left().as_secs_f64() / SHORTEST_ROUND) as usize
    }

    fn probe(&mut self, cells: Vec<Cell>, rounds: u32, judge: &dyn Judge) -> Option<Pass> {
        let left = self.left().as_secs_f64();
        if left == 0.0 || interrupted().is_some() {
            return None;
        }
        let rows: usize = cells.iter().map(|cell| cell.rows.len()).sum();
        let least = left.min(SHORTEST_ROUND * rows as f64);
        let has_yardstick = self.configuration.selection.base.is_some();
        let plan = Plan { cells, has_yardstick, ..Plan::default() };
        let end =
            Instant::now() + Duration::from_secs_f64((left / f64::from(rounds.max(1))).max(least));
        let checked = self.check(&plan, Coverage::MoreSizes);
        let time = end.saturating_duration_since(Instant::now());
        let times = (time, Duration::ZERO);
        let former = Former::None;
        let measured = self.measure((&plan, &checked), former, Coverage::MoreSizes, times, judge);
        self.record.seconds.searching += measured.spent.measuring;
        Some(Pass { plan, checked, measured })
    }

    fn go_on(&mut self, first: &mut Pass, judge: &dyn Judge) {
        let Pass { plan, checked, measured } = first;
        let time = self.left();
        if time < LEAST_MORE || measured.interrupted.is_some() {
            return;
        }
        let former = std::mem::take(measured);
        let spent = former.spent;
        let (former, times) = (Former::OfThese(former), (time, Duration::ZERO));
        *measured = self.measure((plan, checked), former, Coverage::EverySize, times, judge);
        measured.spent.add(spent);
    }
}

/// What was measured before.
enum Former<'a> {
    None,
    /// Other rows of the same plan, and what the gate found about all of them.
    OfOthers(&'a [Vec<CheckedRow>], &'a Measured),
    /// The same rows.
    OfThese(Measured),
}
