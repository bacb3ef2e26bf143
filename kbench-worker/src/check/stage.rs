//! The check stage: every row of a plan is admitted, found wrong, or skipped.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::patience::Spent;
use super::{Check, Gate, Reason, Remark, Tell, Wrong};
use crate::cuda::Unavailable;
use crate::kernel::{Caller, Fault, KernelEntry, Mode, VariantEntry, guard};
use crate::plan::{Cell, Plan, Row, Size};
use crate::value::Regime;
use crate::watch::Watch;

/// At which sizes variants are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// At awkward sizes and at every size that is to be measured; the larger ones as far as there is time.
    EverySize,
    /// The same in little time, when nothing is to be measured.
    Brief,
    /// The same whatever time it takes.
    Full,
    /// At every size that is to be measured, for variants that were checked at awkward sizes before.
    MoreSizes,
}

impl Coverage {
    /// Seconds that the listed sizes of a kernel may take.
    fn seconds(self) -> f64 {
        match self {
            Coverage::EverySize | Coverage::MoreSizes => 20.0,
            Coverage::Brief => 1.0,
            Coverage::Full => f64::INFINITY,
        }
    }
}

/// Whether a row may be measured.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It may.
    Admitted,
    /// Its results are wrong.
    Wrong(Wrong),
    /// It cannot or should not run here.
    Skipped(String),
}

/// A row with what the gate found.
#[derive(Clone, Debug)]
pub struct CheckedRow {
    /// Whether it may be measured.
    pub standing: Standing,
    /// The findings, when it was checked.
    pub check: Option<Check>,
}

impl CheckedRow {
    /// A row that is not run.
    pub fn skipped(reason: String) -> Self {
        CheckedRow { standing: Standing::Skipped(reason), check: None }
    }
}

/// A row is admitted, wrong, or declined where it cannot run for a reason that is no fault of its own.
impl From<Check> for CheckedRow {
    fn from(check: Check) -> Self {
        let standing = match &check.outcome {
            Ok(()) => Standing::Admitted,
            Err(Wrong { reason: Reason::Fault(Fault::Declined(reason)), .. }) => {
                return CheckedRow::skipped(reason.clone());
            }
            Err(wrong) => Standing::Wrong(wrong.clone()),
        };
        CheckedRow { standing, check: Some(check) }
    }
}

/// Whoever checks rows. Kernels can take their process along, or break the context of a device: that is no matter for a plan.
pub trait Checks {
    /// Checks the first row of every variant that is named by positions of its cell and of itself in the plan; gives what
    /// was found in the same order.
    fn check(
        &mut self,
        plan: &Plan,
        rows: &[(usize, usize)],
        coverage: Coverage,
        seed: u64,
        watch: &mut dyn Watch,
    ) -> Vec<CheckedRow>;
}

/// Checks all rows of a plan; the result has its shape.
pub fn check_plan(
    plan: &Plan,
    coverage: Coverage,
    seed: u64,
    device: &Result<(), Unavailable>,
    checks: &mut dyn Checks,
    watch: &mut dyn Watch,
) -> Vec<Vec<CheckedRow>> {
    let skipped = |cell: &Cell, row: &Row| reason_to_skip(cell, row, device);
    let of_cell = |cell: &Cell| -> Vec<Option<CheckedRow>> {
        cell.rows.iter().map(|row| skipped(cell, row).map(CheckedRow::skipped)).collect()
    };
    let mut checked: Vec<Vec<Option<CheckedRow>>> = plan.cells.iter().map(of_cell).collect();
    let waiting = firsts(plan, &checked);
    if !waiting.is_empty() {
        let found = checks.check(plan, &waiting, coverage, seed, watch);
        for ((cell, row), found) in waiting.into_iter().zip(found) {
            let variant = plan.cells[cell].rows[row].variant;
            for (other, place) in plan.cells[cell].rows.iter().zip(&mut checked[cell]) {
                if std::ptr::eq(other.variant, variant) && place.is_none() {
                    *place = Some(found.clone());
                }
            }
        }
    }
    let unheard = || CheckedRow::skipped("it was not checked".to_owned());
    checked
        .into_iter()
        .map(|c| c.into_iter().map(|r| r.unwrap_or_else(unheard)).collect())
        .collect()
}

/// The first row of every variant of a cell that waits to be checked: thread counts and modes make several rows of one
/// variant, which is checked once.
fn firsts(plan: &Plan, checked: &[Vec<Option<CheckedRow>>]) -> Vec<(usize, usize)> {
    let mut firsts = Vec::new();
    for (cell, rows) in checked.iter().enumerate() {
        let mut seen: HashSet<*const VariantEntry> = HashSet::new();
        for row in (0..rows.len()).filter(|row| rows[*row].is_none()) {
            let variant = plan.cells[cell].rows[row].variant;
            if seen.insert(variant) {
                firsts.push((cell, row));
            }
        }
    }
    firsts
}

/// The checks of one kernel.
pub struct Bench {
    gate: Gate,
    /// Awkward sizes are checked once per variant, whatever the number of listed sizes.
    awkward: HashMap<*const VariantEntry, Check>,
    /// Sizes at which variants passed, by their product.
    passed: HashMap<*const VariantEntry, BTreeMap<u64, Check>>,
    spent: Spent,
    coverage: Coverage,
}

impl Bench {
    /// Checks of a kernel in some regimes, or in all; CUDA variants are called on the given device.
    pub fn new(
        kernel: &'static KernelEntry,
        own_function: Option<&'static VariantEntry>,
        coverage: Coverage,
        seed: u64,
        device: Option<Caller>,
        regimes: Option<Vec<Regime>>,
    ) -> Self {
        let gate = Gate::new(kernel, own_function, seed).with_device(device).in_regimes(regimes);
        let (awkward, passed) = Default::default();
        Bench { gate, awkward, passed, spent: Spent::of(coverage.seconds()), coverage }
    }

    /// The same in a process that does nothing else.
    pub fn counting_threads(self, counts_threads: bool) -> Self {
        Bench { gate: self.gate.counting_threads(counts_threads), ..self }
    }

    /// Checks a variant at a size, and at awkward ones unless that was done before.
    pub fn check_row(
        &mut self,
        variant: &'static VariantEntry,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Check {
        if self.coverage == Coverage::MoreSizes {
            return self.check_size(variant, size, tell);
        }
        let gate = &mut self.gate;
        let awkward =
            self.awkward.entry(variant).or_insert_with(|| gate.check_awkward(variant, tell));
        // A variant that declines every awkward size may be defined at this one.
        let is_wrong = awkward.outcome.is_err() && !awkward.is_declined();
        let awkward = awkward.clone();
        if is_wrong {
            return awkward;
        }
        let mut check = self.check_size(variant, size, tell);
        check.remarks.extend(awkward.remarks);
        check.remarks.sort_unstable();
        check.remarks.dedup();
        check.coverage = awkward.coverage;
        check.mutations = check.mutations.or(awkward.mutations);
        // A filter may find nothing at one size.
        if check.errors.is_none() && awkward.errors.is_some() {
            check.unchecked = awkward.unchecked;
        }
        check
    }

    /// Checks a variant at a size, or takes what was found at the next smaller one where there is no time for it.
    fn check_size(
        &mut self,
        variant: &'static VariantEntry,
        size: &Size,
        tell: &mut Tell<'_>,
    ) -> Check {
        let product = size.product().unwrap_or(u64::MAX);
        let passed = self.passed.entry(variant).or_default();
        let smaller = passed.range(..product).next_back();
        if let Some((_, smaller)) = smaller.filter(|_| !self.spent.allows(size)) {
            let remarks = [&smaller.remarks[..], &[Remark::SmallerSize]].concat();
            let smaller = smaller.clone();
            return Check { remarks, errors: None, digest: None, checked_call: None, ..smaller };
        }
        let begun = Instant::now();
        let check = self.gate.check_size(variant, size, tell);
        self.spent.add(size, begun.elapsed().as_secs_f64());
        if check.outcome.is_ok() {
            passed.insert(product, check.clone());
        }
        check
    }

    /// Drops the data of a size that no other variant will be checked at.
    pub fn forget(&mut self, size: &Size) {
        self.gate.forget(size);
    }
}

fn reason_to_skip(cell: &Cell, row: &Row, device: &Result<(), Unavailable>) -> Option<String> {
    if row.ignored {
        let reason = row.variant.ignore.unwrap_or_default();
        let colon = if reason.is_empty() { "" } else { ": " };
        return Some(format!("ignored{colon}{reason}"));
    }
    if let (true, Err(reason)) = (row.variant.implementation.is_device(), device) {
        return Some(reason.to_string());
    }
    let Row { variant: VariantEntry { implementation, .. }, mode, .. } = row;
    if *mode == Mode::Cold && !implementation.is_device() && !implementation.is_host() {
        let reason = "cold caches of the processor are for variants in this program";
        return Some(reason.to_owned());
    }
    if guard(|| cell.kernel.definition.valid(&cell.size.values)) == Ok(false) {
        return Some("the kernel is not defined at this size, says its `valid`".to_owned());
    }
    if let Some(valid) = row.variant.valid
        && guard(|| (valid.holds)(&cell.size.values)) == Ok(false)
    {
        return Some(format!("the variant is only defined where {}", valid.text));
    }
    if cell.size.product().is_none() {
        return Some("the product of its axes does not fit in 64 bits".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::registry::fixtures::{Double, base, right, variant_of_double, wrong};

    /// A bench that has spent so many seconds at n = 16.
    fn bench(seconds: f64) -> Bench {
        let mut bench = Bench::new(Double::ENTRY, Some(base()), Coverage::EverySize, 1, None, None);
        bench.spent.add(&Size::of([16]), seconds);
        bench
    }

    #[test]
    fn a_size_for_which_there_is_no_time_has_the_check_of_a_smaller_one_and_says_so() {
        let (variant, sizes) =
            (variant_of_double("double", 1, right), [16, 1024].map(|n| Size::of([n])));
        for (seconds, is_of_size) in [(0.0, true), (100.0, false)] {
            let (mut bench, mut tried) = (bench(seconds), Vec::new());
            let checks = sizes.each_ref().map(|size| {
                bench.check_row(variant, size, &mut |attempt| tried.push(attempt.size))
            });
            assert!(checks.iter().all(|check| check.outcome.is_ok()), "{checks:?}");
            assert!(checks[0].is_of_size() && checks[0].digest.is_some(), "it has begun");
            assert_eq!(checks[1].is_of_size(), is_of_size, "{:?}", checks[1]);
            assert_eq!(checks[1].digest.is_some(), is_of_size);
            assert_eq!(tried.contains(&"n=1024".to_owned()), is_of_size, "{tried:?}");
        }
    }

    #[test]
    fn a_variant_that_passed_at_no_smaller_size_is_checked_however_long_it_takes() {
        let check = bench(100.0).check_row(base(), &Size::of([1024]), &mut |_| {});
        assert!(check.outcome.is_ok() && check.is_of_size(), "{check:?}");
        let wrong = variant_of_double("wrong", 2, wrong);
        let check = bench(100.0).check_row(wrong, &Size::of([1024]), &mut |_| {});
        assert!(check.outcome.is_err(), "{check:?}");
    }
}
