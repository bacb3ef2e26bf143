//! Entry points of device code, and what it needs of a device.

use kbench::{Declined, Gpu, GpuResult};

/// The headers that all CUDA sources of the library may include.
pub const COMMON: &[(&str, &str)] = &[
    ("common.cuh", include_str!("../../cuda/common.cuh")),
    ("copies.cuh", include_str!("../../cuda/copies.cuh")),
    ("matmul_plain.cuh", include_str!("../../cuda/matmul_plain.cuh")),
    ("matmul_tensor.cuh", include_str!("../../cuda/matmul_tensor.cuh")),
    ("meeting.cuh", include_str!("../../cuda/meeting.cuh")),
    ("tally.cuh", include_str!("../../cuda/tally.cuh")),
    ("wgmma.cuh", include_str!("../../cuda/wgmma.cuh")),
];

/// Blocks of a grid that have one result, at most: MOST_BLOCKS of meeting.cuh.
pub const MOST_BLOCKS: usize = 8192;

/// Warps of a grid that have one mean, at most: MOST_TALLIED of tally.cuh.
pub const MOST_TALLIED: usize = 16_383;

/// Declines on a device without the instructions for groups of four warps, which one generation alone has.
pub fn needs_hopper(gpu: &Gpu) -> GpuResult<()> {
    match gpu.info().compute_capability.as_str() {
        "9.0" => Ok(()),
        other => Err(Declined(format!(
            "it is made for compute capability 9.0, and this device has {other}"
        ))
        .into()),
    }
}

/// Declines on a device that cannot copy from memory past its registers.
pub fn needs_ampere(gpu: &Gpu) -> GpuResult<()> {
    let capability = &gpu.info().compute_capability;
    match capability.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
        Some(..8) => Err(Declined(format!(
            "it needs compute capability 8.0 or newer, and this device has {capability}"
        ))
        .into()),
        _ => Ok(()),
    }
}

/// The entry point for an element type: `entry!(T, "add")` is `add_f32`, `add_f16` or `add_bf16`.
macro_rules! entry {
    ($element:ty, $name:literal) => {
        <$element as $crate::shared::Float>::one_of([
            concat!($name, "_f32"),
            concat!($name, "_f16"),
            concat!($name, "_bf16"),
        ])
    };
}

pub(crate) use entry;
