//! The chance of any false difference (Holm 1979).

use crate::order;

/// Holm's step-down adjustment: the chance of any false difference in a report stays below the level.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let order = order::positions(p.len(), &|a, b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max((p[index] * (p.len() - rank) as f64).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

/// The level of every comparison: that of its step where Holm's method finds a difference, and Bonferroni's, which is the
/// strictest, elsewhere. A p is at most its level exactly when there is a difference.
pub(super) fn holm_levels(p: &[f64], rate: f64) -> Vec<f64> {
    let strictest = rate / p.len().max(1) as f64;
    let mut levels = vec![strictest; p.len()];
    let order = order::positions(p.len(), &|a, b| p[a].total_cmp(&p[b]));
    for (rank, index) in order.into_iter().enumerate() {
        let level = rate / (p.len() - rank) as f64;
        if p[index] > level {
            break;
        }
        levels[index] = level;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values by R: `p.adjust(c(.01, .04, .03, .005), "holm")`.
    #[test]
    fn agrees_with_r() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn a_p_is_within_its_level_exactly_when_its_adjusted_value_is_within_the_rate() {
        let p = [0.01, 0.04, 0.03, 0.005];
        let levels = holm_levels(&p, 0.05);
        let expected = [0.05 / 3.0, 0.0125, 0.0125, 0.0125];
        assert!(levels.iter().zip(expected).all(|(l, e)| (l - e).abs() < 1e-12), "{levels:?}");
        let differs = |i: usize| p[i] <= levels[i];
        assert!((0..4).all(|i| differs(i) == (holm(&p)[i] <= 0.05)));
    }
}
