//! Profiling: some rows of a cell are called once each, inside ranges that profilers show.

use super::checks::cell_request;
use super::link::Launcher;
use super::protocol::{DeviceRequest, PROTOCOL, Preparation, Reply, Request};
use crate::plan::Plan;

/// Calls some rows of one cell; gives a line about each.
pub fn profile_rows(
    launcher: &dyn Launcher,
    plan: &Plan,
    (cell, rows): (usize, &[usize]),
    seed: u64,
    device: &DeviceRequest,
) -> Vec<String> {
    let planned = &plan.cells[cell];
    let mut told: Vec<String> =
        rows.iter().map(|row| planned.row_name(&planned.rows[*row])).collect();
    let preparation = Preparation {
        protocol: PROTOCOL,
        seed,
        order_seed: 0,
        launch: 0,
        cells: rows.iter().map(|row| cell_request(plan, &[(cell, *row)])).collect(),
        memory: usize::MAX,
        calibrate: None,
        device: device.clone(),
        // Profilers make calls take minutes.
        timeout_seconds: f64::MAX,
    };
    let asked = launcher.launch(0).and_then(|mut link| {
        let mut hear = |reply| {
            if let Reply::Failed(failed) | Reply::Declined(failed) = reply
                && let Some(line) = told.get_mut(failed.cell)
            {
                *line += &format!(": failed: {}", failed.failure);
            }
        };
        link.ask(&Request::Prepare(preparation), &mut hear)?;
        link.ask(&Request::Profile, &mut hear)
    });
    if let Err(error) = asked {
        told.push(format!("{}: {error}", planned.name()));
    }
    told
}
