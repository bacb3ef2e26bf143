//! The crate may have another name, or come through a macro of another crate.
#![deny(warnings)]

mod facade {
    pub use ::kbench as renamed;
}
use facade::renamed::{kernel_bench, value::*};

#[kernel_bench(crate = crate::facade::renamed, sizes = [16], inputs = |n| (uniform(n), zeros(n)))]
pub fn copy(x: &[f32], y: &mut [f32]) {
    y.copy_from_slice(x);
}

macro_rules! variant {
    ($name:ident) => {
        #[kernel_bench(crate = $crate::facade::renamed, of = copy)]
        pub fn $name(x: &[f32], y: &mut [f32]) {
            y.copy_from_slice(x);
        }
    };
}

variant!(copied);

fn main() {}
