//! How far a result is from what it should be.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Reason;
use super::exercise::Expected;

/// One element may be off by this much more than the whole: the largest of many deviations is several standard
/// deviations out, and the norm is about one.
const ELEMENT_SLACK: f64 = 10.0;

/// Rounding errors that a default tolerance grants per step of a reduction; they add up like a random walk.
const ROUNDINGS: f64 = 8.0;

/// The relative tolerance when the attribute gives none: 8·u·√r for round-off u and r terms per output element, at least 1.
///
/// Exact types (u = 0) must agree exactly.
pub fn default_tolerance(roundoff: f64, terms: f64) -> f64 {
    // Work that is no number, or less than an operation per element, says nothing about rounding.
    ROUNDINGS * roundoff * terms.max(1.0).sqrt()
}

/// Distance between a result and what it should be, for the output that is furthest off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorFigures {
    /// ‖got − expected‖ / ‖expected‖ of that output.
    pub norm: f64,
    /// Largest |got − expected| / max(|expected|, magnitude of the output).
    pub maximum: f64,
    /// Where the largest is.
    pub worst: Option<WorstElement>,
    /// The relative tolerance for the norm; a single element may be off by ten times that.
    pub tolerance: f64,
}

/// The element that is furthest off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

    /// How much of the tolerance is used up: more than 1 when it fails.
    pub(super) fn severity(&self) -> f64 {
        ratio(self.norm, self.tolerance).max(ratio(self.maximum, ELEMENT_SLACK * self.tolerance))
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

/// Whether zeros would pass, or nothing that is expected is a number: then the comparison tells nothing.
pub(super) fn zeros_pass(expected: &Expected, tolerances: &[f64]) -> bool {
    let finite = expected.parts.iter().flatten().any(|element| element.is_finite());
    let parts = expected.parts.iter().zip(&expected.scales).zip(tolerances);
    !finite
        || parts.into_iter().all(|((elements, scale), tolerance)| {
            // One element that is far from zero is enough, and most are.
            let is_near = |element: &f64| {
                let relative = ratio(element.abs(), element.abs().max(*scale));
                element.is_finite() && relative <= ELEMENT_SLACK * tolerance
            };
            let zeros = || elements.iter().map(|_| 0.0);
            let compared = || compare_part("zeros", zeros(), elements, *scale, *tolerance);
            elements.iter().all(is_near) && compared().is_ok_and(|errors| errors.pass())
        })
}

/// Compares all outputs, each with its own tolerance; gives the figures of the one that is furthest off.
pub(super) fn compare(
    names: &[&str],
    got: &[Vec<f64>],
    expected: &Expected,
    tolerances: &[f64],
) -> Result<ErrorFigures, Reason> {
    if got.len() != expected.parts.len() {
        let (got, expected) = (got.len(), expected.parts.len());
        return Err(Reason::Outputs { got, expected });
    }
    let mut furthest: Option<ErrorFigures> = None;
    for (part, got) in got.iter().enumerate() {
        let name = names.get(part).map_or_else(|| format!("output {part}"), ToString::to_string);
        let (elements, scale) = (&expected.parts[part], expected.scales[part]);
        let figures = compare_part(&name, got.iter().copied(), elements, scale, tolerances[part])?;
        if furthest.as_ref().is_none_or(|worst| figures.severity() > worst.severity()) {
            furthest = Some(figures);
        }
    }
    let nothing = ErrorFigures { norm: 0.0, maximum: 0.0, worst: None, tolerance: 0.0 };
    Ok(furthest.unwrap_or(nothing))
}

fn compare_part(
    name: &str,
    got: impl ExactSizeIterator<Item = f64>,
    expected: &[f64],
    scale: f64,
    tolerance: f64,
) -> Result<ErrorFigures, Reason> {
    if got.len() != expected.len() {
        let (got, expected) = (got.len(), expected.len());
        return Err(Reason::Length { output: name.to_owned(), got, expected });
    }
    let (mut squares, mut maximum, mut worst) = (0.0, 0.0f64, None);
    for (index, (got, &expected)) in got.zip(expected).enumerate() {
        if !got.is_finite() || !expected.is_finite() {
            if got == expected || (got.is_nan() && expected.is_nan()) {
                continue;
            }
            return Err(Reason::NotFinite { output: name.to_owned(), index, got, expected });
        }
        let difference = (got - expected).abs();
        squares += difference * difference;
        let magnitude = expected.abs().max(scale);
        // Few elements are further off than all before them: the others cost no division.
        if difference > maximum * magnitude {
            maximum = ratio(difference, magnitude);
            worst = Some((index, got, expected));
        }
    }
    let worst = worst.map(|(index, got, expected)| WorstElement {
        output: name.to_owned(),
        index,
        got,
        expected,
    });
    let norm = ratio(squares.sqrt(), scale * (expected.len() as f64).sqrt());
    Ok(ErrorFigures { norm, maximum, worst, tolerance })
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

    fn expected(parts: &[&[f64]]) -> Expected {
        let scale = |part: &&[f64]| {
            let finite: Vec<f64> = part.iter().copied().filter(|e| e.is_finite()).collect();
            (finite.iter().map(|e| e * e).sum::<f64>() / finite.len().max(1) as f64).sqrt()
        };
        Expected {
            parts: parts.iter().map(|part| part.to_vec()).collect(),
            scales: parts.iter().map(scale).collect(),
            terms: 1.0,
        }
    }

    fn figures(got: &[f64], wanted: &[f64]) -> ErrorFigures {
        compare(&["y"], &[got.to_vec()], &expected(&[wanted]), &[1e-6]).expect("finite")
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
        let wanted = vec![1.0; 1_000_000];
        let mut got = wanted.clone();
        got[777_777] = 1.0001;
        let errors = figures(&got, &wanted);
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
        for (got, wanted) in [(nan, 1.0), (infinity, 1.0), (1.0, nan), (-infinity, infinity)] {
            let result = compare(&["y"], &[vec![got]], &expected(&[&[wanted]]), &[1.0]);
            assert!(matches!(result, Err(Reason::NotFinite { .. })), "{got} {wanted}");
        }
    }

    #[test]
    fn an_exact_output_beside_an_inexact_one_must_be_exact() {
        let wanted = expected(&[&[1.0, 2.0], &[777.0]]);
        let near = [vec![1.0, 2.0 + 1e-6], vec![777.0]];
        let off = [vec![1.0, 2.0], vec![778.0]];
        let tolerances = [1e-2, 0.0];
        assert!(
            compare(&["maximum", "index"], &near, &wanted, &tolerances).expect("finite").pass()
        );
        let errors = compare(&["maximum", "index"], &off, &wanted, &tolerances).expect("finite");
        assert!(!errors.pass());
        assert_eq!(errors.worst.expect("there is one").output, "index");
    }

    #[test]
    fn the_default_tolerance_grows_with_the_reduction_and_is_zero_for_integers() {
        assert_eq!(default_tolerance(0.0, 1e6), 0.0);
        let (elementwise, reduction) =
            (default_tolerance(6e-8, 1.0), default_tolerance(6e-8, 10_000.0));
        assert!((reduction / elementwise - 100.0).abs() < 1e-9);
    }
}
