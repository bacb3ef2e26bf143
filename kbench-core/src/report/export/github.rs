//! github-action-benchmark's `customSmallerIsBetter`: a list of names, values and units.
//!
//! All values of a file have the same better side, so these are times alone. The range is read as a number after `±`, in
//! the unit of the value. The action draws a chart for every name and keeps it; rows that were listed and have a time are
//! in it.

use serde_json::{Value, json};

use super::rows::{Timed, timed};
use crate::report::{Report, units};

/// The report as a list for github-action-benchmark.
pub(super) fn github(report: &Report) -> String {
    let entries: Value = timed(report).iter().map(entry).collect();
    format!("{entries:#}\n")
}

fn entry(timed: &Timed<'_>) -> Value {
    let mut entry = json!({
        "name": timed.name.to_string(),
        "unit": "ns",
        "value": timed.time,
        "extra": extra(timed),
    });
    if let Some((low, high)) = timed.interval {
        entry["range"] = json!(format!("± {:.4}", (high - low) / 2.0));
    }
    entry
}

/// What a tool tip shows.
fn extra(timed: &Timed<'_>) -> String {
    let comparison = &timed.row.comparison;
    let mut lines = vec![format!("{} launches", timed.row.launches)];
    if let Some(speedup) = comparison.speedup {
        let verdict = comparison.verdict.as_deref().unwrap_or_default();
        lines.push(format!("{}× of the base {verdict}", units::ratio(speedup)).trim().to_owned());
    }
    if let Some(rate) = timed.row.bytes_per_s {
        lines.push(format!("{} GB/s", units::digits(rate / 1e9)));
    }
    if let Some(rate) = timed.row.flops_per_s {
        lines.push(format!("{} GFLOP/s", units::digits(rate / 1e9)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{awkward, fixture};
    use super::*;

    #[test]
    fn an_entry_is_a_time_with_half_its_interval() {
        let report = fixture();
        let row = &report.rows[0];
        let half = row.time_high_ns.zip(row.time_low_ns).map(|(high, low)| (high - low) / 2.0);
        let all: Value = serde_json::from_str(&github(&report)).expect("JSON");
        assert_eq!(all[0]["name"], row.name.as_str());
        assert_eq!((&all[0]["value"], &all[0]["unit"]), (&json!(row.time_ns), &json!("ns")));
        let range = all[0]["range"].as_str().and_then(|range| range.strip_prefix("± "));
        let range: f64 = range.expect("a range").parse().expect("a number");
        assert!((range - half.expect("ends")).abs() < 1e-4);
    }

    #[test]
    fn awkward_names_are_different_and_rows_without_a_time_are_not_there() {
        let report = awkward();
        let all: Vec<Value> = serde_json::from_str(&github(&report)).expect("JSON");
        assert_eq!(all.len(), timed(&report).len());
        for (index, entry) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other["name"] != entry["name"]), "{entry}");
        }
    }
}
