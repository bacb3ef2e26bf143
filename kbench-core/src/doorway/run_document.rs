//! Run documents: whatever is read can be shown in every form, and written again.

use super::changes::changed;
use crate::baseline::{Baseline, Comparison, Earlier, Machine, Trends, values};
use crate::gate::{Policy, summary};
use crate::report::{
    Exported, Format, Report, Style, TestFormat, export, history, html, json, json_rows, plot,
    terminal, test_report,
};
use crate::store::{merge, read_document};
use crate::tuning;
use crate::visible::is_obeyed;

/// Bytes as a run document; those that do not begin like one are changes to a run that is known.
pub fn run_document(bytes: &[u8]) {
    let text = match bytes.first() {
        Some(b'{' | b'[' | b' ' | b'\n') => String::from_utf8_lossy(bytes).into_owned(),
        _ => changed(bytes),
    };
    match read_document(&text) {
        Ok(report) => {
            show(&report);
            compare(report);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The run in every form.
pub(super) fn show(report: &Report) {
    let written = json(report).expect("a run can be written");
    let again = read_document(&written).expect("what was written can be read");
    assert_eq!(json(&again).expect("written"), written, "a run is read as it was written");
    for format in Format::ALL {
        match export(report, &[], format).expect("every format takes every run") {
            Exported::File(_) => {}
            Exported::Tree(files) => {
                let is_inside = |path: &std::path::Path| {
                    path.components().all(|c| matches!(c, std::path::Component::Normal(_)))
                };
                assert!(files.iter().all(|(path, _)| is_inside(path)), "a path leads elsewhere");
            }
        }
    }
    json_rows(report).expect("rows can be written");
    for shown in [
        terminal(report, Style::PLAIN),
        plot(report, Style::PLAIN),
        test_report(report, TestFormat::Pretty, Style::PLAIN),
        test_report(report, TestFormat::Terse, Style::PLAIN),
        test_report(report, TestFormat::Json, Style::PLAIN),
    ] {
        let obeyed = shown.chars().find(|c| is_obeyed(*c) && *c != '\n');
        assert_eq!(obeyed, None, "a terminal would obey it");
    }
    terminal(report, Style::COLOURED);
}

/// The run beside others: another of its kind, its own past, limits, thresholds.
fn compare(report: Report) {
    let mut trends = Trends::default();
    for _ in 0..3 {
        trends.add(&report, &Machine::of(&report), |_| true);
    }
    let trends = trends.all();
    history(&trends, Style::PLAIN);
    html(&report, &trends);
    for policy in ["5%", "review", "0%"] {
        let policy: Policy = policy.parse().expect("a policy");
        let ruling = policy.judge(&report);
        policy.misspelt(&report.plan.kernels);
        summary(&report, Some(&ruling));
    }
    let tuned = tuning::collect(&report).thresholds;
    let tuned: Vec<_> = tuned.into_iter().map(|(threshold, _)| threshold).collect();
    let _ = tuning::merge("", &tuned);
    let other = Report { run: "other".into(), ..report.clone() };
    for parts in [vec![report.clone()], vec![report.clone(), other.clone()]] {
        let _ = merge(parts).map(|merged| terminal(&merged, Style::PLAIN));
    }
    let runs = Earlier { runs: vec![values(&report), values(&other)], baseline: 0 };
    let mut judged = other;
    let baseline = Baseline { name: "main".into(), report };
    let reason = "both are runs of another day".into();
    baseline.put_beside(&mut judged, Comparison::History { runs: &runs, reason });
    terminal(&judged, Style::PLAIN);
    html(&judged, &[]);
}
