//! The yardstick: the crate rustfft.
//!
//! It transforms numbers that follow each other in memory, on one thread. A transform along several axes is made of such:
//! along the last axis, which is then transposed to be the first, until every axis has been the last.

use std::cell::RefCell;
use std::sync::Arc;

use kbench::{Element, Operand};
use kernels_vendor::{Complex32, Fft, plan_fft};

use super::chirp;
use crate::shared::scratch::{Shelf, with_array};

/// Rows and columns that are transposed together: a line of memory of each.
const TILE: usize = 8;

const ZERO: Complex32 = Complex32 { re: 0.0, im: 0.0 };

/// A plan of rustfft's.
#[derive(Clone)]
pub struct RustfftPlan(Arc<dyn Fft<f32>>);

impl RustfftPlan {
    /// The plan for n numbers, by a planner that has made none before.
    pub fn new(n: usize) -> Self {
        RustfftPlan(plan_fft(n))
    }

    /// Memory that a transform needs.
    fn scratch(&self) -> Vec<Complex32> {
        vec![ZERO; self.0.get_immutable_scratch_len()]
    }
}

/// As for a [`Plan`](super::Plan), it is what the plan does that is seen.
impl Operand for RustfftPlan {
    fn elements(&self, parts: &mut Vec<Vec<f64>>) {
        let x = chirp(self.0.len());
        let mut out = vec![0.0; x.len()];
        let mut scratch = self.scratch();
        self.0.process_immutable_with_scratch(complex(&x), complex_mut(&mut out), &mut scratch);
        out.elements(parts);
    }

    fn roundoffs(&self, parts: &mut Vec<f64>) {
        parts.push(f32::ROUNDOFF);
    }

    /// About a root of unity for every number: it does not tell.
    fn bytes(&self) -> usize {
        self.0.len() * size_of::<Complex32>()
    }
}

/// A plan with the memory that it needs.
struct Planned {
    plan: Arc<dyn Fft<f32>>,
    scratch: Vec<Complex32>,
}

thread_local! {
    /// The plans of all lengths so far.
    static PLANNED: RefCell<Vec<Planned>> = const { RefCell::new(Vec::new()) };
    /// The numbers between a transform and a transposition.
    static BETWEEN: Shelf<Complex32> = const { Shelf::new() };
}

/// Transforms one or more sequences of a length, which is planned for by a thread's first call with it.
pub(super) fn transform(x: &[f32], length: usize, out: &mut [f32]) {
    sequences(complex(x), length, complex_mut(out));
}

/// Transforms an array along all of its axes.
pub(super) fn transform_axes(x: &[f32], lengths: &[usize], out: &mut [f32]) {
    let (x, out) = (complex(x), complex_mut(out));
    with_array(&BETWEEN, x.len(), ZERO, |between| {
        for (axis, &length) in lengths.iter().rev().enumerate() {
            sequences(if axis == 0 { x } else { &*out }, length, between);
            transpose(between, length, out);
        }
    });
}

fn sequences(x: &[Complex32], length: usize, out: &mut [Complex32]) {
    PLANNED.with_borrow_mut(|planned| {
        let known = planned.iter().position(|planned| planned.plan.len() == length);
        let index = known.unwrap_or_else(|| {
            let plan = RustfftPlan::new(length);
            planned.push(Planned { scratch: plan.scratch(), plan: plan.0 });
            planned.len() - 1
        });
        let Planned { plan, scratch } = &mut planned[index];
        plan.process_immutable_with_scratch(x, out, scratch);
    });
}

/// out ← xᵀ, for a matrix with so many columns.
fn transpose(x: &[Complex32], columns: usize, out: &mut [Complex32]) {
    let rows = x.len() / columns;
    for first_row in (0..rows).step_by(TILE) {
        for first_column in (0..columns).step_by(TILE) {
            for column in first_column..(first_column + TILE).min(columns) {
                for row in first_row..(first_row + TILE).min(rows) {
                    out[column * rows + row] = x[row * columns + column];
                }
            }
        }
    }
}

/// Pairs as complex numbers.
fn complex(pairs: &[f32]) -> &[Complex32] {
    // SAFETY: a complex number is two floats in this order and nothing else (`repr(C)`), so that many fit.
    unsafe { std::slice::from_raw_parts(pairs.as_ptr().cast(), pairs.len() / 2) }
}

/// Pairs as complex numbers.
fn complex_mut(pairs: &mut [f32]) -> &mut [Complex32] {
    // SAFETY: as above, and nobody else has them.
    unsafe { std::slice::from_raw_parts_mut(pairs.as_mut_ptr().cast(), pairs.len() / 2) }
}
