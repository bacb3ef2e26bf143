//! Random numbers that a seed repeats: SplitMix64 (Steele, Lea and Flood 2014).

/// A generator.
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniformly distributed between zero and one, both excluded.
    pub fn unit(&mut self) -> f64 {
        // 53 bits, as many as fit; the half keeps logarithms away from zero.
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Exponentially distributed.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }

    /// In random order (Fisher and Yates); the remainder's bias is far below what could be seen.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, (self.bits() % (last as u64 + 1)) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_numbers_have_their_mean() {
        let mut random = Random::new(1);
        let mean = (0..10_000).map(|_| random.exponential(0.1)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.1).abs() < 0.005, "{mean}");
    }

    #[test]
    fn shuffling_loses_nothing_and_moves_something() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(2).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
