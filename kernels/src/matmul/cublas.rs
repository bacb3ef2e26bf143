//! Strided batches of cuBLAS, the yardstick of many products at once on a GPU.

#![allow(unsafe_code)] // it takes pointers

use std::ffi::{c_int, c_longlong};

use kbench::cuda::cudarc::cublas::result::sgemm_strided_batched;
use kbench::cuda::cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_N;
use kbench::{DeviceSlice, Gpu, GpuError, GpuResult};

use super::packed::Shape;
use crate::shared::area;

/// c[i] ← a[i]·b[i], all row-major.
pub(super) fn multiply_batched(
    gpu: &Gpu,
    shape: Shape,
    batch: usize,
    a: &DeviceSlice<f32>,
    b: &DeviceSlice<f32>,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let Shape { m, n, k } = shape;
    let all = |rows: usize, columns: usize| area(batch, area(rows, columns));
    if a.len() != all(m, k) || b.len() != all(k, n) || c.len() != all(m, n) {
        return Err(GpuError::Failed(format!("operands are not {batch} times {m} × {n} × {k}")));
    }
    let number = |value: usize| {
        c_int::try_from(value)
            .map_err(|_| GpuError::Failed(format!("{value} is too large for cuBLAS")))
    };
    let (rows, columns, depth, batch) = (number(m)?, number(n)?, number(k)?, number(batch)?);
    let stride = |rows: usize, columns: usize| (rows * columns) as c_longlong;
    let (a, b, c) = (a.device_pointer(), b.device_pointer(), c.device_pointer());
    let handle = *gpu.blas()?.handle();
    // Row-major matrices are transposed column-major ones: c' = b'·a'.
    // SAFETY: lengths were compared with the sizes, and all arrays live as long as their borrows. Callers give arrays of `gpu`, whose
    // stream orders all uses of them; this cannot be checked here.
    let multiplied = unsafe {
        sgemm_strided_batched(
            handle,
            CUBLAS_OP_N,
            CUBLAS_OP_N,
            columns,
            rows,
            depth,
            &1.0,
            b as *const f32,
            columns,
            stride(k, n),
            a as *const f32,
            depth,
            stride(m, k),
            &0.0,
            c as *mut f32,
            columns,
            stride(m, n),
            batch,
        )
    };
    multiplied.map_err(|error| GpuError::Failed(format!("cuBLAS fails multiplying: {:?}", error.0)))
}
