//! Data for kernels: the same seed gives the same bits on every machine.
//!
//! The functions of this module are called inside `inputs = |n| ...`. They draw from the generator that the runtime has
//! opened on this thread with the run's recorded seed ([`with_seed`]); outside of it they use a fixed seed. Every call
//! takes its own stream, so that adding one array does not change the others that come before it.

use std::cell::Cell;
use std::f64::consts::TAU;
use std::ops::Range;

use super::splitmix::SplitMix;
use super::{Element, F8E4M3, F8E5M2};

thread_local! {
    static STREAM: Cell<Stream> = const { Cell::new(Stream { seed: 0x6b62_656e_6368, next: 0 }) };
}

#[derive(Clone, Copy)]
struct Stream {
    seed: u64,
    next: u64,
}

/// Runs `make` with the generator seeded by `seed`, and restores the former state afterwards, also after a panic.
pub fn with_seed<R>(seed: u64, make: impl FnOnce() -> R) -> R {
    struct Restore(Stream);
    impl Drop for Restore {
        fn drop(&mut self) {
            STREAM.set(self.0);
        }
    }
    let _restore = Restore(STREAM.replace(Stream { seed, next: 0 }));
    make()
}

/// The generator of the next stream of this thread's seed.
fn next_stream() -> SplitMix {
    let stream = STREAM.get();
    STREAM.set(Stream { next: stream.next + 1, ..stream });
    let mut mixer = SplitMix(stream.seed ^ stream.next.wrapping_mul(0xd1b5_4a32_d192_ed03));
    SplitMix(mixer.bits())
}

/// An array of random numbers; see [`uniform`], [`normal`], [`range`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of numbers",
    note = "`uniform(n)` and the like make a `Vec`; `inputs` gives one value for each parameter, in parentheses"
)]
pub trait Distribution: Sized {
    /// The values of `0..n`.
    fn draw(n: usize, values: DrawnValues<'_>) -> Self;
}

/// Computes the values from some position on.
pub type DrawnValues<'a> = &'a (dyn Fn(usize, &mut [f64]) + Sync);

impl<T: Element> Distribution for Vec<T> {
    fn draw(n: usize, values: DrawnValues<'_>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        draw_on(cores, n, values)
    }
}

/// The values of `0..n`, made by as many threads when they are many.
fn draw_on<T: Element>(cores: usize, n: usize, values: DrawnValues<'_>) -> Vec<T> {
    let mut drawn = zeros(n);
    if n < MANY || cores < 2 {
        fill(&mut drawn, 0, values);
        return drawn;
    }
    let part = n.div_ceil(cores);
    let mut tasks: Vec<Task<'_>> = Vec::new();
    for (i, drawn) in drawn.chunks_mut(part).enumerate() {
        tasks.push(Box::new(move || fill(drawn, i * part, values)));
    }
    run_all(tasks);
    drawn
}

/// Makes the values from some position on.
fn fill<T: Element>(drawn: &mut [T], first: usize, values: DrawnValues<'_>) {
    /// Values that are computed at a time; a core's own cache holds them.
    const RUN: usize = 1024;
    let mut buffer = [0.0; RUN];
    for (i, drawn) in drawn.chunks_mut(RUN).enumerate() {
        let wide = &mut buffer[..drawn.len()];
        values(first + i * RUN, wide);
        for (drawn, wide) in drawn.iter_mut().zip(wide) {
            *drawn = T::from_f64(*wide);
        }
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
const MANY: usize = 1 << 20;

/// `n` values, uniform in [-1, 1); for integer types use [`integers`].
pub fn uniform<D: Distribution>(n: usize) -> D {
    range(n, -1.0..1.0)
}

/// `n` values, uniform in a range.
pub fn range<D: Distribution>(n: usize, range: Range<f64>) -> D {
    D::draw(n, &uniform_values(range, next_stream()))
}

// Neither this nor its like depends on the type that is drawn, so that they are compiled once.
fn uniform_values(range: Range<f64>, generator: SplitMix) -> impl Fn(usize, &mut [f64]) + Sync {
    each(move |i| range.start + (range.end - range.start) * generator.after(i).unit())
}

/// Computes values one by one.
fn each(value: impl Fn(usize) -> f64 + Sync) -> impl Fn(usize, &mut [f64]) + Sync {
    move |first, values| {
        for (i, place) in values.iter_mut().enumerate() {
            *place = value(first + i);
        }
    }
}

/// `n` values from the standard normal distribution.
///
/// Box and Muller's transform on top of logarithm, root and cosine of our own, because those of the platform may differ
/// in the last bit.
pub fn normal<D: Distribution>(n: usize) -> D {
    D::draw(n, &normal_values(next_stream()))
}

fn normal_values(generator: SplitMix) -> impl Fn(usize, &mut [f64]) + Sync {
    each(move |i| {
        let mut generator = generator.after(2 * i);
        let radius = (-2.0 * portable::ln(1.0 - generator.unit())).sqrt();
        radius * portable::cos(TAU * generator.unit())
    })
}

/// `n` integers, uniform in `lo..hi`.
///
/// # Panics
/// If the range is empty.
pub fn integers<T: Element>(n: usize, range: Range<i64>) -> Vec<T> {
    assert!(!range.is_empty(), "integers(n, {range:?}): the range is empty");
    Vec::draw(n, &integer_values(range, next_stream()))
}

fn integer_values(range: Range<i64>, generator: SplitMix) -> impl Fn(usize, &mut [f64]) + Sync {
    let width = range.end.wrapping_sub(range.start) as u64;
    each(move |i| {
        let offset = generator.after(i).below(width) as i64;
        range.start.wrapping_add(offset) as f64
    })
}

/// `n` zeros: the usual content of an output, which is poisoned before a check anyway.
pub fn zeros<T: Element>(n: usize) -> Vec<T> {
    constant(n, T::from_f64(0.0))
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
                <$type>::from_f64(default_number(<$type>::ROUNDOFF))
            }
        }
    )*};
}

/// What an array of one number would hold.
fn default_number(roundoff: f64) -> f64 {
    let drawn: Vec<f64> = if roundoff > 0.0 { uniform(1) } else { integers(1, 1..100) };
    drawn[0]
}

default_scalar! { f32 f64 half::f16 half::bf16 F8E4M3 F8E5M2 i8 i16 i32 i64 u8 u16 u32 u64 }

/// Data for a parameter when the attribute has no `inputs`: uniform floats, small positive integers.
pub fn default_input<T: DefaultInput>(n: usize) -> T {
    T::default_input(n)
}

/// Elementary functions from IEEE operations alone (+, ×, ÷, √), so that every machine gives the same bits.
mod portable {
    use std::f64::consts::{FRAC_PI_2, LN_2, SQRT_2};

    /// Natural logarithm of a positive normal number: ln(m·2^e) with m in [√½, √2) by the series of atanh.
    pub(super) fn ln(x: f64) -> f64 {
        let bits = x.to_bits();
        let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
        let is_large = usize::from(mantissa > SQRT_2);
        let mantissa = mantissa * [1.0, 0.5][is_large];
        let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023 + is_large as i64;
        let s = (mantissa - 1.0) / (mantissa + 1.0);
        let square = s * s;
        let series = ATANH.iter().rev().fold(0.0, |sum, term| sum * square + term);
        2.0 * s * series + exponent as f64 * LN_2
    }

    /// 1, 1/3, 1/5, ...: the series of atanh s / s. |s| < 0.172, so the 12th term is below 2^-60.
    const ATANH: [f64; 12] = {
        let mut terms = [1.0; 12];
        let mut k = 1;
        while k < terms.len() {
            terms[k] = 1.0 / (2 * k + 1) as f64;
            k += 1;
        }
        terms
    };

    /// Cosine on [0, 2π): in every quarter turn it is the cosine or the sine of the rest, or their negative.
    pub(super) fn cos(x: f64) -> f64 {
        let quarter = (x / FRAC_PI_2) as usize;
        let rest = x - quarter as f64 * FRAC_PI_2;
        // Looked up and not branched upon: nobody can predict the quarter of a random angle.
        let sign = [1.0, -1.0, -1.0, 1.0][quarter % 4];
        let factor = [1.0, rest][quarter % 2];
        let square = rest * rest;
        let series = SERIES[quarter % 2].iter().rev().fold(0.0, |sum, term| sum * square + term);
        sign * factor * series
    }

    /// Terms of the Taylor series of cosine and sine; on [0, π/2] the next one is below 2^-58.
    const SERIES: [[f64; 12]; 2] = [series(0), series(1)];

    /// 1 / odd!, -1 / (odd + 2)!, 1 / (odd + 4)!, ...
    const fn series(odd: usize) -> [f64; 12] {
        let mut terms = [1.0; 12];
        let mut k = 1;
        while k < terms.len() {
            terms[k] = -terms[k - 1] / ((2 * k - 1 + odd) * (2 * k + odd)) as f64;
            k += 1;
        }
        terms
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn logarithm_and_cosine_are_exact_to_a_few_units() {
            for i in 1..2000 {
                let x = i as f64 / 2000.0;
                assert!((super::ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1e-3), "ln {x}");
                let angle = x * std::f64::consts::TAU;
                assert!((super::cos(angle) - angle.cos()).abs() < 1e-15, "cos {angle}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bits_for_ever() {
        // Computed once by another program: a change of these values would silently change every recorded run.
        let (a, b): (Vec<f32>, Vec<f64>) = with_seed(42, || (uniform(2), normal(2)));
        assert_eq!(a.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), [0xbea0_7815, 0x3f69_57a3]);
        for (value, expected) in b.iter().zip([0.742_039_903_338_615_9, 0.735_530_507_965_953_1]) {
            assert!((value - expected).abs() < 1e-15, "{value}");
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
        let on = |cores| draw_on::<f32>(cores, MANY + 7, &each(|i| i as f64));
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
                refused(&move || draw_on(cores, n, &each(|_| 0.0)));
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
    fn a_panic_does_not_leave_its_seed_behind() {
        let before: Vec<f64> = with_seed(9, || uniform(3));
        let after: Vec<f64> = with_seed(9, || {
            let _ = std::panic::catch_unwind(|| with_seed(1, || panic!("inside")));
            uniform(3)
        });
        assert_eq!(before, after);
    }
}
