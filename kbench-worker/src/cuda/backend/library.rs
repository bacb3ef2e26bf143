//! Which of CUDA's libraries and devices are there.

use std::ffi::c_char;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use cudarc::driver::{DriverError, result};

use super::nvml::Nvml;
use crate::cuda::{DeviceInfo, Unavailable, is_switched_off};

/// The version of CUDA whose interface is used: older drivers lack functions of it.
const NEEDED: i32 = 13_000;

/// All devices of this machine, or none under `--no-gpu`; asking makes no context on any of them.
pub fn devices() -> Result<Vec<DeviceInfo>, Unavailable> {
    if is_switched_off() {
        return Err(Unavailable::SwitchedOff);
    }
    // SAFETY: opening the driver's library runs nothing but its initialisers.
    if !unsafe { sys::is_culib_present() } {
        return Err(Unavailable::NoDriver);
    }
    let mut version = 0;
    // SAFETY: the library is there, and the function writes one integer.
    let asked = unsafe { sys::cuDriverGetVersion(&mut version) };
    if asked != CUresult::CUDA_SUCCESS {
        return Err(Unavailable::Broken(format!("{asked:?}")));
    }
    if version < NEEDED {
        return Err(Unavailable::OldDriver { have: dotted(version), need: dotted(NEEDED) });
    }
    match result::init() {
        Ok(()) => {}
        Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => return Err(Unavailable::NoDevice),
        Err(DriverError(code)) => return Err(Unavailable::Broken(format!("{code:?}"))),
    }
    let broken = |error: DriverError| Unavailable::Broken(format!("{:?}", error.0));
    let count = result::device::get_count().map_err(broken)?;
    if count == 0 {
        return Err(Unavailable::NoDevice);
    }
    if !has_nvrtc() {
        return Err(Unavailable::NoNvrtc);
    }
    let nvml = Nvml::open();
    (0..count as usize).map(|o| describe(o, version, nvml.as_ref()).map_err(broken)).collect()
}

/// The device of a number.
pub(super) fn device(ordinal: usize) -> Result<DeviceInfo, Unavailable> {
    let all = devices()?;
    let names = || all.iter().map(|d| format!("{} ({})", d.ordinal, d.name)).collect::<Vec<_>>();
    all.iter()
        .find(|device| device.ordinal == ordinal)
        .cloned()
        .ok_or_else(|| Unavailable::NoSuchDevice { asked: ordinal, found: names().join(", ") })
}

fn describe(ordinal: usize, version: i32, nvml: Option<&Nvml>) -> Result<DeviceInfo, DriverError> {
    let device = result::device::get(ordinal as i32)?;
    // SAFETY: the device was just given by the driver.
    let attribute = |which| unsafe { result::device::get_attribute(device, which) };
    let mut bus = [0 as c_char; 20];
    // SAFETY: the buffer has the length that is told.
    unsafe { sys::cuDeviceGetPCIBusId(bus.as_mut_ptr(), bus.len() as i32, device) }.result()?;
    let bus: String =
        bus.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8 as char).collect();
    let uuid = result::device::get_uuid(device)?;
    let uuid: String = uuid.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect();
    let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let told = nvml.and_then(|nvml| nvml.device(&bus));
    let told = told.as_ref();
    Ok(DeviceInfo {
        ordinal,
        name: result::device::get_name(device)?,
        uuid,
        compute_capability: format!("{major}.{minor}"),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
        // SAFETY: the device was just given by the driver.
        memory_bytes: unsafe { result::device::total_mem(device)? } as u64,
        l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as u64,
        block_shared_bytes: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )? as u64,
        cuda: dotted(version),
        driver: nvml.and_then(Nvml::driver_version),
        power_limit_watts: told.and_then(|device| device.power_limit_watts()),
        max_clock_mhz: told.and_then(|device| device.max_sm_clock_mhz()),
        ecc: told.and_then(|device| device.ecc()),
        persistence: told.and_then(|device| device.persistence()),
        other_processes: told.and_then(|device| device.other_processes()),
        pci_bus_id: bus,
    })
}

/// 13040 as `13.4`.
fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Whether the compiler can be called.
pub(super) fn has_nvrtc() -> bool {
    // SAFETY: opening the library runs nothing but its initialisers.
    is_present("nvrtc", || unsafe { cudarc::nvrtc::sys::is_culib_present() })
}

/// Whether cuBLAS can be called.
pub(super) fn has_cublas() -> bool {
    // SAFETY: as above.
    is_present("cublas", || unsafe { cudarc::cublas::sys::is_culib_present() })
}

/// Whether cuBLASLt can be called.
pub(super) fn has_cublas_lt() -> bool {
    // SAFETY: as above.
    is_present("cublasLt", || unsafe { cudarc::cublaslt::sys::is_culib_present() })
}

/// Whether a library is found: by the loader, or in the folders where toolkits are installed. One that was opened by its
/// path is afterwards found by its name.
fn is_present(name: &str, by_loader: impl Fn() -> bool) -> bool {
    if by_loader() {
        return true;
    }
    let names = [format!("lib{name}.so.13"), format!("lib{name}.so")];
    let files = library_folders().flat_map(|folder| names.clone().map(|name| folder.join(name)));
    for file in files.filter(|file| file.exists()) {
        // What it opens by name when it is called must have been opened, too.
        companions(&file, name).iter().for_each(|file| open_for_good(file));
        open_for_good(&file);
        if by_loader() {
            return true;
        }
    }
    false
}

/// Opens a library, and never closes it.
fn open_for_good(file: &Path) {
    // SAFETY: a library of NVIDIA's toolkit, opened as the loader would.
    if let Ok(library) = unsafe { libloading::Library::new(file) } {
        std::mem::forget(library);
    }
}

/// Libraries beside one whose names begin like its own: `libnvrtc-builtins.so.13.0` beside `libnvrtc.so.13`.
fn companions(file: &Path, name: &str) -> Vec<PathBuf> {
    let entries = file.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let is_companion = |path: &PathBuf| {
        let found = path.file_name().unwrap_or_default().to_string_lossy();
        found.starts_with(&format!("lib{name}-")) && found.contains(".so")
    };
    entries.into_iter().flatten().flatten().map(|e| e.path()).filter(is_companion).collect()
}

/// Folders of toolkits, the one that the environment names first.
fn toolkits() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let named = ["CUDA_PATH", "CUDA_HOME", "CUDA_ROOT"].iter().filter_map(std::env::var_os);
        let usual = ["/usr/local/cuda", "/usr/local/cuda-13", "/opt/cuda", "/usr/lib/cuda", "/usr"];
        named.map(PathBuf::from).chain(usual.map(PathBuf::from)).filter(|p| p.is_dir()).collect()
    })
}

fn library_folders() -> impl Iterator<Item = PathBuf> {
    let below = ["lib64", "lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"];
    toolkits().iter().flat_map(move |toolkit| below.map(|folder| toolkit.join(folder)))
}

/// Folders with CUDA's headers (`cuda_fp16.h` and its like), which device code may include.
pub(super) fn include_folders() -> Vec<PathBuf> {
    let has_headers = |folder: &PathBuf| Path::new(folder).join("cuda_fp16.h").exists();
    let below = ["include", "targets/x86_64-linux/include"];
    let known = toolkits().iter().flat_map(|toolkit| below.map(|folder| toolkit.join(folder)));
    // Python's packages have libraries and headers side by side; the loader's path leads to the former.
    let paths = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let beside = std::env::split_paths(&paths).map(|folder| folder.join("../include"));
    known.chain(beside).find(has_headers).into_iter().collect()
}
