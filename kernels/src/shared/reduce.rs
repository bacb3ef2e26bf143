//! Reductions of a row of floats to one number. The buffer is the caller's, as clearing one takes as long as a short row.

use super::float::Buffer;
use super::lanes::{self, LANES, larger};
use super::{BLOCK, Float};

/// Σ x. Partial sums in lanes keep the error near that of adding `row.len() / LANES` numbers.
#[inline(always)]
pub fn sum<T: Float>(row: &[T], buffer: &mut Buffer) -> f32 {
    let mut sums = [0.0; LANES];
    for block in row.chunks(BLOCK) {
        sums = lanes::fold(sums, T::read(block, buffer), 0.0, |sum, x| sum + x);
    }
    lanes::join(sums, |a, b| a + b)
}

/// Σ (x − centre)², in the same way.
#[inline(always)]
pub fn sum_of_squares<T: Float>(row: &[T], centre: f32, buffer: &mut Buffer) -> f32 {
    let mut sums = [0.0; LANES];
    for block in row.chunks(BLOCK) {
        let step = |sum, x| sum + (x - centre) * (x - centre);
        sums = lanes::fold(sums, T::read(block, buffer), centre, step);
    }
    lanes::join(sums, |a, b| a + b)
}

/// The largest element, or −∞ if there is none. A NaN is passed over.
#[inline(always)]
pub fn max<T: Float>(row: &[T], buffer: &mut Buffer) -> f32 {
    let mut maxima = [f32::NEG_INFINITY; LANES];
    for block in row.chunks(BLOCK) {
        maxima = lanes::fold(maxima, T::read(block, buffer), f32::NEG_INFINITY, larger);
    }
    lanes::join(maxima, larger)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::float::BUFFER;

    #[test]
    fn every_element_of_a_row_of_any_length_is_counted_once() {
        let buffer = &mut BUFFER.clone();
        for length in [0, 1, 2, 31, 32, 33, 255, 256, 257, 1000] {
            let row: Vec<f32> = (1..=length).map(|i| i as f32).collect();
            let exact: f64 = row.iter().map(|x| (f64::from(*x) - 3.0).powi(2)).sum();
            assert_eq!(sum(&row, buffer), (length * (length + 1) / 2) as f32, "{length}");
            let squares = f64::from(sum_of_squares(&row, 3.0, buffer));
            assert!((squares - exact).abs() <= 1e-6 * exact, "{length}: {squares} {exact}");
            let largest = if length == 0 { f32::NEG_INFINITY } else { length as f32 };
            assert_eq!(max(&row, buffer), largest, "{length}");
        }
    }
}
