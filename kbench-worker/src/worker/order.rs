//! The order of rows within a block, drawn from the run's seed.

use crate::value::SplitMix;

/// A generator of mirrored random orders: a permutation followed by its reverse.
///
/// Mirroring cancels a linear drift for every pair of rows; randomness makes first and second exchangeable.
#[derive(Clone, Debug)]
pub struct Order {
    generator: SplitMix,
}

impl Order {
    /// Orders of one launch of one run.
    pub fn new(seed: u64, launch: u64) -> Self {
        Order { generator: SplitMix(seed ^ launch.wrapping_mul(0xa076_1d64_78bd_642f)) }
    }

    /// `n` rows forth and back: for two rows ABBA or BAAB.
    pub fn mirrored(&mut self, n: usize) -> Vec<usize> {
        let mut order = self.permutation(n);
        order.extend_from_within(..);
        order[n..].reverse();
        order
    }

    /// True with a probability.
    pub(super) fn is_true(&mut self, probability: f64) -> bool {
        self.generator.unit() < probability
    }

    /// A random permutation of `0..n` (Fisher and Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.generator.below(i as u64 + 1) as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_visits_every_row_twice_in_mirrored_order() {
        let mut order = Order::new(1, 0);
        for _ in 0..100 {
            let visits = order.mirrored(3);
            let mut reversed = visits.clone();
            reversed.reverse();
            assert_eq!(visits, reversed);
            assert!((0..3).all(|row| visits.iter().filter(|v| **v == row).count() == 2));
        }
    }

    #[test]
    fn every_row_comes_first_equally_often() {
        let mut order = Order::new(7, 0);
        let first = (0..4000).filter(|_| order.mirrored(2)[0] == 0).count();
        assert!((1850..2150).contains(&first), "{first} of 4000");
    }

    #[test]
    fn a_seed_gives_one_order_and_launches_differ() {
        let orders = |seed, launch| {
            let mut order = Order::new(seed, launch);
            (0..8).flat_map(|_| order.permutation(5)).collect::<Vec<_>>()
        };
        assert_eq!(orders(3, 0), orders(3, 0));
        assert_ne!(orders(3, 0), orders(3, 1));
    }
}
