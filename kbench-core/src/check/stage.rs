//! The check stage: every row of a plan is admitted, found wrong, or skipped.

use std::collections::HashMap;

use super::{Check, Gate, Wrong};
use crate::kernel::{Implementation, VariantEntry, guard};
use crate::plan::{Cell, Plan, Row};
use crate::watch::{Stage, Watch};

/// At which sizes variants are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Checks all rows of a plan; the result has its shape.
pub fn check_plan(
    plan: &Plan,
    coverage: Coverage,
    seed: u64,
    watch: &mut dyn Watch,
) -> Vec<Vec<CheckedRow>> {
    let mut checked = Vec::with_capacity(plan.cells.len());
    let mut steps = Steps { watch, done: 0.0, total: plan.rows().count() as f64 };
    for cells in plan.cells.chunk_by(|a, b| std::ptr::eq(a.kernel, b.kernel)) {
        let mut bench = Bench {
            gate: Gate::new(cells[0].kernel, cells[0].own_function, seed),
            awkward: HashMap::new(),
            coverage,
        };
        for cell in cells {
            checked.push(bench.check_cell(cell, &mut steps));
        }
    }
    checked
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
struct Bench {
    gate: Gate,
    /// Awkward sizes are checked once per variant, whatever the number of listed sizes.
    awkward: HashMap<*const VariantEntry, Check>,
    coverage: Coverage,
}

impl Bench {
    fn check_cell(&mut self, cell: &Cell, steps: &mut Steps<'_>) -> Vec<CheckedRow> {
        // Thread counts make several rows of one variant; it is checked once.
        let mut of_variant: HashMap<*const VariantEntry, Check> = HashMap::new();
        let rows = cell
            .rows
            .iter()
            .inspect(|row| steps.begin(cell, row))
            .map(|row| match reason_to_skip(cell, row) {
                Some(reason) => CheckedRow { standing: Standing::Skipped(reason), check: None },
                None => {
                    let key: *const VariantEntry = row.variant;
                    let check =
                        of_variant.entry(key).or_insert_with(|| self.check_row(cell, row)).clone();
                    let standing = match &check.outcome {
                        Ok(()) => Standing::Admitted,
                        Err(wrong) => Standing::Wrong(wrong.clone()),
                    };
                    CheckedRow { standing, check: Some(check) }
                }
            })
            .collect();
        self.gate.forget(&cell.size);
        rows
    }

    fn check_row(&mut self, cell: &Cell, row: &Row) -> Check {
        let variant = row.variant;
        let gate = &mut self.gate;
        if self.coverage == Coverage::MoreSizes {
            return gate.check_size(variant, &cell.size);
        }
        let awkward = self.awkward.entry(variant).or_insert_with(|| gate.check_awkward(variant));
        let small = cell.size.product().is_some_and(|product| product <= SMALL);
        if awkward.outcome.is_err() || (self.coverage == Coverage::SmallSizes && !small) {
            return awkward.clone();
        }
        let mut check = gate.check_size(variant, &cell.size);
        check.remarks.extend(awkward.remarks.iter().copied());
        check.remarks.sort();
        check.remarks.dedup();
        if check.errors.is_none() {
            check.errors.clone_from(&awkward.errors);
        }
        check
    }
}

fn reason_to_skip(cell: &Cell, row: &Row) -> Option<String> {
    if row.ignored {
        let reason = row.variant.ignore.unwrap_or_default();
        let colon = if reason.is_empty() { "" } else { ": " };
        return Some(format!("ignored{colon}{reason}"));
    }
    if matches!(row.variant.implementation, Implementation::Device) {
        return Some("this version of kbench has no CUDA backend".to_owned());
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
