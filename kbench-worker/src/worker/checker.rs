//! The worker's side of checks: compares rows one after the other, and says what comes next before it is called.

use std::collections::HashSet;

use super::answer::announce;
use super::devices::Workshop;
use super::protocol::{CheckRequest, CheckedReply, PROTOCOL, Place, Reply, WrongReply};
use super::subject::{Names, summon};
use super::watchdog::Vigil;
use crate::check::{Bench, Check, ErrorFigures, Reason, Wrong};
use crate::kernel::{Fault, KernelEntry, Mode, VariantEntry};
use crate::plan::Size;
use crate::registry::RegisteredKernel;

impl CheckedReply {
    fn of(place: Place, check: Check) -> Self {
        // A foreign worker that is gone says nothing about the size.
        let is_fault = |reason: &Reason| match reason {
            Reason::Fault(fault) => !fault.ends(),
            reason => matches!(reason, Reason::Definition { .. }),
        };
        let mut reply = CheckedReply {
            place,
            remarks: check.remarks,
            unchecked: check.unchecked,
            mutations: check.mutations,
            coverage: check.coverage,
            digest: check.digest,
            checked_call: check.checked_call,
            ..CheckedReply::default()
        };
        // JSON knows no infinity; what is that far off is told in words.
        let finite =
            |e: &ErrorFigures| [e.norm, e.maximum, e.tolerance].into_iter().all(f64::is_finite);
        reply.errors = check.errors.filter(finite).map(|errors| ErrorFigures {
            worst: errors.worst.filter(|w| w.got.is_finite() && w.expected.is_finite()),
            ..errors
        });
        match check.outcome {
            Ok(()) => {}
            Err(Wrong { reason: Reason::Fault(Fault::Declined(reason)), .. }) => {
                reply.declined = Some(reason);
            }
            Err(Wrong { reason, size, seed, origin, circumstance }) => {
                let is_fault = is_fault(&reason);
                // Who left threads behind leaves them to no other row, and a foreign worker that is gone had their data.
                reply.ends = match &reason {
                    Reason::LeftThreads { .. } => true,
                    Reason::Fault(fault) => fault.ends(),
                    _ => false,
                };
                let reason = reason.to_string();
                reply.wrong =
                    Some(WrongReply { reason, is_fault, size, seed, origin, circumstance });
            }
        }
        reply
    }
}

/// Rounds in which sources of CUDA variants are put off: each finds those that the sources of the former one kept hidden,
/// which are few. After them every source is compiled when it is asked for.
const MOST_ROUNDS: usize = 3;

/// Does what a request asks for; an error says why it makes no sense.
pub(super) fn check(
    names: &Names<'_>,
    workshop: &mut dyn Workshop,
    vigil: &Vigil,
    request: &CheckRequest,
    say: &mut dyn FnMut(Reply),
) -> Result<(), String> {
    if request.protocol != PROTOCOL {
        return Err(format!(
            "the controller speaks version {} of the protocol, this worker {PROTOCOL}",
            request.protocol
        ));
    }
    let kernels: Vec<_> =
        request.cells.iter().map(|cell| names.find(cell)).collect::<Result<_, _>>()?;
    summon(&kernels, &request.cells);
    let (bench, device_kernels) = (None, Vec::new());
    let mut checker = Checker { kernels, request, workshop, vigil, bench, device_kernels, say };
    let outcome = checker.all_rows();
    workshop.collect_sources(false);
    outcome
}

/// The checks of one request.
struct Checker<'a> {
    request: &'a CheckRequest,
    /// The kernels of its cells.
    kernels: Vec<&'a RegisteredKernel>,
    workshop: &'a mut dyn Workshop,
    vigil: &'a Vigil,
    /// Of one kernel at a time, whose cells follow each other: it keeps its data on the device, and all that is there is looked at
    /// after every call.
    bench: Option<(&'a KernelEntry, Bench)>,
    /// Kernels with rows on the device: it is opened for them and for no other.
    device_kernels: Vec<*const KernelEntry>,
    say: &'a mut dyn FnMut(Reply),
}

/// What came of a row.
enum Answer {
    /// It was checked.
    Checked,
    /// It was checked, and the process is of no use any more.
    Last,
    /// It waits for a source.
    PutOff,
}

impl Checker<'_> {
    /// Checks all rows, and before them one of every CUDA variant, so that all sources are compiled together.
    fn all_rows(&mut self) -> Result<(), String> {
        let mut waiting = Vec::new();
        for (cell, wanted) in self.request.cells.iter().enumerate() {
            waiting.extend((0..wanted.rows.len()).map(|row| Place { cell, row: Some(row) }));
        }
        let firsts = self.first_of_device_variants(&waiting)?;
        let Some(checked) = self.compile_sources(firsts)? else { return Ok(()) };
        waiting.retain(|place| !checked.contains(place));
        for cell in waiting.chunk_by(|a, b| a.cell == b.cell) {
            for place in cell {
                if self.vigil.is_stopping() || matches!(self.row(*place, false)?, Answer::Last) {
                    return Ok(()); // the rest is for another process
                }
            }
            let Place { cell, .. } = cell[0];
            let size = Size::of(self.request.cells[cell].size.clone());
            self.giving_back(cell, |checker| {
                if let Some((_, bench)) = &mut checker.bench {
                    bench.forget(&size);
                }
            });
        }
        self.close_bench();
        Ok(())
    }

    /// The first row of every CUDA variant. Notes the kernels that have one.
    fn first_of_device_variants(&mut self, places: &[Place]) -> Result<Vec<Place>, String> {
        let (mut firsts, mut seen) = (Vec::new(), HashSet::new());
        for place in places {
            let variant = self.variant(*place)?;
            if variant.implementation.is_device() && seen.insert(std::ptr::from_ref(variant)) {
                firsts.push(*place);
                let kernel = std::ptr::from_ref(self.kernels[place.cell].entry);
                if !self.device_kernels.contains(&kernel) {
                    self.device_kernels.push(kernel);
                }
            }
        }
        Ok(firsts)
    }

    /// Checks some rows as far as their sources allow, and compiles those that are missing, side by side. Gives the rows that
    /// are checked; none where the process is of no use any more.
    fn compile_sources(&mut self, mut waiting: Vec<Place>) -> Result<Option<Vec<Place>>, String> {
        let mut checked = Vec::new();
        let rounds = if self.request.together { MOST_ROUNDS } else { 0 };
        for _ in 0..rounds {
            let mut put_off = Vec::new();
            for place in waiting {
                if self.vigil.is_stopping() {
                    return Ok(None);
                }
                match self.row(place, true)? {
                    Answer::Checked => checked.push(place),
                    Answer::Last => return Ok(None),
                    Answer::PutOff => put_off.push(place),
                }
            }
            if put_off.is_empty() {
                break;
            }
            waiting = put_off;
            let Checker { workshop, say, .. } = self;
            workshop.compile_collected(&mut |done, total| say(Reply::Compiling { done, total }));
        }
        Ok(Some(checked))
    }

    /// Gives back what is kept of a kernel.
    fn close_bench(&mut self) {
        if let Some((kernel, _)) = self.bench {
            let cells = self.kernels.iter().rposition(|known| std::ptr::eq(known.entry, kernel));
            self.giving_back(cells.unwrap_or_default(), |checker| checker.bench = None);
        }
    }

    /// Gives something back: where a kernel has written beside what was its own, the process ends now, if it does.
    fn giving_back(&mut self, cell: usize, give_back: impl FnOnce(&mut Self)) {
        announce(self.vigil, Place { cell, row: None }, self.say);
        give_back(self);
        (self.say)(Reply::Called);
    }

    fn row(&mut self, place: Place, is_collecting: bool) -> Result<Answer, String> {
        let (kernel, variant) = (self.kernels[place.cell], self.variant(place)?);
        if self.bench.as_ref().is_some_and(|(of, _)| !std::ptr::eq(*of, kernel.entry)) {
            self.close_bench();
        }
        announce(self.vigil, place, self.say);
        let is_device = variant.implementation.is_device();
        let device = self
            .device_kernels
            .contains(&std::ptr::from_ref(kernel.entry))
            .then(|| self.workshop.caller(Mode::Hot))
            .transpose();
        self.workshop.collect_sources(is_collecting);
        let reply = match device {
            Err(reason) if is_device => {
                CheckedReply { place, declined: Some(reason), ..CheckedReply::default() }
            }
            device => {
                let CheckRequest { coverage, seed, cells, regimes, .. } = self.request;
                let (_, bench) = self.bench.get_or_insert_with(|| {
                    let (own, device) = (kernel.own_function(), device.ok().flatten());
                    let regimes = regimes.clone();
                    let bench = Bench::new(kernel.entry, own, *coverage, *seed, device, regimes);
                    (kernel.entry, bench.counting_threads(self.vigil.is_of_process()))
                });
                let size = Size::of(cells[place.cell].size.clone());
                let say = &mut *self.say;
                let check =
                    bench.check_row(variant, &size, &mut |attempt| say(Reply::Trying(attempt)));
                if self.workshop.has_put_off() && self.workshop.lost().is_none() {
                    // What was found of the variant, or of the own function, is about the source alone.
                    self.bench = None;
                    return Ok(Answer::PutOff);
                }
                CheckedReply::of(place, check)
            }
        };
        let ends = reply.ends || self.workshop.lost().is_some();
        (self.say)(Reply::Checked(CheckedReply { ends, ..reply }));
        Ok(if ends { Answer::Last } else { Answer::Checked })
    }

    fn variant(&self, Place { cell, row }: Place) -> Result<&'static VariantEntry, String> {
        let row = &self.request.cells[cell].rows[row.unwrap_or_default()];
        self.kernels[cell].variant(&row.variant)
    }
}
