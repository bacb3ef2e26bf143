//! google-benchmark's JSON, for its `compare.py`: one entry for every sample.
//!
//! With `compare.py filters run.json /saxpy/ /saxpy_rayon,threads=2/` variants of one file are compared, with `benchmarks`
//! two files; both test with Mann-Whitney's U. What it stumbles over:
//!
//! * It takes the geometric mean over all entries but aggregates, and fails at one without times. So a row that failed is
//!   told as an aggregate that has an error and no time. A row that was skipped is in the context: every machine without a
//!   GPU has some, and other readers (Bencher's `cpp_google`) refuse a file with an entry that has no time.
//! * Entries of one name are repetitions; names therefore tell threads and modes, beside the variant, where a filter
//!   replaces them together.
//! * It wants a processor's time, which kbench does not take: that is the time of the clock again.
//!
//! Rows that were listed are in it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::moment;
use super::rows::{Named, Timed, listed};
use crate::environment::Environment;
use crate::report::{Report, Status};

/// The report as google-benchmark would write it.
pub(super) fn gbench(report: &Report) -> String {
    let mut families = Families::default();
    let mut entries = Vec::new();
    for named in listed(report) {
        let place = families.place(&named);
        match (&named.row.status, Timed::of(named.clone())) {
            (Status::Failed(reason), _) => entries.push(failure(&named, place, reason)),
            (_, Some(timed)) => entries.extend(repetitions(&timed, place)),
            _ => {}
        }
    }
    let document = json!({ "context": context(report), "benchmarks": entries });
    format!("{document:#}\n")
}

/// Where an entry stands: its family, and its number therein.
#[derive(Clone, Copy)]
struct Place {
    family: usize,
    instance: usize,
}

/// A family is a variant, as it ran, of a kernel and a type; its instances are sizes.
#[derive(Default)]
struct Families(HashMap<[String; 3], Place>);

impl Families {
    fn place(&mut self, Named { name, .. }: &Named<'_>) -> Place {
        let count = self.0.len();
        let family = [&name.kernel, &name.implementation, &name.element].map(String::clone);
        let next = self.0.entry(family).or_insert(Place { family: count, instance: 0 });
        let place = *next;
        next.instance += 1;
        place
    }
}

fn repetitions(timed: &Timed<'_>, place: Place) -> Vec<Value> {
    let row = timed.row;
    let entry = |(index, sample): (usize, &f64)| {
        let mut entry = json!({
            "name": timed.name.to_string(),
            "family_index": place.family,
            "per_family_instance_index": place.instance,
            "run_name": timed.name.to_string(),
            "run_type": "iteration",
            "repetitions": timed.samples.len(),
            "repetition_index": index,
            "threads": row.threads,
            "iterations": timed.calls,
            "real_time": sample,
            "cpu_time": sample,
            "time_unit": "ns",
        });
        for (rate, key) in [
            (row.bytes_per_s, "bytes_per_second"),
            (row.items_per_s, "items_per_second"),
            (row.flops_per_s, "flops_per_second"),
        ] {
            let of_sample = rate.map(|rate| rate * timed.time / sample);
            if let Some(rate) = of_sample.filter(|rate| rate.is_finite()) {
                entry[key] = json!(rate);
            }
        }
        entry
    };
    timed.samples.iter().enumerate().map(entry).collect()
}

fn failure(named: &Named<'_>, place: Place, reason: &str) -> Value {
    json!({
        "name": named.name.to_string(),
        "family_index": place.family,
        "per_family_instance_index": place.instance,
        "run_name": named.name.to_string(),
        "run_type": "aggregate",
        "aggregate_name": "error",
        "threads": named.row.threads,
        "error_occurred": true,
        "error_message": reason,
    })
}

fn context(report: &Report) -> Value {
    let Environment { machine, cores, caches, governor, load, opt_level, .. } = &report.environment;
    let levels = [(1, "Data", caches.l1d), (2, "Unified", caches.l2), (3, "Unified", caches.l3)];
    let cache = |(level, kind, size): (u8, &str, Option<u64>)| {
        size.map(|size| json!({ "type": kind, "level": level, "size": size }))
    };
    let mut skipped = Map::new();
    for named in listed(report) {
        if let Status::Skipped(reason) = &named.row.status {
            skipped.insert(named.name.to_string(), json!(reason));
        }
    }
    json!({
        "date": moment(report.started) + "+00:00",
        "host_name": machine,
        "executable": report.command.first(),
        "num_cpus": cores,
        "cpu_scaling_enabled": governor.as_ref().is_some_and(|governor| governor != "performance"),
        "caches": levels.into_iter().filter_map(cache).collect::<Vec<_>>(),
        "load_avg": load.iter().collect::<Vec<_>>(),
        "library_build_type": if opt_level == "0" { "debug" } else { "release" },
        "json_schema_version": 1,
        "kbench_version": report.environment.kbench,
        "kbench_run": report.run,
        "kbench_skipped": skipped,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{awkward, fixture};
    use super::*;

    fn entries(report: &Report) -> Vec<Value> {
        let text = gbench(report);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(document["context"]["json_schema_version"], 1);
        document["benchmarks"].as_array().expect("entries").clone()
    }

    #[test]
    fn every_sample_is_a_repetition_of_its_row() {
        let report = fixture();
        let samples = |row: &crate::report::RowReport| row.raw.samples.concat().concat();
        let all: usize = report.rows.iter().map(|row| samples(row).len()).sum();
        let entries = entries(&report);
        assert_eq!(entries.len(), all);
        for (index, (entry, sample)) in entries.iter().zip(samples(&report.rows[0])).enumerate() {
            assert_eq!(entry["name"], report.rows[0].name.as_str());
            assert_eq!(
                (&entry["real_time"], &entry["repetition_index"]),
                (&json!(sample), &json!(index))
            );
        }
    }

    #[test]
    fn a_row_that_failed_has_a_reason_and_no_time() {
        let entries = entries(&awkward());
        let failed: Vec<&Value> =
            entries.iter().filter(|entry| entry["error_occurred"] == true).collect();
        assert!(!failed.is_empty());
        for entry in failed {
            assert!(entry.get("real_time").is_none() && entry["run_type"] == "aggregate");
            assert!(!entry["error_message"].as_str().unwrap_or_default().is_empty(), "{entry}");
        }
    }

    #[test]
    fn a_family_is_a_variant_and_its_instances_are_sizes() {
        let report = fixture();
        let places: Vec<(Value, Value)> = entries(&report)
            .iter()
            .filter(|entry| entry["repetition_index"] == 0)
            .filter(|entry| entry["name"].as_str().is_some_and(|name| name.contains("/saxpy/")))
            .map(|entry| {
                (entry["family_index"].clone(), entry["per_family_instance_index"].clone())
            })
            .collect();
        assert_eq!(places, [0, 1, 2].map(|instance| (json!(0), json!(instance))));
    }
}
