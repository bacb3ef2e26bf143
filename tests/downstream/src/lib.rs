//! Kernels as people write them.
#![forbid(unsafe_code)]

use kbench::prelude::*;
use rayon::prelude::*;
use std::fmt;

/// y ← s·x
#[kernel_bench(
    sizes = [256, 65_536],
    inputs = |n| (noted(uniform(n)), 3.0, zeros(n)),
    reference = scale_f64,
)]
pub fn scale(x: &[f32], s: f32, y: &mut [f32]) {
    for (x, y) in x.iter().zip(y) {
        *y = s * x;
    }
}

/// Says so when inputs are made, by which a test can tell that a listing makes none.
#[allow(dead_code)] // only the attribute names it, and only with the runtime
fn noted(x: Vec<f32>) -> Vec<f32> {
    if std::env::var_os("DOWNSTREAM_NOTES").is_some() {
        eprintln!("inputs of scale are made");
    }
    x
}

#[kernel_bench(of = scale, parallel, threshold = tuned(1 << 15))]
pub fn scale_rayon(x: &[f32], s: f32, y: &mut [f32]) {
    x.par_chunks(8192).zip(y.par_chunks_mut(8192)).for_each(|(x, y)| scale(x, s, y));
}

#[kernel_bench(of = scale, name = "chunked")]
pub fn scale_chunked(x: &[f32], s: f32, y: &mut [f32]) {
    for (x, y) in x.chunks(8).zip(y.chunks_mut(8)) {
        scale(x, s, y);
    }
}

/// Defined for whole vectors only.
#[kernel_bench(of = scale, name = "eights", valid = n % 8 == 0)]
pub fn scale_eights(x: &[f32], s: f32, y: &mut [f32]) {
    assert!(x.len() % 8 == 0, "only multiples of eight");
    scale(x, s, y);
}

#[allow(dead_code)] // only the attribute names it, and only with the runtime
fn scale_f64(x: &[f64], s: f64, y: &mut [f64]) {
    for i in 0..x.len() {
        y[i] = s * x[i];
    }
}

/// A return value instead of an output.
#[kernel_bench(sizes = [1000], inputs = |n| (uniform(n), uniform(n)), reference = dot_f64)]
pub fn dot(x: &[f32], y: &[f32]) -> f32 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[kernel_bench(of = dot, name = "lanes")]
pub fn dot_lanes(x: &[f32], y: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 8];
    let (xs, ys) = (x.chunks_exact(8), y.chunks_exact(8));
    let rest: f32 = xs.remainder().iter().zip(ys.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in xs.zip(ys) {
        for i in 0..8 {
            lanes[i] += x[i] * y[i];
        }
    }
    rest + lanes.iter().sum::<f32>()
}

#[allow(dead_code)] // only the attribute names it, and only with the runtime
fn dot_f64(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Several axes, a generic element type, and a return value that owns memory.
#[kernel_bench(
    sizes = { rows: [4, 32], dim: [64] },
    inputs = |rows, dim| (integers(rows * dim, -9..10), dim),
    types = [i32, i64],
)]
pub fn row_sums<T: Copy + std::iter::Sum<T>>(x: &[T], dim: usize) -> Vec<T> {
    x.chunks_exact(dim).map(|row| row.iter().copied().sum()).collect()
}

#[kernel_bench(of = row_sums, types = [i32], parallel, threshold = rows * dim >= 1 << 14)]
pub fn row_sums_rayon<T: Copy + Send + Sync + std::iter::Sum<T>>(x: &[T], dim: usize) -> Vec<T> {
    x.par_chunks_exact(dim).map(|row| row.iter().copied().sum()).collect()
}

/// In place, with fresh data for every call: sorting what is sorted would be another kernel.
#[kernel_bench(sizes = ["few" => 100, "many" => 5000], inputs = |n| uniform(n), in_place)]
pub fn sort(x: &mut [f32]) {
    x.sort_by(f32::total_cmp);
}

#[kernel_bench(of = sort, name = "quick")]
pub fn sort_unstable(x: &mut [f32]) {
    x.sort_unstable_by(f32::total_cmp);
}

/// What can go wrong with a root.
#[derive(Debug)]
pub struct Negative(usize);

impl fmt::Display for Negative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {} is negative", self.0)
    }
}

/// A fallible kernel.
#[kernel_bench(sizes = [512], inputs = |n| (range(n, 0.0..4.0), zeros(n)), reference = roots_f64)]
pub fn roots(x: &[f32], y: &mut [f32]) -> Result<(), Negative> {
    for (i, (x, y)) in x.iter().zip(y).enumerate() {
        if *x < 0.0 {
            return Err(Negative(i));
        }
        *y = x.sqrt();
    }
    Ok(())
}

#[allow(dead_code)] // only the attribute names it, and only with the runtime
fn roots_f64(x: &[f64], y: &mut [f64]) {
    for i in 0..x.len() {
        y[i] = x[i].sqrt();
    }
}

/// Generic over kbench's own trait, which exists without the runtime too.
#[kernel_bench(sizes = [300], inputs = |n| (uniform(n), zeros(n)), types = [f32, f64])]
pub fn halve<T: Element>(x: &[T], y: &mut [T]) {
    for (x, y) in x.iter().zip(y) {
        *y = T::from_f64(x.to_f64() / 2.0);
    }
}

/// A type of one's own as a parameter.
#[derive(Clone)]
pub struct Polynomial {
    /// Constant first.
    pub coefficients: Vec<f64>,
}

impl kbench::Operand for Polynomial {}

#[kernel_bench(
    sizes = { n: [200], degree: [5] },
    inputs = |n, degree| (Polynomial { coefficients: uniform(degree + 1) }, uniform(n), zeros(n)),
)]
pub fn evaluate(polynomial: &Polynomial, x: &[f64], y: &mut [f64]) {
    for (x, y) in x.iter().zip(y) {
        *y = polynomial.coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
    }
}

const SCALE: &str = r#"
extern "C" __global__ void scale(const float* x, float s, float* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = s * x[i];
}"#;

/// A variant for a device; its body compiles without a backend, too, and without the runtime.
#[kernel_bench(of = scale, cuda)]
pub fn scale_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    s: f32,
    y: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    gpu.kernel(SCALE, "scale")?.over(x.len(), 256).arg(x).arg(s).arg(y).arg(x.len()).launch()
}

/// Left out unless asked for.
#[kernel_bench(of = dot, name = "slow", ignore = "takes its time")]
pub fn dot_slow(x: &[f32], y: &[f32]) -> f32 {
    dot(x, y)
}
