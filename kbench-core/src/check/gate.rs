//! Running the checks of one kernel.

use std::collections::HashMap;

use super::compare::{compare, default_tolerance};
use super::{Check, ErrorFigures, Reason, Remark, Wrong, awkward_sizes};
use crate::kernel::{
    Caller, Calls, CellData, Fault, Implementation, InPlace, KernelEntry, Outputs, Returned,
    Routine, VariantEntry, guard,
};
use crate::plan::Size;
use crate::value::Poison;

/// The checks of one kernel: data, expected results, and the rules by which variants are compared with them.
pub struct Gate {
    kernel: &'static KernelEntry,
    base: Option<&'static VariantEntry>,
    seed: u64,
    /// Data and expected results are made once and serve all variants.
    exercises: HashMap<(Size, u64), Result<Exercise, Wrong>>,
}

/// Data of one size with what should come out of it.
struct Exercise {
    data: Box<dyn CellData>,
    expected: Outputs,
    work: f64,
}

/// What the two calls of one exercise showed.
struct Finding {
    errors: Option<ErrorFigures>,
    deterministic: bool,
    zeros_pass: bool,
}

impl Gate {
    /// A gate for a kernel; `base` is its own function, which serves as reference when there is none.
    pub fn new(
        kernel: &'static KernelEntry,
        base: Option<&'static VariantEntry>,
        seed: u64,
    ) -> Self {
        Gate { kernel, base, seed, exercises: HashMap::new() }
    }

    /// Checks a variant at the awkward sizes, with two seeds each.
    pub fn check_awkward(&mut self, variant: &VariantEntry) -> Check {
        let sizes = match guard(|| awkward_sizes(self.kernel)) {
            Ok(sizes) => sizes,
            Err(fault) => {
                let reason = Reason::Definition { part: "`valid`", fault };
                return self.wrong(Wrong { reason, size: "any size".into(), seed: self.seed });
            }
        };
        let exercises: Vec<(Size, u64)> = sizes
            .into_iter()
            .flat_map(|size| [0, 1].map(|step| (size.clone(), self.seed.wrapping_add(step))))
            .collect();
        self.check(variant, &exercises)
    }

    /// Checks a variant at one size.
    pub fn check_size(&mut self, variant: &VariantEntry, size: &Size) -> Check {
        self.check(variant, &[(size.clone(), self.seed)])
    }

    /// Drops the data of a size that no other variant will be checked at.
    pub fn forget(&mut self, size: &Size) {
        self.exercises.remove(&(size.clone(), self.seed));
    }

    fn check(&mut self, variant: &VariantEntry, exercises: &[(Size, u64)]) -> Check {
        let Implementation::Host(routine) = variant.implementation else {
            unreachable!("the check stage is only given variants that this machine can run");
        };
        let routine = routine();
        let mut check = Check {
            outcome: Ok(()),
            errors: None,
            tolerance: variant.tolerance.or(self.kernel.tolerance).unwrap_or(0.0),
            remarks: Vec::new(),
        };
        let mut zeros_always_pass = !exercises.is_empty();
        for (size, seed) in exercises {
            match self.find(variant, routine.as_ref(), size, *seed) {
                Ok(finding) => {
                    zeros_always_pass &= finding.zeros_pass;
                    self.note(variant, &finding, &mut check);
                }
                Err(wrong) => {
                    check.outcome = Err(wrong);
                    return check;
                }
            }
        }
        if zeros_always_pass && !check.remarks.contains(&Remark::NothingToCompare) {
            check.remarks.push(Remark::WeakCheck);
        }
        check
    }

    /// Runs one exercise. After a mistake its data is not trusted any more.
    fn find(
        &mut self,
        variant: &VariantEntry,
        routine: &dyn Routine,
        size: &Size,
        seed: u64,
    ) -> Result<Finding, Wrong> {
        let key = (size.clone(), seed);
        let made = self.exercises.remove(&key);
        let mut exercise = made.unwrap_or_else(|| self.exercise(size, seed));
        let found = match &mut exercise {
            Err(wrong) => Err(wrong.clone()),
            Ok(exercise) => self.examine(variant, routine, exercise).map_err(|reason| Wrong {
                reason,
                size: size.name(self.kernel.axes),
                seed,
            }),
        };
        if found.is_ok() || exercise.is_err() {
            self.exercises.insert(key, exercise);
        }
        found
    }

    fn note(&self, variant: &VariantEntry, finding: &Finding, check: &mut Check) {
        let mut remark = |remark: Remark| {
            if !check.remarks.contains(&remark) {
                check.remarks.push(remark);
            }
        };
        if !finding.deterministic {
            remark(Remark::NotDeterministic);
        }
        if variant.is_base && self.kernel.reference.is_none() {
            remark(Remark::UnverifiedBase);
        }
        match &finding.errors {
            None => remark(Remark::NothingToCompare),
            Some(errors) => {
                if check.errors.as_ref().is_none_or(|worst| errors.norm >= worst.norm) {
                    check.tolerance = errors.tolerance;
                    check.errors = Some(errors.clone());
                }
            }
        }
    }

    /// Makes data and finds out what should come out of it.
    fn exercise(&self, size: &Size, seed: u64) -> Result<Exercise, Wrong> {
        let wrong = |part: &'static str| {
            let size = size.name(self.kernel.axes);
            move |fault| Wrong { reason: Reason::Definition { part, fault }, size, seed }
        };
        let definition = self.kernel.definition;
        let work = guard(|| definition.work(&size.values)).map_err(wrong("`work`"))?;
        let work = work.or(size.product().map(|product| product as f64)).unwrap_or(0.0);
        let mut data = guard(|| definition.data(&size.values, seed)).map_err(wrong("`inputs`"))?;
        if data.overlaps() {
            let size = size.name(self.kernel.axes);
            return Err(Wrong { reason: Reason::Aliased, size, seed });
        }
        let expected = self.expected(data.as_mut()).map_err(wrong("the reference"))?;
        if let Some(failure) = expected.failure {
            return Err(wrong("the reference")(Fault::Failed(failure)));
        }
        Ok(Exercise { data, expected, work })
    }

    /// What should come out: by the reference, else by the kernel's own function, else unknown and empty.
    fn expected(&self, data: &mut dyn CellData) -> Result<Outputs, Fault> {
        if let Some(expected) = guard(|| data.reference())? {
            return Ok(expected);
        }
        let Some(Implementation::Host(routine)) = self.base.map(|base| base.implementation) else {
            return Ok(Outputs::default());
        };
        data.reset();
        let returned = guard(|| routine().call(data, &Caller::Outside))?;
        Ok(outputs(data, returned))
    }

    /// Calls the variant twice and looks at everything it did.
    fn examine(
        &self,
        variant: &VariantEntry,
        routine: &dyn Routine,
        exercise: &mut Exercise,
    ) -> Result<Finding, Reason> {
        let before = exercise.data.reads_fingerprint();
        let first = self.call(routine, exercise, Poison::First)?;
        let second = self.call(routine, exercise, Poison::Second)?;
        if exercise.data.reads_fingerprint() != before {
            return Err(Reason::ChangedInput);
        }
        if let Some(reason) = self.unwritten(&first, &second) {
            return Err(reason);
        }
        let expected = &exercise.expected.parts;
        let elements: usize = expected.iter().map(Vec::len).sum();
        if elements == 0 && first.outputs.parts.iter().all(Vec::is_empty) {
            let deterministic = first.fingerprint == second.fingerprint;
            return Ok(Finding { errors: None, deterministic, zeros_pass: true });
        }
        let tolerance = self.tolerance(variant, first.roundoff, exercise.work, &exercise.expected);
        let names = self.kernel.outputs;
        let errors = compare(names, &first.outputs.parts, expected, tolerance)?;
        if !errors.pass() {
            return Err(Reason::Inexact { errors });
        }
        let deterministic = first.fingerprint == second.fingerprint;
        if !deterministic {
            let errors = compare(names, &second.outputs.parts, expected, tolerance)?;
            if !errors.pass() {
                return Err(Reason::Unstable { errors });
            }
        }
        let zeros: Vec<Vec<f64>> = expected.iter().map(|part| vec![0.0; part.len()]).collect();
        let zeros_pass = compare(names, &zeros, expected, tolerance).is_ok_and(|e| e.pass());
        Ok(Finding { errors: Some(errors), deterministic, zeros_pass })
    }

    fn call(
        &self,
        routine: &dyn Routine,
        exercise: &mut Exercise,
        poison: Poison,
    ) -> Result<Called, Reason> {
        let data = exercise.data.as_mut();
        self.prepare(data, poison);
        let returned = guard(|| routine.call(data, &Caller::Outside)).map_err(Reason::Fault)?;
        if let Some(failure) = returned.failure {
            return Err(Reason::Fault(Fault::Failed(failure)));
        }
        let fingerprint = data.writes_fingerprint() ^ returned.fingerprint.rotate_left(17);
        let roundoff = data.roundoff().max(returned.roundoff);
        let poisoned = data.poisoned(poison);
        Ok(Called { outputs: outputs(data, returned), poisoned, fingerprint, roundoff })
    }

    /// Positions that kept both patterns.
    fn unwritten(&self, first: &Called, second: &Called) -> Option<Reason> {
        if self.kernel.in_place != InPlace::No {
            return None;
        }
        first.poisoned.iter().zip(&second.poisoned).enumerate().find_map(|(part, (a, b))| {
            let mut both = a.iter().filter(|index| b.binary_search(index).is_ok()).peekable();
            let first = **both.peek()?;
            let output = self.kernel.outputs.get(part).copied().unwrap_or("output").to_owned();
            Some(Reason::Unwritten { output, count: both.count(), first })
        })
    }

    /// Checks a variant again on the very data that it was timed on, so that one that is right only once is found.
    ///
    /// The loop of the timing is used, for one call, with the outputs poisoned before it.
    pub fn recheck(&self, timed: Timed<'_>, work: f64) -> Result<(), Reason> {
        let after = |reason| Reason::AfterTiming(Box::new(reason));
        let fault = |fault| after(Reason::Fault(fault));
        let Timed { variant, routine, data, caller } = timed;
        let expected = self.expected(data).map_err(fault)?;
        let before = data.reads_fingerprint();
        self.prepare(data, Poison::First);
        guard(|| routine.sample(data, Calls::once(1), caller)).map_err(fault)?;
        let mut parts = data.outputs();
        self.prepare(data, Poison::Second);
        let returned = guard(|| routine.call(data, caller)).map_err(fault)?;
        if let Some(failure) = returned.failure {
            return Err(fault(Fault::Failed(failure)));
        }
        if data.reads_fingerprint() != before {
            return Err(after(Reason::ChangedInput));
        }
        let roundoff = data.roundoff().max(returned.roundoff);
        parts.extend(returned.parts);
        let tolerance = self.tolerance(variant, roundoff, work, &expected);
        let errors =
            compare(self.kernel.outputs, &parts, &expected.parts, tolerance).map_err(after)?;
        if errors.pass() { Ok(()) } else { Err(after(Reason::Inexact { errors })) }
    }

    fn prepare(&self, data: &mut dyn CellData, poison: Poison) {
        data.reset();
        if self.kernel.in_place == InPlace::No {
            data.poison(poison);
        }
    }

    fn tolerance(
        &self,
        variant: &VariantEntry,
        roundoff: f64,
        work: f64,
        expected: &Outputs,
    ) -> f64 {
        let elements: usize = expected.parts.iter().map(Vec::len).sum();
        variant
            .tolerance
            .or(self.kernel.tolerance)
            .unwrap_or_else(|| default_tolerance(roundoff, work, elements))
    }

    fn wrong(&self, wrong: Wrong) -> Check {
        Check { outcome: Err(wrong), errors: None, tolerance: 0.0, remarks: Vec::new() }
    }
}

/// A variant with the data that it was timed on.
pub struct Timed<'a> {
    /// The variant.
    pub variant: &'a VariantEntry,
    /// Its routine.
    pub routine: &'a dyn Routine,
    /// The data.
    pub data: &'a mut dyn CellData,
    /// From where it was called.
    pub caller: &'a Caller,
}

/// One call of a variant, as the gate sees it.
struct Called {
    outputs: Outputs,
    poisoned: Vec<Vec<usize>>,
    fingerprint: u64,
    roundoff: f64,
}

fn outputs(data: &dyn CellData, returned: Returned) -> Outputs {
    let mut parts = data.outputs();
    parts.extend(returned.parts);
    Outputs { parts, failure: returned.failure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::registry::tests::{Double, base, right, unwritten, variant_of_double, wrong};

    fn check(routine: fn() -> Box<dyn Routine>) -> Check {
        let mut gate = Gate::new(Double::ENTRY, Some(base()), 1);
        gate.check_awkward(variant_of_double("candidate", 5, routine))
    }

    #[test]
    fn a_right_variant_passes_without_remarks() {
        let check = check(right);
        assert!(check.outcome.is_ok(), "{:?}", check.outcome);
        assert_eq!(check.remarks, []);
        assert!(check.errors.expect("compared").norm < 1e-7);
    }

    #[test]
    fn a_wrong_element_is_named_with_its_error() {
        let text = check(wrong).outcome.expect_err("wrong").to_string();
        assert!(text.contains("worst `y`[") && text.contains("tolerance"), "{text}");
    }

    #[test]
    fn an_unwritten_element_is_named() {
        let text = check(unwritten).outcome.expect_err("wrong").to_string();
        assert!(
            text.contains("1 element(s) of `y` are never written, the first at index 2"),
            "{text}"
        );
        assert!(text.contains("n=3"), "{text}");
    }
}
