use kbench::prelude::*;

#[kernel_bench(sizes = [4])]
async fn asynchronous(x: &[f32]) -> f32 {
    x[0]
}

#[kernel_bench(sizes = [4])]
fn opaque(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    f(x[0])
}

#[kernel_bench(sizes = [4])]
fn many(
    a: f32,
    b: f32,
    c: f32,
    d: f32,
    e: f32,
    f: f32,
    g: f32,
    h: f32,
    i: f32,
    j: f32,
    k: f32,
    l: f32,
    m: f32,
) {
    let _ = (a, b, c, d, e, f, g, h, i, j, k, l, m);
}

#[kernel_bench(sizes = [4])]
fn device(gpu: &Gpu, x: &[f32]) -> f32 {
    let _ = gpu;
    x[0]
}

#[kernel_bench(sizes = [4])]
struct Thing;

struct Matrix(Vec<f32>);

impl Matrix {
    #[kernel_bench(sizes = [4])]
    fn method(&self) -> f32 {
        self.0[0]
    }

    #[kernel_bench(sizes = [4])]
    fn associated(matrix: &Self) -> f32 {
        matrix.0[0]
    }
}

unsafe extern "C" {
    #[kernel_bench(sizes = [4])]
    fn foreign(x: f32) -> f32;

    #[kernel_bench(sizes = [4])]
    fn variadic(x: f32, ...) -> f32;
}

fn main() {}
