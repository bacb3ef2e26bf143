//! The check stage: every row of a plan is admitted, found wrong, or skipped.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Check, Gate, Reason, Wrong};
use crate::cuda::Unavailable;
use crate::kernel::{Caller, Fault, KernelEntry, VariantEntry, guard};
use crate::plan::{Cell, Plan, Row, Size};
use crate::watch::{Stage, Watch};

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

/// Whoever checks rows that run on a device: code that can break a context is not called in this process.
pub trait DeviceChecks {
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

/// The device, as the check stage sees it.
pub struct Devices<'a> {
    /// Why there is none, if so.
    pub available: Result<(), Unavailable>,
    /// Who checks what runs there.
    pub checks: &'a mut dyn DeviceChecks,
}

/// Checks nothing, where there is no device.
impl DeviceChecks for () {
    fn check(
        &mut self,
        _: &Plan,
        _: &[(usize, usize)],
        _: Coverage,
        _: u64,
        _: &mut dyn Watch,
    ) -> Vec<CheckedRow> {
        Vec::new()
    }
}

/// Checks all rows of a plan; the result has its shape.
pub fn check_plan(
    plan: &Plan,
    coverage: Coverage,
    seed: u64,
    devices: &mut Devices<'_>,
    watch: &mut dyn Watch,
) -> Vec<Vec<CheckedRow>> {
    let mut checked: Vec<Vec<Option<CheckedRow>>> = Vec::with_capacity(plan.cells.len());
    let total = plan.rows().count() as f64;
    let mut steps = Steps { watch: &mut *watch, done: 0.0, total };
    for cells in plan.cells.chunk_by(|a, b| std::ptr::eq(a.kernel, b.kernel)) {
        let mut bench = Bench::new(cells[0].kernel, cells[0].own_function, coverage, seed, None);
        for cell in cells {
            checked.push(bench.check_cell(cell, &devices.available, &mut steps));
        }
    }
    let waiting: Vec<(usize, usize)> = firsts_of_device(plan, &checked);
    if !waiting.is_empty() {
        let found = devices.checks.check(plan, &waiting, coverage, seed, watch);
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

/// The first row of every variant that waits for a device.
fn firsts_of_device(plan: &Plan, checked: &[Vec<Option<CheckedRow>>]) -> Vec<(usize, usize)> {
    let mut firsts = Vec::new();
    for (cell, rows) in checked.iter().enumerate() {
        let mut seen: Vec<*const VariantEntry> = Vec::new();
        for row in (0..rows.len()).filter(|row| rows[*row].is_none()) {
            let variant: *const VariantEntry = plan.cells[cell].rows[row].variant;
            if !seen.contains(&variant) {
                seen.push(variant);
                firsts.push((cell, row));
            }
        }
    }
    firsts
}

/// Tells how many rows are done.
struct Steps<'a> {
    watch: &'a mut dyn Watch,
    done: f64,
    total: f64,
}

impl Steps<'_> {
    fn begin(&mut self, cell: &Cell, row: &Row) {
        self.watch.step(Stage::Checking, self.done, self.total, &cell.row_name(row));
        self.done += 1.0;
    }
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

    /// What is found here; none for rows that wait for a device.
    fn check_cell(
        &mut self,
        cell: &Cell,
        device: &Result<(), Unavailable>,
        steps: &mut Steps<'_>,
    ) -> Vec<Option<CheckedRow>> {
        // Thread counts make several rows of one variant; it is checked once.
        let mut of_variant: HashMap<*const VariantEntry, Check> = HashMap::new();
        let rows = cell
            .rows
            .iter()
            .inspect(|row| steps.begin(cell, row))
            .map(|row| match reason_to_skip(cell, row, device) {
                Some(reason) => Some(CheckedRow::skipped(reason)),
                None if row.variant.implementation.is_device() => None,
                None => {
                    let key: *const VariantEntry = row.variant;
                    let check = of_variant
                        .entry(key)
                        .or_insert_with(|| self.check_row(row.variant, &cell.size));
                    Some(check.clone().into())
                }
            })
            .collect();
        self.forget(&cell.size);
        rows
    }

    /// Checks a variant at a size, and at awkward ones unless that was done before.
    pub fn check_row(&mut self, variant: &'static VariantEntry, size: &Size) -> Check {
        let gate = &mut self.gate;
        if self.coverage == Coverage::MoreSizes {
            return gate.check_size(variant, size);
        }
        let awkward = self.awkward.entry(variant).or_insert_with(|| gate.check_awkward(variant));
        let small = size.product().is_some_and(|product| product <= SMALL);
        if awkward.outcome.is_err() || (self.coverage == Coverage::SmallSizes && !small) {
            return awkward.clone();
        }
        let mut check = gate.check_size(variant, size);
        check.remarks.extend(awkward.remarks.iter().copied());
        check.remarks.sort();
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
