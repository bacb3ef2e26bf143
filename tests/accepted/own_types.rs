//! Operands and views may be types of the crate itself, and private ones for a private function.
#![deny(warnings)]

use kbench::value::{Lend, Lent, Operand};
use kbench::{DeviceSlice, kernel_bench};

#[derive(Clone)]
struct Matrix {
    data: Vec<f32>,
}
impl Operand for Matrix {}

struct MatrixRef<'a> {
    data: &'a [f32],
}
impl<'a> Lend<MatrixRef<'a>> for &'a Matrix {
    fn lend(self) -> MatrixRef<'a> {
        MatrixRef { data: &self.data }
    }
}
impl Lent for MatrixRef<'_> {
    type Owner = Matrix;
}

#[kernel_bench(sizes = [4], inputs = |n| Matrix { data: vec![1.0; n] }, reference = sum_reference)]
fn sum(x: MatrixRef<'_>) -> f32 {
    x.data.iter().sum()
}

fn sum_reference(x: MatrixRef<'_>) -> f32 {
    x.data.iter().sum()
}

#[kernel_bench(of = sum)]
fn sum_by_reference(x: &Matrix) -> f32 {
    x.data.iter().sum()
}

/// Compared field by field, alone and in slices.
#[derive(Clone, Copy, kbench::Operand)]
struct Particle {
    position: [f32; 3],
    mass: f32,
}

#[derive(kbench::Operand)]
#[operand(crate = kbench)]
struct Bounds<'a, T, const N: usize>
where
    'a: 'static,
{
    low: [T; N],
    high: (T, Option<T>),
    #[operand(skip)]
    of: &'a str,
}

#[derive(Clone, kbench::Operand)]
struct Count(u64);

/// Made of itself.
#[derive(kbench::Operand)]
#[allow(dead_code)] // it is only derived
struct Tree {
    value: f32,
    below: Vec<Tree>,
}

/// Uploaded field by field, whatever it is generic over; a field that is skipped stays on the host.
#[derive(Clone, kbench::Operand)]
#[operand(upload)]
struct Table<T: kbench::DeviceElement + kbench::Element> {
    rows: usize,
    values: Vec<T>,
    edges: Vec<[T; 2]>,
    ends: [u32; 2],
    #[operand(skip)]
    name: String,
}

/// An element of arrays on a device.
#[derive(Clone, Copy, kbench::Operand)]
#[operand(element)]
#[repr(C)]
struct Pair<T: kbench::DeviceElement + kbench::Element>(T, [u8; 3]);

#[kernel_bench(sizes = [4], inputs = |n| {
    let table = Table { rows: n, values: vec![1.0; n], edges: vec![[1.0; 2]; n],
            ends: [1, 2], name: "table".into() };
    (table, vec![Pair(1.0, [1, 2, 3]); n])
})]
fn table_sum(table: &Table<f32>, pairs: &[Pair<f32>]) -> f32 {
    assert!(table.name == "table" && table.rows == table.edges.len() && table.ends == [1, 2]);
    table.values.iter().sum::<f32>()
        + pairs.iter().map(|pair| pair.0 + f32::from(pair.1[0])).sum::<f32>()
}

#[kernel_bench(of = table_sum, cuda)]
fn table_sum_cuda(
    gpu: &kbench::Gpu,
    table: &(usize, DeviceSlice<f32>, DeviceSlice<[f32; 2]>, [u32; 2]),
    pairs: &DeviceSlice<Pair<f32>>,
) -> kbench::GpuResult<f32> {
    let (rows, values, edges, _) = table;
    assert!(*rows == edges.len() && pairs.len() == *rows);
    Ok(gpu.download(values)?.iter().sum())
}

#[kernel_bench(
    sizes = [4],
    inputs = |n| (vec![Particle { position: [1.0, 2.0, 3.0], mass: 4.0 }; n], vec![[0.0; 3]; n]),
)]
fn momenta(particles: &[Particle], momenta: &mut [[f32; 3]]) -> Count {
    for (particle, momentum) in particles.iter().zip(momenta) {
        *momentum = particle.position.map(|x| x * particle.mass);
    }
    Count(particles.len() as u64)
}

#[kernel_bench(sizes = [4], inputs = |n| vec![(1.0, 2); n])]
fn bounds(x: &[(f32, u8)]) -> Bounds<'static, f32, 1> {
    let low = x.iter().fold(f32::MAX, |low, (x, _)| low.min(*x));
    Bounds { low: [low], high: (low, Some(low)), of: "x" }
}

fn main() {
    let Bounds { of, .. } = bounds(&[(1.0, 2)]);
    assert_eq!(of, "x");
}
