//! The data of a cell on the device, and how it is kept in step with the host's.

use std::ops::Range;

use super::super::data::Stale;
use super::super::{CellData, Fault};
use super::variant::Variant;
use crate::cuda::{Gpu, GpuResult, Held, Slot, Transfers, bytes_in_words};

/// The data of a cell on the device.
#[derive(Default)]
pub struct Resident {
    /// What of the outputs on the host the device does not know yet.
    pub(in crate::kernel) stale: Stale,
    /// In the order of the parameters; empty before it is uploaded.
    pub(super) slots: Vec<Slot>,
    /// Initial content of those that are written.
    initial: Vec<Box<dyn Held>>,
    /// Fresh outputs for kernels that work in place.
    pub(super) copies: Vec<Vec<Box<dyn Held>>>,
    /// Numbers of the arrays of these.
    copied: Vec<Range<u64>>,
    /// The copy that was written last, when one was.
    pub(super) last: Option<usize>,
    /// Times of the copies between host and device that a call needs, once they were measured.
    pub(super) transfers: Option<Transfers>,
}

impl Resident {
    pub(super) fn written(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.is_written)
    }

    /// Bytes that a call writes.
    pub(super) fn written_bytes(&self) -> usize {
        self.written().map(|slot| slot.value.device_bytes()).sum()
    }

    /// Bytes of the arguments.
    pub(super) fn bytes(&self) -> usize {
        self.slots.iter().map(|slot| slot.value.device_bytes()).sum()
    }
}

/// All slots, as they are lent.
pub(super) fn lenders(resident: &mut Resident) -> impl Iterator<Item = &mut (dyn Held + 'static)> {
    lenders_with(resident, None)
}

/// The same with a copy in place of those that are written.
pub(super) fn lenders_with(
    resident: &mut Resident,
    copy: Option<usize>,
) -> impl Iterator<Item = &mut (dyn Held + 'static)> {
    let Resident { slots, copies, .. } = resident;
    let mut copy = copy.map(|copy| copies[copy].iter_mut());
    slots.iter_mut().map(move |slot| {
        let replaced = copy.as_mut().filter(|_| slot.is_written).and_then(Iterator::next);
        match replaced {
            Some(value) => value.as_mut(),
            None => slot.value.as_mut(),
        }
    })
}

/// Brings the data to the device, or the device up to date with the host.
pub(super) fn settle(
    gpu: &Gpu,
    variant: &dyn Variant,
    data: &mut dyn CellData,
) -> Result<(), Fault> {
    if data.resident().slots.is_empty() {
        make_room(gpu, data.read_bytes() + 2 * data.written_bytes())?;
        variant.upload(gpu, data)?;
        let resident = data.resident();
        resident.initial =
            resident.written().map(|s| s.value.duplicate(gpu)).collect::<GpuResult<_>>()?;
    }
    match data.resident().stale {
        Stale::No => {}
        Stale::Initial => {
            let Resident { slots, initial, .. } = data.resident();
            let written = slots.iter_mut().filter(|slot| slot.is_written);
            for (slot, initial) in written.zip(initial) {
                slot.value.assign(initial.as_mut(), gpu)?;
            }
        }
        Stale::Content => variant.copy_all(gpu, data)?,
    }
    let resident = data.resident();
    resident.last = None;
    resident.stale = Stale::No;
    gpu.synchronize()?;
    Ok(())
}

/// Declines when so many bytes of device memory cannot be had.
fn make_room(gpu: &Gpu, needed: usize) -> Result<(), Fault> {
    let mut free = gpu.free_bytes()?;
    if needed > free {
        gpu.reclaim()?;
        free = gpu.free_bytes()?;
    }
    match needed > free {
        true => Err(Fault::Declined(format!(
            "needs {} of device memory, and {} are free",
            bytes_in_words(needed as u64),
            bytes_in_words(free as u64)
        ))),
        false => Ok(()),
    }
}

/// Gives what is written its initial content again.
pub(super) fn renew(
    gpu: &Gpu,
    variant: &dyn Variant,
    data: &mut dyn CellData,
) -> Result<(), Fault> {
    data.resident().stale = Stale::Initial;
    settle(gpu, variant, data)
}

/// As many fresh outputs as there are calls.
pub(super) fn fresh_copies(gpu: &Gpu, device: &mut Resident, calls: u64) -> GpuResult<()> {
    let Resident { initial, copies, copied, last, .. } = device;
    for copy in copies.iter_mut().take(calls as usize) {
        for (value, initial) in copy.iter_mut().zip(initial.iter_mut()) {
            value.assign(initial.as_mut(), gpu)?;
        }
    }
    if copies.len() < calls as usize {
        let first = gpu.next_array();
        let duplicate =
            || -> GpuResult<_> { initial.iter().map(|value| value.duplicate(gpu)).collect() };
        for _ in copies.len()..calls as usize {
            copies.push(duplicate()?);
        }
        copied.push(first..gpu.next_array());
    }
    *last = (calls as usize).checked_sub(1);
    gpu.synchronize()
}

/// Which arrays are looked at for what was written beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// Beside all arrays on the device.
    All,
    /// Beside those of the cell: a kernel that runs past the end of an array writes there first.
    Own,
}

/// Fails when something was written beside an array.
pub(super) fn look_for_trespass(
    gpu: &Gpu,
    parameters: &[&str],
    resident: &Resident,
    beside: Beside,
) -> Result<(), Fault> {
    let is_own = |array: u64| {
        let slots = resident.slots.iter().map(|slot| &slot.arrays);
        slots.chain(&resident.copied).any(|arrays| arrays.contains(&array))
    };
    let is_meant = |array: u64| beside == Beside::All || is_own(array);
    let Some(trespass) = gpu.trespass(&is_meant)? else { return Ok(()) };
    let owner = resident.slots.iter().position(|slot| slot.arrays.contains(&trespass.array));
    let name = match owner.and_then(|slot| parameters.get(slot)) {
        Some(name) => format!("`{name}`"),
        None => "an array that is none of its parameters".to_owned(),
    };
    let side = match trespass.distance {
        0.. => format!("{} byte(s) after its end", trespass.distance),
        before => format!("{} byte(s) before its beginning", -before),
    };
    let text = format!(
        "writes out of bounds of {name}, which has {} bytes: {} byte(s) beside it changed, the nearest {side}",
        trespass.bytes, trespass.changed
    );
    // Nobody knows what else it wrote to: others go on in another process.
    gpu.lose(&text);
    Err(Fault::Device(text))
}
