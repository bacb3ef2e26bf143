//! Rates with their intervals, medians, quantiles and means.

use std::fmt;

use statrs::distribution::{Beta, ContinuousCDF};

/// Of the intervals of rates.
const CONFIDENCE: f64 = 0.95;

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: u64,
    /// Of how many.
    pub of: u64,
}

impl Rate {
    /// Of items, those for which something holds.
    pub fn of<T>(items: impl IntoIterator<Item = T>, holds: impl Fn(&T) -> bool) -> Self {
        items.into_iter().fold(Rate::default(), |rate, item| Rate {
            count: rate.count + u64::from(holds(&item)),
            of: rate.of + 1,
        })
    }

    /// The share, when there is one.
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.count as f64 / self.of as f64)
    }

    /// The exact interval of Clopper and Pearson (1934), from quantiles of beta distributions.
    pub fn interval(self) -> (f64, f64) {
        let (count, rest) = (self.count as f64, (self.of - self.count) as f64);
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let quantile = |a, b, p| Beta::new(a, b).map(|beta| beta.inverse_cdf(p));
        // Without hits, or without misses, the beta distribution of that end does not exist and the end is the limit.
        let low = quantile(count, rest + 1.0, tail).unwrap_or(0.0);
        let high = quantile(count + 1.0, rest, 1.0 - tail).unwrap_or(1.0);
        (low, high)
    }
}

/// `3/60`, and nothing where there is nothing to count.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.of == 0 { f.write_str("-") } else { write!(f, "{}/{}", self.count, self.of) }
    }
}

/// The middle one, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// The smallest value that at least this share of all values does not exceed.
pub fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

/// The mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clopper_and_pearson_as_others_compute_them() {
        for (count, of, low, high) in [
            (0, 300, 0.0, 0.01222),
            (15, 300, 0.0283, 0.0811),
            (300, 300, 0.98778, 1.0),
            (1, 1, 0.025, 1.0),
        ] {
            let (found_low, found_high) = Rate { count, of }.interval();
            assert!((found_low - low).abs() < 5e-5, "{count}/{of}: {found_low}");
            assert!((found_high - high).abs() < 5e-5, "{count}/{of}: {found_high}");
        }
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn of_twenty_values_one_may_be_above_the_95_percent_quantile() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(quantile(values.clone(), 0.95), Some(19.0));
        assert_eq!(quantile(values, 1.0), Some(20.0));
        assert_eq!(quantile(vec![7.0], 0.95), Some(7.0));
        assert_eq!(quantile(Vec::new(), 0.95), None);
    }
}
