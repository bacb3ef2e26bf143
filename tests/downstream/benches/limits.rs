//! As many kernels, variants and sizes as the environment asks for, with names as long: how large a program can be.
//!
//! Ten thousand attributes take minutes to compile. Here one is written, and the others are copies of what it registers.
use std::cell::UnsafeCell;
use std::process::ExitCode;

use kbench::__private::inventory::{self, Node};
use kbench::harness::DefaultMode;
use kbench::kernel::{KernelEntry, Sizes, Values, VariantEntry};
use kbench::prelude::*;

#[kernel_bench(sizes = [1], inputs = |n| (uniform(n), zeros(n)))]
fn copy(x: &[f32], y: &mut [f32]) {
    y.copy_from_slice(x);
}

/// Data whose size is a product.
#[kernel_bench(sizes = { rows: [2], columns: [3] }, inputs = |rows, columns| (uniform(rows * columns), zeros(rows * columns)))]
fn copy_rows(x: &[f32], y: &mut [f32]) {
    y.copy_from_slice(x);
}

/// A size that is no amount of data.
#[kernel_bench(sizes = [1], inputs = |n| n)]
fn halve(n: usize) -> usize {
    std::hint::black_box(n) / 2
}

/// On as many threads as there are.
#[kernel_bench(of = copy, parallel)]
fn copy_rayon(x: &[f32], y: &mut [f32]) {
    use rayon::prelude::*;
    x.par_iter().zip(y).for_each(|(x, y)| *y = *x);
}

fn main() -> ExitCode {
    register();
    kbench::harness::main(DefaultMode::Test, option_env!("CARGO_PKG_NAME"))
}

/// A number in the environment.
fn wanted(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |text| text.parse().expect(variable))
}

/// Registers `LIMITS_KERNELS` kernels of `LIMITS_VARIANTS` variants each at `LIMITS_SIZES` sizes, besides those above; their
/// names have `LIMITS_NAME` characters at least.
fn register() {
    let mut entries = inventory::iter::<VariantEntry>();
    let first = entries.find(|entry| entry.name == "copy").expect("an entry");
    let length = wanted("LIMITS_NAME", 0);
    let sizes: Vec<usize> = (1..=wanted("LIMITS_SIZES", 1)).collect();
    let sizes = Vec::leak(vec![Values::List(sizes.leak())]);
    for kernel in 0..wanted("LIMITS_KERNELS", 0) {
        let name = &*format!("kernel{kernel:0>length$}").leak();
        let entry = &*Box::leak(Box::new(KernelEntry {
            name,
            sizes: Sizes::Grid(sizes),
            ..copy_of(first.kernel)
        }));
        submit(VariantEntry { kernel: entry, name, ..*first });
        for variant in 1..wanted("LIMITS_VARIANTS", 1) {
            let name = format!("variant{variant:0>length$}").leak();
            submit(VariantEntry { kernel: entry, name, is_base: false, ..*first });
        }
    }
}

fn copy_of(kernel: &KernelEntry) -> KernelEntry {
    KernelEntry { sizes: Sizes::Grid(&[]), ..*kernel }
}

/// What the attribute does before `main` begins.
fn submit(entry: VariantEntry) {
    let node = Node { value: Box::leak(Box::new(entry)), next: UnsafeCell::new(None) };
    let node = Box::leak(Box::new(node));
    // SAFETY: the node is submitted once, and to the registry of its value's type.
    unsafe { node.value.submit(node) }
}
