//! One worker, and what it says about the rows that it has.

use super::roster::{Roster, RosterCell};
use super::{Launch, Measured, RowMeasured};
use crate::plan::Plan;
use crate::worker::{Done, Link, LinkError, Place, PreparedCell, Reply, Request};

/// A worker with its rows.
pub(super) struct Session<'a> {
    link: Box<dyn Link + 'a>,
    pub(super) roster: Roster,
    /// The blocks that it took.
    pub(super) launch: Launch,
    /// What is known of each cell of the roster that is prepared, or failed to be.
    pub(super) ready: Vec<Option<Ready>>,
    /// What it was about to call when it was last heard of.
    pub(super) calling: Option<Place>,
}

impl<'a> Session<'a> {
    /// A session with a worker that has just been started.
    pub(super) fn new(link: Box<dyn Link + 'a>, plan: &Plan, roster: Roster) -> Self {
        Session {
            link,
            launch: Launch { cells: vec![Vec::new(); plan.cells.len()] },
            ready: vec![None; roster.cells.len()],
            roster,
            calling: None,
        }
    }

    /// Seconds that each cell has of a start that took so many in all, besides making its own data.
    pub(super) fn common_start(&self, seconds: f64) -> f64 {
        let ready = self.ready.iter().flatten();
        let (cells, own) = ready.fold((0.0_f64, 0.0), |(n, own), r| (n + 1.0, own + r.seconds));
        (seconds - own).max(0.0) / cells.max(1.0)
    }

    /// The rows that are to blame for the end of the worker: those that it was calling.
    pub(super) fn guilty(&self, error: &LinkError) -> Option<Guilty> {
        let Place { cell, row } = self.calling.filter(|_| error.is_end())?;
        let RosterCell { cell, rows } = self.roster.cells.get(cell)?.clone();
        let rows = match row {
            Some(row) => vec![*rows.get(row)?],
            None => rows,
        };
        Some(Guilty { place: RosterCell { cell, rows }, is_data: row.is_none() })
    }

    /// Asks for something and notes what comes back; gives where the time went.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        measured: &mut Measured,
        heard: &mut dyn FnMut(&Reply),
    ) -> Result<Done, LinkError> {
        let Session { link, roster, launch, ready, calling } = self;
        let mut notes = Notes { roster, launch, ready, calling, rows: &mut measured.rows };
        let done = link.ask(request, &mut |reply| {
            heard(&reply);
            // A reply about a row that was not asked for is about nothing that could be kept.
            let _ = notes.take(reply);
        })?;
        *calling = None;
        measured.spent.inside += done.inside_seconds;
        Ok(done)
    }
}

/// Who is to blame for the end of a worker.
pub(super) struct Guilty {
    /// The rows.
    pub(super) place: RosterCell,
    /// Whether it was their data that was being made.
    pub(super) is_data: bool,
}

/// A cell whose data is made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ready {
    /// Bytes of its data.
    pub(super) bytes: usize,
    /// Seconds that making it took.
    pub(super) seconds: f64,
}

/// Where replies are noted.
struct Notes<'s> {
    roster: &'s Roster,
    launch: &'s mut Launch,
    ready: &'s mut Vec<Option<Ready>>,
    calling: &'s mut Option<Place>,
    rows: &'s mut [Vec<RowMeasured>],
}

impl Notes<'_> {
    fn take(&mut self, reply: Reply) -> Option<()> {
        let rows = &mut *self.rows;
        match reply {
            Reply::Calling(place) => *self.calling = Some(place),
            Reply::Overdue(overdue) => *self.calling = Some(overdue.place),
            Reply::Called => *self.calling = None,
            Reply::Prepared(prepared) => {
                *self.calling = None;
                let PreparedCell { bytes, seconds, .. } = prepared;
                *self.ready.get_mut(prepared.cell)? = Some(Ready { bytes, seconds });
                for (row, calibration) in prepared.calibrations.into_iter().enumerate() {
                    let (cell, row) = self.roster.row(prepared.cell, row)?;
                    rows[cell][row].bytes = Some(prepared.moved_bytes as f64);
                    rows[cell][row].calibration = calibration.or(rows[cell][row].calibration);
                }
            }
            Reply::Block(visited) => {
                let (cell, block) = self.roster.block(visited.cell, visited.block)?;
                self.launch.cells[cell].push(block);
            }
            Reply::Failed(failed) => {
                *self.calling = None;
                let whole = self.roster.cells.get(failed.cell)?;
                let failing = match failed.row {
                    Some(row) => vec![*whole.rows.get(row)?],
                    None => {
                        *self.ready.get_mut(failed.cell)? = Some(Ready::default());
                        whole.rows.clone()
                    }
                };
                for row in failing {
                    rows[whole.cell][row].failure.get_or_insert_with(|| failed.failure.clone());
                }
            }
            Reply::Declined(declined) => {
                *self.calling = None;
                let (cell, row) = self.roster.row(declined.cell, declined.row?)?;
                rows[cell][row].declined.get_or_insert(declined.failure);
            }
            Reply::Inspected(inspected) => {
                let (cell, row) = self.roster.row(inspected.cell, inspected.row)?;
                rows[cell][row].allocations = inspected.allocations;
                rows[cell][row].counters = inspected.counters;
                rows[cell][row].device = inspected.device;
            }
            Reply::Checked(_)
            | Reply::Trying(_)
            | Reply::Compiling { .. }
            | Reply::Ceilings(_)
            | Reply::Done(_)
            | Reply::Refused { .. } => {}
        }
        Some(())
    }
}
