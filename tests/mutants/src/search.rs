//! Counting, searching, and moving by indices.

use std::sync::atomic::{AtomicU32, Ordering};

use kbench::prelude::*;
use rayon::prelude::*;

/// bins ← how often every byte occurs.
#[kernel_bench(sizes = [256, 100_000], inputs = |n| (uniform(n), zeros(256)))]
fn histogram(x: &[u8], bins: &mut [u32]) {
    bins.fill(0);
    x.iter().for_each(|x| bins[usize::from(*x)] += 1);
}

/// out ← for each wanted number, how many of a sorted array are less.
#[kernel_bench(
    sizes = [256, 4096],
    inputs = |n| (sorted(n), integers(n, 0..1_000_000_000), zeros(n)),
)]
fn lower_bound(x: &[i32], wanted: &[i32], out: &mut [u32]) {
    bounds(wanted, out, |wanted| x.partition_point(|x| *x < wanted));
}

fn sorted(n: usize) -> Vec<i32> {
    let mut x = integers(n, 0..1_000_000_000);
    x.sort_unstable();
    x
}

fn bounds(wanted: &[i32], out: &mut [u32], bound: impl Fn(i32) -> usize) {
    wanted.iter().zip(out).for_each(|(wanted, out)| *out = bound(*wanted) as u32);
}

/// out ← the numbers of `x` at some indices.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), integers(n, 0..n as i64), zeros(n)))]
fn gather(x: &[f32], indices: &[u32], out: &mut [f32]) {
    indices.iter().zip(out).for_each(|(index, out)| *out = x[*index as usize]);
}

/// out ← the numbers of `x`, each at the place that a permutation gives it.
#[kernel_bench(sizes = [256, 4096], inputs = |n| (uniform(n), permutation(n), zeros(n)))]
fn scatter(x: &[f32], places: &[u32], out: &mut [f32]) {
    x.iter().zip(places).for_each(|(x, place)| out[*place as usize] = *x);
}

fn permutation(n: usize) -> Vec<u32> {
    let keys: Vec<f32> = uniform(n);
    let mut places: Vec<u32> = (0..n as u32).collect();
    places.sort_by(|a, b| keys[*a as usize].total_cmp(&keys[*b as usize]));
    places
}

/// out ← sums of numbers by their keys.
#[kernel_bench(
    sizes = [256, 50_000],
    inputs = |n| (integers(n, 0..64), uniform(n), zeros(64)),
    reference = sums_by_key_f64,
)]
fn sums_by_key(keys: &[u8], x: &[f32], sums: &mut [f32]) {
    sums.fill(0.0);
    keys.iter().zip(x).for_each(|(key, x)| sums[usize::from(*key)] += x);
}

fn sums_by_key_f64(keys: &[u8], x: &[f64], sums: &mut [f64]) {
    sums.fill(0.0);
    keys.iter().zip(x).for_each(|(key, x)| sums[usize::from(*key)] += x);
}

/// Adds every x to the element of y at its index.
#[kernel_bench(
    sizes = [256, 50_000],
    inputs = |n| (integers(n, 0..64), integers(n, -1000..1000), zeros(64)),
    in_place,
)]
fn add_at(indices: &[u8], x: &[i32], y: &mut [i32]) {
    for (index, x) in indices.iter().zip(x) {
        y[usize::from(*index)] += x;
    }
}

mod right {
    use super::*;

    /// Sums of their own, which are added at last.
    #[kernel_bench(of = add_at)]
    fn added_at_last(indices: &[u8], x: &[i32], y: &mut [i32]) {
        let mut sums = vec![0; y.len()];
        add_at(indices, x, &mut sums);
        y.iter_mut().zip(sums).for_each(|(y, sum)| *y += sum);
    }

    /// Four tables, so that equal neighbours do not wait for each other.
    #[kernel_bench(of = sums_by_key)]
    fn four_tables_of_sums(keys: &[u8], x: &[f32], sums: &mut [f32]) {
        let mut tables = [[0.0; 64]; 4];
        let places = keys.iter().zip(x).enumerate();
        places.for_each(|(i, (key, x))| tables[i % 4][usize::from(*key)] += x);
        sums.iter_mut().enumerate().for_each(|(i, sum)| *sum = tables.iter().map(|t| t[i]).sum());
    }

    /// Bins for every task, which are added up.
    #[kernel_bench(of = histogram, parallel)]
    fn bins_of_tasks(x: &[u8], bins: &mut [u32]) {
        let tasks = x.par_chunks(4096).map(|x| {
            let mut bins = vec![0; 256];
            histogram(x, &mut bins);
            bins
        });
        let add = |mut all: Vec<u32>, bins: Vec<u32>| {
            all.iter_mut().zip(bins).for_each(|(all, bin)| *all += bin);
            all
        };
        bins.copy_from_slice(&tasks.reduce(|| vec![0; 256], add));
    }

    /// Four tables, so that equal neighbours do not wait for each other.
    #[kernel_bench(of = histogram)]
    fn four_tables(x: &[u8], bins: &mut [u32]) {
        let mut tables = [[0; 256]; 4];
        x.iter().enumerate().for_each(|(i, x)| tables[i % 4][usize::from(*x)] += 1);
        bins.iter_mut().enumerate().for_each(|(i, bin)| *bin = tables.iter().map(|t| t[i]).sum());
    }

    /// Atomic bins.
    #[kernel_bench(of = histogram, parallel)]
    fn atomic_bins(x: &[u8], bins: &mut [u32]) {
        let counts: Vec<AtomicU32> = (0..256).map(|_| AtomicU32::new(0)).collect();
        x.par_iter().for_each(|x| {
            counts[usize::from(*x)].fetch_add(1, Ordering::Relaxed);
        });
        bins.iter_mut().zip(counts).for_each(|(bin, count)| *bin = count.into_inner());
    }

    /// Halves without a branch.
    #[kernel_bench(of = lower_bound)]
    fn branchless(x: &[i32], wanted: &[i32], out: &mut [u32]) {
        bounds(wanted, out, |wanted| {
            let (mut low, mut length) = (0, x.len());
            while length > 0 {
                let half = length / 2;
                let is_above = usize::from(x[low + half] < wanted);
                low += is_above * (length - half);
                length = half;
            }
            low
        });
    }

    /// Steps that double, then halves between the last two.
    #[kernel_bench(of = lower_bound, parallel)]
    fn galloping(x: &[i32], wanted: &[i32], out: &mut [u32]) {
        out.par_iter_mut().zip(wanted).for_each(|(out, wanted)| {
            let mut step = 1;
            while step <= x.len() && x[step - 1] < *wanted {
                step *= 2;
            }
            let (low, high) = (step / 2, step.min(x.len()));
            *out = (low + x[low..high].partition_point(|x| x < wanted)) as u32;
        });
    }

    /// Four at once, and the rest one by one.
    #[kernel_bench(of = gather)]
    fn four_at_once(x: &[f32], indices: &[u32], out: &mut [f32]) {
        let (indices, rest) = indices.as_chunks::<4>();
        let (out, out_rest) = out.as_chunks_mut::<4>();
        indices.iter().zip(out).for_each(|(i, out)| *out = i.map(|i| x[i as usize]));
        gather(x, rest, out_rest);
    }

    /// The other way round: every place looks for its number.
    #[kernel_bench(of = scatter, parallel)]
    fn by_inverse(x: &[f32], places: &[u32], out: &mut [f32]) {
        let mut inverse = vec![0; places.len()];
        (0..).zip(places).for_each(|(i, place)| inverse[*place as usize] = i);
        out.par_iter_mut().zip(inverse).for_each(|(out, i): (_, usize)| *out = x[i]);
    }
}

mod wrong {
    use super::*;

    /// Forgets what was there.
    #[kernel_bench(of = add_at)]
    fn begins_at_zero(indices: &[u8], x: &[i32], y: &mut [i32]) {
        y.fill(0);
        add_at(indices, x, y);
    }

    /// Reads two keys before it adds, and adds twice to what was there before where they are equal.
    #[kernel_bench(of = sums_by_key)]
    fn equal_neighbours(keys: &[u8], x: &[f32], sums: &mut [f32]) {
        sums.fill(0.0);
        for (keys, x) in keys.chunks(2).zip(x.chunks(2)) {
            let both = keys.iter().zip(x).map(|(key, x)| sums[usize::from(*key)] + x);
            let both: Vec<f32> = both.collect();
            keys.iter().zip(both).for_each(|(key, sum)| sums[usize::from(*key)] = sum);
        }
    }

    /// The last bin is for numbers up to its end, and 255 is the end.
    #[kernel_bench(of = histogram)]
    fn loses_last_bin(x: &[u8], bins: &mut [u32]) {
        bins.fill(0);
        x.iter().filter(|x| **x < u8::MAX).for_each(|x| bins[usize::from(*x)] += 1);
    }

    /// Counters of 16 bits, which are full after 65,535 equal numbers.
    #[kernel_bench(of = histogram)]
    fn counters_of_16_bits(x: &[u8], bins: &mut [u32]) {
        let mut counters = [0u16; 256];
        x.iter()
            .for_each(|x| counters[usize::from(*x)] = counters[usize::from(*x)].wrapping_add(1));
        bins.iter_mut().zip(counters).for_each(|(bin, counter)| *bin = u32::from(counter));
    }

    /// A load and a store in place of one addition: what another task counts in between is lost.
    #[kernel_bench(of = histogram, parallel)]
    fn racing_bins(x: &[u8], bins: &mut [u32]) {
        let counts: Vec<AtomicU32> = (0..256).map(|_| AtomicU32::new(0)).collect();
        x.par_iter().for_each(|x| {
            let bin = &counts[usize::from(*x)];
            bin.store(bin.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        });
        bins.iter_mut().zip(counts).for_each(|(bin, count)| *bin = count.into_inner());
    }

    /// Any of several equal numbers, in place of the first.
    #[kernel_bench(of = lower_bound)]
    fn any_of_equal(x: &[i32], wanted: &[i32], out: &mut [u32]) {
        bounds(wanted, out, |wanted| x.binary_search(&wanted).unwrap_or_else(|place| place));
    }

    /// The number above, which differs where the wanted one is there.
    #[kernel_bench(of = lower_bound)]
    fn upper_bound(x: &[i32], wanted: &[i32], out: &mut [u32]) {
        bounds(wanted, out, |wanted| x.partition_point(|x| *x <= wanted));
    }

    /// The last index is limited to the one before it.
    #[kernel_bench(of = gather)]
    fn without_last_index(x: &[f32], indices: &[u32], out: &mut [f32]) {
        let last = x.len().saturating_sub(2);
        indices.iter().zip(out).for_each(|(i, out)| *out = x[(*i as usize).min(last)]);
    }
}
