//! From what was found to the report of a run.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::Configuration;
use crate::calendar::timestamp;
use crate::crossover::{Found, Origin};
use crate::environment::{Conduct, Environment};
use crate::foreign::Announcement;
use crate::gauge::Counters;
use crate::hash::fnv64;
use crate::infer::{Noises, contaminated_share};
use crate::measure::Pass;
use crate::report::{
    DeviceReport, PlanReport, Report, RowReport, SCHEMA, Seconds, WorkerReport, assemble,
    family_of, growth_reports, kernel_reports, put_in_context, scaling_reports,
};

/// What is noted of a run while it goes on.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) began: SystemTime,
    pub(super) started: Instant,
    /// As it was before the run itself made the machine busy.
    pub(super) environment: Environment,
    pub(super) seconds: Seconds,
    pub(super) conduct: Conduct,
    /// What CUDA variants ran on.
    pub(super) device: Option<DeviceReport>,
    /// Foreign workers.
    pub(super) workers: Vec<WorkerReport>,
    /// Why it has not come to its end; none when it has.
    pub(super) unfinished: Option<String>,
}

impl Record {
    pub(super) fn begin(foreign: &[Announcement]) -> Self {
        Record {
            began: SystemTime::now(),
            started: Instant::now(),
            environment: Environment::read(),
            seconds: Seconds::default(),
            conduct: Conduct::default(),
            device: None,
            workers: foreign.iter().map(WorkerReport::of).collect(),
            unfinished: None,
        }
    }
}

impl Configuration {
    /// What was found, with all that is to be known of the run.
    pub(super) fn report(&self, record: Record, first: &Pass, found: Found) -> Report {
        let Record { began, environment, mut seconds, conduct, device, workers, .. } = record;
        let unfinished = record.unfinished;
        let ceilings = device.as_ref().and_then(|device| device.ceilings.as_ref());
        let Found { crossovers, passes } = found;
        let Configuration { effort, threads, isolation, rules, seed, order_seed, inspect, .. } =
            self;
        let measurements = [first].into_iter().chain(&passes).map(|p| &p.measured.measurement);
        let conduct = Conduct {
            debug_assertions: first.plan.rows().any(|(_, row)| row.variant.debug_assertions),
            load_before: environment.load,
            contaminated_share: contaminated_share(measurements),
            ..conduct
        };
        seconds.inside_share =
            (seconds.measuring > 0.0).then_some(seconds.inside / seconds.measuring);
        // What is noted while a run goes on must not take the time of its samples.
        let noises = match unfinished {
            Some(_) => Noises::default(),
            None => Noises::of(&first.plan, &first.measured.measurement),
        };
        let mut rows = assemble(first, &noises, *rules, (Origin::Listed, ceilings));
        let rules = rules.among(family_of(&rows));
        let searched = passes.iter();
        let of = |pass| assemble(pass, &noises, rules, (Origin::Searched, ceilings));
        let searched = searched.flat_map(of);
        let mut searched: Vec<RowReport> = searched.collect();
        let scaling = scaling_reports(
            first,
            environment.cores_physical.unwrap_or(usize::MAX).min(environment.cores),
        );
        put_in_context(&mut rows, &crossovers, &scaling);
        put_in_context(&mut searched, &crossovers, &scaling);
        let growth = growth_reports(first, environment.caches);
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
                error_rate: rules.error_rate,
                significance: rules.significance,
                margin: rules.margin(),
                partition: first.plan.partition.map(|partition| partition.to_string()),
                kernels: first.plan.kernels.clone(),
                has_substitutes: first.plan.has_substitutes,
                is_brief: first.plan.is_brief,
                order_seed: *order_seed,
            },
            warnings: {
                let unfinished =
                    unfinished.iter().map(|why| format!("this run is unfinished: {why}"));
                let mut warnings: Vec<String> = unfinished.collect();
                warnings.extend(environment.warnings(&conduct));
                warnings.extend(workers.iter().filter_map(WorkerReport::warning));
                warnings.extend(device.iter().flat_map(|device| device.warnings(&rows)));
                warnings
            },
            environment,
            device,
            workers,
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
            unfinished,
        }
    }
}

/// What a run is called: when it began, and a few digits that tell it from another of the same second.
fn run_name(began: SystemTime) -> String {
    let since_1970 = began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let unique = format!("{} {}", since_1970.as_nanos(), std::process::id());
    format!("{}-{:08x}", timestamp(since_1970.as_secs()), fnv64(unique.as_bytes()) >> 32)
}
