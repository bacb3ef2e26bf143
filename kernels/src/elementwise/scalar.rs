//! One element after the other, as a processor without vector instructions does it: what those are worth.

#![allow(unsafe_code)] // volatile reads

use kbench::prelude::*;

/// [`add`](super::add) without vectors.
#[kernel_bench(of = super::add<f32>)]
pub fn add_scalar(x: &[f32], y: &[f32], out: &mut [f32]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = alone(x) + alone(y);
    }
}

/// [`mul`](super::mul) without vectors.
#[kernel_bench(of = super::mul<f32>)]
pub fn mul_scalar(x: &[f32], y: &[f32], out: &mut [f32]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = alone(x) * alone(y);
    }
}

/// An element, which the compiler may not read together with its neighbours.
#[inline(always)]
fn alone(element: &f32) -> f32 {
    // SAFETY: what there is a reference to can be read.
    unsafe { std::ptr::read_volatile(element) }
}
