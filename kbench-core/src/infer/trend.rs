//! Kendall's test for a trend (Mann 1945, Kendall 1948), which asks for no distribution and survives outliers.

use statrs::distribution::{ContinuousCDF, Normal};

use super::observe::median;

/// With fewer values no trend can be told from chance.
const FEWEST: usize = 8;

/// A trend over a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kendall {
    /// Two-sided probability of such a trend by chance.
    pub(super) p: f64,
    /// Change per step: the median of all pairwise slopes (Theil 1950, Sen 1968).
    pub(super) slope: f64,
}

/// Tests a sequence for a trend; `None` with too few values.
pub(super) fn kendall(values: &[f64]) -> Option<Kendall> {
    let n = values.len();
    if n < FEWEST {
        return None;
    }
    let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let score: i64 = pairs()
        .map(|(i, j)| match values[j].total_cmp(&values[i]) {
            std::cmp::Ordering::Greater => 1,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Less => -1,
        })
        .sum();
    let slopes: Vec<f64> = pairs().map(|(i, j)| (values[j] - values[i]) / (j - i) as f64).collect();
    let count = n as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    // One step towards zero corrects for the score being a whole number.
    let z = (score - score.signum()) as f64 / deviation;
    Some(Kendall { p: 2.0 * Normal::standard().sf(z.abs()), slope: median(&slopes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two of 36 pairs are in the wrong order, so the score is 32; its variance is 9·8·23/18 = 92.
    #[test]
    fn agrees_with_a_calculation_by_hand() {
        let values = [1.0, 2.0, 4.0, 3.0, 5.0, 6.0, 8.0, 7.0, 9.0];
        let found = kendall(&values).expect("enough");
        let z: f64 = 31.0 / 92_f64.sqrt();
        assert!((found.p - 2.0 * Normal::standard().sf(z)).abs() < 1e-12, "{found:?}");
        assert!((found.slope - 1.0).abs() < 1e-12, "{found:?}");
        assert_eq!(kendall(&values[..5]), None);
    }
}
