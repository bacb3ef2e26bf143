//! Suites whose truth is known: what every row does is drawn from the numbers of its suite, kernel, cell and variant.
//!
//! The subject takes its amounts from here, and so does the judge. The same numbers always give the same draw.

use crate::random::Random;

/// Variants of a cell beside its base, which is number 0.
pub const VARIANTS: u64 = 4;

/// Sizes of effects, in percent, each as likely as the others.
pub const EFFECTS: [i64; 3] = [2, 5, 20];

/// The share of variants that do exactly as much as their base.
const EQUAL: f64 = 0.4;

/// Elements of the data of a cell: 16 to 64 MiB of `f32`.
const ELEMENTS: (f64, f64) = ((4 << 20) as f64, (16 << 20) as f64);

/// Rounds of a base that computes: calls of 5 to 50 ms where a round takes 1.7 ns.
const ROUNDS: (f64, f64) = (3e6, 30e6);

/// Chunks of a base that reads memory: calls of 5 to 50 ms where a chunk of 4 KiB takes 0.4 µs. Of a ring that
/// fits into the part of the last cache that a core gets, it takes a third of that.
const CHUNKS: (f64, f64) = (12e3, 120e3);

/// Amounts are multiples of this, so that every effect is a whole number of rounds or chunks.
const HUNDRED: u64 = 100;

/// Sizes between which crossovers lie.
const CROSSOVERS: (f64, f64) = (256.0, 65_536.0);

/// A kernel whose variants differ from their base by drawn effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// A chain of dependent operations.
    Arithmetic,
    /// A sweep over a ring in memory.
    Memory,
    /// Chains on all threads.
    ParallelArithmetic,
    /// A sweep whose parts are read by all threads.
    ParallelMemory,
}

/// What is drawn of a cell.
#[derive(Clone, Copy)]
enum Quantity {
    Amount,
    Elements,
    Crossover,
    Effect { variant: u64 },
}

/// One cell: a base and its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The kernel.
    pub kernel: Kernel,
    /// The number of its suite.
    pub suite: u64,
    /// Its number among the cells of its kernel.
    pub id: u64,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Kernel; 4] =
        [Kernel::Arithmetic, Kernel::Memory, Kernel::ParallelArithmetic, Kernel::ParallelMemory];

    /// The name of its function.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Arithmetic => "arithmetic",
            Kernel::Memory => "memory",
            Kernel::ParallelArithmetic => "parallel_arithmetic",
            Kernel::ParallelMemory => "parallel_memory",
        }
    }

    /// Whether it runs on all threads.
    pub fn is_parallel(self) -> bool {
        matches!(self, Kernel::ParallelArithmetic | Kernel::ParallelMemory)
    }
}

impl Cell {
    /// Elements of its data.
    pub fn elements(self) -> usize {
        log_uniform(&mut self.draw(Quantity::Elements), ELEMENTS) as usize
    }

    /// Rounds or chunks of a variant, for every thread that takes part.
    pub fn amount(self, variant: u64) -> u64 {
        let range = match self.kernel {
            Kernel::Arithmetic | Kernel::ParallelArithmetic => ROUNDS,
            Kernel::Memory | Kernel::ParallelMemory => CHUNKS,
        };
        let hundredth = log_uniform(&mut self.draw(Quantity::Amount), range) as u64 / HUNDRED;
        hundredth * HUNDRED.saturating_add_signed(self.effect(variant))
    }

    /// How much more than the base a variant does, in percent; nothing for the base itself.
    pub fn effect(self, variant: u64) -> i64 {
        let mut random = self.draw(Quantity::Effect { variant });
        let place = (random.unit() - EQUAL) / (1.0 - EQUAL);
        if variant == 0 || place < 0.0 {
            return 0;
        }
        let size = EFFECTS[(place * EFFECTS.len() as f64) as usize];
        if random.unit() < 0.5 { -size } else { size }
    }

    fn draw(self, quantity: Quantity) -> Random {
        draw(self.suite, self.kernel as u64, self.id, quantity)
    }
}

/// The size at which both models of `affine` do the same.
pub fn crossover(suite: u64, id: u64) -> usize {
    // The number after those of the other kernels.
    let kernel = Kernel::ALL.len() as u64;
    log_uniform(&mut draw(suite, kernel, id, Quantity::Crossover), CROSSOVERS).round() as usize
}

/// Rounds of the base of `affine`: b·n.
#[inline]
pub fn affine_base(n: usize) -> u64 {
    n as u64 / 4
}

/// Rounds of its variant, a + b·n / 2: as many as those of the base where n is the crossover.
#[inline]
pub fn affine_variant(n: usize, crossover: usize) -> u64 {
    (n + crossover) as u64 / 8
}

/// A generator that belongs to one quantity of one cell.
fn draw(suite: u64, kernel: u64, id: u64, quantity: Quantity) -> Random {
    let quantity = match quantity {
        Quantity::Amount => 0,
        Quantity::Elements => 1,
        Quantity::Crossover => 2,
        Quantity::Effect { variant } => 3 + variant,
    };
    let mix = |state: u64, word: u64| Random::new(state ^ word).bits();
    Random::new([suite, kernel, id, quantity].into_iter().fold(0, mix))
}

fn log_uniform(random: &mut Random, (low, high): (f64, f64)) -> f64 {
    low * (high / low).powf(random.unit())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn cells() -> impl Iterator<Item = Cell> {
        let of_kernel =
            |kernel| (1..=32).flat_map(move |id| (1..=20).map(move |suite| (kernel, id, suite)));
        let cells = Kernel::ALL.into_iter().flat_map(of_kernel);
        cells.map(|(kernel, id, suite)| Cell { kernel, suite, id })
    }

    #[test]
    fn effects_are_exact_and_as_frequent_as_they_should_be() {
        let mut counts: BTreeMap<i64, u32> = BTreeMap::new();
        for cell in cells() {
            assert_eq!(cell.effect(0), 0);
            for variant in 1..=VARIANTS {
                let (effect, base) = (cell.effect(variant), cell.amount(0) as i64);
                assert_eq!(cell.amount(variant) as i64 * 100, base * (100 + effect), "{cell:?}");
                *counts.entry(effect).or_default() += 1;
            }
        }
        let all = f64::from(counts.values().sum::<u32>());
        for (effect, share) in
            [(-20, 0.1), (-5, 0.1), (-2, 0.1), (0, 0.4), (2, 0.1), (5, 0.1), (20, 0.1)]
        {
            let found = f64::from(counts.remove(&effect).unwrap_or(0)) / all;
            assert!((found - share).abs() < 0.015, "{effect} %: {found}");
        }
        assert_eq!(counts, BTreeMap::new());
    }

    #[test]
    fn amounts_and_data_fill_their_ranges_evenly_in_octaves() {
        for kernel in Kernel::ALL {
            let of: Vec<Cell> = cells().filter(|cell| cell.kernel == kernel).collect();
            let octaves = |value: &dyn Fn(&Cell) -> f64, low: f64| {
                of.iter().map(|cell| (value(cell) / low).log2()).sum::<f64>() / of.len() as f64
            };
            let smallest = if kernel.name().ends_with("arithmetic") { ROUNDS.0 } else { CHUNKS.0 };
            let amount = octaves(&|cell| cell.amount(0) as f64, smallest);
            assert!((amount - 10f64.log2() / 2.0).abs() < 0.15, "{kernel:?}: {amount}");
            let elements = octaves(&|cell| cell.elements() as f64, ELEMENTS.0);
            assert!((elements - 1.0).abs() < 0.1, "{kernel:?}: {elements}");
            let bytes = of.iter().map(|cell| 4 * cell.elements());
            assert!(bytes.into_iter().all(|bytes| (16 << 20..=64 << 20).contains(&bytes)));
        }
    }

    #[test]
    fn both_models_do_the_same_at_the_crossover_alone() {
        for at in (1..=100).map(|suite| crossover(suite, 1 + suite % 8)) {
            assert!((256..=65_536).contains(&at), "{at}");
            assert_eq!(affine_base(at), affine_variant(at, at));
            assert!(affine_base(at / 2) < affine_variant(at / 2, at));
            assert!(affine_base(2 * at) > affine_variant(2 * at, at));
        }
    }
}
