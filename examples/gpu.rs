//! One kernel on the CPU and on a GPU, compared without and with transfers: `cargo run --example gpu`.

use kbench::prelude::*;

/// y ← a·x + y
#[kernel_bench(
    sizes = [1 << 12, 1 << 16, 1 << 20, 1 << 24],
    inputs = |n| (0.5, uniform(n), uniform(n)),
    in_place = reuse,
)]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    x.iter().zip(y).for_each(|(x, y)| *y += a * x);
}

const SOURCE: &str = r#"
extern "C" __global__ void saxpy(float a, const float* x, float* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}"#;

/// The same on a GPU, one thread for each element.
#[kernel_bench(of = saxpy, cuda)]
pub fn saxpy_cuda(
    gpu: &Gpu,
    a: f32,
    x: &DeviceSlice<f32>,
    y: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let n = x.len();
    gpu.kernel(SOURCE, "saxpy")?.over(n, 256).arg(a).arg(x).arg(y).arg(n).launch()
}

kbench::main!(measure);
