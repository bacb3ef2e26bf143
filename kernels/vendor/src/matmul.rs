//! The crate `gemm-f32`, the yardstick of matrix products on the CPU: what the crate `gemm` calls for `f32`.

#![allow(unsafe_code)] // it takes pointers

pub use gemm_common::Parallelism;
use gemm_f32::gemm::f32::get_gemm_fn;

/// c ← a·b for a of m × k and b of k × n, all row-major.
///
/// The kernels of the crate want columns of the result to be contiguous, so they are given cᵀ ← bᵀ·aᵀ, as `gemm` does.
pub fn multiply(a: &[f32], b: &[f32], n: usize, c: &mut [f32], parallelism: Parallelism) {
    let (m, k) = (c.len() / n, b.len() / n);
    let fit = is_matrix(a, m, k) && is_matrix(b, k, n) && is_matrix(c, m, n);
    assert!(fit, "sizes do not fit");
    let (a_row, row) = (k as isize, n as isize);
    let (is_read, is_conjugate) = (false, false);
    let (of_c, of_product) = (0.0, 1.0);
    // SAFETY: the matrices are as large as their sizes say, and c is borrowed exclusively.
    unsafe {
        get_gemm_fn()(
            n,
            m,
            k,
            c.as_mut_ptr(),
            row,
            1,
            is_read,
            b.as_ptr(),
            row,
            1,
            a.as_ptr(),
            a_row,
            1,
            of_c,
            of_product,
            is_conjugate,
            is_conjugate,
            is_conjugate,
            parallelism,
        );
    }
}

/// Whether these are the elements of a matrix; a product of sizes that wraps is not its length.
fn is_matrix<T>(elements: &[T], rows: usize, columns: usize) -> bool {
    rows.checked_mul(columns) == Some(elements.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_of_sizes_that_wraps_is_no_length() {
        assert!(is_matrix(&[0; 6], 2, 3));
        assert!(!is_matrix(&[0; 6], 2, 2));
        assert!(!is_matrix::<f32>(&[], 1 << 32, 1 << 32));
    }
}
