//! Which devices there are, or why there is none.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// Whether this process leaves its devices alone. They belong to the process and not to a run: a kernel of the host that
/// looks for one on its own has nobody else to ask.
static SWITCHED_OFF: AtomicBool = AtomicBool::new(false);

/// Leaves all devices alone from now on, or does not.
pub fn switch_off(is_off: bool) {
    SWITCHED_OFF.store(is_off, Ordering::Relaxed);
}

/// Whether devices are to be left alone.
#[cfg(feature = "cuda")]
pub(super) fn is_switched_off() -> bool {
    SWITCHED_OFF.load(Ordering::Relaxed)
}

/// Why a CUDA variant cannot run here, in words that complete "skipped: ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The feature is off.
    #[error("kbench was built without its feature `cuda`; enable it where kbench is a dependency")]
    NotBuilt,
    /// Somebody said so.
    #[error("GPUs are switched off by --no-gpu")]
    SwitchedOff,
    /// The driver's library cannot be opened.
    #[error(
        "no CUDA driver: libcuda.so.1 is not found; install NVIDIA's driver, or run where there is one"
    )]
    NoDriver,
    /// The driver is older than the interface that is used.
    #[error(
        "the CUDA driver is too old: it speaks CUDA {have}, and kbench needs {need}; update NVIDIA's driver"
    )]
    OldDriver {
        /// What it speaks.
        have: String,
        /// What it should.
        need: String,
    },
    /// There is a driver and nothing to drive.
    #[error(
        "no CUDA device: the driver is there, and finds none (CUDA_VISIBLE_DEVICES may hide it)"
    )]
    NoDevice,
    /// The device that was asked for is not there.
    #[error("there is no CUDA device {asked}; the driver finds: {found}")]
    NoSuchDevice {
        /// Its number.
        asked: usize,
        /// Those that are there.
        found: String,
    },
    /// The driver does not start.
    #[error("the CUDA driver does not start: {0}")]
    Broken(String),
    /// The compiler's library cannot be opened.
    #[error(
        "no NVRTC: libnvrtc is not found; install the CUDA toolkit or its NVRTC package, and name its folder in \
         LD_LIBRARY_PATH or CUDA_PATH"
    )]
    NoNvrtc,
}

/// A device, as the driver describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Its number, as `--device` takes it.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Its identity, which stays when numbers change.
    pub uuid: String,
    /// Where it is plugged in.
    pub pci_bus_id: String,
    /// Compute capability, as in `9.0`.
    pub compute_capability: String,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Bytes of its second-level cache.
    pub l2_bytes: u64,
    /// Bytes of shared memory that a block can ask for.
    pub block_shared_bytes: u64,
    /// The version of CUDA that the driver speaks, as in `13.0`.
    pub cuda: String,
    /// The driver's own version, where NVML tells.
    pub driver: Option<String>,
    /// Watts that it may draw, where NVML tells.
    pub power_limit_watts: Option<f64>,
    /// Highest clock of its multiprocessors, where NVML tells.
    pub max_clock_mhz: Option<u32>,
    /// Whether its memory corrects errors, where NVML tells.
    pub ecc: Option<bool>,
    /// Whether the driver stays loaded when nobody uses it, where NVML tells.
    pub persistence: Option<bool>,
    /// Other processes that compute on it, where NVML tells.
    pub other_processes: Option<usize>,
}

impl DeviceInfo {
    /// `NVIDIA H200 · 140 GiB · CUDA 13.0, driver 580.159.04`.
    pub fn summary(&self) -> String {
        let gib = self.memory_bytes as f64 / (1u64 << 30) as f64;
        let driver = self.driver.as_ref().map_or_else(String::new, |d| format!(", driver {d}"));
        format!("{} · {gib:.0} GiB · CUDA {}{driver}", self.name, self.cuda)
    }
}
