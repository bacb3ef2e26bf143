//! The yardstick: the crate rustfft.

use std::cell::RefCell;
use std::sync::Arc;

use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};

/// A plan of rustfft's, with the memory that it needs.
struct Planned {
    plan: Arc<dyn Fft<f32>>,
    scratch: Vec<Complex32>,
}

thread_local! {
    /// The plan of the last length.
    static PLANNED: RefCell<Option<Planned>> = const { RefCell::new(None) };
}

/// Transforms one or more sequences of the plan's length.
pub(super) fn transform(x: &[f32], out: &mut [f32]) {
    let n = x.len() / 2;
    PLANNED.with_borrow_mut(|planned| {
        if planned.as_ref().is_none_or(|planned| planned.plan.len() != n) {
            let plan = FftPlanner::new().plan_fft_forward(n);
            let scratch = vec![Complex32::default(); plan.get_immutable_scratch_len()];
            *planned = Some(Planned { plan, scratch });
        }
        if let Some(Planned { plan, scratch }) = planned {
            plan.process_immutable_with_scratch(complex(x), complex_mut(out), scratch);
        }
    });
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
