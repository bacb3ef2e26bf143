//! Times of the copies between host and device that a call needs when its data lives on the host.

use std::time::{Duration, Instant};

use super::super::{CellData, Fault, InPlace};
use super::variant::Variant;
use crate::cuda::{Gpu, GpuResult, Pinned, Transfers};

/// Copies of which the median is the time of a transfer.
const TRANSFERS: usize = 5;

/// How long they may take, at least one of them aside.
const LONGEST: Duration = Duration::from_millis(100);

/// Bytes of pinned memory that are asked for to time transfers.
const MOST_PINNED: usize = 1 << 30;

/// Times of the copies that one call needs.
pub(super) fn transfers(
    gpu: &Gpu,
    variant: &dyn Variant,
    data: &mut dyn CellData,
) -> Result<Transfers, Fault> {
    // All variants of a kernel have the same arguments.
    if let Some(known) = data.resident().transfers {
        return Ok(known);
    }
    let in_place = variant.in_place() != InPlace::No;
    let resident = data.resident();
    let sizes = |up: bool| -> Vec<usize> {
        let slots = resident.slots.iter();
        let moved = slots.filter(|s| if up { in_place || !s.is_written } else { s.is_written });
        moved.map(|slot| slot.value.device_bytes()).filter(|bytes| *bytes > 0).collect()
    };
    let (up, down) = (sizes(true), sizes(false));
    let h2d_pinned_ns = pinned(gpu, &up, Way::Up)?;
    let d2h_pinned_ns = pinned(gpu, &down, Way::Down)?;
    let h2d_ns = median(gpu, &mut || variant.copy_inputs(gpu, data))?;
    let d2h_ns = median(gpu, &mut || variant.fetch(gpu, data, None))?;
    let found = Transfers {
        h2d_ns: Some(h2d_ns),
        h2d_pinned_ns,
        d2h_ns: Some(d2h_ns),
        d2h_pinned_ns,
        h2d_bytes: up.iter().sum::<usize>() as u64,
        d2h_bytes: down.iter().sum::<usize>() as u64,
    };
    data.resident().transfers = Some(found);
    Ok(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// The same number of copies of the same sizes, from or to pinned memory; none where that is too much to ask for.
fn pinned(gpu: &Gpu, sizes: &[usize], way: Way) -> Result<Option<f64>, Fault> {
    let all: usize = sizes.iter().sum();
    if all > MOST_PINNED {
        return Ok(None);
    }
    let mut host = Pinned::new(gpu, all)?;
    host.bytes_mut().fill(0x5a);
    let mut device = sizes.iter().map(|n| gpu.zeros::<u8>(*n)).collect::<GpuResult<Vec<_>>>()?;
    let time = median(gpu, &mut || {
        let mut rest = host.bytes_mut();
        for device in &mut device {
            let (part, others) = rest.split_at_mut(device.len());
            match way {
                Way::Up => gpu.copy_to(part, device)?,
                Way::Down => gpu.copy_from(device, part)?,
            }
            rest = others;
        }
        Ok(())
    })?;
    Ok(Some(time))
}

/// Nanoseconds of some copies by the host's clock, until the device is done.
fn median(gpu: &Gpu, copy: &mut dyn FnMut() -> GpuResult<()>) -> Result<f64, Fault> {
    let mut times = Vec::with_capacity(TRANSFERS);
    let begun = Instant::now();
    while times.is_empty() || times.len() < TRANSFERS && begun.elapsed() < LONGEST {
        gpu.synchronize()?;
        let start = Instant::now();
        copy()?;
        gpu.synchronize()?;
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
