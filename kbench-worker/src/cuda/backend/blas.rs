//! Matrix products by cuBLASLt: yardsticks for kernels, and what matrix rates are measured with.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;

use cudarc::cublas::sys::cublasOperation_t as Operation;
use cudarc::cublaslt::{result, sys};

use super::gpu::Gpu;
use super::library;
use super::memory::DeviceSlice;
use crate::cuda::{GpuError, GpuResult};
use crate::value::Element;

/// Bytes that algorithms may use beside their operands (what NVIDIA recommends for Hopper).
const WORKSPACE: usize = 32 << 20;

/// d ← a·b of row-major matrices, a of m × k, b of k × n, d of m × n.
///
/// ```no_run
/// # use kbench_worker::cuda::{DeviceSlice, Gpu, GpuResult, MatrixProduct};
/// # use half::bf16;
/// # fn product(gpu: &Gpu, a: &DeviceSlice<bf16>, b: &DeviceSlice<bf16>, d: &mut DeviceSlice<bf16>) -> GpuResult<()> {
/// gpu.blas_lt()?.multiply(&MatrixProduct::new(512, 1024, 2048), a, b, d)
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixProduct {
    m: usize,
    n: usize,
    k: usize,
    second: Second,
    precision: Precision,
}

/// How the second operand lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Second {
    /// k rows of n.
    AsIs,
    /// n rows of k.
    Transposed,
}

/// What f32 is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Precision {
    /// f32.
    Full,
    /// The matrix units' form of it, with ten bits of mantissa.
    Tf32,
}

impl MatrixProduct {
    /// A product of m × k by k × n.
    pub const fn new(m: usize, n: usize, k: usize) -> Self {
        MatrixProduct { m, n, k, second: Second::AsIs, precision: Precision::Full }
    }

    /// With b stored as n rows of k, as weights usually are; types of 8 bits must be.
    pub const fn transposed(self) -> Self {
        MatrixProduct { second: Second::Transposed, ..self }
    }

    /// With f32 rounded to what the matrix units take.
    pub const fn tf32(self) -> Self {
        MatrixProduct { precision: Precision::Tf32, ..self }
    }

    /// Floating-point operations.
    pub fn flops(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64
    }
}

/// cuBLASLt on one device.
pub struct BlasLt {
    handle: sys::cublasLtHandle_t,
    stream: sys::cudaStream_t,
    workspace: DeviceSlice<u8>,
    plans: RefCell<HashMap<Key, Plan>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    product: MatrixProduct,
    /// Names and sizes of the operands' types.
    elements: [(&'static str, usize); 3],
    /// Whether the operands have factors: a description keeps those that it was given.
    scaled: [bool; 2],
}

/// A product with the algorithm that the library chose for it.
struct Plan {
    description: sys::cublasLtMatmulDesc_t,
    first: sys::cublasLtMatrixLayout_t,
    second: sys::cublasLtMatrixLayout_t,
    output: sys::cublasLtMatrixLayout_t,
    algorithm: sys::cublasLtMatmulHeuristicResult_t,
    /// One and zero, in the type that results are scaled in.
    scales: [u64; 2],
}

impl BlasLt {
    pub(super) fn open(gpu: &Gpu) -> GpuResult<Self> {
        if !library::has_cublas_lt() {
            let text = "no cuBLASLt: libcublasLt is not found; install the CUDA toolkit";
            return Err(GpuError::Failed(text.into()));
        }
        gpu.bind()?;
        let handle = result::create_handle().map_err(|e| failure("starting", e))?;
        let stream = gpu.stream().cu_stream().cast();
        let workspace = gpu.zeros(WORKSPACE)?;
        Ok(BlasLt { handle, stream, workspace, plans: RefCell::default() })
    }

    /// d ← a·b.
    pub fn multiply<A: Element, B: Element, D: Element>(
        &self,
        product: &MatrixProduct,
        a: &DeviceSlice<A>,
        b: &DeviceSlice<B>,
        d: &mut DeviceSlice<D>,
    ) -> GpuResult<()> {
        self.multiply_scaled(product, (a, None), (b, None), d)
    }

    /// d ← (s·a)·(t·b), each operand with a factor on the device, as 8-bit floats have them.
    pub fn multiply_scaled<A: Element, B: Element, D: Element>(
        &self,
        product: &MatrixProduct,
        (a, scale_a): (&DeviceSlice<A>, Option<&DeviceSlice<f32>>),
        (b, scale_b): (&DeviceSlice<B>, Option<&DeviceSlice<f32>>),
        d: &mut DeviceSlice<D>,
    ) -> GpuResult<()> {
        let MatrixProduct { m, n, k, .. } = *product;
        for (name, len, rows, columns) in
            [("a", a.len(), m, k), ("b", b.len(), k, n), ("d", d.len(), m, n)]
        {
            if rows.checked_mul(columns) != Some(len) {
                return Err(GpuError::Failed(format!(
                    "`{name}` has {len} elements where {rows} × {columns} are wanted"
                )));
            }
        }
        let scaled = [scale_a.is_some(), scale_b.is_some()];
        if [scale_a, scale_b].into_iter().flatten().any(DeviceSlice::is_empty) {
            return Err(GpuError::Failed("a factor is an array of one element".into()));
        }
        let elements =
            [(A::NAME, size_of::<A>()), (B::NAME, size_of::<B>()), (D::NAME, size_of::<D>())];
        let key = Key { product: *product, elements, scaled };
        let mut plans = self.plans.borrow_mut();
        let plan = match plans.entry(key) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(self.plan(&key)?),
        };
        // Row-major matrices are transposed column-major ones: d' = b'·a'.
        let attributes = [
            (sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale_b),
            (sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale_a),
        ];
        for (attribute, scale) in attributes {
            if let Some(scale) = scale {
                let pointer = scale.device_pointer();
                // SAFETY: the description exists, and the attribute is a pointer. The array has an element.
                unsafe { set(plan.description, attribute, &pointer) }
                    .map_err(|e| failure("setting a scale", e))?;
            }
        }
        let [one, zero] = &plan.scales;
        let (a, b, d) = (a.device_pointer(), b.device_pointer(), d.device_pointer());
        // SAFETY: lengths were compared with the layouts, and `plan` has compared the sizes of elements; all arrays live as long as
        // their borrows, and the factors one and zero are aligned for every type. Arrays of another device are an error that the
        // driver tells of, or a fault on a device.
        unsafe {
            result::matmul(
                self.handle,
                plan.description,
                std::ptr::from_ref(one).cast::<c_void>(),
                std::ptr::from_ref(zero).cast::<c_void>(),
                b as *const c_void,
                plan.first,
                a as *const c_void,
                plan.second,
                d as *const c_void,
                plan.output,
                d as *mut c_void,
                plan.output,
                &plan.algorithm.algo,
                self.workspace.device_pointer() as *mut c_void,
                WORKSPACE,
                self.stream,
            )
        }
        .map_err(|e| failure("multiplying", e))
    }

    fn plan(&self, key: &Key) -> GpuResult<Plan> {
        let Key { product: MatrixProduct { m, n, k, second, precision }, elements, .. } = *key;
        let [type_a, type_b, type_d] = elements.map(data_type);
        let types = (type_a?, type_b?, type_d?);
        let [a, b, d] = elements.map(|(name, _)| name);
        let (compute, scale, scales) = computing(a, precision);
        let description =
            result::create_matmul_desc(compute, scale).map_err(|e| failure("describing", e))?;
        let transpose = match second {
            Second::AsIs => Operation::CUBLAS_OP_N,
            Second::Transposed => Operation::CUBLAS_OP_T,
        };
        let attribute = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA;
        // SAFETY: the description was just made, and the attribute is an operation.
        unsafe { set(description, attribute, &transpose) }.map_err(|e| failure("describing", e))?;
        let layout = |kind, rows: usize, columns: usize| {
            result::create_matrix_layout(kind, rows as u64, columns as u64, rows as i64)
                .map_err(|e| failure("describing a matrix", e))
        };
        let first = match second {
            Second::AsIs => layout(types.1, n, k)?,
            Second::Transposed => layout(types.1, k, n)?,
        };
        let (operand, output) = (layout(types.0, k, m)?, layout(types.2, n, m)?);
        let preference = result::create_matmul_pref().map_err(|e| failure("choosing", e))?;
        let workspace = WORKSPACE;
        let attribute =
            sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        // SAFETY: the preference was just made, and the attribute is a size.
        let limited = unsafe {
            let workspace = (&raw const workspace).cast::<c_void>();
            result::set_matmul_pref_attribute(preference, attribute, workspace, size_of::<usize>())
        };
        limited.map_err(|e| failure("choosing", e))?;
        // SAFETY: everything that is named was just made.
        let algorithm = unsafe {
            result::get_matmul_algo_heuristic(
                self.handle,
                description,
                first,
                operand,
                output,
                output,
                preference,
            )
        };
        // SAFETY: it is not used any more.
        let _ = unsafe { result::destroy_matmul_pref(preference) };
        let algorithm = algorithm.map_err(|e| {
            failure(&format!("finding an algorithm for {a} by {b} to {d}, {m} × {n} × {k}"), e)
        })?;
        Ok(Plan { description, first, second: operand, output, algorithm, scales })
    }
}

impl Drop for BlasLt {
    fn drop(&mut self) {
        for plan in self.plans.borrow().values() {
            // SAFETY: nobody else has them.
            unsafe {
                let _ = result::destroy_matmul_desc(plan.description);
                for layout in [plan.first, plan.second, plan.output] {
                    let _ = result::destroy_matrix_layout(layout);
                }
            }
        }
        // SAFETY: nobody else has it.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

/// Sets an attribute of a description.
///
/// # Safety
///
/// The description must exist, and the attribute must have the type of the value.
unsafe fn set<T>(
    description: sys::cublasLtMatmulDesc_t,
    attribute: sys::cublasLtMatmulDescAttributes_t,
    value: &T,
) -> Result<(), result::CublasError> {
    let pointer = std::ptr::from_ref(value).cast::<c_void>();
    // SAFETY: as the caller promises.
    unsafe { result::set_matmul_desc_attribute(description, attribute, pointer, size_of::<T>()) }
}

fn failure(doing: &str, error: result::CublasError) -> GpuError {
    GpuError::Failed(format!("cuBLASLt fails {doing}: {:?}", error.0))
}

fn data_type((element, bytes): (&str, usize)) -> GpuResult<sys::cudaDataType> {
    use sys::cudaDataType_t as Type;
    let (data_type, size) = match element {
        "f64" => (Type::CUDA_R_64F, 8),
        "f32" => (Type::CUDA_R_32F, 4),
        "f16" => (Type::CUDA_R_16F, 2),
        "bf16" => (Type::CUDA_R_16BF, 2),
        "e4m3" => (Type::CUDA_R_8F_E4M3, 1),
        "e5m2" => (Type::CUDA_R_8F_E5M2, 1),
        "i8" => (Type::CUDA_R_8I, 1),
        "i32" => (Type::CUDA_R_32I, 4),
        other => return Err(GpuError::Failed(format!("cuBLASLt has no matrices of {other}"))),
    };
    // A type of the user's may have any name.
    match bytes == size {
        true => Ok(data_type),
        false => Err(GpuError::Failed(format!(
            "an element of cuBLASLt's matrices of {element} has {size} bytes, not {bytes}"
        ))),
    }
}

/// The type of the sums, that of the factors, and one and zero in it.
fn computing(
    element: &str,
    precision: Precision,
) -> (sys::cublasComputeType_t, sys::cudaDataType, [u64; 2]) {
    use sys::cublasComputeType_t as Compute;
    use sys::cudaDataType_t as Type;
    let in_four = |one: [u8; 4]| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&one);
        [u64::from_ne_bytes(bytes), 0]
    };
    let single = in_four(1f32.to_ne_bytes());
    match (element, precision) {
        ("f64", _) => (Compute::CUBLAS_COMPUTE_64F, Type::CUDA_R_64F, [1f64.to_bits(), 0]),
        ("i8", _) => (Compute::CUBLAS_COMPUTE_32I, Type::CUDA_R_32I, in_four(1i32.to_ne_bytes())),
        ("f32", Precision::Tf32) => {
            (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, Type::CUDA_R_32F, single)
        }
        _ => (Compute::CUBLAS_COMPUTE_32F, Type::CUDA_R_32F, single),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_only_has_the_name_of_a_number_is_refused() {
        assert!(data_type(("f64", 8)).is_ok() && data_type(("e4m3", 1)).is_ok());
        let tiny = data_type(("f64", 1)).expect_err("too small").to_string();
        assert!(tiny.contains("f64 has 8 bytes, not 1"), "{tiny}");
        assert!(data_type(("u8", 1)).is_err());
    }

    #[test]
    fn factors_begin_with_the_bytes_of_their_type() {
        let first = |element| {
            let (.., [one, zero]) = computing(element, Precision::Full);
            assert_eq!(zero, 0);
            one.to_ne_bytes()
        };
        assert_eq!(first("f64"), 1f64.to_ne_bytes());
        assert_eq!(first("bf16")[..4], 1f32.to_ne_bytes());
        assert_eq!(first("i8")[..4], 1i32.to_ne_bytes());
    }
}
