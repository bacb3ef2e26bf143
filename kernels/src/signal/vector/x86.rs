//! The vectors of AVX-512, and of AVX2 with FMA.

use std::arch::x86_64::*;
use std::array::from_fn;

use super::{LANES, Numbers, Task, Vector};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")]
pub(super) fn with_avx512<T: Task>(task: T) -> T::Output {
    task.run::<Avx512>()
}

#[target_feature(enable = "avx2,fma,f16c,bmi2")]
pub(super) fn with_avx2<T: Task>(task: T) -> T::Output {
    task.run::<Avx2>()
}

/// One register of 64 bytes. Only [`with_avx512`] names it.
#[derive(Clone, Copy)]
struct Avx512(__m512);

/// Two registers of 32 bytes. Only [`with_avx2`] names it.
#[derive(Clone, Copy)]
struct Avx2([__m256; 2]);

/// Places in two registers in a row, first those of one result.
const fn places(start: i32, step: i32, alternate: i32) -> [i32; 16] {
    let mut places = [0; 16];
    let mut lane = 0;
    while lane < 16 {
        places[lane as usize] = start + (lane / alternate) * step + (lane % alternate) * 16;
        lane += 1;
    }
    places
}

const INTERLEAVE: [[i32; 16]; 2] = [places(0, 1, 2), places(8, 1, 2)];
const SEPARATE: [[i32; 16]; 2] = [places(0, 2, 1), places(1, 2, 1)];

impl Avx512 {
    #[inline(always)]
    fn pick(first: Self, second: Self, places: &[i32; 16]) -> Self {
        // SAFETY: the machine has AVX-512, and there are sixteen places.
        unsafe {
            let places = _mm512_loadu_epi32(places.as_ptr());
            Avx512(_mm512_permutex2var_ps(first.0, places, second.0))
        }
    }

    #[inline(always)]
    fn pairs(a: Self, b: Self) -> (Self, Self) {
        // SAFETY: the machine has AVX-512.
        unsafe { (Avx512(_mm512_unpacklo_ps(a.0, b.0)), Avx512(_mm512_unpackhi_ps(a.0, b.0))) }
    }

    #[inline(always)]
    fn pairs_of_pairs(a: Self, b: Self) -> (Self, Self) {
        // SAFETY: the machine has AVX-512.
        unsafe {
            let (a, b) = (_mm512_castps_pd(a.0), _mm512_castps_pd(b.0));
            (
                Avx512(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b))),
                Avx512(_mm512_castpd_ps(_mm512_unpackhi_pd(a, b))),
            )
        }
    }

    /// Quarters of the registers: even ones of both, odd ones of both.
    #[inline(always)]
    fn quarters(a: Self, b: Self) -> (Self, Self) {
        // SAFETY: the machine has AVX-512.
        unsafe {
            (
                Avx512(_mm512_shuffle_f32x4::<0b10_00_10_00>(a.0, b.0)),
                Avx512(_mm512_shuffle_f32x4::<0b11_01_11_01>(a.0, b.0)),
            )
        }
    }
}

impl Vector for Avx512 {
    const MANY: bool = true;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: the machine has AVX-512.
        Avx512(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    fn load(from: &Numbers) -> Self {
        // SAFETY: the machine has AVX-512, and there are sixteen numbers.
        Avx512(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, to: &mut Numbers) {
        // SAFETY: the machine has AVX-512, and there is room for sixteen numbers.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: the machine has AVX-512.
        Avx512(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        // SAFETY: the machine has AVX-512.
        Avx512(unsafe { _mm512_sub_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        // SAFETY: the machine has AVX-512.
        Avx512(unsafe { _mm512_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn multiply_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: the machine has AVX-512.
        Avx512(unsafe { _mm512_fmadd_ps(self.0, factor.0, addend.0) })
    }

    #[inline(always)]
    fn subtract_product(self, factor: Self, addend: Self) -> Self {
        // SAFETY: the machine has AVX-512.
        Avx512(unsafe { _mm512_fnmadd_ps(self.0, factor.0, addend.0) })
    }

    #[inline(always)]
    fn interleave(first: Self, second: Self) -> (Self, Self) {
        let [low, high] = &INTERLEAVE;
        (Self::pick(first, second, low), Self::pick(first, second, high))
    }

    #[inline(always)]
    fn separate(low: Self, high: Self) -> (Self, Self) {
        let [even, odd] = &SEPARATE;
        (Self::pick(low, high, even), Self::pick(low, high, odd))
    }

    /// Squares of four by four within quarters of the registers, then the quarters.
    #[inline(always)]
    fn transpose(rows: &mut [Self; LANES]) {
        // After this, quarter i of squares[4·g + c] has column 4·i + c of rows 4·g to 4·g + 3.
        let mut squares = *rows;
        for group in 0..4 {
            let [a, b, c, d] = from_fn(|i| rows[4 * group + i]);
            let ((ab_low, ab_high), (cd_low, cd_high)) = (Self::pairs(a, b), Self::pairs(c, d));
            let (first, second) = Self::pairs_of_pairs(ab_low, cd_low);
            let (third, fourth) = Self::pairs_of_pairs(ab_high, cd_high);
            for (column, value) in [first, second, third, fourth].into_iter().enumerate() {
                squares[4 * group + column] = value;
            }
        }
        for column in 0..4 {
            let [a, b, c, d] = from_fn(|group| squares[4 * group + column]);
            let ((ab_even, ab_odd), (cd_even, cd_odd)) =
                (Self::quarters(a, b), Self::quarters(c, d));
            (rows[column], rows[8 + column]) = Self::quarters(ab_even, cd_even);
            (rows[4 + column], rows[12 + column]) = Self::quarters(ab_odd, cd_odd);
        }
    }
}

impl Avx2 {
    #[inline(always)]
    fn each(self, other: Self, function: impl Fn(__m256, __m256) -> __m256) -> Self {
        Avx2([function(self.0[0], other.0[0]), function(self.0[1], other.0[1])])
    }
}

/// The first halves of both, and the second halves.
#[inline(always)]
fn halves(a: __m256, b: __m256) -> (__m256, __m256) {
    // SAFETY: the machine has AVX2.
    unsafe { (_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b)) }
}

/// Squares of four by four within the halves of registers become columns.
#[inline(always)]
fn squares([a, b, c, d]: [__m256; 4]) -> [__m256; 4] {
    // SAFETY: the machine has AVX2.
    unsafe {
        let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
        [
            _mm256_shuffle_ps::<0b01_00_01_00>(ab_low, cd_low),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab_low, cd_low),
            _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
        ]
    }
}

/// Eight rows of eight, one half of each vector, become columns.
#[inline(always)]
fn transpose8(rows: &[Avx2; LANES], top: usize, half: usize) -> [__m256; 8] {
    let row = |i: usize| rows[top + i].0[half];
    let upper = squares([row(0), row(1), row(2), row(3)]);
    let lower = squares([row(4), row(5), row(6), row(7)]);
    let mut columns = [upper[0]; 8];
    for i in 0..4 {
        (columns[i], columns[4 + i]) = halves(upper[i], lower[i]);
    }
    columns
}

impl Vector for Avx2 {
    const MANY: bool = false;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: the machine has AVX2.
        Avx2([unsafe { _mm256_set1_ps(value) }; 2])
    }

    #[inline(always)]
    fn load(from: &Numbers) -> Self {
        // SAFETY: the machine has AVX2, and there are sixteen numbers.
        Avx2(from_fn(|half| unsafe { _mm256_loadu_ps(from[8 * half..].as_ptr()) }))
    }

    #[inline(always)]
    fn store(self, to: &mut Numbers) {
        for half in 0..2 {
            // SAFETY: the machine has AVX2, and there is room for sixteen numbers.
            unsafe { _mm256_storeu_ps(to[8 * half..].as_mut_ptr(), self.0[half]) }
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: the machine has AVX2.
        self.each(other, |a, b| unsafe { _mm256_add_ps(a, b) })
    }

    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        // SAFETY: the machine has AVX2.
        self.each(other, |a, b| unsafe { _mm256_sub_ps(a, b) })
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        // SAFETY: the machine has AVX2.
        self.each(other, |a, b| unsafe { _mm256_mul_ps(a, b) })
    }

    #[inline(always)]
    fn multiply_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: the machine has FMA.
        Avx2(from_fn(|h| unsafe { _mm256_fmadd_ps(self.0[h], factor.0[h], addend.0[h]) }))
    }

    #[inline(always)]
    fn subtract_product(self, factor: Self, addend: Self) -> Self {
        // SAFETY: the machine has FMA.
        Avx2(from_fn(|h| unsafe { _mm256_fnmadd_ps(self.0[h], factor.0[h], addend.0[h]) }))
    }

    #[inline(always)]
    fn interleave(first: Self, second: Self) -> (Self, Self) {
        let of = |a, b| {
            // SAFETY: the machine has AVX2.
            let (low, high) = unsafe { (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)) };
            let (low, high) = halves(low, high);
            Avx2([low, high])
        };
        (of(first.0[0], second.0[0]), of(first.0[1], second.0[1]))
    }

    #[inline(always)]
    fn separate(low: Self, high: Self) -> (Self, Self) {
        let of = |pair: Self| {
            let (a, b) = halves(pair.0[0], pair.0[1]);
            // SAFETY: the machine has AVX2.
            unsafe {
                (_mm256_shuffle_ps::<0b10_00_10_00>(a, b), _mm256_shuffle_ps::<0b11_01_11_01>(a, b))
            }
        };
        let ((even_low, odd_low), (even_high, odd_high)) = (of(low), of(high));
        (Avx2([even_low, even_high]), Avx2([odd_low, odd_high]))
    }

    #[inline(always)]
    fn transpose(rows: &mut [Self; LANES]) {
        let (a, b) = (transpose8(rows, 0, 0), transpose8(rows, 0, 1));
        let (c, d) = (transpose8(rows, 8, 0), transpose8(rows, 8, 1));
        for i in 0..8 {
            rows[i] = Avx2([a[i], c[i]]);
            rows[8 + i] = Avx2([b[i], d[i]]);
        }
    }
}
