//! Bencher Metric Format: names, with measures that have a value and perhaps ends of an interval.
//!
//! Bencher reads it with `--adapter json`; `magic` finds it too. A value that is no number makes it refuse the whole file,
//! so ends at infinity are left out. `latency` (nanoseconds) and `throughput` (calls per second) are measures that Bencher
//! knows; the others come into being when they are first sent. Rows that were listed and have a time are in it.

use serde_json::{Map, Value, json};

use super::rows::{Timed, timed};
use crate::report::Report;

/// The report in Bencher Metric Format.
pub(super) fn bmf(report: &Report) -> String {
    let mut all = Map::new();
    for row in timed(report) {
        all.insert(row.name.to_string(), measures(&row));
    }
    format!("{:#}\n", Value::Object(all))
}

fn measures(timed: &Timed<'_>) -> Value {
    /// Nanoseconds.
    const SECOND: f64 = 1e9;
    let row = timed.row;
    let comparison = &row.comparison;
    let calls = timed.interval.map(|(low, high)| (SECOND / high, SECOND / low));
    let speedups = comparison.speedup_low.zip(comparison.speedup_high);
    let mut measures = Map::new();
    for (name, value, interval) in [
        ("latency", Some(timed.time), timed.interval),
        ("throughput", Some(SECOND / timed.time), calls),
        ("speedup", comparison.speedup, speedups),
        ("items-per-second", row.items_per_s, None),
        ("bytes-per-second", row.bytes_per_s, None),
        ("flops-per-second", row.flops_per_s, None),
        ("ceiling-share", row.ceiling_share, None),
        ("relative-error", row.check.error, None),
    ] {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            measures.insert(name.to_owned(), metric(value, interval));
        }
    }
    Value::Object(measures)
}

fn metric(value: f64, interval: Option<(f64, f64)>) -> Value {
    match interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
        Some((low, high)) => json!({ "value": value, "lower_value": low, "upper_value": high }),
        None => json!({ "value": value }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{awkward, fixture};
    use super::*;

    #[test]
    fn every_measure_has_a_number_and_ends_only_where_they_are_numbers() {
        let mut report = fixture();
        let row = report.rows.iter_mut().find(|row| row.variant == "saxpy_rayon").expect("a row");
        row.comparison.speedup_high = Some(f64::INFINITY);
        let (time, low) = (row.time_ns.expect("a time"), row.time_low_ns.expect("an end"));
        let all: Value = serde_json::from_str(&bmf(&report)).expect("JSON");
        let name = "kernels::elementwise::saxpy::saxpy/saxpy_rayon,threads=1/f32/n=1024";
        assert_eq!(all[name]["latency"]["value"], json!(time));
        assert_eq!(all[name]["latency"]["lower_value"], json!(low));
        assert_eq!(all[name]["throughput"]["value"], json!(1e9 / time));
        assert!(all[name]["speedup"].get("lower_value").is_none());
        let base = &all["kernels::elementwise::saxpy::saxpy/saxpy/f32/n=1024"];
        assert!(base.get("speedup").is_none() && base.get("latency").is_some(), "{base}");
    }

    #[test]
    fn awkward_names_are_all_there_and_rows_without_a_time_are_not() {
        let report = awkward();
        let all: Value = serde_json::from_str(&bmf(&report)).expect("JSON");
        assert_eq!(all.as_object().map(Map::len), Some(timed(&report).len()));
    }
}
