//! One of both processes: cells and rows in its own numbers, and in the controller's.

use std::collections::HashSet;

use crate::worker::link::{Link, LinkError};
use crate::worker::protocol::{
    CellRequest, Done, FailedRow, OverdueReply, Place, PreparedCell, Program, Reply, Request,
    Visit, VisitRow, VisitedBlock,
};

/// A row as the controller numbers it: its cell, and its place among the rows of both programs.
pub(super) type Numbers = (usize, usize);

/// One of both processes, with its own numbers of cells and rows.
pub(super) struct Side<'a> {
    pub(super) link: Box<dyn Link + 'a>,
    pub(super) program: Program,
    /// Its cells.
    pub(super) cells: Vec<SideCell>,
    /// What it was about to call when it was last heard of, in its own numbers.
    pub(super) calling: Option<Place>,
}

/// A cell of one process.
pub(super) struct SideCell {
    /// The controller's number of it.
    pub(super) number: usize,
    /// The controller's numbers of its rows.
    pub(super) rows: Vec<usize>,
    /// How many rows the controller's cell has.
    pub(super) width: usize,
    /// Whether its data is there.
    pub(super) is_prepared: bool,
}

impl<'a> Side<'a> {
    pub(super) fn new(link: Box<dyn Link + 'a>, program: Program) -> Self {
        Side { link, program, cells: Vec::new(), calling: None }
    }

    /// Takes its part of some cells; gives it as a request.
    pub(super) fn take(
        &mut self,
        cells: &[CellRequest],
        is_meant: &dyn Fn(usize, usize) -> bool,
    ) -> Vec<CellRequest> {
        self.cells.clear();
        let mut requests = Vec::new();
        for (number, cell) in cells.iter().enumerate() {
            let is_own =
                |row: &usize| cell.rows[*row].program == self.program && is_meant(number, *row);
            let rows: Vec<usize> = (0..cell.rows.len()).filter(is_own).collect();
            if rows.is_empty() {
                continue;
            }
            let own = rows.iter().map(|row| cell.rows[*row].clone()).collect();
            requests.push(CellRequest { rows: own, ..cell.clone() });
            let width = cell.rows.len();
            self.cells.push(SideCell { number, rows, width, is_prepared: false });
        }
        requests
    }

    /// Asks the process, and hears its replies in the controller's numbers.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        hear: &mut dyn FnMut(Reply),
    ) -> Result<Done, LinkError> {
        let Side { link, program, cells, calling } = self;
        let done = link.ask(request, &mut |reply| {
            match &reply {
                Reply::Calling(place) => *calling = Some(*place),
                Reply::Overdue(overdue) => *calling = Some(overdue.place),
                Reply::Called | Reply::Prepared(_) | Reply::Failed(_) => *calling = None,
                _ => {}
            }
            if let Reply::Prepared(prepared) = &reply
                && let Some(cell) = cells.get_mut(prepared.cell)
            {
                cell.is_prepared = true;
            }
            for reply in renumbered(cells, *program, reply) {
                hear(reply);
            }
        })?;
        *calling = None;
        Ok(done)
    }

    /// The part of a visit that this process makes; none where it has no row of it that has not failed.
    pub(super) fn visit(&self, visit: &Visit, failed: &HashSet<Numbers>) -> Option<Visit> {
        let cell = self.cells.iter().position(|c| c.number == visit.cell && c.is_prepared)?;
        let own = |asked: &VisitRow| {
            let row = self.cells[cell].rows.iter().position(|row| *row == asked.row)?;
            (!failed.contains(&(visit.cell, asked.row))).then_some(VisitRow { row, ..*asked })
        };
        let rows: Vec<VisitRow> = visit.rows.iter().filter_map(own).collect();
        (!rows.is_empty()).then_some(Visit { cell, blocks: 1, rows, ..*visit })
    }

    /// The controller's numbers of the rows that a sudden end is to be blamed on: the one that was being called, or all.
    pub(super) fn guilty(&self) -> Vec<Numbers> {
        let all = |cells: &[SideCell]| {
            let mut all = Vec::new();
            for cell in cells {
                all.extend(cell.rows.iter().map(|row| (cell.number, *row)));
            }
            all
        };
        let called = self.calling.and_then(|Place { cell, row }| {
            let cell = self.cells.get(cell)?;
            match row {
                Some(row) => Some(vec![(cell.number, *cell.rows.get(row)?)]),
                None => Some(all(std::slice::from_ref(cell))),
            }
        });
        called.unwrap_or_else(|| all(&self.cells))
    }
}

/// A reply in the controller's numbers. What is about a whole cell is, for the older program, about its own rows of it.
fn renumbered(cells: &[SideCell], program: Program, reply: Reply) -> Vec<Reply> {
    let of_row = |cell: usize, row: usize| -> Option<Numbers> {
        let cell = cells.get(cell)?;
        Some((cell.number, *cell.rows.get(row)?))
    };
    let failures = |failed: FailedRow, wrap: fn(FailedRow) -> Reply| -> Vec<Reply> {
        let Some(cell) = cells.get(failed.cell) else { return Vec::new() };
        let ends = failed.ends && program == Program::Now;
        let rows: Vec<Option<usize>> = match (failed.row, program) {
            // A row that nobody asked about is none.
            (Some(row), _) => cell.rows.get(row).copied().map(Some).into_iter().collect(),
            (None, Program::Now) => vec![None],
            (None, Program::Past) => cell.rows.iter().copied().map(Some).collect(),
        };
        let one = |row| wrap(FailedRow { cell: cell.number, row, ends, ..failed.clone() });
        rows.into_iter().map(one).collect()
    };
    let one = match reply {
        // Who ends while the older program is called is not for the controller to find out.
        Reply::Calling(_) | Reply::Called | Reply::Overdue(_) if program == Program::Past => None,
        Reply::Overdue(OverdueReply { place: Place { cell, row }, seconds }) => {
            cells.get(cell).map(|own| {
                let row = row.and_then(|row| own.rows.get(row).copied());
                Reply::Overdue(OverdueReply { place: Place { cell: own.number, row }, seconds })
            })
        }
        Reply::Calling(Place { cell, row }) => cells.get(cell).map(|own| {
            let row = row.and_then(|row| own.rows.get(row).copied());
            Reply::Calling(Place { cell: own.number, row })
        }),
        Reply::Prepared(prepared) => cells.get(prepared.cell).map(|own| {
            let mut calibrations = vec![None; own.width];
            for (row, found) in own.rows.iter().zip(prepared.calibrations) {
                calibrations[*row] = found;
            }
            Reply::Prepared(PreparedCell { cell: own.number, calibrations, ..prepared })
        }),
        Reply::Block(VisitedBlock { cell, mut block }) => {
            block.samples.retain_mut(|sample| match of_row(cell, sample.row) {
                Some((_, row)) => {
                    sample.row = row;
                    true
                }
                None => false,
            });
            cells.get(cell).map(|own| Reply::Block(VisitedBlock { cell: own.number, block }))
        }
        Reply::Failed(failed) => return failures(failed, Reply::Failed),
        Reply::Declined(failed) => return failures(failed, Reply::Declined),
        Reply::Inspected(mut inspected) => of_row(inspected.cell, inspected.row).map(|numbers| {
            (inspected.cell, inspected.row) = numbers;
            Reply::Inspected(inspected)
        }),
        other => Some(other),
    };
    one.into_iter().collect()
}
