//! A chain of dependent operations: bound by their latency, and by nothing else.

use std::hint::black_box;

use rayon::prelude::*;

/// Rounds of the smaller task: about 0.2 ms, and 0.5 % of it is a whole number.
pub const ROUNDS: u64 = 100_000;

/// The multiplier of Knuth's MMIX generator; odd, so that no information is lost on the way.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// Keeps the chain away from zero, where it would stay.
const MASK: u64 = 0x9e37_79b9_7f4a_7c15;

/// Brings the well-mixed high bits down.
const TURN: u32 = 17;

/// Each round waits for the one before.
///
/// `WHICH` makes functions of their own, [`crate::ORIGINAL`] and [`crate::COPY`]. They differ in one byte, which is
/// enough to keep the compiler from merging them.
#[inline(never)]
pub fn chain<const WHICH: u8>(rounds: u64) -> u64 {
    black_box(WHICH);
    (0..rounds).fold(black_box(1), |x: u64, _| x.wrapping_mul(MULTIPLIER).rotate_left(TURN) ^ MASK)
}

/// As many rounds in parts of equal length, each a chain of its own, for the threads of the current pool.
#[inline(never)]
pub fn chain_in_parts(rounds: u64, parts: usize) -> u64 {
    let edge = |part: usize| rounds * part as u64 / parts as u64;
    let part = |part: usize| chain::<{ crate::ORIGINAL }>(edge(part + 1) - edge(part));
    (0..parts).into_par_iter().with_max_len(1).map(part).reduce(|| 0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{COPY, ORIGINAL};

    #[test]
    fn copies_have_addresses_of_their_own() {
        let original: fn(u64) -> u64 = black_box(chain::<ORIGINAL>);
        let copy: fn(u64) -> u64 = black_box(chain::<COPY>);
        assert_ne!(original as usize, copy as usize);
    }

    #[test]
    fn copies_compute_the_same_and_every_round_counts() {
        assert_eq!(chain::<ORIGINAL>(1000), chain::<COPY>(1000));
        assert_ne!(chain::<ORIGINAL>(1000), chain::<ORIGINAL>(1001));
    }

    #[test]
    fn parts_have_as_many_rounds_as_the_whole() {
        let chains = |rounds: &[u64]| {
            rounds.iter().map(|rounds| chain::<ORIGINAL>(*rounds)).fold(0, u64::wrapping_add)
        };
        assert_eq!(chain_in_parts(1000, 4), chains(&[250; 4]));
        assert_eq!(chain_in_parts(1001, 2), chains(&[500, 501]));
    }
}
