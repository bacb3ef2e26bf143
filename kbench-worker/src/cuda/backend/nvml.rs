//! What NVIDIA's driver says about a GPU: clocks, heat, power, and what holds it back.
//!
//! The driver's management library (NVML) is opened when asked for, so that nothing depends on its being there. Every
//! figure is optional: an old driver lacks a function, a small GPU a sensor, a container a permission.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use libloading::Library;

use crate::cuda::ThrottleReasons;

/// The library, by the name that every driver for Linux installs it under.
const LIBRARY: &str = "libnvidia-ml.so.1";

// Constants and types of `nvml.h`, version 12.
const SUCCESS: c_int = 0;
const INSUFFICIENT_SIZE: c_int = 7;
const SM_CLOCK: c_uint = 1;
const SENSOR_ON_THE_CHIP: c_uint = 0;
const ENABLED: c_uint = 1;
const DRIVER_VERSION_LENGTH: usize = 80;

/// A GPU, as the library knows it.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Handle(*mut c_void);

/// One process that computes on a GPU; only its id is of interest here.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Process {
    id: c_uint,
    memory: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

type Plain = unsafe extern "C" fn() -> c_int;
type Text = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
type Find = unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int;
type Read<T> = unsafe extern "C" fn(Handle, *mut T) -> c_int;
type ReadOne = unsafe extern "C" fn(Handle, c_uint, *mut c_uint) -> c_int;
type ReadTwo = unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint) -> c_int;
type List = unsafe extern "C" fn(Handle, *mut c_uint, *mut Process) -> c_int;

/// The functions that were found. They are valid as long as the library is open, which is as long as this exists.
struct Api {
    shutdown: Option<Plain>,
    driver_version: Option<Text>,
    device: Option<Find>,
    clock: Option<ReadOne>,
    max_clock: Option<ReadOne>,
    temperature: Option<ReadOne>,
    power: Option<Read<c_uint>>,
    power_limit: Option<Read<c_uint>>,
    throttle: Option<Read<c_ulonglong>>,
    persistence: Option<Read<c_uint>>,
    ecc: Option<ReadTwo>,
    processes: Option<List>,
    /// The last field: dropped after everything that points into it.
    _library: Library,
}

impl Api {
    fn open(path: &OsStr) -> Option<Self> {
        // SAFETY: the library is the driver's own, whose initialisers are made to be run by any program; it is unloaded
        // when `Api` is dropped, after the last call.
        let library = unsafe { Library::new(path) }.ok()?;
        // SAFETY: every type here is that of the function in `nvml.h`.
        unsafe {
            let initialise: Plain = symbol(&library, "nvmlInit_v2")?;
            // SAFETY: it takes nothing, and may be called from any thread and any number of times.
            if initialise() != SUCCESS {
                return None;
            }
            Some(Api {
                shutdown: symbol(&library, "nvmlShutdown"),
                driver_version: symbol(&library, "nvmlSystemGetDriverVersion"),
                device: symbol(&library, "nvmlDeviceGetHandleByPciBusId_v2"),
                clock: symbol(&library, "nvmlDeviceGetClockInfo"),
                max_clock: symbol(&library, "nvmlDeviceGetMaxClockInfo"),
                temperature: symbol(&library, "nvmlDeviceGetTemperature"),
                power: symbol(&library, "nvmlDeviceGetPowerUsage"),
                power_limit: symbol(&library, "nvmlDeviceGetEnforcedPowerLimit"),
                // Renamed with version 12.2; the numbers are the same.
                throttle: symbol(&library, "nvmlDeviceGetCurrentClocksEventReasons")
                    .or_else(|| symbol(&library, "nvmlDeviceGetCurrentClocksThrottleReasons")),
                persistence: symbol(&library, "nvmlDeviceGetPersistenceMode"),
                ecc: symbol(&library, "nvmlDeviceGetEccMode"),
                processes: symbol(&library, "nvmlDeviceGetComputeRunningProcesses_v3"),
                _library: library,
            })
        }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        if let Some(shutdown) = self.shutdown {
            // SAFETY: the library is still open, and it was initialised once for this `Api`; others that use it in this
            // process have initialised it for themselves, and it counts them.
            unsafe { shutdown() };
        }
    }
}

/// A function of the library, if it has it.
///
/// # Safety
/// `F` is the type of the function with this name, and what is returned is not called after the library was dropped.
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: the caller knows the type.
    unsafe { library.get::<F>(name) }.ok().map(|found| *found)
}

/// The management library of NVIDIA's driver.
#[derive(Clone)]
pub(crate) struct Nvml(Arc<Api>);

impl Nvml {
    /// The library, ready for questions; `None` where there is no driver.
    ///
    /// It may take some tenths of a second, when the driver has to wake a GPU up.
    pub(crate) fn open() -> Option<Self> {
        Self::open_at(OsStr::new(LIBRARY))
    }

    fn open_at(path: &OsStr) -> Option<Self> {
        Api::open(path).map(|api| Nvml(Arc::new(api)))
    }

    /// The driver's version, such as `580.82.07`.
    pub(crate) fn driver_version(&self) -> Option<String> {
        let mut text = [0u8; DRIVER_VERSION_LENGTH];
        // SAFETY: the buffer is as long as it says, and lives through the call.
        let outcome = unsafe {
            self.0.driver_version?(text.as_mut_ptr().cast(), DRIVER_VERSION_LENGTH as c_uint)
        };
        let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| outcome == SUCCESS)?;
        Some(text.to_string_lossy().into_owned())
    }

    /// The GPU at an address on the PCI bus, such as `0000:3b:00.0`: the same one that CUDA gives this address, whatever
    /// the two count it as.
    pub(crate) fn device(&self, pci_bus_id: &str) -> Option<NvmlDevice> {
        let address = CString::new(pci_bus_id).ok()?;
        let mut handle = Handle(null_mut());
        // SAFETY: the text ends with a zero, and both live through the call.
        let outcome = unsafe { self.0.device?(address.as_ptr(), &mut handle) };
        (outcome == SUCCESS).then(|| NvmlDevice { api: Arc::clone(&self.0), handle })
    }
}

/// One GPU. Every question asks the driver anew, which takes some microseconds to milliseconds: not inside of what is timed.
pub(crate) struct NvmlDevice {
    api: Arc<Api>,
    handle: Handle,
}

// SAFETY: the library may be called from any thread at any time ("NVML is thread-safe", its API reference), and a handle
// is good in all of them until the library is shut down, which `api` puts off.
unsafe impl Send for NvmlDevice {}
// SAFETY: as above; nothing here changes after it was made.
unsafe impl Sync for NvmlDevice {}

impl NvmlDevice {
    /// The clock of the multiprocessors, now.
    pub(crate) fn sm_clock_mhz(&self) -> Option<u32> {
        self.read_one(self.api.clock, SM_CLOCK)
    }

    /// The highest clock of the multiprocessors.
    pub(crate) fn max_sm_clock_mhz(&self) -> Option<u32> {
        self.read_one(self.api.max_clock, SM_CLOCK)
    }

    /// The temperature of the chip.
    pub(crate) fn temperature_celsius(&self) -> Option<u32> {
        self.read_one(self.api.temperature, SENSOR_ON_THE_CHIP)
    }

    /// What the board draws: the mean of the last second, on older generations that of the moment.
    pub(crate) fn power_watts(&self) -> Option<f64> {
        self.read(self.api.power).map(watts)
    }

    /// What the board may draw: the lowest of all limits that are set.
    pub(crate) fn power_limit_watts(&self) -> Option<f64> {
        self.read(self.api.power_limit).map(watts)
    }

    /// Why the clocks are not higher, now.
    pub(crate) fn throttle(&self) -> Option<ThrottleReasons> {
        self.read(self.api.throttle).map(ThrottleReasons::from_bits)
    }

    /// Whether the driver stays loaded when nobody uses the GPU.
    pub(crate) fn persistence(&self) -> Option<bool> {
        self.read(self.api.persistence).map(|mode| mode == ENABLED)
    }

    /// Whether memory is protected by error-correcting codes.
    pub(crate) fn ecc(&self) -> Option<bool> {
        let (mut now, mut after_restart) = (0, 0);
        // SAFETY: the handle came from this library, and both values live through the call.
        let outcome = unsafe { self.api.ecc?(self.handle, &mut now, &mut after_restart) };
        (outcome == SUCCESS).then_some(now == ENABLED)
    }

    /// Other processes that compute on this GPU.
    ///
    /// In a container with process ids of its own the driver may know this process by another id, and then counts it too.
    pub(crate) fn other_processes(&self) -> Option<usize> {
        let processes = self.processes()?;
        Some(processes.iter().filter(|process| process.id != std::process::id()).count())
    }

    fn processes(&self) -> Option<Vec<Process>> {
        // More than ever share a GPU, in general; if not, the library says how many there are, and a few may come yet.
        const ROOM: usize = 64;
        const SPARE: usize = 16;
        let mut room = ROOM;
        for _ in 0..3 {
            let mut processes = vec![Process::default(); room];
            let mut count = room as c_uint;
            // SAFETY: the handle came from this library, and the buffer has as many places as `count` says.
            let outcome =
                unsafe { self.api.processes?(self.handle, &mut count, processes.as_mut_ptr()) };
            match outcome {
                SUCCESS => {
                    processes.truncate(count as usize);
                    return Some(processes);
                }
                INSUFFICIENT_SIZE => room = room.max(count as usize) + SPARE,
                _ => return None,
            }
        }
        None
    }

    fn read<T: Default>(&self, function: Option<Read<T>>) -> Option<T> {
        let mut value = T::default();
        // SAFETY: the handle came from this library, and the value lives through the call and has the function's type.
        let outcome = unsafe { function?(self.handle, &mut value) };
        (outcome == SUCCESS).then_some(value)
    }

    fn read_one(&self, function: Option<ReadOne>, which: c_uint) -> Option<u32> {
        let mut value = 0;
        // SAFETY: the handle came from this library, and the value lives through the call.
        let outcome = unsafe { function?(self.handle, which, &mut value) };
        (outcome == SUCCESS).then_some(value)
    }
}

fn watts(milliwatts: c_uint) -> f64 {
    f64::from(milliwatts) / 1000.0
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    /// A library with one GPU, which answers only between initialisation and shutdown. `BARE` has no figures, `OLD` knows
    /// the reasons by their former name, `BROKEN` finds no driver, `REFUSING` has all functions and no answers.
    const FAKE: &str = r#"
        #include <string.h>
        #include <unistd.h>
        typedef struct { int alive; } *Device;
        typedef struct { unsigned id; unsigned long long memory; unsigned instance, part; } Process;
        static struct { int alive; } gpu;
        #ifdef REFUSING
        #define ANSWER return 3
        #else
        #define ANSWER return ((Device)&gpu == d && gpu.alive) ? 0 : 1
        #endif
        #ifdef BROKEN
        int nvmlInit_v2(void) { return 9; }
        #else
        int nvmlInit_v2(void) { gpu.alive++; return 0; }
        #endif
        int nvmlShutdown(void) { gpu.alive--; return 0; }
        int nvmlDeviceGetHandleByPciBusId_v2(const char *id, Device *d) {
            if (strcmp(id, "0000:3b:00.0")) return 6;
            *d = (Device)&gpu;
            return 0;
        }
        #ifdef OLD
        int nvmlDeviceGetCurrentClocksThrottleReasons(Device d, unsigned long long *v) { *v = 0x44; ANSWER; }
        #elif !defined BARE
        int nvmlDeviceGetCurrentClocksEventReasons(Device d, unsigned long long *v) { *v = 0x24; ANSWER; }
        int nvmlDeviceGetCurrentClocksThrottleReasons(Device d, unsigned long long *v) { return 3; }
        int nvmlSystemGetDriverVersion(char *v, unsigned n) { strncpy(v, "580.82.07", n); return 0; }
        int nvmlDeviceGetClockInfo(Device d, int which, unsigned *v) { *v = which == 1 ? 1755 : which == 2 ? 3201 : 0; ANSWER; }
        int nvmlDeviceGetMaxClockInfo(Device d, int which, unsigned *v) { *v = which == 1 ? 1980 : 0; ANSWER; }
        int nvmlDeviceGetTemperature(Device d, int which, unsigned *v) { *v = which == 0 ? 41 : 0; ANSWER; }
        int nvmlDeviceGetPowerUsage(Device d, unsigned *v) { *v = 123456; ANSWER; }
        int nvmlDeviceGetEnforcedPowerLimit(Device d, unsigned *v) { *v = 700000; ANSWER; }
        int nvmlDeviceGetPersistenceMode(Device d, int *v) { *v = 0; ANSWER; }
        int nvmlDeviceGetEccMode(Device d, int *now, int *pending) { *now = 1; *pending = 0; ANSWER; }
        int nvmlDeviceGetComputeRunningProcesses_v3(Device d, unsigned *count, Process *p) {
            unsigned room = *count, all = 100;
            *count = all;
            if (room < all) return 7;
            for (unsigned i = 0; i < all; i++) p[i].id = i == 40 ? getpid() : 4000000000u + i;
            ANSWER;
        }
        #endif
    "#;

    /// A fake library in a folder of its own, gone with it.
    struct Fake {
        folder: PathBuf,
        nvml: Option<Nvml>,
    }

    impl Fake {
        fn new(kind: &str) -> Self {
            let name = format!("kbench-nvml-{kind}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).expect("a folder for the fake");
            let (source, library) = (folder.join("fake.c"), folder.join(LIBRARY));
            std::fs::write(&source, FAKE).expect("the source of the fake");
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", &format!("-D{kind}"), "-o"]);
            let status = compiler.args([&library, &source]).status().expect("a C compiler");
            assert!(status.success());
            Fake { folder, nvml: Nvml::open_at(library.as_os_str()) }
        }

        fn device(&self) -> NvmlDevice {
            self.nvml.as_ref().expect("opened").device("0000:3b:00.0").expect("the GPU")
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    /// All figures of a GPU, as text.
    fn figures(device: &NvmlDevice) -> [String; 9] {
        [
            format!("{:?}", device.sm_clock_mhz()),
            format!("{:?}", device.max_sm_clock_mhz()),
            format!("{:?}", device.temperature_celsius()),
            format!("{:?}", device.power_watts()),
            format!("{:?}", device.power_limit_watts()),
            format!("{:?}", device.throttle().map(|reasons| reasons.to_string())),
            format!("{:?}", device.persistence()),
            format!("{:?}", device.ecc()),
            format!("{:?}", device.other_processes()),
        ]
    }

    const ALL: [&str; 9] = [
        "Some(1755)",
        "Some(1980)",
        "Some(41)",
        "Some(123.456)",
        "Some(700.0)",
        "Some(\"thermal slowdown by the driver, power cap\")",
        "Some(false)",
        "Some(true)",
        "Some(99)",
    ];

    #[test]
    fn a_gpu_is_found_by_its_address_and_tells_all() {
        let fake = Fake::new("WHOLE");
        let nvml = fake.nvml.as_ref().expect("opened");
        assert_eq!(nvml.driver_version().as_deref(), Some("580.82.07"));
        assert!(nvml.device("0000:99:00.0").is_none() && nvml.device("\0").is_none());
        assert_eq!(figures(&fake.device()), ALL);
    }

    #[test]
    fn a_gpu_keeps_the_library_open() {
        let mut fake = Fake::new("KEPT");
        let device = fake.device();
        fake.nvml = None;
        assert_eq!(figures(&device), ALL);
    }

    #[test]
    fn what_the_library_lacks_or_refuses_is_none() {
        for kind in ["BARE", "REFUSING"] {
            let fake = Fake::new(kind);
            assert_eq!(figures(&fake.device()), ["None"; 9], "{kind}");
        }
    }

    #[test]
    fn reasons_are_found_by_their_former_name() {
        let reasons = Fake::new("OLD").device().throttle().expect("reasons");
        assert!(reasons.is_hardware_thermal() && reasons.is_power_capped() && reasons.harms());
    }

    #[test]
    fn without_a_library_or_a_driver_there_is_nothing() {
        assert!(Nvml::open_at(OsStr::new("libnvidia-ml-nowhere.so.1")).is_none());
        assert!(Fake::new("BROKEN").nvml.is_none());
    }

    #[test]
    fn the_machine_s_own_library_knows_its_version() {
        // Where there is none, this says no more than that looking for it harms nobody.
        if let Some(nvml) = Nvml::open() {
            let version = nvml.driver_version().expect("a version");
            assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
        }
    }
}
