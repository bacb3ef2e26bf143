//! The false-discovery rate (Benjamini and Hochberg 1995): of the differences that are named, at most the given share is
//! false on average.

use crate::order;

/// The level at which every one of `m` comparisons is tested: `rate · max(R, 1) / m`, where R is the largest number of
/// comparisons that all have a p of at most `rate · R / m`. A comparison is different when its p is at most this level.
///
/// Each p is already divided by the share of its look. Comparisons without a p count among the `m` as if it were 1, and so
/// must those that are not to be named whatever their p is.
pub(crate) fn discovery_level(p: &[f64], m: usize, rate: f64) -> f64 {
    let mut sorted = p.to_vec();
    sorted.sort_by(f64::total_cmp);
    let level = |found: usize| rate * found.max(1) as f64 / m.max(p.len()).max(1) as f64;
    let found = (1..=sorted.len()).rev().find(|found| sorted[found - 1] <= level(*found));
    level(found.unwrap_or(0))
}

/// Adjusted p-values: each is at most a rate exactly when the comparison is different at that rate.
pub(super) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let order = order::positions(p.len(), &|a, b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (rank, index) in order.into_iter().enumerate().rev() {
        least = least.min(p[index] * p.len() as f64 / (rank + 1) as f64);
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The p-values of the example in the paper of 1995, of which the method names four at 5 %, and Bonferroni's three.
    const PAPER: [f64; 15] = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0,
    ];

    /// Expected values by R: `p.adjust(c(.01, .04, .03, .005), "BH")`, and the same for the example of the paper.
    #[test]
    fn agrees_with_r() {
        let close = |p: &[f64], expected: &[f64]| {
            let adjusted = benjamini_hochberg(p);
            let is_close = |(got, expected): (&f64, &f64)| (got - expected).abs() < 1e-8;
            assert!(adjusted.iter().zip(expected).all(is_close), "{adjusted:?}");
        };
        close(&[0.01, 0.04, 0.03, 0.005], &[0.02, 0.04, 0.04, 0.02]);
        let expected = [
            0.0015,
            0.003,
            0.0095,
            0.035625,
            0.0603,
            0.06385714286,
            0.06385714286,
            0.0645,
            0.0765,
            0.486,
            0.58118181818,
            0.714875,
            0.75323076923,
            0.81321428571,
            1.0,
        ];
        close(&PAPER, &expected);
        assert!(benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn the_level_is_that_of_the_last_difference() {
        let close = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-15, "{got}");
        close(discovery_level(&PAPER, 15, 0.05), 0.05 * 4.0 / 15.0);
        close(discovery_level(&[0.04], 1, 0.05), 0.05);
        close(discovery_level(&[0.06, 0.9], 2, 0.05), 0.025);
        // Of a hundred comparisons, two have been measured.
        close(discovery_level(&[1e-9, 9e-4], 100, 0.05), 0.05 * 2.0 / 100.0);
        close(discovery_level(&[], 0, 0.05), 0.05);
    }

    /// A p that is too large for its own rank is different all the same where a later one is small enough.
    #[test]
    fn the_method_steps_up() {
        close_to(discovery_level(&[0.03, 0.04, 0.045], 3, 0.05), 0.05);
        fn close_to(got: f64, expected: f64) {
            assert!((got - expected).abs() < 1e-15, "{got}");
        }
    }
}
