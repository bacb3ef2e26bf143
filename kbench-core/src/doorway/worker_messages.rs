//! What controllers and workers say to each other.

use std::cell::Cell as Counter;
use std::sync::LazyLock;
use std::time::Duration;

use super::REPORT;
use super::run_document::show;
use crate::check::{Check, CheckedRow, Checks, Coverage};
use crate::crossover::Origin;
use crate::environment::Environment;
use crate::fixtures::{right, variant_of_double};
use crate::infer::{Noises, Rules};
use crate::kernel::VariantEntry;
use crate::measure::{Assignment, Budget, Effort, Isolation, Pass, measure_plan};
use crate::plan::{Plan, Selection};
use crate::registry::Registry;
use crate::report::{Report, assemble, growth_reports, kernel_reports, scaling_reports};
use crate::worker::{
    DeviceRequest, Done, Duet, Launcher, Link, LinkError, Reply, Request, USUAL_TIMEOUT, Worker,
    WorkerChecks,
};

/// Bytes as lines that somebody said: requests are given to a worker without kernels, replies to a controller.
pub fn worker_messages(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let registry = Registry { kernels: Vec::new() };
    let mut worker = Worker::new(&registry);
    let mut replies = Vec::new();
    for line in text.lines() {
        if let Ok(request) = Request::from_json(line) {
            worker.answer(&request, &mut |_| {});
        }
        replies.extend(Reply::from_json(line));
    }
    if !replies.is_empty() {
        control(&replies);
    }
}

/// The variants of one kernel; entries live as long as the program does.
pub(super) static VARIANTS: LazyLock<[&VariantEntry; 2]> =
    LazyLock::new(|| [variant_of_double("double", 1, right), variant_of_double("other", 2, right)]);

/// Everything that a controller does with replies.
fn control(replies: &[Reply]) {
    let registry = Registry::of(*VARIANTS).expect("two variants");
    let plan = || Plan::new(&registry, &Selection::default(), &[], &[]).expect("a plan");
    let past: Vec<Vec<bool>> = plan().cells.iter().map(|c| vec![true; c.rows.len()]).collect();
    for isolation in [Isolation::Shared, Isolation::Isolated] {
        let script = Script::new(replies);
        measure(plan(), &script, &[], isolation);
    }
    let script = Script::new(replies);
    measure(plan(), &Duet::new(&script, &script, 1), &past, Isolation::Shared);
    let script = Script::new(replies);
    let plan = plan();
    let places = plan.cells.iter().enumerate();
    let places: Vec<(usize, usize)> =
        places.flat_map(|(cell, of)| (0..of.rows.len()).map(move |row| (cell, row))).collect();
    let mut checks = WorkerChecks {
        launcher: &script,
        device: DeviceRequest::default(),
        timeout: USUAL_TIMEOUT,
        regimes: None,
    };
    let checked = checks.check(&plan, &places, Coverage::EverySize, 1, &mut ());
    assert_eq!(checked.len(), places.len());
}

/// Measures with workers that say what is in a script, and reports.
fn measure(plan: Plan, launcher: &dyn Launcher, past: &[Vec<bool>], isolation: Isolation) {
    let effort = Effort { budget: Budget::Fixed(Duration::from_millis(20)), ..Effort::quick() };
    let right = || CheckedRow::from(Check::passed());
    let checked: Vec<Vec<CheckedRow>> =
        plan.cells.iter().map(|cell| cell.rows.iter().map(|_| right()).collect()).collect();
    let assignment = Assignment {
        plan: &plan,
        checked: &checked,
        effort: &effort,
        time: effort.budget.time(),
        reserve: Duration::ZERO,
        timeout: USUAL_TIMEOUT,
        seed: 1,
        order_seed: 1,
        isolation,
        inspect: true,
        inspect_device: true,
        device: &DeviceRequest::default(),
        past,
        launcher,
        judge: &Rules::default(),
    };
    let measured = measure_plan(&assignment, &mut (), &mut |_| {});
    let pass = Pass { plan, checked, measured };
    let rows = assemble(&pass, &Noises::default(), Rules::default(), (Origin::Listed, None));
    let scaling = scaling_reports(&pass, 2);
    let growth = growth_reports(&pass, Environment::read().caches);
    let kernels = kernel_reports(&rows, &[], &[], &scaling, &growth);
    let (searched, crossovers) = (Vec::new(), Vec::new());
    show(&Report { rows, kernels, scaling, growth, searched, crossovers, ..REPORT.clone() });
}

/// Workers that say one reply after the other, whatever they are asked; at the end of the script there are no more.
struct Script<'r> {
    replies: &'r [Reply],
    next: Counter<usize>,
}

impl<'r> Script<'r> {
    fn new(replies: &'r [Reply]) -> Self {
        Script { replies, next: Counter::new(0) }
    }

    fn say(&self) -> Option<Reply> {
        let reply = self.replies.get(self.next.get())?.clone();
        self.next.set(self.next.get() + 1);
        Some(reply)
    }
}

impl Launcher for Script<'_> {
    fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
        match self.next.get() < self.replies.len() {
            true => Ok(Box::new(Actor(self))),
            false => Err(LinkError::Start(std::io::Error::other("the script is over"))),
        }
    }

    fn is_fresh(&self) -> bool {
        true
    }
}

/// One worker of a script.
struct Actor<'s>(&'s Script<'s>);

impl Link for Actor<'_> {
    fn ask(&mut self, _: &Request, hear: &mut dyn FnMut(Reply)) -> Result<Done, LinkError> {
        loop {
            match self.0.say() {
                None => {
                    let how = "end of the script".to_owned();
                    return Err(LinkError::Ended { how, by_others: false, words: None });
                }
                Some(Reply::Done(done)) => return Ok(done),
                Some(Reply::Refused { reason }) => return Err(LinkError::Refused(reason)),
                Some(reply) => {
                    let error = LinkError::of(&reply);
                    hear(reply);
                    if let Some(error) = error {
                        return Err(error);
                    }
                }
            }
        }
    }
}
