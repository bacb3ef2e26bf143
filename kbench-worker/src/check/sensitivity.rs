//! How results depend on data: how much an error of the inputs' last place changes them, how many inputs each depends on, and
//! whether the comparison would notice typical mistakes.

use std::collections::BTreeSet;
use std::ops::Range;

use super::compare::{Limits, compare, largest_hidden, passes_with};
use super::exercise::{Expected, FEW_ELEMENTS, Source, Trial};
use super::{Mutations, Origin};
use crate::kernel::{CellData, InPlace, guard};
use crate::plan::Size;
use crate::value::{NumbersMut, Regime, SplitMix};

/// Sets of data that differ from the usual ones in last places; more where few results are no average.
const NUDGES: u64 = 2;
const NUDGES_OF_FEW: u64 = 8;

/// Sets of data whose results have mistakes made in them, where results are few and one of them may be near zero.
const SPECIMENS_OF_FEW: u64 = 4;

/// Inputs of every array that are changed to see which results change with them.
const PROBES: usize = 2;

/// The same where indices say which results change, so that all of them may change the same one.
const PROBES_OF_INDICES: usize = 4;

/// So many whole numbers of an input may be indices; fewer are a shape.
const FEWEST_INDICES: usize = 8;

/// Tells the seeds of such sets apart.
const OTHER_SPECIMEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Arrays of which inputs are changed, or parts lost: every struct of a slice may have some.
const MOST_ARRAYS: usize = 16;

/// References of larger sizes are not run more than once.
const LARGEST_PROBED: u64 = 25_000;

/// Elements that are set to zero, and as many that get the other sign.
const ELEMENTS: usize = 200;

/// One of so many parts of the outputs is lost, and one of so many of an input.
const LOST_OUTPUT: usize = 8;
const LOST_INPUT: usize = 32;

/// What a kernel's results depend on.
#[derive(Clone, Debug, Default)]
pub(super) struct Sensitivity {
    /// Inputs per element of every output, as a constant times some axes.
    lengths: Vec<Option<Length>>,
    /// By how much an error in the last place of the inputs changes every output, relative to its magnitude.
    pub(super) condition: Vec<f64>,
    /// The largest rounding error of a type of the inputs.
    pub(super) of_inputs: f64,
    /// What should come out at one size, and what would if a part of an input were lost.
    specimens: Vec<Specimen>,
}

/// The length of a reduction as a function of the size.
#[derive(Clone, Debug, PartialEq)]
struct Length {
    factor: f64,
    /// Which axes are multiplied.
    axes: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Specimen {
    expected: Expected,
    lost: Vec<Vec<Vec<f64>>>,
}

impl Length {
    fn at(&self, size: &[usize]) -> f64 {
        let product: f64 = size
            .iter()
            .zip(&self.axes)
            .filter(|(_, multiplied)| **multiplied)
            .map(|(axis, _)| *axis as f64)
            .product();
        (self.factor * product).max(1.0)
    }

    /// The axes whose product is most nearly proportional to the lengths that were found.
    fn fit(found: &[(Vec<usize>, f64)]) -> Option<Length> {
        // One size does not show how lengths grow.
        let [(first, _), _, ..] = found else { return None };
        let candidates = (0..1usize << first.len().min(8)).map(|chosen| {
            let axes: Vec<bool> = (0..first.len()).map(|axis| chosen >> axis & 1 == 1).collect();
            let unit = Length { factor: 1.0, axes };
            let ratios: Vec<f64> =
                found.iter().map(|(size, length)| (length / unit.at(size)).ln()).collect();
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            let spread = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>();
            let largest = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (spread, Length { factor: largest.exp(), ..unit })
        });
        candidates.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, length)| length)
    }
}

impl Sensitivity {
    /// What is found at some sizes. Every trial is told before code of the kernel's author is called with it.
    pub(super) fn of(
        source: &Source,
        sizes: &[Size],
        seed: u64,
        tell: &mut dyn FnMut(&Trial),
    ) -> Self {
        let (mut lengths, mut found) = (Vec::new(), Sensitivity::default());
        let is_small = |size: &&Size| size.product().is_some_and(|all| all <= LARGEST_PROBED);
        for size in sizes.iter().filter(is_small) {
            let (regime, origin) = (Regime::Usual, Origin::Awkward);
            let trial = Trial { size: size.clone(), seed, origin, regime };
            tell(&trial);
            let Ok(exercise) = source.exercise(&trial) else { continue };
            let (mut data, Some(expected)) = (exercise.data, exercise.expected) else { continue };
            found.condition.resize(expected.parts.len().max(found.condition.len()), 0.0);
            for (part, condition) in found.condition.iter_mut().enumerate() {
                *condition = condition.max(expected.condition(part));
            }
            data.each_input(reads_outputs(source), &mut |numbers| {
                found.of_inputs = found.of_inputs.max(numbers.roundoff());
            });
            let of_parts = probe(source, data.as_mut(), &expected);
            lengths.resize_with(of_parts.len().max(lengths.len()), Vec::new);
            for (lengths, length) in lengths.iter_mut().zip(of_parts) {
                lengths.extend(length.map(|length| (size.values.clone(), length)));
            }
            if expected.elements() == 0 {
                continue;
            }
            let others = match expected.elements() < FEW_ELEMENTS {
                true => 1..SPECIMENS_OF_FEW,
                false => 1..1,
            };
            let lost = lose_parts(source, data.as_mut());
            found.specimens = vec![Specimen { expected, lost }];
            found.specimens.extend(others.filter_map(|step| {
                let seed = seed ^ step.wrapping_mul(OTHER_SPECIMEN);
                let exercise = source.exercise(&Trial { seed, ..trial.clone() }).ok()?;
                let (mut data, expected) = (exercise.data, exercise.expected?);
                let lost = lose_parts(source, data.as_mut());
                Some(Specimen { expected, lost })
            }));
        }
        found.lengths = lengths.iter().map(|lengths| Length::fit(lengths)).collect();
        found
    }

    /// Inputs on which an element of an output depends, on average; none where nothing can tell.
    pub(super) fn terms(&self, part: usize, size: &Size) -> Option<f64> {
        self.lengths.get(part)?.as_ref().map(|length| length.at(&size.values))
    }

    /// How many mistakes in the results would be noticed within some limits.
    pub(super) fn mutations(&self, limits: &[Limits]) -> Mutations {
        let mut mutations = Mutations::default();
        let mut random = SplitMix(0x6d75_7461_6e74);
        for specimen in &self.specimens {
            specimen.mutate(limits, &mut random, &mut mutations);
        }
        mutations
    }
}

impl Specimen {
    /// Notes how many mistakes in the results are noticed.
    fn mutate(&self, limits: &[Limits], random: &mut SplitMix, mutations: &mut Mutations) {
        let Specimen { expected, lost } = self;
        if limits.len() != expected.parts.len() {
            return;
        }
        let try_out = |mistake: &str, parts: &[Vec<f64>], mutations: &mut Mutations| {
            if is_visible(parts, expected, limits) {
                let errors = compare(parts, expected, limits);
                mutations.note(mistake, !errors.is_ok_and(|errors| errors.pass()));
            }
        };
        for (part, elements) in expected.parts.iter().enumerate().filter(|(_, e)| !e.is_empty()) {
            let name = expected.name(part);
            let kind = format!("elements of `{name}` that are zero or have the wrong sign");
            let hidden = largest_hidden(expected, part, limits[part]);
            let indices: BTreeSet<usize> =
                (0..ELEMENTS).map(|_| random.below(elements.len() as u64) as usize).collect();
            for index in indices {
                if elements[index].abs() <= hidden {
                    continue;
                }
                for wrong in [0.0, -elements[index]] {
                    if differs(wrong, elements[index], &limits[part]) {
                        let passes = passes_with(expected, (part, index), wrong, limits[part]);
                        mutations.note(&kind, !passes);
                    }
                }
            }
            if elements.len() < 2 * LOST_OUTPUT {
                continue; // a tile would be an element
            }
            let tile = elements.len().div_ceil(LOST_OUTPUT);
            for start in [0, elements.len() - tile] {
                let mut parts = expected.parts.clone();
                parts[part][start..start + tile].fill(0.0);
                try_out(&format!("lost tiles of `{name}`"), &parts, mutations);
            }
        }
        for parts in lost {
            try_out("lost parts of inputs", parts, mutations);
        }
    }
}

/// Whether some results differ from what is expected by more than their type leaves open.
fn is_visible(parts: &[Vec<f64>], expected: &Expected, limits: &[Limits]) -> bool {
    parts.iter().zip(&expected.parts).zip(limits).any(|((parts, expected), limits)| {
        parts.iter().zip(expected).any(|(a, b)| differs(*a, *b, limits))
    })
}

/// Whether an element differs from what is expected by more than its type leaves open.
fn differs(element: f64, expected: f64, limits: &Limits) -> bool {
    element != expected
        && !(element.is_nan() && expected.is_nan())
        && (element - expected).abs() > 4.0 * limits.roundoff() * expected.abs()
}

/// Whether the initial content of outputs is read.
fn reads_outputs(source: &Source) -> bool {
    source.kernel.in_place != InPlace::No
}

/// By how much results change when inputs do in their last places: for every element, the root of the mean square.
pub(super) fn spread(
    source: &Source,
    trial: &Trial,
    expected: &[Vec<f64>],
) -> Option<Vec<Vec<f64>>> {
    let mut squares: Vec<Vec<f64>> = expected.iter().map(|part| vec![0.0; part.len()]).collect();
    let is_few = expected.iter().any(|part| part.len() < FEW_ELEMENTS);
    let nudges = if is_few { NUDGES_OF_FEW } else { NUDGES };
    let mut data = source.data(trial).ok()?;
    let mut before: Vec<Vec<f64>> = Vec::new();
    data.each_input(reads_outputs(source), &mut |numbers| {
        before.push((0..numbers.length()).map(|index| numbers.get(index)).collect());
    });
    for nudge in 1..=nudges {
        let mut random = SplitMix(trial.seed ^ nudge.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (mut is_nudged, mut array) = (false, 0);
        data.each_input(reads_outputs(source), &mut |numbers| {
            let before = before.get(array).map_or(&[][..], Vec::as_slice);
            is_nudged |= self::nudge(numbers, before, &mut random);
            array += 1;
        });
        if !is_nudged {
            return None;
        }
        let changed = guarded_outputs(source, data.as_mut())?;
        if !has_shape_of(&changed, expected) {
            return None; // the number of results depends on the data
        }
        for (squares, (changed, expected)) in squares.iter_mut().zip(changed.iter().zip(expected)) {
            for (square, (a, b)) in squares.iter_mut().zip(changed.iter().zip(expected)) {
                let difference = (a - b).powi(2);
                *square += if difference.is_finite() { difference } else { 0.0 };
            }
        }
    }
    for square in squares.iter_mut().flatten() {
        *square = (*square / nudges as f64).sqrt();
    }
    Some(squares)
}

fn has_shape_of(parts: &[Vec<f64>], expected: &[Vec<f64>]) -> bool {
    parts.len() == expected.len() && parts.iter().zip(expected).all(|(a, b)| a.len() == b.len())
}

/// Puts the next number above or below it in the place of every number; gives whether there was one.
fn nudge(numbers: &mut dyn NumbersMut, before: &[f64], random: &mut SplitMix) -> bool {
    let roundoff = numbers.roundoff();
    if roundoff == 0.0 {
        return false;
    }
    for (index, number) in before.iter().enumerate() {
        let sign = if random.bits() & 1 == 0 { 1.0 } else { -1.0 };
        numbers.set(index, number * (1.0 + sign * 2.0 * roundoff));
    }
    !before.is_empty()
}

/// What comes out of changed data; none where that fails.
fn guarded_outputs(source: &Source, data: &mut dyn CellData) -> Option<Vec<Vec<f64>>> {
    guard(|| source.outputs(data)).ok()?.ok()?.map(|outputs| outputs.parts)
}

/// What comes out when a number of an array is another one: that at another place, which the author's inputs may hold.
fn outputs_with(
    source: &Source,
    data: &mut dyn CellData,
    array: usize,
    [index, other]: [usize; 2],
) -> Option<Vec<Vec<f64>>> {
    let other = alter(source, data, array, other, &|number| number);
    let change = |number: f64| if number == other { 0.1 - 1.5 * number } else { other };
    let before = alter(source, data, array, index, &change);
    let changed = guarded_outputs(source, data);
    alter(source, data, array, index, &|_| before);
    changed
}

/// Whether results differ.
fn differ((a, b): (&f64, &f64)) -> bool {
    a != b && !(a.is_nan() && b.is_nan())
}

/// On how many inputs an element of every output depends, on average, by changing some of them: every pair of an input and a
/// result that changes with it is counted from the side of the inputs. Nothing is known of outputs without elements.
fn probe(source: &Source, data: &mut dyn CellData, expected: &Expected) -> Vec<Option<f64>> {
    let lengths = real_arrays(source, data);
    let mut random = SplitMix(0x7072_6f62_6573);
    let mut pairs = vec![0.0; expected.parts.len()];
    let arrays = some_arrays(&lengths, 1);
    let share = arrays.share;
    for (array, length) in arrays.chosen {
        for _ in 0..PROBES {
            let [index, other] = [(); 2].map(|()| random.below(length as u64) as usize);
            let changed = outputs_with(source, data, array, [index, other]);
            let changed = changed.filter(|changed| has_shape_of(changed, &expected.parts));
            let Some(changed) = changed else { return Vec::new() };
            for (pairs, (changed, expected)) in
                pairs.iter_mut().zip(changed.iter().zip(&expected.parts))
            {
                let changes = changed.iter().zip(expected).filter(|pair| differ(*pair)).count();
                *pairs += (changes * length) as f64 / PROBES as f64 / share;
            }
        }
    }
    let has_inputs = lengths.iter().any(|length| *length > 0);
    let per_element = |(pairs, elements): (&f64, &Vec<f64>)| {
        (has_inputs && !elements.is_empty()).then(|| (pairs / elements.len() as f64).max(1.0))
    };
    pairs.iter().zip(&expected.parts).map(per_element).collect()
}

/// On how many inputs an element of every output may depend at most, where indices among the inputs say which: by the share of
/// some inputs that change the same element. Nothing where there are no indices.
pub(super) fn longest(source: &Source, data: &mut dyn CellData, expected: &Expected) -> Vec<f64> {
    let mut has_indices = false;
    data.each_input(reads_outputs(source), &mut |numbers| {
        has_indices |= numbers.roundoff() == 0.0 && numbers.length() >= FEWEST_INDICES;
    });
    if !has_indices {
        return Vec::new();
    }
    let zeros = || expected.parts.iter().map(|part| vec![0.0; part.len()]).collect::<Vec<_>>();
    let (mut terms, mut random) = (zeros(), SplitMix(0x6c6f_6e67_6573));
    for (array, length) in some_arrays(&real_arrays(source, data), 1).chosen {
        let mut changes = zeros();
        for _ in 0..PROBES_OF_INDICES {
            let places = [(); 2].map(|()| random.below(length as u64) as usize);
            let changed = outputs_with(source, data, array, places);
            let changed = changed.filter(|changed| has_shape_of(changed, &expected.parts));
            let Some(changed) = changed else { return Vec::new() };
            let changed = changed.iter().flatten().zip(expected.parts.iter().flatten());
            for (count, pair) in changes.iter_mut().flatten().zip(changed) {
                *count += f64::from(u8::from(differ(pair)));
            }
        }
        // One that changes once may depend on one input alone.
        let counts = changes.iter().flatten().map(|count| if *count > 1.0 { *count } else { 0.0 });
        for (terms, count) in terms.iter_mut().flatten().zip(counts) {
            *terms += count / PROBES_OF_INDICES as f64 * length as f64;
        }
    }
    terms.iter().map(|part| part.iter().fold(1.0, |all, terms| terms.max(all))).collect()
}

/// Lengths of the arrays of inputs; 0 for those of whole numbers, which may be indices.
pub(super) fn real_arrays(source: &Source, data: &mut dyn CellData) -> Vec<usize> {
    let mut lengths = Vec::new();
    data.each_input(reads_outputs(source), &mut |numbers| {
        lengths.push(if numbers.roundoff() > 0.0 { numbers.length() } else { 0 });
    });
    lengths
}

/// Some of the arrays with so many numbers.
struct Arrays {
    /// By their positions, with their lengths.
    chosen: Vec<(usize, usize)>,
    /// How many of them these are, as a share.
    share: f64,
}

fn some_arrays(lengths: &[usize], fewest: usize) -> Arrays {
    let all: Vec<(usize, usize)> =
        lengths.iter().copied().enumerate().filter(|(_, length)| *length >= fewest).collect();
    let step = all.len().div_ceil(MOST_ARRAYS).max(1);
    let chosen: Vec<_> = all.iter().step_by(step).copied().collect();
    let share = chosen.len() as f64 / all.len().max(1) as f64;
    Arrays { chosen, share }
}

/// Changes one number of one array; gives what it was.
pub(super) fn alter(
    source: &Source,
    data: &mut dyn CellData,
    array: usize,
    index: usize,
    change: &dyn Fn(f64) -> f64,
) -> f64 {
    alter_all(source, data, array, index..index + 1, &|_, number| change(number))[0]
}

/// Changes some numbers of one array by their places among them; gives what they were.
fn alter_all(
    source: &Source,
    data: &mut dyn CellData,
    array: usize,
    indices: Range<usize>,
    change: &dyn Fn(usize, f64) -> f64,
) -> Vec<f64> {
    let (mut position, mut before) = (0, Vec::new());
    data.each_input(reads_outputs(source), &mut |numbers| {
        if position == array {
            for (place, index) in indices.clone().enumerate() {
                let number = numbers.get(index);
                numbers.set(index, change(place, number));
                before.push(number);
            }
        }
        position += 1;
    });
    before
}

/// What comes out when a part of an input is lost, for every array.
fn lose_parts(source: &Source, data: &mut dyn CellData) -> Vec<Vec<Vec<f64>>> {
    let lengths = real_arrays(source, data);
    let mut results = Vec::new();
    for (array, length) in some_arrays(&lengths, LOST_INPUT).chosen {
        let part = length.div_ceil(LOST_INPUT);
        let start = (length / 2).min(length - part);
        let lost = start..start + part;
        let before = alter_all(source, data, array, lost.clone(), &|_, _| 0.0);
        results.extend(guarded_outputs(source, data));
        alter_all(source, data, array, lost, &|place, _| before[place]);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_reduction_is_fitted_to_the_axes_that_it_goes_over() {
        let of = |length: fn(&[usize]) -> f64| {
            let sizes = [vec![3, 7, 5], vec![17, 31, 13], vec![23, 10, 6], vec![67, 33, 41]];
            let found: Vec<_> =
                sizes.into_iter().map(|size| (size.clone(), length(&size))).collect();
            Length::fit(&found).expect("a fit").at(&[100, 200, 300])
        };
        assert!((of(|size| 2.0 * size[2] as f64) - 600.0).abs() < 1e-6);
        assert!((of(|size| (size[0] * size[1]) as f64 / 2.0) - 10_000.0).abs() < 1e-6);
        assert_eq!(of(|_| 1.0), 1.0);
        assert_eq!(Length::fit(&[]), None);
    }
}
