//! `kbench.toml`, as each of its readers sees it.

use crate::gate::Policy;
use crate::harness::doorway::listed;
use crate::settings::{is_same_apart_from, tables};
use crate::tuning::{TunedThreshold, merge};

/// What the macros read at compile time. A crate of macros cannot be linked, but this part of it is one file that depends on
/// nothing.
#[path = "../../../kbench-macros/src/tuning/file.rs"]
#[allow(dead_code, reason = "the macros look at more of an entry than is looked at here")]
mod reader;

/// Bytes as a tuning file.
pub fn tuning_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let policy: Policy = "5%".parse().expect("a limit");
    if let Err(error) = policy.with_file(text) {
        assert!(error.to_string().contains("line "), "no place: {error}");
    }
    if let Err(error) = listed(text) {
        assert!(error.to_string().contains("line "), "no place: {error}");
    }
    if let Err(mistake) = reader::entries(text) {
        assert!((1..=text.lines().count()).contains(&mistake.line), "{mistake:?}");
    }
    let [first, second] = ["f", "g"].map(threshold);
    for new in [vec![], vec![first.clone()], vec![first, second]] {
        match merge(text, &new) {
            Ok(merged) => agree(text, &merged, &new),
            Err(error) => assert!(error.to_string().contains("line "), "no place: {error}"),
        }
    }
}

fn threshold(function: &str) -> TunedThreshold {
    TunedThreshold {
        krate: "kernels".into(),
        function: function.into(),
        kernel: "kernels::k".into(),
        base: "k".into(),
        machine: "m".into(),
        value: 100,
        low: 99,
        high: 101,
        code: "1f3a".into(),
        measured: "2026-11-15".into(),
        how: "kbench".into(),
    }
}

/// What holds for a file that thresholds were put into.
fn agree(text: &str, merged: &str, new: &[TunedThreshold]) {
    assert_eq!(merge(merged, new).as_deref(), Ok(merged), "a second time changes nothing");
    let is_blank = text.trim().is_empty();
    let has = |threshold: &TunedThreshold| {
        text.contains(&threshold.krate)
            && text.contains(&threshold.function)
            && text.contains(&threshold.machine)
    };
    if !is_blank && !new.iter().any(has) {
        assert!(merged.starts_with(text), "what others wrote is gone: {merged}");
    }
    if !is_blank {
        let read = |text| tables(text).expect("what is merged is TOML");
        let is_same = is_same_apart_from("threshold", &read(text), &read(merged));
        assert!(is_same, "what others wrote means something else: {merged}");
    }
    if reader::entries(text).is_ok() {
        let entries = reader::entries(merged).expect("what is written can be read");
        for threshold in new {
            let is_of = |entry: &&reader::Entry| {
                entry.krate == threshold.krate
                    && entry.function == threshold.function
                    && entry.machine == threshold.machine
            };
            let found: Vec<u64> = entries.iter().filter(is_of).map(|entry| entry.value).collect();
            assert_eq!(found, [threshold.value], "a threshold is there once: {merged}");
        }
    }
}
