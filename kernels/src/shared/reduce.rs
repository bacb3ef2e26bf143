//! Reductions of a row of elements to one number.
//!
//! A row is reduced in [`LANES`] partial results, which the compiler keeps in vector registers, and these pairwise: the
//! additions do not wait for one another, and the error of a sum grows with `dim / LANES` instead of `dim`.

use super::float::BUFFER;
use super::{BLOCK, Float};

/// Partial results: enough vectors of any width to hide how long an addition takes.
pub const LANES: usize = 64;

/// Σ `term(x)`.
#[inline(always)]
pub fn sum<T: Float>(row: &[T], term: impl Fn(f32) -> f32) -> f32 {
    reduce(row, 0.0, |sum, x| sum + term(x), |a, b| a + b)
}

/// The largest element, or −∞ if there is none. A NaN is passed over.
#[inline(always)]
pub fn max<T: Float>(row: &[T]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    reduce(row, f32::NEG_INFINITY, larger, larger)
}

/// Takes every element into a partial result by `step`, and joins these by `join`.
#[inline(always)]
fn reduce<T: Float>(
    row: &[T],
    start: f32,
    step: impl Fn(f32, f32) -> f32,
    join: impl Fn(f32, f32) -> f32,
) -> f32 {
    let mut lanes = Lanes::new(start);
    let mut buffer = BUFFER;
    for block in row.chunks(BLOCK) {
        lanes.take(T::read(block, &mut buffer), &step);
    }
    lanes.join(join)
}

/// Partial results of a reduction that is made block by block.
pub struct Lanes([f32; LANES]);

impl Lanes {
    /// All of them at `start`.
    #[inline(always)]
    pub fn new(start: f32) -> Self {
        Lanes([start; LANES])
    }

    /// Takes elements in by `step(partial, x)`.
    #[inline(always)]
    pub fn take(&mut self, block: &[f32], step: impl Fn(f32, f32) -> f32) {
        let (vectors, rest) = block.as_chunks::<LANES>();
        for vector in vectors {
            for (lane, &x) in self.0.iter_mut().zip(vector) {
                *lane = step(*lane, x);
            }
        }
        for (lane, &x) in self.0.iter_mut().zip(rest) {
            *lane = step(*lane, x);
        }
    }

    /// The result of all.
    #[inline(always)]
    pub fn join(mut self, join: impl Fn(f32, f32) -> f32) -> f32 {
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                self.0[i] = join(self.0[i], self.0[i + width]);
            }
        }
        self.0[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_of_a_row_of_any_length_is_counted_once() {
        for length in [0, 1, 2, 63, 64, 65, 255, 256, 257, 1000] {
            let row: Vec<f32> = (1..=length).map(|i| i as f32).collect();
            assert_eq!(sum(&row, |x| x), (length * (length + 1) / 2) as f32, "{length}");
            let largest = if length == 0 { f32::NEG_INFINITY } else { length as f32 };
            assert_eq!(max(&row), largest, "{length}");
        }
    }

    #[test]
    fn the_sum_of_many_small_numbers_is_not_lost_in_a_large_one() {
        let row = vec![0.1f32; 1 << 20];
        let exact = f64::from(0.1f32) * row.len() as f64;
        let error = (f64::from(sum(&row, |x| x)) / exact - 1.0).abs();
        assert!(error < 1e-4, "{error}");
    }
}
