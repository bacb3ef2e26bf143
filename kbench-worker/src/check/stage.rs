//! The check stage: every row of a plan is admitted, found wrong, or skipped.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{Check, Gate, Reason, Tell, Wrong};
use crate::cuda::Unavailable;
use crate::kernel::{Caller, Fault, KernelEntry, VariantEntry, guard};
use crate::plan::{Cell, Plan, Row, Size};
use crate::watch::Watch;

/// At which sizes variants are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// At awkward sizes and at every size that is to be measured.
    EverySize,
    /// At awkward sizes, and at listed sizes only when they are small.
    SmallSizes,
    /// At every size that is to be measured, for variants that were checked at awkward sizes before.
    MoreSizes,
}

/// A listed size with at most this product of axes is small.
const SMALL: u64 = 1 << 16;

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

/// Checks all rows of a plan; the result has its shape. Those on a device come last: its sources are compiled then.
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
    for is_device in [false, true] {
        let waiting = firsts(plan, &checked, is_device);
        if waiting.is_empty() {
            continue;
        }
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

/// The first row of every variant of a cell that runs on a device, or does not, and waits to be checked: thread counts and
/// modes make several rows of one variant, which is checked once.
fn firsts(
    plan: &Plan,
    checked: &[Vec<Option<CheckedRow>>],
    is_device: bool,
) -> Vec<(usize, usize)> {
    let mut firsts = Vec::new();
    for (cell, rows) in checked.iter().enumerate() {
        let mut seen: HashSet<*const VariantEntry> = HashSet::new();
        for row in (0..rows.len()).filter(|row| rows[*row].is_none()) {
            let variant = plan.cells[cell].rows[row].variant;
            if variant.implementation.is_device() == is_device && seen.insert(variant) {
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
    coverage: Coverage,
}

impl Bench {
    /// Checks of a kernel; CUDA variants are called on the given device.
    pub fn new(
        kernel: &'static KernelEntry,
        own_function: Option<&'static VariantEntry>,
        coverage: Coverage,
        seed: u64,
        device: Option<Caller>,
    ) -> Self {
        let gate = Gate::new(kernel, own_function, seed).with_device(device);
        Bench { gate, awkward: HashMap::new(), coverage }
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
        let gate = &mut self.gate;
        if self.coverage == Coverage::MoreSizes {
            return gate.check_size(variant, size, tell);
        }
        let awkward =
            self.awkward.entry(variant).or_insert_with(|| gate.check_awkward(variant, tell));
        let small = size.product().is_some_and(|product| product <= SMALL);
        // A variant that declines every awkward size may be defined at this one.
        let is_wrong = awkward.outcome.is_err() && !awkward.is_declined();
        if is_wrong || (self.coverage == Coverage::SmallSizes && !small) {
            return awkward.clone();
        }
        let mut check = gate.check_size(variant, size, tell);
        check.remarks.extend(awkward.remarks.iter().copied());
        check.remarks.sort_unstable();
        check.remarks.dedup();
        if check.errors.is_none() {
            check.errors.clone_from(&awkward.errors);
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
