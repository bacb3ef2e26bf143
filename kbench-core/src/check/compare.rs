//! How far a result is from what it should be.

use std::fmt;

use super::Reason;

/// One element may be off by this much more than the whole: the largest of many deviations is several standard
/// deviations out, and the norm is about one.
const ELEMENT_SLACK: f64 = 10.0;

/// Rounding errors that a default tolerance grants per step of a reduction; they add up like a random walk.
const ROUNDINGS: f64 = 8.0;

/// The relative tolerance when the attribute gives none: 8·u·√r for round-off u and r terms per output element.
///
/// Exact types (u = 0) must agree exactly.
pub fn default_tolerance(roundoff: f64, work: f64, output_elements: usize) -> f64 {
    let terms = (work / output_elements.max(1) as f64).max(1.0);
    ROUNDINGS * roundoff * terms.sqrt()
}

/// Distance between a result and the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorFigures {
    /// ‖got − expected‖ / ‖expected‖ over all outputs.
    pub norm: f64,
    /// Largest |got − expected| / max(|expected|, rms of the output).
    pub maximum: f64,
    /// Where the largest is.
    pub worst: Option<WorstElement>,
    /// The relative tolerance for the norm; a single element may be off by ten times that.
    pub tolerance: f64,
}

/// The element that is furthest off.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstElement {
    /// The output it belongs to.
    pub output: String,
    /// Its index there.
    pub index: usize,
    /// What is there.
    pub got: f64,
    /// What should be.
    pub expected: f64,
}

impl ErrorFigures {
    /// Whether both figures are within the tolerance.
    pub fn pass(&self) -> bool {
        self.norm <= self.tolerance && self.maximum <= ELEMENT_SLACK * self.tolerance
    }
}

impl fmt::Display for ErrorFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "relative error {:.2e} (norm), {:.2e} (largest element), tolerance {:.2e}",
            self.norm, self.maximum, self.tolerance
        )?;
        if let Some(WorstElement { output, index, got, expected }) = &self.worst {
            write!(f, ", worst `{output}`[{index}] is {got:?} where {expected:?} is expected")?;
        }
        Ok(())
    }
}

/// Compares all outputs; `names` are theirs.
pub(super) fn compare(
    names: &[&str],
    got: &[Vec<f64>],
    expected: &[Vec<f64>],
    tolerance: f64,
) -> Result<ErrorFigures, Reason> {
    let name =
        |part: usize| names.get(part).map_or_else(|| format!("output {part}"), ToString::to_string);
    if got.len() != expected.len() {
        return Err(Reason::Length {
            output: "outputs".into(),
            got: got.len(),
            expected: expected.len(),
        });
    }
    let (mut squares, mut distance) = (0.0, 0.0);
    let mut maximum = 0.0;
    let mut worst = None;
    for (part, (got, expected)) in got.iter().zip(expected).enumerate() {
        if got.len() != expected.len() {
            return Err(Reason::Length {
                output: name(part),
                got: got.len(),
                expected: expected.len(),
            });
        }
        let finite = || expected.iter().filter(|e| e.is_finite());
        let square: f64 = finite().map(|e| e * e).sum();
        let scale = (square / finite().count().max(1) as f64).sqrt();
        squares += square;
        for (index, (&got, &expected)) in got.iter().zip(expected).enumerate() {
            if !got.is_finite() || !expected.is_finite() {
                if got == expected || (got.is_nan() && expected.is_nan()) {
                    continue;
                }
                return Err(Reason::NotFinite { output: name(part), index, got, expected });
            }
            let difference = (got - expected).abs();
            distance += difference * difference;
            let relative = ratio(difference, expected.abs().max(scale));
            if relative > maximum {
                maximum = relative;
                worst = Some(WorstElement { output: name(part), index, got, expected });
            }
        }
    }
    Ok(ErrorFigures { norm: ratio(distance.sqrt(), squares.sqrt()), maximum, worst, tolerance })
}

/// a / b, where nothing over nothing is no error and something over nothing is all wrong.
fn ratio(a: f64, b: f64) -> f64 {
    if a == 0.0 {
        0.0
    } else if b == 0.0 {
        f64::INFINITY
    } else {
        a / b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(got: &[f64], expected: &[f64]) -> ErrorFigures {
        compare(&["y"], &[got.to_vec()], &[expected.to_vec()], 1e-6).expect("finite")
    }

    #[test]
    fn norm_and_worst_element_are_what_their_names_say() {
        let errors = figures(&[3.0, 4.4, 0.0], &[3.0, 4.0, 0.0]);
        assert!((errors.norm - 0.4 / 5.0).abs() < 1e-12);
        assert!((errors.maximum - 0.1).abs() < 1e-12);
        let worst = errors.worst.expect("there is one");
        assert_eq!((worst.output.as_str(), worst.index), ("y", 1));
    }

    #[test]
    fn one_bad_element_among_a_million_is_caught() {
        let expected = vec![1.0; 1_000_000];
        let mut got = expected.clone();
        got[777_777] = 1.0001;
        let errors = figures(&got, &expected);
        assert!(errors.norm < 1e-6, "the norm alone would let it pass: {}", errors.norm);
        assert!(!errors.pass());
    }

    #[test]
    fn a_small_element_beside_large_ones_may_have_their_rounding_error() {
        assert!(figures(&[1.0, 1e-7], &[1.0, 0.0]).pass());
        assert!(!figures(&[1.0, 1e-4], &[1.0, 0.0]).pass());
    }

    #[test]
    fn nan_and_infinity_pass_only_where_the_reference_has_them() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        assert!(figures(&[nan, infinity, 1.0], &[nan, infinity, 1.0]).pass());
        for (got, expected) in [(nan, 1.0), (infinity, 1.0), (1.0, nan), (-infinity, infinity)] {
            let result = compare(&["y"], &[vec![got]], &[vec![expected]], 1.0);
            assert!(matches!(result, Err(Reason::NotFinite { .. })), "{got} {expected}");
        }
    }

    #[test]
    fn the_default_tolerance_grows_with_the_reduction_and_is_zero_for_integers() {
        assert_eq!(default_tolerance(0.0, 1e6, 1), 0.0);
        let elementwise = default_tolerance(6e-8, 1000.0, 1000);
        let reduction = default_tolerance(6e-8, 10_000.0, 1);
        assert!((reduction / elementwise - 100.0).abs() < 1e-9);
    }
}
