//! Data for kernels: the same seed gives the same bits on every machine.
//!
//! The functions of this module are called inside `inputs = |n| ...`. They draw from the generator that the runtime has
//! opened on this thread with the run's recorded seed ([`with_seed`]); outside of it they use a fixed seed. Every call
//! takes its own stream, so that adding one array does not change the others that come before it.

use std::cell::Cell;
use std::ops::Range;

use super::generator::{Generator, RUN};
use super::regime::{Domain, Regime, Values, in_regime};
use super::{Element, F8E4M3, F8E5M2};

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State { draw: Draw::of(0x6b62_656e_6368), next: 0 }) };
}

/// What the next stream is made from.
#[derive(Clone, Copy)]
struct State {
    draw: Draw,
    next: u64,
}

/// Which numbers are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// The same seed gives the same numbers.
    pub seed: u64,
    /// What numbers they are.
    pub regime: Regime,
    /// Numbers of every array that are drawn with another seed.
    pub others: Option<Others>,
}

/// Numbers that are drawn with another seed than those around them.
#[derive(Clone, Copy, Debug)]
pub struct Others {
    /// Which ones.
    pub places: Places,
    /// Their seed.
    pub seed: u64,
}

/// Some places of an array.
#[derive(Clone, Copy, Debug)]
pub enum Places {
    /// The first and the last one.
    Ends,
    /// One far from both ends, at an odd index.
    Inner,
}

impl Places {
    fn of(self, n: usize) -> [usize; 2] {
        let last = n.saturating_sub(1);
        match self {
            Places::Ends => [0, last],
            Places::Inner => [((n / 8 * 5) | 1).min(last); 2],
        }
    }
}

impl Draw {
    /// The usual numbers of a seed.
    pub const fn of(seed: u64) -> Self {
        Draw { seed, regime: Regime::Usual, others: None }
    }
}

/// The random numbers of one array.
#[derive(Clone, Copy)]
struct Stream {
    generator: Generator,
    /// Those of some of its numbers, where they are others.
    others: Option<(Places, Generator)>,
    regime: Regime,
}

/// Runs `make` with the generator seeded by `seed`, and restores the former state afterwards, also after a panic.
pub fn with_seed<R>(seed: u64, make: impl FnOnce() -> R) -> R {
    drawn(Draw::of(seed), make)
}

/// The same with other numbers than the usual ones.
pub(crate) fn drawn<R>(draw: Draw, make: impl FnOnce() -> R) -> R {
    struct Restore(State);
    impl Drop for Restore {
        fn drop(&mut self) {
            STATE.set(self.0);
        }
    }
    let _restore = Restore(STATE.replace(State { draw, next: 0 }));
    make()
}

/// The next stream of what this thread draws.
fn next_stream() -> Stream {
    let State { draw, next } = STATE.get();
    STATE.set(State { draw, next: next + 1 });
    let generator = |seed| Generator::new(seed, next);
    let others = draw.others.map(|others| (others.places, generator(others.seed)));
    // Where zeros are other numbers, these are as usual.
    let regime = if draw.regime == Regime::Filled { Regime::Usual } else { draw.regime };
    Stream { generator: generator(draw.seed), others, regime }
}

/// An array of random numbers; see [`uniform`], [`normal`], [`range`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of numbers",
    note = "`uniform(n)` and the like make a `Vec`; `inputs` gives one value for each parameter, in parentheses"
)]
pub trait Distribution: Sized {
    /// What [`uniform`] covers.
    const RANGE: Range<f64>;
    /// The relative rounding error of the numbers, 0 where there are only whole ones.
    const ROUNDOFF: f64;

    /// The values of `0..n`.
    fn draw(n: usize, values: DrawnValues<'_>) -> Self;

    /// The values of `0..n` from random bits, for exact types that have more of them than an `f64`.
    fn draw_bits(n: usize, bits: DrawnBits<'_>) -> Option<Self> {
        let _ = (n, bits);
        None
    }
}

/// Computes the values of a run, given its number.
pub type DrawnValues<'a> = &'a (dyn Fn(usize, &mut [f64; RUN]) + Sync);

/// The same as random bits.
pub type DrawnBits<'a> = &'a (dyn Fn(usize, &mut [u64; RUN]) + Sync);

impl<T: Element> Distribution for Vec<T> {
    const RANGE: Range<f64> = T::RANGE;
    const ROUNDOFF: f64 = T::ROUNDOFF;

    fn draw(n: usize, values: DrawnValues<'_>) -> Self {
        draw_on(cores(), n, &|run, drawn: &mut [T]| {
            let mut numbers = [0.0; RUN];
            values(run, &mut numbers);
            T::fill(drawn, &numbers);
        })
    }

    fn draw_bits(n: usize, bits: DrawnBits<'_>) -> Option<Self> {
        let is_wide = T::ROUNDOFF == 0.0 && size_of::<T>() == size_of::<u64>();
        if !is_wide || T::from_bits(0).is_none() {
            return None;
        }
        Some(draw_on(cores(), n, &|run, drawn: &mut [T]| {
            let mut words = [0; RUN];
            bits(run, &mut words);
            for (value, word) in drawn.iter_mut().zip(words) {
                *value = T::from_bits(word).unwrap_or(*value);
            }
        }))
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Makes the values of a run, given its number; the last may be shorter.
type Fill<'a, T> = &'a (dyn Fn(usize, &mut [T]) + Sync);

/// The values of `0..n`, made by as many threads when they are many.
fn draw_on<T: Element>(cores: usize, n: usize, fill: Fill<'_, T>) -> Vec<T> {
    let mut drawn = constant(n, T::from_f64(0.0));
    if n < MANY || cores < 2 {
        fill_runs(&mut drawn, 0, fill);
        return drawn;
    }
    let runs = n.div_ceil(RUN).div_ceil(cores);
    let mut tasks: Vec<Task<'_>> = Vec::new();
    for (i, drawn) in drawn.chunks_mut(runs * RUN).enumerate() {
        tasks.push(Box::new(move || fill_runs(drawn, i * runs, fill)));
    }
    run_all(tasks);
    drawn
}

/// Makes the values of some runs, of which the last may be shorter.
fn fill_runs<T: Element>(drawn: &mut [T], first: usize, fill: Fill<'_, T>) {
    for (i, drawn) in drawn.chunks_mut(RUN).enumerate() {
        fill(first + i, drawn);
    }
}

type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs every task on a thread of its own; a panic of one goes on here.
fn run_all(tasks: Vec<Task<'_>>) {
    std::thread::scope(|scope| {
        let threads: Vec<_> = tasks.into_iter().map(|task| scope.spawn(task)).collect();
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// Panics where there is no memory for `n` values: that costs a row, and without asking first it would be the process.
fn assert_room(n: usize, size: usize) {
    let found = Vec::<u8>::new().try_reserve_exact(n.saturating_mul(size));
    assert!(found.is_ok(), "there is no memory for {n} values of {size} bytes");
}

/// From so many values on, all cores make them.
const MANY: usize = 1 << 18;

/// The numbers of an array in the regime of its stream, from the usual ones of a generator.
fn draw<D: Distribution, V: Values>(
    n: usize,
    Stream { generator, others, regime }: Stream,
    domain: Domain,
    usual: impl Fn(Generator) -> V,
) -> D {
    let values = usual(generator);
    match (regime, others) {
        (Regime::Usual, None) => D::draw(n, &values),
        (Regime::Usual, Some((places, others))) => {
            D::draw(n, &with_others(places.of(n), values, usual(others)))
        }
        (regime, _) => D::draw(n, &in_regime(regime, domain, n, generator, values)),
    }
}

/// Numbers of which some are others.
fn with_others(places: [usize; 2], values: impl Values, others: impl Values) -> impl Values {
    move |run, numbers: &mut [f64; RUN]| {
        values(run, numbers);
        for place in places.into_iter().filter(|place| place / RUN == run) {
            let mut of_others = [0.0; RUN];
            others(run, &mut of_others);
            numbers[place % RUN] = of_others[place % RUN];
        }
    }
}

/// `n` values, uniform in [-1, 1); of integers, in the whole range of their type ([`integers`] has a range of your own).
pub fn uniform<D: Distribution>(n: usize) -> D {
    let (stream, bounds, roundoff) = (next_stream(), D::RANGE, D::ROUNDOFF);
    let values = |generator| uniform_values(D::RANGE, generator);
    if roundoff > 0.0 {
        return draw(n, stream, Domain { bounds, roundoff, is_free: true }, values);
    }
    let Stream { generator, others, regime } = stream;
    let is_usual = regime == Regime::Usual && others.is_none();
    let all_bits = || D::draw_bits(n, &|run, bits| generator.bits(run, bits));
    let drawn = if is_usual { all_bits() } else { None };
    drawn.unwrap_or_else(|| {
        let domain = Domain { bounds, roundoff, is_free: false };
        draw(n, stream, domain, |generator| {
            let values = values(generator);
            move |run, numbers: &mut [f64; RUN]| {
                values(run, numbers);
                numbers.iter_mut().for_each(|number| *number = number.floor());
            }
        })
    })
}

/// `n` values, uniform in a range. Integers are cut off at the point: for these, [`integers`] says what is meant.
pub fn range<D: Distribution>(n: usize, range: Range<f64>) -> D {
    let stream = next_stream();
    let domain = Domain { bounds: range.clone(), roundoff: D::ROUNDOFF, is_free: false };
    draw(n, stream, domain, |generator| uniform_values(range.clone(), generator))
}

fn uniform_values(range: Range<f64>, generator: Generator) -> impl Values {
    let width = range.end - range.start;
    move |run, values: &mut [f64; RUN]| {
        generator.units(run, values);
        values.iter_mut().for_each(|value| *value = range.start + width * *value);
    }
}

/// `n` values from the standard normal distribution; of integers, around the middle of the range of their type, with an eighth
/// of it as standard deviation.
pub fn normal<D: Distribution>(n: usize) -> D {
    let (stream, bounds, roundoff) = (next_stream(), D::RANGE, D::ROUNDOFF);
    let normals =
        |generator: Generator| move |run, values: &mut [f64; RUN]| generator.normals(run, values);
    if roundoff > 0.0 {
        let bounds = f64::NEG_INFINITY..f64::INFINITY;
        return draw(n, stream, Domain { bounds, roundoff, is_free: true }, normals);
    }
    let (middle, deviation) =
        ((bounds.start + bounds.end) / 2.0, (bounds.end - bounds.start) / 8.0);
    let domain = Domain { bounds: bounds.clone(), roundoff, is_free: false };
    draw(n, stream, domain, |generator| {
        let (normals, lowest, highest) = (normals(generator), bounds.start, bounds.end - 1.0);
        move |run, values: &mut [f64; RUN]| {
            normals(run, values);
            let whole = |normal: f64| (middle + deviation * normal).floor().clamp(lowest, highest);
            values.iter_mut().for_each(|value| *value = whole(*value));
        }
    })
}

/// `n` integers, uniform in `lo..hi`.
///
/// # Panics
/// If the range is empty.
pub fn integers<T: Element>(n: usize, range: Range<i64>) -> Vec<T> {
    assert!(!range.is_empty(), "integers(n, {range:?}): the range is empty");
    let (stream, bounds) = (next_stream(), range.start as f64..range.end as f64);
    let domain = Domain { bounds, roundoff: 0.0, is_free: false };
    draw(n, stream, domain, |generator| integer_values(range.clone(), generator))
}

fn integer_values(range: Range<i64>, generator: Generator) -> impl Values {
    let width = u128::from(range.end.wrapping_sub(range.start) as u64);
    move |run, values: &mut [f64; RUN]| {
        let mut bits = [0; RUN];
        generator.bits(run, &mut bits);
        for (value, bits) in values.iter_mut().zip(&bits) {
            let offset = (u128::from(*bits) * width) >> 64;
            *value = range.start.wrapping_add(offset as i64) as f64;
        }
    }
}

/// `n` zeros: the usual content of an output, which is poisoned before a check, or has other numbers there if the kernel reads it.
pub fn zeros<T: Element>(n: usize) -> Vec<T> {
    let Draw { seed, regime, .. } = STATE.get().draw;
    match regime {
        Regime::Filled => filled(n, seed),
        _ => constant(n, T::from_f64(0.0)),
    }
}

/// Small positive numbers in place of zeros. They have a sequence of their own, so that those of other arrays stay as they are.
fn filled<T: Element>(n: usize, seed: u64) -> Vec<T> {
    let generator = Generator::new(seed, u64::MAX);
    <Vec<T> as Distribution>::draw(n, &|run, numbers: &mut [f64; RUN]| {
        generator.units(run, numbers);
        for number in numbers {
            *number = if T::ROUNDOFF > 0.0 { 0.5 + *number } else { 1.0 + (3.0 * *number).floor() };
        }
    })
}

/// `n` times the same value.
pub fn constant<T: Element>(n: usize, value: T) -> Vec<T> {
    assert_room(n, size_of::<T>());
    vec![value; n]
}

/// What a parameter gets when the attribute has no `inputs`.
#[diagnostic::on_unimplemented(
    message = "there is no default input for `{Self}`",
    note = "say how to make it: `inputs = |n| (...)`, one value for each parameter"
)]
pub trait DefaultInput {
    /// Data for a size of `n`; never zeros.
    fn default_input(n: usize) -> Self;
}

impl<T: Element> DefaultInput for Vec<T> {
    fn default_input(n: usize) -> Self {
        if T::ROUNDOFF > 0.0 { uniform(n) } else { integers(n, 1..100) }
    }
}

macro_rules! default_scalar {
    ($($type:ty)*) => {$(
        impl DefaultInput for $type {
            fn default_input(_: usize) -> Self {
                default_number()
            }
        }
    )*};
}

/// What an array of one number would hold.
fn default_number<T: Element>() -> T {
    <Vec<T> as DefaultInput>::default_input(1)[0]
}

default_scalar! { f32 f64 half::f16 half::bf16 F8E4M3 F8E5M2 i8 i16 i32 i64 u8 u16 u32 u64 }

/// Data for a parameter when the attribute has no `inputs`: uniform floats, small positive integers.
pub fn default_input<T: DefaultInput>(n: usize) -> T {
    T::default_input(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bits_for_ever() {
        // Computed once by another program: a change of these values would silently change every recorded run.
        let (a, b): (Vec<f32>, Vec<f64>) = with_seed(42, || (uniform(2), normal(2)));
        assert_eq!(a.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), [0xbeab_e91e, 0xbf4e_a935]);
        for (value, expected) in b.iter().zip([-1.067_273_194_619, -0.850_157_910_194]) {
            assert!((value - expected).abs() < 1e-11, "{value}");
        }
    }

    #[test]
    fn all_cores_make_the_same_values_as_one() {
        let few: Vec<f32> = with_seed(5, || normal(1000));
        let many: Vec<f32> = with_seed(5, || normal(MANY + 7));
        assert_eq!((many.len(), &many[..1000]), (MANY + 7, &few[..]));
        let last = with_seed(5, || normal::<Vec<f32>>(MANY + 8))[MANY + 6];
        assert_eq!(many[MANY + 6], last);
    }

    #[test]
    fn one_core_and_256_make_the_same_values() {
        let on = |cores| {
            draw_on::<f32>(cores, MANY + 7, &|run, values| {
                values.iter_mut().zip(run * RUN..).for_each(|(value, i)| *value = i as f32);
            })
        };
        assert!([2, 3, 256].into_iter().all(|cores| on(cores) == on(1)));
    }

    #[test]
    fn more_values_than_memory_holds_are_a_panic_that_says_so() {
        let refused = |make: &(dyn Fn() -> Vec<f32> + std::panic::RefUnwindSafe)| {
            let panic = std::panic::catch_unwind(make).expect_err("no memory is as large");
            let words: &String = panic.downcast_ref().expect("words");
            assert!(words.contains("there is no memory for"), "{words}");
        };
        // The first has no address, the second some that no machine has memory behind.
        for n in [usize::MAX, 1 << 56] {
            for cores in [1, 2, 256] {
                refused(&move || draw_on(cores, n, &|_, _: &mut [f32]| {}));
            }
            refused(&move || zeros(n));
            refused(&move || integers(n, 0..8));
        }
    }

    #[test]
    fn streams_and_seeds_are_independent() {
        let (a, b): (Vec<f64>, Vec<f64>) = with_seed(1, || (uniform(8), uniform(8)));
        let c: Vec<f64> = with_seed(2, || uniform(8));
        assert_ne!(a, b);
        assert_ne!(a, c);
    }

    #[test]
    fn normal_has_the_moments_of_the_normal_distribution() {
        let x: Vec<f64> = with_seed(3, || normal(100_000));
        let mean = x.iter().sum::<f64>() / 1e5;
        let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 1e5;
        let kurtosis = x.iter().map(|v| (v - mean).powi(4)).sum::<f64>() / 1e5 / variance.powi(2);
        assert!(mean.abs() < 0.015, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        assert!((kurtosis - 3.0).abs() < 0.1, "{kurtosis}");
    }

    #[test]
    fn integers_cover_their_range_and_nothing_else() {
        let x: Vec<i32> = with_seed(4, || integers(1000, -3..4));
        assert!(x.iter().all(|v| (-3..4).contains(v)));
        assert!((-3..4).all(|v| x.contains(&v)));
    }

    #[test]
    fn integers_of_every_distribution_cover_their_type() {
        fn spread<T: Element>(values: &[T], width: f64) -> f64 {
            let values = || values.iter().map(|value| value.to_f64());
            (values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min)) / width
        }
        fn of<T: Element>(seed: u64) -> (Vec<T>, Vec<T>) {
            with_seed(seed, || (uniform(4000), normal(4000)))
        }
        let (bytes, near) = of::<i8>(1);
        assert!((-128..=127).all(|value| bytes.contains(&value)));
        let (counts, middling) = of::<u32>(2);
        let (words, centred) = of::<u64>(3);
        let found = [
            spread(&near, 256.0),
            spread(&counts, 2f64.powi(32)),
            spread(&middling, 2f64.powi(32)),
            spread(&words, 2f64.powi(64)),
            spread(&centred, 2f64.powi(64)),
        ];
        assert!(found.iter().all(|share| (0.6..=1.0).contains(share)), "{found:?}");
        assert!(words.iter().fold(0, |all, word| all | word) == u64::MAX, "also the lowest bits");
        let truths: Vec<bool> = with_seed(4, || uniform(1000));
        let share = truths.iter().filter(|truth| **truth).count();
        assert!((400..600).contains(&share), "{share}");
    }

    #[test]
    fn some_numbers_of_arrays_may_be_those_of_another_seed() {
        let make = || (normal::<Vec<f64>>(2500), integers::<i32>(2500, 0..1 << 20));
        let [(a, b), (c, d)] = [1, 2].map(|seed| with_seed(seed, make));
        let with = |places| {
            let others = Some(Others { places, seed: 1 });
            drawn(Draw { others, ..Draw::of(2) }, make)
        };
        let (mixed, whole) = with(Places::Ends);
        assert_eq!((mixed[0], mixed[2499], &mixed[1..2499]), (a[0], a[2499], &c[1..2499]));
        assert_eq!((whole[0], whole[2499], &whole[1..2499]), (b[0], b[2499], &d[1..2499]));
        let (mixed, whole) = with(Places::Inner);
        let others: Vec<usize> =
            (0..2500).filter(|i| mixed[*i] != c[*i] || whole[*i] != d[*i]).collect();
        assert_eq!((others, mixed[1561], whole[1561]), (vec![1561], a[1561], b[1561]));
    }

    #[test]
    fn a_panic_does_not_leave_its_seed_behind() {
        let before: Vec<f64> = with_seed(9, || uniform(3));
        let after: Vec<f64> = with_seed(9, || {
            let _ = std::panic::catch_unwind(|| with_seed(1, || panic!("inside")));
            uniform(3)
        });
        assert_eq!(before, after);
    }
}
