//! JUnit's XML, as Jenkins reads it: what is right and what was promised, as tests.
//!
//! GitLab, GitHub's test reporters and most others read the same. A kernel is a suite and a row a case in it, failed or
//! skipped with its reason; a target of `expect` is a case of its own, failed where it is missed, and skipped where it is
//! undecided. Whether a variant is faster than another is no test. The time of a case is what its samples took.
//!
//! There is no schema that all follow; this keeps to elements and attributes that Jenkins' own knows. XML forbids most
//! control characters even as references, and a reason may quote what a kernel printed, so they are replaced; as are those
//! that it allows and a viewer would obey.
//!
//! Rows that were listed are in it, and what failed in a search of crossovers.

use std::fmt::Write;

use super::moment;
use super::rows::{Named, Timed, judged};
use crate::infer::Attainment;
use crate::report::index::grouped;
use crate::report::{Report, Status};
use crate::visible::is_obeyed;

/// A test of a suite.
struct Case {
    name: String,
    seconds: Option<f64>,
    outcome: Outcome,
}

enum Outcome {
    Passed,
    /// What it is a failure of, and why.
    Failed(&'static str, String),
    Skipped(String),
}

#[derive(Clone, Copy, Default)]
struct Counts {
    tests: usize,
    failures: usize,
    skipped: usize,
    seconds: f64,
}

impl Counts {
    fn of<'c>(cases: impl IntoIterator<Item = &'c Case>) -> Self {
        let mut counts = Counts::default();
        for case in cases {
            counts.tests += 1;
            counts.seconds += case.seconds.unwrap_or(0.0);
            match case.outcome {
                Outcome::Passed => {}
                Outcome::Failed(..) => counts.failures += 1,
                Outcome::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    fn attributes(self) -> String {
        let Counts { tests, failures, skipped, seconds } = self;
        format!(
            "tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{seconds:.6}\""
        )
    }
}

/// The report as JUnit's XML.
pub(super) fn junit(report: &Report) -> String {
    // A row of a search comes after all kernels, and belongs to its own.
    let kernels = grouped(judged(report), |named| named.name.kernel.clone());
    let suite_of = |rows: Vec<Named<'_>>| {
        (rows[0].name.kernel.clone(), rows.iter().flat_map(cases).collect::<Vec<_>>())
    };
    let suites: Vec<(String, Vec<Case>)> = kernels.into_iter().map(suite_of).collect();
    let total = Counts::of(suites.iter().flat_map(|(_, cases)| cases));
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"kbench\" {}>", total.attributes());
    for (kernel, cases) in &suites {
        text += &suite(report, kernel, cases);
    }
    text + "</testsuites>\n"
}

fn suite(report: &Report, kernel: &str, cases: &[Case]) -> String {
    let kernel = escaped(kernel);
    let mut text = format!(
        "  <testsuite name=\"{kernel}\" {} timestamp=\"{}\" hostname=\"{}\">\n",
        Counts::of(cases).attributes(),
        moment(report.started),
        escaped(&report.environment.machine),
    );
    for Case { name, seconds, outcome } in cases {
        let time = seconds.map_or_else(String::new, |seconds| format!(" time=\"{seconds:.6}\""));
        let _ =
            write!(text, "    <testcase classname=\"{kernel}\" name=\"{}\"{time}", escaped(name));
        let _ = match outcome {
            Outcome::Passed => writeln!(text, "/>"),
            Outcome::Skipped(reason) => {
                writeln!(text, "><skipped message=\"{}\"/></testcase>", escaped(reason))
            }
            Outcome::Failed(kind, reason) => {
                let reason = escaped(reason);
                writeln!(
                    text,
                    "><failure type=\"{kind}\" message=\"{reason}\">{reason}</failure></testcase>"
                )
            }
        };
    }
    text + "  </testsuite>\n"
}

/// The case of a row, and those of its targets.
fn cases(named: &Named<'_>) -> Vec<Case> {
    let name = named.name.below_kernel();
    let measured = |timed: Timed<'_>| timed.samples.iter().sum::<f64>() * timed.calls as f64 / 1e9;
    let outcome = match &named.row.status {
        Status::Ok => Outcome::Passed,
        Status::Failed(reason) => Outcome::Failed("check", reason.clone()),
        Status::Unchecked(_) => Outcome::Failed("check", named.row.status.to_string()),
        Status::Skipped(reason) => Outcome::Skipped(reason.clone()),
    };
    let seconds = Timed::of(named.clone()).map(measured);
    let mut cases = vec![Case { name: name.clone(), seconds, outcome }];
    for target in &named.row.expectations {
        let outcome = match target.verdict {
            Attainment::Met => Outcome::Passed,
            Attainment::Missed => Outcome::Failed("target", target.reason.clone()),
            Attainment::Undecided => Outcome::Skipped(format!("undecided: {}", target.reason)),
        };
        let name = format!("{name} expect {}", target.target);
        cases.push(Case { name, seconds: None, outcome });
    }
    cases
}

/// Text as a value of XML 1.0: markup as references, line ends too, and what may not be there at all as `\u{FFFD}`.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&apos;",
            // An attribute would turn them into blanks.
            '\t' | '\n' | '\r' => escaped += &format!("&#{};", u32::from(character)),
            c if is_obeyed(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::tests::{awkward, fixture};
    use super::*;
    use crate::report::TargetReport;

    #[test]
    fn every_row_is_a_case_and_what_was_skipped_says_why() {
        let text = junit(&fixture());
        assert_eq!(text.matches("<testcase ").count(), 12);
        assert_eq!(text.matches("<skipped message=\"no CUDA driver").count(), 3, "{text}");
        let head =
            "<testsuites name=\"kbench\" tests=\"12\" failures=\"0\" errors=\"0\" skipped=\"3\" ";
        assert!(text.contains(head), "{text}");
    }

    #[test]
    fn a_missed_target_fails_and_an_open_one_is_skipped() {
        let mut report = fixture();
        let target = |verdict, reason: &str| TargetReport {
            target: "speedup >= 2".into(),
            verdict,
            reason: reason.into(),
        };
        report.rows[0].expectations = vec![
            target(Attainment::Missed, "has 1.5× [1.4, 1.6]"),
            target(Attainment::Undecided, "has 2× [1, 3]"),
            target(Attainment::Met, "has 3×"),
        ];
        let text = junit(&report);
        assert!(
            text.contains("<failure type=\"target\" message=\"has 1.5× [1.4, 1.6]\">"),
            "{text}"
        );
        assert!(text.contains("<skipped message=\"undecided: has 2× [1, 3]\"/>"), "{text}");
        assert!(text.contains("tests=\"15\" failures=\"1\" errors=\"0\" skipped=\"4\""), "{text}");
        assert!(text.contains("expect speedup &gt;= 2\"/>"), "{text}");
    }

    #[test]
    fn a_wrong_variant_fails_with_its_reason() {
        let mut report = fixture();
        report.rows[0].status = Status::Failed("its error is 3e-1".into());
        let text = junit(&report);
        assert!(text.contains("<failure type=\"check\" message=\"its error is 3e-1\">"), "{text}");
        assert!(text.contains("tests=\"12\" failures=\"1\" errors=\"0\" skipped=\"3\""), "{text}");
    }

    #[test]
    fn what_xml_does_not_allow_is_not_there() {
        assert_eq!(escaped("a<b>&\"'\n\u{0}\u{1b}[31m\u{ffff}é🚀"), {
            "a&lt;b&gt;&amp;&quot;&apos;&#10;\u{fffd}\u{fffd}[31m\u{fffd}é🚀"
        });
        let text = junit(&awkward());
        assert!(text.chars().all(|c| c >= ' ' || c == '\n') && !text.contains("<script"));
    }
}
