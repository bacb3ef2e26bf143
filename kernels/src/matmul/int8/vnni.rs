//! AVX-512 VNNI, whose instruction multiplies four neighbouring bytes by four others and adds all products to a sum.
//!
//! A panel of b is packed so that a vector has four bytes of each of 16 rows; they meet four bytes of a row of a in
//! every place. The instruction takes one side as unsigned: bytes of b get 128 added, which makes every sum too large by
//! 128 times the sum of a's row.

#![allow(unsafe_code)] // instructions of the processor, once it is known that they are there

use std::arch::is_x86_feature_detected as has;
use std::arch::x86_64::*;

use super::Rows;
use crate::shared::scratch::{Shelf, with_array};

/// Rows of a and rows of b whose sums are in registers.
const HEIGHT: usize = 12;
const WIDTH: usize = 32;
/// Sums of a vector.
const LANES: usize = 16;
/// Bytes that an instruction adds up.
const QUAD: usize = 4;
/// With fewer rows of a, packing does not pay.
const FEWEST_ROWS: usize = 8;

/// Four bytes of each of some rows of b.
type Quads = [u32; WIDTH];
/// Sums of a row of a with as many rows of b.
type Sums = [__m512i; 2];

thread_local! {
    /// A panel of b.
    static PANEL: Shelf<Quads> = const { Shelf::new() };
    /// What the sums of each row of a are too large by.
    static EXCESS: Shelf<i32> = const { Shelf::new() };
}

/// The product, where the machine has these instructions and packing pays; false where it is left to others.
pub(super) fn try_multiply(a: Rows<'_>, b: Rows<'_>, c: &mut [f32]) -> bool {
    let has_instructions = has!("avx512f") && has!("avx512bw") && has!("avx512vnni");
    if !has_instructions || a.count() < FEWEST_ROWS {
        return false;
    }
    // SAFETY: the machine has these instructions.
    unsafe { multiply(a, b, c) };
    true
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn multiply(a: Rows<'_>, b: Rows<'_>, c: &mut [f32]) {
    let (m, quads) = (a.count(), a.k.div_ceil(QUAD));
    with_array(&PANEL, quads, [0; WIDTH], |panel| {
        with_array(&EXCESS, m, 0, |excess| multiply_panels(a, b, panel, excess, c));
    });
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn multiply_panels(
    a: Rows<'_>,
    b: Rows<'_>,
    panel: &mut [Quads],
    excess: &mut [i32],
    c: &mut [f32],
) {
    let (m, n) = (a.count(), b.count());
    for (excess, row) in excess.iter_mut().zip(a.elements.chunks(a.k)) {
        let sum = row.iter().fold(0, |sum: i32, a| sum.wrapping_add(i32::from(*a)));
        *excess = sum.wrapping_mul(128);
    }
    for column in (0..n).step_by(WIDTH) {
        pack(b.tile(column), panel);
        let scales = load(&b.scales[column..]);
        for row in (0..m).step_by(HEIGHT) {
            let sums = tile(a.tile(row), panel);
            for (i, sums) in sums.into_iter().enumerate().take(m - row) {
                let c = &mut c[(row + i) * n + column..][..WIDTH.min(n - column)];
                finish(sums, excess[row + i], a.scales[row + i], scales, c);
            }
        }
    }
}

/// The bytes from `first` on, with zeros behind the end.
#[inline(always)]
fn quad(row: &[i8], first: usize) -> u32 {
    let byte = |i: usize| row.get(first + i).map_or(0, |byte| *byte as u8);
    u32::from_ne_bytes([byte(0), byte(1), byte(2), byte(3)])
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn pack(rows: [&[i8]; WIDTH], panel: &mut [Quads]) {
    const EACH_128: u32 = 0x8080_8080;
    for (j, row) in rows.iter().enumerate() {
        let (whole, rest) = row.as_chunks::<QUAD>();
        for (quads, bytes) in panel.iter_mut().zip(whole) {
            quads[j] = u32::from_ne_bytes(bytes.map(|byte| byte as u8)) ^ EACH_128;
        }
        if !rest.is_empty() {
            panel[whole.len()][j] = quad(rest, 0) ^ EACH_128;
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn tile(a: [&[i8]; HEIGHT], panel: &[Quads]) -> [Sums; HEIGHT] {
    let mut sums = [[_mm512_setzero_si512(); 2]; HEIGHT];
    let whole = a[0].len() / QUAD;
    let (inside, rest) = panel.split_at(whole);
    for (p, quads) in inside.iter().enumerate() {
        // SAFETY: all rows of a have as many quads as this loop goes over.
        let left = |i: usize| unsafe { a[i].as_ptr().cast::<i32>().add(p).read_unaligned() };
        step(&mut sums, quads, left);
    }
    for quads in rest {
        step(&mut sums, quads, |i| quad(a[i], whole * QUAD) as i32);
    }
    sums
}

/// Adds the products of one quad of every row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn step(sums: &mut [Sums; HEIGHT], quads: &Quads, left: impl Fn(usize) -> i32) {
    let (halves, _) = quads.as_chunks::<LANES>();
    // SAFETY: each half has as many bytes as the vector.
    let load = |half: usize| unsafe { _mm512_loadu_si512(halves[half].as_ptr().cast()) };
    let right = [load(0), load(1)];
    for (i, sums) in sums.iter_mut().enumerate() {
        let left = _mm512_set1_epi32(left(i));
        for (sums, right) in sums.iter_mut().zip(right) {
            *sums = _mm512_dpbusd_epi32(*sums, right, left);
        }
    }
}

/// Which of the columns of each vector exist.
#[inline(always)]
fn masks(columns: usize) -> [__mmask16; 2] {
    let mask = |columns: usize| if columns < LANES { (1 << columns) - 1 } else { u16::MAX };
    [mask(columns), mask(columns.saturating_sub(LANES))]
}

/// Up to a tile's width of factors.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(from: &[f32]) -> [__m512; 2] {
    let [near, far] = masks(from.len());
    let pointer = from.as_ptr();
    // SAFETY: what is behind the end is masked out.
    unsafe {
        [
            _mm512_maskz_loadu_ps(near, pointer),
            _mm512_maskz_loadu_ps(far, pointer.wrapping_add(LANES)),
        ]
    }
}

/// Neighbours in a row of c, up to a tile's width.
#[inline]
#[target_feature(enable = "avx512f")]
fn finish(sums: Sums, excess: i32, scale_a: f32, scales_b: [__m512; 2], c: &mut [f32]) {
    let masks = masks(c.len());
    for half in 0..2 {
        let exact = _mm512_sub_epi32(sums[half], _mm512_set1_epi32(excess));
        let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(exact), _mm512_set1_ps(scale_a));
        let to = c.as_mut_ptr().wrapping_add(half * LANES);
        // SAFETY: what is behind the end is masked out.
        unsafe {
            _mm512_mask_storeu_ps(to, masks[half], _mm512_mul_ps(scaled, scales_b[half]));
        }
    }
}
