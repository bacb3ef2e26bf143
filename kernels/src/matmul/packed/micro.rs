//! The innermost loops of the engine: a tile of the result that stays in registers while operands stream by.
//!
//! A tile has as many rows as registers allow and two vectors of columns. Every step of depth loads two vectors of b and, for
//! each row, one element of a, which is multiplied with both: 28 multiplications for 16 loads with AVX-512. The body is
//! written once over a [`Vector`] and compiled for every number of rows, so that edges of the result cost no more than
//! they are worth.

#![allow(unsafe_code)] // vector instructions, and threads that write rectangles of one matrix

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m512};
use std::marker::PhantomData;

use crate::shared::area;

/// Steps of depth that are packed together: a panel of b and a strip of a fit into the first-level cache.
pub(super) const DEPTH: usize = 256;
/// Elements from one packed row of a to the next. Not a power of two, or all rows would lie in the same few sets of the
/// cache; and a constant, so that one pointer is enough for all rows.
pub(super) const DISTANCE: usize = DEPTH + 16;

/// Steps of depth, and columns, of a transposed b that are turned over together.
pub(super) const TURNED: usize = 16;

/// A piece of a transposed b.
pub(super) type Square = [[f32; TURNED]; TURNED];

/// What a tile is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Zero: this is the first slab of depth.
    Zero,
    /// What earlier slabs of depth left there.
    Sum,
}

/// A row-major result that several threads write, each its own rectangles.
pub(super) struct Target<'c> {
    first: *mut f32,
    rows: usize,
    columns: usize,
    lifetime: PhantomData<&'c mut [f32]>,
}

// SAFETY: it is a unique borrow of floats, and who writes through it promises to write apart from others.
unsafe impl Sync for Target<'_> {}

impl<'c> Target<'c> {
    pub(super) fn new(c: &'c mut [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(c.len(), area(rows, columns), "c is not {rows} × {columns}");
        Target { first: c.as_mut_ptr(), rows, columns, lifetime: PhantomData }
    }

    fn contains(&self, Rectangle { row, rows, column, columns }: Rectangle) -> bool {
        let fits = |first: usize, count: usize, all: usize| first <= all && count <= all - first;
        fits(row, rows, self.rows) && fits(column, columns, self.columns)
    }
}

/// A rectangle of the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle {
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) column: usize,
    pub(super) columns: usize,
}

/// Multiplies packed operands: `a` has `rows` rows at a distance of [`DISTANCE`], `b` has panels of `K::COLUMNS` columns.
///
/// # Safety
///
/// Nobody else may use the rectangle of the target meanwhile, and the machine must have the instructions of `K`.
pub(super) unsafe fn block<K: Micro>(
    a: &[f32],
    b: &[f32],
    depth: usize,
    start: Start,
    target: &Target<'_>,
    part: Rectangle,
) {
    let Rectangle { row, rows, column, columns } = part;
    if rows == 0 || columns == 0 {
        return;
    }
    let panels = columns.div_ceil(K::COLUMNS);
    assert!(depth <= DEPTH && a.len() >= rows * DISTANCE && b.len() >= panels * DEPTH * K::COLUMNS);
    assert!(target.contains(part));
    // Strips of nearly the same number of rows: sixteen are eight and eight rather than fourteen and two.
    let strip = rows.div_ceil(rows.div_ceil(K::ROWS));
    for panel in 0..panels {
        let b = b[panel * DEPTH * K::COLUMNS..].as_ptr();
        let across = panel * K::COLUMNS;
        for down in (0..rows).step_by(strip) {
            let tile = Tile {
                depth,
                start,
                rows: strip.min(rows - down),
                columns: K::COLUMNS.min(columns - across),
                stride: target.columns,
            };
            // SAFETY: the rectangle is inside of the target and ours alone; operands are as long as was checked above.
            unsafe {
                let c = target.first.add((row + down) * target.columns + column + across);
                K::tile(tile, a[down * DISTANCE..].as_ptr(), b, c);
            }
        }
    }
}

/// One tile of the result: at least 1 × 1, at most `Micro::ROWS` by `Micro::COLUMNS`.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    depth: usize,
    start: Start,
    rows: usize,
    columns: usize,
    /// Elements from one row of the result to the next.
    stride: usize,
}

/// A set of instructions with the shape of its tile.
pub(super) trait Micro {
    const ROWS: usize;
    const COLUMNS: usize;

    /// # Safety
    ///
    /// The machine must have the instructions, and the tile must be as large as [`Tile`] says. `a` points to as many rows at a
    /// distance of [`DISTANCE`] as it has, `b` to rows of `COLUMNS` elements, both `depth` long; and `c` to its first element: all of
    /// them, row by row at a distance of `stride`, are in one allocation, and nobody else uses them.
    unsafe fn tile(tile: Tile, a: *const f32, b: *const f32, c: *mut f32);

    /// Turns a square over.
    ///
    /// # Safety
    ///
    /// The machine must have the instructions.
    unsafe fn turn(square: &mut Square);
}

/// A vector register of floats.
///
/// # Safety
///
/// All functions want the machine to have its instructions; pointers point to as many elements as are moved, which are fewer than
/// `LANES` where they are counted.
trait Vector: Copy {
    const LANES: usize;
    /// Says that two vectors will be used soon.
    fn expect(at: *const f32);
    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn load_first(from: *const f32, count: usize) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn store_first(self, to: *mut f32, count: usize);
    unsafe fn add(self, other: Self) -> Self;
    /// self + a·b
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
}

/// # Safety
///
/// As for [`Micro::tile`], with the instructions of `V`, and for a tile of `ROWS` rows that needs `VECTORS` vectors for a row.
#[inline(always)]
unsafe fn tile_body<V: Vector, const ROWS: usize, const VECTORS: usize>(
    tile: Tile,
    a: *const f32,
    b: *const f32,
    c: *mut f32,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let mut sums = [[V::splat(0.0); VECTORS]; ROWS];
        let (mut a, mut b, mut c) = (a, b, c);
        for i in 0..ROWS {
            // By the time that the sums are complete, the tile of c is at hand.
            V::expect(c.wrapping_add(i.wrapping_mul(tile.stride)));
        }
        for _ in 0..tile.depth {
            let mut from_b = [V::splat(0.0); VECTORS];
            for (v, from_b) in from_b.iter_mut().enumerate() {
                *from_b = V::load(b.add(v * V::LANES));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let from_a = V::splat(*a.add(i * DISTANCE));
                for (sum, from_b) in sums.iter_mut().zip(from_b) {
                    *sum = sum.add_product(from_a, from_b);
                }
            }
            (a, b) = (a.add(1), b.add(2 * V::LANES));
        }
        let last = tile.columns - (VECTORS - 1) * V::LANES;
        for sums in &sums {
            for (v, sum) in sums.iter().enumerate() {
                let to = c.add(v * V::LANES);
                let is_whole = v + 1 < VECTORS || last == V::LANES;
                match (tile.start, is_whole) {
                    (Start::Zero, true) => sum.store(to),
                    (Start::Sum, true) => sum.add(V::load(to)).store(to),
                    (Start::Zero, false) => sum.store_first(to, last),
                    (Start::Sum, false) => sum.add(V::load_first(to, last)).store_first(to, last),
                }
            }
            // After the last row, this is beyond the end of the result.
            c = c.wrapping_add(tile.stride);
        }
    }
}

/// A set of instructions: its vector, the most rows of its tile, and a compiled body for each number of them.
macro_rules! micro {
    ($(#[$documentation:meta])* $name:ident, $vector:ty, rows = $rows:literal, [$($count:literal)*], turned by $turn:path $(, $feature:meta)?) => {
        $(#[$documentation])*
        pub(super) struct $name;

        impl Micro for $name {
            const ROWS: usize = $rows;
            const COLUMNS: usize = 2 * <$vector>::LANES;

            unsafe fn tile(tile: Tile, a: *const f32, b: *const f32, c: *mut f32) {
                $(#[$feature])?
                unsafe fn compiled<const ROWS: usize, const VECTORS: usize>(
                    tile: Tile,
                    a: *const f32,
                    b: *const f32,
                    c: *mut f32,
                ) {
                    // SAFETY: as the caller promises.
                    unsafe { tile_body::<$vector, ROWS, VECTORS>(tile, a, b, c) }
                }
                // SAFETY: as the caller promises.
                unsafe {
                    match (tile.rows, tile.columns > <$vector>::LANES) {
                        $(
                            ($count, true) => compiled::<$count, 2>(tile, a, b, c),
                            ($count, false) => compiled::<$count, 1>(tile, a, b, c),
                        )*
                        _ => {}
                    }
                }
            }

            #[inline(always)]
            unsafe fn turn(square: &mut Square) {
                // SAFETY: as the caller promises.
                unsafe { $turn(square) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
micro! {
    /// 28 sums, two vectors of b and one of a in 32 registers.
    Avx512, __m512, rows = 14, [1 2 3 4 5 6 7 8 9 10 11 12 13 14], turned by x86::turn, target_feature(enable = "avx512f")
}

#[cfg(target_arch = "x86_64")]
micro! {
    /// Twelve sums, two vectors of b and one of a in 16 registers.
    Avx2, __m256, rows = 6, [1 2 3 4 5 6], turned by turn, target_feature(enable = "avx2,fma")
}

micro! {
    /// What the compiler makes of arrays.
    Portable, [f32; 4], rows = 4, [1 2 3 4], turned by turn
}

/// Element by element.
///
/// # Safety
///
/// None is needed; it is unsafe because those with instructions of their own are.
#[inline(always)]
unsafe fn turn(square: &mut Square) {
    let from = *square;
    for (i, line) in square.iter_mut().enumerate() {
        line.iter_mut().zip(&from).for_each(|(to, from)| *to = from[i]);
    }
}

impl Vector for [f32; 4] {
    const LANES: usize = 4;

    #[inline(always)]
    fn expect(_: *const f32) {}

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        [value; 4]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: as the caller promises; an array of floats is aligned as a float.
        unsafe { *from.cast() }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        // SAFETY: as the caller promises.
        std::array::from_fn(|i| if i < count { unsafe { *from.add(i) } } else { 0.0 })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as the caller promises; an array of floats is aligned as a float.
        unsafe { *to.cast() = self }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        for (i, value) in self.into_iter().take(count).enumerate() {
            // SAFETY: as the caller promises.
            unsafe { *to.add(i) = value }
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] + other[i])
    }

    /// In two roundings: one would be a call of a function where the processor has no instruction for it.
    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        std::array::from_fn(|i| self[i] + a[i] * b[i])
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Square, TURNED, Vector};

    /// The vector functions that differ by the names of instructions alone.
    ///
    /// # Safety
    ///
    /// As for [`Vector`].
    macro_rules! instructions {
        ($splat:ident, $load:ident, $store:ident, $add:ident, $add_product:ident) => {
            #[inline(always)]
            fn expect(at: *const f32) {
                // SAFETY: every processor of the architecture has it, and nothing is read.
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(at.cast());
                    _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(Self::LANES).cast());
                }
            }

            #[inline(always)]
            unsafe fn splat(value: f32) -> Self {
                // SAFETY: as the caller promises.
                unsafe { $splat(value) }
            }

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: as the caller promises.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: as the caller promises.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: as the caller promises.
                unsafe { $add(self, other) }
            }

            #[inline(always)]
            unsafe fn add_product(self, a: Self, b: Self) -> Self {
                // SAFETY: as the caller promises.
                unsafe { $add_product(a, b, self) }
            }
        };
    }

    impl Vector for __m512 {
        const LANES: usize = 16;

        instructions! {_mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps}

        #[inline(always)]
        unsafe fn load_first(from: *const f32, count: usize) -> Self {
            // SAFETY: as the caller promises.
            unsafe { _mm512_maskz_loadu_ps((1 << count) - 1, from) }
        }

        #[inline(always)]
        unsafe fn store_first(self, to: *mut f32, count: usize) {
            // SAFETY: as the caller promises.
            unsafe { _mm512_mask_storeu_ps(to, (1 << count) - 1, self) }
        }
    }

    impl Vector for __m256 {
        const LANES: usize = 8;

        instructions! {_mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_fmadd_ps}

        #[inline(always)]
        unsafe fn load_first(from: *const f32, count: usize) -> Self {
            // SAFETY: as the caller promises.
            unsafe { _mm256_maskload_ps(from, first(count)) }
        }

        #[inline(always)]
        unsafe fn store_first(self, to: *mut f32, count: usize) {
            // SAFETY: as the caller promises.
            unsafe { _mm256_maskstore_ps(to, first(count), self) }
        }
    }

    /// A mask of the first lanes.
    ///
    /// # Safety
    ///
    /// The machine must have AVX2.
    #[inline(always)]
    unsafe fn first(count: usize) -> __m256i {
        // SAFETY: as the caller promises: the machine has AVX2.
        unsafe {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lanes)
        }
    }

    /// Swaps the upper right and the lower left of every block of 16, 8, 4 and 2 lines: then the square is turned over.
    ///
    /// # Safety
    ///
    /// The machine must have AVX-512.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn turn(square: &mut Square) {
        let mut lines = [_mm512_setzero_ps(); TURNED];
        for (line, square) in lines.iter_mut().zip(&*square) {
            // SAFETY: every line is as long as a vector.
            *line = unsafe { _mm512_loadu_ps(square.as_ptr()) };
        }
        // SAFETY: as the caller promises.
        unsafe {
            swap::<8>(&mut lines);
            swap::<4>(&mut lines);
            swap::<2>(&mut lines);
            swap::<1>(&mut lines);
        }
        for (line, square) in lines.iter().zip(square) {
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(square.as_mut_ptr(), *line) };
        }
    }

    /// One step of turning over, for blocks of 2·STEP by 2·STEP.
    ///
    /// # Safety
    ///
    /// The machine must have AVX-512.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn swap<const STEP: usize>(lines: &mut [__m512; TURNED]) {
        // Lanes of the upper line are 0 to 15, those of the lower one 16 to 31.
        let upper = lanes(|l| if l & STEP == 0 { l } else { TURNED + l - STEP });
        let lower = lanes(|l| if l & STEP == 0 { l + STEP } else { TURNED + l });
        for block in lines.chunks_exact_mut(2 * STEP) {
            let (above, below) = block.split_at_mut(STEP);
            for (above, below) in above.iter_mut().zip(below) {
                let (first, second) = (*above, *below);
                *above = _mm512_permutex2var_ps(first, upper, second);
                *below = _mm512_permutex2var_ps(first, lower, second);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn lanes(lane: impl Fn(usize) -> usize) -> __m512i {
        let lanes: [i32; TURNED] = std::array::from_fn(|l| lane(l) as i32);
        // SAFETY: there are as many as a vector has.
        unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
    }
}
