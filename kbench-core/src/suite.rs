//! A run, stage by stage: registry → plan → check → measure → infer → crossover → report.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::accelerator::Accelerator;
use crate::calendar::timestamp;
use crate::check::{CheckedRow, Coverage, Devices, Standing, check_plan};
use crate::crossover::{self, Found, Origin, Prober, Search, has_contests};
use crate::environment::{Conduct, CpuTimes, Environment, Throttling};
use crate::gauge::Counters;
use crate::hash::fnv64;
use crate::infer::{Rules, contaminated_share};
use crate::kernel::Mode;
use crate::measure::{Assignment, Effort, Isolation, Judge, Measured, Pass, measure_plan};
use crate::plan::{Cell, Plan, PlanError, Row, Selection};
use crate::registry::{RegisteredKernel, Registry, RegistryError};
use crate::report::{
    DeviceReport, PlanReport, Report, RowKey, RowReport, SCHEMA, Seconds, assemble, growth_reports,
    kernel_reports, put_in_context, scaling_reports,
};
use crate::watch::{Told, Watch};
use crate::worker::{DeviceRequest, Duet, Launcher, SameProcess, WorkerChecks, profile_rows};
use crate::workers::Workers;

/// What a run is about and how much effort it makes.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Which rows.
    pub selection: Selection,
    /// How long.
    pub effort: Effort,
    /// Thread counts of parallel variants; empty means rayon's global pool.
    pub threads: Vec<usize>,
    /// How calls of CUDA variants are timed.
    pub modes: Vec<Mode>,
    /// Where CUDA variants run.
    pub device: DeviceRequest,
    /// Whether CUDA variants are skipped.
    pub no_gpu: bool,
    /// Seed of data and order.
    pub seed: u64,
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

/// An older build of a program.
#[derive(Clone, Debug)]
pub struct Past {
    /// Where it is.
    pub program: PathBuf,
    /// The rows that it has.
    pub rows: HashSet<RowKey>,
}

/// The seed of a run that is given none: any number, but always the same, so that two runs see the same data.
pub const DEFAULT_SEED: u64 = 20_260_101;

impl Default for Configuration {
    fn default() -> Self {
        Configuration {
            selection: Selection::default(),
            effort: Effort::default(),
            threads: Vec::new(),
            modes: Mode::OF_DEVICE.to_vec(),
            device: DeviceRequest::default(),
            no_gpu: false,
            seed: DEFAULT_SEED,
            rules: Rules::default(),
            search: Some(Search::default()),
            workers: Workers::default(),
            isolation: Isolation::default(),
            inspect: false,
            past: None,
        }
    }
}

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The registrations.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The selection.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Nothing is selected.
    #[error(
        "nothing is selected: no variant at any size meets all conditions; `--list` shows what there is"
    )]
    NothingSelected,
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
}

impl Suite {
    /// Finds every kernel of the linked crates.
    pub fn discover() -> Result<Self, SuiteError> {
        Ok(Suite { registry: Registry::collect()?, configuration: Configuration::default() })
    }

    /// Changes the configuration.
    pub fn configure(mut self, change: impl FnOnce(&mut Configuration)) -> Self {
        change(&mut self.configuration);
        self
    }

    /// All kernels, selected or not.
    pub fn kernels(&self) -> &[RegisteredKernel] {
        &self.registry.kernels
    }

    /// What the selection amounts to; runs no user code, and names no mode but the first.
    pub fn plan(&self) -> Result<Plan, SuiteError> {
        let modes = &self.configuration.modes;
        self.plan_in(&modes[..modes.len().min(1)])
    }

    /// The same in several modes.
    fn plan_in(&self, modes: &[Mode]) -> Result<Plan, SuiteError> {
        let Configuration { selection, threads, .. } = &self.configuration;
        Ok(Plan::new(&self.registry, selection, threads, modes)?)
    }

    /// Checks and measures what is selected.
    pub fn run(&self) -> Result<Report, SuiteError> {
        self.run_watched(&mut ())
    }

    /// [`run`](Self::run), telling what goes on.
    pub fn run_watched(&self, watch: &mut dyn Watch) -> Result<Report, SuiteError> {
        let plan = self.selected()?;
        let Configuration { seed, rules, search, workers, device, no_gpu, .. } =
            &self.configuration;
        let launcher = workers.launcher(&self.registry, *seed);
        let accelerator = Accelerator::find(&plan, device, *no_gpu);
        // Where nothing runs on a device, one row says so.
        let plan = match accelerator.available() {
            Ok(()) => self.plan_in(&self.configuration.modes)?,
            Err(_) => plan,
        };
        let has_device = accelerator.available().is_ok();
        let runs = |row: &Row| has_device || !row.variant.implementation.is_device();
        let rows = plan.rows().filter(|(_, row)| runs(row)).count();
        let configuration = &self.configuration.clone().for_rows(rows);
        let effort = &configuration.effort;
        let mut record = Record::begin();
        record.seconds.budget = effort.budget.as_secs_f64();
        let (before, throttled) = (CpuTimes::read(), Throttling::read());
        let older = configuration.past.as_ref();
        let older = older.and_then(|past| workers.launcher_of(&past.program, *seed));
        let duet = older.as_ref().map(|past| Duet {
            now: launcher.as_ref(),
            past: past.as_ref(),
            seed: *seed,
        });
        let mut stages = Stages {
            configuration,
            launcher: launcher.as_ref(),
            duet: duet.as_ref(),
            accelerator: &accelerator,
            seconds: &mut record.seconds,
            watch,
        };
        let search = search.filter(|_| has_contests(&plan));
        let time = match search {
            Some(_) => effort.budget.mul_f64(1.0 - SEARCH_SHARE),
            None => effort.budget,
        };
        let mut first = stages.pass(plan, Coverage::EverySize, time, rules);
        stages.complete(&mut first, rules);
        let found = search.map(|search| crossover::search(&first, search, *rules, &mut stages));
        record.device = accelerator.report(&first.plan, &first.measured, launcher.as_ref(), device);
        let usage = before.and_then(|before| CpuTimes::read()?.usage_since(&before));
        record.conduct.others = usage.as_ref().map(|usage| usage.others);
        record.conduct.steal_share = usage.as_ref().map(|usage| usage.steal_share);
        record.conduct.throttling = Throttling::read().since(throttled);
        Ok(configuration.report(record, first, found.unwrap_or_default()))
    }

    /// Checks what is selected on small sizes, without timing anything.
    pub fn test_watched(&self, watch: &mut dyn Watch) -> Result<Report, SuiteError> {
        let plan = self.selected()?;
        let Configuration { seed, workers, device, no_gpu, .. } = &self.configuration;
        let launcher = workers.launcher(&self.registry, *seed);
        let mut record = Record::begin();
        let accelerator = Accelerator::find(&plan, device, *no_gpu);
        let mut checks = WorkerChecks { launcher: launcher.as_ref(), device: device.clone() };
        let mut devices = Devices { available: accelerator.available(), checks: &mut checks };
        let checked = check_plan(&plan, Coverage::SmallSizes, *seed, &mut devices, watch);
        record.seconds.checking = record.started.elapsed().as_secs_f64();
        let pass = Pass { plan, checked, measured: Measured::default() };
        Ok(self.configuration.report(record, pass, Found::default()))
    }

    /// Calls every selected CUDA variant once inside a range of the profiler's, in this process, for `ncu` and `nsys`;
    /// tells `note` what came of each.
    pub fn profile(&self, note: &mut dyn FnMut(&str)) -> Result<(), SuiteError> {
        let plan = self.selected()?;
        let Configuration { seed, device, no_gpu, .. } = &self.configuration;
        let accelerator = Accelerator::find(&plan, device, *no_gpu);
        if let Err(reason) = accelerator.available() {
            note(&format!("skipped: {reason}"));
            return Ok(());
        }
        let here = SameProcess(&self.registry);
        for (index, cell) in plan.cells.iter().enumerate() {
            let is_meant = |row: &usize| {
                cell.rows[*row].variant.implementation.is_device() && cell.is_primary(*row)
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
        Ok(self.configuration.report(Record::begin(), pass, Found::default()))
    }
}

impl Configuration {
    /// The same for a run with so many rows.
    fn for_rows(self, rows: usize) -> Self {
        Configuration { effort: self.effort.for_rows(rows), ..self }
    }

    /// Which rows of a plan the older build has.
    fn past_rows(&self, plan: &Plan) -> Vec<Vec<bool>> {
        let has = |cell: &Cell, row: &Row| {
            self.past.as_ref().is_some_and(|past| past.rows.contains(&RowKey::of(cell, row)))
        };
        let of_cell = |cell: &Cell| cell.rows.iter().map(|row| has(cell, row)).collect();
        plan.cells.iter().map(of_cell).collect()
    }

    /// What was found, with all that is to be known of the run.
    fn report(&self, record: Record, first: Pass, found: Found) -> Report {
        let Record { began, environment, mut seconds, conduct, device, .. } = record;
        let ceilings = device.as_ref().and_then(|device| device.ceilings.as_ref());
        let Found { crossovers, passes } = found;
        let Configuration { effort, threads, isolation, rules, seed, inspect, .. } = self;
        let measurements = [&first].into_iter().chain(&passes).map(|p| &p.measured.measurement);
        let conduct = Conduct {
            debug_assertions: first.plan.rows().any(|(_, row)| row.variant.debug_assertions),
            load_before: environment.load,
            contaminated_share: contaminated_share(measurements),
            ..conduct
        };
        seconds.inside_share =
            (seconds.measuring > 0.0).then_some(seconds.inside / seconds.measuring);
        let mut rows = assemble(&first, *rules, Origin::Listed, ceilings);
        let searched = passes.iter();
        let searched = searched.flat_map(|pass| assemble(pass, *rules, Origin::Searched, ceilings));
        let mut searched: Vec<RowReport> = searched.collect();
        let scaling = scaling_reports(
            &first,
            environment.cores_physical.unwrap_or(usize::MAX).min(environment.cores),
        );
        put_in_context(&mut rows, &crossovers, &scaling);
        put_in_context(&mut searched, &crossovers, &scaling);
        let growth = growth_reports(&first, environment.caches);
        Report {
            schema: SCHEMA,
            run: run_name(began),
            started: began.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            seed: *seed,
            plan: PlanReport {
                effort: effort.clone(),
                threads: threads.clone(),
                isolation: *isolation,
                significance: rules.significance,
                margin: rules.margin,
                partition: first.plan.partition.map(|partition| partition.to_string()),
                kernels: first.plan.kernels.clone(),
            },
            warnings: {
                let mut warnings = environment.warnings(&conduct);
                warnings.extend(device.iter().flat_map(|device| device.warnings(&rows)));
                warnings
            },
            environment,
            device,
            launches: first.measured.measurement.launches.len(),
            contaminated_share: conduct.contaminated_share,
            counters: inspect.then(|| {
                Counters::open().map_or_else(|reason| reason.to_string(), |_| "available".into())
            }),
            seconds,
            filtered_out: first.plan.filtered_out,
            kernels: kernel_reports(&rows, &searched, &crossovers, &scaling, &growth),
            rows,
            crossovers,
            scaling,
            growth,
            searched,
            executable: None,
            baseline: None,
            parts: Vec::new(),
            missing: Vec::new(),
        }
    }
}

/// Share of the budget that is kept for the search of crossovers, when there is one to make.
const SEARCH_SHARE: f64 = 1.0 / 3.0;

/// A round of the search that has less time than this for every row tells little, in seconds: rather fewer rounds.
const SHORTEST_ROUND: f64 = 0.1;

/// The stages from a plan to samples, and what they cost.
struct Stages<'a> {
    configuration: &'a Configuration,
    launcher: &'a dyn Launcher,
    /// The same with an older build beside it.
    duet: Option<&'a Duet<'a>>,
    accelerator: &'a Accelerator,
    seconds: &'a mut Seconds,
    watch: &'a mut dyn Watch,
}

impl Stages<'_> {
    /// Checks and measures a plan.
    fn pass(&mut self, plan: Plan, coverage: Coverage, time: Duration, judge: &dyn Judge) -> Pass {
        let begun = Instant::now();
        let Configuration { seed, device, .. } = self.configuration;
        let mut checks = WorkerChecks { launcher: self.launcher, device: device.clone() };
        let available = self.accelerator.available();
        let mut devices = Devices { available, checks: &mut checks };
        let checked = check_plan(&plan, coverage, *seed, &mut devices, &mut self.told(coverage));
        self.seconds.checking += begun.elapsed().as_secs_f64();
        let measured = self.measure(&plan, &checked, coverage, time, judge);
        Pass { plan, checked, measured }
    }

    /// Gives rows whose turn did not come the time that was kept for the search: what is listed comes first.
    fn complete(&mut self, pass: &mut Pass, judge: &dyn Judge) {
        let Pass { plan, checked, measured } = pass;
        let left = self.seconds.budget - self.seconds.measuring;
        let mut waiting = checked.clone();
        let mut is_complete = true;
        for (cell, rows) in waiting.iter_mut().enumerate() {
            for (row, checked) in rows.iter_mut().enumerate() {
                if measured.is_skipped(cell, row) {
                    is_complete = false;
                } else {
                    checked.standing = Standing::Skipped("it had its turn".into());
                }
            }
        }
        if left <= 0.0 || is_complete {
            return;
        }
        let time = Duration::from_secs_f64(left);
        measured.complete(self.measure(plan, &waiting, Coverage::EverySize, time, judge));
    }

    fn measure(
        &mut self,
        plan: &Plan,
        checked: &[Vec<CheckedRow>],
        coverage: Coverage,
        time: Duration,
        judge: &dyn Judge,
    ) -> Measured {
        let Configuration { effort, seed, isolation, inspect, device, .. } = self.configuration;
        // Sizes that nobody listed are for crossovers of today.
        let duet = self.duet.filter(|_| coverage == Coverage::EverySize);
        let past = duet.map_or_else(Vec::new, |_| self.configuration.past_rows(plan));
        let assignment = Assignment {
            plan,
            checked,
            effort,
            time,
            seed: *seed,
            isolation: *isolation,
            inspect: *inspect && coverage == Coverage::EverySize,
            device,
            past: &past,
            launcher: duet.map_or(self.launcher, |duet| duet as &dyn Launcher),
            judge,
        };
        let measured = measure_plan(&assignment, &mut self.told(coverage));
        self.seconds.add(measured.spent);
        measured
    }

    /// Whoever watches, told of the search what it is.
    fn told(&mut self, coverage: Coverage) -> Told<'_> {
        match coverage {
            Coverage::MoreSizes => Told::OfSearch(self.watch),
            Coverage::EverySize | Coverage::SmallSizes => Told::AsItIs(self.watch),
        }
    }
}

impl Prober for Stages<'_> {
    fn probe(&mut self, cells: Vec<Cell>, rounds: u32, judge: &dyn Judge) -> Option<Pass> {
        let left = self.seconds.budget - self.seconds.measuring;
        let rows: usize = cells.iter().map(|cell| cell.rows.len()).sum();
        let least = SHORTEST_ROUND * rows as f64;
        if left < least {
            return None;
        }
        let time = Duration::from_secs_f64((left / f64::from(rounds.max(1))).max(least));
        let has_yardstick = self.configuration.selection.base.is_some();
        let plan = Plan { cells, has_yardstick, ..Plan::default() };
        let measuring = self.seconds.measuring;
        let pass = self.pass(plan, Coverage::MoreSizes, time, judge);
        self.seconds.searching += self.seconds.measuring - measuring;
        Some(pass)
    }
}

/// What a run is called: when it began, and a few digits that tell it from another of the same second.
fn run_name(began: SystemTime) -> String {
    let since_1970 = began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let unique = format!("{} {}", since_1970.as_nanos(), std::process::id());
    format!("{}-{:08x}", timestamp(since_1970.as_secs()), fnv64(unique.as_bytes()) >> 32)
}

/// What is noted of a run while it goes on.
struct Record {
    began: SystemTime,
    started: Instant,
    /// As it was before the run itself made the machine busy.
    environment: Environment,
    seconds: Seconds,
    conduct: Conduct,
    /// What CUDA variants ran on.
    device: Option<DeviceReport>,
}

impl Record {
    fn begin() -> Self {
        Record {
            began: SystemTime::now(),
            started: Instant::now(),
            environment: Environment::read(),
            seconds: Seconds::default(),
            conduct: Conduct::default(),
            device: None,
        }
    }
}
