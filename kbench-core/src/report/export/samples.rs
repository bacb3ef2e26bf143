//! Figures of single samples, as other tools define them.

/// The value below which a share of the sorted samples lies, between neighbours on a straight line (R type 7).
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * place.fract()
}

pub(super) fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

pub(super) fn median(samples: &[f64]) -> f64 {
    quantile(&sorted(samples), 0.5)
}

pub(super) fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// With n − 1 in the denominator; zero of a single sample.
pub(super) fn standard_deviation(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (squares / (samples.len() as f64 - 1.0).max(1.0)).sqrt()
}

/// The median distance from the median, as large as the standard deviation where samples are normal.
pub(super) fn median_absolute_deviation(samples: &[f64]) -> f64 {
    /// 1 / Φ⁻¹(3/4).
    const NORMAL: f64 = 1.4826;
    let centre = median(samples);
    let distances: Vec<f64> = samples.iter().map(|sample| (sample - centre).abs()).collect();
    NORMAL * median(&distances)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// numpy's `quantile`, `std(ddof=1)` and scipy's `median_abs_deviation(scale="normal")` of the same values.
    #[test]
    fn figures_are_those_of_the_textbook() {
        let samples = [4.0, 1.0, 3.0, 2.0, 10.0];
        assert_eq!((median(&samples), mean(&samples)), (3.0, 4.0));
        assert!((quantile(&sorted(&samples), 0.95) - 8.8).abs() < 1e-12);
        assert!((standard_deviation(&samples) - 3.535_533_905_932_737_8).abs() < 1e-12);
        assert!((median_absolute_deviation(&samples) - 1.4826).abs() < 1e-12);
        assert_eq!((median(&[7.0]), standard_deviation(&[7.0])), (7.0, 0.0));
    }
}
