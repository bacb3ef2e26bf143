//! Kernels that are checked side by side: as many workers as there are cores, each with one kernel after the other.
//!
//! A kernel is one worker's as a whole, because its variants share data and references. Only what leaves no doubt counts: a
//! kernel that ends its worker, or breaks in it, is checked once more by workers that run alone. Those have all of the memory
//! and all of the cores, and find out which row it was.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::checks::{Inquiry, by_cell};
use super::link::{Launcher, Link, LinkError};
use super::protocol::{Place, Reply};
use crate::check::CheckedRow;
use crate::kernel::KernelEntry;
use crate::watch::Watch;

/// Workers that use a device at once: each has a context there, and data.
const MOST_ON_DEVICE: usize = 8;

/// Rows of one kernel, as positions among those of an inquiry.
type KernelRows = Vec<usize>;

/// The kernels of an inquiry. The largest come first, so that no core waits long for the last one.
#[derive(Debug)]
pub(super) struct Kernels {
    /// Kernels that a device or another program has a part in.
    device: VecDeque<KernelRows>,
    /// Kernels of the host alone.
    host: VecDeque<KernelRows>,
}

impl Kernels {
    pub(super) fn of(inquiry: &Inquiry<'_>) -> Self {
        let mut places: HashMap<*const KernelEntry, usize> = HashMap::new();
        let mut kernels: Vec<(f64, KernelRows)> = Vec::new();
        for (index, (cell, _)) in inquiry.rows.iter().enumerate() {
            let cell = &inquiry.plan.cells[*cell];
            let place = *places.entry(cell.kernel).or_insert_with(|| {
                kernels.push((0.0, Vec::new()));
                kernels.len() - 1
            });
            let (elements, rows) = &mut kernels[place];
            *elements += cell.size.product().unwrap_or(u64::MAX) as f64;
            rows.push(index);
        }
        kernels.sort_by(|a, b| b.0.total_cmp(&a.0));
        let kernels = kernels.into_iter().map(|(_, rows)| rows);
        let needs_device = |rows: &KernelRows| rows.iter().any(|index| !inquiry.is_host(*index));
        let (device, host) = kernels.partition(needs_device);
        Kernels { device, host }
    }

    /// As many workers as have something to do, at most.
    pub(super) fn workers(&self) -> usize {
        self.device.len().min(MOST_ON_DEVICE) + self.host.len()
    }

    /// The next kernel for a worker that may use a device, or must not.
    fn next(&mut self, may_use_device: bool) -> Option<KernelRows> {
        let device = if may_use_device { self.device.pop_front() } else { None };
        device.or_else(|| self.host.pop_front())
    }
}

/// What a thread that asks a worker has to tell.
enum News {
    /// A row is checked next.
    Calling(usize),
    /// All rows of a kernel are checked.
    Checked(Vec<(usize, CheckedRow)>),
}

/// Checks kernels by one worker of each launcher. Gives what was found about every row of the inquiry, in its order; nothing about
/// rows of other kernels and of those that leave a doubt.
pub(super) fn check_side_by_side(
    inquiry: &Inquiry<'_>,
    kernels: Kernels,
    launchers: Vec<Box<dyn Launcher + Send + '_>>,
    watch: &mut dyn Watch,
) -> Vec<Option<CheckedRow>> {
    let mut found = vec![None; inquiry.rows.len()];
    let queue = Mutex::new(kernels);
    let next = |may_use_device: bool| {
        queue.lock().unwrap_or_else(PoisonError::into_inner).next(may_use_device)
    };
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for (number, launcher) in launchers.into_iter().enumerate() {
            let (news, next) = (sender.clone(), &next);
            let next = move || next(number < MOST_ON_DEVICE);
            scope.spawn(move || check_kernels(launcher.as_ref(), inquiry, &next, &news));
        }
        drop(sender);
        let mut done = 0;
        for news in receiver {
            match news {
                News::Calling(index) => inquiry.tell(index, done, watch),
                News::Checked(rows) => {
                    done += rows.len();
                    rows.into_iter().for_each(|(index, row)| found[index] = Some(row));
                }
            }
        }
    });
    found
}

/// Checks one kernel after the other, until there are no more or no worker can be had.
fn check_kernels(
    launcher: &dyn Launcher,
    inquiry: &Inquiry<'_>,
    next: &dyn Fn() -> Option<KernelRows>,
    news: &Sender<News>,
) {
    let mut idle: Option<Box<dyn Link + '_>> = None;
    while let Some(rows) = next() {
        let Ok(mut link) = idle.take().map_or_else(|| launcher.launch(0), Ok) else { return };
        match check_kernel(link.as_mut(), inquiry, &rows, news) {
            Ok(Some(found)) => {
                let _ = news.send(News::Checked(found));
                idle = Some(link);
            }
            Ok(None) => {}
            Err(error) if error.is_end() => {}
            Err(_) => return,
        }
    }
}

/// Checks the rows of one kernel; none where one of them broke, or got no answer. A row that a device declined is not among
/// them: others may have had its memory.
fn check_kernel(
    link: &mut dyn Link,
    inquiry: &Inquiry<'_>,
    rows: &[usize],
    news: &Sender<News>,
) -> Result<Option<Vec<(usize, CheckedRow)>>, LinkError> {
    let waiting = by_cell(&rows.iter().map(|index| inquiry.rows[*index]).collect::<Vec<_>>());
    let cells = waiting.iter().scan(rows, |rest, cell| rest.split_off(..cell.len()));
    let cells: Vec<&[usize]> = cells.collect();
    let index = |Place { cell, row }: Place| cells.get(cell)?.get(row?).copied();
    let (mut found, mut answers, mut is_doubtful) = (Vec::new(), 0, false);
    link.ask(&inquiry.request(&waiting, true), &mut |reply| match reply {
        Reply::Calling(place) => {
            if let Some(index) = index(place) {
                let _ = news.send(News::Calling(index));
            }
        }
        Reply::Checked(reply) => {
            is_doubtful |= reply.ends || reply.wrong.as_ref().is_some_and(|wrong| wrong.is_fault);
            if let Some(index) = index(reply.place) {
                answers += 1;
                if reply.declined.is_none() || inquiry.is_host(index) {
                    found.push((index, reply.into_row()));
                }
            }
        }
        _ => {}
    })?;
    Ok((answers == rows.len() && !is_doubtful).then_some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Checks, Coverage};
    use crate::kernel::{Kernel, Location, Mode, Routine, Sizes, Values, VariantEntry, serial};
    use crate::plan::{Plan, Selection};
    use crate::registry::Registry;
    use crate::registry::fixtures::{
        Double, cuda_variant_of_double, right, variant_of_double, wrong,
    };
    use crate::worker::{
        DeviceRequest, Done, Request, SameProcess, USUAL_TIMEOUT, Worker, WorkerChecks,
    };

    /// Who was asked for which kernels.
    type Log = Mutex<Vec<(Place, String)>>;

    /// Where a worker runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Place {
        Alone,
        Beside,
    }

    /// Workers of this process, two of which may run side by side; beside another one they end when they are asked for a
    /// certain kernel.
    #[derive(Clone, Copy)]
    struct Crowd<'a> {
        registry: &'a Registry,
        log: &'a Log,
        fatal: &'a str,
        place: Place,
    }

    impl Launcher for Crowd<'_> {
        fn launch(&self, _: u64) -> Result<Box<dyn Link + '_>, LinkError> {
            Ok(Box::new(Member(Worker::new(self.registry), *self)))
        }

        fn is_fresh(&self) -> bool {
            true
        }

        fn side_by_side(&self, _: usize) -> Vec<Box<dyn Launcher + Send + '_>> {
            let beside = |_| Box::new(Crowd { place: Place::Beside, ..*self }) as Box<_>;
            (0..2).map(beside).collect()
        }
    }

    struct Member<'a>(Worker<'a>, Crowd<'a>);

    impl Link for Member<'_> {
        fn ask(
            &mut self,
            request: &Request,
            hear: &mut dyn FnMut(Reply),
        ) -> Result<Done, LinkError> {
            let Member(worker, Crowd { log, fatal, place, .. }) = self;
            let Request::Check(check) = request else { panic!("{request:?}") };
            let mut kernels: Vec<&str> = check.cells.iter().map(|cell| &cell.kernel[6..]).collect();
            kernels.dedup();
            for kernel in &kernels {
                log.lock().expect("no panic").push((*place, (*kernel).to_owned()));
            }
            if *place == Place::Beside && kernels.contains(fatal) {
                worker.ask(request, &mut |reply| {
                    // Part of it was heard.
                    if let Reply::Checked(reply) = &reply
                        && reply.place.cell == 0
                    {
                        hear(Reply::Checked(reply.clone()));
                    }
                })?;
                let (how, by_others, words) = ("SIGABRT".into(), false, None);
                return Err(LinkError::Ended { how, by_others, words });
            }
            worker.ask(request, hear)
        }
    }

    fn panics() -> Box<dyn Routine> {
        serial::<Double, (), _>(|_: &_, _: &mut _| panic!("not today"))
    }

    /// Variants of one more kernel, which is as large as this.
    fn kernel(
        name: &'static str,
        line: u32,
        sizes: &'static [Values],
        other: fn() -> Box<dyn Routine>,
    ) -> [&'static VariantEntry; 2] {
        let location = Location { line, ..Double::ENTRY.location };
        let sizes = Sizes::Grid(sizes);
        let kernel = KernelEntry { name, location, sizes, ..*Double::ENTRY };
        let kernel: &'static KernelEntry = Box::leak(Box::new(kernel));
        let of = |variant: &'static VariantEntry| -> &'static VariantEntry {
            Box::leak(Box::new(VariantEntry { kernel, ..*variant }))
        };
        [of(variant_of_double(name, 1, right)), of(variant_of_double("other", 2, other))]
    }

    /// Three kernels, the last of which has a variant of its own.
    fn registry(last: fn() -> Box<dyn Routine>) -> Registry {
        let small = kernel("small", 1, &[Values::List(&[100, 16])], right);
        let large = kernel("large", 2, &[Values::List(&[4096, 2048])], wrong);
        let medium = kernel("medium", 3, &[Values::List(&[512, 1024])], last);
        Registry::of([small, large, medium].concat()).expect("fine")
    }

    /// What is found about all rows, in words.
    fn found(launcher: &dyn Launcher, plan: &Plan) -> Vec<String> {
        let device = DeviceRequest::default();
        let mut checks = WorkerChecks { launcher, device, timeout: USUAL_TIMEOUT, regimes: None };
        let rows: Vec<_> = (0..plan.cells.len()).flat_map(|cell| [(cell, 0), (cell, 1)]).collect();
        let found = checks.check(plan, &rows, Coverage::EverySize, 1, &mut ());
        let words = |(row, (cell, number)): (CheckedRow, &(usize, usize))| {
            let cell = &plan.cells[*cell];
            format!("{}: {:?}", cell.row_name(&cell.rows[*number]), row.standing)
        };
        found.into_iter().zip(&rows).map(words).collect()
    }

    /// Which workers were asked when a kernel ends some; all rows must be found as by one worker alone.
    fn asked(last: fn() -> Box<dyn Routine>, fatal: &str) -> Vec<(Place, String)> {
        let (registry, log) = (registry(last), Log::default());
        let plan = Plan::new(&registry, &Selection::default(), &[], &[]).expect("a plan");
        let crowd = Crowd { registry: &registry, log: &log, fatal, place: Place::Alone };
        assert_eq!(found(&crowd, &plan), found(&SameProcess(&registry), &plan));
        let mut log = log.into_inner().expect("no panic");
        log.sort();
        log
    }

    #[test]
    fn every_kernel_is_one_workers_and_rows_are_found_in_their_order() {
        let beside = ["large", "medium", "small"].map(|name| (Place::Beside, name.to_owned()));
        assert_eq!(asked(right, ""), beside);
    }

    #[test]
    fn a_kernel_that_ends_a_worker_beside_others_is_checked_once_more_alone() {
        for fatal in ["large", "medium", "small"] {
            let log = asked(right, fatal);
            assert_eq!((log.len(), &log[0]), (4, &(Place::Alone, fatal.to_owned())), "{log:?}");
        }
    }

    #[test]
    fn a_row_that_breaks_beside_others_is_not_blamed_before_it_breaks_alone() {
        let log = asked(panics, "");
        assert_eq!((log.len(), &log[0]), (4, &(Place::Alone, "medium".to_owned())), "{log:?}");
    }

    #[test]
    fn large_kernels_come_first_and_few_workers_use_the_device() {
        let mut entries = kernel("small", 1, &[Values::List(&[8])], right).to_vec();
        entries.extend(kernel("large", 2, &[Values::List(&[16])], right));
        entries.push(variant_of_double("double", 1, right));
        entries.push(cuda_variant_of_double("fast", 2, right));
        let registry = Registry::of(entries).expect("fine");
        let plan = Plan::new(&registry, &Selection::default(), &[], &[Mode::Hot]).expect("a plan");
        let rows: Vec<(usize, usize)> =
            (0..plan.cells.len()).flat_map(|cell| [(cell, 0), (cell, 1)]).collect();
        let device = DeviceRequest::default();
        let (plan, coverage, seed, timeout) = (&plan, Coverage::EverySize, 1, USUAL_TIMEOUT);
        let inquiry =
            Inquiry { plan, rows: &rows, coverage, regimes: None, seed, device: &device, timeout };
        let names = |kernel: KernelRows| {
            let variant = |index: &usize| plan.cells[rows[*index].0].rows[rows[*index].1].variant;
            let mut names: Vec<_> = kernel.iter().map(|index| variant(index).name).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        for (may_use_device, expected) in [
            (true, vec![vec!["double", "fast"], vec!["large", "other"], vec!["other", "small"]]),
            (false, vec![vec!["large", "other"], vec!["other", "small"]]),
        ] {
            let mut kernels = Kernels::of(&inquiry);
            assert_eq!(kernels.workers(), 3);
            let next = || kernels.next(may_use_device).map(names);
            assert_eq!(std::iter::from_fn(next).collect::<Vec<_>>(), expected);
        }
    }
}
