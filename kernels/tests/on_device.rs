//! Device code where the checks of small sizes do not get: more rows than warps at once, numbers as a mask leaves them, and many
//! calls in a row. Without a device every test says why it is skipped.

#![cfg(feature = "cuda")]

use half::{bf16, f16};
use kbench::{Gpu, GpuResult};
use kernels::loss::{cross_entropy_cuda, cross_entropy_rayon, cross_entropy_unfused_cuda};
use kernels::reductions::{argmax, argmax_cuda, sum, sum_cuda};
use kernels::shared::Float;

/// The first device; none, and the reason on standard error, where there is none.
fn gpu() -> Option<Gpu> {
    match kbench::cuda::devices().and_then(|_| Gpu::open(0)) {
        Ok(gpu) => Some(gpu),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

/// Numbers from −5 to 5 without a pattern that rows would share.
fn number(i: usize) -> f32 {
    (i.wrapping_mul(2_654_435_761) >> 7 & 1023) as f32 / 102.4 - 5.0
}

/// Targets of rows: one class after the other.
fn targets(rows: usize, classes: usize) -> Vec<u32> {
    (0..rows).map(|row| (row % classes) as u32).collect()
}

/// The losses on the device and on the CPU are the same, but for rounding, and have the same bits in every call.
fn losses_agree<T: Float>(gpu: &Gpu, logits: &[T], targets: &[u32]) -> GpuResult<()> {
    let mut expected = [0.0];
    cross_entropy_rayon(logits, targets, &mut expected);
    let [expected] = expected;
    let (logits, targets) = (gpu.upload(logits)?, gpu.upload(targets)?);
    for kernel in [cross_entropy_cuda, cross_entropy_unfused_cuda] {
        let call = || -> GpuResult<f32> {
            let mut out = gpu.zeros::<f32>(1)?;
            kernel(gpu, &logits, &targets, &mut out)?;
            Ok(gpu.download(&out)?[0])
        };
        let found = call()?;
        let is_close = (found - expected).abs() <= 1e-5 * expected.abs();
        let is_equal = found == expected || found.is_nan() && expected.is_nan();
        let (name, length, rows) = (T::NAME, logits.len(), targets.len());
        assert!(is_close || is_equal, "{name}, {length} of {rows}: {found} for {expected}");
        assert_eq!(call()?.to_bits(), found.to_bits(), "{name}, {length} of {rows}");
    }
    Ok(())
}

/// A warp has several rows, and of each so many steps that all ways through its loop are taken.
fn rows_of_every_length<T: Float>(gpu: &Gpu) -> GpuResult<()> {
    const ROWS: usize = 9000;
    let pack = 16 / size_of::<T>();
    let step = 128 * pack;
    for classes in [pack, step, step + pack, 2 * step, 3 * step - pack, 4 * step, 5 * step + pack] {
        let logits: Vec<T> = (0..ROWS * classes).map(|i| T::from_f32(number(i))).collect();
        losses_agree(gpu, &logits, &targets(ROWS, classes))?;
    }
    Ok(())
}

#[test]
fn a_warp_gets_through_many_rows_of_any_length() -> GpuResult<()> {
    let Some(gpu) = gpu() else { return Ok(()) };
    rows_of_every_length::<f32>(&gpu)?;
    rows_of_every_length::<f16>(&gpu)?;
    rows_of_every_length::<bf16>(&gpu)
}

/// Whole warps see nothing but masked numbers for a while; targets are among the others.
fn a_mask_is_passed_over<T: Float>(gpu: &Gpu, mask: T) -> GpuResult<()> {
    const ROWS: usize = 300;
    for classes in [1001, 1024, 33_000] {
        let masked = |i: usize| if i % classes > ROWS { mask } else { T::from_f32(number(i)) };
        let logits: Vec<T> = (0..ROWS * classes).map(masked).collect();
        losses_agree(gpu, &logits, &targets(ROWS, classes))?;
    }
    Ok(())
}

#[test]
fn the_lowest_numbers_count_as_nothing() -> GpuResult<()> {
    let Some(gpu) = gpu() else { return Ok(()) };
    for mask in [-1e4, -1e9, -1e10, -1e30, f32::MIN, f32::NEG_INFINITY] {
        a_mask_is_passed_over(&gpu, mask)?;
    }
    for mask in [bf16::from_f32(-1e10), bf16::MIN, bf16::NEG_INFINITY] {
        a_mask_is_passed_over(&gpu, mask)?;
    }
    for mask in [f16::from_f32(-1e4), f16::MIN, f16::NEG_INFINITY] {
        a_mask_is_passed_over(&gpu, mask)?;
    }
    Ok(())
}

/// What does not fit into a tally is in the mean, and is gone when the next one is computed.
#[test]
fn losses_may_be_huge_or_no_numbers() -> GpuResult<()> {
    let Some(gpu) = gpu() else { return Ok(()) };
    for (rows, classes) in [(1, 2), (1, 4096), (3, 1024), (9000, 512), (300, 1001), (40, 33_000)] {
        let ordinary: Vec<f32> = (0..rows * classes).map(number).collect();
        let targets = targets(rows, classes);
        losses_agree(&gpu, &ordinary, &targets)?;
        for logit in [-20_000.0, -1e30, f32::NEG_INFINITY, f32::NAN] {
            let mut logits = ordinary.clone();
            for row in [0, rows / 2] {
                logits[row * classes + targets[row] as usize] = logit;
            }
            losses_agree(&gpu, &logits, &targets)?;
        }
        let mut wrong = targets.clone();
        wrong[rows / 2] = classes as u32;
        losses_agree(&gpu, &ordinary, &wrong)?;
        losses_agree(&gpu, &ordinary, &targets)?;
    }
    Ok(())
}

#[test]
fn blocks_meet_again_in_every_call() -> GpuResult<()> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let numbers: Vec<f32> = (0..1 << 22).map(number).collect();
    let lengths = [1, 1000, 1 << 16, 1 << 22];
    let slices = lengths.iter().map(|length| gpu.upload(&numbers[..*length]));
    let slices: Vec<_> = slices.collect::<GpuResult<_>>()?;
    let mut known = [None; 4];
    for _ in 0..50 {
        for ((x, length), known) in slices.iter().zip(lengths).zip(&mut known) {
            let (mut total, mut value) = (gpu.zeros::<f32>(1)?, gpu.zeros::<f32>(1)?);
            let mut index = gpu.zeros::<u32>(1)?;
            sum_cuda(&gpu, x, &mut total)?;
            argmax_cuda(&gpu, x, &mut value, &mut index)?;
            let (total, index) = (gpu.download(&total)?[0], gpu.download(&index)?[0]);
            let expected = *known.get_or_insert_with(|| {
                is_right(&numbers[..length], total, index);
                (total.to_bits(), index)
            });
            assert_eq!((total.to_bits(), index), expected, "{length}");
        }
    }
    Ok(())
}

/// The sum and the place of the largest number are those that the CPU finds.
fn is_right(x: &[f32], total: f32, index: u32) {
    let (mut exact, mut value, mut place) = ([0.0], [0.0], [0]);
    sum(x, &mut exact);
    argmax(x, &mut value, &mut place);
    let size: f32 = x.iter().map(|x| x.abs()).sum();
    assert!((total - exact[0]).abs() <= 1e-5 * size, "{}: {total} for {exact:?}", x.len());
    assert_eq!(index, place[0], "{}", x.len());
}
