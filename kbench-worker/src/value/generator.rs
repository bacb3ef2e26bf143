//! Random numbers by counter: any part of a sequence can be made at once, by any core, and has the same bits on every machine.
//!
//! The bits are those of Threefry with four words of 32 bits and 13 rounds (Salmon, Moraes, Dror and Shaw 2011, "Parallel
//! Random Numbers: As Easy as 1, 2, 3"). Normal numbers are made from them by Box and Muller's transform. Everything is
//! additions, products, a division and a root that IEEE 754 defines to the last bit; nothing is fused and nothing is left to
//! a library. The loops have no branches, so that the compiler makes vector instructions of them.

#![allow(unsafe_code)] // functions for instructions that the processor was asked for

use std::f64::consts::{FRAC_PI_2, LN_2};

/// Numbers that are made together.
pub(super) const RUN: usize = 1024;

/// Each output of Threefry gives two numbers: one in the first half of a run, one in the second.
const HALF: usize = RUN / 2;

/// A sequence of random numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Generator {
    key: [u32; 4],
}

impl Generator {
    /// One of the sequences of a seed.
    pub(super) fn new(seed: u64, sequence: u64) -> Self {
        let words = |number: u64| [number as u32, (number >> 32) as u32];
        let ([a, b], [c, d]) = (words(seed), words(sequence));
        Generator { key: [a, b, c, d] }
    }

    /// Which one of the sequences it is.
    pub(super) fn sequence(self) -> u64 {
        u64::from(self.key[3]) << 32 | u64::from(self.key[2])
    }

    /// Random bits.
    pub(super) fn bits(self, run: usize, bits: &mut [u64; RUN]) {
        widest(Bits { key: self.key, run: run as u64 }, bits);
    }

    /// Numbers that are uniform in [0, 1), multiples of 2^-52.
    pub(super) fn units(self, run: usize, units: &mut [f64; RUN]) {
        let mut bits = [0; RUN];
        self.bits(run, &mut bits);
        for (unit, bits) in units.iter_mut().zip(&bits) {
            *unit = from_one_to_two(*bits) - 1.0;
        }
    }

    /// Numbers of the standard normal distribution.
    pub(super) fn normals(self, run: usize, normals: &mut [f64; RUN]) {
        let mut bits = [0; RUN];
        self.bits(run, &mut bits);
        widest(Normals { bits: &bits }, normals);
    }
}

/// A loop that is compiled once for every width of vectors.
trait Loop<T> {
    /// Must be `#[inline(always)]`: the instructions are those of the function that it becomes a part of.
    fn fill(self, values: &mut [T; RUN]);
}

/// Fills a run by the widest vectors that the processor has.
#[cfg(target_arch = "x86_64")]
fn widest<T>(code: impl Loop<T>, values: &mut [T; RUN]) {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn of_512_bits<T>(code: impl Loop<T>, values: &mut [T; RUN]) {
        code.fill(values);
    }
    #[target_feature(enable = "avx2")]
    fn of_256_bits<T>(code: impl Loop<T>, values: &mut [T; RUN]) {
        code.fill(values);
    }
    let has_512_bits = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    if has_512_bits {
        // SAFETY: the processor has these instructions.
        unsafe { of_512_bits(code, values) }
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        unsafe { of_256_bits(code, values) }
    } else {
        code.fill(values);
    }
}

/// Fills a run by the vectors that every processor of the architecture has.
#[cfg(not(target_arch = "x86_64"))]
fn widest<T>(code: impl Loop<T>, values: &mut [T; RUN]) {
    code.fill(values);
}

struct Bits {
    key: [u32; 4],
    run: u64,
}

impl Loop<u64> for Bits {
    #[inline(always)]
    fn fill(self, values: &mut [u64; RUN]) {
        let start = self.run.wrapping_mul(HALF as u64);
        // The lower half of the counter never overflows within a run.
        let (low, high) = (start as u32, (start >> 32) as u32);
        let (first, second) = values.split_at_mut(HALF);
        for (i, (first, second)) in first.iter_mut().zip(second).enumerate() {
            let [a, b, c, d] = threefry(self.key, [low + i as u32, high, 0, 0]);
            *first = u64::from(a) << 32 | u64::from(b);
            *second = u64::from(c) << 32 | u64::from(d);
        }
    }
}

/// By how many bits words are rotated in each round.
const ROTATIONS: [[u32; 2]; 8] =
    [[10, 26], [11, 21], [13, 27], [23, 5], [6, 20], [17, 11], [25, 10], [18, 20]];

/// Threefry-4x32 of 13 rounds, without a loop: that would not become vector instructions.
#[inline(always)]
fn threefry([a, b, c, d]: [u32; 4], counter: [u32; 4]) -> [u32; 4] {
    const R: [[u32; 2]; 8] = ROTATIONS;
    let e = a ^ b ^ c ^ d ^ 0x1bd1_1bda;
    let x = inject(counter, [a, b, c, d], 0);
    let x = inject(four_rounds(x, [R[0], R[1], R[2], R[3]]), [b, c, d, e], 1);
    let x = inject(four_rounds(x, [R[4], R[5], R[6], R[7]]), [c, d, e, a], 2);
    let x = inject(four_rounds(x, [R[0], R[1], R[2], R[3]]), [d, e, a, b], 3);
    round(x, R[4])
}

#[inline(always)]
fn four_rounds(x: [u32; 4], rotations: [[u32; 2]; 4]) -> [u32; 4] {
    let [a, b, c, d] = round(x, rotations[0]);
    let [a, d, c, b] = round([a, d, c, b], rotations[1]);
    let [a, b, c, d] = round([a, b, c, d], rotations[2]);
    let [a, d, c, b] = round([a, d, c, b], rotations[3]);
    [a, b, c, d]
}

#[inline(always)]
fn round([a, b, c, d]: [u32; 4], [first, second]: [u32; 2]) -> [u32; 4] {
    let (a, c) = (a.wrapping_add(b), c.wrapping_add(d));
    [a, b.rotate_left(first) ^ a, c, d.rotate_left(second) ^ c]
}

/// Adds a part of the key.
#[inline(always)]
fn inject([a, b, c, d]: [u32; 4], key: [u32; 4], number: u32) -> [u32; 4] {
    [
        a.wrapping_add(key[0]),
        b.wrapping_add(key[1]),
        c.wrapping_add(key[2]),
        d.wrapping_add(key[3]).wrapping_add(number),
    ]
}

struct Normals<'a> {
    bits: &'a [u64; RUN],
}

impl Loop<f64> for Normals<'_> {
    #[inline(always)]
    fn fill(self, values: &mut [f64; RUN]) {
        let (radii, angles) = self.bits.split_at(HALF);
        let (first, second) = values.split_at_mut(HALF);
        for i in 0..HALF {
            let radius = (-2.0 * ln(2.0 - from_one_to_two(radii[i]))).sqrt();
            let (cosine, sine) = on_circle(angles[i]);
            (first[i], second[i]) = (radius * cosine, radius * sine);
        }
    }
}

/// The bits of 1.0: an exponent without a mantissa.
const ONE: u64 = 0x3ff0_0000_0000_0000;

/// Uniform in [1, 2).
#[inline(always)]
fn from_one_to_two(bits: u64) -> f64 {
    f64::from_bits((bits >> 12) | ONE)
}

/// The logarithm of a positive normal number, to 12 digits: that of m·2^e with m in [√½, √2) by the series of atanh.
#[inline(always)]
fn ln(x: f64) -> f64 {
    const ROOT_OF_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    /// The bits of 2^52, whose mantissa counts units: no conversion of integers has vector instructions everywhere.
    const UNITS: u64 = 0x4330_0000_0000_0000;
    let biased = x.to_bits().wrapping_add(ONE - ROOT_OF_HALF) >> 52;
    let exponent = f64::from_bits(biased | UNITS) - (f64::from_bits(UNITS) + 1023.0);
    let m = f64::from_bits(x.to_bits().wrapping_sub(biased << 52).wrapping_add(ONE));
    let s = (m - 1.0) / (m + 1.0);
    let terms = [1.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0];
    2.0 * s * series(s * s, terms) + exponent * LN_2
}

/// A random point of the unit circle. One bit chooses between left and right, another exchanges both coordinates; the rest is
/// an angle of at most an eighth of a turn to either side.
#[inline(always)]
fn on_circle(bits: u64) -> (f64, f64) {
    let angle = (from_one_to_two(bits << 2) - 1.5) * FRAC_PI_2;
    let square = angle * angle;
    let cosine = series(square, COSINE).to_bits() ^ (bits & (1 << 63));
    let sine = (angle * series(square, SINE)).to_bits();
    let is_exchanged = (bits >> 62) & 1;
    let difference = (cosine ^ sine) & 0u64.wrapping_sub(is_exchanged);
    (f64::from_bits(cosine ^ difference), f64::from_bits(sine ^ difference))
}

/// The first terms of Taylor's series of the cosine. Up to π/4 the next one is below 4e-13.
const COSINE: [f64; 7] = [
    1.0,
    -1.0 / 2.0,
    1.0 / 24.0,
    -1.0 / 720.0,
    1.0 / 40_320.0,
    -1.0 / 3_628_800.0,
    1.0 / 479_001_600.0,
];

/// The same of the sine, divided by its angle. Up to π/4 the next one is below 1e-11.
const SINE: [f64; 6] =
    [1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0];

/// A polynomial, by Horner's rule.
#[inline(always)]
fn series<const N: usize>(x: f64, terms: [f64; N]) -> f64 {
    let mut sum = terms[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum * x + terms[i];
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_threefry() {
        // From the known answers that come with the authors' library.
        assert_eq!(threefry([0; 4], [0; 4]), [0x531c_7e4f, 0x3949_1ee5, 0x2c85_5a92, 0x3d6a_bf9a]);
        let mut bits = [0; RUN];
        Generator::new(0, 0).bits(0, &mut bits);
        assert_eq!((bits[0], bits[HALF]), (0x531c_7e4f_3949_1ee5, 0x2c85_5a92_3d6a_bf9a));
    }

    #[test]
    fn every_width_of_vectors_gives_the_same_bits() {
        let generator = Generator::new(7, 3);
        let (mut plain, mut wide) = ([0; RUN], [0; RUN]);
        Bits { key: generator.key, run: 5 }.fill(&mut plain);
        generator.bits(5, &mut wide);
        assert_eq!(plain, wide);
        let (mut plain_normals, mut wide_normals) = ([0.0; RUN], [0.0; RUN]);
        Normals { bits: &plain }.fill(&mut plain_normals);
        generator.normals(5, &mut wide_normals);
        assert_eq!(plain_normals.map(f64::to_bits), wide_normals.map(f64::to_bits));
    }

    #[test]
    fn runs_sequences_and_seeds_differ() {
        let first = |seed, sequence, run| {
            let mut bits = [0; RUN];
            Generator::new(seed, sequence).bits(run, &mut bits);
            bits
        };
        let all =
            [first(1, 1, 0), first(2, 1, 0), first(1, 2, 0), first(1, 1, 1), first(1, 1, 1 << 40)];
        for (i, one) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| one.iter().zip(other).all(|(a, b)| a != b)));
        }
    }

    #[test]
    fn logarithm_and_circle_are_those_of_the_platform_to_eleven_digits() {
        for i in 1..5000_u64 {
            let x = i as f64 / 5000.0;
            assert!((ln(x) - x.ln()).abs() <= 1e-11 * x.ln().abs().max(1.0), "ln {x}");
            let bits = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let angle = (from_one_to_two(bits << 2) - 1.5) * FRAC_PI_2;
            let (x, y) = match bits >> 62 {
                0 => (angle.cos(), angle.sin()),
                1 => (angle.sin(), angle.cos()),
                2 => (-angle.cos(), angle.sin()),
                _ => (angle.sin(), -angle.cos()),
            };
            let (cosine, sine) = on_circle(bits);
            assert!((cosine - x).abs() < 1e-11 && (sine - y).abs() < 1e-11, "{bits:x}");
        }
        assert_eq!(ln(1.0), 0.0, "the largest unit makes no negative root");
    }
}
