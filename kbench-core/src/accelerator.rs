//! The device of a run, as the controller sees it: it asks the driver, and leaves everything else to workers.

use crate::cuda::{Ceilings, DeviceInfo, Unavailable, devices, switch_off};
use crate::measure::Measured;
use crate::plan::Plan;
use crate::report::DeviceReport;
use crate::worker::{DeviceRequest, Launcher, Reply, Request};

/// The device that CUDA variants of a run are called on, or why there is none.
pub(crate) struct Accelerator {
    found: Result<(DeviceInfo, Vec<DeviceInfo>), Unavailable>,
}

impl Accelerator {
    /// Looks for a device if the plan needs one. Where they are switched off, no kernel finds one either.
    pub(crate) fn find(plan: &Plan, request: &DeviceRequest) -> Self {
        switch_off(request.off);
        let is_needed = plan.rows().any(|(_, row)| row.variant.implementation.is_device());
        if request.off || !is_needed {
            return Accelerator { found: Err(Unavailable::SwitchedOff) };
        }
        let found = devices().and_then(|all| {
            let chosen = all.iter().find(|device| device.ordinal == request.ordinal).cloned();
            let names = all.iter().map(|device| format!("{} ({})", device.ordinal, device.name));
            let missing = || Unavailable::NoSuchDevice {
                asked: request.ordinal,
                found: names.collect::<Vec<_>>().join(", "),
            };
            Ok((chosen.ok_or_else(missing)?, all))
        });
        Accelerator { found }
    }

    /// Why CUDA variants cannot run, if so.
    pub(crate) fn available(&self) -> Result<(), Unavailable> {
        self.found.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// What the report says about it, ceilings included when something was measured on it.
    pub(crate) fn report(
        &self,
        plan: &Plan,
        measured: &Measured,
        launcher: &dyn Launcher,
        request: &DeviceRequest,
    ) -> Option<DeviceReport> {
        let (info, all) = self.found.as_ref().ok()?;
        let has_figures = plan.cells.iter().enumerate().any(|(cell, planned)| {
            planned.rows.iter().enumerate().any(|(row, planned)| {
                planned.variant.implementation.is_device() && measured.measurement.has(cell, row)
            })
        });
        Some(DeviceReport {
            info: info.clone(),
            ceilings: has_figures.then(|| ceilings(launcher, request)).flatten(),
            all: all.iter().map(|d| format!("{}: {}", d.ordinal, d.summary())).collect(),
        })
    }
}

/// What the device is capable of, by a worker of its own; none where it cannot tell.
fn ceilings(launcher: &dyn Launcher, request: &DeviceRequest) -> Option<Ceilings> {
    let mut found = None;
    let mut link = launcher.launch(0).ok()?;
    let asked = link.ask(&Request::Ceilings(request.clone()), &mut |reply| {
        if let Reply::Ceilings(ceilings) = reply {
            found = Some(ceilings);
        }
    });
    asked.ok().and(found)
}
