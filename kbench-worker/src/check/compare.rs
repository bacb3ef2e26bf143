//! How far a result is from what it should be.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::exercise::{Expected, FEW_ELEMENTS};
use super::{OtherNumber, Reason};
use crate::kernel::Outputs;
use crate::value::{Regime, limits};

/// The norm is about one standard deviation, and the largest of many deviations is several out: so much further off than the norm
/// may one element be.
const ELEMENT_SLACK: f64 = 10.0;

/// The same where the author has given a tolerance, which has room already.
const GIVEN_SLACK: f64 = 6.0;

/// The norm of few elements is no average: in regimes, it may be so much further off.
const FEW_SLACK: f64 = 4.0;

/// Rounding errors that are granted to a result, and per step of a reduction, where they add up like a random walk.
const ROUNDINGS: f64 = 4.0;

/// How many times as large as what is granted to zeros an element has to be, so that mistakes in it show.
const VISIBLE: f64 = 2.0;

/// How much more than by an error of their last place results may change with their inputs: intermediate results are rounded
/// as inputs are.
const CONDITIONING: f64 = 2.0;

/// On usual data no default tolerance is wider for the norm, nor for an element as a share of itself and of the magnitude of all:
/// wider ones, of types of eight bits, would let anything pass.
const WIDEST_NORM: f64 = 0.3;
const WIDEST_ELEMENT: [f64; 2] = [0.45, 0.05];

/// Sums of numbers with fewer digits are made with as many as `f32` has.
const SUM_ROUNDOFF: f64 = 5.960_464_477_539_063e-8;

/// By how much one output of a variant may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// The rounding error of its type; 0 for exact ones.
    roundoff: f64,
    /// On how many inputs an element depends.
    terms: f64,
    /// What its author grants, relative to the magnitude of the output.
    given: Option<f64>,
    /// Relative rounding error of a reduction of its length.
    sums: f64,
    /// How many times as large as by one rounding the errors of intermediate results are.
    steps: f64,
    /// By how much an error in the last place of the inputs changes it, where that is not known element by element.
    condition: f64,
    /// Larger elements are left out; none where that is an error.
    largest: Option<f64>,
    /// Differences that are no larger do not count.
    least: f64,
    /// Whether they are those of usual data.
    is_usual: bool,
    /// What is granted in any case: the relative error of another function that is known to be right.
    floor: f64,
}

impl Limits {
    /// Those of an output whose elements depend on so many inputs each, which have a rounding error of their own.
    pub(super) fn of(roundoff: f64, terms: f64, condition: f64, of_inputs: f64) -> Self {
        // Work that is no number, or less than an operation per element, says nothing about rounding.
        let root = terms.max(1.0).sqrt();
        let of_sums = roundoff.min(SUM_ROUNDOFF);
        // Intermediate results are rounded as sums are, and the inputs were changed by their own rounding error.
        let (sums, steps) = (root * of_sums, 1.0 + root * ratio(of_sums, of_inputs.max(of_sums)));
        Limits {
            roundoff,
            terms,
            given: None,
            sums,
            steps,
            condition,
            largest: None,
            least: 0.0,
            is_usual: true,
            floor: 0.0,
        }
    }

    /// The same where its author grants something else.
    pub(super) fn or_given(self, given: Option<f64>) -> Self {
        Limits { given, ..self }
    }

    /// The same for data on which all roundings of a sum may have the same sign, so that they do not average out; larger elements
    /// than some are left out, and where squares of inputs underflow, differences below the smallest normal number.
    pub(super) fn in_regime(self, regime: Regime, largest: Option<f64>) -> Self {
        let sums = self.sums * self.terms.max(1.0).sqrt();
        let [smallest, _] = limits(self.roundoff);
        let least = if regime.is_extreme() && self.roundoff > 0.0 { smallest } else { 0.0 };
        Limits { sums, largest, least, is_usual: false, ..self }
    }

    /// Whether an element that should be so large is not compared.
    fn skips(&self, expected: f64) -> bool {
        self.largest.is_some_and(|largest| expected.is_nan() || expected.abs() > largest)
    }

    /// The same where so much is granted in any case.
    pub(super) fn at_least(self, floor: f64) -> Self {
        Limits { floor, ..self }
    }

    pub(super) fn roundoff(&self) -> f64 {
        self.roundoff
    }

    /// Whether nothing may be off.
    fn is_exact(&self) -> bool {
        self.roundoff == 0.0 && self.given.is_none()
    }

    /// On how many inputs an element depends.
    pub(super) fn terms(&self) -> f64 {
        self.terms
    }

    /// For the norm, where inputs that are off in their last place give such an error.
    fn norm(&self, spread: f64) -> f64 {
        let own = match self.given {
            Some(given) => given * self.amplification(spread),
            None if self.roundoff == 0.0 => 0.0,
            None => {
                let own =
                    ROUNDINGS * (self.roundoff + self.sums) + CONDITIONING * self.steps * spread;
                if self.is_usual { own.min(WIDEST_NORM) } else { own }
            }
        };
        own.max(self.floor)
    }

    /// For an element, where the magnitude of all, and the error by inputs that are off in their last place, are known.
    fn element(&self, expected: f64, magnitude: f64, spread: f64) -> f64 {
        let own = match self.given {
            Some(given) => {
                GIVEN_SLACK * given * magnitude * self.amplification(ratio(spread, magnitude))
            }
            None if self.roundoff == 0.0 => 0.0,
            None => {
                let own = ROUNDINGS
                    * (self.roundoff * expected.abs() + ELEMENT_SLACK * self.sums * magnitude)
                    + CONDITIONING * self.steps * spread;
                let [of_itself, of_all] = WIDEST_ELEMENT;
                let widest = of_itself * expected.abs() + of_all * magnitude;
                if self.is_usual { own.min(widest) } else { own }
            }
        };
        own.max(ELEMENT_SLACK * self.floor * magnitude)
    }

    /// How much more sensitive than usual results are; a given tolerance is one for usual data.
    fn amplification(&self, spread: f64) -> f64 {
        let is_more = self.condition > 0.0 && spread.is_finite();
        if is_more { (spread / self.condition).max(1.0) } else { 1.0 }
    }
}

/// The relative tolerance for the norm when the attribute gives none, for well-conditioned results: 4·(u + v·√r) for round-off u,
/// r inputs per output element, and v the round-off of sums, which is that of `f32` for smaller types.
///
/// Exact types (u = 0) must agree exactly.
pub fn default_tolerance(roundoff: f64, terms: f64) -> f64 {
    Limits::of(roundoff, terms, 0.0, roundoff).norm(0.0)
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
    /// The relative tolerance for the norm.
    pub tolerance: f64,
    /// The largest |got − expected| as a share of what is granted to its element.
    #[serde(default)]
    pub share: f64,
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
        self.norm <= self.tolerance && self.share <= 1.0
    }

    /// How much of the tolerance is used up: more than 1 when it fails.
    pub(super) fn severity(&self) -> f64 {
        ratio(self.norm, self.tolerance).max(self.share)
    }
}

impl fmt::Display for ErrorFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let worst = self.worst.as_ref().map(WorstElement::to_string);
        // Of exact types, the number says it all.
        if let (Some(worst), true) = (&worst, self.tolerance == 0.0) {
            return f.write_str(worst);
        }
        write!(
            f,
            "relative error {:.2e} (norm), {:.2e} (largest element), tolerance {:.2e}",
            self.norm, self.maximum, self.tolerance
        )?;
        worst.map_or(Ok(()), |worst| write!(f, ", worst {worst}"))
    }
}

impl fmt::Display for WorstElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [got, expected] = [self.got, self.expected].map(readable);
        write!(f, "`{}`[{}] is {got} where {expected} is expected", self.output, self.index)
    }
}

/// A whole number without a decimal point.
fn readable(number: f64) -> String {
    let is_whole = number.fract() == 0.0 && number.abs() < 1e15;
    if is_whole { format!("{number:.0}") } else { format!("{number:?}") }
}

/// Whether zeros would pass, or nothing that is expected is a number: then the comparison tells nothing.
pub(super) fn zeros_pass(expected: &Expected, limits: &[Limits]) -> bool {
    let is_finite = expected.parts.iter().flatten().any(|element| element.is_finite());
    let zeros = |part: usize| {
        let of = Part { expected, part, limits: limits[part] };
        // One element that is far from zero is enough, and most are.
        let is_near = |(index, element): (usize, &f64)| {
            element.is_finite() && element.abs() <= of.granted(index)
        };
        let elements = &expected.parts[part];
        elements.iter().enumerate().all(is_near)
            && of.compare(elements.iter().map(|_| 0.0)).is_ok_and(|errors| errors.pass())
    };
    !is_finite || (0..expected.parts.len()).all(zeros)
}

/// In elements that are no larger, the rounding errors of the others hide mistakes, whatever its author grants.
pub(super) fn largest_hidden(expected: &Expected, part: usize, limits: Limits) -> f64 {
    let limits = Limits { given: None, floor: 0.0, ..limits };
    VISIBLE * Part { expected, part, limits }.least_granted()
}

/// Whether one element of an output may be something else, and the others what is expected.
pub(super) fn passes_with(
    expected: &Expected,
    (part, index): (usize, usize),
    element: f64,
    limits: Limits,
) -> bool {
    let of = Part { expected, part, limits };
    let (elements, wanted) = (&expected.parts[part], expected.parts[part][index]);
    if limits.skips(wanted) || element == wanted || (element.is_nan() && wanted.is_nan()) {
        return true;
    }
    let difference = (element - wanted).abs();
    let all = expected.scales[part] * (elements.len() as f64).sqrt();
    difference <= of.granted(index) && ratio(difference, all) <= of.tolerance()
}

/// Compares all that a call gave; an error where it is too far off.
pub(super) fn judge(
    got: &Outputs,
    expected: &Expected,
    limits: &[Limits],
) -> Result<ErrorFigures, Reason> {
    let errors = compare(&got.parts, expected, limits)?;
    if !errors.pass() {
        return Err(Reason::Inexact { errors: errors.into() });
    }
    compare_last_digits(got, expected, limits)?;
    Ok(errors)
}

/// Compares all outputs, each within its own limits; gives the figures of the one that is furthest off.
pub(super) fn compare(
    got: &[Vec<f64>],
    expected: &Expected,
    limits: &[Limits],
) -> Result<ErrorFigures, Reason> {
    if got.len() != expected.parts.len() {
        let (got, expected) = (got.len(), expected.parts.len());
        return Err(Reason::Outputs { got, expected });
    }
    let mut furthest: Option<ErrorFigures> = None;
    for (part, got) in got.iter().enumerate() {
        let of = Part { expected, part, limits: limits[part] };
        let figures = of.compare(got.iter().copied())?;
        if furthest.as_ref().is_none_or(|worst| figures.severity() > worst.severity()) {
            furthest = Some(figures);
        }
    }
    let nothing = ErrorFigures { norm: 0.0, maximum: 0.0, worst: None, tolerance: 0.0, share: 0.0 };
    Ok(furthest.unwrap_or(nothing))
}

/// Whole numbers of 64 bits that agree as `f64` must agree in their last digits, too, where no tolerance is given.
fn compare_last_digits(
    got: &Outputs,
    expected: &Expected,
    limits: &[Limits],
) -> Result<(), Reason> {
    for part in (0..limits.len()).filter(|part| limits[*part].is_exact()) {
        let [Some(rests), Some(wanted)] =
            [&got.rests, &expected.rests].map(|rests| rests.get(part))
        else {
            continue;
        };
        let Some(index) = rests.iter().zip(wanted).position(|(got, wanted)| got != wanted) else {
            continue;
        };
        let whole = |values: &[f64], rests: &[f64]| values[index] as i128 + rests[index] as i128;
        return Err(Reason::LastDigits {
            output: expected.name(part).to_owned(),
            index,
            numbers: Box::new(OtherNumber {
                got: whole(&got.parts[part], rests),
                expected: whole(&expected.parts[part], wanted),
            }),
        });
    }
    Ok(())
}

/// One output, and what is expected of it.
struct Part<'a> {
    expected: &'a Expected,
    part: usize,
    limits: Limits,
}

impl Part<'_> {
    /// By how much an element may be off.
    fn granted(&self, index: usize) -> f64 {
        let (expected, scale) =
            (self.expected.parts[self.part][index], self.expected.scales[self.part]);
        let magnitude = expected.abs().max(scale);
        let spread = match &self.expected.spread {
            // Few sets of data may miss what happens at one element and not at the others.
            Some(spread) => spread.parts[self.part][index].max(spread.roots[self.part] / 2.0),
            None => self.limits.condition * magnitude,
        };
        self.limits.element(expected, magnitude, spread)
    }

    /// What is granted to every element at least.
    fn least_granted(&self) -> f64 {
        let scale = self.expected.scales[self.part];
        let spread = match &self.expected.spread {
            Some(spread) => spread.roots[self.part] / 2.0,
            None => self.limits.condition * scale,
        };
        self.limits.element(0.0, scale, spread)
    }

    fn compare(&self, got: impl ExactSizeIterator<Item = f64>) -> Result<ErrorFigures, Reason> {
        let (expected, scale) = (&self.expected.parts[self.part], self.expected.scales[self.part]);
        let output = || self.expected.name(self.part).to_owned();
        if got.len() != expected.len() {
            return Err(Reason::Length {
                output: output(),
                got: got.len(),
                expected: expected.len(),
            });
        }
        // Squares of the largest numbers overflow.
        let unit = if scale > 0.0 { scale } else { 1.0 };
        let least_granted = self.least_granted();
        let (mut squares, mut maximum, mut share, mut worst) = (0.0, 0.0f64, 0.0f64, None);
        for (index, (got, &expected)) in got.zip(expected).enumerate() {
            if self.limits.skips(expected) {
                continue;
            }
            if !got.is_finite() || !expected.is_finite() {
                if got == expected || (got.is_nan() && expected.is_nan()) {
                    continue;
                }
                return Err(Reason::NotFinite { output: output(), index, got, expected });
            }
            let difference = (got - expected).abs();
            if difference <= self.limits.least {
                continue;
            }
            squares += (difference / unit).powi(2);
            let magnitude = expected.abs().max(scale);
            // Few elements are further off than all before them: the others cost no division.
            if difference > maximum * magnitude {
                maximum = ratio(difference, magnitude);
            }
            if worst.is_some() && difference <= share * least_granted {
                continue;
            }
            let granted = self.granted(index);
            if worst.is_none() || difference > share * granted {
                share = ratio(difference, granted);
                worst = Some((index, got, expected));
            }
        }
        let worst = worst.map(|(index, got, expected)| WorstElement {
            output: output(),
            index,
            got,
            expected,
        });
        let norm = ratio(squares.sqrt(), (scale / unit) * (expected.len() as f64).sqrt());
        Ok(ErrorFigures { norm, maximum, worst, tolerance: self.tolerance(), share })
    }

    /// Of the norm.
    fn tolerance(&self) -> f64 {
        let (elements, scale) = (&self.expected.parts[self.part], self.expected.scales[self.part]);
        let condition = match &self.expected.spread {
            Some(spread) => ratio(spread.roots[self.part], scale),
            None => self.limits.condition,
        };
        let slack =
            if self.limits.is_usual || elements.len() >= FEW_ELEMENTS { 1.0 } else { FEW_SLACK };
        slack * self.limits.norm(condition)
    }
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
    use crate::check::exercise::Spread;
    use crate::value::Operand;

    fn expected(parts: &[&[f64]]) -> Expected {
        let scale = |part: &&[f64]| {
            let finite: Vec<f64> = part.iter().copied().filter(|e| e.is_finite()).collect();
            (finite.iter().map(|e| e * e).sum::<f64>() / finite.len().max(1) as f64).sqrt()
        };
        Expected {
            names: vec!["maximum".into(), "index".into()],
            parts: parts.iter().map(|part| part.to_vec()).collect(),
            rests: Vec::new(),
            scales: parts.iter().map(scale).collect(),
            spread: None,
            terms: Vec::new(),
        }
    }

    fn given(tolerance: f64) -> Limits {
        Limits::of(6e-8, 1.0, 0.0, 6e-8).or_given(Some(tolerance))
    }

    fn figures(got: &[f64], wanted: &[f64]) -> ErrorFigures {
        compare(&[got.to_vec()], &expected(&[wanted]), &[given(1e-6)]).expect("finite")
    }

    #[test]
    fn norm_and_worst_element_are_what_their_names_say() {
        let errors = figures(&[3.0, 4.4, 0.0], &[3.0, 4.0, 0.0]);
        assert!((errors.norm - 0.4 / 5.0).abs() < 1e-12);
        assert!((errors.maximum - 0.1).abs() < 1e-12);
        let worst = errors.worst.expect("there is one");
        assert_eq!((worst.output.as_str(), worst.index), ("maximum", 1));
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
            let result = compare(&[vec![got]], &expected(&[&[wanted]]), &[given(1.0)]);
            assert!(matches!(result, Err(Reason::NotFinite { .. })), "{got} {wanted}");
        }
    }

    #[test]
    fn an_exact_output_beside_an_inexact_one_must_be_exact() {
        let wanted = expected(&[&[1.0, 2.0], &[777.0]]);
        let near = [vec![1.0, 2.0 + 1e-6], vec![777.0]];
        let off = [vec![1.0, 2.0], vec![778.0]];
        let tolerances = [given(1e-2), Limits::of(0.0, 1.0, 0.0, 0.0)];
        assert!(compare(&near, &wanted, &tolerances).expect("finite").pass());
        let errors = compare(&off, &wanted, &tolerances).expect("finite");
        assert!(!errors.pass());
        assert_eq!(errors.worst.expect("there is one").output, "index");
    }

    #[test]
    fn the_last_digits_of_wide_numbers_count_unless_a_tolerance_is_given() {
        let of = |number: u64| {
            let mut outputs = Outputs::default();
            (1u8, vec![0, number]).elements(&mut outputs.parts);
            (1u8, vec![0, number]).rests(&mut outputs.rests);
            outputs
        };
        let Outputs { parts, rests, .. } = of(u64::MAX - 1);
        let names = vec!["count".into(), "hash".into()];
        let (scales, spread, terms) = (vec![1.0; 2], None, Vec::new());
        let wanted = Expected { names, parts, rests, scales, spread, terms };
        let exact = [Limits::of(0.0, 1.0, 0.0, 0.0); 2];
        let compare = |number, limits: &[Limits]| compare_last_digits(&of(number), &wanted, limits);
        assert!(compare(u64::MAX - 1, &exact).is_ok());
        assert!(compare(u64::MAX, &exact.map(|limits| limits.or_given(Some(1e-3)))).is_ok());
        let error = compare(u64::MAX, &exact).expect_err("another number").to_string();
        assert_eq!(
            error,
            "`hash`[1] is 18446744073709551615 where 18446744073709551614 is expected"
        );
    }

    #[test]
    fn the_default_tolerance_grows_with_the_reduction_and_is_zero_for_integers() {
        assert_eq!(default_tolerance(0.0, 1e6), 0.0);
        let of = |terms: f64| default_tolerance(SUM_ROUNDOFF, terms) / SUM_ROUNDOFF;
        assert!((of(1.0) - 8.0).abs() < 1e-9 && (of(10_000.0) - 404.0).abs() < 1e-9);
        // Long sums of numbers with few digits are made with more of them.
        let half = default_tolerance(4.9e-4, 4096.0);
        assert!(half < 0.005, "{half}");
    }

    #[test]
    fn an_element_may_be_off_as_far_as_its_inputs_make_it() {
        let limits = Limits::of(1e-9, 1.0, 0.0, 1e-9);
        let spread = |spread: &[f64]| {
            let roots = vec![0.0];
            Expected {
                spread: Some(Spread { parts: vec![spread.to_vec()], roots }),
                ..expected(&[&[1.0, 1.0]])
            }
        };
        let passes = |got: [f64; 2], spread: &Expected| {
            let errors = compare(&[got.to_vec()], spread, &[limits]).expect("finite");
            errors.share <= 1.0
        };
        let sensitive = spread(&[1e-3, 0.0]);
        assert!(passes([1.003, 1.0], &sensitive) && !passes([1.005, 1.0], &sensitive));
        assert!(!passes([1.0, 1.003], &sensitive), "the other one is not");
    }
}
