//! Which rows a worker has: the numbers in its requests and replies, and what they are in the plan.

use super::Measured;
use crate::check::{Check, CheckedRow};
use crate::plan::{Cell, Plan};
use crate::worker::{Block, CellRequest, Program, RowRequest, Sample, VisitRow};

/// The cells of one worker, in the order of its requests.
#[derive(Clone, Debug)]
pub(super) struct Roster {
    pub(super) cells: Vec<RosterCell>,
}

/// One cell of a worker.
#[derive(Clone, Debug)]
pub(super) struct RosterCell {
    /// Index in the plan.
    pub(super) cell: usize,
    /// Indices of its rows in the plan's cell; those beyond its end are the same rows of an older program.
    pub(super) rows: Vec<usize>,
}

impl Roster {
    /// The cells as a worker knows them: by name, with what checks found.
    pub(super) fn requests(&self, plan: &Plan, checked: &[Vec<CheckedRow>]) -> Vec<CellRequest> {
        let request = |RosterCell { cell, rows }: &RosterCell| {
            let Cell { kernel, size, rows: planned, .. } = &plan.cells[*cell];
            let row = |row: &usize| {
                let is_now = *row < planned.len();
                let planned = plan.cells[*cell].row_at(*row);
                let check = checked[*cell].get(*row).and_then(|checked| checked.check.as_ref());
                RowRequest {
                    variant: planned.variant.name.to_owned(),
                    threads: planned.threads,
                    mode: planned.mode,
                    digest: check.and_then(|check| check.digest),
                    checked_call: check.and_then(|check| check.checked_call),
                    is_compared: check.is_none_or(Check::is_of_size),
                    program: if is_now { Program::Now } else { Program::Past },
                }
            };
            CellRequest {
                kernel: kernel.path(),
                element: kernel.element.to_owned(),
                size: size.values.clone(),
                rows: rows.iter().map(row).collect(),
            }
        };
        self.cells.iter().map(request).collect()
    }

    /// Every row as indices of its cell and itself in the plan.
    pub(super) fn rows(&self) -> Vec<(usize, usize)> {
        let of_cell = |RosterCell { cell, rows }: &RosterCell| {
            rows.iter().map(|row| (*cell, *row)).collect::<Vec<_>>()
        };
        self.cells.iter().flat_map(of_cell).collect()
    }

    /// The n-th row of every cell that has as many.
    pub(super) fn only(&self, n: usize) -> Roster {
        let only = |RosterCell { cell, rows }: &RosterCell| {
            Some(RosterCell { cell: *cell, rows: vec![*rows.get(n)?] })
        };
        Roster { cells: self.cells.iter().filter_map(only).collect() }
    }

    /// Index of a cell in the plan.
    pub(super) fn cell(&self, position: usize) -> Option<usize> {
        Some(self.cells.get(position)?.cell)
    }

    /// Indices of a cell and a row in the plan.
    pub(super) fn row(&self, cell: usize, row: usize) -> Option<(usize, usize)> {
        let RosterCell { cell, rows } = self.cells.get(cell)?;
        Some((*cell, *rows.get(row)?))
    }

    /// A block with the row numbers of the plan; a sample of a row that was not asked for is none.
    pub(super) fn block(&self, cell: usize, block: Block) -> Option<(usize, Block)> {
        let samples = block.samples.into_iter().filter_map(|sample| {
            let (_, row) = self.row(cell, sample.row)?;
            Some(Sample { row, ..sample })
        });
        Some((self.cell(cell)?, Block { samples: samples.collect(), ..block }))
    }

    /// The rows of a cell that can be measured, with their calls.
    pub(super) fn visit_rows(&self, position: usize, measured: &Measured) -> Vec<VisitRow> {
        let RosterCell { cell, rows } = &self.cells[position];
        let visit_row = |(position, row): (usize, &usize)| {
            let known = &measured.rows[*cell][*row];
            let calibration = known.calibration.filter(|_| known.is_live())?;
            let crew = measured.measurement.crew_level(*cell, *row);
            Some(VisitRow { row: position, calibration, crew })
        };
        rows.iter().enumerate().filter_map(visit_row).collect()
    }
}
