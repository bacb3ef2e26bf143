//! Sizes at which kernels go wrong: one, primes, just beside the widths of vectors and tiles, and beyond a task or a block.

use crate::kernel::{Condition, KernelEntry};
use crate::plan::{Size, sizes_of};

/// For kernels of so many axes and more, per axis: ones; small primes; numbers with other remainders by 4, 8, 16 and 32, the usual
/// vector widths and tiles; one more than a power of two; and at last a length of many tasks, beyond what 16 bits count, one less than
/// a multiple of 64. It has small factors alone, as calls of a transform may take much longer without them.
const ROUNDS: [(usize, [usize; 4]); 9] = [
    (1, [1, 1, 1, 1]),
    (1, [3, 7, 5, 2]),
    (1, [17, 31, 13, 3]),
    (1, [22, 10, 6, 4]),
    (1, [68, 33, 41, 5]),
    (1, [LONG, 5, 3, 2]),
    (2, [7, 1_029, 33, 3]),
    (3, [33, 5, 515, 2]),
    (1, [66_495, 3, 2, 1]),
];

/// One more than a power of two, and than half of it.
const LONG: usize = 4_097;

/// The cost of a check must stay small whatever the number of axes: so many elements, and operations where the kernel says how many
/// a call takes.
const LARGEST_PRODUCT: usize = 400_000;
const MOST_OPERATIONS: f64 = 5.5e6;

/// Some awkward sizes at which kernel and variant say they are defined, none larger than the listed ones on any
/// axis. A size that is listed is not among them: it is checked where it is measured, and is no reason to doubt the others.
pub fn awkward_sizes(kernel: &KernelEntry, variant: Option<Condition>) -> Vec<Size> {
    let Ok(listed) = sizes_of(kernel) else { return Vec::new() };
    let largest: Vec<usize> = (0..kernel.axes.len())
        .map(|axis| listed.iter().map(|size| size.values[axis]).max().unwrap_or(1))
        .collect();
    let mut sizes: Vec<Size> = Vec::new();
    let has_axes = |(axes, _): &(usize, [usize; 4])| *axes <= kernel.axes.len();
    for (_, round) in ROUNDS.into_iter().filter(has_axes) {
        let wanted: Vec<usize> =
            largest.iter().enumerate().map(|(axis, &max)| at_most(round[axis % 4], max)).collect();
        let is_listed = |size: &Size| listed.iter().any(|listed| listed.values == size.values);
        let nearest =
            nearest_valid(kernel, variant, &wanted, &largest).filter(|size| !is_listed(size));
        let size = nearest.or_else(|| {
            // Just below the largest size there may be none above that is not listed.
            let axis = (0..wanted.len()).find(|axis| round[axis % 4] > largest[*axis])?;
            let below = (1..=64usize).chain([128, 256, 512, 1024]).filter_map(|step| {
                let mut values = wanted.clone();
                values[axis] = values[axis].checked_sub(step).filter(|value| *value > 0)?;
                Some(Size::of(values))
            });
            let is_new = |size: &Size| !is_listed(size) && is_valid(kernel, variant, &size.values);
            below.into_iter().find(is_new)
        });
        if let Some(size) = size.filter(|size| !sizes.contains(size)) {
            sizes.push(size);
        }
    }
    sizes
}

/// A value of an axis, half of a long one, or one just below the largest, which is often a multiple of a tile.
fn at_most(value: usize, largest: usize) -> usize {
    match value {
        _ if value <= largest => value,
        LONG if LONG / 2 < largest => LONG / 2 + 1,
        _ => (largest - 1).max(1),
    }
}

/// Whether kernel and variant are defined at a size that takes little time.
fn is_valid(kernel: &KernelEntry, variant: Option<Condition>, values: &[usize]) -> bool {
    let is_quick = |operations: Option<f64>| operations.is_none_or(|of| of <= MOST_OPERATIONS);
    values.iter().product::<usize>() <= LARGEST_PRODUCT
        && is_quick(kernel.definition.flops(values))
        && is_quick(kernel.definition.work(values))
        && kernel.definition.valid(values)
        && variant.is_none_or(|variant| (variant.holds)(values))
}

/// The wanted size, or the nearest above it at which the kernel is defined.
///
/// Conditions are met by stepping single axes first and all axes together then: enough for "even", "a multiple of 8" or
/// "a power of two" on any axis, without asking the user for a list.
fn nearest_valid(
    kernel: &KernelEntry,
    variant: Option<Condition>,
    wanted: &[usize],
    largest: &[usize],
) -> Option<Size> {
    let valid = |values: &[usize]| is_valid(kernel, variant, values);
    if valid(wanted) {
        return Some(Size::of(wanted));
    }
    let steps = || (1..=64usize).chain([128, 256, 512, 1024]);
    for axis in 0..wanted.len() {
        for step in steps() {
            let mut values = wanted.to_vec();
            values[axis] += step;
            if values[axis] <= largest[axis] && valid(&values) {
                return Some(Size::of(values));
            }
        }
    }
    // Round every axis up to a multiple or a power of the step.
    [2, 4, 8, 16, 32, 64].into_iter().find_map(|step: usize| {
        let values: Vec<usize> = wanted
            .iter()
            .zip(largest)
            .map(|(value, max)| value.next_multiple_of(step).min(*max))
            .collect();
        valid(&values).then(|| Size::of(values))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::registry::fixtures::Double;

    #[test]
    fn one_and_primes_are_among_them() {
        let sizes = awkward_sizes(Double::ENTRY, None);
        let values: Vec<usize> = sizes.iter().map(|s| s.values[0]).collect();
        assert_eq!(values, [1, 3, 17, 22, 68, 2049, 4095]);
    }

    #[test]
    fn a_variant_that_needs_multiples_of_eight_gets_them() {
        let valid = Condition { text: "n % 8 == 0", holds: |size| size[0].is_multiple_of(8) };
        let sizes = awkward_sizes(Double::ENTRY, Some(valid));
        let values: Vec<usize> = sizes.iter().map(|s| s.values[0]).collect();
        assert_eq!(values, [8, 24, 72, 2056, 4088]);
    }
}
