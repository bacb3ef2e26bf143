//! Checks that are made by a worker, on both sides of the channel: code that can take its process along, or break the
//! context of a device, costs a worker and one row.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::devices::{DeviceRequest, Devices};
use super::link::{Launcher, LinkError};
use super::protocol::{CellRequest, PROTOCOL, Place, Reply, Request, RowRequest};
use super::subject::Names;
use crate::check::{
    Bench, Check, CheckedRow, Coverage, DeviceChecks, ErrorFigures, Origin, Reason, Remark,
    Standing, Wrong,
};
use crate::kernel::{Fault, KernelEntry, Mode};
use crate::plan::{Plan, Size};
use crate::registry::Registry;
use crate::watch::{Stage, Watch};

/// Which rows to check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckRequest {
    /// Version of the protocol.
    pub protocol: u32,
    /// Seed of the data.
    pub seed: u64,
    /// At which sizes.
    pub coverage: Coverage,
    /// The cells with their rows; modes do not matter.
    pub cells: Vec<CellRequest>,
    /// Where CUDA variants run.
    #[serde(default)]
    pub device: DeviceRequest,
}

/// What was found about a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckedReply {
    /// The row.
    #[serde(flatten)]
    pub place: Place,
    /// What is wrong with it.
    pub wrong: Option<WrongReply>,
    /// Why it cannot run, when that is nobody's fault.
    pub declined: Option<String>,
    /// Distance from the reference.
    pub errors: Option<ErrorFigures>,
    /// Remarks.
    pub remarks: Vec<Remark>,
}

/// What is wrong with a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WrongReply {
    /// In words.
    pub reason: String,
    /// Whether it broke, and did not just give a wrong result.
    pub is_fault: bool,
    /// At which size.
    pub size: String,
    /// With which seed.
    pub seed: u64,
    /// Who chose the size.
    pub origin: Origin,
}

impl CheckedReply {
    fn of(place: Place, check: Check) -> Self {
        let is_fault =
            |reason: &Reason| matches!(reason, Reason::Fault(_) | Reason::Definition { .. });
        let mut reply = CheckedReply {
            place,
            wrong: None,
            declined: None,
            errors: None,
            remarks: check.remarks,
        };
        // JSON knows no infinity; what is that far off is told in words.
        let finite = |e: &ErrorFigures| e.norm.is_finite() && e.maximum.is_finite();
        reply.errors = check.errors.filter(finite).map(|errors| ErrorFigures {
            worst: errors.worst.filter(|w| w.got.is_finite() && w.expected.is_finite()),
            ..errors
        });
        match check.outcome {
            Ok(()) => {}
            Err(Wrong { reason: Reason::Fault(Fault::Declined(reason)), .. }) => {
                reply.declined = Some(reason);
            }
            Err(Wrong { reason, size, seed, origin }) => {
                let is_fault = is_fault(&reason);
                let reason = reason.to_string();
                reply.wrong = Some(WrongReply { reason, is_fault, size, seed, origin });
            }
        }
        reply
    }

    fn into_row(self) -> CheckedRow {
        if let Some(reason) = self.declined {
            return CheckedRow::skipped(reason);
        }
        let wrong = |reply: WrongReply| Wrong {
            reason: Reason::Reported { text: reply.reason, is_fault: reply.is_fault },
            size: reply.size,
            seed: reply.seed,
            origin: reply.origin,
        };
        let outcome = self.wrong.map_or(Ok(()), |reply| Err(wrong(reply)));
        Check { outcome, errors: self.errors, remarks: self.remarks }.into()
    }
}

/// Does what a request asks for; an error says why it makes no sense.
pub(super) fn check(
    registry: &Registry,
    devices: &mut Devices,
    request: &CheckRequest,
    say: &mut dyn FnMut(Reply),
) -> Result<(), String> {
    if request.protocol != PROTOCOL {
        return Err(format!(
            "the controller speaks version {} of the protocol, this worker {PROTOCOL}",
            request.protocol
        ));
    }
    devices.choose(&request.device);
    let names = Names::of(registry);
    let mut benches: HashMap<*const KernelEntry, Bench> = HashMap::new();
    for (cell, wanted) in request.cells.iter().enumerate() {
        let kernel = names.find(wanted)?;
        let size = Size::of(wanted.size.clone());
        for (row, wanted) in wanted.rows.iter().enumerate() {
            let variant = kernel.variant(&wanted.variant)?;
            let place = Place { cell, row: Some(row) };
            say(Reply::Calling(place));
            let device = variant.implementation.is_device().then(|| devices.caller(Mode::Hot));
            let reply = match device.transpose() {
                Ok(device) => {
                    let key: *const KernelEntry = kernel.entry;
                    let bench = benches.entry(key).or_insert_with(|| {
                        let own = kernel.own_function();
                        Bench::new(kernel.entry, own, request.coverage, request.seed, device)
                    });
                    CheckedReply::of(place, bench.check_row(variant, &size))
                }
                Err(reason) => {
                    let (wrong, errors, remarks) = (None, None, Vec::new());
                    CheckedReply { place, wrong, declined: Some(reason), errors, remarks }
                }
            };
            say(Reply::Checked(reply));
            if devices.lost().is_some() {
                return Ok(()); // the rest is for another process
            }
        }
        if let Some(bench) = benches.get_mut(&(kernel.entry as *const KernelEntry)) {
            bench.forget(&size);
        }
    }
    Ok(())
}

/// Checks rows by workers, one after the other as long as they break.
pub struct WorkerChecks<'a> {
    /// Where workers come from.
    pub launcher: &'a dyn Launcher,
    /// Where CUDA variants run.
    pub device: DeviceRequest,
}

impl DeviceChecks for WorkerChecks<'_> {
    fn check(
        &mut self,
        plan: &Plan,
        rows: &[(usize, usize)],
        coverage: Coverage,
        seed: u64,
        watch: &mut dyn Watch,
    ) -> Vec<CheckedRow> {
        let mut found: Vec<Option<CheckedRow>> = vec![None; rows.len()];
        while let Some(first) = found.iter().position(Option::is_none) {
            // A variant that broke the device once would do so at every size.
            let waiting: Vec<usize> = (first..rows.len()).filter(|i| found[*i].is_none()).collect();
            let request = CheckRequest {
                protocol: PROTOCOL,
                seed,
                coverage,
                cells: waiting.iter().map(|index| cell_request(plan, rows[*index])).collect(),
                device: self.device.clone(),
            };
            let mut calling = None;
            let asked = self.launcher.launch(0).and_then(|mut link| {
                link.ask(&Request::Check(request), &mut |reply| match reply {
                    Reply::Calling(place) => {
                        calling = Some(place.cell);
                        if let Some(index) = waiting.get(place.cell) {
                            let (cell, row) = rows[*index];
                            let cell = &plan.cells[cell];
                            let name = cell.row_name(&cell.rows[row]);
                            watch.step(Stage::Checking, *index as f64, rows.len() as f64, &name);
                        }
                    }
                    Reply::Checked(reply) => {
                        calling = None;
                        if let Some(index) = waiting.get(reply.place.cell) {
                            found[*index] = Some(reply.into_row());
                        }
                    }
                    _ => {}
                })
            });
            match (asked, calling) {
                (Err(error), Some(cell)) if error.is_end() => {
                    found[waiting[cell]] = Some(broken(plan, rows[waiting[cell]], seed, &error));
                }
                (Err(error), _) => {
                    let reason = format!("its check could not be made: {error}");
                    for index in waiting {
                        found[index].get_or_insert_with(|| CheckedRow::skipped(reason.clone()));
                    }
                }
                (Ok(_), _) if found[first].is_none() => {
                    found[first] = Some(CheckedRow::skipped("its check gave no answer".to_owned()));
                }
                (Ok(_), _) => {}
            }
            spare(plan, rows, &mut found);
        }
        found.into_iter().flatten().collect()
    }
}

/// A variant that broke its process, or its device, is not called again at other sizes.
fn spare(plan: &Plan, rows: &[(usize, usize)], found: &mut [Option<CheckedRow>]) {
    let variant = |index: usize| {
        let (cell, row) = rows[index];
        plan.cells[cell].rows[row].variant
    };
    let broke = |row: &CheckedRow| {
        matches!(
            &row.standing,
            Standing::Wrong(Wrong { reason: Reason::Reported { is_fault: true, .. }, .. })
        )
    };
    for index in 0..found.len() {
        let Some(row) = found[index].clone().filter(broke) else { continue };
        for (later, place) in found.iter_mut().enumerate().skip(index + 1) {
            if place.is_none() && std::ptr::eq(variant(later), variant(index)) {
                *place = Some(row.clone());
            }
        }
    }
}

/// One row as a worker knows it.
pub(super) fn cell_request(plan: &Plan, (cell, row): (usize, usize)) -> CellRequest {
    let cell = &plan.cells[cell];
    let row = &cell.rows[row];
    CellRequest {
        kernel: cell.kernel.path(),
        element: cell.kernel.element.to_owned(),
        size: cell.size.values.clone(),
        rows: vec![RowRequest {
            variant: row.variant.name.to_owned(),
            threads: None,
            mode: row.mode,
        }],
    }
}

/// A row whose check was the end of a worker.
fn broken(plan: &Plan, (cell, _): (usize, usize), seed: u64, error: &LinkError) -> CheckedRow {
    let cell = &plan.cells[cell];
    let text = format!("ended the process that checked it: {error}");
    let wrong = Wrong {
        reason: Reason::Reported { text, is_fault: true },
        size: cell.size.name(cell.kernel.axes),
        seed,
        origin: Origin::Listed,
    };
    Check { outcome: Err(wrong), errors: None, remarks: Vec::new() }.into()
}
