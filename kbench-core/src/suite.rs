//! A run, stage by stage: registry → plan → check → measure → infer → report.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::check::{CheckedRow, Coverage, check_plan};
use crate::environment::{Conduct, CpuTimes, Environment, Throttling};
use crate::gauge::Counters;
use crate::infer::{Rules, contaminated_share};
use crate::measure::{Assignment, Effort, Isolation, Measured, measure_plan};
use crate::plan::{Plan, PlanError, Selection};
use crate::registry::{RegisteredKernel, Registry, RegistryError};
use crate::report::{PlanReport, Report, SCHEMA, Seconds, assemble};
use crate::watch::Watch;
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
    /// Seed of data and order.
    pub seed: u64,
    /// How verdicts are given.
    pub rules: Rules,
    /// Where launches come from.
    pub workers: Workers,
    /// Whether the variants of a cell share their launches.
    pub isolation: Isolation,
    /// Whether allocations and processor events of a call are counted.
    pub inspect: bool,
}

/// The seed of a run that is given none: any number, but always the same, so that two runs see the same data.
pub const DEFAULT_SEED: u64 = 20_260_101;

impl Default for Configuration {
    fn default() -> Self {
        Configuration {
            selection: Selection::default(),
            effort: Effort::default(),
            threads: Vec::new(),
            seed: DEFAULT_SEED,
            rules: Rules::default(),
            workers: Workers::default(),
            isolation: Isolation::default(),
            inspect: false,
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

    /// What the selection amounts to; runs no user code.
    pub fn plan(&self) -> Result<Plan, SuiteError> {
        let Configuration { selection, threads, .. } = &self.configuration;
        Ok(Plan::new(&self.registry, selection, threads)?)
    }

    /// Checks and measures what is selected.
    pub fn run(&self) -> Result<Report, SuiteError> {
        self.run_watched(&mut ())
    }

    /// [`run`](Self::run), telling what goes on.
    pub fn run_watched(&self, watch: &mut dyn Watch) -> Result<Report, SuiteError> {
        let plan = self.selected()?;
        let mut record = Record::begin();
        let checked = check_plan(&plan, Coverage::EverySize, self.configuration.seed, watch);
        record.seconds.checking = record.started.elapsed().as_secs_f64();
        let Configuration { effort, seed, rules, workers, isolation, inspect, .. } =
            &self.configuration;
        let launcher = workers.launcher(&self.registry, *seed);
        let assignment = Assignment {
            plan: &plan,
            checked: &checked,
            effort,
            seed: *seed,
            isolation: *isolation,
            inspect: *inspect,
            launcher: launcher.as_ref(),
            judge: rules,
        };
        let (before, throttled) = (CpuTimes::read(), Throttling::read());
        let measured = measure_plan(&assignment, watch);
        let usage = before.and_then(|before| CpuTimes::read()?.usage_since(&before));
        record.conduct.others = usage.as_ref().map(|usage| usage.others);
        record.conduct.steal_share = usage.as_ref().map(|usage| usage.steal_share);
        record.conduct.throttling = Throttling::read().since(throttled);
        record.conduct.contaminated_share = contaminated_share(&measured.measurement);
        record.seconds.checking += measured.spent.checking;
        record.seconds.measuring = measured.spent.measuring;
        record.seconds.inside = measured.spent.inside;
        record.seconds.inside_share = Some(measured.spent.inside / measured.spent.measuring);
        record.seconds.budget = effort.budget.as_secs_f64();
        Ok(self.report(record, &plan, &checked, &measured))
    }

    /// Checks what is selected on small sizes, without timing anything.
    pub fn test_watched(&self, watch: &mut dyn Watch) -> Result<Report, SuiteError> {
        let plan = self.selected()?;
        let mut record = Record::begin();
        let checked = check_plan(&plan, Coverage::SmallSizes, self.configuration.seed, watch);
        record.seconds.checking = record.started.elapsed().as_secs_f64();
        Ok(self.report(record, &plan, &checked, &Measured::default()))
    }

    fn selected(&self) -> Result<Plan, SuiteError> {
        let plan = self.plan()?;
        if plan.cells.is_empty() { Err(SuiteError::NothingSelected) } else { Ok(plan) }
    }

    /// A report about no row at all.
    pub fn empty_report(&self) -> Result<Report, SuiteError> {
        let plan = self.plan()?;
        let nothing = Plan { cells: Vec::new(), ..plan };
        Ok(self.report(Record::begin(), &nothing, &[], &Measured::default()))
    }

    fn report(
        &self,
        record: Record,
        plan: &Plan,
        checked: &[Vec<CheckedRow>],
        measured: &Measured,
    ) -> Report {
        let Record { began, environment, seconds, conduct, .. } = record;
        let conduct = Conduct {
            debug_assertions: plan.rows().any(|(_, row)| row.variant.debug_assertions),
            load_before: environment.load,
            ..conduct
        };
        Report {
            schema: SCHEMA,
            started: began.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            seed: self.configuration.seed,
            plan: PlanReport {
                effort: self.configuration.effort.clone(),
                threads: self.configuration.threads.clone(),
                isolation: self.configuration.isolation,
                significance: self.configuration.rules.significance,
                margin: self.configuration.rules.margin,
            },
            warnings: environment.warnings(&conduct),
            environment,
            launches: measured.measurement.launches.len(),
            contaminated_share: conduct.contaminated_share,
            counters: self.configuration.inspect.then(|| {
                Counters::open().map_or_else(|reason| reason.to_string(), |_| "available".into())
            }),
            seconds,
            filtered_out: plan.filtered_out,
            rows: assemble(plan, checked, measured, self.configuration.rules),
        }
    }
}

/// What is noted of a run while it goes on.
struct Record {
    began: SystemTime,
    started: Instant,
    /// As it was before the run itself made the machine busy.
    environment: Environment,
    seconds: Seconds,
    conduct: Conduct,
}

impl Record {
    fn begin() -> Self {
        Record {
            began: SystemTime::now(),
            started: Instant::now(),
            environment: Environment::read(),
            seconds: Seconds::default(),
            conduct: Conduct::default(),
        }
    }
}
