//! Many products of f32 matrices of the same sizes at once, as attention and small models have them.

use kbench::prelude::*;
use rayon::prelude::*;

use super::packed::{Second, Shape, multiply, multiply_parallel, rows};
use super::tiled;
use crate::shared::area;

/// Multiplications that make a task: fewer are not worth one.
const TASK: usize = 1 << 18;

/// cᵢ ← aᵢ·bᵢ for `batch` pairs of m × k and k × n matrices, by the packed engine.
#[kernel_bench(
    sizes = [
        "tiny" => (batch = 4, m = 16, n = 16, k = 16),
        "small" => (batch = 16, m = 64, n = 64, k = 64),
        "medium" => (batch = 16, m = 128, n = 128, k = 128),
        "large" => (batch = 32, m = 256, n = 256, k = 256),
    ],
    inputs = |batch, m, n, k| (uniform(batch * m * k), uniform(batch * k * n), batch, n, zeros(batch * m * n)),
    flops = |batch, m, n, k| 2 * batch * m * n * k,
    bytes = |batch, m, n, k| 4 * batch * (m * k + k * n + m * n),
    reference = matmul_batched_f64,
)]
pub fn matmul_batched(a: &[f32], b: &[f32], batch: usize, n: usize, c: &mut [f32]) {
    let Shape { m, k, .. } = shape(b.len(), batch, n, c.len());
    for ((a, b), c) in a.chunks(m * k).zip(b.chunks(k * n)).zip(c.chunks_mut(m * n)) {
        multiply(Shape { m, n, k }, rows(a, k), Second::AsIs(rows(b, n)), c);
    }
}

/// Sizes of one of the products, by how many elements all b and all c have.
fn shape(b: usize, batch: usize, n: usize, c: usize) -> Shape {
    let columns = area(batch, n);
    Shape { m: c / columns, n, k: b / columns }
}

/// [`matmul_batched`] on all cores: several products at once, each of them shared where there are few.
#[kernel_bench(of = matmul_batched, name = "parallel", parallel, threshold = tuned(1_000_000))]
pub fn matmul_batched_rayon(a: &[f32], b: &[f32], batch: usize, n: usize, c: &mut [f32]) {
    let Shape { m, k, .. } = shape(b.len(), batch, n, c.len());
    let has_many = batch >= 2 * rayon::current_num_threads();
    let products = a.par_chunks(m * k).zip(b.par_chunks(k * n)).zip(c.par_chunks_mut(m * n));
    products.with_min_len(TASK.div_ceil(m * n * k)).for_each(|((a, b), c)| {
        let (a, b) = (rows(a, k), Second::AsIs(rows(b, n)));
        if has_many {
            multiply(Shape { m, n, k }, a, b, c);
        } else {
            multiply_parallel(Shape { m, n, k }, a, b, c);
        }
    });
}

/// [`matmul_batched`] by the crate `gemm`, a yardstick.
#[cfg(feature = "vendor")]
#[kernel_bench(of = matmul_batched, name = "gemm")]
pub fn matmul_batched_gemm(a: &[f32], b: &[f32], batch: usize, n: usize, c: &mut [f32]) {
    let Shape { m, k, .. } = shape(b.len(), batch, n, c.len());
    for ((a, b), c) in a.chunks(m * k).zip(b.chunks(k * n)).zip(c.chunks_mut(m * n)) {
        kernels_vendor::multiply(a, b, n, c, kernels_vendor::Parallelism::None);
    }
}

/// [`matmul_batched`] by the crate `gemm` on all cores, a product at a time, a yardstick.
#[cfg(feature = "vendor")]
#[kernel_bench(of = matmul_batched, name = "gemm_parallel", parallel)]
pub fn matmul_batched_gemm_rayon(a: &[f32], b: &[f32], batch: usize, n: usize, c: &mut [f32]) {
    let Shape { m, k, .. } = shape(b.len(), batch, n, c.len());
    let products = a.par_chunks(m * k).zip(b.par_chunks(k * n)).zip(c.par_chunks_mut(m * n));
    products.for_each(|((a, b), c)| {
        kernels_vendor::multiply(a, b, n, c, kernels_vendor::Parallelism::None);
    });
}

/// [`matmul_batched`] on a GPU, with the tiles of all products in one launch.
#[kernel_bench(of = matmul_batched, name = "cuda", cuda)]
pub fn matmul_batched_cuda(
    gpu: &Gpu,
    a: &DeviceSlice<f32>,
    b: &DeviceSlice<f32>,
    batch: usize,
    n: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let shape = shape(b.len(), batch, n, c.len());
    tiled::multiply(gpu, shape, batch, a, b, c)
}

/// [`matmul_batched`] by the vendor's library, the yardstick.
#[cfg(feature = "cuda")]
#[kernel_bench(of = matmul_batched, name = "cublas", cuda)]
pub fn matmul_batched_cublas(
    gpu: &Gpu,
    a: &DeviceSlice<f32>,
    b: &DeviceSlice<f32>,
    batch: usize,
    n: usize,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let shape = shape(b.len(), batch, n, c.len());
    super::cublas::multiply_batched(gpu, shape, batch, a, b, c)
}

fn matmul_batched_f64(a: &[f64], b: &[f64], batch: usize, n: usize, c: &mut [f64]) {
    let (m, k) = (c.len() / (batch * n), b.len() / (batch * n));
    c.par_chunks_mut(n).zip(a.par_chunks(k)).enumerate().for_each(|(row, (c, a))| {
        let b = &b[row / m * k * n..][..k * n];
        c.fill(0.0);
        for (a, b) in a.iter().zip(b.chunks(n)) {
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    type Kernel = fn(&[f32], &[f32], usize, usize, &mut [f32]);

    /// batch · n wraps to 4096, so that all lengths seem to be right.
    fn multiply_wrapped(kernel: Kernel) {
        kernel(&[1.0; 8], &[1.0; 4096], 8, (1 << 61) + 512, &mut [0.0; 32_768]);
    }

    #[test]
    #[should_panic(expected = "sizes do not fit")]
    fn a_batch_whose_columns_wrap_is_refused() {
        multiply_wrapped(matmul_batched);
    }

    #[test]
    #[should_panic(expected = "sizes do not fit")]
    fn a_batch_whose_columns_wrap_is_refused_on_all_cores() {
        multiply_wrapped(matmul_batched_rayon);
    }
}
