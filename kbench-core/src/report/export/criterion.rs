//! A folder as criterion leaves it in `target/criterion`, for critcmp, and for cargo-bench-history, which reads the same
//! pair of files.
//!
//! Every row has `<kernel>/<variant+type>/<size>/new/` with `benchmark.json` (what it is called), `estimates.json` (what
//! was found), `sample.json` and `tukey.json`. Criterion calls these files private, so they are written only when asked
//! for, and what its readers need is kept to the letter:
//!
//! * `function_id` is never null, although criterion allows it: cargo-bench-history does not.
//! * No estimate is null or infinite but the slope, which flat sampling has not: critcmp stops at the first.
//! * Parts of a path have at most 64 bytes, none of what Windows forbids, and none of them leads out of the folder.
//!
//! The mean is the report's own time with its interval. Median, deviations and their intervals are of the samples, the
//! latter by a bootstrap as criterion does it, which takes samples for independent; the report's own verdicts do not.
//!
//! Rows that were listed and have a time are in it. As with criterion, what an earlier export left in the folder stays.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::rows::{Name, Timed, shortened, timed};
use super::samples::{
    mean, median, median_absolute_deviation, quantile, sorted, standard_deviation,
};
use crate::hash::fnv64;
use crate::report::Report;
use crate::value::SplitMix;

/// Bytes of a directory's name.
const LONGEST: usize = 64;

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// Resamples of the bootstrap: ends of a 95 % interval are then among 25 values on either side.
/// What is fuzzed does not depend on their number.
const RESAMPLES: usize = if cfg!(fuzzing) { 10 } else { 1000 };

/// The files of a report, by their paths below criterion's folder.
pub(super) fn criterion(report: &Report) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for row in timed(report) {
        let folder = folder(&row.name);
        let directory = folder.join("/");
        for (name, content) in [
            ("benchmark", benchmark(&row, &directory)),
            ("estimates", estimates(&row)),
            ("sample", sample(&row)),
            ("tukey", tukey(&row)),
        ] {
            let path = PathBuf::from_iter(&folder).join("new").join(name).with_extension("json");
            files.push((path, content.to_string()));
        }
    }
    files
}

fn benchmark(timed: &Timed<'_>, directory: &str) -> Value {
    let Name { kernel, implementation, element, size } = &timed.name;
    let full = timed.name.to_string();
    json!({
        "group_id": kernel,
        "function_id": format!("{implementation}/{element}"),
        "value_str": size,
        "throughput": throughput(timed),
        "full_id": full,
        "directory_name": directory,
        "title": full,
    })
}

/// What one call moves, or else how much work it is; whole numbers, as critcmp reads no others.
fn throughput(timed: &Timed<'_>) -> Value {
    let bytes = timed.row.bytes_per_s.map(|rate| ("Bytes", (rate * timed.time / 1e9).round()));
    let work = timed.row.work.map(|work| ("Elements", work.round()));
    match bytes.or(work).filter(|(_, amount)| *amount >= 1.0 && *amount < 2_f64.powi(63)) {
        Some((kind, amount)) => json!({ kind: amount as u64 }),
        None => Value::Null,
    }
}

fn estimates(timed: &Timed<'_>) -> Value {
    let samples = &timed.samples;
    let mut bootstrap = Bootstrap::of(samples, &timed.name);
    let of_samples = bootstrap.interval(mean);
    json!({
        "mean": estimate(timed.time, timed.interval.unwrap_or(of_samples)),
        "median": estimate(median(samples), bootstrap.interval(median)),
        "median_abs_dev": estimate(
            median_absolute_deviation(samples),
            bootstrap.interval(median_absolute_deviation),
        ),
        "slope": null,
        "std_dev": estimate(
            standard_deviation(samples),
            bootstrap.interval(standard_deviation),
        ),
    })
}

/// The standard error is the one that a normal estimate with this interval has.
fn estimate(value: f64, (low, high): (f64, f64)) -> Value {
    /// Half the width of a normal 95 % interval, in standard errors.
    const HALF_WIDTH: f64 = 1.96;
    json!({
        "confidence_interval": {
            "confidence_level": CONFIDENCE,
            "lower_bound": low,
            "upper_bound": high,
        },
        "point_estimate": value,
        "standard_error": (high - low) / 2.0 / HALF_WIDTH,
    })
}

/// Samples drawn again from samples, the same ones whenever a row is exported.
struct Bootstrap<'a> {
    samples: &'a [f64],
    random: SplitMix,
}

impl<'a> Bootstrap<'a> {
    fn of(samples: &'a [f64], name: &Name) -> Self {
        Bootstrap { samples, random: SplitMix(fnv64(name.to_string().as_bytes())) }
    }

    /// The percentile interval of a figure (Efron 1979).
    fn interval(&mut self, figure: fn(&[f64]) -> f64) -> (f64, f64) {
        let count = self.samples.len();
        let mut draw = || self.samples[self.random.below(count as u64) as usize];
        let figures = (0..RESAMPLES).map(|_| {
            let again: Vec<f64> = (0..count).map(|_| draw()).collect();
            figure(&again)
        });
        let figures = sorted(&figures.collect::<Vec<_>>());
        let tail = (1.0 - CONFIDENCE) / 2.0;
        (quantile(&figures, tail), quantile(&figures, 1.0 - tail))
    }
}

fn sample(timed: &Timed<'_>) -> Value {
    let calls = timed.calls as f64;
    let times: Vec<f64> = timed.samples.iter().map(|sample| sample * calls).collect();
    json!({ "sampling_mode": "Flat", "iters": vec![calls; times.len()], "times": times })
}

/// Tukey's fences: beyond the inner two a sample is an outlier, beyond the outer two a severe one.
fn tukey(timed: &Timed<'_>) -> Value {
    let sorted = sorted(&timed.samples);
    let (first, third) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
    let range = third - first;
    json!([first - 3.0 * range, first - 1.5 * range, third + 1.5 * range, third + 3.0 * range])
}

/// The path of a row: as plain as its name, and shorter. Names have neither dots nor plus signs, so these stand for what a
/// path cannot have, and different names have different paths.
fn folder(name: &Name) -> [String; 3] {
    let function = format!("{}+{}", name.implementation, name.element);
    [&name.kernel, &function, &name.size].map(|part| {
        let dotted = part.replace("::", ".").replace(':', "%3A");
        // `..` is another folder, and `.hidden` is not seen.
        let is_plain = !dotted.starts_with('.');
        let part = if is_plain { dotted } else { part.replace(':', "%3A") };
        shortened(part, LONGEST)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::{Component, Path};

    use super::super::tests::{awkward, fixture};
    use super::*;

    fn parsed(files: &[(PathBuf, String)], path: &str) -> Value {
        let found = files.iter().find(|(found, _)| found.as_path() == Path::new(path));
        serde_json::from_str(&found.unwrap_or_else(|| panic!("no {path}")).1).expect("JSON")
    }

    #[test]
    fn a_row_has_its_files_with_the_reports_time() {
        let report = fixture();
        let files = criterion(&report);
        assert_eq!(files.len(), 4 * timed(&report).len());
        let row = &report.rows[0];
        let folder = "kernels.elementwise.saxpy.saxpy/saxpy+f32/n=1024/new";
        let benchmark = parsed(&files, &format!("{folder}/benchmark.json"));
        assert_eq!(benchmark["full_id"], row.name.as_str());
        assert_eq!(benchmark["function_id"], "saxpy/f32");
        assert_eq!(benchmark["throughput"], json!({ "Bytes": 12_292 }));
        let estimates = parsed(&files, &format!("{folder}/estimates.json"));
        assert_eq!(estimates["mean"]["point_estimate"], json!(row.time_ns));
        assert!(estimates["slope"].is_null());
        let sample = parsed(&files, &format!("{folder}/sample.json"));
        let (calls, times) = (sample["iters"][0].as_f64(), sample["times"][0].as_f64());
        let per_call = times.zip(calls).map(|(time, calls)| time / calls).expect("numbers");
        assert!((per_call / row.raw.samples[0][0][0] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_row_without_an_interval_still_has_numbers() {
        let mut report = fixture();
        report.rows[0].time_low_ns = Some(0.0);
        report.rows[0].time_high_ns = Some(f64::INFINITY);
        report.rows[0].raw.samples = vec![vec![vec![5.0]]];
        let files = criterion(&report);
        let folder = "kernels.elementwise.saxpy.saxpy/saxpy+f32/n=1024/new";
        let estimates = parsed(&files, &format!("{folder}/estimates.json"));
        for figure in ["mean", "median", "median_abs_dev", "std_dev"] {
            let interval = &estimates[figure]["confidence_interval"];
            assert!(interval["lower_bound"].is_number() && interval["upper_bound"].is_number());
        }
    }

    #[test]
    fn no_name_leaves_the_folder_and_no_two_share_one() {
        let report = awkward();
        let files = criterion(&report);
        let paths: HashSet<&PathBuf> = files.iter().map(|(path, _)| path).collect();
        assert_eq!(paths.len(), 4 * timed(&report).len());
        for path in paths {
            assert_eq!(path.components().count(), 5, "{path:?}");
            for component in path.components() {
                let Component::Normal(part) = component else { panic!("{path:?}") };
                let part = part.to_str().expect("text");
                assert!(part.len() <= LONGEST && !part.starts_with('.'), "{part}");
                assert!(!part.contains(|c: char| "?\"/\\*<>:|^".contains(c) || c.is_control()));
            }
        }
    }

    #[test]
    fn the_bootstrap_covers_the_figure_and_is_the_same_every_time() {
        let samples: Vec<f64> = (0..30).map(|i| 100.0 + f64::from(i % 7)).collect();
        let report = fixture();
        let name = &timed(&report)[0].name;
        let (low, high) = Bootstrap::of(&samples, name).interval(median);
        assert!(low < median(&samples) && median(&samples) < high, "{low} {high}");
        assert_eq!(Bootstrap::of(&samples, name).interval(median), (low, high));
    }
}
