//! Data of one size, and what should come out of it.

use super::{Origin, Reason, Wrong};
use crate::kernel::{Caller, CellData, Fault, KernelEntry, Outputs, Returned, VariantEntry, guard};
use crate::plan::Size;

/// Outputs with fewer elements than this may cancel to almost nothing by chance; their magnitude is then judged by a
/// second set of data as well.
const FEW_ELEMENTS: usize = 16;

/// Another seed, far from those of the exercises.
const OTHER_SEED: u64 = 0x5851_f42d_4c95_7f2d;

/// What should come out of some data.
#[derive(Clone, Debug)]
pub struct Expected {
    /// One vector for every `&mut` parameter, then the return value's.
    pub(super) parts: Vec<Vec<f64>>,
    /// The magnitude of every part, by which errors are measured.
    pub(super) scales: Vec<f64>,
    /// Work per output element: the length of a reduction.
    pub(super) terms: f64,
}

impl Expected {
    /// Elements of all outputs.
    pub(super) fn elements(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }
}

/// One size and seed at which a variant is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Trial {
    pub(super) size: Size,
    pub(super) seed: u64,
    pub(super) origin: Origin,
}

/// Data of one trial with what should come out of it, if anything can tell.
pub(super) struct Exercise {
    pub(super) data: Box<dyn CellData>,
    pub(super) expected: Option<Expected>,
    /// Digest of all that must not change.
    pub(super) reads: u64,
    /// Inputs that hold the same number throughout.
    pub(super) constant_inputs: Vec<usize>,
}

/// Where expected results come from: the kernel's reference, else its own function.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) kernel: &'static KernelEntry,
    pub(super) own_function: Option<&'static VariantEntry>,
    /// Where an own function that is a CUDA variant is called.
    pub(super) device: Option<Caller>,
}

impl Source {
    /// Makes data and finds out what should come out of it.
    pub(super) fn exercise(&self, trial: &Trial) -> Result<Exercise, Wrong> {
        let wrong = |reason| Wrong {
            reason,
            size: trial.size.name(self.kernel.axes),
            seed: trial.seed,
            origin: trial.origin,
        };
        let mut data = self.data(&trial.size, trial.seed).map_err(wrong)?;
        if data.overlaps() {
            return Err(wrong(Reason::Aliased));
        }
        let expected = self.expected(data.as_mut(), &trial.size, trial.seed).map_err(wrong)?;
        let reads = data.reads_fingerprint();
        // Listed sizes can be large, and tell no more.
        let is_looked_at = trial.origin == Origin::Awkward;
        let constant_inputs = if is_looked_at { data.constant_inputs() } else { Vec::new() };
        Ok(Exercise { data, expected, reads, constant_inputs })
    }

    /// What should come out of data that was made for a size from a seed; `None` when nothing here can tell.
    pub(super) fn expected(
        &self,
        data: &mut dyn CellData,
        size: &Size,
        seed: u64,
    ) -> Result<Option<Expected>, Reason> {
        let Some(outputs) = self.outputs(data)? else { return Ok(None) };
        let mut scales: Vec<f64> =
            outputs.parts.iter().map(|part| root_mean_square(part)).collect();
        if outputs.parts.iter().any(|part| part.len() < FEW_ELEMENTS) {
            let mut other = self.data(size, seed ^ OTHER_SEED)?;
            let other = self.outputs(other.as_mut())?.unwrap_or_default();
            for (scale, part) in scales.iter_mut().zip(&other.parts) {
                *scale = scale.max(root_mean_square(part));
            }
        }
        let work = self.work(size)?;
        let elements = outputs.parts.iter().map(Vec::len).sum::<usize>().max(1);
        // A reduction cannot be longer than its inputs, whatever `work` says. Counting them takes a while, and is not needed where
        // there are as many even if each has eight bytes.
        let longest = (work / elements as f64).max(1.0);
        let fewest = ((data.read_bytes() + data.written_bytes()) / size_of::<u64>()) as f64;
        let terms =
            if longest <= fewest { longest } else { longest.min(data.elements() as f64).max(1.0) };
        Ok(Some(Expected { parts: outputs.parts, scales, terms }))
    }

    fn work(&self, size: &Size) -> Result<f64, Reason> {
        let work = guard(|| self.kernel.definition.work(&size.values))
            .map_err(|fault| Reason::Definition { part: "`work`", fault })?;
        Ok(work.or(size.product().map(|product| product as f64)).unwrap_or(1.0))
    }

    fn data(&self, size: &Size, seed: u64) -> Result<Box<dyn CellData>, Reason> {
        guard(|| self.kernel.definition.data(&size.values, seed))
            .map_err(|fault| Reason::Definition { part: "`inputs`", fault })
    }

    fn outputs(&self, data: &mut dyn CellData) -> Result<Option<Outputs>, Reason> {
        let by_reference = guard(|| data.reference())
            .map_err(|fault| Reason::Definition { part: "the reference", fault })?;
        let (part, outputs) = match by_reference {
            Some(outputs) => ("the reference", outputs),
            None => {
                let Some(own) = self.own_function else { return Ok(None) };
                let caller = match &self.device {
                    Some(device) if own.implementation.is_device() => device,
                    None if own.implementation.is_device() => return Ok(None),
                    _ => &Caller::Outside,
                };
                data.reset();
                let returned = guard(|| own.implementation.routine().call(data, caller))
                    .flatten()
                    .map_err(|fault| match fault {
                        Fault::Declined(_) => Reason::Fault(fault),
                        fault => Reason::Definition { part: "the own function", fault },
                    })?;
                ("the own function", all_outputs(data, returned))
            }
        };
        match outputs.failure {
            Some(failure) => Err(Reason::Definition { part, fault: Fault::Failed(failure) }),
            None => Ok(Some(outputs)),
        }
    }
}

/// The `&mut` parameters after a call, and what it returned.
pub(super) fn all_outputs(data: &dyn CellData, returned: Returned) -> Outputs {
    let mut parts = data.outputs();
    parts.extend(returned.parts);
    Outputs { parts, failure: returned.failure }
}

/// Of the finite elements.
fn root_mean_square(elements: &[f64]) -> f64 {
    let (squares, count) = elements
        .iter()
        .filter(|element| element.is_finite())
        .fold((0.0, 0usize), |(squares, count), e| (squares + e * e, count + 1));
    (squares / count.max(1) as f64).sqrt()
}
