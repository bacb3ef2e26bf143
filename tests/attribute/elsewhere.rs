//! A module whose file is not where its name says.

use kbench::prelude::*;

#[kernel_bench(sizes = [4])]
pub fn distant(x: &[f32]) -> f32 {
    x.iter().sum()
}
