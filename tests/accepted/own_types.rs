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

fn main() {}
