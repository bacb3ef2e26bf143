//! A run, stage by stage: registry → plan → check → measure → infer → crossover → report.

mod compose;
mod stages;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use self::compose::Record;
use self::stages::{SEARCH_SHARE, Stages};
use crate::accelerator::Accelerator;
use crate::check::{Check, Coverage, check_plan};
use crate::crossover::{self, Found, Search, has_contests};
use crate::environment::{CpuTimes, Throttling};
use crate::foreign::{Announcement, ForeignProgram, ForeignWorker};
use crate::infer::Rules;
use crate::kernel::{Implementation, Mode};
use crate::measure::{Effort, Isolation, Measured, Pass};
use crate::plan::{Cell, Plan, PlanError, Row, Selection};
use crate::registry::{EnlistError, RegisteredKernel, Registry, RegistryError};
use crate::report::{Report, RowKey, Status};
use crate::store::KeptProgram;
use crate::system::interrupted;
use crate::value::Regime;
use crate::watch::{Planned, Watch};
use crate::worker::{
    DeviceRequest, Duet, ForeignRequest, Launcher, SameProcess, USUAL_TIMEOUT, WorkerChecks,
    profile_rows,
};
use crate::workers::Workers;

/// What a run is about and how much effort it makes.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Which rows.
    pub selection: Selection,
    /// Whether element types after the first are measured at one size where there is no device.
    pub brief: bool,
    /// Whether checks without timing take whatever time they need; else each kernel's have about a second.
    pub full: bool,
    /// How long.
    pub effort: Effort,
    /// Thread counts of parallel variants; empty means rayon's global pool.
    pub threads: Vec<usize>,
    /// How calls of CUDA variants are timed.
    pub modes: Vec<Mode>,
    /// Where CUDA variants run.
    pub device: DeviceRequest,
    /// How long a call of a kernel may take, and one of its `inputs` or its reference.
    pub timeout: Duration,
    /// Kinds of data on which variants are checked besides the usual ones; all that their kernels name when absent.
    pub regimes: Option<Vec<Regime>>,
    /// Seed of the data.
    pub seed: u64,
    /// Seed of the order of samples and of the placement of data; none for one that differs from run to run.
    pub order_seed: Option<u64>,
    /// How verdicts are given.
    pub rules: Rules,
    /// How crossovers are looked for; none measures the listed sizes alone.
    pub search: Option<Search>,
    /// Where launches come from.
    pub workers: Workers,
    /// Whether the variants of a cell share their launches.
    pub isolation: Isolation,
    /// Whether allocations and processor events of a call are counted.
    pub inspect: bool,
    /// An older build of the program that is measured in turns with this one.
    pub past: Option<Past>,
}

/// Why `--test` leaves a size out.
const NOT_CHECKED: &str = "not checked at this size, to save time; --full checks all sizes";

/// An older build of a program.
#[derive(Clone, Debug)]
pub struct Past {
    /// The program.
    pub program: KeptProgram,
    /// The rows that it has.
    pub rows: HashSet<RowKey>,
}

/// A number that differs from run to run.
fn entropy() -> u64 {
    // Every hasher of the standard library has random keys.
    RandomState::new().hash_one(0)
}

/// The seed of a run that is given none: any number, but always the same, so that two runs see the same data.
pub const DEFAULT_SEED: u64 = 20_260_101;

impl Default for Configuration {
    fn default() -> Self {
        Configuration {
            selection: Selection::default(),
            brief: false,
            full: false,
            effort: Effort::default(),
            threads: Vec::new(),
            modes: Mode::OF_DEVICE.to_vec(),
            device: DeviceRequest::default(),
            timeout: USUAL_TIMEOUT,
            regimes: None,
            seed: DEFAULT_SEED,
            order_seed: None,
            rules: Rules::default(),
            search: Some(Search::default()),
            workers: Workers::default(),
            isolation: Isolation::default(),
            inspect: false,
            past: None,
        }
    }
}

/// A budget beyond all clocks ends in a year.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The registrations.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// What foreign workers announce.
    #[error(transparent)]
    Enlist(#[from] EnlistError),
    /// The selection.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Nothing is selected.
    #[error(
        "nothing is selected: no variant at any size meets all conditions; `--list` shows what there is"
    )]
    NothingSelected,
}

/// Whoever keeps what there is so far, for the case that a run does not live to its end.
pub trait Journal {
    /// Whether it is time for another look.
    fn is_due(&self) -> bool;

    /// Keeps what there is.
    fn note(&mut self, report: Report);
}

/// Keeps nothing.
impl Journal for () {
    fn is_due(&self) -> bool {
        false
    }

    fn note(&mut self, _: Report) {}
}

/// Why a run has not come to its end.
fn unfinished() -> Option<String> {
    interrupted().map(|interrupt| format!("it was interrupted by {interrupt}"))
}

/// All registered kernels with a configuration; the way to drive kbench from a program.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kbench_core::Suite;
///
/// let report = Suite::discover()?.configure(|c| c.selection.kernels = vec!["saxpy".into()]).run()?;
/// for row in &report.rows {
///     println!("{}: {:?} ns", row.name, row.time_ns);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Suite {
    registry: Registry,
    configuration: Configuration,
    /// What foreign workers have announced.
    foreign: Vec<Announcement>,
    /// Foreign workers that fork a process for every launch.
    servers: Vec<ForeignWorker>,
}

impl Suite {
    /// Finds every kernel of the linked crates.
    pub fn discover() -> Result<Self, SuiteError> {
        let (registry, configuration) = (Registry::collect()?, Configuration::default());
        Ok(Suite { registry, configuration, foreign: Vec::new(), servers: Vec::new() })
    }

    /// Changes the configuration.
    pub fn configure(mut self, change: impl FnOnce(&mut Configuration)) -> Self {
        change(&mut self.configuration);
        self
    }

    /// Starts foreign workers, as they are configured by now, and adds the variants that they announce. One that cannot be had
    /// is left out, and the report says why. One that can be forked goes on until the suite is dropped or the calling thread
    /// ends, and is forked for every launch; others are started for every launch.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kbench_core::{Suite, foreign::ForeignProgram};
    ///
    /// let command = ["python3", "variants.py"].map(String::from).to_vec();
    /// let numpy = ForeignProgram::new("numpy", command);
    /// let report = Suite::discover()?.with_workers(&[numpy])?.run()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_workers(mut self, programs: &[ForeignProgram]) -> Result<Self, SuiteError> {
        let Configuration { device, timeout, .. } = &self.configuration;
        let (device, timeout) = ((device.ordinal, device.off), *timeout);
        // Side by side: importing libraries takes seconds.
        let start = |program: &ForeignProgram| {
            let worker = ForeignWorker::announcing(program.clone(), device, timeout);
            worker.summon();
            worker
        };
        let servers: Vec<ForeignWorker> = programs.iter().map(start).collect();
        let mut announced: Vec<Announcement> =
            servers.iter().map(ForeignWorker::announcement).collect();
        for announcement in announced.iter_mut().filter(|a| a.program.is_shared) {
            announcement.variants.retain(|variant| self.registry.has(&variant.of));
        }
        self.registry.enlist(&announced, device, timeout)?;
        self.foreign.extend(announced);
        self.servers.extend(servers);
        Ok(self)
    }

    /// What foreign workers have announced.
    pub fn foreign(&self) -> &[Announcement] {
        &self.foreign
    }

    /// Where workers come from.
    fn launcher(&self, order_seed: u64) -> Box<dyn Launcher + '_> {
        let Configuration { device, timeout, workers: own, .. } = &self.configuration;
        let (device, timeout_seconds) = (device.clone(), timeout.as_secs_f64());
        let available = self.foreign.iter().filter(|worker| worker.unavailable.is_none());
        let workers: Vec<Announcement> = available.cloned().collect();
        let foreign = ForeignRequest { workers, device, timeout_seconds };
        let foreign = Some(foreign).filter(|foreign| !foreign.workers.is_empty());
        own.launcher(&self.registry, order_seed, foreign)
    }

    /// How the processors have spent their time; that of foreign workers is of this run.
    fn cpu_times(&self) -> Option<CpuTimes> {
        let processes: Vec<u32> = self.servers.iter().filter_map(ForeignWorker::process).collect();
        CpuTimes::read_with(&processes)
    }

    /// All kernels, selected or not.
    pub fn kernels(&self) -> &[RegisteredKernel] {
        &self.registry.kernels
    }

    /// What the selection amounts to; runs no user code, and names one mode alone.
    pub fn plan(&self) -> Result<Plan, SuiteError> {
        let modes = &self.configuration.modes;
        // Cold alone would be the mode of variants on the processor, too.
        let one = modes.iter().find(|mode| **mode != Mode::Cold).or(modes.first()).copied();
        self.plan_in(one.as_slice())
    }

    /// The same in several modes.
    fn plan_in(&self, modes: &[Mode]) -> Result<Plan, SuiteError> {
        let Configuration { selection, threads, .. } = &self.configuration;
        Ok(Plan::new(&self.registry, selection, threads, modes)?)
    }

    /// Checks and measures what is selected.
    pub fn run(&self) -> Result<Report, SuiteError> {
        self.run_watched(&mut (), &mut ())
    }

    /// [`run`](Self::run), telling what goes on, and what there is so far.
    pub fn run_watched(
        &self,
        watch: &mut dyn Watch,
        journal: &mut dyn Journal,
    ) -> Result<Report, SuiteError> {
        let plan = self.selected()?;
        let Configuration { rules, search, workers, device, order_seed, .. } = &self.configuration;
        let order_seed = order_seed.unwrap_or_else(entropy);
        let launcher = self.launcher(order_seed);
        let accelerator = Accelerator::find(&plan, device);
        // Where nothing runs on a device, one row says so.
        let has_device = accelerator.available().is_ok();
        let mut plan = if has_device { self.plan_in(&self.configuration.modes)? } else { plan };
        // On a processor, 16-bit types are f32 and a conversion, which shows at any size; devices have other kernels for them.
        if self.configuration.brief && !has_device {
            plan.shorten();
        }
        let runs = |row: &Row| has_device || !row.variant.implementation.is_device();
        let rows = plan.rows().filter(|(_, row)| runs(row)).count();
        let configuration =
            Configuration { order_seed: Some(order_seed), ..self.configuration.clone() };
        let configuration = &configuration.for_rows(rows);
        let effort = &configuration.effort;
        let mut record = Record::begin(&self.foreign);
        record.seconds.budget = effort.budget.time().as_secs_f64();
        watch.planned(Planned { rows, launches: None, seconds: record.seconds.budget });
        let (before, throttled) = (self.cpu_times(), Throttling::read());
        let older = configuration.past.as_ref();
        let older = older.and_then(|past| workers.launcher_of(&past.program.command(), order_seed));
        let duet =
            older.as_ref().map(|past| Duet::new(launcher.as_ref(), past.as_ref(), order_seed));
        let mut stages = Stages {
            configuration,
            launcher: launcher.as_ref(),
            duet: duet.as_ref(),
            accelerator: &accelerator,
            record: &mut record,
            watch,
            journal,
            end: Instant::now() + effort.budget.time().min(A_YEAR),
        };
        let search = search.filter(|_| has_contests(&plan));
        let share = search.map_or(1.0, |_| 1.0 - SEARCH_SHARE);
        let mut first = stages.first_pass(plan, share, rules);
        stages.complete(&mut first, rules);
        let found = search.map(|search| crossover::search(&mut first, search, *rules, &mut stages));
        record.device = accelerator.report(&first.plan, &first.measured, launcher.as_ref(), device);
        let usage = before.and_then(|before| self.cpu_times()?.usage_since(&before));
        record.conduct.others = usage.as_ref().map(|usage| usage.others);
        record.conduct.steal_share = usage.as_ref().map(|usage| usage.steal_share);
        record.conduct.throttling = Throttling::read().since(throttled);
        record.unfinished = unfinished();
        Ok(configuration.report(record, &first, found.unwrap_or_default()))
    }

    /// Checks what is selected, without timing anything. Sizes for which there is no time are skipped, unless `full` is set.
    pub fn test_watched(&self, watch: &mut dyn Watch) -> Result<Report, SuiteError> {
        let plan = self.selected()?;
        let Configuration { seed, device, full, .. } = &self.configuration;
        let launcher = self.launcher(self.configuration.order_seed.unwrap_or(0));
        let mut record = Record::begin(&self.foreign);
        let device = Accelerator::find(&plan, device).available();
        let mut checks = self.configuration.checks(launcher.as_ref());
        let coverage = if *full { Coverage::Full } else { Coverage::Brief };
        let checked = check_plan(&plan, coverage, *seed, &device, &mut checks, watch);
        record.seconds.checking = record.started.elapsed().as_secs_f64();
        record.unfinished = unfinished();
        let pass = Pass { plan, checked, measured: Measured::default() };
        let mut report = self.configuration.report(record, &pass, Found::default());
        let checks = pass.checked.iter().flatten().map(|row| row.check.as_ref());
        for (row, check) in report.rows.iter_mut().zip(checks) {
            match &row.status {
                // Nothing is shown of a variant that was not compared with anything.
                Status::Unchecked(_) => row.status = Status::Failed(row.status.to_string()),
                Status::Ok if !check.is_none_or(Check::is_of_size) => {
                    row.status = Status::Skipped(NOT_CHECKED.to_owned());
                }
                _ => {}
            }
        }
        Ok(report)
    }

    /// Calls every selected CUDA variant once inside a range of the profiler's, in this process, for `ncu` and `nsys`;
    /// tells `note` what came of each.
    pub fn profile(&self, note: &mut dyn FnMut(&str)) -> Result<(), SuiteError> {
        let plan = self.selected()?;
        let Configuration { seed, device, .. } = &self.configuration;
        let accelerator = Accelerator::find(&plan, device);
        if let Err(reason) = accelerator.available() {
            note(&format!("skipped: {reason}"));
            return Ok(());
        }
        let here = SameProcess(&self.registry);
        for (index, cell) in plan.cells.iter().enumerate() {
            let is_meant = |row: &usize| {
                let implementation = cell.rows[*row].variant.implementation;
                matches!(implementation, Implementation::Device(_)) && cell.is_primary(*row)
            };
            let rows: Vec<usize> = (0..cell.rows.len()).filter(is_meant).collect();
            for told in profile_rows(&here, &plan, (index, &rows), *seed, device) {
                note(&told);
            }
        }
        Ok(())
    }

    fn selected(&self) -> Result<Plan, SuiteError> {
        let plan = self.plan()?;
        if plan.cells.is_empty() { Err(SuiteError::NothingSelected) } else { Ok(plan) }
    }

    /// A report about no row at all.
    pub fn empty_report(&self) -> Result<Report, SuiteError> {
        let plan = self.plan()?;
        let nothing = Plan { cells: Vec::new(), ..plan };
        let pass = Pass { plan: nothing, checked: Vec::new(), measured: Measured::default() };
        Ok(self.configuration.report(Record::begin(&self.foreign), &pass, Found::default()))
    }
}

impl Configuration {
    /// The same for a run with so many rows.
    fn for_rows(self, rows: usize) -> Self {
        Configuration { effort: self.effort.for_rows(rows), ..self }
    }

    /// Checks by workers.
    fn checks<'a>(&self, launcher: &'a dyn Launcher) -> WorkerChecks<'a> {
        let Configuration { device, timeout, regimes, .. } = self;
        let (device, timeout, regimes) = (device.clone(), *timeout, regimes.clone());
        WorkerChecks { launcher, device, timeout, regimes }
    }

    /// Which rows of a plan the older build has.
    fn past_rows(&self, plan: &Plan) -> Vec<Vec<bool>> {
        let has = |cell: &Cell, row: &Row| {
            let is_own = row.variant.implementation.foreign().is_none();
            let past = self.past.as_ref().filter(|_| is_own);
            past.is_some_and(|past| past.rows.contains(&RowKey::of(cell, row)))
        };
        let of_cell = |cell: &Cell| cell.rows.iter().map(|row| has(cell, row)).collect();
        plan.cells.iter().map(of_cell).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{right, variant_of_double};
    use crate::measure::Budget;

    /// Keeps everything that there is to keep.
    #[derive(Default)]
    struct Eager(Vec<Report>);

    impl Journal for Eager {
        fn is_due(&self) -> bool {
            true
        }

        fn note(&mut self, report: Report) {
            self.0.push(report);
        }
    }

    #[test]
    fn what_is_measured_is_told_before_the_run_ends() {
        let variants = [("double", 1), ("twice", 2)];
        let variants = variants.map(|(name, line)| variant_of_double(name, line, right));
        let effort = Effort { budget: Budget::Fixed(Duration::from_secs(1)), ..Effort::quick() };
        let configuration = Configuration { effort, search: None, ..Configuration::default() };
        let (registry, foreign) = (Registry::of(variants).expect("fine"), Vec::new());
        let suite = Suite { registry, configuration, foreign, servers: Vec::new() };
        let mut journal = Eager::default();
        let whole = suite.run_watched(&mut (), &mut journal).expect("a report");
        assert_eq!(whole.unfinished, None);
        let last = journal.0.last().expect("a note");
        assert!(last.unfinished.is_some());
        assert_eq!(last.run, whole.run, "it gives way to the whole");
        let times =
            |report: &Report| report.rows.iter().filter(|row| row.time_ns.is_some()).count();
        assert_eq!((last.rows.len(), times(last)), (whole.rows.len(), times(&whole)));
        assert!(times(&whole) > 0);
    }
}
