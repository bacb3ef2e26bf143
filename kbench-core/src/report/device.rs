//! What a report says about rows that ran on a device.

use serde::{Deserialize, Serialize};

use super::index::last_of_variants;
use super::{RowReport, units};
use crate::cuda::{Ceilings, DeviceFigures, DeviceInfo, DeviceKernel};
use crate::kernel::Mode;
use crate::measure::{Measured, RowMeasured};
use crate::order;

/// The device of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceReport {
    /// The one that was used.
    #[serde(flatten)]
    pub info: DeviceInfo,
    /// What it was measured to be capable of: the roofs of a roofline.
    pub ceilings: Option<Ceilings>,
    /// All devices of the machine, by their numbers.
    pub all: Vec<String>,
}

impl DeviceReport {
    /// What makes figures of this device doubtful, in plain words.
    pub fn warnings(&self, rows: &[RowReport]) -> Vec<String> {
        let DeviceInfo { other_processes, persistence, .. } = &self.info;
        let blocks = |row: &RowReport| (row.device.throttled_blocks.unwrap_or(0), row.blocks);
        let slowed = rows.iter().map(blocks).any(|(slow, all)| slow > 0 && 10 * slow > all);
        let doubts = [
            other_processes.is_some_and(|others| others > 0).then(|| {
                "the GPU is shared: other processes compute on it; run when it is free".to_owned()
            }),
            slowed.then(|| {
                "the GPU was slowed down by heat or a power brake during over a tenth of the blocks of some rows; let it cool"
                    .to_owned()
            }),
            (*persistence == Some(false)).then(|| {
                "the GPU's driver unloads when nobody uses it, so clocks start low; persistence mode avoids that".to_owned()
            }),
        ];
        doubts.into_iter().flatten().collect()
    }

    /// Its name, and what it is capable of where that was measured.
    pub(super) fn line(&self) -> String {
        let number = match self.all.len() {
            0 | 1 => String::new(),
            all => format!(" {} of {all}", self.info.ordinal),
        };
        let ceilings = self.ceilings.as_ref().map_or_else(String::new, |ceilings| {
            let rate = ["bf16", "f32"].iter().find_map(|e| Some((e, ceilings.rate(e)?)));
            let rate = rate.map_or_else(String::new, |(element, rate)| {
                format!(", {element} {} TFLOP/s", units::digits(rate / 1e12))
            });
            format!(" · copies {} TB/s{rate}", units::digits(ceilings.copy_bytes_per_s / 1e12))
        });
        format!("GPU{number}: {}{ceilings}", self.info.summary())
    }
}

/// Figures of one row on a device; all empty for rows that ran on a processor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceRow {
    /// Nanoseconds to bring its inputs to the device.
    pub h2d_ns: Option<f64>,
    /// The same from pinned memory.
    pub h2d_pinned_ns: Option<f64>,
    /// Nanoseconds to bring its outputs to the host.
    pub d2h_ns: Option<f64>,
    /// The same into pinned memory.
    pub d2h_pinned_ns: Option<f64>,
    /// Most bytes of device memory during a call, data included.
    pub device_peak_bytes: Option<u64>,
    /// Nanoseconds of one call by the host's clock: the median.
    pub host_time_ns: Option<f64>,
    /// Clock of the multiprocessors during samples: the median.
    pub sm_clock_mhz: Option<f64>,
    /// Degrees Celsius, at most.
    pub temperature_celsius: Option<u32>,
    /// Watts, at most.
    pub power_watts: Option<f64>,
    /// What held the clock back during samples, in words.
    pub throttle_reasons: Option<String>,
    /// Blocks that were taken while something slowed the device down; they count only where there are few others.
    pub throttled_blocks: Option<usize>,
    /// The ceiling that binds it: `memory`, `l2`, or the matrix rate of an element type.
    pub ceiling: Option<String>,
    /// Floating-point operations per byte: where it stands under a roofline.
    pub intensity: Option<f64>,
    /// Kernels that one call launches.
    pub device_kernels: Vec<DeviceKernel>,
}

/// Beyond this share of a ceiling, figures cannot be right: the ceiling itself is known to a few per cent.
const IMPOSSIBLE: f64 = 1.05;

/// What events and host clock may differ by: the host's part of a sample, in nanoseconds, and as a share.
const HOST_SLACK: (f64, f64) = (100_000.0, 1.25);

/// Events never show more than the host sees, but for this share.
const EVENT_EXCESS: f64 = 1.05;

/// Nanoseconds that the host may take to see that all streams are idle.
const IDLE_SLACK: f64 = 50_000.0;

const WAITS: &str = "waits for the device within a call: launching is part of its time";
const THROTTLED: &str = "the device was slowed down (heat, or a power brake) nearly all the time";

/// Adds what is known of a row of a device.
pub(super) fn add_device(
    report: &mut RowReport,
    mode: Mode,
    known: &RowMeasured,
    measured: &Measured,
    (cell, row): (usize, usize),
) {
    let DeviceFigures { transfers, peak_bytes, elsewhere_ns, kernels, .. } =
        known.device.clone().unwrap_or_default();
    let blocks = || measured.measurement.launches.iter().flat_map(move |l| l.cells[cell].iter());
    let readings: Vec<_> = blocks()
        .flat_map(|block| block.samples.iter().filter(move |sample| sample.row == row))
        .filter_map(|sample| Some((sample.nanoseconds, sample.device?)))
        .collect();
    let found = known.device.is_some();
    let reasons = readings.iter().filter_map(|(_, reading)| reading.throttling);
    let reasons = reasons.reduce(|all, reasons| all.union(reasons));
    let throttled = blocks().filter(|block| block.throttled).count();
    let hosts: Vec<f64> = readings.iter().map(|(_, reading)| reading.host).collect();
    let clocks: Vec<f64> = readings.iter().filter_map(|(_, reading)| reading.clock_mhz).collect();
    report.device = DeviceRow {
        h2d_ns: transfers.h2d_ns,
        h2d_pinned_ns: transfers.h2d_pinned_ns,
        d2h_ns: transfers.d2h_ns,
        d2h_pinned_ns: transfers.d2h_pinned_ns,
        device_peak_bytes: found.then_some(peak_bytes),
        host_time_ns: median(hosts),
        sm_clock_mhz: median(clocks),
        temperature_celsius: readings.iter().filter_map(|(_, r)| r.temperature).max(),
        power_watts: readings.iter().filter_map(|(_, r)| r.power).max_by(f64::total_cmp),
        throttle_reasons: reasons.map(|reasons| reasons.to_string()),
        throttled_blocks: (!readings.is_empty()).then_some(throttled),
        ceiling: None,
        intensity: None,
        device_kernels: kernels,
    };
    if throttled * 4 > 3 * blocks().count() {
        report.remarks.push(THROTTLED.into());
    }
    if readings.iter().any(|(_, reading)| !reading.gated) {
        report.remarks.push(WAITS.into());
    }
    report.remarks.extend(escape(elsewhere_ns));
    let times: Vec<f64> = readings.iter().map(|(time, _)| *time).collect();
    if let (Some(time), Some(host)) = (median(times), report.device.host_time_ns) {
        let per_batch = known.calibration.map_or(1, |calibration| calibration.calls.per_batch);
        let calls = if mode == Mode::Cold { 1.0 } else { per_batch.max(1) as f64 };
        report.remarks.extend(disagreement(time, host, calls));
    }
}

/// What to say when the device is still busy after its stream is done with a call.
fn escape(elsewhere: f64) -> Option<String> {
    (elsewhere > IDLE_SLACK).then(|| {
        format!(
            "leaves the device busy for {} after its stream is done: work on another stream is not in its times",
            units::time(elsewhere)
        )
    })
}

/// What to say when events and host clock disagree about one of some calls that follow each other.
fn disagreement(time: f64, host: f64, calls: f64) -> Option<String> {
    let (slack, share) = HOST_SLACK;
    let [shown, seen] = [time, host].map(units::time);
    if time > EVENT_EXCESS * host {
        return Some(format!(
            "events and host disagree: {shown} by events, {seen} by the host's clock"
        ));
    }
    (host > share * time + slack / calls).then(|| {
        format!(
            "events and host disagree: {shown} by events, but the device is busy for {seen}; is there work on another stream?"
        )
    })
}

/// Puts a row under the ceiling that binds it.
pub(super) fn add_ceiling(
    report: &mut RowReport,
    mode: Mode,
    ceilings: &Ceilings,
    (bytes, flops): (Option<f64>, Option<f64>),
) {
    report.device.intensity = flops.zip(bytes).map(|(flops, bytes)| flops / bytes);
    let Some(time) = report.time_ns.filter(|_| mode != Mode::EndToEnd) else { return };
    let seconds = time / 1e9;
    let l2 = ceilings.l2_bytes as f64;
    let memory = bytes.map(|bytes| {
        // What the last call left in the cache need not come from memory, nor need what is written reach it in time. A cold call
        // finds nothing, and has to make room for what it writes.
        let stays = if mode == Mode::Cold { 0.0 } else { bytes };
        let near = bytes / ceilings.l2_bytes_per_s;
        let far = (bytes - stays.min(l2)).max(0.0) / ceilings.memory_bytes_per_s;
        if far >= near { ("memory".to_owned(), far) } else { ("l2".to_owned(), near) }
    });
    let arithmetic = flops.and_then(|flops| {
        let rate = |element: &str| Some((element.to_owned(), flops / ceilings.rate(element)?));
        let own = rate(&report.element.to_lowercase().replace("f8", ""))?;
        // Faster than its own type allows: its operands may have fewer bits than what it is named after. Then the slowest rate
        // counts that it does not exceed, or the fastest that there is.
        let mut faster: Vec<(String, f64)> =
            ceilings.matrix.iter().filter_map(|known| rate(&known.element)).collect();
        order::sort_by(&mut faster, |a, b| b.1.total_cmp(&a.1));
        faster.retain(|other| other.1 < own.1);
        let fits = faster.iter().find(|other| other.1 <= seconds).or(faster.last()).cloned();
        Some(fits.filter(|_| own.1 > IMPOSSIBLE * seconds).unwrap_or(own))
    });
    let binding = [memory, arithmetic].into_iter().flatten().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((name, floor)) = binding else { return };
    let share = floor / seconds;
    report.ceiling_share = Some(share);
    if share > IMPOSSIBLE {
        report.remarks.push(format!(
            "{:.0} % of what the device was measured to be capable of ({name}): its `bytes` or `flops` are too high, or it \
             does not do the work",
            100.0 * share
        ));
    }
    report.device.ceiling = Some(name);
}

/// Lines about transfers and kernels of the largest size, one for every variant on a device.
pub(super) fn lines(rows: &[RowReport]) -> Vec<String> {
    let is_of_device = |row: &RowReport| row.device.device_peak_bytes.is_some();
    last_of_variants(rows, is_of_device).into_iter().flat_map(line).collect()
}

fn line(row: &RowReport) -> [String; 2] {
    let DeviceRow { h2d_ns, h2d_pinned_ns, d2h_ns, d2h_pinned_ns, device_peak_bytes, .. } =
        &row.device;
    let time = |time: &Option<f64>| time.map_or_else(|| "?".to_owned(), units::time);
    let transfers = format!(
        "{} at {}: to the device {} (pinned {}), back {} (pinned {}); {} on the device",
        row.variant,
        row.size,
        time(h2d_ns),
        time(h2d_pinned_ns),
        time(d2h_ns),
        time(d2h_pinned_ns),
        units::bytes(device_peak_bytes.unwrap_or(0))
    );
    let kernels: Vec<String> = row.device.device_kernels.iter().map(kernel).collect();
    let launches = match kernels.as_slice() {
        [] => format!("{} launches kernels of a library", row.variant),
        some => format!("{} launches {}", row.variant, some.join("; ")),
    };
    [transfers, launches]
}

fn kernel(kernel: &DeviceKernel) -> String {
    let product = |sides: [u32; 3]| {
        let used: Vec<String> =
            sides.iter().take_while(|n| **n > 1).map(ToString::to_string).collect();
        if used.is_empty() { "1".to_owned() } else { used.join("×") }
    };
    let times =
        if kernel.launches > 1 { format!("{} times ", kernel.launches) } else { String::new() };
    let spills = match kernel.spill_bytes {
        Some(0) => ", no spills".to_owned(),
        Some(bytes) => format!(", {bytes} bytes spilled"),
        None => String::new(),
    };
    let shared = match kernel.shared_bytes {
        0 => String::new(),
        bytes => format!(", {} shared", units::bytes(u64::from(bytes))),
    };
    format!(
        "{times}`{}`: {} blocks of {}, {} registers{shared}{spills}, occupancy {:.0} %",
        kernel.name,
        product(kernel.grid),
        product(kernel.block),
        kernel.registers,
        100.0 * kernel.occupancy
    )
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::TypeRate;
    use crate::report::row::tests::row;

    fn ceilings() -> Ceilings {
        let rate =
            |element: &str, flops_per_s| TypeRate { element: element.to_owned(), flops_per_s };
        Ceilings {
            copy_bytes_per_s: 4e12,
            memory_bytes_per_s: 4e12,
            l2_bytes_per_s: 10e12,
            l2_bytes: 50_000_000,
            matrix: vec![rate("f32", 50e12), rate("tf32", 400e12)],
        }
    }

    fn under(mode: Mode, microseconds: f64, bytes: f64, flops: f64) -> RowReport {
        let mut report = row("cuda", 1024);
        report.time_ns = Some(1e3 * microseconds);
        let figures = (Some(bytes), (flops > 0.0).then_some(flops));
        add_ceiling(&mut report, mode, &ceilings(), figures);
        report
    }

    fn share(report: &RowReport) -> (String, f64) {
        (report.device.ceiling.clone().unwrap_or_default(), report.ceiling_share.unwrap_or(0.0))
    }

    #[test]
    fn the_binding_ceiling_is_the_one_that_takes_longest() {
        let (name, large) = share(&under(Mode::Hot, 1000.0, 4.05e9, 0.0));
        assert_eq!((name.as_str(), (large * 100.0).round()), ("memory", 100.0));
        let (name, near) = share(&under(Mode::Hot, 2.0, 10e6, 0.0));
        assert_eq!((name.as_str(), (near * 100.0).round()), ("l2", 50.0));
        let (name, arithmetic) = share(&under(Mode::Hot, 100.0, 1e6, 4e9));
        assert_eq!((name.as_str(), (arithmetic * 100.0).round()), ("f32", 80.0));
    }

    #[test]
    fn a_cold_call_has_to_move_all_of_its_bytes() {
        let (name, cold) = share(&under(Mode::Cold, 50.0, 100e6, 0.0));
        assert_eq!((name.as_str(), (cold * 100.0).round()), ("memory", 50.0));
        let (_, hot) = share(&under(Mode::Hot, 50.0, 100e6, 0.0));
        assert_eq!((hot * 100.0).round(), 25.0);
    }

    #[test]
    fn faster_than_single_precision_is_the_matrix_units_and_faster_than_these_is_a_mistake() {
        let fast = under(Mode::Hot, 100.0, 1e6, 20e9);
        assert_eq!((share(&fast).0.as_str(), fast.remarks.len()), ("tf32", 0));
        let impossible = under(Mode::Hot, 100.0, 1e6, 100e9);
        let remark = &impossible.remarks[0];
        assert!(remark.starts_with("250 % of what the device was measured"), "{remark}");
    }

    #[test]
    fn a_time_from_host_to_host_is_under_no_ceiling() {
        assert_eq!(under(Mode::EndToEnd, 1.0, 1e9, 0.0).ceiling_share, None);
    }

    #[test]
    fn events_and_host_may_differ_by_what_the_host_takes() {
        assert_eq!(disagreement(2_000.0, 9_000.0, 1.0), None);
        assert_eq!(disagreement(100_000.0, 107_000.0, 1.0), None);
        assert!(disagreement(2_000.0, 1_000_000.0, 1.0).is_some());
        assert!(disagreement(100_000.0, 50_000.0, 1.0).is_some());
        assert!(disagreement(2_000.0, 9_000.0, 200.0).is_some());
    }

    #[test]
    fn what_is_left_running_on_another_stream_is_told() {
        assert_eq!(escape(DeviceFigures::default().elsewhere_ns), None);
        assert_eq!(escape(12_000.0), None);
        let remark = escape(4_000_000.0).expect("a remark");
        assert!(remark.starts_with("leaves the device busy for 4.00 ms"), "{remark}");
    }
}
