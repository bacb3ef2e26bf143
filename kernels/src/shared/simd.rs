//! Vector instructions, chosen when the program runs.
//!
//! A loop that the compiler can vectorise is compiled several times, once for every level of instructions here, and the
//! best that the machine has is called: nobody has to build with `target-cpu=native`.
//!
//! ```ignore
//! vectorise! {
//!     /// Takes everything twice.
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

use std::sync::atomic::{AtomicU8, Ordering};

use half::f16;

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What every processor of the architecture has.
    Baseline,
    /// AVX2, FMA and F16C: vectors of 32 bytes.
    Avx2,
    /// AVX-512 F, BW, DQ and VL: vectors of 64 bytes.
    Avx512,
}

/// The best set that this machine has. It is looked for once; from then on this takes as long as reading a number.
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        AVX512 => Level::Avx512,
        AVX2 => Level::Avx2,
        BASELINE => Level::Baseline,
        _ => find_level(),
    }
}

/// The level that was found, or [`UNKNOWN`].
static LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = u8::MAX;
const BASELINE: u8 = Level::Baseline as u8;
const AVX2: u8 = Level::Avx2 as u8;
const AVX512: u8 = Level::Avx512 as u8;

#[cold]
fn find_level() -> Level {
    let level = detect();
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    use std::arch::is_x86_feature_detected as has;
    let avx2 = has!("avx2") && has!("fma") && has!("f16c") && has!("bmi2");
    let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
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
/// What its loops call must become part of every version; what the compiler leaves outside is compiled for
/// [`Level::Baseline`]. So functions are `#[inline(always)]`, and so are closures, but for those that the compiler is seen to
/// take in by itself, as it does with short ones that are passed to a function of [`lanes`](super::lanes). The test
/// `nothing_is_left_outside_of_a_version_for_wide_vectors` tells.
macro_rules! vectorise {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $name:ident $(<$element:ident: $bound:ident $(, const $constant:ident: $kind:ident)?>)?
            ($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block
    ) => {
        $(#[$meta])*
        #[allow(unsafe_code)] // calling what needs certain instructions, once it is known that they are there
        $visibility fn $name $(<$element: $bound $(, const $constant: $kind)?>)?
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
                $crate::shared::simd::Level::Avx512 => {
                    // SAFETY: the machine has these instructions.
                    return unsafe { avx512$(::<$element $(, $constant)?>)?($($argument),*) };
                }
                $crate::shared::simd::Level::Avx2 => {
                    // SAFETY: the machine has these instructions.
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
    match level() {
        // SAFETY: the machine has AVX-512.
        Level::Avx512 => return unsafe { avx512::widen_f16(from, to) },
        // SAFETY: the machine has F16C.
        Level::Avx2 => return unsafe { avx2::widen_f16(from, to) },
        Level::Baseline => {}
    }
    baseline::widen_f16(from, to);
}

/// Narrows to halves, to the nearest and ties to even, by the processor's own instruction where it has one.
#[inline]
pub fn narrow_f16(from: &[f32], to: &mut [f16]) {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the machine has AVX-512.
        Level::Avx512 => return unsafe { avx512::narrow_f16(from, to) },
        // SAFETY: the machine has F16C.
        Level::Avx2 => return unsafe { avx2::narrow_f16(from, to) },
        Level::Baseline => {}
    }
    baseline::narrow_f16(from, to);
}

/// One half at a time.
mod baseline {
    use half::f16;

    #[inline(always)]
    pub(super) fn widen_f16(from: &[f16], to: &mut [f32]) {
        from.iter().zip(to).for_each(|(from, to)| *to = from.to_f32());
    }

    #[inline(always)]
    pub(super) fn narrow_f16(from: &[f32], to: &mut [f16]) {
        from.iter().zip(to).for_each(|(from, to)| *to = f16::from_f32(*from));
    }
}

/// Sixteen halves at a time, and the rest under a mask.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use half::f16;

    /// A bit for each of so many elements.
    fn mask(rest: usize) -> u16 {
        (1 << rest) - 1
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn widen_f16(from: &[f16], to: &mut [f32]) {
        let (from, from_rest) = from.as_chunks::<16>();
        let (to, to_rest) = to.as_chunks_mut::<16>();
        for (from, to) in from.iter().zip(to) {
            // SAFETY: both sides have sixteen elements.
            unsafe {
                let halves = _mm256_loadu_si256(from.as_ptr().cast());
                _mm512_storeu_ps(to.as_mut_ptr(), _mm512_cvtph_ps(halves));
            }
        }
        let mask = mask(from_rest.len().min(to_rest.len()));
        // SAFETY: the mask has no more bits than either side has elements.
        unsafe {
            let halves = _mm256_maskz_loadu_epi16(mask, from_rest.as_ptr().cast());
            _mm512_mask_storeu_ps(to_rest.as_mut_ptr(), mask, _mm512_cvtph_ps(halves));
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn narrow_f16(from: &[f32], to: &mut [f16]) {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;
        let (from, from_rest) = from.as_chunks::<16>();
        let (to, to_rest) = to.as_chunks_mut::<16>();
        for (from, to) in from.iter().zip(to) {
            // SAFETY: both sides have sixteen elements.
            unsafe {
                let floats = _mm512_loadu_ps(from.as_ptr());
                _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm512_cvtps_ph::<NEAREST>(floats));
            }
        }
        let mask = mask(from_rest.len().min(to_rest.len()));
        // SAFETY: the mask has no more bits than either side has elements.
        unsafe {
            let floats = _mm512_maskz_loadu_ps(mask, from_rest.as_ptr());
            let halves = _mm512_cvtps_ph::<NEAREST>(floats);
            _mm256_mask_storeu_epi16(to_rest.as_mut_ptr().cast(), mask, halves);
        }
    }
}

/// Eight halves at a time.
#[cfg(target_arch = "x86_64")]
mod avx2 {
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

    /// Conversions by the instructions of one level.
    struct Conversion {
        level: Level,
        widen: fn(&[f16], &mut [f32]),
        narrow: fn(&[f32], &mut [f16]),
    }

    /// Those of all levels that this machine has.
    fn conversions() -> Vec<Conversion> {
        let all = [
            Conversion {
                level: Level::Baseline,
                widen: baseline::widen_f16,
                narrow: baseline::narrow_f16,
            },
            #[cfg(target_arch = "x86_64")]
            Conversion {
                level: Level::Avx2,
                // SAFETY: it is called where the machine has this level.
                widen: |from, to| unsafe { avx2::widen_f16(from, to) },
                // SAFETY: as above.
                narrow: |from, to| unsafe { avx2::narrow_f16(from, to) },
            },
            #[cfg(target_arch = "x86_64")]
            Conversion {
                level: Level::Avx512,
                // SAFETY: it is called where the machine has this level.
                widen: |from, to| unsafe { avx512::widen_f16(from, to) },
                // SAFETY: as above.
                narrow: |from, to| unsafe { avx512::narrow_f16(from, to) },
            },
        ];
        all.into_iter().filter(|conversion| conversion.level <= level()).collect()
    }

    #[test]
    fn halves_are_widened_and_narrowed_as_the_standard_says() {
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        for Conversion { level, widen, narrow } in conversions() {
            let mut wide = vec![0.0; halves.len()];
            widen(&halves, &mut wide);
            let mut back = vec![f16::ZERO; halves.len()];
            narrow(&wide, &mut back);
            for ((half, wide), back) in halves.iter().zip(&wide).zip(&back) {
                let is_same = |same: bool, is_nan: bool| same || half.is_nan() && is_nan;
                assert!(is_same(half.to_f32() == *wide, wide.is_nan()), "{level:?}: {half}");
                assert!(
                    is_same(half.to_bits() == back.to_bits(), back.is_nan()),
                    "{level:?}: {half}"
                );
            }
        }
    }

    #[test]
    fn what_is_between_two_halves_goes_to_the_nearer_one() {
        let wide: Vec<f32> = (0..5001).map(|i| (i as f32 - 2500.0) * 27.183_1).collect();
        let expected: Vec<u16> =
            wide.iter().map(|wide| f16::from_f64(f64::from(*wide)).to_bits()).collect();
        for Conversion { level, narrow, .. } in conversions() {
            let mut halves = vec![f16::ZERO; wide.len()];
            narrow(&wide, &mut halves);
            let found = halves.iter().map(|half| half.to_bits());
            assert!(found.eq(expected.iter().copied()), "{level:?}");
        }
    }

    #[test]
    fn any_number_of_halves_is_converted_and_nothing_behind_them() {
        for Conversion { level, widen, narrow } in conversions() {
            for length in 0..40 {
                let halves: Vec<f16> = (0..length).map(|i| f16::from_f32(i as f32 + 0.5)).collect();
                let (mut wide, mut back) = ([-1.0; 48], [f16::NEG_ONE; 48]);
                widen(&halves, &mut wide[..length]);
                narrow(&wide[..length], &mut back[..length]);
                let is_kept = wide.iter().zip(&back).enumerate().all(|(i, (wide, back))| {
                    let expected = if i < length { i as f32 + 0.5 } else { -1.0 };
                    *wide == expected && back.to_f32() == expected
                });
                assert!(is_kept, "{level:?}: {length}");
            }
        }
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
