//! How the time of a row grows with its work.
//!
//! On logarithms a power is a straight line. Its slope is taken with equal weights: what keeps the figures from the line
//! are fixed costs and caches, not noise, and weights would let the sizes that happen to be timed best speak for all.
//!
//! Between neighbours the slope is a local exponent. Small sizes spread a fixed cost over little work and begin near 0;
//! with time that is in proportion to work the exponent then rises to 1 and stays there. Where data leaves a cache it
//! exceeds 1, until all of it comes from the next, and returns. That rise above 1 is a knee.
//!
//! Means of different sizes count as independent. When a launch moves all of them together, differences are known better
//! than is said here.

use serde::{Deserialize, Serialize};

use super::estimate::CONFIDENCE;
use super::interval::Interval;
use super::test::{Mean, Test, student_quantile};
use crate::order;

/// A line through fewer points cannot miss any.
const FEWEST_POINTS: usize = 3;

/// A knee raises the exponent by this much at least, above that before it and above 1: doubling the work then adds a
/// tenth to the time of each part of it.
const KNEE: f64 = 0.15;

/// Chance that a row without a knee is said to have one.
const FALSE_KNEE: f64 = 0.01;

/// The time of a row at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowthPoint {
    /// Work of one call, in any unit.
    pub work: f64,
    /// Mean logarithm of its nanoseconds.
    pub time: Mean,
    /// Bytes that one call touches, where that is known.
    pub bytes: Option<f64>,
}

/// How the time of a row grows with its work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Time grows as this power of work, over the whole range. The interval takes in how far the figures are from any
    /// one power.
    pub exponent: Interval,
    /// The least work.
    pub from: f64,
    /// The most work.
    pub to: f64,
    /// From each size to the next.
    pub steps: Vec<GrowthStep>,
    /// Where time begins to grow faster than work.
    pub knees: Vec<Knee>,
}

/// Growth from one size to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowthStep {
    /// Work at the smaller size.
    pub from: f64,
    /// Work at the larger size.
    pub to: f64,
    /// The local exponent; its interval is without ends when a size was timed only once.
    pub exponent: Interval,
}

/// Where time begins to grow faster than work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Work at the last size before the rise.
    pub from: f64,
    /// Work at the size up to which the exponent rises.
    pub to: f64,
    /// The local exponent before.
    pub before: f64,
    /// The exponent between the two ends.
    pub after: f64,
    /// The cache that holds what is touched at one end and not at the other; the smallest of several.
    pub cache: Option<String>,
}

/// How the time of a row grows with its work.
///
/// Points may come in any order; of several with the same work the first counts, and those without a logarithm do not.
/// `caches` have their names and their bytes. `None` with fewer than three sizes.
pub fn growth(points: &[GrowthPoint], caches: &[(&'static str, u64)]) -> Option<Growth> {
    let is_usable = |point: &&GrowthPoint| {
        point.work > 0.0 && point.work.is_finite() && point.time.value.is_finite()
    };
    let mut points: Vec<GrowthPoint> = points.iter().filter(is_usable).copied().collect();
    order::sort_by(&mut points, |a, b| a.work.total_cmp(&b.work));
    points.dedup_by_key(|point| point.work);
    if points.len() < FEWEST_POINTS {
        return None;
    }
    Some(Growth {
        exponent: exponent(&points),
        from: points[0].work,
        to: points[points.len() - 1].work,
        steps: points.windows(2).map(step).collect(),
        knees: knees(&points, caches),
    })
}

/// Slope of ln(time) over ln(work). What errors of the means give it is one width of its interval, what the scatter
/// about the line gives it the other; the larger counts. Where a size was timed only once there is only the scatter.
fn exponent(points: &[GrowthPoint]) -> Interval {
    let n = points.len() as f64;
    let logarithms: Vec<f64> = points.iter().map(|point| point.work.ln()).collect();
    let centre = logarithms.iter().sum::<f64>() / n;
    let spread: f64 = logarithms.iter().map(|x| (x - centre).powi(2)).sum();
    let factors = logarithms.iter().map(|x| (x - centre) / spread);
    let parts: Vec<(f64, Mean)> =
        factors.zip(points).map(|(factor, point)| (factor, point.time)).collect();
    let slope: f64 = parts.iter().map(|(factor, time)| factor * time.value).sum();
    let level = points.iter().map(|point| point.time.value).sum::<f64>() / n;
    let residual = |(x, point): (&f64, &GrowthPoint)| {
        (point.time.value - level - slope * (x - centre)).powi(2)
    };
    let scatter: f64 = logarithms.iter().zip(points).map(residual).sum();
    let error = (scatter / (n - 2.0) / spread).sqrt();
    let scattered = student_quantile(0.5 + CONFIDENCE / 2.0, n - 2.0) * error;
    let propagated = Test::combined(&parts).map_or(0.0, |test| test.half_width(CONFIDENCE));
    Interval::around(slope, scattered.max(propagated))
}

/// Growth between two neighbours.
fn step(pair: &[GrowthPoint]) -> GrowthStep {
    let width = Test::between(pair[0].time, pair[1].time)
        .map_or(f64::INFINITY, |test| test.half_width(CONFIDENCE));
    GrowthStep {
        from: pair[0].work,
        to: pair[1].work,
        exponent: Interval::around(
            local_exponent(&pair[0], &pair[1]),
            width / distance(&pair[0], &pair[1]),
        ),
    }
}

fn distance(from: &GrowthPoint, to: &GrowthPoint) -> f64 {
    (to.work / from.work).ln()
}

fn local_exponent(from: &GrowthPoint, to: &GrowthPoint) -> f64 {
    (to.time.value - from.time.value) / distance(from, to)
}

/// All knees; a rise over several steps is one.
///
/// A fixed cost and a time that grows faster than what was declared as work also rise above 1, but never come down. So
/// after a knee the exponent comes down, or, when the knee is the last that was measured, it had reached 1 before it.
fn knees(points: &[GrowthPoint], caches: &[(&'static str, u64)]) -> Vec<Knee> {
    let candidates = points.len() - 2;
    let rises = |middle: usize| {
        rises(&points[middle - 1], &points[middle], &points[middle + 1], candidates)
    };
    let last = points.len() - 1;
    let mut knees = Vec::new();
    let mut middle = 1;
    while middle < last {
        if !rises(middle) {
            middle += 1;
            continue;
        }
        let end = (middle + 1..last).find(|&next| !rises(next)).unwrap_or(last);
        let before = local_exponent(&points[middle - 1], &points[middle]);
        let steepest = local_exponent(&points[end - 1], &points[end]);
        let comes_down = points[end..]
            .windows(2)
            .any(|pair| local_exponent(&pair[0], &pair[1]) < steepest - KNEE);
        if comes_down || (end == last && before > 1.0 - KNEE) {
            let (from, to) = (&points[middle], &points[end]);
            let after = local_exponent(from, to);
            let cache = cache_between(from.bytes, to.bytes, caches);
            knees.push(Knee {
                from: from.work,
                to: to.work,
                before,
                after,
                cache: cache.map(str::to_owned),
            });
        }
        middle = end;
    }
    knees
}

/// Whether the exponent after a point is larger than that before it, and than 1, by a margin and by more than noise; all
/// candidates share the chance to err.
fn rises(
    before: &GrowthPoint,
    middle: &GrowthPoint,
    after: &GrowthPoint,
    candidates: usize,
) -> bool {
    let (first, second) = (distance(before, middle), distance(middle, after));
    let level = FALSE_KNEE / candidates as f64;
    let is_above = |test: Option<Test>, margin: f64| {
        test.is_some_and(|test| test.difference > margin && test.p < level)
    };
    // The middle is in both exponents: their difference is a sum over three means.
    let bend = Test::combined(&[
        (1.0 / first, before.time),
        (-1.0 / first - 1.0 / second, middle.time),
        (1.0 / second, after.time),
    ]);
    let proportional = Mean { value: middle.time.value + second, ..middle.time };
    let excess = Test::between(proportional, after.time);
    is_above(bend, KNEE) && is_above(excess, KNEE * second)
}

/// The smallest cache that holds the bytes of one end and not those of the other.
fn cache_between(
    from: Option<f64>,
    to: Option<f64>,
    caches: &[(&'static str, u64)],
) -> Option<&'static str> {
    let (from, to) = (from?, to?);
    let lies_between =
        |(_, bytes): &&(&'static str, u64)| from <= *bytes as f64 && (*bytes as f64) < to;
    caches.iter().filter(lies_between).min_by_key(|(_, bytes)| *bytes).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::super::observe::Repetition;
    use super::*;
    use crate::value::{normal, with_seed};

    const CACHES: [(&str, u64); 3] = [("L3", 32 << 20), ("L1", 32 << 10), ("L2", 1 << 20)];
    const LAUNCHES: usize = 10;

    /// Sizes from 2¹⁰ to 2²⁰ elements of eight bytes, each four times the one before.
    fn sizes() -> Vec<f64> {
        (5..=10).map(|i| 4_f64.powi(i)).collect()
    }

    /// The mean of launches with the given noise.
    fn timed(nanoseconds: f64, noise: f64) -> Mean {
        let launches: Vec<f64> = normal(LAUNCHES);
        let launch = |by: &f64| Repetition {
            value: nanoseconds.ln() + noise * by,
            variance: None,
            count: 1,
        };
        Mean::of(&launches.iter().map(launch).collect::<Vec<_>>()).expect("launches")
    }

    fn points(works: &[f64], noise: f64, time: impl Fn(f64) -> f64) -> Vec<GrowthPoint> {
        let point = |&work: &f64| GrowthPoint {
            work,
            time: timed(time(work), noise),
            bytes: Some(8.0 * work),
        };
        works.iter().map(point).collect()
    }

    fn of(noise: f64, time: impl Fn(f64) -> f64) -> Growth {
        with_seed(7, || growth(&points(&sizes(), noise, time), &CACHES).expect("enough"))
    }

    /// Time per element of data that comes from a cache of this many bytes as long as it fits.
    fn per_element(work: f64, cache: f64, slowdown: f64) -> f64 {
        if 8.0 * work <= cache { 1.0 } else { slowdown - (slowdown - 1.0) * cache / (8.0 * work) }
    }

    #[test]
    fn an_exact_power_gives_its_exponent() {
        for power in [0.5, 1.0, 1.5, 3.0] {
            let growth = of(0.0, |work| 3.0 * work.powf(power));
            assert!((growth.exponent.value - power).abs() < 1e-12, "{growth:?}");
            assert!(growth.exponent.high - growth.exponent.low < 1e-12, "{growth:?}");
            let is_exact = |step: &GrowthStep| (step.exponent.value - power).abs() < 1e-12;
            assert!(growth.steps.len() == 5 && growth.steps.iter().all(is_exact), "{growth:?}");
            assert_eq!((growth.from, growth.to, growth.knees), (1024.0, 1_048_576.0, vec![]));
        }
    }

    /// Expected values by scipy: `linregress(log([1, 2, 4, 8]), [0, 1.2, 1.9, 3.2])`, its error times `t.ppf(0.975, 2)`.
    #[test]
    fn scatter_about_the_line_is_that_of_ordinary_least_squares() {
        let times = [0.0, 1.2, 1.9, 3.2];
        let point = |(i, value): (usize, f64)| GrowthPoint {
            work: 2_f64.powi(i as i32),
            time: Mean { value, error: 1e-6, df: 9.0, deviation: 1e-6 },
            bytes: None,
        };
        let points: Vec<GrowthPoint> = times.into_iter().enumerate().map(point).collect();
        let exponent = growth(&points, &[]).expect("enough").exponent;
        assert!((exponent.value - 1.48597589).abs() < 1e-6, "{exponent:?}");
        assert!((exponent.low - 0.99327754).abs() < 1e-6, "{exponent:?}");
    }

    #[test]
    fn a_fixed_cost_is_no_knee() {
        for cost in [1e2, 1e4, 1e6] {
            for noise in [0.0, 0.002, 0.02] {
                let affine = of(noise, |work| cost + work);
                assert_eq!(affine.knees, [], "{cost} {noise}");
                let steeper = of(noise, |work| cost + work.powf(1.5));
                assert_eq!(steeper.knees, [], "{cost} {noise}, work declared too small");
            }
        }
        let affine = of(0.002, |work| 1e4 + work);
        assert!(
            affine.exponent.low < 0.7 && affine.exponent.high > 0.8,
            "no one power: {affine:?}"
        );
    }

    #[test]
    fn a_knee_is_found_with_its_cache() {
        for (cache, name) in [(f64::from(32 << 10), "L1"), (f64::from(1 << 20), "L2")] {
            for cost in [1.0, 3e3] {
                let growth = of(0.005, |work| cost + work * per_element(work, cache, 2.5));
                let [knee] = &growth.knees[..] else { panic!("{cost}: {growth:?}") };
                assert_eq!(knee.cache.as_deref(), Some(name), "{growth:?}");
                assert!(8.0 * knee.from <= cache && cache < 8.0 * knee.to, "{knee:?}");
                assert!(knee.after > 1.15 && knee.after > knee.before + 0.15, "{knee:?}");
            }
        }
    }

    #[test]
    fn a_knee_at_the_last_size_is_found() {
        let growth = of(0.005, |work| work * per_element(work, f64::from(4 << 20), 3.0));
        let [knee] = &growth.knees[..] else { panic!("{growth:?}") };
        assert_eq!(
            (knee.to, knee.cache.as_deref()),
            (growth.to, None),
            "no cache of that size was named"
        );
    }

    #[test]
    fn of_several_caches_the_smallest_is_named() {
        let caches = [("L3", 3000), ("L2", 2000), ("L1", 999)];
        assert_eq!(cache_between(Some(1000.0), Some(4000.0), &caches), Some("L2"));
        assert_eq!(cache_between(Some(2000.0), Some(3000.0), &caches), Some("L2"), "it just fits");
        assert_eq!(cache_between(Some(4000.0), Some(5000.0), &caches), None);
        assert_eq!(cache_between(None, Some(5000.0), &caches), None);
    }

    #[test]
    fn noise_alone_gives_no_knee() {
        const RUNS: usize = 1000;
        let works: Vec<f64> = (0..10).map(|i| 1000.0 * 2_f64.powi(i)).collect();
        for noise in [0.01, 0.05, 0.3] {
            let run = |_| growth(&points(&works, noise, |work| work), &CACHES).expect("enough");
            let found = with_seed(20_261_115, || {
                (0..RUNS).map(run).filter(|growth| !growth.knees.is_empty()).count()
            });
            assert!(found <= 3 * RUNS / 100, "{noise}: {found}");
        }
    }

    #[test]
    fn intervals_of_exponents_cover_them() {
        const RUNS: usize = 1000;
        let run = |_| growth(&points(&sizes(), 0.02, |work| work.powf(1.3)), &[]).expect("enough");
        let all: Vec<Growth> = with_seed(20_261_115, || (0..RUNS).map(run).collect());
        let covered = all.iter().filter(|growth| growth.exponent.covers(1.3)).count();
        assert!(covered >= 94 * RUNS / 100, "{covered}");
        let steps = all.iter().flat_map(|growth| &growth.steps);
        let covered = steps.filter(|step| step.exponent.covers(1.3)).count();
        assert!(covered >= 94 * 5 * RUNS / 100, "{covered}");
    }

    #[test]
    fn sizes_that_were_timed_once_have_an_exponent_and_no_knees() {
        let once = |&work: &f64| {
            let cost = work * per_element(work, f64::from(1 << 20), 4.0);
            let only = Repetition { value: cost.ln(), variance: None, count: 1 };
            GrowthPoint { work, time: Mean::of(&[only]).expect("one"), bytes: Some(8.0 * work) }
        };
        let growth =
            growth(&sizes().iter().map(once).collect::<Vec<_>>(), &CACHES).expect("enough");
        assert!(growth.exponent.high.is_finite() && growth.exponent.value > 1.0, "{growth:?}");
        assert!(growth.steps.iter().all(|step| step.exponent.high == f64::INFINITY), "{growth:?}");
        assert_eq!(growth.knees, []);
    }

    #[test]
    fn order_repetitions_and_impossible_sizes_do_not_matter() {
        with_seed(3, || {
            let mut all = points(&sizes(), 0.01, |work| work);
            let expected = growth(&all, &CACHES);
            all.push(GrowthPoint { time: timed(1.0, 0.0), ..all[2] });
            all.push(GrowthPoint { work: 0.0, ..all[0] });
            all.push(GrowthPoint { work: f64::NAN, ..all[0] });
            all[..6].reverse();
            assert_eq!(growth(&all, &CACHES), expected);
            assert_eq!(growth(&all[..2], &CACHES), None);
            assert_eq!(growth(&[all[0], all[1], all[0]], &CACHES), None);
        });
    }
}
