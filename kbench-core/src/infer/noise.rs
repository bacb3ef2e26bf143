//! How far launches disagree, learnt from all comparisons of a run.
//!
//! In a suite a comparison has few launches, often five, and on a busy machine one or two of them are slow by far more than the
//! others differ. Their mean then says little, and its error is large: on two shared cores the mean of five launches missed a known
//! ratio by 1.5 % in the median, their median by 0.3 %. What is missing is how errors are distributed, and five values cannot tell.
//! Hundreds of comparisons can. Launches of a comparison are taken to be `ratio + scale · t`, with t of Student's distribution. How
//! heavy its tails are, and how scales differ from comparison to comparison, is found by the likelihood of all comparisons of a kind
//! (empirical Bayes). The distribution of each ratio given its launches follows by integrating over all scales.

use statrs::function::gamma::ln_gamma;

use super::observe::{Observations, Repetition, Scope, median};
use super::test::{Test, student_quantile};
use crate::kernel::Backend;
use crate::measure::Measurement;
use crate::plan::{Plan, Row};

/// Comparisons of a kind from which their noise is learnt; with fewer, each stands by itself.
const FEWEST_COMPARISONS: usize = 30;

/// Comparisons from which it is learnt at most: more tell nothing new.
const MOST_COMPARISONS: usize = 60;

/// Launches of a comparison that tells anything of noise.
const FEWEST_LAUNCHES: usize = 4;

/// Degrees of freedom that are tried for the tails.
const TAILS: [f64; 4] = [1.0, 2.0, 5.0, 20.0];

/// Scales, as standard deviations of logarithms.
const SCALES: usize = 24;
const LEAST_SCALE: f64 = 3e-5;
const MOST_SCALE: f64 = 0.7;

/// Places of the ratio, in scales from the median of the launches.
const PLACES: usize = 61;
const FARTHEST: f64 = 5.0;

/// Middles and widths that are tried for the distribution of the logarithms of scales.
const MIDDLES: usize = 24;
const WIDTHS: [f64; 4] = [0.4, 0.7, 1.1, 1.7];

/// Factors whose product is still a number: as many logarithms fewer.
const FACTORS: usize = 8;

/// Probabilities at which Student's t has the quantiles of the distribution that was found.
const NEAR: f64 = 0.975;
const FAR: f64 = 0.9975;

/// The noise of a run: of serial rows, of parallel ones and of those on a device. They share neither tails nor scales.
#[derive(Clone, Debug, Default)]
pub struct Noises {
    serial: Option<Noise>,
    parallel: Option<Noise>,
    device: Option<Noise>,
}

impl Noises {
    /// Learns from all rows of a plan that are compared with a base.
    pub fn of(plan: &Plan, measurement: &Measurement) -> Self {
        let mut known: Vec<(Backend, Vec<f64>)> = Vec::new();
        for (index, cell) in plan.cells.iter().enumerate() {
            let observations = Observations::of(measurement, index);
            for (row, planned) in cell.rows.iter().enumerate() {
                let base = cell.base_of(row).filter(|base| *base != row);
                let differences = base.map(|base| observations.differences(base, row));
                let values = differences.and_then(|of| launches(observations.scope, &of));
                known.extend(values.map(|values| (planned.variant.backend, values)));
            }
        }
        let of = |backend: Backend| {
            let own = known.iter().filter(|(of, _)| *of == backend);
            Noise::of(&own.map(|(_, values)| values.as_slice()).collect::<Vec<_>>())
        };
        let (serial, parallel) = (of(Backend::Serial), of(Backend::Parallel));
        Noises { serial, parallel, device: of(Backend::Cuda) }
    }

    /// That of a row; none where too little is known.
    pub fn of_row(&self, row: &Row) -> Option<&Noise> {
        match row.variant.backend {
            Backend::Serial => self.serial.as_ref(),
            Backend::Parallel => self.parallel.as_ref(),
            Backend::Cuda => self.device.as_ref(),
        }
    }
}

/// Log-ratios of two rows, one for every launch; none where they share too few of them.
pub(super) fn launches(scope: Scope, differences: &[Repetition]) -> Option<Vec<f64>> {
    let is_enough = scope == Scope::Launches && differences.len() >= FEWEST_LAUNCHES;
    is_enough.then(|| differences.iter().map(|repetition| repetition.value).collect())
}

/// The noise of comparisons of one kind.
#[derive(Clone, Debug)]
pub struct Noise {
    tail: f64,
    /// Logarithms of the probabilities of scales.
    scales: Vec<f64>,
    grid: Grid,
}

#[derive(Clone, Debug)]
struct Grid {
    scales: Vec<f64>,
    places: Vec<f64>,
    /// Widths of the places.
    widths: Vec<f64>,
}

impl Grid {
    fn new() -> Self {
        let step = |i: usize, of: usize| i as f64 / (of - 1) as f64;
        let scale = |i| LEAST_SCALE * (MOST_SCALE / LEAST_SCALE).powf(step(i, SCALES));
        let turn = |i| FARTHEST * (2.0 * step(i, PLACES) - 1.0);
        let spacing = 2.0 * FARTHEST / (PLACES - 1) as f64;
        Grid {
            scales: (0..SCALES).map(scale).collect(),
            places: (0..PLACES).map(|i| f64::sinh(turn(i))).collect(),
            widths: (0..PLACES).map(|i| f64::cosh(turn(i)) * spacing).collect(),
        }
    }
}

/// What some launches say of their ratio, for every scale.
struct Likelihood {
    middle: f64,
    /// Logarithms for every scale and place.
    of_places: Vec<Vec<f64>>,
    /// Logarithms for every scale, over all places.
    of_scales: Vec<f64>,
}

impl Likelihood {
    fn of(values: &[f64], tail: f64, grid: &Grid) -> Self {
        let (middle, count) = (median(values), values.len() as f64);
        let half = (tail + 1.0) / 2.0;
        let constant =
            ln_gamma(half) - ln_gamma(tail / 2.0) - 0.5 * (tail * std::f64::consts::PI).ln();
        // This loop is the time that all of it takes, and is often built without optimisation.
        let at = |scale: f64, place: f64| {
            let (mut logarithms, mut product) = (0.0, 1.0);
            for (index, value) in values.iter().enumerate() {
                let distance = (value - middle) / scale - place;
                product *= 1.0 + distance * distance / tail;
                if index % FACTORS == FACTORS - 1 {
                    logarithms += f64::ln(product);
                    product = 1.0;
                }
            }
            count * (constant - scale.ln()) - half * (logarithms + f64::ln(product))
        };
        let of_places: Vec<Vec<f64>> = grid
            .scales
            .iter()
            .map(|scale| grid.places.iter().map(|place| at(*scale, *place)).collect())
            .collect();
        let total = |(places, scale): (&Vec<f64>, &f64)| {
            log_sum(places.iter().zip(&grid.widths).map(|(log, width)| log + width.ln()))
                + scale.ln()
        };
        let of_scales = of_places.iter().zip(&grid.scales).map(total).collect();
        Likelihood { middle, of_places, of_scales }
    }
}

/// The logarithm of a sum, from the logarithms of what is summed.
fn log_sum(logarithms: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = logarithms.clone().fold(f64::NEG_INFINITY, f64::max);
    largest + logarithms.map(|log| (log - largest).exp()).sum::<f64>().ln()
}

impl Noise {
    /// Learns from the launches of some comparisons; none of too few.
    pub(super) fn of(comparisons: &[&[f64]]) -> Option<Self> {
        if comparisons.len() < FEWEST_COMPARISONS {
            return None;
        }
        let every = comparisons.len().div_ceil(MOST_COMPARISONS);
        let grid = Grid::new();
        let mut best: Option<(f64, Noise)> = None;
        for tail in TAILS {
            let likelihoods: Vec<Likelihood> = comparisons
                .iter()
                .step_by(every)
                .map(|values| Likelihood::of(values, tail, &grid))
                .collect();
            for scales in scale_distributions(&grid) {
                let of = |likelihood: &Likelihood| {
                    log_sum(likelihood.of_scales.iter().zip(&scales).map(|(a, b)| a + b))
                };
                let total: f64 = likelihoods.iter().map(of).sum();
                if best.as_ref().is_none_or(|(most, _)| total > *most) {
                    let grid = grid.clone();
                    best = Some((total, Noise { tail, scales, grid }));
                }
            }
        }
        best.map(|(_, noise)| noise)
    }

    /// The test of a ratio by its launches.
    pub(super) fn test(&self, values: &[f64]) -> Test {
        let ratio = Ratio::of(values, self);
        let middle = ratio.quantile(0.5);
        let half = |probability: f64| {
            let (low, high) = (ratio.quantile(1.0 - probability), ratio.quantile(probability));
            (high - middle).max(middle - low)
        };
        let (near, far) = (half(NEAR), half(FAR));
        let df = degrees_of_freedom(far / near);
        Test::new(middle, near / student_quantile(NEAR, df), df)
    }
}

/// Normal distributions of the logarithms of scales, as logarithms of probabilities.
fn scale_distributions(grid: &Grid) -> impl Iterator<Item = Vec<f64>> {
    let (least, most) = (LEAST_SCALE.ln(), MOST_SCALE.ln());
    let middles =
        (0..MIDDLES).map(move |i| least + (most - least) * i as f64 / (MIDDLES - 1) as f64);
    middles.flat_map(move |middle| {
        WIDTHS.into_iter().map(move |width| {
            let of = |scale: &f64| -0.5 * ((scale.ln() - middle) / width).powi(2);
            let logarithms: Vec<f64> = grid.scales.iter().map(of).collect();
            let total = log_sum(logarithms.iter().copied());
            logarithms.iter().map(|log| log - total).collect()
        })
    })
}

/// The distribution of a ratio, given its launches.
struct Ratio<'n> {
    middle: f64,
    grid: &'n Grid,
    /// The probability of every scale.
    weights: Vec<f64>,
    /// For every scale, the probability of what lies below each place.
    below: Vec<Vec<f64>>,
}

impl<'n> Ratio<'n> {
    fn of(values: &[f64], noise: &'n Noise) -> Self {
        let Noise { tail, scales, grid } = noise;
        let Likelihood { middle, of_places, of_scales } = Likelihood::of(values, *tail, grid);
        let logarithms = of_scales.iter().zip(scales).map(|(a, b)| a + b);
        let total = log_sum(logarithms.clone());
        let weights = logarithms.map(|log| (log - total).exp()).collect();
        let cumulative = |places: &Vec<f64>| -> Vec<f64> {
            let largest = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let share = |(log, width): (&f64, &f64)| (log - largest).exp() * width;
            let mut sum = 0.0;
            let middles = places.iter().zip(&grid.widths).map(|place| {
                let share = share(place);
                sum += share;
                sum - share / 2.0
            });
            let middles: Vec<f64> = middles.collect();
            middles.into_iter().map(|middle| middle / sum).collect()
        };
        let below = of_places.iter().map(cumulative).collect();
        Ratio { middle, grid, weights, below }
    }

    /// The probability of what lies below.
    fn probability(&self, ratio: f64) -> f64 {
        let Ratio { middle, grid, weights, below } = self;
        let of = |((weight, below), scale): ((&f64, &Vec<f64>), &f64)| {
            weight * interpolated(&grid.places, below, (ratio - middle) / scale)
        };
        weights.iter().zip(below).zip(&grid.scales).map(of).sum()
    }

    fn quantile(&self, probability: f64) -> f64 {
        let reach = 20.0 * MOST_SCALE;
        let (mut low, mut high) = (self.middle - reach, self.middle + reach);
        while high - low > 1e-7 * reach {
            let between = (low + high) / 2.0;
            match self.probability(between) < probability {
                true => low = between,
                false => high = between,
            }
        }
        (low + high) / 2.0
    }
}

/// A value of a rising function that is known at rising places, a straight line between them.
fn interpolated(places: &[f64], values: &[f64], at: f64) -> f64 {
    let next = places.partition_point(|place| *place < at);
    if next == 0 {
        return 0.0;
    }
    if next == places.len() {
        return 1.0;
    }
    let (from, to) = (places[next - 1], places[next]);
    values[next - 1] + (values[next] - values[next - 1]) * (at - from) / (to - from)
}

/// Degrees of freedom with which the quantiles of Student's t have a ratio.
fn degrees_of_freedom(ratio: f64) -> f64 {
    let of = |df: f64| student_quantile(FAR, df) / student_quantile(NEAR, df);
    let (mut low, mut high) = (1.0f64, 1000.0f64);
    while high / low > 1.001 {
        let between = (low * high).sqrt();
        match of(between) > ratio {
            true => low = between,
            false => high = between,
        }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::SplitMix;

    /// A number of the normal distribution, near enough.
    fn normal(random: &mut SplitMix) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }

    /// Launches of comparisons whose true log-ratio is 0: a fifth of them are slow on either side.
    fn disturbed(random: &mut SplitMix, comparisons: usize) -> Vec<Vec<f64>> {
        let launch = |random: &mut SplitMix| {
            let slow = |random: &mut SplitMix| match random.unit() < 0.2 {
                true => 0.3 * random.unit(),
                false => 0.0,
            };
            slow(random) - slow(random) + 0.003 * normal(random)
        };
        (0..comparisons).map(|_| (0..5).map(|_| launch(random)).collect()).collect()
    }

    fn learnt(comparisons: &[Vec<f64>]) -> Noise {
        let comparisons: Vec<&[f64]> = comparisons.iter().map(Vec::as_slice).collect();
        Noise::of(&comparisons).expect("enough of them")
    }

    fn paired(values: &[f64]) -> Test {
        let repetition = |&value| Repetition { value, variance: None, count: 1 };
        let repetitions: Vec<Repetition> = values.iter().map(repetition).collect();
        Test::paired(&repetitions).expect("several launches")
    }

    #[test]
    fn a_slow_launch_says_little_and_intervals_hold_all_the_same() {
        let mut random = SplitMix(7);
        let comparisons = disturbed(&mut random, 400);
        let noise = learnt(&comparisons);
        let tests: Vec<Test> = comparisons.iter().map(|values| noise.test(values)).collect();
        let share = |is: &dyn Fn(&Test) -> bool| {
            tests.iter().filter(|test| is(test)).count() as f64 / tests.len() as f64
        };
        let half = |tests: &[Test]| {
            median(&tests.iter().map(|test| test.half_width(0.95)).collect::<Vec<_>>())
        };
        let plain: Vec<Test> = comparisons.iter().map(|values| paired(values)).collect();
        assert!(half(&tests) < half(&plain) / 3.0, "{} {}", half(&tests), half(&plain));
        assert!(share(&|test| test.p < 0.05) < 0.09, "{}", share(&|test| test.p < 0.05));
        assert!(share(&|test| test.p < 0.01) < 0.03, "{}", share(&|test| test.p < 0.01));
    }

    #[test]
    fn without_outliers_a_ratio_is_about_as_well_known_as_by_its_mean() {
        let mut random = SplitMix(11);
        let mut launches = |scale: f64| (0..7).map(|_| scale * normal(&mut random)).collect();
        let comparisons: Vec<Vec<f64>> = (0..300).map(|_| launches(0.01)).collect();
        let noise = learnt(&comparisons);
        let false_ones =
            |level: f64| comparisons.iter().filter(|values| noise.test(values).p < level).count();
        assert!((5..=27).contains(&false_ones(0.05)), "{}", false_ones(0.05));
        assert!(false_ones(0.01) <= 9, "{}", false_ones(0.01));
        let half = |of: &dyn Fn(&Vec<f64>) -> Test| {
            median(&comparisons.iter().map(|v| of(v).half_width(0.95)).collect::<Vec<_>>())
        };
        let (robust, plain) = (half(&|values| noise.test(values)), half(&|values| paired(values)));
        assert!(robust < 1.1 * plain, "{robust} {plain}");
    }

    #[test]
    fn a_difference_that_all_launches_show_is_found_and_no_other_sign() {
        let mut random = SplitMix(3);
        let comparisons = disturbed(&mut random, 200);
        let noise = learnt(&comparisons);
        let moved = |values: &Vec<f64>| values.iter().map(|v| v + 0.05).collect::<Vec<f64>>();
        let count = |of: &dyn Fn(&[f64]) -> Test, sign: f64| {
            let tests = comparisons.iter().map(|values| of(&moved(values)));
            tests.filter(|test| test.p < 0.01 && sign * test.t > 0.0).count()
        };
        let (by_noise, by_mean) = (|values: &[f64]| noise.test(values), paired);
        let (found, wrong) = (count(&by_noise, 1.0), count(&by_noise, -1.0));
        let plain = count(&by_mean, 1.0);
        assert!(found > 2 * plain && wrong <= 2, "{found} {wrong} {plain}");
    }

    #[test]
    fn of_few_comparisons_nothing_is_learnt() {
        let comparisons = disturbed(&mut SplitMix(1), FEWEST_COMPARISONS - 1);
        let comparisons: Vec<&[f64]> = comparisons.iter().map(Vec::as_slice).collect();
        assert!(Noise::of(&comparisons).is_none());
    }

    #[test]
    fn degrees_of_freedom_are_found_from_the_ratio_of_quantiles() {
        for df in [1.5, 4.0, 12.0, 100.0] {
            let ratio = student_quantile(FAR, df) / student_quantile(NEAR, df);
            assert!((degrees_of_freedom(ratio) / df - 1.0).abs() < 0.02, "{df}");
        }
    }
}
