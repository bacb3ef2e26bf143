//! Reductions of a row of `f32` to one number.

use super::lanes::{self, LANES};

/// Σ x. Partial sums in lanes keep the error near that of adding `row.len() / LANES` numbers.
#[inline(always)]
pub fn sum(row: &[f32]) -> f32 {
    let sums = lanes::fold([0.0; LANES], row, 0.0, |sum, x| sum + x);
    lanes::join(sums, |a, b| a + b)
}

/// Σ (x − centre)², in the same way.
#[inline(always)]
pub fn sum_of_squares(row: &[f32], centre: f32) -> f32 {
    let step = |sum, x: f32| (x - centre).mul_add(x - centre, sum);
    lanes::join(lanes::fold([0.0; LANES], row, centre, step), |a, b| a + b)
}

/// The largest element, or −∞ if there is none. A NaN is passed over.
#[inline(always)]
pub fn max(row: &[f32]) -> f32 {
    let maxima = lanes::fold([f32::NEG_INFINITY; LANES], row, f32::NEG_INFINITY, lanes::larger);
    lanes::join(maxima, lanes::larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_of_a_row_of_any_length_is_counted_once() {
        for length in [0, 1, 2, 31, 32, 33, 255, 256, 257, 1000] {
            let row: Vec<f32> = (1..=length).map(|i| i as f32).collect();
            let exact: f64 = row.iter().map(|x| (f64::from(*x) - 3.0).powi(2)).sum();
            assert_eq!(sum(&row), (length * (length + 1) / 2) as f32, "{length}");
            let squares = f64::from(sum_of_squares(&row, 3.0));
            assert!((squares - exact).abs() <= 1e-6 * exact, "{length}: {squares} {exact}");
            let largest = if length == 0 { f32::NEG_INFINITY } else { length as f32 };
            assert_eq!(max(&row), largest, "{length}");
        }
    }
}
