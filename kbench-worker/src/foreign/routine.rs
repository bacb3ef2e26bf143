//! Calling and timing a variant that a foreign worker implements.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::ForeignWorker;
use super::exchange::Exchange;
use super::message::{
    Answer, Ask, CalledOnce, FetchAsked, Finish, HeldData, SampleAsked, SampledCalls, Target,
    in_place,
};
use crate::cuda::DeviceReading;
use crate::kernel::{
    Backend, Caller, Calls, CellData, Fault, Fetched, Foreign, InPlace, KernelEntry, Limits, Mode,
    Returned, Routine, Sampled,
};
use crate::value::{Fingerprint, elements_of};

/// Calls that may wait for a device at once, when its worker does not say.
const USUAL_QUEUE: u64 = 64;

/// Nobody can have timed more than was waited for, but for what two clocks differ by.
const SLACK: f64 = 1.05;

/// Bytes of fresh outputs that one batch on a device may have: they should stay in its second-level cache.
const NEAR: usize = 8 << 20;

/// A variant that a foreign worker implements.
pub struct ForeignVariant {
    /// Who implements it.
    pub worker: &'static ForeignWorker,
    /// The kernel.
    pub kernel: &'static KernelEntry,
    /// The kernel's name, as the worker announced it.
    pub of: String,
    /// Its own.
    pub name: String,
    /// Where it runs.
    pub backend: Backend,
    /// Calls that may wait for a device at once.
    pub queue: Option<u64>,
}

impl Foreign for ForeignVariant {
    fn routine(&self) -> Box<dyn Routine> {
        let ForeignVariant { worker, kernel, of, name, backend, queue } = self;
        let (of, name) = (of.clone(), name.clone());
        let queue = queue.unwrap_or(USUAL_QUEUE).max(1);
        Box::new(ForeignRoutine { worker, kernel, of, name, backend: *backend, queue })
    }

    fn is_device(&self) -> bool {
        self.backend == Backend::Cuda
    }

    fn summon(&self) {
        self.worker.summon();
    }

    fn await_ready(&self) {
        self.worker.await_ready();
    }

    fn equip(&self, instruments: &str) {
        self.worker.equip(instruments);
    }
}

struct ForeignRoutine {
    worker: &'static ForeignWorker,
    kernel: &'static KernelEntry,
    of: String,
    name: String,
    backend: Backend,
    queue: u64,
}

/// Data that a foreign worker has, until it is dropped.
struct Holding {
    worker: &'static ForeignWorker,
    data: u64,
    starts: u64,
    exchange: Rc<Exchange>,
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.worker.release(self.data, self.starts);
    }
}

impl Routine for ForeignRoutine {
    fn call(&self, data: &mut dyn CellData, caller: &Caller) -> Result<Returned, Fault> {
        let (number, exchange) = self.hold(data)?;
        exchange.write_outputs(&data.export_outputs()).map_err(|error| self.lost_file(&error))?;
        let ask = Ask::Call(self.target(number, caller));
        let answer = match self.worker.ask(&ask) {
            Err(fault) if self.is_someone_elses(&fault) => return self.call(data, caller),
            answer => answer?,
        };
        match answer {
            Answer::Called(called) => {
                self.import(data, &exchange)?;
                self.returned(&called, &exchange)
            }
            other => Err(self.worker.astray(&ask, &other)),
        }
    }

    fn sample(
        &self,
        data: &mut dyn CellData,
        calls: Calls,
        caller: &Caller,
    ) -> Result<Sampled, Fault> {
        let (number, exchange) = self.hold(data)?;
        let poisoned = data.is_poisoned();
        if poisoned {
            exchange
                .write_outputs(&data.export_outputs())
                .map_err(|error| self.lost_file(&error))?;
        }
        let (mode, target) = (mode(caller), self.target(number, caller));
        let Calls { per_batch, batches } = calls;
        let ask = Ask::Sample(SampleAsked { target, mode, per_batch, batches, poisoned });
        let asked = Instant::now();
        let answer = match self.worker.ask(&ask) {
            Err(fault) if self.is_someone_elses(&fault) => return self.sample(data, calls, caller),
            answer => answer?,
        };
        match answer {
            Answer::Sampled(SampledCalls { nanoseconds, .. })
                if nanoseconds > SLACK * asked.elapsed().as_nanos() as f64 =>
            {
                Err(self.worker.liar(nanoseconds, asked.elapsed()))
            }
            Answer::Sampled(SampledCalls { nanoseconds, host, gated }) => {
                let reading = |host| DeviceReading { host, gated, ..DeviceReading::default() };
                let device = host.filter(|_| self.backend == Backend::Cuda).map(reading);
                Ok(Sampled { time: Duration::from_nanos(nanoseconds.round() as u64), device })
            }
            other => Err(self.worker.astray(&ask, &other)),
        }
    }

    fn limits(&self, data: &dyn CellData, caller: &Caller) -> Limits {
        if self.backend != Backend::Cuda {
            return Limits::NONE;
        }
        let fresh = match self.kernel.in_place {
            InPlace::Fresh => (NEAR / data.written_bytes().max(1)).max(1) as u64,
            InPlace::No | InPlace::Reuse => u64::MAX,
        };
        Limits::on_device(mode(caller), self.queue.min(fresh))
    }

    fn fetch(
        &self,
        data: &mut dyn CellData,
        caller: &Caller,
        inputs: bool,
    ) -> Result<Fetched, Fault> {
        let (number, exchange) = self.hold(data)?;
        let ask = Ask::Fetch(FetchAsked { target: self.target(number, caller), inputs });
        match self.worker.ask(&ask)? {
            Answer::Done(Finish { changed_input, .. }) => {
                self.import(data, &exchange)?;
                Ok(Fetched { changed_input })
            }
            other => Err(self.worker.astray(&ask, &other)),
        }
    }
}

impl ForeignRoutine {
    /// Whether a variant that was called before may have left something behind that ended the worker: a process of its own
    /// shows.
    fn is_someone_elses(&self, fault: &Fault) -> bool {
        fault.ends() && self.worker.has_served_others(&self.of, &self.name)
    }

    fn target(&self, data: u64, caller: &Caller) -> Target<'_> {
        let threads = match caller {
            Caller::Foreign(_, threads) => *threads,
            _ => None,
        };
        Target { data, of: &self.of, variant: &self.name, threads }
    }

    /// Hands the data over, unless its worker has it.
    fn hold(&self, data: &mut dyn CellData) -> Result<(u64, Rc<Exchange>), Fault> {
        self.worker.give_back();
        let is_ours = |holding: &Holding| {
            std::ptr::eq(holding.worker, self.worker) && holding.worker.has(holding.starts)
        };
        let attached = data.attachments().iter().filter_map(|a| a.downcast_ref::<Holding>());
        if let Some(found) = attached.into_iter().find(|holding| is_ours(holding)) {
            return Ok((found.data, found.exchange.clone()));
        }
        let exchange =
            Exchange::of(self.kernel, data.export()).map_err(|error| self.lost_file(&error))?;
        self.worker.summon();
        let (number, starts) = self.worker.next_data();
        let axes = self.kernel.axes.iter().copied().zip(data.size().iter().copied()).collect();
        let ask = Ask::Hold(HeldData {
            data: number,
            kernel: self.kernel.path(),
            element: self.kernel.element,
            axes,
            in_place: in_place(self.kernel.in_place),
            file: exchange.path(),
            operands: exchange.operands.clone(),
        });
        match self.worker.ask(&ask)? {
            Answer::Done(_) => exchange.hide(),
            other => return Err(self.worker.astray(&ask, &other)),
        }
        let exchange = Rc::new(exchange);
        let holding =
            Holding { worker: self.worker, data: number, starts, exchange: exchange.clone() };
        data.attachments().push(Box::new(holding));
        Ok((number, exchange))
    }

    fn import(&self, data: &mut dyn CellData, exchange: &Exchange) -> Result<(), Fault> {
        let mut outputs = exchange.outputs();
        if data.import_outputs(&mut outputs) {
            return Ok(());
        }
        Err(match outputs.error {
            Some(error) => self.lost_file(&error),
            None => Fault::Declined(
                "an output of the kernel is of a type that other languages cannot write".into(),
            ),
        })
    }

    fn returned(&self, called: &CalledOnce, exchange: &Exchange) -> Result<Returned, Fault> {
        let mut returned = Returned { changed_input: called.changed_input, ..Returned::default() };
        let mut fingerprint = Fingerprint::default();
        for part in &called.returned {
            let bytes = exchange.read(part.offset, part.bytes as usize);
            let bytes = bytes.map_err(|error| self.lost_file(&error))?;
            let Some((elements, roundoff)) = elements_of(&part.element, &bytes) else {
                let text =
                    format!("returned numbers of type `{}`, which there is not", part.element);
                return Err(Fault::Foreign { text, ends: false });
            };
            fingerprint.add_all(bytes.iter().map(|byte| u64::from(*byte)));
            returned.bytes += bytes.len();
            returned.parts.push(elements);
            returned.roundoffs.push(roundoff);
        }
        returned.fingerprint = fingerprint.value();
        Ok(returned)
    }

    fn lost_file(&self, error: &std::io::Error) -> Fault {
        Fault::Declined(format!(
            "its data cannot be handed to the worker `{}`: {error}",
            self.worker.name()
        ))
    }
}

/// How calls are timed.
fn mode(caller: &Caller) -> Mode {
    match caller {
        Caller::Foreign(mode, _) => *mode,
        _ => Mode::Warm,
    }
}
