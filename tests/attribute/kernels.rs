//! Items of every kind that the attribute takes.

use kbench::prelude::*;
use kbench::{Lend, Lent, Operand};

/// The size that a constant gives.
const LIMIT: usize = 1 << 6;

/// y ← a·x + y
#[kernel_bench(
    sizes = [1 << 4, LIMIT],
    inputs = |n| (2.0, uniform(n), constant(n, 1.0)),
    in_place = reuse,
)]
#[inline]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    x.iter().zip(y).for_each(|(x, y)| *y += a * x);
}

#[kernel_bench(
    of = saxpy,
    parallel,
    threshold = 1 << 16,
    flops = |n| 2 * n,
    tolerance = 1e-3,
    ignore = "only on Sundays",
    expect = [speedup >= 2.0, ceiling > 0.8 at n >= LIMIT && n.is_power_of_two(), time < 1.5ms],
)]
pub fn saxpy_rayon(a: f32, x: &[f32], y: &mut [f32]) {
    saxpy(a, x, y);
}

#[kernel_bench(of = saxpy, threshold = tuned(2 * LIMIT))]
pub fn saxpy_tuned(a: f32, x: &[f32], y: &mut [f32]) {
    saxpy(a, x, y);
}

#[kernel_bench(of = saxpy, cuda, threshold = n >= 1 << 20, ignore)]
pub fn saxpy_cuda(
    gpu: &Gpu,
    a: f32,
    x: &DeviceSlice<f32>,
    y: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let _ = (gpu, a, x, y);
    Ok(())
}

/// Works on every row by itself.
#[kernel_bench(
    name = "scale",
    sizes = { rows: [1, 16], dim: pow2(3..6) },
    inputs = |dim, rows| (uniform(rows * dim), 0.5, zeros(rows * dim)),
    work = |rows, dim| rows * dim,
    flops = |rows| rows as f64 * 1.5,
    bytes = bytes_moved,
    reference = scale_reference,
    tolerance = 1e-5,
    valid = dim.is_multiple_of(2),
    types = [f32, f64],
)]
pub fn scale_rows<T: Element>(x: &[T], factor: f32, out: &mut [T]) {
    let scaled = x.iter().map(|x| T::from_f64(x.to_f64() * f64::from(factor)));
    out.iter_mut().zip(scaled).for_each(|(out, scaled)| *out = scaled);
}

fn bytes_moved(rows: usize, dim: usize) -> u64 {
    (8 * rows * dim) as u64
}

fn scale_reference(x: &[f64], factor: f64, out: &mut [f64]) {
    out.iter_mut().zip(x).for_each(|(out, x)| *out = x * factor);
}

/// The type argument goes to the kernel, the constant into the name.
#[kernel_bench(of = scale_rows, types = [<f32, 4>, <f64, 8>])]
pub fn tiled<T: Element, const TILE: usize>(x: &[T], factor: f32, out: &mut [T]) {
    x.chunks(TILE).zip(out.chunks_mut(TILE)).for_each(|(x, out)| scale_rows(x, factor, out));
}

/// Axes in a macro are axes, and what a pattern binds is none.
#[kernel_bench(
    of = scale_rows<f64>,
    name = "wide",
    valid = matches!((rows, dim), (2 | 16, wide) if wide >= 8),
    bytes = |_| 0,
)]
pub fn only_wide(x: &[f64], factor: f32, out: &mut [f64]) {
    scale_rows(x, factor, out);
}

/// Elements of one byte, in all places of a signature: slices, a scalar, an output, and the `f64` of a reference.
#[kernel_bench(
    sizes = [16],
    reference = scale_reference,
    types = [F8E4M3, F8E5M2],
)]
pub fn scale_bytes<T: Element>(x: &[T], factor: T, out: &mut [T]) {
    let scaled = x.iter().map(|x| T::from_f64(x.to_f64() * factor.to_f64()));
    out.iter_mut().zip(scaled).for_each(|(out, scaled)| *out = scaled);
}

/// A const parameter is the element here.
#[kernel_bench(sizes = ["one" => 1, "page" => (1 << 12)], work = |length| length, types = [2, 4])]
pub fn lanes<const LANES: usize>(x: &[f32]) -> f32 {
    x.chunks(LANES).map(|chunk| chunk[0]).sum()
}

/// Shapes, whose axes may come in any order.
#[kernel_bench(
    sizes = ["flat" => (rows = 1, dim = 8), "tall" => (dim = 1, rows = 8)],
    inputs = |rows, dim| { let n = rows * dim; (uniform(n), vec![0.0; n]) },
    in_place,
)]
pub fn shapes(x: &[f32], y: &mut [f32]) {
    y.copy_from_slice(x);
}

/// Fails where it is told to.
#[kernel_bench(sizes = [1], inputs = |n| n as i32)]
pub fn fallible(n: i32) -> Result<Vec<i32>, String> {
    if n > 4 { Err(format!("{n} is too much")) } else { Ok(vec![n; 2]) }
}

/// # Safety
/// Both slices have the same length.
#[kernel_bench(sizes = [4])]
#[allow(unsafe_code)] // The subject of the test.
pub unsafe fn copy<'a, 'b: 'a>(from: &'a [f32], to: &'b mut [f32]) {
    to.copy_from_slice(from);
}

/// Of another calling convention, and for machines with a certain instruction set.
///
/// # Safety
/// The machine has that set.
#[kernel_bench(sizes = [4], inputs = |n| (n as f32, 1.0))]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "sse2"))]
pub extern "C" fn add(a: f32, b: &f32) -> f32 {
    a + b
}

/// For processors with instructions that few have.
///
/// # Safety
/// The processor has them.
#[kernel_bench(of = add)]
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2,widekl")]
pub fn add_rarely(a: f32, b: &f32) -> f32 {
    a + b
}

/// Rows that own memory, which change places.
#[kernel_bench(sizes = [4], inputs = rows, in_place, types = [Vec<f32>, f32])]
pub fn reversed<T>(rows: &mut [T]) {
    rows.reverse();
}

fn rows<T: Row>(n: usize) -> Vec<T> {
    (0..n).map(T::of).collect()
}

/// An item of such rows.
pub trait Row {
    /// One that tells its number.
    fn of(number: usize) -> Self;
}

impl Row for f32 {
    fn of(number: usize) -> f32 {
        number as f32
    }
}

impl Row for Vec<f32> {
    fn of(number: usize) -> Vec<f32> {
        vec![number as f32; number + 1]
    }
}

/// A pattern instead of a name, a tuple instead of a number.
#[kernel_bench(sizes = [4], inputs = |n| ((1.0, n as f32), [1.0; 3], 0.0))]
pub const fn patterns((a, b): (f32, f32), [c, d, _]: [f32; 3], _: &mut f32) -> f32 {
    a + b + c + d
}

#[derive(Clone)]
pub struct Matrix {
    pub data: Vec<f32>,
}

pub struct MatrixRef<'a> {
    pub data: &'a [f32],
}

impl Operand for Matrix {}

impl<'a> Lend<MatrixRef<'a>> for &'a Matrix {
    fn lend(self) -> MatrixRef<'a> {
        MatrixRef { data: &self.data }
    }
}

impl Lent for MatrixRef<'_> {
    type Owner = Matrix;
}

/// A view of something that the runtime owns.
#[kernel_bench(sizes = [4], inputs = matrix, reference = trace_reference)]
pub fn trace(matrix: MatrixRef<'_>) -> f32 {
    matrix.data[0]
}

fn matrix(n: usize) -> Matrix {
    Matrix { data: vec![3.0; n * n] }
}

fn trace_reference(matrix: MatrixRef<'_>) -> f64 {
    f64::from(matrix.data[0])
}

/// Never compiled, and neither is its registration.
#[kernel_bench(sizes = [4])]
#[cfg(any())]
pub fn absent(x: &[NoSuchType]) {}

/// Neither data nor result.
#[kernel_bench(sizes = [1])]
pub fn nothing() {}

macro_rules! family {
    ($kernel:ident, $variant:ident, $element:ty, $axis:ident, $limit:expr, [$($size:expr),*]) => {
        #[kernel_bench(
            sizes = { $axis: [$($size),*], depth: [2] },
            inputs = |depth, $axis| (uniform($axis * depth), zeros($axis)),
        )]
        pub fn $kernel(x: &[$element], y: &mut [$element]) {
            y.copy_from_slice(&x[..y.len()]);
        }

        #[kernel_bench(of = $kernel, threshold = $limit && depth > 1, flops = |$axis| $axis)]
        pub fn $variant(x: &[$element], y: &mut [$element]) {
            $kernel(x, y);
        }
    };
}

family!(head, head_variant, f64, rows, rows >= 4, [8, LIMIT]);
