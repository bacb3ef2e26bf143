//! Sixteen transforms of one length at once.
//!
//! Number j of all sixteen lies together in memory, the real parts in one vector and the imaginary parts in the next, so
//! that no instruction ever moves a number from one place of a vector to another. A transform is a sequence of passes that
//! sort as they go (Stockham's form): from one buffer to another, with radix 8, 4 or 2, or with any other prime.

use std::f64::consts::TAU;

use crate::signal::vector::{LANES, Numbers, Vector};

/// A number of each of sixteen transforms.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Lanes {
    pub(super) re: Numbers,
    pub(super) im: Numbers,
}

impl Lanes {
    pub(super) const ZERO: Self = Lanes { re: [0.0; LANES], im: [0.0; LANES] };
}

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Complex {
    pub(super) re: f32,
    pub(super) im: f32,
}

/// e^(−2πi·numerator/denominator), computed in `f64` from the nearest eighth of a turn, so that it is as exact as `f32` is.
pub(super) fn root(numerator: usize, denominator: usize) -> Complex {
    let eighths = 8 * (numerator % denominator) as u128;
    let denominator = denominator as u128;
    let octant = (eighths + denominator / 2) / denominator;
    let rest = eighths as f64 - (octant * denominator) as f64;
    let (sin, cos) = (rest / denominator as f64 * TAU / 8.0).sin_cos();
    let diagonal = std::f64::consts::FRAC_1_SQRT_2;
    let (turn_cos, turn_sin) = match octant % 8 {
        0 => (1.0, 0.0),
        1 => (diagonal, diagonal),
        2 => (0.0, 1.0),
        3 => (-diagonal, diagonal),
        4 => (-1.0, 0.0),
        5 => (-diagonal, -diagonal),
        6 => (0.0, -1.0),
        _ => (diagonal, -diagonal),
    };
    Complex {
        re: (cos * turn_cos - sin * turn_sin) as f32,
        im: -(sin * turn_cos + cos * turn_sin) as f32,
    }
}

/// Sixteen complex numbers in registers.
#[derive(Clone, Copy)]
pub(super) struct Pair<V> {
    pub(super) re: V,
    pub(super) im: V,
}

impl<V: Vector> Pair<V> {
    #[inline(always)]
    pub(super) fn load(from: &Lanes) -> Self {
        Pair { re: V::load(&from.re), im: V::load(&from.im) }
    }

    #[inline(always)]
    pub(super) fn store(self, to: &mut Lanes) {
        self.re.store(&mut to.re);
        self.im.store(&mut to.im);
    }

    #[inline(always)]
    pub(super) fn splat(value: Complex) -> Self {
        Pair { re: V::splat(value.re), im: V::splat(value.im) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Pair { re: self.re.add(other.re), im: self.im.add(other.im) }
    }

    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        Pair { re: self.re.subtract(other.re), im: self.im.subtract(other.im) }
    }

    #[inline(always)]
    pub(super) fn multiply(self, other: Self) -> Self {
        Pair {
            re: self.im.subtract_product(other.im, self.re.multiply(other.re)),
            im: self.im.multiply_add(other.re, self.re.multiply(other.im)),
        }
    }

    /// self − i·other and self + i·other
    #[inline(always)]
    fn turned(self, other: Self) -> (Self, Self) {
        (
            Pair { re: self.re.add(other.im), im: self.im.subtract(other.re) },
            Pair { re: self.re.subtract(other.im), im: self.im.add(other.re) },
        )
    }

    /// self · (1 − i)/√2
    #[inline(always)]
    fn eighth(self) -> Self {
        let scale = V::splat(std::f32::consts::FRAC_1_SQRT_2);
        Pair {
            re: self.re.add(self.im).multiply(scale),
            im: self.im.subtract(self.re).multiply(scale),
        }
    }

    /// self · (−1 − i)/√2
    #[inline(always)]
    fn three_eighths(self) -> Self {
        let scale = V::splat(-std::f32::consts::FRAC_1_SQRT_2);
        Pair {
            re: self.re.subtract(self.im).multiply(scale),
            im: self.im.add(self.re).multiply(scale),
        }
    }
}

/// A transform of two, four or eight numbers.
trait Butterfly<const RADIX: usize> {
    fn apply<V: Vector>(x: [Pair<V>; RADIX]) -> [Pair<V>; RADIX];
}

struct Small;

impl Butterfly<2> for Small {
    #[inline(always)]
    fn apply<V: Vector>([a, b]: [Pair<V>; 2]) -> [Pair<V>; 2] {
        [a.add(b), a.subtract(b)]
    }
}

impl Butterfly<4> for Small {
    #[inline(always)]
    fn apply<V: Vector>([a, b, c, d]: [Pair<V>; 4]) -> [Pair<V>; 4] {
        let ([ac_sum, ac], [bd_sum, bd]) = (Self::apply([a, c]), Self::apply([b, d]));
        let [first, third] = Self::apply([ac_sum, bd_sum]);
        let (second, fourth) = ac.turned(bd);
        [first, second, third, fourth]
    }
}

impl Butterfly<8> for Small {
    #[inline(always)]
    fn apply<V: Vector>([a, b, c, d, e, f, g, h]: [Pair<V>; 8]) -> [Pair<V>; 8] {
        let even = <Self as Butterfly<4>>::apply([a, c, e, g]);
        let odd = <Self as Butterfly<4>>::apply([b, d, f, h]);
        let [x0, x4] = Self::apply([even[0], odd[0]]);
        let [x1, x5] = Self::apply([even[1], odd[1].eighth()]);
        let (x2, x6) = even[2].turned(odd[2]);
        let [x3, x7] = Self::apply([even[3], odd[3].three_eighths()]);
        [x0, x1, x2, x3, x4, x5, x6, x7]
    }
}

/// One pass: transforms of `radix` numbers, each but the first result turned by a root of unity.
#[derive(Clone, Debug)]
struct Pass {
    radix: usize,
    /// The turns of each group of results, without those of the first.
    turns: Vec<Complex>,
    /// All roots of the radix, where it has no butterfly of its own.
    roots: Vec<Complex>,
}

/// What it takes to transform sixteen columns of a length.
#[derive(Clone, Debug)]
pub(super) struct Transform {
    length: usize,
    passes: Vec<Pass>,
}

impl Transform {
    /// Works for every length, fast where its largest prime factor is small.
    pub(super) fn new(length: usize) -> Self {
        let mut passes = Vec::new();
        let mut left = length;
        while left > 1 {
            let radix = next_radix(left);
            let groups = left / radix;
            let turns = (0..groups).flat_map(|p| (1..radix).map(move |k| (p * k, left)));
            let turns = turns.map(|(numerator, left)| root(numerator, left)).collect();
            let roots = if [2, 4, 8].contains(&radix) { 0 } else { radix };
            let roots = (0..roots).map(|k| root(k, radix)).collect();
            passes.push(Pass { radix, turns, roots });
            left = groups;
        }
        Transform { length, passes }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Memory of all roots.
    pub(super) fn bytes(&self) -> usize {
        let roots = self.passes.iter().map(|pass| pass.turns.len() + pass.roots.len());
        roots.sum::<usize>() * size_of::<Complex>()
    }

    #[cfg(test)]
    pub(super) fn turns_mut(&mut self) -> impl Iterator<Item = &mut Complex> {
        self.passes.iter_mut().flat_map(|pass| &mut pass.turns)
    }

    /// Transforms sixteen columns in `x`, with `spare` to work in, and tells which of the two has the result.
    #[inline(always)]
    pub(super) fn run<'a, V: Vector>(
        &self,
        x: &'a mut [Lanes],
        spare: &'a mut [Lanes],
    ) -> &'a mut [Lanes] {
        let (mut from, mut to) = (&mut x[..self.length], &mut spare[..self.length]);
        let mut stride = 1;
        for pass in &self.passes {
            match pass.radix {
                2 => small_pass::<V, 2>(from, to, stride, &pass.turns),
                4 => small_pass::<V, 4>(from, to, stride, &pass.turns),
                8 => small_pass::<V, 8>(from, to, stride, &pass.turns),
                _ => any_pass::<V>(from, to, stride, pass),
            }
            stride *= pass.radix;
            (from, to) = (to, from);
        }
        from
    }
}

/// Eight as long as four and two need not follow, then four, two, and odd primes.
fn next_radix(left: usize) -> usize {
    match left.trailing_zeros() {
        0 => (3..)
            .step_by(2)
            .find(|p| left.is_multiple_of(*p) || p * p > left)
            .map_or(left, |p| if left.is_multiple_of(p) { p } else { left }),
        1 => 2,
        2 | 4 => 4,
        _ => 8,
    }
}

/// y[stride·(radix·p + k) + q] ← turn(p, k) · Σⱼ x[stride·(p + groups·j) + q] · e^(−2πi·jk/radix)
#[inline(always)]
fn small_pass<V: Vector, const RADIX: usize>(
    x: &[Lanes],
    y: &mut [Lanes],
    stride: usize,
    turns: &[Complex],
) where
    Small: Butterfly<RADIX>,
{
    let apart = x.len() / RADIX;
    let turns = turns.chunks_exact(RADIX - 1);
    for (p, (y, turns)) in y.chunks_exact_mut(RADIX * stride).zip(turns).enumerate() {
        for q in 0..stride {
            let inputs = std::array::from_fn(|j| Pair::load(&x[j * apart + p * stride + q]));
            let outputs: [Pair<V>; RADIX] = Small::apply(inputs);
            outputs[0].store(&mut y[q]);
            for k in 1..RADIX {
                // The turns of the first group are none.
                let turned = if p == 0 {
                    outputs[k]
                } else {
                    outputs[k].multiply(Pair::splat(turns[k - 1]))
                };
                turned.store(&mut y[k * stride + q]);
            }
        }
    }
}

/// The same for any radix, by its definition.
#[inline(always)]
fn any_pass<V: Vector>(x: &[Lanes], y: &mut [Lanes], stride: usize, pass: &Pass) {
    let radix = pass.radix;
    let apart = x.len() / radix;
    for (p, y) in y.chunks_exact_mut(radix * stride).enumerate() {
        for q in 0..stride {
            for k in 0..radix {
                let mut sum = Pair::<V>::load(&x[p * stride + q]);
                let mut exponent = 0;
                for j in 1..radix {
                    exponent += k;
                    exponent -= if exponent >= radix { radix } else { 0 };
                    let term = Pair::load(&x[j * apart + p * stride + q]);
                    sum = sum.add(term.multiply(Pair::splat(pass.roots[exponent])));
                }
                if p > 0 && k > 0 {
                    sum = sum.multiply(Pair::splat(pass.turns[p * (radix - 1) + k - 1]));
                }
                sum.store(&mut y[k * stride + q]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::vector::{Portable, Task, best};

    /// The transform of sixteen columns of numbers, all different.
    #[derive(Clone, Copy)]
    struct Columns<'a>(&'a Transform);

    impl Task for Columns<'_> {
        type Output = Vec<Lanes>;

        #[inline(always)]
        fn run<V: Vector>(self) -> Vec<Lanes> {
            let number = |i: usize, j: usize| ((i * 31 + j * 17) % 23) as f32 - 11.0;
            let lanes = |i: usize| Lanes {
                re: std::array::from_fn(|lane| number(i, lane)),
                im: std::array::from_fn(|lane| number(i + 5, 2 * lane)),
            };
            let mut x: Vec<Lanes> = (0..self.0.length()).map(lanes).collect();
            let mut spare = x.clone();
            self.0.run::<V>(&mut x, &mut spare).to_vec()
        }
    }

    #[test]
    fn every_machine_computes_the_same() {
        for length in (1..40).chain([64, 67, 128, 243, 1024]) {
            let transform = Transform::new(length);
            let (ours, plain) = (best(Columns(&transform)), Columns(&transform).run::<Portable>());
            let limit = 1e-5 * 16.0 * length as f32;
            for (ours, plain) in ours.iter().zip(&plain) {
                let close =
                    |a: &Numbers, b: &Numbers| a.iter().zip(b).all(|(a, b)| (a - b).abs() < limit);
                assert!(close(&ours.re, &plain.re) && close(&ours.im, &plain.im), "{length}");
            }
        }
    }

    #[test]
    fn roots_of_unity_are_the_nearest_floats() {
        for n in [1, 2, 3, 8, 17, 24, 1024, 99_991] {
            for k in (0..2 * n).step_by(n / 7 + 1) {
                let (sin, cos) = (-TAU * (k % n) as f64 / n as f64).sin_cos();
                let found = root(k, n);
                assert!((f64::from(found.re) - cos).abs() < 3.1e-8, "{k}/{n}: {found:?}");
                assert!((f64::from(found.im) - sin).abs() < 3.1e-8, "{k}/{n}: {found:?}");
            }
        }
    }

    #[test]
    fn lengths_are_split_into_large_radices() {
        let radices =
            |n| Transform::new(n).passes.iter().map(|pass| pass.radix).collect::<Vec<_>>();
        assert_eq!(radices(1024), [8, 8, 4, 4]);
        assert_eq!(radices(4096), [8, 8, 8, 8]);
        assert_eq!(radices(2 * 9 * 67), [2, 3, 3, 67]);
        assert_eq!((radices(1), radices(2)), (vec![], vec![2]));
    }
}
