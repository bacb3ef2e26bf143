//! The crate `gemm`, the yardstick of matrix products on the CPU.

#![allow(unsafe_code)] // it takes pointers

use gemm::Parallelism;

/// c ← a·b for a of m × k and b of k × n, all row-major.
pub(super) fn multiply(a: &[f32], b: &[f32], n: usize, c: &mut [f32], parallelism: Parallelism) {
    let (m, k) = (c.len() / n, b.len() / n);
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n, "sizes do not fit");
    let (a_row, row) = (k as isize, n as isize);
    // SAFETY: the matrices are as large as their sizes say, and c is borrowed by nobody else.
    unsafe {
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        gemm::gemm(
            m,
            n,
            k,
            c,
            1,
            row,
            false,
            a,
            1,
            a_row,
            b,
            1,
            row,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}
