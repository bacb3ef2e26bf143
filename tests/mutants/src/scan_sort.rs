//! Running sums, and orders.

use kbench::prelude::*;
use rayon::prelude::*;

/// out ← the sums of all numbers up to each.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn running_sums(x: &[i32], out: &mut [i64]) {
    let mut sum = 0;
    for (x, out) in x.iter().zip(out) {
        sum += i64::from(*x);
        *out = sum;
    }
}

/// Sorts numbers.
#[kernel_bench(sizes = [256, 4096], inputs = |n| normal(n), in_place)]
fn sort(x: &mut [f32]) {
    x.sort_unstable_by(f32::total_cmp);
}

/// Sorts bytes.
#[kernel_bench(sizes = [256, 4096], inputs = |n| uniform(n), in_place)]
fn sort_bytes(x: &mut [u8]) {
    x.sort_unstable();
}

/// order ← the indices of keys in rising order; those of equal keys in the order in which they are.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), zeros(n)))]
fn stable_order(keys: &[u32], order: &mut [u32]) {
    order.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
    order.sort_by_key(|i| keys[*i as usize]);
}

/// Bits of a float in the order of its numbers.
fn ordered(x: f32) -> u32 {
    let bits = x.to_bits();
    bits ^ (((bits as i32) >> 31) as u32 | 0x8000_0000)
}

/// Sorts by keys, digit by digit from the last one on, and keeps the order of equal ones.
fn sort_by_digits<T: Copy + Default>(items: &mut [T], key: impl Fn(T) -> u32) {
    let mut other = vec![T::default(); items.len()];
    for shift in [0, 8, 16, 24] {
        let digit = |item: T| (key(item) >> shift) as usize & 0xff;
        let mut places = [0; 257];
        items.iter().for_each(|item| places[digit(*item) + 1] += 1);
        (0..256).for_each(|i| places[i + 1] += places[i]);
        for item in &*items {
            let place = &mut places[digit(*item)];
            other[*place] = *item;
            *place += 1;
        }
        items.copy_from_slice(&other);
    }
}

/// Sorts runs that double in length, of which two at a time are merged.
fn merge_sort<T: Copy>(items: &mut [T], is_before: impl Fn(T, T) -> bool) {
    let mut run = 1;
    while run < items.len() {
        let merged: Vec<T> = items
            .chunks(2 * run)
            .flat_map(|pair| {
                let (mut left, mut right) = pair.split_at(run.min(pair.len()));
                std::iter::from_fn(|| {
                    let is_right = match (left.first(), right.first()) {
                        (Some(left), Some(right)) => is_before(*right, *left),
                        (left, _) => left.is_none(),
                    };
                    let side = if is_right { &mut right } else { &mut left };
                    side.split_off_first().copied()
                })
                .collect::<Vec<T>>()
            })
            .collect();
        items.copy_from_slice(&merged);
        run *= 2;
    }
}

mod right {
    use super::*;

    /// Up and down a tree, by Blelloch, on a length that is a power of two.
    #[kernel_bench(of = running_sums)]
    fn up_and_down(x: &[i32], out: &mut [i64]) {
        let length = x.len().next_power_of_two();
        let mut tree: Vec<i64> = x.iter().copied().map(i64::from).collect();
        tree.resize(length, 0);
        let steps =
            || std::iter::successors(Some(1), |step| Some(2 * step)).take_while(|s| *s < length);
        for step in steps() {
            (0..length)
                .step_by(2 * step)
                .for_each(|i| tree[i + 2 * step - 1] += tree[i + step - 1]);
        }
        tree[length - 1] = 0;
        for step in steps().collect::<Vec<usize>>().into_iter().rev() {
            for i in (0..length).step_by(2 * step) {
                let (left, right) = (tree[i + step - 1], tree[i + 2 * step - 1]);
                (tree[i + step - 1], tree[i + 2 * step - 1]) = (right, left + right);
            }
        }
        let before = tree.iter().zip(x);
        out.iter_mut().zip(before).for_each(|(out, (sum, x))| *out = sum + i64::from(*x));
    }

    /// Sums of blocks first, then every block from the sum of those before it.
    #[kernel_bench(of = running_sums, parallel)]
    fn two_levels(x: &[i32], out: &mut [i64]) {
        const BLOCK: usize = 100;
        let sum = |x: &[i32]| x.iter().copied().map(i64::from).sum::<i64>();
        let mut before: Vec<i64> = x.par_chunks(BLOCK).map(sum).collect();
        let mut all = 0;
        before.iter_mut().for_each(|sum| all += std::mem::replace(sum, all));
        let blocks = x.par_chunks(BLOCK).zip(out.par_chunks_mut(BLOCK)).zip(before);
        blocks.for_each(|((x, out), before)| {
            running_sums(x, out);
            out.iter_mut().for_each(|out| *out += before);
        });
    }

    /// By the digits of ordered bits.
    #[kernel_bench(of = sort)]
    fn radix_sort(x: &mut [f32]) {
        sort_by_digits(x, ordered);
    }

    /// Runs that are merged.
    #[kernel_bench(of = sort)]
    fn merged_runs(x: &mut [f32]) {
        merge_sort(x, |a, b| a < b);
    }

    /// On all cores.
    #[kernel_bench(of = sort, parallel)]
    fn parallel_sort(x: &mut [f32]) {
        x.par_sort_by(f32::total_cmp);
    }

    /// Counts all bytes, and writes as many of each.
    #[kernel_bench(of = sort_bytes)]
    fn counting_sort(x: &mut [u8]) {
        let mut counts = [0; 256];
        x.iter().for_each(|x| counts[usize::from(*x)] += 1);
        let sorted = (0..=u8::MAX).flat_map(|x| std::iter::repeat_n(x, counts[usize::from(x)]));
        x.iter_mut().zip(sorted).for_each(|(x, sorted)| *x = sorted);
    }

    /// By digits, which keeps the order of equal keys.
    #[kernel_bench(of = stable_order)]
    fn order_by_digits(keys: &[u32], order: &mut [u32]) {
        order.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
        sort_by_digits(order, |i| keys[i as usize]);
    }

    /// Runs that are merged; of equal keys the left one comes first.
    #[kernel_bench(of = stable_order)]
    fn order_by_merging(keys: &[u32], order: &mut [u32]) {
        order.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
        merge_sort(order, |a, b| keys[a as usize] < keys[b as usize]);
    }
}

mod wrong {
    use super::*;

    /// Looks at every eighth number to see whether they are sorted.
    #[kernel_bench(of = sort)]
    fn looks_sorted(x: &mut [f32]) {
        let some: Vec<f32> = x.iter().step_by(8).copied().collect();
        if x.len() < 32 || !some.is_sorted() {
            sort(x);
        }
    }

    /// The second of two blocks leaves out each number itself.
    #[kernel_bench(of = running_sums)]
    fn exclusive_in_second_block(x: &[i32], out: &mut [i64]) {
        let middle = x.len().min(1024);
        running_sums(&x[..middle], &mut out[..middle]);
        for i in middle..x.len() {
            out[i] = out[i - 1] + if i > middle { i64::from(x[i - 1]) } else { 0 };
        }
    }

    /// Equal numbers have the same place, and what was in the next one stays.
    #[kernel_bench(of = sort)]
    fn distinct_numbers(x: &mut [f32]) {
        let unsorted = x.to_vec();
        for number in &unsorted {
            x[unsorted.iter().filter(|other| *other < number).count()] = *number;
        }
    }

    /// The order of equal keys is lost.
    #[kernel_bench(of = stable_order)]
    fn unstable_order(keys: &[u32], order: &mut [u32]) {
        order.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
        order.sort_unstable_by_key(|i| keys[*i as usize]);
    }

    /// Of equal keys the right one comes first.
    #[kernel_bench(of = stable_order)]
    fn right_before_left(keys: &[u32], order: &mut [u32]) {
        order.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
        merge_sort(order, |a, b| keys[a as usize] <= keys[b as usize]);
    }
}
