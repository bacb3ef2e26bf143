//! Vector instructions, chosen when the program runs.
//!
//! A loop that the compiler can vectorise is compiled several times, once for every level of instructions here, and the
//! best that the machine has is called: nobody has to build with `target-cpu=native`.
//!
//! ```ignore
//! vectorise! {
//!     fn double(x: &mut [f32]) {
//!         for x in x {
//!             *x *= 2.0;
//!         }
//!     }
//! }
//! ```
//!
//! What the compiler cannot vectorise by itself is written with the processor's own instructions in a function of a
//! [`Level`], and chosen by [`level`].

#![allow(unsafe_code)] // calling a function that needs certain instructions, once it is known that they are there

use half::f16;

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has.
    Baseline,
    /// AVX2, FMA and F16C: vectors of 32 bytes.
    Avx2,
    /// AVX-512 F, BW, DQ and VL: vectors of 64 bytes.
    Avx512,
}

/// The best set that this machine has.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn level() -> Level {
    use std::arch::is_x86_feature_detected as has;
    let avx2 = has!("avx2") && has!("fma") && has!("f16c") && has!("bmi2");
    let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Baseline,
    }
}

/// The best set that this machine has.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn level() -> Level {
    Level::Baseline
}

/// Calls a closure that is compiled for the best vector instructions of this machine.
///
/// The closure must be `#[inline(always)]`, and so must all that it calls in its loops; the macro `vectorise!` writes it.
#[inline]
pub fn run<R>(mut function: impl FnMut() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the machine has these instructions.
        Level::Avx512 => return unsafe { run_with_avx512(function) },
        // SAFETY: the machine has these instructions.
        Level::Avx2 => return unsafe { run_with_avx2(function) },
        Level::Baseline => {}
    }
    function()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")]
fn run_with_avx512<R>(mut function: impl FnMut() -> R) -> R {
    function()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi2")]
fn run_with_avx2<R>(mut function: impl FnMut() -> R) -> R {
    function()
}

/// Defines a function that is compiled for every [`Level`], and that calls the best version that this machine has.
///
/// A function that exists is called in the same way by `vectorise!(body, (x, y))`; it must be `#[inline(always)]`.
///
/// All that is called in its loops must be `#[inline(always)]`, and named: a closure, or a function that is passed as a
/// value, may be left outside by the compiler, and is then compiled for [`Level::Baseline`].
macro_rules! vectorise {
    (
        fn $name:ident $(<$element:ident: $bound:ident $(, const $constant:ident: $kind:ident)?>)?
            ($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block
    ) => {
        #[allow(unsafe_code)] // calling what needs certain instructions, once it is known that they are there
        fn $name $(<$element: $bound $(, const $constant: $kind)?>)?
            ($($argument: $type),*) $(-> $output)? {
            #[inline(always)]
            fn baseline $(<$element: $bound $(, const $constant: $kind)?>)?
                ($($argument: $type),*) $(-> $output)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi2")]
            fn avx2 $(<$element: $bound $(, const $constant: $kind)?>)?
                ($($argument: $type),*) $(-> $output)? {
                baseline$(::<$element $(, $constant)?>)?($($argument),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")]
            fn avx512 $(<$element: $bound $(, const $constant: $kind)?>)?
                ($($argument: $type),*) $(-> $output)? {
                baseline$(::<$element $(, $constant)?>)?($($argument),*)
            }

            #[cfg(target_arch = "x86_64")]
            match $crate::shared::simd::level() {
                // SAFETY: the machine has these instructions.
                $crate::shared::simd::Level::Avx512 => {
                    return unsafe { avx512$(::<$element $(, $constant)?>)?($($argument),*) };
                }
                // SAFETY: the machine has these instructions.
                $crate::shared::simd::Level::Avx2 => {
                    return unsafe { avx2$(::<$element $(, $constant)?>)?($($argument),*) };
                }
                $crate::shared::simd::Level::Baseline => {}
            }
            baseline$(::<$element $(, $constant)?>)?($($argument),*)
        }
    };
    ($function:expr, ($($argument:expr),* $(,)?)) => {
        $crate::shared::simd::run(
            #[inline(always)]
            || $function($($argument),*),
        )
    };
}

pub(crate) use vectorise;

/// Widens halves, by the processor's own instruction where it has one.
#[inline]
pub fn widen_f16(from: &[f16], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: the machine has F16C.
        return unsafe { x86::widen_f16(from, to) };
    }
    from.iter().zip(to).for_each(|(from, to)| *to = from.to_f32());
}

/// Narrows to halves, to the nearest and ties to even, by the processor's own instruction where it has one.
#[inline]
pub fn narrow_f16(from: &[f32], to: &mut [f16]) {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: the machine has F16C.
        return unsafe { x86::narrow_f16(from, to) };
    }
    from.iter().zip(to).for_each(|(from, to)| *to = f16::from_f32(*from));
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use half::f16;

    #[target_feature(enable = "avx2,f16c")]
    pub(super) fn widen_f16(from: &[f16], to: &mut [f32]) {
        let (from, from_rest) = from.as_chunks::<8>();
        let (to, to_rest) = to.as_chunks_mut::<8>();
        for (from, to) in from.iter().zip(to) {
            // SAFETY: both sides have eight elements.
            unsafe {
                let halves = _mm_loadu_si128(from.as_ptr().cast());
                _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(halves));
            }
        }
        for (from, to) in from_rest.iter().zip(to_rest) {
            let half = _mm_cvtsi32_si128(i32::from(from.to_bits()));
            *to = _mm_cvtss_f32(_mm_cvtph_ps(half));
        }
    }

    #[target_feature(enable = "avx2,f16c")]
    pub(super) fn narrow_f16(from: &[f32], to: &mut [f16]) {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;
        let (from, from_rest) = from.as_chunks::<8>();
        let (to, to_rest) = to.as_chunks_mut::<8>();
        for (from, to) in from.iter().zip(to) {
            // SAFETY: both sides have eight elements.
            unsafe {
                let floats = _mm256_loadu_ps(from.as_ptr());
                _mm_storeu_si128(to.as_mut_ptr().cast(), _mm256_cvtps_ph::<NEAREST>(floats));
            }
        }
        for (from, to) in from_rest.iter().zip(to_rest) {
            let half = _mm_cvtps_ph::<NEAREST>(_mm_set_ss(*from));
            *to = f16::from_bits(_mm_cvtsi128_si32(half) as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_widened_and_narrowed_as_the_standard_says() {
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let mut wide = vec![0.0; halves.len()];
        widen_f16(&halves, &mut wide);
        let mut back = vec![f16::ZERO; halves.len()];
        narrow_f16(&wide, &mut back);
        for ((half, wide), back) in halves.iter().zip(&wide).zip(&back) {
            assert!(half.to_f32() == *wide || half.is_nan() && wide.is_nan(), "{half}");
            assert!(half.to_bits() == back.to_bits() || half.is_nan() && back.is_nan(), "{half}");
        }
    }

    #[test]
    fn what_is_between_two_halves_goes_to_the_nearer_one() {
        let wide: Vec<f32> = (0..5001).map(|i| (i as f32 - 2500.0) * 27.183_1).collect();
        let mut halves = vec![f16::ZERO; wide.len()];
        narrow_f16(&wide, &mut halves);
        let expected = wide.iter().map(|wide| f16::from_f32(*wide).to_bits());
        assert!(halves.iter().map(|half| half.to_bits()).eq(expected));
    }

    #[test]
    fn a_vectorised_function_computes_what_it_says() {
        vectorise! {
            fn scaled<T: Copy, const FACTOR: usize>(x: &[f32], _unused: T, out: &mut [f32]) -> usize {
                for (out, x) in out.iter_mut().zip(x) {
                    *out = x * FACTOR as f32;
                }
                x.len()
            }
        }
        let x: Vec<f32> = (0..67).map(|i| i as f32).collect();
        let mut out = vec![0.0; 67];
        assert_eq!(scaled::<(), 3>(&x, (), &mut out), 67);
        assert!(out.iter().zip(&x).all(|(out, x)| *out == 3.0 * x));
    }
}
