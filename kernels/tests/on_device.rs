//! Device code where the checks of small sizes do not get: more rows than warps at once, numbers as a mask leaves them, and many
//! calls in a row. Without a device every test says why it is skipped.

#![cfg(feature = "cuda")]

use half::{bf16, f16};
use kbench::{Gpu, GpuResult};
use kernels::loss::{cross_entropy_cuda, cross_entropy_rayon};
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

/// The loss on the device and on the CPU are the same, but for rounding.
fn losses_agree<T: Float>(gpu: &Gpu, classes: usize, logits: &[T]) -> GpuResult<()> {
    let targets: Vec<u32> = (0..logits.len() / classes).map(|row| (row % classes) as u32).collect();
    let mut out = gpu.zeros::<f32>(1)?;
    cross_entropy_cuda(gpu, &gpu.upload(logits)?, &gpu.upload(&targets)?, &mut out)?;
    let mut expected = [0.0];
    cross_entropy_rayon(logits, &targets, &mut expected);
    let (found, expected) = (gpu.download(&out)?[0], expected[0]);
    let rows = targets.len();
    assert!(
        (found - expected).abs() <= 1e-5 * expected.abs(),
        "{} {rows}×{classes}: {found} instead of {expected}",
        T::NAME
    );
    Ok(())
}

/// A warp has several rows, and of each so many steps that all ways through its loop are taken.
fn rows_of_every_length<T: Float>(gpu: &Gpu) -> GpuResult<()> {
    const ROWS: usize = 9000;
    let pack = 16 / size_of::<T>();
    let step = 128 * pack;
    for classes in [pack, step, step + pack, 2 * step, 3 * step - pack, 4 * step, 5 * step + pack] {
        let logits: Vec<T> = (0..ROWS * classes).map(|i| T::from_f32(number(i))).collect();
        losses_agree(gpu, classes, &logits)?;
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
        losses_agree(gpu, classes, &logits)?;
    }
    Ok(())
}

#[test]
fn the_lowest_numbers_count_as_nothing() -> GpuResult<()> {
    let Some(gpu) = gpu() else { return Ok(()) };
    for mask in [f32::MIN, f32::NEG_INFINITY] {
        a_mask_is_passed_over(&gpu, mask)?;
    }
    for mask in [bf16::MIN, bf16::NEG_INFINITY] {
        a_mask_is_passed_over(&gpu, mask)?;
    }
    for mask in [f16::MIN, f16::NEG_INFINITY] {
        a_mask_is_passed_over(&gpu, mask)?;
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
