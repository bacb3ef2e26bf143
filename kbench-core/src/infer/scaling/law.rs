//! The laws of scaling, and the parameters with which one comes closest to given speed-ups.
//!
//! Gunther's Universal Scalability Law (Gunther 1993; "Guerrilla Capacity Planning", 2007, chapter 4): p threads do
//! p / (1 + σ(p − 1) + κp(p − 1)) times the work of one. With κ = 0 it is the law of Amdahl (1967).

/// Most steps of the search; it takes about ten.
const MOST_STEPS: usize = 200;

/// A step is halved at most this often before the search is at its end.
const MOST_HALVINGS: usize = 40;

/// Below this the parameters cannot be told from each other at the given thread counts.
const SINGULAR: f64 = 1e-12;

/// σ lies between 0 and 1.
const MOST_CONTENTION: f64 = 1.0;

/// Which law describes how a variant scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// A serial fraction, and nothing else.
    Amdahl,
    /// A serial fraction, and a cost of every pair of threads that have to agree.
    Universal,
}

impl Law {
    /// Which of σ and κ the law has.
    pub(super) fn has(self) -> [bool; 2] {
        [true, self == Law::Universal]
    }
}

/// σ and κ.
pub(super) type Parameters = [f64; 2];

/// Brings parameters to where they mean something.
pub(super) fn bounded([contention, coherency]: Parameters) -> Parameters {
    [contention.clamp(0.0, MOST_CONTENTION), coherency.max(0.0)]
}

/// A law at given parameters, with its tangent: all that inference needs to know of it.
pub(super) struct Curve {
    pub(super) parameters: Parameters,
    /// Logarithm of the speed-up over the first count, at every other.
    pub(super) logarithms: Vec<f64>,
    /// Its derivatives by σ and κ.
    pub(super) slopes: Vec<[f64; 2]>,
}

impl Curve {
    pub(super) fn new(threads: &[usize], parameters: Parameters) -> Self {
        let loads = |&p: &usize| [p as f64 - 1.0, p as f64 * (p as f64 - 1.0)];
        let cost = |[one, two]: [f64; 2]| 1.0 + parameters[0] * one + parameters[1] * two;
        let first = loads(&threads[0]);
        let logarithm = |p: &usize| {
            let linear = *p as f64 / threads[0] as f64;
            (linear * cost(first) / cost(loads(p))).ln()
        };
        let slope = |p: &usize| {
            let load = loads(p);
            [0, 1].map(|i| first[i] / cost(first) - load[i] / cost(load))
        };
        let others = &threads[1..];
        Curve {
            parameters,
            logarithms: others.iter().map(logarithm).collect(),
            slopes: others.iter().map(slope).collect(),
        }
    }

    /// How far measured logarithms lie above the curve.
    pub(super) fn residuals(&self, measured: &[f64]) -> Vec<f64> {
        measured.iter().zip(&self.logarithms).map(|(measured, law)| measured - law).collect()
    }

    /// The step along the tangent that brings the curve closest to what was measured, with some parameters held where
    /// they are; `None` when the thread counts cannot tell the others apart.
    pub(super) fn step(
        &self,
        measured: &[f64],
        weights: &[f64],
        moves: [bool; 2],
    ) -> Option<[f64; 2]> {
        let residuals = self.residuals(measured);
        let slope = |point: usize, i: usize| if moves[i] { self.slopes[point][i] } else { 0.0 };
        let sum = |term: &dyn Fn(usize) -> f64| -> f64 {
            weights.iter().enumerate().map(|(point, weight)| weight * term(point)).sum()
        };
        let pull = [0, 1].map(|i| sum(&|point| slope(point, i) * residuals[point]));
        let square = [0, 1].map(|i| sum(&|point| slope(point, i).powi(2)));
        let mixed = sum(&|point| slope(point, 0) * slope(point, 1));
        // A parameter that is held has no slope and no pull; with a square of 1 it does not move.
        let square = [0, 1].map(|i| if moves[i] { square[i] } else { 1.0 });
        let determinant = square[0] * square[1] - mixed.powi(2);
        (determinant > SINGULAR * square[0] * square[1]).then(|| {
            [
                (pull[0] * square[1] - pull[1] * mixed) / determinant,
                (pull[1] * square[0] - pull[0] * mixed) / determinant,
            ]
        })
    }

    /// Which parameters of the law are free to move: those at a bound are held when what was measured pulls them out.
    pub(super) fn free(&self, measured: &[f64], weights: &[f64], law: Law) -> [bool; 2] {
        let residuals = self.residuals(measured);
        let pull = |i: usize| -> f64 {
            let points = weights.iter().zip(&self.slopes).zip(&residuals);
            points.map(|((weight, slope), residual)| weight * slope[i] * residual).sum()
        };
        [0, 1].map(|i| law.has()[i] && !leaves(self.parameters, i, pull(i)))
    }

    fn distance(&self, measured: &[f64], weights: &[f64]) -> f64 {
        let residuals = self.residuals(measured);
        weights.iter().zip(&residuals).map(|(weight, residual)| weight * residual.powi(2)).sum()
    }
}

/// Whether a parameter is at a bound and a move would take it out.
fn leaves(parameters: Parameters, i: usize, by: f64) -> bool {
    let mut moved = parameters;
    // Any move in that direction; its length would only be lost in rounding.
    moved[i] += by.signum();
    bounded(moved)[i] == parameters[i]
}

/// The curve of a law that is closest to what was measured, by weighted least squares within the bounds of its
/// parameters: steps of Gauss and Newton, projected (Bertsekas 1982), from a first guess.
pub(super) fn closest(
    threads: &[usize],
    measured: &[f64],
    weights: &[f64],
    law: Law,
    guess: Parameters,
) -> Option<Curve> {
    let mut curve = Curve::new(threads, guess);
    for _ in 0..MOST_STEPS {
        let mut moves = curve.free(measured, weights, law);
        let mut step = curve.step(measured, weights, moves)?;
        for i in [0, 1] {
            // The parameters pull at each other: one alone would move in, but both together would take it out.
            if moves[i] && leaves(curve.parameters, i, step[i]) {
                moves[i] = false;
                step = curve.step(measured, weights, moves)?;
            }
        }
        let distance = curve.distance(measured, weights);
        let towards = |halvings: usize| {
            let share = 0.5_f64.powi(halvings as i32);
            let to = [0, 1].map(|i| curve.parameters[i] + share * step[i]);
            Curve::new(threads, bounded(to))
        };
        let is_closer = |curve: &Curve| curve.distance(measured, weights) < distance;
        match (0..MOST_HALVINGS).map(towards).find(is_closer) {
            Some(closer) => curve = closer,
            None => break,
        }
    }
    Some(curve)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: [f64; 6] = [1.0; 6];

    fn near(found: Parameters, expected: Parameters, tolerance: f64) {
        let is_near = |i: usize| (found[i] - expected[i]).abs() <= tolerance * expected[i];
        assert!(is_near(0) && is_near(1), "{found:?} is not {expected:?}");
    }

    /// A tenth is serial: four threads take 0.1 + 0.9 / 4 of the time.
    #[test]
    fn amdahls_law_is_that_of_the_textbook() {
        let curve = Curve::new(&[1, 4], [0.1, 0.0]);
        assert!((curve.logarithms[0].exp() - 1.0 / 0.325).abs() < 1e-12);
        let from_two = Curve::new(&[2, 4], [0.1, 0.0]);
        assert!((from_two.logarithms[0].exp() - 0.55 / 0.325).abs() < 1e-12);
    }

    #[test]
    fn the_tangent_touches_the_curve() {
        let (at, threads) = ([0.05, 0.002], [2, 3, 8, 16]);
        let curve = Curve::new(&threads, at);
        for i in [0, 1] {
            let mut moved = at;
            moved[i] += 1e-7;
            let secant = |(there, here): (&f64, &f64)| (there - here) / 1e-7;
            let there = Curve::new(&threads, moved).logarithms;
            for (secant, slope) in
                there.iter().zip(&curve.logarithms).map(secant).zip(&curve.slopes)
            {
                assert!((secant / slope[i] - 1.0).abs() < 1e-4, "{secant} {slope:?}");
            }
        }
    }

    /// The figures by which R's package `usl` 3.0 tests its coefficients; they are those of σ = κ = 0.02, rounded.
    #[test]
    fn the_coefficients_of_rs_usl_are_found() {
        let speedups = [1.8868, 3.0769, 3.5294, 3.5398, 3.3557_f64].map(f64::ln);
        let curve = closest(&[1, 2, 4, 6, 8, 10], &speedups, &EVEN[..5], Law::Universal, [0.0; 2]);
        near(curve.expect("a curve").parameters, [0.02, 0.02], 2e-3);
    }

    /// SPEC SDM 91 on a SPARCcenter 2000 (`specsdm91` of R's `usl`); expected values by scipy's `root`, of
    /// the gradient of the sum of squares of the logarithms.
    #[test]
    fn a_machine_of_1991_gets_the_parameters_that_scipy_gives_it() {
        let threads = [1, 18, 36, 72, 108, 144, 216];
        let speedups =
            [995.9, 1652.4, 1853.2, 1829.3, 1775.0, 1702.2].map(|x: f64| (x / 64.9).ln());
        let of = |law| closest(&threads, &speedups, &EVEN, law, [0.0; 2]).expect("a curve");
        near(of(Law::Universal).parameters, [0.0114357314, 1.17133733e-4], 1e-6);
        near(of(Law::Amdahl).parameters, [0.026000371, 0.0], 1e-6);
    }

    /// Faster than linear at first and slower later: the closest lies on a bound, whatever the guess.
    #[test]
    fn bounds_are_kept_and_the_guess_does_not_matter() {
        let threads = [1, 2, 4, 8, 16];
        let speedups = [2.2, 4.5, 7.5, 9.0_f64].map(f64::ln);
        for guess in [[0.0, 0.0], [1.0, 0.0], [0.3, 0.01], [0.0, 1.0]] {
            let curve = closest(&threads, &speedups, &EVEN[..4], Law::Universal, guess);
            near(curve.expect("a curve").parameters, [0.0, 0.0029242308], 1e-6);
        }
    }

    #[test]
    fn thread_counts_that_cannot_tell_the_parameters_apart_give_no_curve() {
        let one = closest(&[1, 4], &[1.0], &EVEN[..1], Law::Universal, [0.1, 0.1]);
        assert!(one.is_none());
    }
}
