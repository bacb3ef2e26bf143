//! Data of one size, and what should come out of it.

use super::sensitivity::spread;
use super::{Attempt, Circumstance, Origin, Part, Reason, Wrong};
use crate::kernel::{Caller, CellData, Fault, KernelEntry, Outputs, Returned, VariantEntry, guard};
use crate::plan::Size;
use crate::value::{Draw, Regime, limits};

/// Outputs with fewer elements than this may cancel to almost nothing by chance; their magnitude is then judged by other sets of
/// data as well.
pub(super) const FEW_ELEMENTS: usize = 16;

/// How many other sets; fewer of many numbers, which take time and whose sums vary less.
const OTHER_SETS: u64 = 3;
const OTHER_LARGE_SETS: u64 = 1;
const MANY_NUMBERS: u64 = 1 << 20;

/// The share of the largest element by which errors of the others are measured.
const OUTSTANDING: f64 = 0.05;

/// Another seed, far from those of the exercises.
const OTHER_SEED: u64 = 0x5851_f42d_4c95_7f2d;

/// What should come out of some data.
#[derive(Clone, Debug)]
pub struct Expected {
    /// What the parts are called.
    pub(super) names: Vec<String>,
    /// One vector for every `&mut` parameter or field of one, then the return value's.
    pub(super) parts: Vec<Vec<f64>>,
    /// By how much these are more than `f64` holds, where their type is wider.
    pub(super) rests: Vec<Vec<f64>>,
    /// The magnitude of every part, by which errors are measured.
    pub(super) scales: Vec<f64>,
    /// By how much its elements change when inputs do in their last places, where that was tried.
    pub(super) spread: Option<Spread>,
    /// On how many inputs an element of every part may depend in this data, where that is more than at its size in general; or
    /// nothing.
    pub(super) terms: Vec<f64>,
}

/// By how much results change when inputs do in their last places.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// Of every element.
    pub(super) parts: Vec<Vec<f64>>,
    /// The root of the mean square of every part.
    pub(super) roots: Vec<f64>,
}

impl Expected {
    /// Elements of all outputs.
    pub(super) fn elements(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// What a part is called.
    pub(super) fn name(&self, part: usize) -> &str {
        self.names.get(part).map_or("output", String::as_str)
    }

    /// By how much an output changes when inputs do in their last places, relative to its magnitude.
    pub(super) fn condition(&self, part: usize) -> f64 {
        let root = self.spread.as_ref().map_or(0.0, |spread| spread.roots[part]);
        if root > 0.0 && self.scales[part] > 0.0 { root / self.scales[part] } else { 0.0 }
    }

    /// Measures errors by what are numbers of types with such round-offs.
    pub(super) fn scale_by_numbers(&mut self, regime: Regime, roundoffs: &[f64]) {
        for ((scale, part), roundoff) in self.scales.iter_mut().zip(&self.parts).zip(roundoffs) {
            let largest = regime.largest_result(*roundoff);
            let mut numbers = part.clone();
            numbers.retain(|element| element.abs() <= largest);
            if numbers.len() < part.len() {
                *scale = root_mean_square(&numbers);
            }
            // One element that is far larger than all others leaves its rounding errors in them.
            let farthest = numbers.iter().fold(0.0f64, |all, element| all.max(element.abs()));
            *scale = scale.max(farthest * OUTSTANDING);
        }
    }

    /// Whether all elements of an output, or some of them, are numbers of a type with such a round-off: finite, and not below its
    /// smallest normal number.
    pub(super) fn is_representable(
        &self,
        part: usize,
        (roundoff, regime): (f64, Regime),
        some: bool,
    ) -> bool {
        let ([smallest, _], largest) = (limits(roundoff), regime.largest_result(roundoff));
        let (scale, is_exact) = (self.scales[part], roundoff == 0.0);
        let mut elements = self.parts[part].iter();
        let fits = |element: &f64| element.abs() <= largest;
        let do_fit = if some { elements.any(fits) } else { elements.all(fits) };
        let is_empty = self.parts[part].is_empty();
        (do_fit || is_empty) && (is_exact || scale == 0.0 || scale >= smallest)
    }
}

/// One size and seed at which a variant is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Trial {
    pub(super) size: Size,
    pub(super) seed: u64,
    pub(super) origin: Origin,
    pub(super) regime: Regime,
}

impl Trial {
    /// What is about to be called in it.
    pub(super) fn attempt(&self, kernel: &KernelEntry, part: Part) -> Attempt {
        Attempt {
            part,
            size: self.size.name(kernel.axes),
            seed: self.seed,
            origin: self.origin,
            circumstance: Circumstance::of(self.regime),
        }
    }

    /// The same when something else is special about the call.
    pub(super) fn attempt_in(
        &self,
        kernel: &KernelEntry,
        part: Part,
        circumstance: Circumstance,
    ) -> Attempt {
        Attempt { circumstance, ..self.attempt(kernel, part) }
    }

    /// What is wrong in it.
    pub(super) fn wrong(&self, kernel: &KernelEntry, reason: Reason) -> Wrong {
        Wrong {
            reason,
            size: self.size.name(kernel.axes),
            seed: self.seed,
            origin: self.origin,
            circumstance: Circumstance::of(self.regime),
        }
    }

    /// The same when something else is special about the call.
    pub(super) fn wrong_in(
        &self,
        kernel: &KernelEntry,
        reason: Reason,
        circumstance: Circumstance,
    ) -> Box<Wrong> {
        Box::new(Wrong { circumstance, ..self.wrong(kernel, reason) })
    }
}

/// The length of a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) terms: f64,
    /// Whether the author says so.
    pub(super) is_given: bool,
}

/// Data of one trial with what should come out of it, if anything can tell.
pub(super) struct Exercise {
    pub(super) data: Box<dyn CellData>,
    pub(super) expected: Option<Expected>,
    /// Digest of all that must not change.
    pub(super) reads: u64,
    /// Digest of the outputs as they were made.
    pub(super) initial: u64,
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
        let wrong = |reason| trial.wrong(self.kernel, reason);
        let mut data = self.data(trial).map_err(wrong)?;
        if data.overlaps() {
            return Err(wrong(Reason::Aliased));
        }
        // Listed sizes can be large, and tell no more.
        let is_looked_at = trial.origin == Origin::Awkward;
        let initial = if is_looked_at { data.writes_fingerprint() } else { 0 };
        let mut expected = self.expected(data.as_mut(), trial).map_err(wrong)?;
        let reads = data.reads_fingerprint();
        let constant_inputs = match trial.regime {
            Regime::Usual if is_looked_at => data.constant_inputs(),
            _ => Vec::new(),
        };
        if let (true, Some(expected)) = (is_looked_at, &mut expected) {
            let spread = spread(self, trial, &expected.parts);
            expected.spread = spread.map(|parts| Spread {
                roots: parts.iter().map(|part| root_mean_square(part)).collect(),
                parts,
            });
        }
        Ok(Exercise { data, expected, reads, initial, constant_inputs })
    }

    /// What should come out of the data of a trial; `None` when nothing here can tell.
    pub(super) fn expected(
        &self,
        data: &mut dyn CellData,
        trial: &Trial,
    ) -> Result<Option<Expected>, Reason> {
        let Some(outputs) = self.outputs(data)? else { return Ok(None) };
        let mut scales: Vec<f64> =
            outputs.parts.iter().map(|part| root_mean_square(part)).collect();
        if outputs.parts.iter().any(|part| part.len() < FEW_ELEMENTS) {
            let is_large = trial.size.product() >= Some(MANY_NUMBERS);
            for set in 1..=if is_large { OTHER_LARGE_SETS } else { OTHER_SETS } {
                let seed = trial.seed ^ OTHER_SEED.wrapping_mul(set);
                let mut other = self.data(&Trial { seed, ..trial.clone() })?;
                let other = self.outputs(other.as_mut())?.unwrap_or_default();
                for (scale, part) in scales.iter_mut().zip(&other.parts) {
                    *scale = scale.max(root_mean_square(part));
                }
            }
        }
        let mut names = self.kernel.names_of_written(&data.output_fields());
        names.extend(self.kernel.names_of_returned(&outputs.fields));
        let Outputs { parts, rests, .. } = outputs;
        Ok(Some(Expected { names, parts, rests, scales, spread: None, terms: Vec::new() }))
    }

    /// Inputs per output element, as `work` or the size says; no more than there are.
    pub(super) fn terms(&self, size: &Size, elements: usize, inputs: usize) -> Terms {
        let given = guard(|| self.kernel.definition.work(&size.values)).ok().flatten();
        let work = given.or(size.product().map(|product| product as f64)).unwrap_or(1.0);
        let terms = (work / elements.max(1) as f64).min(inputs as f64).max(1.0);
        Terms { terms, is_given: given.is_some() }
    }

    pub(super) fn data(&self, trial: &Trial) -> Result<Box<dyn CellData>, Reason> {
        let Trial { size, seed, regime, .. } = trial;
        self.drawn(Draw { regime: *regime, ..Draw::of(*seed) }, size)
    }

    pub(super) fn drawn(&self, draw: Draw, size: &Size) -> Result<Box<dyn CellData>, Reason> {
        guard(|| self.kernel.definition.data_of(draw, &size.values))
            .map_err(|fault| Reason::Definition { part: "`inputs`", fault })
    }

    pub(super) fn outputs(&self, data: &mut dyn CellData) -> Result<Option<Outputs>, Reason> {
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
    let (mut parts, mut rests) = (data.outputs(), data.output_rests());
    parts.extend(returned.parts);
    rests.extend(returned.rests);
    Outputs { parts, rests, fields: returned.fields, failure: returned.failure }
}

/// Of the finite elements.
fn root_mean_square(elements: &[f64]) -> f64 {
    let finite = || elements.iter().filter(|element| element.is_finite());
    // Squares of the largest numbers overflow, and those of the smallest underflow.
    let largest = finite().fold(0.0f64, |largest, element| largest.max(element.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let (squares, count) = finite()
        .fold((0.0, 0usize), |(squares, count), e| (squares + (e / largest).powi(2), count + 1));
    largest * (squares / count as f64).sqrt()
}
