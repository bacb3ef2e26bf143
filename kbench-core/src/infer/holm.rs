use crate::order;

/// Holm's step-down adjustment (Holm 1979): the chance of any false difference in a report stays below the level.
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
}
