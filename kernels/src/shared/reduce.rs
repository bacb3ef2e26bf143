//! Reductions of a row of `f32` to one number.

use super::lanes::{self, LANES};

/// Σ x. Partial sums in lanes keep the error near that of adding `row.len() / LANES` numbers.
#[inline(always)]
pub fn sum(row: &[f32]) -> f32 {
    let sums = lanes::fold([0.0; LANES], row, 0.0, |sum, x| sum + x);
    lanes::join(sums, |a, b| a + b)
}

/// Σ (x − centre) and Σ (x − centre)² of all x so far.
pub struct Moments {
    centre: f32,
    sums: [f32; Self::LANES],
    squares: [f32; Self::LANES],
}

impl Moments {
    /// Both have half of the vectors that a sum alone would have.
    const LANES: usize = LANES / 2;

    /// Of none yet.
    #[inline(always)]
    pub fn about(centre: f32) -> Self {
        Moments { centre, sums: [0.0; Self::LANES], squares: [0.0; Self::LANES] }
    }

    /// Adds those of a row.
    #[inline(always)]
    pub fn add(&mut self, x: &[f32]) {
        let (vectors, rest) = x.as_chunks();
        for x in vectors {
            self.add_vector(x);
        }
        if !rest.is_empty() {
            let mut x = [self.centre; Self::LANES];
            x[..rest.len()].copy_from_slice(rest);
            self.add_vector(&x);
        }
    }

    #[inline(always)]
    fn add_vector(&mut self, x: &[f32; Self::LANES]) {
        for ((x, sum), square) in x.iter().zip(&mut self.sums).zip(&mut self.squares) {
            let distance = x - self.centre;
            *sum += distance;
            *square = distance.mul_add(distance, *square);
        }
    }

    /// The mean and the variance of so many x. The closer their mean is to the centre, the better is the variance.
    #[inline(always)]
    pub fn mean_and_variance(self, count: usize) -> [f32; 2] {
        let mean = |lanes| lanes::join(lanes, |a, b| a + b) / count as f32;
        let (distance, square) = (mean(self.sums), mean(self.squares));
        let variance = distance.mul_add(-distance, square);
        // Rounding may have brought it below 0; what is no number stays none.
        [self.centre + distance, if variance < 0.0 { 0.0 } else { variance }]
    }
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
            assert_eq!(sum(&row), (length * (length + 1) / 2) as f32, "{length}");
            let mut moments = Moments::about(3.0);
            let (first, rest) = row.split_at(length / 3);
            moments.add(first);
            moments.add(rest);
            if length > 0 {
                let [mean, variance] = moments.mean_and_variance(length);
                let (exact_mean, exact) =
                    ((length + 1) as f32 / 2.0, (length * length - 1) as f32 / 12.0);
                assert!((mean - exact_mean).abs() <= 1e-6 * exact_mean, "{length}: {mean}");
                assert!((variance - exact).abs() <= 1e-5 * exact, "{length}: {variance} {exact}");
            }
            let largest = if length == 0 { f32::NEG_INFINITY } else { length as f32 };
            assert_eq!(max(&row), largest, "{length}");
        }
    }
}
