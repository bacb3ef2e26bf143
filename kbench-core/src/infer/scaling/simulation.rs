//! Intervals of scaling on simulated runs, with fixed seeds.

use super::law::Curve;
use super::{Agreement, Law, ScalingFit, fit_scaling};
use crate::value::{normal, with_seed};

const RUNS: usize = 500;

/// Nominal are 95 %.
const LEAST_COVERED: f64 = 0.93;

/// The fits of many runs; every time of a launch has noise of its own, and the first count's is in all of its speed-ups.
fn fits(threads: &[usize], parameters: [f64; 2], launches: usize, noise: f64) -> Vec<ScalingFit> {
    let truth = Curve::new(threads, parameters).logarithms;
    let run = |_| {
        let first: Vec<f64> = normal(launches);
        let count = |logarithm: &f64| -> Vec<f64> {
            let own: Vec<f64> = normal(launches);
            own.iter().zip(&first).map(|(own, first)| logarithm + noise * (first - own)).collect()
        };
        let figures: Vec<Vec<f64>> = truth.iter().map(count).collect();
        fit_scaling(threads, &figures).expect("enough")
    };
    with_seed(20_261_115, || (0..RUNS).map(run).collect())
}

fn share(fits: &[ScalingFit], what: impl Fn(&ScalingFit) -> bool) -> f64 {
    fits.iter().filter(|fit| what(fit)).count() as f64 / fits.len() as f64
}

/// The shares of runs in which something holds that should hold in nearly all of them.
struct Coverage {
    contention: f64,
    /// Where it is said that there is any.
    coherency: f64,
    /// Of the speed-up at the last count.
    predicted: f64,
    agrees: f64,
}

impl Coverage {
    fn of(fits: &[ScalingFit], threads: &[usize], truth: [f64; 2]) -> Self {
        let last = Curve::new(threads, truth).logarithms.last().copied().unwrap_or(0.0).exp();
        // Linear is the largest possible speed-up: rounding must not put the truth outside.
        let last = last * (1.0 - 1e-12);
        Coverage {
            contention: share(fits, |fit| fit.contention.covers(truth[0])),
            coherency: share(fits, |fit| fit.coherency.is_none_or(|kappa| kappa.covers(truth[1]))),
            predicted: share(fits, |fit| fit.predicted.last().is_some_and(|at| at.covers(last))),
            agrees: share(fits, |fit| fit.agreement == Agreement::WithinNoise),
        }
    }
}

/// Launches and noise: few and many, quiet and loud.
const EFFORTS: [(usize, f64); 5] = [(3, 0.01), (5, 0.01), (10, 0.01), (15, 0.01), (5, 0.05)];

#[test]
fn intervals_of_the_serial_fraction_cover_it() {
    the_serial_fraction_is_covered(&[&[1, 2, 4]]);
}

#[test]
#[ignore = "slow: simulates machines of many cores"]
fn intervals_of_the_serial_fraction_cover_it_with_more_thread_counts() {
    the_serial_fraction_is_covered(&[&[1, 2, 4, 8, 16], &[1, 2, 3, 4], &[2, 4, 8, 16]]);
}

fn the_serial_fraction_is_covered(machines: &[&[usize]]) {
    for &threads in machines {
        for (launches, noise) in EFFORTS {
            for contention in [0.0, 0.02, 0.1, 0.5] {
                let what = format!("{threads:?}, {launches} launches, {noise}, σ {contention}");
                let fits = fits(threads, [contention, 0.0], launches, noise);
                let coverage = Coverage::of(&fits, threads, [contention, 0.0]);
                assert!(coverage.contention >= LEAST_COVERED, "{what}: {}", coverage.contention);
                assert!(coverage.predicted >= LEAST_COVERED, "{what}: {}", coverage.predicted);
                assert!(coverage.agrees >= 0.98, "{what}: {}", coverage.agrees);
                let universal = share(&fits, |fit| fit.law == Law::Universal);
                assert!(universal <= 0.04, "{what}: coherency out of nothing in {universal}");
            }
        }
    }
}

#[test]
fn intervals_of_both_parameters_cover_them() {
    let threads = [1, 2, 4, 6, 8, 12, 16];
    for truth in [[0.05, 0.002], [0.0, 0.002], [0.0, 0.01]] {
        for (launches, noise) in EFFORTS {
            let what = format!("{launches} launches, {noise}, {truth:?}");
            let fits = fits(&threads, truth, launches, noise);
            let coverage = Coverage::of(&fits, &threads, truth);
            assert!(coverage.contention >= LEAST_COVERED, "{what}: {}", coverage.contention);
            assert!(coverage.coherency >= LEAST_COVERED, "{what}: {}", coverage.coherency);
            assert!(coverage.predicted >= LEAST_COVERED, "{what}: {}", coverage.predicted);
            assert!(coverage.agrees >= 0.98, "{what}: {}", coverage.agrees);
            let universal = share(&fits, |fit| fit.law == Law::Universal);
            assert!(noise > 0.01 || universal > 0.98, "{what}: coherency seen in {universal}");
        }
    }
}
