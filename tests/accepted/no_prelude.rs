//! Nothing of the expansion depends on what is in scope.
#![no_implicit_prelude]
#![deny(warnings)]

use ::kbench::kernel_bench;

/// Names that the expansion uses as well.
#[allow(dead_code, non_camel_case_types)] // traps for names that the expansion might take from here
mod clashes {
    pub struct Vec;
    pub struct Box;
    pub struct Option;
    pub struct Axes;
    pub struct Kernel;
    pub struct String;
}
#[allow(unused_imports)] // what the expansion must not rely on
use clashes::*;

#[kernel_bench(
    sizes = [16, 32],
    inputs = |reads| (::kbench::value::uniform(reads), ::kbench::value::zeros(reads)),
    reference = routine,
)]
pub fn routine(axes: &[f32], arguments: &mut [f32]) {
    arguments.copy_from_slice(axes);
}

#[kernel_bench(of = routine, parallel, threshold = reads > 1, bytes = |reads| reads)]
pub fn size(argument_1: &[f32], argument_0: &mut [f32]) {
    routine(argument_1, argument_0);
}

#[kernel_bench(of = routine, threshold = tuned(1 << 10))]
pub fn work(value: &[f32], default: &mut [f32]) {
    routine(value, default);
}

fn main() {}
