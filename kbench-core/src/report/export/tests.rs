//! Reports to export, and what holds for all formats.

use super::*;
use crate::report::{RowReport, Status};
use crate::store::read_document;

/// A small run: two variants at three sizes, one of them with one and two threads, and a CUDA variant that was skipped.
pub(super) fn fixture() -> Report {
    read_document(include_str!("../../store/fixtures/schema-1.json")).expect("readable")
}

/// What nobody should call a kernel, a variant, a type or an axis.
const AWKWARD: [&str; 12] = [
    "../../..",
    "/etc/passwd",
    "a,b",
    "a\"b'c",
    "<script>alert(1)</script>",
    "line\nbreak\r\n# goos: plan9",
    "tab\tand blank",
    "🚀",
    "\u{0}\u{1b}[31m\u{ffff}",
    "`x` | **y** @you #1 https://example.com",
    "",
    "test x ... bench: 1 ns/iter (+/- 0)",
];

/// The same run with awkward names everywhere, rows that failed among them, and one that failed in a search.
pub(super) fn awkward() -> Report {
    let mut report = fixture();
    let template = report.rows[0].clone();
    let failed = |text: &str| Status::Failed(format!("{text} is wrong\n<b>& \u{7}|`"));
    for (index, text) in AWKWARD.into_iter().enumerate() {
        let with = |change: &dyn Fn(&mut RowReport)| {
            let mut row = template.clone();
            change(&mut row);
            row
        };
        report.rows.extend([
            with(&|row| row.kernel = text.into()),
            with(&|row| row.variant = format!("variant{text}")),
            with(&|row| row.element = format!("{text}32")),
            with(&|row| row.size = format!("{text}=4")),
            with(&|row| row.mode = format!("{text}{index}")),
            with(&|row| (row.status, row.size) = (failed(text), format!("failed={index}"))),
        ]);
        report.warnings.push(text.into());
    }
    report.rows.push(RowReport { variant: "x".repeat(100_000), ..template.clone() });
    report.searched.push(RowReport { status: failed("searched"), ..template });
    report
}

#[test]
fn every_format_is_found_by_its_name() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    let error = "junt".parse::<Format>().expect_err("no format").to_string();
    assert!(error.starts_with("there is no format `junt`; did you mean `junit`? "), "{error}");
    assert!(error.ends_with(
        "json, csv, markdown, html, go, libtest, gbench, criterion, bmf, github, junit"
    ));
}

#[test]
fn every_format_takes_every_report() {
    let nothing =
        Report { rows: Vec::new(), searched: Vec::new(), kernels: Vec::new(), ..fixture() };
    for report in [fixture(), awkward(), nothing] {
        for format in Format::ALL {
            let exported = export(&report, &[], format).expect("no failure");
            assert_eq!(matches!(exported, Exported::Tree(_)), format.is_tree());
        }
    }
}

/// Times of the searched rows are nowhere but in the run's own forms.
#[test]
fn tools_that_follow_names_get_what_was_listed() {
    let report = fixture();
    let searched = &report.searched[0].size;
    assert!(report.rows.iter().all(|row| row.size != *searched));
    for format in [Format::Go, Format::Libtest, Format::Gbench, Format::Bmf, Format::Github] {
        let Exported::File(text) = export(&report, &[], format).expect("text") else {
            panic!("a tree")
        };
        assert!(!text.contains(&format!("/{searched}")), "{}", format.name());
    }
    assert!(csv(&report).contains(searched.as_str()));
}

#[test]
fn moments_are_those_of_iso_8601() {
    assert_eq!(moment(1_735_689_599), "2024-12-31T23:59:59");
    assert_eq!(one_line("a\nb\u{1b}c"), "a b c");
}
