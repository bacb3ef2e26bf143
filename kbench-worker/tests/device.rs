//! What the CUDA backend does on a device. Without one every test says why it is skipped.

#![cfg(feature = "cuda")]

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use half::{bf16, f16};
use kbench_worker::cuda::{
    DeviceElement, DeviceViewMut, Gpu, GpuError, MatrixProduct, Queue, Source, Stopwatch, devices,
};
use kbench_worker::value::{Element, F8E4M3, F8E5M2};

const SOURCE: Source = Source::new(
    r#"
extern "C" __global__ void copy(const unsigned char* from, unsigned char* to, size_t bytes) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < bytes) to[i] = from[i];
}
extern "C" __global__ void scale(float a, float* x, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
extern "C" __global__ void sum_in_shared(const float* x, float* sum, size_t n) {
    extern __shared__ float tile[];
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        float all = 0.0f;
        for (size_t i = 0; i < n; i++) all += tile[i];
        *sum = all;
    }
}
extern "C" __global__ void wait(unsigned long long nanoseconds) {
    unsigned long long begun, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
    do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); } while (now - begun < nanoseconds);
}
"#,
)
.named("device.cu");

/// The first device; none, and the reason on standard error, where there is none.
fn gpu() -> Option<Gpu> {
    match devices().and_then(|_| Gpu::open(0)) {
        Ok(gpu) => Some(gpu),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

fn goes_up_and_down<T: Element + DeviceElement + Debug>(gpu: &Gpu) -> Result<(), GpuError> {
    let host: Vec<T> = (0..1001).map(|i| T::from_f64(f64::from(i % 13) - 6.0)).collect();
    let from = gpu.upload(&host)?;
    let to = gpu.zeros::<T>(host.len())?;
    let bytes = host.len() * size_of::<T>();
    gpu.kernel(SOURCE, "copy")?.over(bytes, 128).arg(&from).arg(&to).arg(bytes).launch()?;
    let back: Vec<u64> = gpu.download(&to)?.into_iter().map(Element::bits).collect();
    assert_eq!(back, host.into_iter().map(Element::bits).collect::<Vec<_>>(), "{}", T::NAME);
    Ok(())
}

#[test]
fn every_element_type_goes_up_and_down() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    goes_up_and_down::<f32>(&gpu)?;
    goes_up_and_down::<f64>(&gpu)?;
    goes_up_and_down::<f16>(&gpu)?;
    goes_up_and_down::<bf16>(&gpu)?;
    goes_up_and_down::<F8E4M3>(&gpu)?;
    goes_up_and_down::<F8E5M2>(&gpu)?;
    goes_up_and_down::<i8>(&gpu)?;
    goes_up_and_down::<u8>(&gpu)?;
    goes_up_and_down::<i32>(&gpu)?;
    goes_up_and_down::<u32>(&gpu)?;
    goes_up_and_down::<usize>(&gpu)
}

#[test]
fn a_view_is_a_part_of_its_array() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let mut x = gpu.upload(&[1.0f32; 10])?;
    let twice = |view: DeviceViewMut<'_, f32>| {
        gpu.kernel(SOURCE, "scale")?.over(3, 32).arg(2.0f32).arg(view).arg(3u32).launch()
    };
    twice(x.view_mut(2..5))?;
    let (_, end) = x.split_at_mut(7);
    twice(end)?;
    assert_eq!(gpu.download(&x)?, [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    assert_eq!((x.view(2..5).len(), x.view(4..4).is_empty()), (3, true));
    Ok(())
}

#[test]
fn mistakes_in_a_launch_are_named() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let x = gpu.zeros::<f32>(8)?;
    let told = |outcome: Result<(), GpuError>| outcome.expect_err("a mistake").to_string();
    let scale = || gpu.kernel(SOURCE, "scale").map(|launch| launch.over(8, 32));
    let few = told(scale()?.arg(2.0f32).arg(&x).launch());
    assert_eq!(few, "`scale` takes 3 argument(s), and 2 are given");
    let wide = told(scale()?.arg(2.0f32).arg(&x).arg(8usize).launch());
    assert!(wide.starts_with("argument 3 of `scale` has 4 bytes, and 8 are given"), "{wide}");
    let many = told(scale()?.block(2048).arg(2.0f32).arg(&x).arg(8u32).launch());
    assert_eq!(many, "`scale` can have 1024 threads in a block, not 2048");
    let unknown = gpu.kernel(SOURCE, "scael").err().expect("a mistake").to_string();
    assert!(
        unknown.contains("there is no kernel `scael`") && unknown.contains("scale"),
        "{unknown}"
    );
    let short = told(gpu.copy_from(&x, &mut [0.0; 7]));
    assert!(short.contains("lengths must be the same"), "{short}");
    let huge = gpu.zeros::<f64>(1 << 45).expect_err("too much").to_string();
    assert!(huge.starts_with("out of device memory"), "{huge}");
    scale()?.arg(2.0f32).arg(&x).arg(8u32).launch()?;
    gpu.synchronize()
}

#[test]
fn scratch_memory_is_kept_for_the_next_call_that_wants_as_much() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let first = gpu.scratch::<f32>(1000)?.device_pointer();
    let (again, beside) = (gpu.scratch::<f32>(1000)?, gpu.scratch::<f32>(1000)?);
    assert_eq!(again.device_pointer(), first);
    assert_ne!(beside.device_pointer(), first);
    assert_ne!(gpu.scratch::<f32>(1001)?.device_pointer(), first);
    let x = gpu.upload(&[7.0f32; 1000])?;
    gpu.kernel(SOURCE, "copy")?.over(4000, 128).arg(&x).arg(&again).arg(4000usize).launch()?;
    assert_eq!(gpu.download(&again)?, [7.0; 1000]);
    Ok(())
}

#[test]
fn a_source_finds_its_own_headers() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    const FILLED: Source = Source::new(
        "#include \"constant.cuh\"\nextern \"C\" __global__ void constant(float* x) { *x = CONSTANT; }",
    )
    .headers(&[("constant.cuh", "static constexpr float CONSTANT = 42.0f;")]);
    let x = gpu.zeros::<f32>(1)?;
    gpu.kernel(FILLED, "constant")?.arg(&x).launch()?;
    assert_eq!(gpu.download(&x)?, [42.0]);
    Ok(())
}

#[test]
fn a_block_may_have_more_shared_memory_than_usual() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let n = 24_000; // 96 kB, and 48 are usual
    let (x, sum) = (gpu.upload(&vec![1.0f32; n])?, gpu.zeros::<f32>(1)?);
    let kernel = gpu.kernel(SOURCE, "sum_in_shared")?.block(256).shared(4 * n);
    kernel.arg(&x).arg(&sum).arg(n).launch()?;
    assert_eq!(gpu.download(&sum)?, [n as f32]);
    Ok(())
}

/// Products of small whole numbers are exact in every type that can hold them.
fn multiplies<T: Element + DeviceElement, D: Element + DeviceElement>(
    gpu: &Gpu,
    product: impl Fn(usize, usize, usize) -> MatrixProduct,
    is_transposed: bool,
) -> Result<(), GpuError> {
    let (m, n, k) = (32, 48, 64);
    let a = |i: usize, p: usize| ((i + 2 * p) % 3) as f64 - 1.0;
    let b = |p: usize, j: usize| ((3 * p + j) % 5) as f64 - 2.0;
    let host_a: Vec<T> = (0..m * k).map(|i| T::from_f64(a(i / k, i % k))).collect();
    let host_b: Vec<T> = (0..k * n)
        .map(|i| T::from_f64(if is_transposed { b(i % k, i / k) } else { b(i / n, i % n) }))
        .collect();
    let mut d = gpu.zeros::<D>(m * n)?;
    let product = product(m, n, k);
    gpu.blas_lt()?.multiply(&product, &gpu.upload(&host_a)?, &gpu.upload(&host_b)?, &mut d)?;
    let got: Vec<f64> = gpu.download(&d)?.into_iter().map(Element::to_f64).collect();
    let expected: Vec<f64> =
        (0..m * n).map(|i| (0..k).map(|p| a(i / n, p) * b(p, i % n)).sum()).collect();
    assert_eq!(got, expected, "{} to {}", T::NAME, D::NAME);
    Ok(())
}

#[test]
fn the_vendors_library_multiplies_every_type() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let plain = MatrixProduct::new;
    let transposed = |m, n, k| MatrixProduct::new(m, n, k).transposed();
    multiplies::<f64, f64>(&gpu, plain, false)?;
    multiplies::<f32, f32>(&gpu, plain, false)?;
    multiplies::<f32, f32>(&gpu, |m, n, k| MatrixProduct::new(m, n, k).tf32(), false)?;
    multiplies::<f16, f16>(&gpu, plain, false)?;
    multiplies::<bf16, f32>(&gpu, plain, false)?;
    multiplies::<bf16, bf16>(&gpu, transposed, true)?;
    multiplies::<F8E4M3, bf16>(&gpu, transposed, true)?;
    multiplies::<i8, i32>(&gpu, transposed, true)
}

#[test]
fn eight_bits_are_multiplied_with_their_scales() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let ones = gpu.upload(&vec![F8E4M3::from_f64(1.0); 256])?;
    let (half, three) = (gpu.upload(&[0.5f32])?, gpu.upload(&[3.0f32])?);
    let mut d = gpu.zeros::<f32>(256)?;
    let product = MatrixProduct::new(16, 16, 16).transposed();
    let (a, b) = ((&ones, Some(&half)), (&ones, Some(&three)));
    gpu.blas_lt()?.multiply_scaled(&product, a, b, &mut d)?;
    assert_eq!(gpu.download(&d)?, [24.0; 256]);
    // And without them, by the same shape.
    gpu.blas_lt()?.multiply(&product, &ones, &ones, &mut d)?;
    assert_eq!(gpu.download(&d)?, [16.0; 256]);
    Ok(())
}

#[test]
fn all_modes_see_the_same_kernel() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let stopwatch = Stopwatch::new(gpu)?;
    let gpu = stopwatch.gpu();
    let mut wait = |_| gpu.kernel(SOURCE, "wait")?.arg(200_000u64).launch();
    wait(0)?;
    gpu.synchronize()?;
    let hot = stopwatch.hot(10, Queue::Gated, &mut wait)?;
    let cold = stopwatch.cold(10, Queue::Gated, 0, &mut |_| Ok(()), &mut wait)?;
    let graph = stopwatch.capture(10, &mut wait)?;
    let graph = stopwatch.graph(&graph)?;
    for (mode, timing) in [("hot", hot), ("cold", cold), ("graph", graph)] {
        // The kernel itself waits for that long on the device; anything beyond a quarter more is no property of it.
        let microseconds = timing.time.as_secs_f64() * 1e6 / 10.0;
        assert!((200.0..250.0).contains(&microseconds), "{mode}: {microseconds} µs");
        assert!(timing.reading.host / 1e3 >= microseconds, "{mode}: {timing:?}");
        assert!(!timing.expired, "{mode}");
    }
    let overhead = stopwatch.overhead_ns()?;
    assert!((100.0..20_000.0).contains(&overhead), "{overhead} ns");
    let clock = hot.reading.clock_mhz.expect("stamps tell");
    assert!((200.0..5_000.0).contains(&clock), "{clock} MHz");
    Ok(())
}

#[test]
fn a_call_that_waits_opens_its_gate_and_cannot_be_recorded() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let stopwatch = Stopwatch::new(gpu)?;
    let gpu = stopwatch.gpu();
    let mut waits = |_| {
        gpu.kernel(SOURCE, "wait")?.arg(10_000u64).launch()?;
        gpu.synchronize()
    };
    waits(0)?;
    assert!(stopwatch.hot(2, Queue::Gated, &mut waits)?.expired);
    assert!(!stopwatch.hot(2, Queue::Open, &mut waits)?.expired);
    let error = stopwatch.capture(2, &mut waits).err().expect("it waits").to_string();
    assert!(error.contains("capturing"), "{error}");
    // And the stream still works.
    stopwatch.hot(1, Queue::Open, &mut waits)?;
    Ok(())
}

#[test]
fn a_copy_from_the_host_cannot_be_recorded_and_a_panic_ends_the_recording() -> Result<(), GpuError>
{
    let Some(gpu) = gpu() else { return Ok(()) };
    let stopwatch = Stopwatch::new(gpu)?;
    let gpu = stopwatch.gpu();
    let mut copies = |_| gpu.upload(&[1.0f32; 64]).map(drop);
    copies(0)?;
    let error = stopwatch.capture(1, &mut copies).err().expect("it copies").to_string();
    assert!(error.contains("cannot copy from the host"), "{error}");
    copies(0)?;
    let mut panics = |_| -> Result<(), GpuError> { resume_unwind(Box::new("a kernel failed")) };
    assert!(catch_unwind(AssertUnwindSafe(|| stopwatch.capture(1, &mut panics).is_ok())).is_err());
    copies(0)?;
    gpu.synchronize()
}

#[test]
fn ceilings_are_plausible_and_kept() -> Result<(), GpuError> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let stopwatch = Stopwatch::new(gpu)?;
    let first = stopwatch.ceilings()?;
    assert!(first.copy_bytes_per_s > 1e10 && first.copy_bytes_per_s < 1e14, "{first:?}");
    assert!(first.memory_bytes_per_s >= first.copy_bytes_per_s, "{first:?}");
    assert!(first.l2_bytes_per_s > first.memory_bytes_per_s, "{first:?}");
    let rate = |element: &str| first.rate(element).unwrap_or(0.0);
    assert!(rate("f32") > 1e11 && rate("bf16") > rate("f32"), "{first:?}");
    assert_eq!(stopwatch.ceilings()?, first, "they are measured once");
    Ok(())
}
