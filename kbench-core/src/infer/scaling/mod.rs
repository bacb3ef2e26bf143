//! How a parallel variant scales with threads.
//!
//! A law is fitted to the mean logarithms of the speed-ups by weighted least squares. How well its parameters are known
//! is asked of the launches, by the jackknife (Tukey 1958): each launch is left out once, weights and parameters are
//! found again along the tangent of the curve, and the sum of the squared moves is the squared error, with one degree
//! of freedom less than launches. So it does not matter that all speed-ups of a launch share the time of the first
//! count, or that the weights were estimated. As everywhere in `infer` the factor (n − 1) / n of the textbook is left
//! out, which is a little too large with few launches.
//!
//! Bounds (0 ≤ σ ≤ 1, 0 ≤ κ) make an estimate that is not normal near them. The tangent has no bounds: the interval is
//! that of the estimate without them, stretched to lie around the one with them, and cut to what is possible. A true
//! parameter is possible, so cutting loses none, and the interval covers at least as often as that without bounds.
//!
//! Amdahl's law is chosen when no coherency can be seen, which does not say that there is none. Its serial fraction takes
//! in what there is, so with counts enough for both laws its intervals reach as far as those of the universal law.
//!
//! Intervals know the noise of launches, not whether the law holds: that is what the agreement says. Where threads share
//! cores, or cores differ, none of the laws holds, and the parameters are those of the nearest curve.

mod law;

#[cfg(test)]
mod simulation;

pub use law::Law;

use law::{Curve, bounded, closest};

use super::estimate::CONFIDENCE;
use super::interval::Interval;
use super::test::{student_quantile, student_two_sided};

/// With fewer launches no launch can be left out: there is no fit.
const FEWEST_LAUNCHES: usize = 3;

/// Counts beyond the first that a serial fraction needs: one more than parameters, or the curve meets every figure.
const FEWEST_FOR_AMDAHL: usize = 2;

/// The same for both parameters; a bend shows at three counts, but not whether it is that of the law.
const FEWEST_FOR_UNIVERSAL: usize = 4;

/// Standard deviation by which a law misses a figure at best: no machine follows a formula more closely, so a figure that
/// is known better does not count for more.
const MODEL_ERROR: f64 = 0.005;

/// A law that misses no figure by more than this share describes the figures well enough to be used.
const CLOSE: f64 = 0.05;

/// Chance that figures of which the law is true are said to differ from it by more than noise.
const FALSE_DEPARTURE: f64 = 0.01;

/// Logarithms that differ by less are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// Whether a law describes the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The figures differ from the law by no more than noise.
    WithinNoise,
    /// They differ by more than noise, but none by more than 5 %.
    Close,
    /// The law does not describe them.
    Departs,
}

impl Agreement {
    /// Whether the law may be used to describe the figures.
    pub fn fits(self) -> bool {
        self != Agreement::Departs
    }
}

/// How a variant scales with threads.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingFit {
    /// The law: universal where the figures show a cost of coherency, else Amdahl's.
    pub law: Law,
    /// σ, the serial fraction.
    pub contention: Interval,
    /// κ, the cost of coherency; Amdahl's law has none.
    pub coherency: Option<Interval>,
    /// The speed-up over the first count by the law, at each measured count beyond it.
    pub predicted: Vec<Interval>,
    /// The largest |measured / predicted − 1| ...
    pub worst_residual: f64,
    /// ... and the thread count that has it.
    pub worst_residual_at: usize,
    /// Whether the law describes the figures.
    pub agreement: Agreement,
}

impl ScalingFit {
    /// The same fit, with intervals that hold by another law as well.
    fn reaching(self, other: &ScalingFit) -> Self {
        let pairs = self.predicted.iter().zip(&other.predicted);
        ScalingFit {
            contention: self.contention.reaching(&other.contention),
            predicted: pairs.map(|(own, other)| own.reaching(other)).collect(),
            ..self
        }
    }
}

/// The law of scaling that the figures follow.
///
/// `threads` rise, and the first is what the others are compared with; `log_speedups` has, for each of the others, the
/// logarithm of its speed-up over the first in every launch, in the same order of launches. `None` with fewer than two
/// counts beyond the first, with fewer than three launches, or when the figures are not of this form.
pub fn fit_scaling(threads: &[usize], log_speedups: &[Vec<f64>]) -> Option<ScalingFit> {
    let figures = Figures::of(threads, log_speedups)?;
    let amdahl = Fitted::of(&figures, Law::Amdahl, [0.0; 2])?;
    let universal = (log_speedups.len() >= FEWEST_FOR_UNIVERSAL)
        .then(|| Fitted::of(&figures, Law::Universal, amdahl.curve.parameters))
        .flatten()
        .map(|universal| universal.result());
    Some(match universal {
        Some(fit) if fit.coherency.is_some_and(|coherency| coherency.low > 0.0) => fit,
        Some(fit) => amdahl.result().reaching(&fit),
        None => amdahl.result(),
    })
}

/// Speed-ups of at least the fewest counts and launches.
struct Figures<'a> {
    threads: &'a [usize],
    /// For each count beyond the first, for each launch.
    logarithms: &'a [Vec<f64>],
    launches: usize,
}

impl<'a> Figures<'a> {
    fn of(threads: &'a [usize], logarithms: &'a [Vec<f64>]) -> Option<Self> {
        let launches = logarithms.first()?.len();
        let rise =
            threads.first().is_some_and(|&first| first > 0) && threads.is_sorted_by(|a, b| a < b);
        let is_whole = |of: &Vec<f64>| {
            of.len() == launches && of.iter().all(|logarithm| logarithm.is_finite())
        };
        let are_enough = logarithms.len() >= FEWEST_FOR_AMDAHL && launches >= FEWEST_LAUNCHES;
        let fit_together = threads.len() == logarithms.len() + 1 && logarithms.iter().all(is_whole);
        (rise && are_enough && fit_together).then_some(Figures { threads, logarithms, launches })
    }

    /// Means and weights of the counts, without one launch or with all of them.
    fn summary(&self, left_out: Option<usize>) -> Summary {
        let of = |launches: &Vec<f64>| -> (f64, f64) {
            let kept = launches.iter().enumerate().filter(|(launch, _)| Some(*launch) != left_out);
            let kept: Vec<f64> = kept.map(|(_, logarithm)| *logarithm).collect();
            let n = kept.len() as f64;
            let mean = kept.iter().sum::<f64>() / n;
            let squares: f64 = kept.iter().map(|logarithm| (logarithm - mean).powi(2)).sum();
            (mean, squares / (n - 1.0) / n)
        };
        let (means, variances): (Vec<f64>, Vec<f64>) = self.logarithms.iter().map(of).unzip();
        // With few launches a variance is hardly known; a count that looks free of noise by luck does not rule the fit.
        let typical = variances.iter().sum::<f64>() / variances.len() as f64;
        let weight = |own: &f64| 1.0 / (own + typical + MODEL_ERROR.powi(2));
        Summary { weights: variances.iter().map(weight).collect(), means }
    }
}

/// What some launches say together.
struct Summary {
    means: Vec<f64>,
    weights: Vec<f64>,
}

/// A law fitted to figures, with what the launches say about it.
struct Fitted<'a> {
    figures: &'a Figures<'a>,
    law: Law,
    curve: Curve,
    /// With all launches.
    whole: Moved,
    /// Without each of them.
    without: Vec<Moved>,
}

/// Where some launches would move the curve, along its tangent.
struct Moved {
    /// The parameters, without bounds.
    step: [f64; 2],
    /// What remains between figures and curve, with parameters held at their bounds.
    residuals: Vec<f64>,
}

impl<'a> Fitted<'a> {
    fn of(figures: &'a Figures<'a>, law: Law, guess: [f64; 2]) -> Option<Self> {
        let Summary { means, weights } = figures.summary(None);
        let curve = closest(figures.threads, &means, &weights, law, guess)?;
        let free = curve.free(&means, &weights, law);
        let moved = |left_out: Option<usize>| {
            let Summary { means, weights } = figures.summary(left_out);
            let held = curve.step(&means, &weights, free)?;
            let residuals = curve.residuals(&means).into_iter().zip(&curve.slopes);
            let residuals =
                residuals.map(|(residual, slope)| residual - along(slope, &held)).collect();
            Some(Moved { step: curve.step(&means, &weights, law.has())?, residuals })
        };
        let whole = moved(None)?;
        let without =
            (0..figures.launches).map(|launch| moved(Some(launch))).collect::<Option<_>>()?;
        Some(Fitted { figures, law, curve, whole, without })
    }

    fn degrees(&self) -> f64 {
        self.figures.launches as f64 - 1.0
    }

    /// The jackknife's error of a figure.
    fn error(&self, of: impl Fn(&Moved) -> f64) -> f64 {
        let square = |without: &Moved| (of(without) - of(&self.whole)).powi(2);
        self.without.iter().map(square).sum::<f64>().sqrt()
    }

    /// The interval around a figure of the curve of which the launches say that it should be moved.
    fn interval(&self, value: f64, moved: impl Fn(&Moved) -> f64) -> Interval {
        let half = student_quantile(0.5 + CONFIDENCE / 2.0, self.degrees()) * self.error(&moved);
        let step = moved(&self.whole);
        Interval { value, low: value + step.min(0.0) - half, high: value + step.max(0.0) + half }
    }

    fn parameter(&self, i: usize) -> Interval {
        let only = |figure: f64| if i == 0 { [figure, 0.0] } else { [0.0, figure] };
        self.interval(self.curve.parameters[i], |moved| moved.step[i])
            .map(|figure| bounded(only(figure))[i])
    }

    /// The speed-up at a count; with σ and κ that are possible it is at most linear.
    fn predicted(&self, point: usize) -> Interval {
        let threads = self.figures.threads;
        let linear = threads[point + 1] as f64 / threads[0] as f64;
        let slope = &self.curve.slopes[point];
        self.interval(self.curve.logarithms[point], |moved| along(slope, &moved.step))
            .map(|logarithm| logarithm.exp().min(linear))
    }

    /// Whether the figure at a count is farther from the law than noise would put it; all counts share the chance to err.
    fn departs(&self, point: usize) -> bool {
        let error = self.error(|moved| moved.residuals[point]).max(ROUNDING);
        let t = self.whole.residuals[point] / error;
        let points = self.whole.residuals.len() as f64;
        student_two_sided(t, self.degrees()) < FALSE_DEPARTURE / points
    }

    fn result(&self) -> ScalingFit {
        let points = 0..self.whole.residuals.len();
        let miss = |point: usize| self.whole.residuals[point].exp_m1().abs();
        let worst = points.clone().max_by(|&a, &b| miss(a).total_cmp(&miss(b))).unwrap_or(0);
        let departing: Vec<usize> = points.clone().filter(|&point| self.departs(point)).collect();
        let agreement = match departing.iter().map(|&point| miss(point)).reduce(f64::max) {
            None => Agreement::WithinNoise,
            Some(miss) if miss <= CLOSE => Agreement::Close,
            Some(_) => Agreement::Departs,
        };
        ScalingFit {
            law: self.law,
            contention: self.parameter(0),
            coherency: self.law.has()[1].then(|| self.parameter(1)),
            predicted: points.map(|point| self.predicted(point)).collect(),
            worst_residual: miss(worst),
            worst_residual_at: self.figures.threads[worst + 1],
            agreement,
        }
    }
}

fn along(slope: &[f64; 2], step: &[f64; 2]) -> f64 {
    slope[0] * step[0] + slope[1] * step[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Speed-ups that are nearly the same in four launches.
    fn launches(speedups: &[f64]) -> Vec<Vec<f64>> {
        let jitter = [1e-3, -1e-3, 5e-4, -5e-4];
        speedups.iter().map(|speedup| jitter.map(|by| speedup.ln() + by).to_vec()).collect()
    }

    fn exact(threads: &[usize], parameters: [f64; 2]) -> Vec<Vec<f64>> {
        let logarithms = Curve::new(threads, parameters).logarithms;
        logarithms.into_iter().map(|logarithm| vec![logarithm; 3]).collect()
    }

    #[test]
    fn figures_that_follow_a_law_give_its_parameters() {
        for threads in [[1, 2, 4, 8, 16], [2, 3, 4, 8, 12]] {
            let fit = fit_scaling(&threads, &exact(&threads, [0.1, 0.0])).expect("a fit");
            assert_eq!(
                (fit.law, fit.coherency, fit.agreement),
                (Law::Amdahl, None, Agreement::WithinNoise)
            );
            assert!((fit.contention.value - 0.1).abs() < 1e-7, "{fit:?}");
            let fit = fit_scaling(&threads, &exact(&threads, [0.05, 0.002])).expect("a fit");
            assert_eq!((fit.law, fit.agreement), (Law::Universal, Agreement::WithinNoise));
            assert!((fit.contention.value - 0.05).abs() < 1e-6, "{fit:?}");
            assert!(
                fit.coherency.is_some_and(|kappa| (kappa.value - 0.002).abs() < 1e-7),
                "{fit:?}"
            );
            assert!(fit.worst_residual < 1e-6, "{fit:?}");
        }
    }

    #[test]
    fn predictions_are_those_of_the_law_at_the_measured_counts() {
        let threads = [1, 2, 4];
        let fit = fit_scaling(&threads, &launches(&[1.0 / 0.55, 1.0 / 0.325])).expect("a fit");
        assert_eq!(fit.predicted.len(), 2);
        assert!((fit.predicted[1].value - 1.0 / 0.325).abs() < 1e-3, "{fit:?}");
        assert!(fit.predicted.iter().all(|at| at.low < at.value && at.value < at.high), "{fit:?}");
    }

    #[test]
    fn faster_than_linear_gives_no_serial_fraction_and_shows_what_it_misses() {
        let fit =
            fit_scaling(&[1, 2, 4, 8, 16], &launches(&[2.3, 5.0, 10.0, 20.0])).expect("a fit");
        assert_eq!((fit.law, fit.contention.value, fit.contention.low), (Law::Amdahl, 0.0, 0.0));
        assert!((fit.worst_residual - 0.25).abs() < 1e-3 && !fit.agreement.fits(), "{fit:?}");
        assert!(fit.contention.high > 0.0, "not even the bound is known exactly: {fit:?}");
        let is_linear = |(at, p): (&Interval, f64)| (at.value - p).abs() < 1e-9 && at.high == p;
        assert!(fit.predicted.iter().zip([2.0, 4.0, 8.0, 16.0]).all(is_linear), "{fit:?}");
    }

    #[test]
    fn slower_with_every_thread_is_all_serial_and_shows_what_it_misses() {
        for threads in [[1, 2, 3], [4, 6, 8]] {
            let fit = fit_scaling(&threads, &launches(&[0.8, 0.5])).expect("a fit");
            assert_eq!((fit.contention.value, fit.contention.high), (1.0, 1.0));
            assert!((fit.worst_residual - 0.5).abs() < 1e-3, "{fit:?}");
            assert_eq!((fit.worst_residual_at, fit.agreement), (threads[2], Agreement::Departs));
        }
    }

    /// From four threads on to eight there is next to no gain: two threads to a core.
    #[test]
    fn a_break_in_the_curve_is_said_to_depart_and_a_slight_one_to_be_close() {
        let threads = [1, 2, 3, 4, 8];
        let broken = fit_scaling(&threads, &launches(&[2.0, 3.0, 4.0, 4.4])).expect("a fit");
        assert_eq!(broken.agreement, Agreement::Departs, "{broken:?}");
        let slight = fit_scaling(&threads, &launches(&[1.9, 2.75, 3.4, 5.6])).expect("a fit");
        assert_eq!(slight.agreement, Agreement::Close, "{slight:?}");
    }

    #[test]
    fn too_little_or_figures_that_do_not_fit_together_give_nothing() {
        let fine = launches(&[1.9, 3.6]);
        assert!(fit_scaling(&[1, 2, 4], &fine).is_some());
        assert_eq!(fit_scaling(&[1, 2], &fine[..1]), None);
        assert_eq!(fit_scaling(&[], &[]), None);
        assert_eq!(fit_scaling(&[1, 2, 4, 8], &fine), None);
        assert_eq!(fit_scaling(&[1, 4, 2], &fine), None);
        assert_eq!(fit_scaling(&[0, 2, 4], &fine), None);
        let two: Vec<Vec<f64>> = fine.iter().map(|of| of[..2].to_vec()).collect();
        assert_eq!(fit_scaling(&[1, 2, 4], &two), None, "two launches");
        assert_eq!(fit_scaling(&[1, 2, 4], &[fine[0].clone(), two[1].clone()]), None);
        assert_eq!(fit_scaling(&[1, 2, 4], &[fine[0].clone(), vec![f64::NAN; 4]]), None);
    }
}
