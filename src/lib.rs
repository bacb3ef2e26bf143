#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)] // two lines of a trait that is unsafe to implement need an exception

/// Registers a function as a kernel, or as a variant of one.
///
/// The function itself is emitted unchanged. Without the feature `run` nothing else is.
///
/// # A kernel
///
/// ```
/// use kbench::prelude::*;
///
/// #[kernel_bench(
///     sizes = [1 << 10, 1 << 14, 1 << 18],
///     inputs = |n| (2.0, uniform(n), uniform(n)),
///     in_place = reuse,
/// )]
/// pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
///     x.iter().zip(y).for_each(|(x, y)| *y += a * x);
/// }
/// ```
///
/// | option | meaning | default |
/// |---|---|---|
/// | `sizes = [..]` | one axis, named by the parameter of `inputs` | required |
/// | `sizes = pow2(10..=24)` | powers of two | |
/// | `sizes = { rows: [1, 16], dim: [1024] }` | every combination of several axes | |
/// | `sizes = ["small" => (rows = 64, dim = 1024)]` | labelled shapes | |
/// | `inputs = \|rows, dim\| (..)` | one value per parameter; closure parameters are axes, by name (or a function of all axes) | uniform data of length `n` |
/// | `in_place` | outputs are also inputs: every timed call gets fresh ones | outputs are poisoned before a check |
/// | `in_place = reuse` | outputs are also inputs, and a call on the last result is as good | |
/// | `reference = path` | independent oracle; each parameter has the kernel's type or its `f64` twin | the kernel's own function |
/// | `tolerance = 1e-5` | relative | by the type, the length of reductions and the condition of the results: `docs/checks.md` |
/// | `regimes = [!negative, "a radius is positive"]` | kinds of data on which it is checked besides the usual ones: `all`, names, `!` and names, and a reason where some are left out | `[all]` |
/// | `work = \|rows, dim\| ..` | amount of work, which thresholds count and the default tolerance follows | product of the axes |
/// | `flops`, `bytes` | operations and bytes of one call; `bytes = \|_\| 0` for a kernel whose throughput means nothing | none; every slice once |
/// | `valid = head_dim % 2 == 0` | sizes at which the kernel is defined; kbench checks at awkward sizes of its own choice | all |
/// | `types = [f32, f64]` | instances of a generic function; `<f32, 8>` for several parameters | |
/// | `name = ".."` | name in reports | the function's |
/// | `reentrant` | several threads may call it at once: kbench checks that | not checked |
/// | `ignore = "reason"` | left out unless asked for | |
/// | `expect = [speedup >= 2.0 at n >= 4096, time < 10us]` | performance targets at the listed sizes, judged *met*, *missed* or *undecided*: `speedup` over the base, `best` as a share of the best variant (`best >= 0.98`), `time`, `ceiling` as a share of what the device was measured to be capable of (`ceiling >= 0.8`, CUDA variants) | |
/// | `marker = Saxpy` | name of the hidden struct, by which `of` finds the kernel (see "Names") | the function's |
/// | `crate = path` | where kbench is, when it is renamed | `::kbench` |
///
/// # A variant
///
/// `of = path` names the kernel's function; the variant inherits its sizes, inputs, work, reference and tolerance.
/// `parallel` and `cuda` name the backend. `threshold = 1 << 16` (work) or `threshold = rows * dim >= 16_384` (a
/// condition on the axes) says from where on it is claimed to beat what it replaces (the fastest serial variant for a parallel
/// one, the fastest on the processor for one on a device, else the base), which every run judges. `flops`,
/// `bytes`, `tolerance` and `valid` may be the variant's own; `reentrant` and `ignore` hold for the function that they stand on. Other kernels' types in a generic variant: `of = norm` with
/// `types = [f32]` is a variant of `norm<f32>`, and `of = norm<f32, 8>` names the instance itself.
///
/// ```
/// # use kbench::prelude::*;
/// # #[kernel_bench(sizes = [16], inputs = |n| (uniform(n), zeros(n)))]
/// # pub fn double(x: &[f32], y: &mut [f32]) { x.iter().zip(y).for_each(|(x, y)| *y = x + x) }
/// #[kernel_bench(of = double, name = "unrolled", threshold = 1 << 10)]
/// pub fn double_unrolled(x: &[f32], y: &mut [f32]) {
///     // ...
/// #     double(x, y)
/// }
/// ```
///
/// # A CUDA variant
///
/// It takes a `&Gpu`, [`DeviceSlice`]s where the kernel has slices, and numbers as they are; it returns a [`GpuResult`]. With
/// the feature `cuda` it runs, without it is skipped with a reason.
///
/// ```
/// # use kbench::prelude::*;
/// # #[kernel_bench(sizes = [16], inputs = |n| (uniform(n), zeros(n)))]
/// # pub fn double(x: &[f32], y: &mut [f32]) { x.iter().zip(y).for_each(|(x, y)| *y = x + x) }
/// const SOURCE: &str = r#"
/// extern "C" __global__ void twice(const float* x, float* y, size_t n) {
///     size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
///     if (i < n) y[i] = 2 * x[i];
/// }"#;
///
/// #[kernel_bench(of = double, cuda)]
/// pub fn double_cuda(
///     gpu: &Gpu,
///     x: &DeviceSlice<f32>,
///     y: &mut DeviceSlice<f32>,
/// ) -> GpuResult<()> {
///     gpu.kernel(SOURCE, "twice")?.over(x.len(), 256).arg(x).arg(y).arg(x.len()).launch()
/// }
/// ```
///
/// # A threshold that is measured
///
/// | option | meaning |
/// |---|---|
/// | `threshold = 1 << 16` | from this work on |
/// | `threshold = rows * dim >= 16_384` | where a condition on the axes holds |
/// | `threshold = tuned(1 << 16)` | from the work on that was measured on this kind of machine; until then, the default |
///
/// What was measured is in `kbench.toml`, in the crate's folder or in one above it, up to that of `Cargo.lock`; the
/// nearest counts. It is read when the crate is compiled, and again after it was changed. An entry is for one kind of
/// machine (architecture, processor and number of cores, or what the environment variable `KBENCH_MACHINE` says when the
/// build is for another one). [`dispatch!`] takes the same thresholds.
///
/// # Types of your own
///
/// A struct as a parameter or result is an operand with [`#[derive(kbench::Operand)]`](derive@Operand), and needs `Clone`.
/// Slices, arrays and tuples of operands are operands. A returned `Result` is a
/// fallible kernel: an `Err` fails the variant at that size, with its text; one that is a [`Declined`] skips it instead,
/// for a kernel that needs what not every machine has. A CUDA variant returns `Err(Declined(reason).into())`.
///
/// # An `unsafe fn`
///
/// kbench calls it in an `unsafe` block. Its author promises that the call is sound for all arguments that kbench makes, and these are
/// more than what `inputs` gives:
///
/// * the numbers that `uniform`, `normal` and their like draw are those of any seed and of every regime (`docs/checks.md`; `regimes`
///   leaves some out);
/// * any float that is read may be another one: zero, the next one, that of another place or seed, one of another sign and size. The
///   bounds of `range`, an order or a sum that `inputs` gives need not hold;
/// * slices begin at any address that is aligned for their elements, and may end where nothing can be read;
/// * outputs hold a pattern of kbench's unless `in_place` is given, and with `in_place = reuse` the results of other calls;
/// * sizes are those of `sizes` and others that kbench chooses; `valid` says which there are;
/// * with `reentrant` several threads call it at once.
///
/// A variant is called with the data of its kernel, whoever wrote `inputs`.
///
/// Features that `#[target_feature(enable = "...")]` names are no part of the promise: kbench asks the processor for them, and
/// skips the rows of a function, safe or `unsafe`, where one is missing.
///
/// # Names
///
/// The attribute also emits a hidden struct of the function's name, by which `of` finds the kernel. It lives in the
/// namespace of types and modules. Where a module of the same name is in scope, as with `pub mod saxpy; pub use saxpy::saxpy;`
/// (error E0255), give the struct another name: with `marker = Saxpy` in the kernel's attribute, its variants say
/// `of = Saxpy`.
pub use kbench_macros::kernel_bench;

/// Makes a function that calls one of several variants, by the amount of work.
///
/// ```
/// # pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) { x.iter().zip(y).for_each(|(x, y)| *y += a * x) }
/// # pub fn saxpy_blocked(a: f32, x: &[f32], y: &mut [f32]) { saxpy(a, x, y) }
/// # pub fn saxpy_rayon(a: f32, x: &[f32], y: &mut [f32]) { saxpy(a, x, y) }
/// kbench::dispatch! {
///     /// y ← a·x + y by whichever variant is faster at this size.
///     pub fn saxpy_auto(a: f32, x: &[f32], y: &mut [f32]) {
///         match x.len() {
///             tuned(1 << 16).. => saxpy_rayon,
///             1024.. => saxpy_blocked,
///             _ => saxpy,
///         }
///     }
/// }
///
/// let mut y = [1.0, 2.0];
/// saxpy_auto(2.0, &[10.0, 20.0], &mut y);
/// assert_eq!(y, [21.0, 42.0]);
/// ```
///
/// The `match` is on the amount of work, a `usize` in the unit of the kernel's `work`. Its arms are tried from top to
/// bottom:
///
/// | arm | the function is called |
/// |---|---|
/// | `tuned(1 << 16).. => path` | from the work on that was measured for this function of this crate on this kind of machine, or from the default on (see [`kernel_bench`](macro@kernel_bench), "A threshold that is measured") |
/// | `1024.. => path` | from this work on |
/// | `_ => path` | otherwise; the last arm, which is required |
///
/// Numbers are constants, and every function is called with the parameters as they are, so that what is left is a
/// comparison and a call. It is the same without the feature `run`: measured thresholds are for production.
///
/// All else about the function is passed on: documentation, attributes, visibility, `unsafe`, generics. With
/// `#[kernel_bench(of = saxpy, parallel, name = "auto")]` in front, inside of the macro, the dispatcher is itself a
/// variant, which shows at every size whether it chose well.
pub use kbench_macros::dispatch;

/// Makes a struct an operand of kernels: its fields are poisoned, compared, and looked at for changes.
///
/// ```
/// use kbench::prelude::*;
///
/// #[derive(Clone, Default, Operand)]
/// pub struct Moments {
///     pub mean: f32,
///     pub variance: f32,
///     #[operand(skip)] // not compared
///     pub calls: usize,
/// }
///
/// #[kernel_bench(sizes = [1 << 10], inputs = |n| uniform(n))]
/// pub fn moments(x: &[f32]) -> Moments {
///     let n = x.len() as f32;
///     let mean = x.iter().sum::<f32>() / n;
///     let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n;
///     Moments { mean, variance, calls: 1 }
/// }
/// ```
///
/// All fields must be operands, or have `#[operand(skip)]`. `#[operand(crate = path)]` on the struct says where kbench is, when
/// it is renamed.
///
/// With `#[operand(upload)]` on the struct, CUDA variants can take it: on the device it is the tuple of what its fields are there. A struct
/// of numbers with `#[repr(C)]` and `#[operand(element)]` is an element of arrays there (the derived code has an `unsafe impl`):
///
/// ```
/// use kbench::prelude::*;
///
/// #[derive(Clone, Operand)]
/// #[operand(upload)]
/// pub struct Forces {
///     pub of_particles: Vec<u32>,
///     pub values: Vec<f32>,
/// }
///
/// #[derive(Clone, Copy, Operand)]
/// #[operand(element)]
/// #[repr(C)]
/// pub struct Particle {
///     pub position: [f32; 3],
///     pub mass: f32,
/// }
///
/// pub fn move_cuda(
///     gpu: &Gpu,
///     forces: &(DeviceSlice<u32>, DeviceSlice<f32>), // `&Forces` on the host
///     particles: &mut DeviceSlice<Particle>,         // `&mut [Particle]` on the host
/// ) -> GpuResult<()> {
///     let (of_particles, values) = forces;
///     # let _ = (gpu, of_particles, values, particles);
///     # Ok(())
/// }
/// ```
///
/// Without the feature `run` nothing is derived.
pub use kbench_macros::Operand;

#[cfg(feature = "run")]
pub use kbench_core::{
    Configuration, DEFAULT_SEED, Journal, Past, Suite, SuiteError, Workers, baseline, check,
    crossover, cuda, environment, gate, gauge, harness, infer, kernel, main, measure, plan,
    registry, report, store, tuning, value, watch, worker,
};

#[cfg(feature = "run")]
pub use kbench_core::{
    cuda::{
        DeviceElement, DeviceSlice, DeviceValue, DeviceView, DeviceViewMut, Gpu, GpuError,
        GpuResult, MatrixProduct, Source, Upload,
    },
    report::Report,
    value::{Declined, Element, Fingerprint, Lend, Lent, Operand, Plain, PlainBytes, Poison},
};

/// Installed in a benchmark, it lets kbench count what kernels allocate:
///
/// ```no_run
/// #[global_allocator]
/// static ALLOCATOR: kbench::Allocator = kbench::Allocator::system();
///
/// kbench::main!();
/// ```
///
/// `kbench::Allocator::new(inner)` does so on top of another allocator, with the type `kbench::Allocator<Inner>`.
#[cfg(feature = "run")]
pub use kbench_core::gauge::Allocator;

#[cfg(feature = "run")]
#[doc(hidden)]
pub use kbench_core::__private;

#[cfg(not(feature = "run"))]
mod production;

#[cfg(not(feature = "run"))]
pub use production::{
    Declined, DeviceElement, DeviceSlice, DeviceValue, DeviceView, DeviceViewMut, Element,
    Fingerprint, Gpu, GpuError, GpuResult, Lend, Lent, MatrixProduct, Operand, Plain, PlainBytes,
    Poison, Source, Upload,
};

/// What a file with kernels needs: the attribute, and the functions that make data.
pub mod prelude {
    pub use crate::kernel_bench;
    // Not the trait, whose methods would hide others.
    pub use kbench_macros::Operand;

    #[cfg(feature = "run")]
    pub use kbench_core::{
        cuda::{DeviceSlice, Gpu, GpuResult, MatrixProduct, Source},
        value::{
            Element, F8E4M3, F8E5M2, bf16, constant, f16, integers, normal, range, uniform, zeros,
        },
    };

    #[cfg(not(feature = "run"))]
    pub use crate::{DeviceSlice, Element, Gpu, GpuResult, MatrixProduct, Source};
}
