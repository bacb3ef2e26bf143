//! Change points of a row's history: where a series of few, noisy figures settles on a new level.
//!
//! Histories are short, their noise is heavy-tailed, and single runs go astray. So values count by their order alone:
//! each is replaced by the normal score of its rank (van der Waerden 1952), cut at two standard deviations. That bounds
//! what one run can do wherever it lies, and loses little where noise is normal after all.
//!
//! A series is cut where the means of its parts explain most of the squares, by dynamic programming over all partitions
//! (Bellman 1961; Jackson and others 2005), so that a pair of steps, there and back, is seen as well as a single one. The
//! first step is free; each further one costs ln n, as much as Schwarz's criterion (1978) asks for a parameter, for with
//! more steps to place chance explains more.
//!
//! Whether the best partition is more than luck is asked of the same scores in random orders. Without a change every
//! order is as likely as any other, so the share of orders that do as well, the one at hand among them, is a probability
//! that holds for every noise and every length (Phipson and Smyth 2010). The orders come from a fixed seed: the same
//! history always has the same levels. Then each part is asked anew, with scores of its own, which finds what large steps
//! hid; and in the end every step is asked by itself, between the two levels beside it, which takes back what they lent.
//!
//! | without a change | called a change |
//! |---|---|
//! | normal noise, or Student's t with three degrees of freedom | at most 3.5 % |
//! | the same with one outlier, also at an end | at most 4.5 % |
//!
//! | with steps of 3 σ | all found, within two places |
//! |---|---|
//! | one, with 6 values on either side | 93 % |
//! | one, with 15 values on either side | 99 % |
//! | two or three, between levels of 10 values | 95 % |
//! | there and back, 6 values among 60 | 89 % |
//! | two, between levels of 6 values | 75 % |
//!
//! What this cannot do: fewer than eight values have too few orders for any change to be unlikely, however large it is;
//! a slow drift is cut into steps; noise that is not independent of its neighbours makes more false alarms; and since
//! parts are asked anew, the chance of a false alarm is that of each level.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::order;
use crate::value::SplitMix;

/// Random orders that a stretch is compared with.
const ORDERS: usize = 199;

/// Scores end here: an outlier counts for two standard deviations, and so needs company to make a level.
const FURTHEST_SCORE: f64 = 2.0;

/// Where the random orders begin.
const SEED: u64 = 0x006c_6576_656c_7321;

/// Gains that differ by less are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// What makes a new level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelRules {
    /// Chance that a stretch without a change is cut, in steps of 0.005; somewhat more when an outlier lies near its end.
    pub false_alarms: f64,
    /// Values that a level has at least: with two, no single run is a level, wherever it lies.
    pub shortest: usize,
}

impl Default for LevelRules {
    fn default() -> Self {
        LevelRules { false_alarms: 0.035, shortest: 2 }
    }
}

impl LevelRules {
    /// How many orders, that at hand included, may do as well where there is a change.
    fn allowed(self) -> usize {
        (self.false_alarms * (ORDERS + 1) as f64 + ROUNDING).floor() as usize
    }
}

/// A stretch of a series in which nothing changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Index of its first value.
    pub from: usize,
    /// Index after its last.
    pub to: usize,
    /// Mean of its values, as far as they are finite.
    pub mean: f64,
}

impl Level {
    /// The levels of a series, given where each but the first begins.
    pub fn all(values: &[f64], begins: &[usize]) -> Vec<Level> {
        let ends = begins.iter().copied().chain([values.len()]);
        let level = |(from, to): (usize, usize)| {
            let finite: Vec<f64> =
                values[from..to].iter().copied().filter(|value| value.is_finite()).collect();
            Level { from, to, mean: finite.iter().sum::<f64>() / finite.len() as f64 }
        };
        [0].into_iter().chain(begins.iter().copied()).zip(ends).map(level).collect()
    }
}

/// Where new levels begin in a series: rising indices, that of the first level left out.
///
/// Values that are not finite are passed over. A change needs at least `rules.shortest` values on either side, so the last
/// value alone never is one.
pub fn levels(values: &[f64], rules: LevelRules) -> Vec<usize> {
    let rules = LevelRules { shortest: rules.shortest.max(1), ..rules };
    let known: Vec<usize> = (0..values.len()).filter(|i| values[*i].is_finite()).collect();
    let finite: Vec<f64> = known.iter().map(|i| values[*i]).collect();
    let mut begins = Vec::new();
    let mut open = vec![(0, finite.len())];
    while let Some((from, to)) = open.pop() {
        let stretch = Stretch::of(&finite[from..to], rules);
        let Some(cuts) = stretch.and_then(|stretch| stretch.cuts(rules)) else { continue };
        let cuts: Vec<usize> = cuts.into_iter().map(|cut| from + cut).collect();
        let ends = cuts.iter().copied().chain([to]);
        open.extend([from].into_iter().chain(cuts.iter().copied()).zip(ends));
        begins.extend(cuts);
    }
    order::sort(&mut begins);
    confirmed(&finite, begins, rules).into_iter().map(|begin| known[begin]).collect()
}

/// The changes that also stand alone, between the levels beside them: the least certain goes first, and makes one level
/// of both.
fn confirmed(values: &[f64], mut begins: Vec<usize>, rules: LevelRules) -> Vec<usize> {
    loop {
        let ends = |i: usize| {
            let before = if i > 0 { begins[i - 1] } else { 0 };
            before..begins.get(i + 1).copied().unwrap_or(values.len())
        };
        let luck = |i: usize| {
            let stretch = Stretch::of(&values[ends(i)], rules);
            stretch.map_or(ORDERS, |stretch| stretch.count_as_good(ORDERS, largest_step(rules)))
        };
        let least = (0..begins.len()).map(|i| (luck(i), i)).max();
        match least.filter(|(luck, _)| *luck > rules.allowed()) {
            Some((_, i)) => begins.remove(i),
            None => return begins,
        };
    }
}

/// The scores of some consecutive values, with mean zero and variance one.
struct Stretch {
    scores: Vec<f64>,
}

impl Stretch {
    /// None when there is no room for two levels, or all values are equal.
    fn of(values: &[f64], rules: LevelRules) -> Option<Self> {
        if values.len() < 2 * rules.shortest {
            return None;
        }
        let mut scores = normal_scores(values);
        let count = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let squares = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>();
        let deviation = (squares / (count - 1.0)).sqrt();
        scores.iter_mut().for_each(|score| *score = (*score - mean) / deviation);
        (deviation > 0.0).then_some(Stretch { scores })
    }

    /// Where the best partition cuts, if it is more than luck.
    fn cuts(self, rules: LevelRules) -> Option<Vec<usize>> {
        let mut table = Table::of(self.scores.len(), rules.shortest);
        table.fill(&self.scores);
        let cuts = table.cuts();
        let luck = self.count_as_good(rules.allowed(), |scores| table.fill(scores));
        (luck <= rules.allowed()).then_some(cuts)
    }

    /// How many orders have as large a gain, that at hand included; beyond `most` nobody counts.
    fn count_as_good(mut self, most: usize, mut gain: impl FnMut(&[f64]) -> f64) -> usize {
        let own = gain(&self.scores) - ROUNDING;
        let mut draw = SplitMix(SEED);
        let mut as_good = 1;
        for _ in 0..ORDERS {
            if as_good > most {
                break;
            }
            shuffle(&mut self.scores, &mut draw);
            as_good += usize::from(gain(&self.scores) >= own);
        }
        as_good
    }
}

/// Gives the squares that the best single step explains.
fn largest_step(rules: LevelRules) -> impl Fn(&[f64]) -> f64 {
    move |scores| {
        let count = scores.len();
        let mut sum = 0.0;
        let mut largest: f64 = 0.0;
        for (i, score) in scores[..count - rules.shortest].iter().enumerate() {
            sum += score;
            let before = i + 1;
            if before >= rules.shortest {
                let share = count as f64 / (before * (count - before)) as f64;
                largest = largest.max(sum * sum * share);
            }
        }
        largest
    }
}

/// The best partitions of all beginnings of a stretch (Bellman 1961), in memory that is used again for every order.
struct Table {
    shortest: usize,
    /// What one more level costs.
    price: f64,
    /// One over the number of values, by their number.
    shares: Vec<f64>,
    /// Sums of the first scores, by their number.
    sums: Vec<f64>,
    /// Gain of the best partition of the first values, by their number.
    gains: Vec<f64>,
}

impl Table {
    fn of(count: usize, shortest: usize) -> Self {
        let shares = (0..=count).map(|length| 1.0 / length as f64).collect();
        let price = (count as f64).ln();
        Table { shortest, price, shares, sums: vec![0.0; count + 1], gains: vec![0.0; count + 1] }
    }

    /// Gain of the best partition with at least two levels: the squares that its means explain, less the price of all
    /// levels beyond the second.
    fn fill(&mut self, scores: &[f64]) -> f64 {
        let count = scores.len();
        for (i, score) in scores.iter().enumerate() {
            self.sums[i + 1] = self.sums[i] + score;
        }
        self.gains[0] = 2.0 * self.price;
        self.gains[1..].fill(f64::NEG_INFINITY);
        for end in self.shortest..count {
            self.gains[end] = self.best(0, end);
        }
        self.best(self.shortest, count)
    }

    /// Gain of the best partition of the first `end` values whose last level begins at `first` or later.
    fn best(&self, first: usize, end: usize) -> f64 {
        // Slices of one length instead of indices: this is the innermost loop, and so it is vectorised.
        let begins = first..end - self.shortest + 1;
        let (sums, gains) = (&self.sums[begins.clone()], &self.gains[begins]);
        let shares = self.shares[self.shortest..=end - first].iter().rev();
        let mut best = f64::NEG_INFINITY;
        for ((sum, gain), share) in sums.iter().zip(gains).zip(shares) {
            let sum = self.sums[end] - sum;
            let gain = gain + sum * sum * share;
            best = if gain > best { gain } else { best };
        }
        best - self.price
    }

    /// Gain of the best partition of the first `end` values with a last level from `begin` on.
    fn gain(&self, begin: usize, end: usize) -> f64 {
        let sum = self.sums[end] - self.sums[begin];
        self.gains[begin] + sum * sum * self.shares[end - begin] - self.price
    }

    /// Where the best partition cuts, rising.
    fn cuts(&self) -> Vec<usize> {
        let mut cuts = Vec::new();
        let (mut first, mut end) = (self.shortest, self.sums.len() - 1);
        loop {
            let begins = first..=end - self.shortest;
            let best = begins.max_by(|a, b| self.gain(*a, end).total_cmp(&self.gain(*b, end)));
            match best {
                Some(cut) if cut > 0 => cuts.push(cut),
                _ => break,
            }
            (first, end) = (0, cuts[cuts.len() - 1]);
        }
        cuts.reverse();
        cuts
    }
}

/// Normal scores of the ranks, cut at both ends; equal values share the middle of their ranks.
fn normal_scores(values: &[f64]) -> Vec<f64> {
    let order = order::positions(values.len(), &|a, b| values[a].total_cmp(&values[b]));
    let mut scores = vec![0.0; values.len()];
    let mut below = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = below as f64 + (equal.len() as f64 + 1.0) / 2.0;
        let score = Normal::standard().inverse_cdf(rank / (values.len() as f64 + 1.0));
        equal.iter().for_each(|i| scores[*i] = score.clamp(-FURTHEST_SCORE, FURTHEST_SCORE));
        below += equal.len();
    }
    scores
}

/// A random order, each as likely as any other (Fisher and Yates 1938).
fn shuffle(scores: &mut [f64], draw: &mut SplitMix) {
    for last in (1..scores.len()).rev() {
        scores.swap(last, draw.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{normal, with_seed};

    /// Share of simulated series of which something holds.
    fn share(
        count: u64,
        series: impl Fn() -> Vec<f64>,
        holds: impl Fn(&[f64], &[usize]) -> bool,
    ) -> f64 {
        share_from(0x5e81_e500, count, series, holds)
    }

    /// The same for series of other seeds.
    fn share_from(
        first: u64,
        count: u64,
        series: impl Fn() -> Vec<f64>,
        holds: impl Fn(&[f64], &[usize]) -> bool,
    ) -> f64 {
        let once = |seed: u64| {
            let values = with_seed(first + seed, &series);
            holds(&values, &levels(&values, LevelRules::default()))
        };
        (0..count).filter(|seed| once(*seed)).count() as f64 / count as f64
    }

    fn any(_: &[f64], found: &[usize]) -> bool {
        !found.is_empty()
    }

    fn gauss(count: usize) -> Vec<f64> {
        normal(count)
    }

    /// Student's t with three degrees of freedom.
    fn heavy(count: usize) -> Vec<f64> {
        let (above, below): (Vec<f64>, Vec<f64>) = (normal(count), normal(3 * count));
        let length = |three: &[f64]| (three.iter().map(|z| z * z).sum::<f64>() / 3.0).sqrt();
        above.iter().zip(below.chunks(3)).map(|(z, three)| z / length(three)).collect()
    }

    /// Whether every place has a change within two places of it.
    fn is_near(found: &[usize], places: &[usize]) -> bool {
        places.iter().all(|place| found.iter().any(|begin| begin.abs_diff(*place) <= 2))
    }

    /// Noise on levels of so many values and such heights.
    fn steps(noise: Vec<f64>, heights: &[(usize, f64)]) -> Vec<f64> {
        let heights = heights.iter().flat_map(|(count, height)| vec![*height; *count]);
        noise.iter().zip(heights).map(|(noise, height)| noise + height).collect()
    }

    #[test]
    fn noise_has_one_level_in_at_least_nineteen_series_of_twenty() {
        noise_has_one_level(&[(3, 200), (8, 600), (12, 600), (30, 600)]);
    }

    #[test]
    #[ignore = "slow: series of hundreds of values"]
    fn noise_of_hundreds_of_values_has_one_level() {
        noise_has_one_level(&[(100, 1000), (300, 600)]);
    }

    fn noise_has_one_level(series: &[(usize, u64)]) {
        for &(count, runs) in series {
            for (name, noise) in [("normal", gauss as fn(usize) -> _), ("heavy", heavy)] {
                let alarms = share(runs, || noise(count), any);
                assert!(alarms <= 0.05, "{count} {name}: {alarms}");
            }
        }
    }

    #[test]
    fn an_outlier_is_no_level_wherever_it_lies() {
        an_outlier_is_no_level(&[(12, 600)]);
    }

    #[test]
    #[ignore = "slow: series of hundreds of values"]
    fn an_outlier_of_hundreds_of_values_is_no_level() {
        an_outlier_is_no_level(&[(40, 400), (300, 200)]);
    }

    fn an_outlier_is_no_level(series: &[(usize, u64)]) {
        for &(count, runs) in series {
            for at in [0, 1, count / 2, count - 2, count - 1] {
                let stray = || {
                    let mut values = gauss(count);
                    values[at] = 40.0;
                    values
                };
                // Series of their own for every place: the same noise five times would be one test.
                let first = (count as u64) << 32 | (at as u64) << 16;
                let alarms = share_from(first, runs, stray, any);
                assert!(alarms <= 0.05, "{count} at {at}: {alarms}");
                let alone = |_: &[f64], found: &[usize]| {
                    found.contains(&at) && (at + 1 == count || found.contains(&(at + 1)))
                };
                let alone = share(runs, stray, alone);
                assert_eq!(alone, 0.0, "one value is no level: {count} at {at}");
            }
        }
    }

    #[test]
    fn a_step_of_three_deviations_is_found_with_six_values_on_either_side() {
        for (before, after) in [(6, 6), (6, 24), (60, 6), (15, 15)] {
            let heights = [(before, 0.0), (after, 3.0)];
            let stepped = || steps(gauss(before + after), &heights);
            let found = share(400, stepped, |_, found| is_near(found, &[before]));
            assert!(found >= 0.9, "{before} and {after}: {found}");
        }
    }

    #[test]
    fn several_steps_are_found_up_and_down() {
        let stairs = [(10, 0.0), (10, 3.0), (10, 6.0)];
        let back = [(15, 0.0), (15, -3.0), (15, 0.0)];
        let teeth = [(10, 0.0), (10, 3.0), (10, 0.0), (10, 3.0)];
        for heights in [&stairs[..], &back, &teeth] {
            let count = heights.iter().map(|(count, _)| count).sum();
            let places: Vec<usize> = (1..heights.len()).map(|i| i * heights[0].0).collect();
            let stepped = || steps(gauss(count), heights);
            let found = share(300, stepped, |_, found| is_near(found, &places));
            assert!(found >= 0.9, "{heights:?}: {found}");
            let alone = |_: &[f64], found: &[usize]| found.len() == places.len();
            let alone = share(300, stepped, alone);
            assert!(alone >= 0.85, "no more than there are, {heights:?}: {alone}");
        }
    }

    #[test]
    fn the_last_value_alone_is_no_change_and_four_are() {
        let found = |news: usize| {
            let heights = [(20, 0.0), (news, 30.0)];
            let is_found = |seed: &u64| {
                let history = with_seed(*seed, || steps(gauss(20 + news), &heights));
                levels(&history, LevelRules::default()).iter().any(|at| (19..=21).contains(at))
            };
            (0..20).filter(is_found).count()
        };
        assert!(found(1) <= 2, "{} of 20 by chance", found(1));
        assert!(found(4) >= 18, "{} of 20", found(4));
    }

    #[test]
    fn values_that_are_none_are_passed_over_and_nothing_panics() {
        let rules = LevelRules::default();
        assert!(levels(&[], rules).is_empty() && levels(&[1.0], rules).is_empty());
        assert!(levels(&[f64::NAN; 9], rules).is_empty() && levels(&[2.5; 40], rules).is_empty());
        let mut values = with_seed(3, || steps(gauss(20), &[(10, 0.0), (10, 9.0)]));
        values.insert(4, f64::NAN);
        values.insert(11, f64::INFINITY);
        let begins = levels(&values, rules);
        assert_eq!(begins, [12]);
        let found = Level::all(&values, &begins);
        assert_eq!([found[0].from, found[0].to, found[1].from, found[1].to], [0, 12, 12, 22]);
        assert!(found[0].mean.abs() < 1.0 && (found[1].mean - 9.0).abs() < 1.0, "{found:?}");
        for shortest in [0, 1, 30] {
            levels(&values, LevelRules { shortest, false_alarms: 1.0 });
        }
    }

    /// The score of the middle of three is zero, and the others are at the quartiles of the normal distribution.
    #[test]
    fn scores_are_those_of_ranks() {
        let scores = normal_scores(&[5.0, -1e9, 7.0]);
        for (score, expected) in
            scores.iter().zip([0.0, -0.674_489_750_196_08, 0.674_489_750_196_08])
        {
            assert!((score - expected).abs() < 1e-9, "{scores:?}");
        }
        let tied = normal_scores(&[1.0, 1.0, 1.0, 2.0]);
        assert!(tied[0] == tied[2] && tied[0] < 0.0 && tied[3] > 0.0, "{tied:?}");
    }
}
