//! What is known of a device and of calls on it, besides times.

use serde::{Deserialize, Serialize};

use super::ThrottleReasons;

/// What was read beside one sample on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReading {
    /// Nanoseconds of one call by the host's clock, which must not disagree.
    pub host: f64,
    /// Clock of the multiprocessors during the sample.
    pub clock_mhz: Option<f64>,
    /// Degrees Celsius, where NVML tells.
    pub temperature: Option<u32>,
    /// Watts, where NVML tells.
    pub power: Option<f64>,
    /// Why the clock is not higher, where NVML tells.
    pub throttling: Option<ThrottleReasons>,
    /// Whether launching was over before the calls began; not so for variants that wait for the device.
    pub gated: bool,
}

impl DeviceReading {
    /// Both of two batches of one sample: what was seen at any moment counts.
    pub fn with(self, other: Self) -> Self {
        DeviceReading {
            host: (self.host + other.host) / 2.0,
            clock_mhz: other.clock_mhz.or(self.clock_mhz),
            temperature: self.temperature.max(other.temperature),
            power: other.power.or(self.power),
            throttling: match (self.throttling, other.throttling) {
                (Some(former), Some(latter)) => Some(former.union(latter)),
                (former, latter) => former.or(latter),
            },
            gated: self.gated && other.gated,
        }
    }

    /// Whether the device was being slowed down by something other than the kernel's own power draw.
    pub fn is_throttled(&self, max_clock_mhz: Option<f64>) -> bool {
        /// Below this share of the highest clock something slows the device down (NVIDIA's nvbench takes the same).
        const SLOW: f64 = 0.75;
        let capped = self.throttling.is_some_and(|reasons| reasons.is_power_capped());
        let slow = self.clock_mhz.zip(max_clock_mhz).is_some_and(|(now, max)| now < SLOW * max);
        self.throttling.is_some_and(|reasons| reasons.harms()) || (slow && !capped)
    }
}

/// A number of bytes in words: `1.5 GiB`.
pub fn bytes_in_words(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let step = (bytes.max(1).ilog2() / 10) as usize;
    let value = bytes as f64 / (1u64 << (10 * step)) as f64;
    if step == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[step]) }
}

/// What was found about one row on a device, besides its times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Copies between host and device that a call needs when its data lives on the host.
    pub transfers: Transfers,
    /// Most bytes of the device's memory that are live during a call, data included.
    pub peak_bytes: u64,
    /// Nanoseconds that the device is still busy when the stream is done with a call.
    pub elsewhere_ns: f64,
    /// What the calls launch.
    pub kernels: Vec<DeviceKernel>,
}

/// Nanoseconds of the copies that one call needs, by the host's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfers {
    /// Inputs to the device, from ordinary memory.
    pub h2d_ns: Option<f64>,
    /// The same from pinned memory.
    pub h2d_pinned_ns: Option<f64>,
    /// Outputs to the host, into ordinary memory.
    pub d2h_ns: Option<f64>,
    /// The same into pinned memory.
    pub d2h_pinned_ns: Option<f64>,
    /// Bytes to the device.
    pub h2d_bytes: u64,
    /// Bytes to the host.
    pub d2h_bytes: u64,
}

/// One kernel of device code, as one call of a variant launches it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceKernel {
    /// Name of its entry point.
    pub name: String,
    /// Launches per call.
    pub launches: u64,
    /// Blocks of the last launch.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared_bytes: u32,
    /// Bytes of local memory of a thread: arrays that registers do not hold, and what was spilled.
    pub local_bytes: u32,
    /// Bytes that a thread spills, as the assembler reports them; none where its report is not at hand.
    pub spill_bytes: Option<u32>,
    /// Warps that fit on a multiprocessor at once, as a share of those that it can hold.
    pub occupancy: f64,
}

/// What a device was measured to be capable of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Bytes per second of a copy within its memory, read and written.
    pub copy_bytes_per_s: f64,
    /// The best of copying, reading and filling: no kernel can move more through its memory.
    pub memory_bytes_per_s: f64,
    /// The same for data that stays in its second-level cache.
    pub l2_bytes_per_s: f64,
    /// Bytes of that cache.
    pub l2_bytes: u64,
    /// Floating-point operations per second of a large matrix product, by element type.
    pub matrix: Vec<TypeRate>,
}

/// The rate of one element type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypeRate {
    /// The element type.
    #[serde(rename = "type")]
    pub element: String,
    /// Operations per second.
    pub flops_per_s: f64,
}

impl Ceilings {
    /// Operations per second of an element type.
    pub fn rate(&self, element: &str) -> Option<f64> {
        self.matrix.iter().find(|rate| rate.element == element).map(|rate| rate.flops_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_come_back_as_they_were_kept() {
        let rate = TypeRate { element: "f64".into(), flops_per_s: 61_764_801_287_555.45 };
        let ceilings = Ceilings {
            copy_bytes_per_s: 4_276_922_958_040.029_3,
            memory_bytes_per_s: 4_555_438_137_845.744,
            matrix: vec![rate],
            ..Ceilings::default()
        };
        let kept = serde_json::to_vec(&ceilings).expect("numbers");
        assert_eq!(serde_json::from_slice::<Ceilings>(&kept).expect("the same"), ceilings);
    }

    #[test]
    fn a_low_clock_is_throttling_unless_a_power_cap_explains_it() {
        const POWER_CAP: u64 = 0x4;
        const HEAT: u64 = 0x20;
        let is_throttled = |clock: f64, reasons: Option<u64>| {
            let throttling = reasons.map(ThrottleReasons::from_bits);
            let reading =
                DeviceReading { clock_mhz: Some(clock), throttling, ..DeviceReading::default() };
            reading.is_throttled(Some(1000.0))
        };
        assert!(is_throttled(740.0, None) && is_throttled(740.0, Some(0)));
        assert!(!is_throttled(760.0, None) && !is_throttled(760.0, Some(0)));
        assert!(!is_throttled(740.0, Some(POWER_CAP)));
        assert!(is_throttled(1000.0, Some(HEAT)) && is_throttled(740.0, Some(HEAT | POWER_CAP)));
    }
}
