use kbench::prelude::*;

#[kernel_bench(sizes = [4])]
fn missing<T: Element>(x: &[T]) -> T {
    x[0]
}

#[kernel_bench(sizes = [4], types = [f32])]
fn not_generic(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4], types = [])]
fn empty<T: Element>(x: &[T]) -> T {
    x[0]
}

#[kernel_bench(sizes = [4], types = [f32, <f32, 8>, 'static])]
fn lifetime<T: Element>(x: &[T]) -> T {
    x[0]
}

#[kernel_bench(sizes = [4], types = [f32, <f32, 8>, <f32, 8, 9>])]
fn count<T: Element, const N: usize>(x: &[T]) -> T {
    x[N]
}

#[kernel_bench(sizes = [4])]
fn base(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(of = base)]
fn generic_variant<const N: usize>(x: &[f32]) -> f32 {
    x[N]
}


#[kernel_bench(sizes = [4], types = [f32, f64, f32])]
fn repeated<T: Copy>(x: &[T]) -> T {
    x[0]
}

fn main() {}
