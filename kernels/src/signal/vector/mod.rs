//! Sixteen numbers at a time, in whatever registers the machine has.
//!
//! A loop over these is compiled for each set of instructions and does not depend on what the compiler manages to
//! vectorise: transforms and products keep dozens of them in registers. [`best`] runs the right version.

#![allow(unsafe_code)] // the processor's own instructions, where it is known that they are there

#[cfg(target_arch = "x86_64")]
use crate::shared::simd::{Level, level};

#[cfg(target_arch = "x86_64")]
mod x86;

/// Numbers of a vector.
pub(super) const LANES: usize = 16;

/// As many numbers in memory.
pub(super) type Numbers = [f32; LANES];

/// Numbers that lie in one line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) Numbers);

impl Line {
    pub(super) const ZERO: Self = Line([0.0; LANES]);
}

/// Sixteen numbers in registers.
pub(super) trait Vector: Copy {
    /// Whether two dozen of them fit into registers at once.
    const MANY: bool;
    /// The same number sixteen times.
    fn splat(value: f32) -> Self;
    /// What is in memory.
    fn load(from: &Numbers) -> Self;
    /// Writes to memory.
    fn store(self, to: &mut Numbers);
    /// self + other
    fn add(self, other: Self) -> Self;
    /// self − other
    fn subtract(self, other: Self) -> Self;
    /// self · other
    fn multiply(self, other: Self) -> Self;
    /// self · factor + addend, rounded once where the machine can.
    fn multiply_add(self, factor: Self, addend: Self) -> Self;
    /// addend − self · factor, rounded once where the machine can.
    fn subtract_product(self, factor: Self, addend: Self) -> Self;
    /// The first and the second half of first₀, second₀, first₁, second₁ …
    fn interleave(first: Self, second: Self) -> (Self, Self);
    /// What was interleaved: all numbers at even places, and all at odd ones.
    fn separate(low: Self, high: Self) -> (Self, Self);
    /// Rows become columns.
    fn transpose(rows: &mut [Self; LANES]);
}

/// Something to be computed with vectors; `run` must be `#[inline(always)]`, and so must all that it calls in its loops.
pub(super) trait Task {
    /// What it gives.
    type Output;
    /// Computes it.
    fn run<V: Vector>(self) -> Self::Output;
}

/// Runs a task with the best vectors of this machine.
///
/// A task is a type of its own and no function, for a function that is passed on is called by a shim, which the compiler
/// leaves without the instructions when it is long.
#[inline]
pub(super) fn best<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the machine has these instructions.
        Level::Avx512 => return unsafe { x86::with_avx512(task) },
        // SAFETY: the machine has these instructions.
        Level::Avx2 => return unsafe { x86::with_avx2(task) },
        Level::Baseline => {}
    }
    task.run::<Portable>()
}

/// For machines without vectors of their own here: the compiler makes of it what it can.
#[derive(Clone, Copy)]
pub(super) struct Portable(Numbers);

impl Portable {
    #[inline(always)]
    fn map(self, other: Self, function: impl Fn(f32, f32) -> f32) -> Self {
        Portable(std::array::from_fn(|lane| function(self.0[lane], other.0[lane])))
    }
}

impl Vector for Portable {
    const MANY: bool = false;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Portable([value; LANES])
    }

    #[inline(always)]
    fn load(from: &Numbers) -> Self {
        Portable(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut Numbers) {
        *to = self.0;
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.map(other, |a, b| a + b)
    }

    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        self.map(other, |a, b| a - b)
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        self.map(other, |a, b| a * b)
    }

    #[inline(always)]
    fn multiply_add(self, factor: Self, addend: Self) -> Self {
        self.multiply(factor).add(addend)
    }

    #[inline(always)]
    fn subtract_product(self, factor: Self, addend: Self) -> Self {
        addend.subtract(self.multiply(factor))
    }

    #[inline(always)]
    fn interleave(first: Self, second: Self) -> (Self, Self) {
        let at = |i: usize| if i.is_multiple_of(2) { first.0[i / 2] } else { second.0[i / 2] };
        (Portable(std::array::from_fn(at)), Portable(std::array::from_fn(|lane| at(LANES + lane))))
    }

    #[inline(always)]
    fn separate(low: Self, high: Self) -> (Self, Self) {
        let at = |i: usize| if i < LANES { low.0[i] } else { high.0[i - LANES] };
        (
            Portable(std::array::from_fn(|lane| at(2 * lane))),
            Portable(std::array::from_fn(|lane| at(2 * lane + 1))),
        )
    }

    #[inline(always)]
    fn transpose(rows: &mut [Self; LANES]) {
        let copy = *rows;
        for (column, row) in rows.iter_mut().enumerate() {
            row.0 = std::array::from_fn(|lane| copy[lane].0[column]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that moves numbers about: interleaved, separated again, and transposed.
    #[derive(Clone, Copy)]
    struct Moved<'a>(&'a [Numbers; LANES]);

    impl Task for Moved<'_> {
        type Output = Vec<Numbers>;

        #[inline(always)]
        fn run<V: Vector>(self) -> Vec<Numbers> {
            let mut vectors: [V; LANES] = std::array::from_fn(|i| V::load(&self.0[i]));
            let (low, high) = V::interleave(vectors[0], vectors[1]);
            let (first, second) = V::separate(low, high);
            V::transpose(&mut vectors);
            let mut all = Vec::new();
            for vector in [low, high, first, second].into_iter().chain(vectors) {
                let mut to = [0.0; LANES];
                vector.store(&mut to);
                all.push(to);
            }
            all
        }
    }

    #[test]
    fn registers_of_every_width_move_numbers_alike() {
        let rows: [Numbers; LANES] =
            std::array::from_fn(|i| std::array::from_fn(|j| (16 * i + j) as f32));
        let moved = Moved(&rows);
        let expected = moved.run::<Portable>();
        assert_eq!(expected[0][..4], [0.0, 16.0, 1.0, 17.0]);
        assert_eq!((expected[2], expected[3]), (rows[0], rows[1]));
        assert!((0..16).all(|i| (0..16).all(|j| expected[4 + i][j] == rows[j][i])));
        assert_eq!(best(moved), expected);
        #[cfg(target_arch = "x86_64")]
        if level() >= Level::Avx2 {
            // SAFETY: the machine has these instructions.
            assert_eq!(unsafe { x86::with_avx2(moved) }, expected);
        }
    }
}
