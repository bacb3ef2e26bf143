//! What the processor can do.

#![allow(unsafe_code)] // the processor is asked by instructions of its own

use std::hint::black_box;

use kbench::prelude::*;

use crate::shared::simd::{Level, level};

/// Asks which vector instructions the machine has, as every call of a vectorised kernel does; gives the sum of the answers,
/// each counted from one.
#[kernel_bench(
    sizes = [1, 1000],
    inputs = |queries| queries,
    reference = answers,
    expect = [time < 100ns at queries == 1, time < 100us at queries == 1000],
)]
pub fn query_features(queries: usize) -> usize {
    // Each answer goes through a black box, or the compiler would ask once.
    (0..queries).map(|_| number(black_box(level()))).sum()
}

/// [`query_features`] that remembers nothing: the processor is asked again each time, which a virtual machine has to
/// answer in its place.
#[cfg(target_arch = "x86_64")]
#[kernel_bench(of = query_features)]
pub fn query_features_cpuid(queries: usize) -> usize {
    (0..queries).map(|_| number(black_box(level_by_cpuid()))).sum()
}

fn number(level: Level) -> usize {
    level as usize + 1
}

/// The level by CPUID and XGETBV (Intel, "Software Developer's Manual", volume 1, chapters 14 and 15): instructions count
/// only where the system saves the registers that they need.
#[cfg(target_arch = "x86_64")]
fn level_by_cpuid() -> Level {
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    const FMA: u32 = 1 << 12;
    const SAVED_REGISTERS_ARE_KNOWN: u32 = 1 << 27;
    const F16C: u32 = 1 << 29;
    const AVX2_AND_BMI2: u32 = 1 << 5 | 1 << 8;
    const AVX512_F_DQ_BW_VL: u32 = 1 << 16 | 1 << 17 | 1 << 30 | 1 << 31;
    const SAVED_FOR_AVX2: u64 = 0b110;
    const SAVED_FOR_AVX512: u64 = 0b1110_0110;

    // SAFETY: every processor of the architecture has CPUID, and this one has XGETBV where that is called.
    let (first, seventh, saved) = unsafe {
        let last_leaf = __cpuid(0).eax;
        let first = __cpuid(1).ecx;
        let seventh = if last_leaf >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
        let known = first & SAVED_REGISTERS_ARE_KNOWN != 0;
        (first, seventh, if known { saved_registers() } else { 0 })
    };
    let has_all = |bits: u32, wanted: u32| bits & wanted == wanted;
    let avx2 = has_all(first, FMA | F16C) && has_all(seventh, AVX2_AND_BMI2);
    if !avx2 || saved & SAVED_FOR_AVX2 != SAVED_FOR_AVX2 {
        Level::Baseline
    } else if has_all(seventh, AVX512_F_DQ_BW_VL) && saved & SAVED_FOR_AVX512 == SAVED_FOR_AVX512 {
        Level::Avx512
    } else {
        Level::Avx2
    }
}

/// A bit for each set of registers that the system saves.
///
/// # Safety
///
/// The system must have enabled XGETBV.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "xsave")]
unsafe fn saved_registers() -> u64 {
    // SAFETY: the caller knows that the instruction is there.
    unsafe { std::arch::x86_64::_xgetbv(0) }
}

fn answers(queries: usize) -> usize {
    queries * expected_number()
}

/// The number of the level by what the standard library has found.
#[cfg(target_arch = "x86_64")]
fn expected_number() -> usize {
    use std::arch::is_x86_feature_detected as has;
    let avx2 = [has!("avx2"), has!("fma"), has!("f16c"), has!("bmi2")];
    let avx512 = [has!("avx512f"), has!("avx512bw"), has!("avx512dq"), has!("avx512vl")];
    match (avx2, avx512) {
        ([true, true, true, true], [true, true, true, true]) => 3,
        ([true, true, true, true], _) => 2,
        _ => 1,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn expected_number() -> usize {
    1
}
