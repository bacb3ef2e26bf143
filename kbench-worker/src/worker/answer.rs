//! A worker: does what a controller asks for, one request after the other.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use super::block::{sample, visit};
use super::calibrate::{RowCalibration, calibrate, nanoseconds};
use super::checker;
use super::devices::{Devices, Workshop};
use super::ledger::{Leak, Ledger};
use super::protocol::{
    Block, Done, FailedRow, ForeignRequest, PROTOCOL, Place, Preparation, PreparedCell, Reply,
    Request, Sampling, Visit, VisitRow, VisitedBlock, Visits,
};
use super::quiet::{Quiet, QuietCrews, is_contaminated};
use super::sentinel::Sentinels;
use super::subject::{Names, Pools, Subject, start_global_pool, subject, summon};
use super::watchdog::Vigil;
use super::{Order, block};
use crate::kernel::{Fault, forget_last_words};
use crate::registry::Registry;
use crate::system::cpu;
use crate::value::SplitMix;

/// Bytes by which the heap of one launch may be shifted against that of another.
const HEAP_SHIFT: u64 = 64 << 10;

/// Contaminated blocks are taken once more, at most this many for every block that was asked for.
const MOST_REPEATS: u32 = 1;

/// Rows of a cell that are calibrated however long it takes. A cell that is dropped half way is a poor comparison; one of
/// thousands of rows must not use up the time in which some of them could be measured.
const CALIBRATED_ANYWAY: usize = 16;

/// One process that measures.
pub struct Worker<'r> {
    registry: &'r Registry,
    /// Its kernels, once a request has named some: there may be a request for every one of thousands.
    names: OnceCell<Names<'r>>,
    pub(super) seed: u64,
    pub(super) order: Order,
    sentinels: Sentinels,
    pools: Pools,
    pub(super) devices: Devices,
    /// In the order of the request; none where it was left out or failed.
    pub(super) subjects: Vec<Option<Subject>>,
    /// What calibration found, or what was last measured with.
    pub(super) calibrations: Vec<Vec<Option<RowCalibration>>>,
    /// Nanoseconds of the current request inside kernels and sentinels.
    inside: f64,
    /// Seconds of the current request that went into calibration.
    calibration_seconds: f64,
    /// Bytes that data may take.
    pub(super) memory: usize,
    /// Who looks at the clock while user code runs.
    pub(super) vigil: Vigil,
    /// What rows have taken of the memory.
    pub(super) ledger: Ledger,
    /// Shifts what is allocated after it; never read.
    _heap_shift: Vec<u8>,
}

/// Takes replies as they come.
pub(super) type Say<'a> = dyn FnMut(Reply) + 'a;

impl<'r> Worker<'r> {
    /// A worker for the kernels of a registry.
    pub fn new(registry: &'r Registry) -> Self {
        Worker::watched(registry, Vigil::new(), None)
    }

    /// One that somebody looks after, and that may take so much memory.
    pub(super) fn watched(registry: &'r Registry, vigil: Vigil, memory: Option<usize>) -> Self {
        Worker {
            registry,
            names: OnceCell::new(),
            seed: 0,
            order: Order::new(0, 0),
            sentinels: Sentinels::default(),
            pools: Pools::default(),
            devices: Devices::default(),
            subjects: Vec::new(),
            calibrations: Vec::new(),
            inside: 0.0,
            calibration_seconds: 0.0,
            memory: 0,
            vigil,
            ledger: Ledger::new(memory),
            _heap_shift: Vec::new(),
        }
    }

    /// Does what a request asks for.
    pub fn answer(&mut self, request: &Request, say: &mut Say<'_>) {
        self.inside = 0.0;
        self.calibration_seconds = 0.0;
        request.timeout().inspect(|timeout| self.vigil.set_timeout(*timeout));
        self.vigil.watch_nothing();
        let refused = match request {
            Request::Prepare(preparation) => self.prepare(preparation, say).err(),
            Request::Measure(visits) => self.measure(visits, say).err(),
            Request::Recheck(review) => {
                if review.results {
                    self.recheck(say);
                }
                if review.exchange_seconds > 0.0 {
                    self.exchange(review.exchange_seconds, say);
                }
                None
            }
            Request::Inspect { processor } => {
                self.inspect(*processor, say);
                None
            }
            Request::Check(request) => {
                self.devices.choose(&request.device);
                let names = self.names.get_or_init(|| Names::of(self.registry));
                checker::check(names, &mut self.devices, &self.vigil, request, say).err()
            }
            Request::Profile => {
                self.profile(say);
                None
            }
            Request::Enlist(request) => self.enlist(request).err(),
            Request::Ceilings(device) => {
                self.devices.choose(device);
                match self.devices.ceilings() {
                    Ok(ceilings) => {
                        say(Reply::Ceilings(ceilings));
                        None
                    }
                    Err(error) => Some(error.to_string()),
                }
            }
        };
        match refused {
            Some(reason) => say(Reply::Refused { reason }),
            None => say(Reply::Done(Done {
                inside_seconds: self.inside / 1e9,
                calibration_seconds: self.calibration_seconds,
                processor: cpu::current(),
            })),
        }
    }

    /// Knows what other programs implement from now on.
    fn enlist(&mut self, request: &ForeignRequest) -> Result<(), String> {
        let mut registry = self.registry.clone();
        let device = (request.device.ordinal, request.device.off);
        let enlisted = registry.enlist(&request.workers, device, request.patience());
        enlisted.map_err(|error| error.to_string())?;
        // As long as the entries that it holds.
        self.registry = Box::leak(Box::new(registry));
        self.names = OnceCell::new();
        Ok(())
    }

    fn prepare(&mut self, preparation: &Preparation, say: &mut Say<'_>) -> Result<(), String> {
        let Preparation { protocol, seed, order_seed, launch, cells, memory, .. } = preparation;
        let Preparation { calibrate, device, .. } = preparation;
        if *protocol != PROTOCOL {
            return Err(format!(
                "the controller speaks version {protocol} of the protocol, this worker {PROTOCOL}"
            ));
        }
        let names = self.names.get_or_init(|| Names::of(self.registry));
        let kernels = cells.iter().map(|cell| names.find(cell)).collect::<Result<Vec<_>, _>>()?;
        summon(&kernels, cells);
        start_global_pool(&kernels, cells);
        (self.seed, self.memory) = (*seed, *memory);
        self.order = Order::new(*order_seed, *launch);
        self.pools = Pools::default();
        self.devices.choose(device);
        let mut shifts = SplitMix(order_seed.wrapping_add(*launch));
        self._heap_shift = vec![0; shifts.below(HEAP_SHIFT) as usize];
        self.subjects = cells.iter().map(|_| None).collect();
        self.calibrations = cells.iter().map(|cell| vec![None; cell.rows.len()]).collect();
        // Cells are calibrated in the order of the request, so that those left out are the last ones; afterwards the
        // order of allocation changes from launch to launch.
        let order = match calibrate {
            Some(_) => (0..cells.len()).collect(),
            None => self.order.permutation(cells.len()),
        };
        let start = Instant::now();
        let mut taken = 0;
        self.ledger.clear();
        for cell in order {
            let patience = calibrate.map_or(f64::INFINITY, |sampling| sampling.patience_seconds);
            let is_first = self.subjects.iter().all(Option::is_none);
            if !is_first && (start.elapsed().as_secs_f64() > patience || self.vigil.is_stopping()) {
                break;
            }
            announce(&self.vigil, Place { cell, row: None }, say);
            let places = (&mut self.pools, &mut self.devices);
            let making = Instant::now();
            match subject(kernels[cell], &cells[cell], *seed, places) {
                Ok(subject) if !is_first && taken + subject.bytes() > *memory => break,
                Ok(subject) => {
                    taken += subject.bytes();
                    self.subjects[cell] = Some(subject);
                    let seconds = making.elapsed().as_secs_f64();
                    let begun = Instant::now();
                    let prepared = self.prepared(cell, *calibrate, say);
                    self.calibration_seconds += begun.elapsed().as_secs_f64();
                    say(Reply::Prepared(PreparedCell { seconds, ..prepared }));
                }
                Err(failure) => {
                    say(Reply::Failed(FailedRow { cell, row: None, failure, ends: false }));
                }
            }
            if self.devices.lost().is_some() || self.ledger.leak().is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Calibrates a cell if asked to, and tells what there is to know of it.
    fn prepared(
        &mut self,
        cell: usize,
        sampling: Option<Sampling>,
        say: &mut Say<'_>,
    ) -> PreparedCell {
        let rows = self.calibrations[cell].len();
        let subject = self.subjects[cell].as_mut();
        let Some(subject) = subject else { unreachable!("the cell was just made") };
        let (bytes, moved_bytes) = (subject.bytes(), subject.moved_bytes());
        let begun = Instant::now();
        for (row, sampling) in (0..rows).filter_map(|row| Some((row, sampling?))) {
            let is_late = begun.elapsed().as_secs_f64() > sampling.patience_seconds;
            if row >= CALIBRATED_ANYWAY && is_late || self.vigil.is_stopping() {
                break;
            }
            announce(&self.vigil, Place { cell, row: Some(row) }, say);
            self.ledger.settle();
            let calibrated = calibrate(subject, row, &sampling);
            self.ledger.note((cell, row));
            match calibrated {
                Ok((calibration, inside)) => {
                    self.inside += inside;
                    self.calibrations[cell][row] = Some(calibration);
                }
                Err(fault) => {
                    let ends = self.devices.lost().is_some() || fault.ends();
                    say(failed(cell, row, &fault, ends));
                    if ends {
                        break;
                    }
                }
            }
            if let Some(leak) = self.ledger.leak() {
                say(leaking(&leak));
                break;
            }
        }
        // Every row has just been called.
        subject.is_warm = self.calibrations[cell].iter().all(Option::is_some);
        subject.reads = sampling.map(|_| subject.data.reads_fingerprint());
        let calibrations = self.calibrations[cell].clone();
        PreparedCell { cell, bytes, moved_bytes, seconds: 0.0, calibrations }
    }

    fn measure(&mut self, visits: &Visits, say: &mut Say<'_>) -> Result<(), String> {
        let Visits { cells, seconds, announce, settle, processor } = visits;
        for visit in cells {
            self.validate(visit)?;
        }
        // Time beyond all clocks has no end.
        let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let deadline = Instant::now().checked_add(time);
        let mut quiet: Vec<Quiet> = cells.iter().map(|visit| Quiet::new(visit.quiet)).collect();
        let mut crews: Vec<QuietCrews> =
            cells.iter().map(|visit| QuietCrews::new(&visit.rows)).collect();
        let mut left: Vec<u32> = cells.iter().map(|visit| visit.blocks).collect();
        let mut repeats = vec![0; left.len()];
        let mut visits = cells.clone();
        let mut last = None;
        let mut unvisited = left.iter().filter(|blocks| **blocks > 0).count();
        while left.iter().any(|blocks| *blocks > 0) {
            for next in self.order.permutation(visits.len()) {
                if left[next] == 0 {
                    continue;
                }
                // Every cell has a block in every launch, also when starting took long.
                let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                if (is_over && unvisited == 0) || self.vigil.is_stopping() {
                    return Ok(());
                }
                unvisited = unvisited.saturating_sub(1);
                left[next] -= 1;
                processor.inspect(|processor| cpu::move_to(*processor));
                let caches = match last.replace(next) {
                    _ if *settle => Caches::OfAnotherProcess,
                    Some(last) if last == next => Caches::Own,
                    None if cells.len() == 1 => Caches::Own,
                    _ => Caches::OfAnotherCell,
                };
                let mut block = self.visit(&mut visits[next], *announce, caches, say);
                if visits[next].rows.is_empty() {
                    left[next] = 0;
                    continue;
                }
                if self.devices.lost().is_some() {
                    return Ok(());
                }
                if let Some(leak) = self.ledger.leak() {
                    say(leaking(&leak));
                    return Ok(());
                }
                let chain = quiet[next].note(&block);
                let has_waited = crews[next].note(&block);
                let max_clock = self.devices.max_clock_mhz();
                let readings = block.samples.iter().filter_map(|sample| sample.device);
                block.throttled = readings.into_iter().any(|device| device.is_throttled(max_clock));
                let again = repeats[next] < MOST_REPEATS * visits[next].blocks;
                let is_contaminated = is_contaminated(chain, quiet[next].level());
                let is_disturbed = block.throttled || is_contaminated || has_waited;
                if again && is_disturbed {
                    block.requeued = true;
                    if let (true, Some(subject)) =
                        (visits[next].reverse, &mut self.subjects[visits[next].cell])
                    {
                        // What is taken once more has the order of what it replaces.
                        subject.turns.reverse();
                    }
                    repeats[next] += 1;
                    left[next] += 1;
                }
                say(Reply::Block(VisitedBlock { cell: visits[next].cell, block }));
            }
        }
        Ok(())
    }

    fn validate(&mut self, visit: &Visit) -> Result<(), String> {
        let Some(Some(subject)) = self.subjects.get(visit.cell) else {
            return Err(format!("cell {} was not prepared", visit.cell));
        };
        for row in &visit.rows {
            if row.row >= subject.rows.len() {
                return Err(format!("cell {} has no row {}", visit.cell, row.row));
            }
            self.calibrations[visit.cell][row.row] = Some(row.calibration);
        }
        Ok(())
    }

    /// One block; rows that fail are taken off the visit.
    fn visit(
        &mut self,
        request: &mut Visit,
        announce: bool,
        caches: Caches,
        say: &mut Say<'_>,
    ) -> Block {
        let Some(Some(subject)) = self.subjects.get_mut(request.cell) else {
            unreachable!("visits are validated")
        };
        let (vigil, ledger, cell) = (&self.vigil, &mut self.ledger, request.cell);
        let mut faults = Vec::new();
        ledger.settle();
        // Rows share their data: where something else has used the caches, it is brought back for all of them.
        let was_warm = std::mem::replace(&mut subject.is_warm, true);
        let unreported = match caches {
            _ if !was_warm => warm_up(subject, &request.rows, &mut self.order),
            Caches::Own | Caches::OfAnotherCell => Vec::new(),
            Caches::OfAnotherProcess => request.rows.iter().take(1).copied().collect(),
        };
        let is_far = !was_warm || matches!(caches, Caches::OfAnotherCell);
        let is_far = is_far && !subject.data.is_cold();
        if is_far && unreported.is_empty() && request.rows.iter().any(|row| is_host(subject, row)) {
            subject.data.read();
        }
        let is_told = announce || !was_warm;
        if !unreported.is_empty() {
            for row in unreported {
                let place = Place { cell, row: Some(row.row) };
                vigil.watch_calls(place, row.calibration.sample_cost());
                if is_told {
                    say(Reply::Calling(place));
                }
                match sample(subject, row.row, &row.calibration) {
                    Ok(block::Timed { wash_out, sample }) => {
                        self.inside += nanoseconds(wash_out) + nanoseconds(sample.time);
                    }
                    Err(fault) => faults.push((row.row, fault)),
                }
                ledger.note((cell, row.row));
            }
            request.rows.retain(|row| faults.iter().all(|(failed, _)| *failed != row.row));
            if is_told {
                say(Reply::Called);
            }
        }
        let mut former = None;
        let mut announced = |next: Option<&VisitRow>| {
            former.take().inspect(|row| ledger.note((cell, *row)));
            let Some(next) = next else { return };
            let place = Place { cell, row: Some(next.row) };
            former = place.row;
            vigil.watch_sample(place, next.calibration.sample_cost());
            if announce {
                say(Reply::Calling(place));
            }
        };
        let (order, sentinels) = (&mut self.order, &mut self.sentinels);
        let rows = request.rows.len();
        subject.turns.reverse();
        // A row may have failed since.
        let is_known = request.reverse && subject.turns.len() == rows;
        subject.turns = match request.single {
            true if is_known => std::mem::take(&mut subject.turns),
            true => order.permutation(rows),
            false => order.mirrored(rows),
        };
        let turns = subject.turns.clone();
        let visited = visit(subject, &request.rows, &turns, sentinels, &mut announced);
        if announce {
            say(Reply::Called);
        }
        self.inside += visited.inside;
        faults.extend(visited.faults);
        request.rows.retain(|row| faults.iter().all(|(failed, _)| *failed != row.row));
        for (row, fault) in faults {
            let ends = self.devices.lost().is_some() || fault.ends();
            say(failed(request.cell, row, &fault, ends));
        }
        visited.block
    }
}

/// What was in the caches last, before a block.
#[derive(Clone, Copy)]
enum Caches {
    Own,
    OfAnotherCell,
    OfAnotherProcess,
}

/// The untimed calls before the first block of a process: of all rows. Where all calls are long, of none: what a first call
/// costs besides bringing in the data is little then.
fn warm_up(subject: &Subject, rows: &[VisitRow], order: &mut Order) -> Vec<VisitRow> {
    let is_long = |row: &VisitRow| is_host(subject, row) && row.calibration.is_long();
    if rows.iter().all(is_long) {
        return Vec::new();
    }
    let positions = order.permutation(rows.len()).into_iter();
    positions.map(|position| rows[position].warming_up()).collect()
}

fn is_host(subject: &Subject, row: &VisitRow) -> bool {
    subject.rows[row.row].variant.implementation.is_host()
}

/// Says what is about to be called, to the controller and to whoever looks at the clock.
pub(super) fn announce(vigil: &Vigil, place: Place, say: &mut Say<'_>) {
    forget_last_words();
    vigil.watch(place);
    say(Reply::Calling(place));
}

/// What is said of a row that takes memory and keeps it.
pub(super) fn leaking(Leak { row: (cell, row), bytes }: &Leak) -> Reply {
    let failure = format!(
        "leaks memory: its calls have taken {:.1} GiB and given nothing back, half of what a process may take here",
        *bytes as f64 / (1u64 << 30) as f64
    );
    Reply::Failed(FailedRow { cell: *cell, row: Some(*row), failure, ends: true })
}

/// What is said of a row that failed, or cannot be measured like this.
pub(super) fn failed(cell: usize, row: usize, fault: &Fault, ends: bool) -> Reply {
    let failed = FailedRow { cell, row: Some(row), failure: fault.to_string(), ends };
    match fault {
        Fault::Declined(_) => Reply::Declined(failed),
        _ => Reply::Failed(failed),
    }
}
