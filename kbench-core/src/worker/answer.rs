//! A worker: does what a controller asks for, one request after the other.

use std::time::{Duration, Instant};

use super::block::{sample, visit};
use super::calibrate::{RowCalibration, calibrate, nanoseconds};
use super::checks;
use super::cpu;
use super::devices::{Devices, Workshop};
use super::protocol::{
    Block, Done, FailedRow, InspectedRow, PROTOCOL, Place, Preparation, PreparedCell, Reply,
    Request, Sampling, Visit, VisitedBlock, Visits,
};
use super::quiet::{Quiet, is_contaminated};
use super::sentinel::Sentinels;
use super::subject::{Names, Pools, Subject, subject};
use super::{Order, block};
use crate::check::{Gate, Timed};
use crate::gauge::Counters;
use crate::kernel::{Backend, Fault, Mode};
use crate::registry::Registry;
use crate::value::SplitMix;

/// Bytes by which the heap of one launch may be shifted against that of another.
const HEAP_SHIFT: u64 = 64 << 10;

/// Contaminated blocks are taken once more, at most this many for every block that was asked for.
const MOST_REPEATS: u32 = 1;

/// One process that measures.
pub struct Worker<'r> {
    registry: &'r Registry,
    seed: u64,
    order: Order,
    sentinels: Sentinels,
    pools: Pools,
    devices: Devices,
    /// In the order of the request; none where it was left out or failed.
    subjects: Vec<Option<Subject>>,
    /// What calibration found, or what was last measured with.
    calibrations: Vec<Vec<Option<RowCalibration>>>,
    /// Nanoseconds of the current request inside kernels and sentinels.
    inside: f64,
    /// Seconds of the current request that went into calibration.
    calibration_seconds: f64,
    /// Shifts what is allocated after it; never read.
    _heap_shift: Vec<u8>,
}

/// Takes replies as they come.
type Say<'a> = dyn FnMut(Reply) + 'a;

impl<'r> Worker<'r> {
    /// A worker for the kernels of a registry.
    pub fn new(registry: &'r Registry) -> Self {
        Worker {
            registry,
            seed: 0,
            order: Order::new(0, 0),
            sentinels: Sentinels::default(),
            pools: Pools::default(),
            devices: Devices::default(),
            subjects: Vec::new(),
            calibrations: Vec::new(),
            inside: 0.0,
            calibration_seconds: 0.0,
            _heap_shift: Vec::new(),
        }
    }

    /// Does what a request asks for.
    pub fn answer(&mut self, request: &Request, say: &mut Say<'_>) {
        self.inside = 0.0;
        self.calibration_seconds = 0.0;
        let refused = match request {
            Request::Prepare(preparation) => self.prepare(preparation, say).err(),
            Request::Measure(visits) => self.measure(visits, say).err(),
            Request::Recheck => {
                self.recheck(say);
                None
            }
            Request::Inspect { processor } => {
                self.inspect(*processor, say);
                None
            }
            Request::Check(request) => {
                self.devices.choose(&request.device);
                checks::check(self.registry, &mut self.devices, request, say).err()
            }
            Request::Profile => {
                self.profile(say);
                None
            }
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

    fn prepare(&mut self, preparation: &Preparation, say: &mut Say<'_>) -> Result<(), String> {
        let Preparation { protocol, seed, launch, cells, memory, calibrate, device } = preparation;
        if *protocol != PROTOCOL {
            return Err(format!(
                "the controller speaks version {protocol} of the protocol, this worker {PROTOCOL}"
            ));
        }
        let names = Names::of(self.registry);
        let kernels = cells.iter().map(|cell| names.find(cell)).collect::<Result<Vec<_>, _>>()?;
        self.seed = *seed;
        self.order = Order::new(*seed, *launch);
        self.pools = Pools::default();
        self.devices.choose(device);
        let mut shifts = SplitMix(seed.wrapping_add(*launch));
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
        for cell in order {
            let patience = calibrate.map_or(f64::INFINITY, |sampling| sampling.patience_seconds);
            let is_first = self.subjects.iter().all(Option::is_none);
            if !is_first && start.elapsed().as_secs_f64() > patience {
                break;
            }
            say(Reply::Calling(Place { cell, row: None }));
            let places = (&mut self.pools, &mut self.devices);
            match subject(kernels[cell], &cells[cell], *seed, places) {
                Ok(subject) if !is_first && taken + subject.bytes() > *memory => break,
                Ok(subject) => {
                    taken += subject.bytes();
                    self.subjects[cell] = Some(subject);
                    let begun = Instant::now();
                    let prepared = self.prepared(cell, *calibrate, say);
                    self.calibration_seconds += begun.elapsed().as_secs_f64();
                    say(Reply::Prepared(prepared));
                }
                Err(failure) => {
                    say(Reply::Failed(FailedRow { cell, row: None, failure, ends: false }));
                }
            }
            if self.devices.lost().is_some() {
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
        for (row, sampling) in (0..rows).filter_map(|row| Some((row, sampling?))) {
            say(Reply::Calling(Place { cell, row: Some(row) }));
            match calibrate(subject, row, &sampling) {
                Ok((calibration, inside)) => {
                    self.inside += inside;
                    self.calibrations[cell][row] = Some(calibration);
                }
                Err(fault) => {
                    let ends = self.devices.lost().is_some();
                    say(failed(cell, row, &fault, ends));
                    if ends {
                        break;
                    }
                }
            }
        }
        PreparedCell { cell, bytes, moved_bytes, calibrations: self.calibrations[cell].clone() }
    }

    fn measure(&mut self, visits: &Visits, say: &mut Say<'_>) -> Result<(), String> {
        let Visits { cells, seconds, quiet, announce, settle, processor } = visits;
        for visit in cells {
            self.validate(visit)?;
        }
        let deadline =
            Instant::now() + Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
        let mut quiet = Quiet::new(*quiet);
        let mut left: Vec<u32> = cells.iter().map(|visit| visit.blocks).collect();
        let mut repeats = vec![0; left.len()];
        let mut visits = cells.clone();
        let mut is_first = true;
        while left.iter().any(|blocks| *blocks > 0) {
            for next in self.order.permutation(visits.len()) {
                if left[next] == 0 {
                    continue;
                }
                // A start that took long is no reason to come back with nothing.
                if Instant::now() >= deadline && !is_first {
                    return Ok(());
                }
                is_first = false;
                left[next] -= 1;
                processor.inspect(|processor| cpu::move_to(*processor));
                let mut block = self.visit(&mut visits[next], (*announce, *settle), say);
                if visits[next].rows.is_empty() {
                    left[next] = 0;
                    continue;
                }
                if self.devices.lost().is_some() {
                    return Ok(());
                }
                let chain = quiet.note(&block);
                let max_clock = self.devices.max_clock_mhz();
                let readings = block.samples.iter().filter_map(|sample| sample.device);
                block.throttled = readings.into_iter().any(|device| device.is_throttled(max_clock));
                let again = repeats[next] < MOST_REPEATS * visits[next].blocks;
                let is_disturbed = block.throttled || is_contaminated(chain, quiet.level());
                if again && is_disturbed {
                    block.requeued = true;
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
        (announce, settle): (bool, bool),
        say: &mut Say<'_>,
    ) -> Block {
        let Some(Some(subject)) = self.subjects.get_mut(request.cell) else {
            unreachable!("visits are validated")
        };
        let mut faults = Vec::new();
        // Rows share their data: where another process has used the caches, one of them brings it back for all.
        let was_warm = std::mem::replace(&mut subject.is_warm, true);
        let unreported = if was_warm { usize::from(settle) } else { request.rows.len() };
        let is_told = announce || !was_warm;
        if unreported > 0 {
            for row in request.rows.iter().take(unreported) {
                if is_told {
                    say(Reply::Calling(Place { cell: request.cell, row: Some(row.row) }));
                }
                match sample(subject, row.row, &row.calibration) {
                    Ok(block::Timed { wash_out, sample }) => {
                        self.inside += nanoseconds(wash_out) + nanoseconds(sample.time);
                    }
                    Err(fault) => faults.push((row.row, fault)),
                }
            }
            request.rows.retain(|row| faults.iter().all(|(failed, _)| *failed != row.row));
            if is_told {
                say(Reply::Called);
            }
        }
        let cell = request.cell;
        let mut announced = |row| {
            if announce {
                say(Reply::Calling(Place { cell, row: Some(row) }));
            }
        };
        let (order, sentinels) = (&mut self.order, &mut self.sentinels);
        let visited = visit(subject, &request.rows, order, sentinels, &mut announced);
        if announce {
            say(Reply::Called);
        }
        self.inside += visited.inside;
        faults.extend(visited.faults);
        request.rows.retain(|row| faults.iter().all(|(failed, _)| *failed != row.row));
        for (row, fault) in faults {
            say(failed(request.cell, row, &fault, self.devices.lost().is_some()));
        }
        visited.block
    }

    /// Looks once more at every variant's results on the data that it was timed on.
    fn recheck(&mut self, say: &mut Say<'_>) {
        for (cell, subject) in self.subjects.iter_mut().enumerate() {
            let Some(Subject { kernel, own_function, size, data, rows, .. }) = subject else {
                continue;
            };
            let is_device = own_function.is_some_and(|own| own.implementation.is_device());
            let device = if is_device { self.devices.caller(Mode::Hot).ok() } else { None };
            let gate = Gate::new(kernel, *own_function, self.seed).with_device(device);
            let expected = gate.expected(data.as_mut(), size);
            for (row, found) in rows.iter().enumerate() {
                let calibration = self.calibrations[cell][row];
                let (Some(calibration), Ok(callable)) = (calibration, &found.callable) else {
                    continue;
                };
                say(Reply::Calling(Place { cell, row: Some(row) }));
                let timed = Timed {
                    variant: found.variant,
                    routine: callable.routine.as_ref(),
                    data: data.as_mut(),
                    caller: &callable.caller,
                    calls: calibration.calls,
                };
                let checked = match &expected {
                    Ok(expected) => gate.recheck(timed, expected.as_ref()),
                    Err(reason) => Err(reason.clone()),
                };
                if let Err(reason) = checked {
                    let (failure, ends) = (reason.to_string(), self.devices.lost().is_some());
                    say(Reply::Failed(FailedRow { cell, row: Some(row), failure, ends }));
                    if ends {
                        return;
                    }
                }
                say(Reply::Called);
            }
        }
    }

    /// Counts what one call of every row allocates, and what one sample makes the processor do; finds out what is to be
    /// known of calls on a device.
    fn inspect(&mut self, processor: bool, say: &mut Say<'_>) {
        let mut counters = Counters::open().ok();
        for (cell, subject) in self.subjects.iter_mut().enumerate() {
            let Some(subject) = subject else { continue };
            for row in 0..subject.rows.len() {
                let Some(calibration) = self.calibrations[cell][row] else { continue };
                let is_device = subject.rows[row].variant.implementation.is_device();
                if !is_device && !processor {
                    continue;
                }
                say(Reply::Calling(Place { cell, row: Some(row) }));
                if is_device {
                    match subject.figures(row) {
                        Some(Ok(figures)) => say(Reply::Inspected(InspectedRow {
                            cell,
                            row,
                            allocations: None,
                            counters: None,
                            device: Some(figures),
                        })),
                        Some(Err(fault)) => {
                            let ends = self.devices.lost().is_some();
                            say(failed(cell, row, &fault, ends));
                            if ends {
                                return;
                            }
                        }
                        None => {}
                    }
                    say(Reply::Called);
                    continue;
                }
                let Ok(allocations) = subject.call(row).map(|returned| returned.allocations) else {
                    say(Reply::Called);
                    continue;
                };
                // Only the calling thread is counted, and of a parallel variant that is the one that waits.
                let is_serial = subject.rows[row].variant.backend == Backend::Serial;
                let counters = counters.as_mut().filter(|_| is_serial).map(|counters| {
                    let once = RowCalibration { wash_out: 0, ..calibration };
                    let (_, figures) = counters.count(|| sample(subject, row, &once));
                    figures.per_call(once.calls.total())
                });
                let device = None;
                say(Reply::Inspected(InspectedRow { cell, row, allocations, counters, device }));
                say(Reply::Called);
            }
        }
    }

    /// Calls every row once inside a range of the profiler's.
    fn profile(&mut self, say: &mut Say<'_>) {
        for (cell, subject) in self.subjects.iter_mut().enumerate() {
            let Some(subject) = subject else { continue };
            for row in 0..subject.rows.len() {
                say(Reply::Calling(Place { cell, row: Some(row) }));
                if let Err(fault) = subject.profile(row) {
                    let ends = self.devices.lost().is_some();
                    say(failed(cell, row, &fault, ends));
                    if ends {
                        return;
                    }
                }
                say(Reply::Called);
            }
        }
    }
}

/// What is said of a row that failed, or cannot be measured like this.
fn failed(cell: usize, row: usize, fault: &Fault, ends: bool) -> Reply {
    let failed = FailedRow { cell, row: Some(row), failure: fault.to_string(), ends };
    match fault {
        Fault::Declined(_) => Reply::Declined(failed),
        _ => Reply::Failed(failed),
    }
}
