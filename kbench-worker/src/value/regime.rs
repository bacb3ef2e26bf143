//! Regimes: kinds of data on which kernels go wrong that are right on random numbers.
//!
//! The generators of [`random`](super::random) follow the regime that the runtime has opened on their thread. Numbers of
//! `uniform` and `normal` may be any that their type has; those of a range of the user's stay in it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::generator::{Generator, RUN};

/// What is special about the numbers of a kernel's inputs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// Nothing: as `inputs` says.
    #[default]
    Usual,
    /// One number throughout.
    Constant,
    /// Zeros.
    Zeros,
    /// As usual, and other numbers where `inputs` makes zeros.
    Filled,
    /// No negative number.
    Positive,
    /// No positive number.
    Negative,
    /// Few different numbers, each many times.
    Ties,
    /// Ascending numbers; of many, two are exchanged.
    Sorted,
    /// Descending numbers, over eight times the usual range.
    Reversed,
    /// Fifteen of sixteen numbers are zero.
    Sparse,
    /// The ends of the range, numbers beside them, and numbers around zero.
    Ends,
    /// 64 more than usual.
    Shifted,
    /// 256 less than usual.
    Lowered,
    /// 256 times as large as usual.
    Large,
    /// So large that squares overflow; half of the arrays have negative ones alone.
    Huge,
    /// So small that squares underflow.
    Tiny,
    /// Below the smallest normal number.
    Denormal,
    /// One of sixteen numbers is infinite.
    Infinite,
    /// One of sixteen is not a number.
    Nan,
}

/// Of an array, one number in so many is special in sparse data.
const SPARSE: usize = 16;

/// How much larger numbers are than usual, and how much smaller: exponentials of these are zero.
const RISE: f64 = 64.0;
const FALL: f64 = 256.0;

/// In so many ascending numbers, two are exchanged.
const MANY_SORTED: usize = 64;

/// How many times as large.
const SCALE: f64 = 256.0;

/// How many times as wide descending numbers lie as usual ones.
const WIDTH: f64 = 8.0;

/// How many numbers have 64 bits, and half of them.
const WORDS: f64 = 18_446_744_073_709_551_616.0;
const HALF_WORDS: f64 = WORDS / 2.0;

impl Regime {
    /// Those in which every kernel is checked, unless it says otherwise.
    pub const AUTOMATIC: [Regime; 15] = [
        Regime::Constant,
        Regime::Zeros,
        Regime::Filled,
        Regime::Positive,
        Regime::Negative,
        Regime::Ties,
        Regime::Sorted,
        Regime::Reversed,
        Regime::Sparse,
        Regime::Ends,
        Regime::Shifted,
        Regime::Lowered,
        Regime::Large,
        Regime::Huge,
        Regime::Tiny,
    ];

    /// Those in which a kernel is checked that asks for them.
    pub const ON_REQUEST: [Regime; 3] = [Regime::Denormal, Regime::Infinite, Regime::Nan];

    /// Its name in the attribute, on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Regime::Usual => "usual",
            Regime::Constant => "constant",
            Regime::Zeros => "zeros",
            Regime::Filled => "filled",
            Regime::Positive => "positive",
            Regime::Negative => "negative",
            Regime::Ties => "ties",
            Regime::Sorted => "sorted",
            Regime::Reversed => "reversed",
            Regime::Sparse => "sparse",
            Regime::Ends => "ends",
            Regime::Shifted => "shifted",
            Regime::Lowered => "lowered",
            Regime::Large => "large",
            Regime::Huge => "huge",
            Regime::Tiny => "tiny",
            Regime::Denormal => "denormal",
            Regime::Infinite => "infinite",
            Regime::Nan => "nan",
        }
    }

    /// The regime of a name.
    pub fn of_name(name: &str) -> Option<Regime> {
        let mut all = Regime::AUTOMATIC.into_iter().chain(Regime::ON_REQUEST);
        all.find(|regime| regime.name() == name)
    }

    /// What its numbers are, in words.
    pub fn description(self) -> &'static str {
        match self {
            Regime::Usual => "numbers as `inputs` makes them",
            Regime::Constant => "the same number throughout",
            Regime::Zeros => "zeros",
            Regime::Filled => "other numbers where `inputs` makes zeros",
            Regime::Positive => "no negative number",
            Regime::Negative => "no positive number",
            Regime::Ties => "few different numbers",
            Regime::Sorted => "ascending numbers, but for two where there are many",
            Regime::Reversed => "descending numbers, eight times as large as usual",
            Regime::Sparse => "mostly zeros",
            Regime::Ends => "the ends of the range",
            Regime::Shifted => "numbers around 64",
            Regime::Lowered => "numbers around -256",
            Regime::Large => "numbers 256 times as large",
            Regime::Huge => "numbers whose squares overflow",
            Regime::Tiny => "numbers whose squares underflow",
            Regime::Denormal => "numbers below the smallest normal one",
            Regime::Infinite => "some infinite numbers",
            Regime::Nan => "some that are not a number",
        }
    }

    /// The largest result that can be expected of a type with such a round-off: where squares overflow, larger ones are what is
    /// left of sums of overflowed products.
    pub(crate) fn largest_result(self, roundoff: f64) -> f64 {
        let [_, largest] = limits(roundoff);
        if self == Regime::Huge { 64.0 * largest.sqrt() } else { largest }
    }

    /// Whether a kernel that computes intermediate results in its own type may fail here: the squares of its inputs are no
    /// numbers of that type.
    pub(crate) fn is_extreme(self) -> bool {
        matches!(self, Regime::Huge | Regime::Tiny | Regime::Denormal)
    }
}

/// The smallest normal number and the largest number of a type with a round-off; those of `f64` where the type is unknown.
pub(crate) fn limits(roundoff: f64) -> [f64; 2] {
    /// Of `f16`, `bf16`, `f32`, and the types of eight bits.
    const KNOWN: [(f64, [f64; 2]); 5] = [
        (4.882_812_5e-4, [6.103_515_625e-5, 65_504.0]),
        (3.906_25e-3, [f32::MIN_POSITIVE as f64, 3.389_531_389_251_535_5e38]),
        (5.960_464_477_539_063e-8, [f32::MIN_POSITIVE as f64, f32::MAX as f64]),
        (0.0625, [0.015_625, 448.0]),
        (0.125, [6.103_515_625e-5, 57_344.0]),
    ];
    let known = KNOWN.iter().find(|(known, _)| *known == roundoff);
    known.map_or([f64::MIN_POSITIVE, f64::MAX], |(_, limits)| *limits)
}

/// Where the numbers of an array lie.
#[derive(Clone, Debug)]
pub(super) struct Domain {
    /// From the smallest to the largest.
    pub(super) bounds: Range<f64>,
    /// The rounding error of their type, 0 for whole numbers.
    pub(super) roundoff: f64,
    /// Whether any number of the type will do.
    pub(super) is_free: bool,
}

impl Domain {
    fn is_whole(&self) -> bool {
        self.roundoff == 0.0
    }

    fn has_zero(&self) -> bool {
        self.is_free || self.bounds.contains(&0.0)
    }

    /// A number of the domain near another.
    fn within(&self, number: f64) -> f64 {
        let Range { start, end } = self.bounds;
        if self.is_whole() {
            return number.floor().clamp(start, (end - 1.0).max(start));
        }
        // The last number before the end, as far as the type can tell them apart.
        number.clamp(start, start + (end - start) * (1.0 - 2.0 * self.roundoff))
    }

    /// The same with another sign: the negative part of the bounds is laid over the positive one, or the other way round.
    fn signed(&self, number: f64, positive: bool) -> f64 {
        let Range { start, end } = self.bounds;
        if number == 0.0 || (number > 0.0) == positive {
            return number;
        }
        if self.is_free {
            return -number;
        }
        match positive {
            true if end > 0.0 => self.within(number * (end / start)),
            false if start < 0.0 => self.within(number * (start / end)),
            _ => number,
        }
    }

    /// A number by its place in the domain, from 0 to 1.
    fn at(&self, share: f64) -> f64 {
        let Range { start, end } = self.bounds;
        // Numbers of `normal` have no bounds: most are within two.
        match end.is_finite() {
            true => self.within(start + (end - start) * share),
            false => 4.0 * share - 2.0,
        }
    }

    /// Numbers at which mistakes show, where there are bounds.
    fn ends(&self) -> Vec<f64> {
        if self.is_free {
            return Vec::new();
        }
        let Range { start, end } = self.bounds;
        if !self.is_whole() {
            return vec![start, self.within(end), self.within((start + end) / 2.0)];
        }
        // Where the type has more digits than `f64`, the last number below the end; the end of such a type becomes its last number.
        let last = match (start, end) {
            _ if end - 1.0 < end => end - 1.0,
            (0.0, WORDS) => return vec![0.0, 1.0, end.next_down(), WORDS],
            (_, HALF_WORDS) if start == -HALF_WORDS => {
                return vec![start, -1.0, 0.0, 1.0, end.next_down(), HALF_WORDS];
            }
            _ => end.next_down(),
        };
        let numbers = [start, start + 1.0, -1.0, 0.0, 1.0, last - 1.0, last];
        numbers.into_iter().filter(|number| self.bounds.contains(number)).collect()
    }

    /// How many times as large as usual the numbers of a regime are.
    fn scale(&self, regime: Regime) -> f64 {
        let [smallest, largest] = limits(self.roundoff);
        match regime {
            Regime::Large => SCALE,
            Regime::Huge => 4.0 * largest.sqrt(),
            Regime::Tiny => smallest.sqrt() / 4.0,
            Regime::Denormal => smallest / 4.0,
            _ => 1.0,
        }
    }
}

/// Makes the numbers of a run, given its number.
pub(super) trait Values: Fn(usize, &mut [f64; RUN]) + Sync {}

impl<F: Fn(usize, &mut [f64; RUN]) + Sync> Values for F {}

/// The numbers of a regime, from the usual ones of an array of `n`.
pub(super) fn in_regime(
    regime: Regime,
    domain: Domain,
    n: usize,
    generator: Generator,
    usual: impl Values,
) -> impl Values {
    let first = match regime {
        Regime::Constant => {
            let mut values = [0.0; RUN];
            usual(0, &mut values);
            values[0]
        }
        _ => 0.0,
    };
    let (ends, scale) = (domain.ends(), domain.scale(regime));
    // Single arrays have either sign at one size and the other at the next.
    let is_negative = regime == Regime::Huge && (generator.sequence() + n as u64).is_multiple_of(2);
    // At odd places, so that they are not the first ones of vectors or tiles.
    let exchanged = match regime {
        Regime::Sorted if n >= MANY_SORTED => [(n / 8 * 5) | 1, (n / 8 * 7) | 1],
        _ => [n; 2],
    };
    move |run, values| {
        usual(run, values);
        let start = run * RUN;
        let each = |values: &mut [f64; RUN], change: &dyn Fn(usize, f64) -> f64| {
            for (i, value) in values.iter_mut().enumerate() {
                *value = change(start + i, *value);
            }
        };
        let units = |generator: Generator| {
            let mut units = [0.0; RUN];
            generator.units(run, &mut units);
            units
        };
        // One of sixteen, without a pattern that a tile or a vector would hide.
        let is_special = |i: usize| (i.wrapping_mul(0x9e37_79b1) >> 8).is_multiple_of(SPARSE);
        match regime {
            Regime::Usual => {}
            Regime::Constant => values.fill(first),
            Regime::Zeros if domain.has_zero() => values.fill(0.0),
            Regime::Positive => each(values, &|_, value| domain.signed(value, true)),
            Regime::Negative => each(values, &|_, value| domain.signed(value, false)),
            Regime::Ties => each(values, &|_, value| {
                let Range { start, end } = domain.bounds;
                match end.is_finite() {
                    true => domain.at(((value - start) / (end - start) * 4.0).floor() / 4.0),
                    false => value.round().clamp(-1.0, 1.0),
                }
            }),
            Regime::Sorted | Regime::Reversed => {
                let units = units(generator);
                each(values, &|i, _| {
                    let place = match exchanged {
                        [one, other] | [other, one] if i == one => other,
                        _ => i,
                    };
                    let share = (place as f64 + units[i - start]) / n.max(1) as f64;
                    match regime {
                        Regime::Sorted => domain.at(share),
                        _ if domain.is_free => WIDTH * domain.at(1.0 - share),
                        _ => domain.at(1.0 - share),
                    }
                });
            }
            Regime::Sparse if domain.has_zero() => {
                each(values, &|i, value| if is_special(i) { value } else { 0.0 });
            }
            Regime::Ends if !domain.is_free && !ends.is_empty() => {
                let units = units(generator);
                each(values, &|i, _| ends[(units[i - start] * ends.len() as f64) as usize]);
            }
            Regime::Shifted if domain.is_free => each(values, &|_, value| value + RISE),
            Regime::Lowered if domain.is_free => each(values, &|_, value| value - FALL),
            Regime::Huge if domain.is_free && is_negative => {
                each(values, &|_, value| -value.abs() * scale);
            }
            Regime::Large | Regime::Huge | Regime::Tiny | Regime::Denormal if domain.is_free => {
                each(values, &|_, value| value * scale);
            }
            Regime::Infinite if domain.is_free => each(values, &|i, value| match is_special(i) {
                true => f64::INFINITY.copysign(value),
                false => value,
            }),
            Regime::Nan if domain.is_free => {
                each(values, &|i, value| if is_special(i) { f64::NAN } else { value });
            }
            _ => {}
        }
    }
}
