//! Operands and views may be types of the crate itself, and private ones for a private function.
#![deny(warnings)]

use kbench::kernel_bench;
use kbench::value::{Lend, Lent, Operand};

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
