//! Cells that are ready to be measured: data, routines and pools behind the names of a request.

use std::collections::HashMap;
use std::sync::Arc;

use super::calibrate::RowCalibration;
use super::devices::{Devices, Workshop};
use super::protocol::{CellRequest, RowRequest};
use crate::check::{CheckedCall, plain_digest};
use crate::cuda::DeviceFigures;
use crate::kernel::{
    Backend, Caller, CellData, Fault, Implementation, InPlace, KernelEntry, Mode, Returned,
    Routine, VariantEntry, guard,
};
use crate::plan::{Size, full_name};
use crate::registry::{RegisteredKernel, Registry};
use crate::value::Poison;

/// A cell that is ready to be measured.
pub(super) struct Subject {
    pub(super) kernel: &'static KernelEntry,
    pub(super) own_function: Option<&'static VariantEntry>,
    pub(super) size: Size,
    /// The data that all rows share.
    pub(super) data: Box<dyn CellData>,
    /// The rows, as in the request.
    pub(super) rows: Vec<SubjectRow>,
    /// Whether its rows have run in this process.
    pub(super) is_warm: bool,
    /// The order of the rows in its last block.
    pub(super) turns: Vec<usize>,
    /// Digest of its inputs, while results of timed calls are to be looked at.
    pub(super) reads: Option<u64>,
}

/// A row of a subject.
pub(super) struct SubjectRow {
    pub(super) variant: &'static VariantEntry,
    /// What can be called, or why not.
    pub(super) callable: Result<Callable, String>,
    /// Digest of its data and its right results.
    pub(super) digest: Option<u64>,
    /// What a check saw of one of its calls.
    pub(super) checked_call: Option<CheckedCall>,
    /// What a timed call left in the outputs, if they were looked at.
    pub(super) timed: Option<TimedOutputs>,
    /// Whether other results are compared with the reference.
    pub(super) is_compared: bool,
}

/// Outputs of a timed call, which were poisoned before it.
pub(super) enum TimedOutputs {
    /// They have the bits that a check found right.
    Right,
    /// They have others.
    Other(Vec<Vec<f64>>),
}

/// A variant with the place from which it is called.
pub(super) struct Callable {
    pub(super) routine: Box<dyn Routine>,
    pub(super) caller: Caller,
}

impl Subject {
    /// One untimed call of a row on fresh outputs.
    pub(super) fn call(&mut self, row: usize) -> Result<Returned, Fault> {
        let callable = self.rows[row].callable.as_ref();
        let Callable { routine, caller } = callable.map_err(|r| Fault::Failed(r.clone()))?;
        let data = self.data.as_mut();
        guard(|| {
            data.reset();
            routine.call(data, caller)
        })
        .flatten()
    }

    /// Poisons the outputs for the next sample of a row, if it shows a result that can be compared with the check's: that of
    /// one call on the host that writes it and returns nothing. Gives the digest that it should have.
    pub(super) fn poison_for(&mut self, row: usize, calibration: &RowCalibration) -> Option<u64> {
        let SubjectRow { variant, digest, timed, .. } = &self.rows[row];
        let is_plain = self.kernel.in_place == InPlace::No
            && variant.implementation.is_host()
            && calibration.calls.total() == 1
            && calibration.returned_bytes == 0;
        let right = digest.filter(|_| is_plain && timed.is_none() && self.reads.is_some())?;
        self.data.reset();
        self.data.poison(Poison::First);
        Some(right)
    }

    /// Notes what the sample left in the outputs.
    pub(super) fn look_at(&mut self, row: usize, right: u64) {
        let Some(reads) = self.reads else { return };
        let is_right = plain_digest(reads, self.data.writes_fingerprint()) == right;
        self.rows[row].timed = Some(match is_right {
            true => TimedOutputs::Right,
            false => TimedOutputs::Other(self.data.outputs()),
        });
    }

    /// What is to be known of calls of a row on a device.
    pub(super) fn figures(&mut self, row: usize) -> Option<Result<DeviceFigures, Fault>> {
        let Callable { routine, caller } = self.rows[row].callable.as_ref().ok()?;
        let data = self.data.as_mut();
        guard(|| routine.figures(data, caller)).ok().flatten()
    }

    /// One call of a row inside a range of the profiler's, named after the row.
    pub(super) fn profile(&mut self, row: usize) -> Result<(), Fault> {
        let variant = self.rows[row].variant;
        let callable = self.rows[row].callable.as_ref();
        let Callable { routine, caller } = callable.map_err(|r| Fault::Failed(r.clone()))?;
        let (name, data) = (full_name(self.kernel, variant, &self.size), self.data.as_mut());
        guard(|| routine.profile(data, caller, &name)).flatten()
    }

    /// Bytes that the data takes; outputs are kept twice.
    pub(super) fn bytes(&self) -> usize {
        self.data.read_bytes() + 2 * self.data.written_bytes()
    }

    /// Bytes that one call moves by default: every operand once, outputs once more when they are also read.
    pub(super) fn moved_bytes(&self) -> usize {
        let moved = self.data.read_bytes() + self.data.written_bytes();
        if self.kernel.in_place == InPlace::No { moved } else { moved + self.data.written_bytes() }
    }
}

/// Makes subjects, and keeps the pools that they share.
#[derive(Default)]
pub(super) struct Pools {
    by_threads: Vec<(usize, Arc<rayon::ThreadPool>)>,
}

impl Pools {
    /// Where calls of a row come from.
    fn caller(&mut self, threads: Option<usize>) -> Result<Caller, String> {
        let Some(threads) = threads else { return Ok(Caller::Outside) };
        if let Some((_, pool)) = self.by_threads.iter().find(|(of, _)| *of == threads) {
            return Ok(Caller::Pool(pool.clone()));
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| format!("a pool of {threads} threads cannot be built: {error}"))?;
        let pool = Arc::new(pool);
        self.by_threads.push((threads, pool.clone()));
        Ok(Caller::Pool(pool))
    }
}

/// The kernels of a registry by path and element type.
pub(super) struct Names<'r>(HashMap<(String, &'r str), &'r RegisteredKernel>);

impl<'r> Names<'r> {
    pub(super) fn of(registry: &'r Registry) -> Self {
        let key = |kernel: &RegisteredKernel| (kernel.entry.path(), kernel.entry.element);
        Names(registry.kernels.iter().map(|kernel| (key(kernel), kernel)).collect())
    }

    /// The kernel that a request names.
    pub(super) fn find(&self, cell: &CellRequest) -> Result<&'r RegisteredKernel, String> {
        let CellRequest { kernel, element, size, .. } = cell;
        let found = self.0.get(&(kernel.clone(), element.as_str())).ok_or_else(|| {
            format!("there is no kernel `{kernel}` for {element} in this program")
        })?;
        let axes = found.entry.axes;
        if axes.len() != size.len() {
            let (wanted, got) = (axes.len(), size.len());
            return Err(format!("the kernel `{kernel}` has {wanted} axes, and the size has {got}"));
        }
        Ok(found)
    }
}

/// Data and routines of one cell; an error says why the data cannot be made.
pub(super) fn subject(
    kernel: &RegisteredKernel,
    request: &CellRequest,
    seed: u64,
    (pools, devices): (&mut Pools, &mut Devices),
) -> Result<Subject, String> {
    let size = Size::of(request.size.clone());
    let mut data = guard(|| kernel.entry.definition.data(&size.values, seed))
        .map_err(|fault| format!("`inputs` of the kernel {fault}"))?;
    let rows = request.rows.iter().map(|row| subject_row(kernel, row, pools, devices));
    let rows: Vec<SubjectRow> = rows.collect::<Result<_, _>>()?;
    let is_cold = |(row, request): (&SubjectRow, &RowRequest)| {
        request.mode == Mode::Cold && row.variant.implementation.is_host()
    };
    if rows.iter().zip(&request.rows).any(is_cold) {
        data.chill();
    }
    Ok(Subject {
        kernel: kernel.entry,
        own_function: kernel.own_function(),
        size,
        data,
        rows,
        is_warm: false,
        turns: Vec::new(),
        reads: None,
    })
}

/// Starts the foreign workers of some cells side by side, and waits for them: they must not begin while others are measured.
pub(super) fn summon(kernels: &[&RegisteredKernel], cells: &[CellRequest]) {
    let mut foreign = Vec::new();
    for (kernel, cell) in kernels.iter().zip(cells) {
        let variants = cell.rows.iter().filter_map(|row| kernel.variant(&row.variant).ok());
        foreign.extend(variants.filter_map(|variant| variant.implementation.foreign()));
    }
    foreign.iter().for_each(|foreign| foreign.summon());
    foreign.iter().for_each(|foreign| foreign.await_ready());
}

/// Starts rayon's global pool if rows of some cells are called from outside of it: a row that leaves threads behind must not
/// keep others from having theirs.
pub(super) fn start_global_pool(kernels: &[&RegisteredKernel], cells: &[CellRequest]) {
    let enters = |kernel: &RegisteredKernel, row: &RowRequest| {
        let variant = kernel.variant(&row.variant).ok();
        row.threads.is_none() && variant.is_some_and(|v| v.backend == Backend::Parallel)
    };
    let mut cells = kernels.iter().zip(cells);
    if cells.any(|(kernel, cell)| cell.rows.iter().any(|row| enters(kernel, row))) {
        rayon::current_num_threads();
    }
}

fn subject_row(
    kernel: &RegisteredKernel,
    request: &RowRequest,
    pools: &mut Pools,
    devices: &mut Devices,
) -> Result<SubjectRow, String> {
    let variant = kernel.variant(&request.variant)?;
    let caller = match variant.implementation {
        Implementation::Host(_) => pools.caller(request.threads),
        Implementation::Device(_) => devices.caller(request.mode),
        Implementation::Foreign(foreign) => {
            if foreign.is_device() {
                devices.instruments().iter().for_each(|instruments| foreign.equip(instruments));
            }
            Ok(Caller::Foreign(request.mode, request.threads))
        }
    };
    let callable =
        caller.map(|caller| Callable { routine: variant.implementation.routine(), caller });
    let RowRequest { digest, checked_call, is_compared, .. } = *request;
    let timed = None;
    Ok(SubjectRow { variant, callable, digest, checked_call, timed, is_compared })
}
