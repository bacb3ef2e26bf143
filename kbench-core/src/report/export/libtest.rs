//! The lines of Rust's own bench harness, for github-action-benchmark (`tool: cargo`) and Bencher (`rust_bench`).
//!
//! Both match a whole line from `test` to the closing bracket, so there is no blank in a name, and nothing follows the
//! bracket (libtest itself may add `= 12 MB/s`, which they do not read). The value is the median of the samples and `+/-`
//! the distance between the largest and the smallest, after libtest's manner of first moving those beyond the 5th and 95th
//! percentile to it.
//!
//! Rows that were listed are in it, as lines of a frame that counts them, and what failed in a search of crossovers. In
//! test mode there are no times, and rows are `ok`.

use std::fmt::Write;

use super::one_line;
use super::rows::{Named, Timed, judged};
use super::samples::{median, quantile, sorted};
use crate::report::{Report, Status};
use crate::visible::in_lines;

/// The share at either end that is moved in.
const CLIPPED: f64 = 0.05;

/// How many rows ended how.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
    measured: usize,
}

/// The report as libtest prints one.
pub(super) fn libtest(report: &Report) -> String {
    let rows = judged(report);
    let mut text =
        format!("\nrunning {} test{}\n", rows.len(), if rows.len() == 1 { "" } else { "s" });
    let mut counts = Counts::default();
    for named in &rows {
        let outcome = outcome(named, &mut counts);
        let _ = writeln!(text, "test {} ... {outcome}", named.name);
    }
    text += &failures(&rows);
    let Counts { passed, failed, ignored, measured } = counts;
    let word = if failed > 0 { "FAILED" } else { "ok" };
    let _ = writeln!(
        text,
        "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; {measured} measured; {} filtered \
         out; finished in {:.2}s\n",
        report.filtered_out,
        report.seconds.checking + report.seconds.measuring
    );
    text
}

fn outcome(named: &Named<'_>, counts: &mut Counts) -> String {
    let (count, words) = match (&named.row.status, Timed::of(named.clone())) {
        (Status::Failed(_), _) => (&mut counts.failed, "FAILED".to_owned()),
        (Status::Skipped(reason), _) => {
            (&mut counts.ignored, format!("ignored, {}", one_line(reason)))
        }
        (Status::Unchecked(_), None) => (&mut counts.failed, "FAILED".to_owned()),
        (Status::Ok, None) => (&mut counts.passed, "ok".to_owned()),
        (Status::Ok | Status::Unchecked(_), Some(timed)) => (&mut counts.measured, bench(&timed)),
    };
    *count += 1;
    words
}

fn bench(timed: &Timed<'_>) -> String {
    let sorted = sorted(&timed.samples);
    let spread = quantile(&sorted, 1.0 - CLIPPED) - quantile(&sorted, CLIPPED);
    format!("bench: {:>14} ns/iter (+/- {})", grouped(median(&sorted)), grouped(spread))
}

fn failures(rows: &[Named<'_>]) -> String {
    let mut text = String::new();
    for Named { name, row } in rows {
        if let Status::Failed(reason) = &row.status {
            // A reason has lines of its own, and none of them may look like a result.
            let reason = in_lines(reason);
            let lines: Vec<String> = reason.lines().map(|line| format!("  {line}\n")).collect();
            let _ = write!(text, "\n---- {name} stdout ----\n{}", lines.concat());
        }
    }
    if text.is_empty() { text } else { format!("\nfailures:\n{text}") }
}

/// Two decimals, and a comma after every three digits before them: `70,600.98`.
fn grouped(value: f64) -> String {
    let text = format!("{value:.2}");
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "00"));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped}.{decimals}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{awkward, fixture};
    use super::*;

    #[test]
    fn numbers_have_separators_and_two_decimals() {
        assert_eq!(
            [0.0, 12.345, 999.999, 70_600.98, 1_234_567.0].map(grouped),
            ["0.00", "12.35", "1,000.00", "70,600.98", "1,234,567.00"]
        );
    }

    #[test]
    fn a_line_has_the_median_and_the_spread() {
        let report = fixture();
        let mut row = report.rows[0].clone();
        row.raw.samples = vec![vec![(0..=20).map(|i| 1000.0 + f64::from(i)).collect()]];
        let report = Report { rows: vec![row], searched: Vec::new(), ..report };
        let text = libtest(&report);
        let line = text.lines().nth(2).expect("a line");
        assert!(line.ends_with("... bench:       1,010.00 ns/iter (+/- 18.00)"), "{line}");
        assert!(text.contains("running 1 test\n") && text.contains("0 ignored; 1 measured;"));
    }

    #[test]
    fn awkward_rows_are_one_line_each() {
        let report = awkward();
        let text = libtest(&report);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("test ")).collect();
        assert_eq!(lines.len(), judged(&report).len() + 1);
        for line in &lines[..lines.len() - 1] {
            assert_eq!(line.split(' ').nth(2), Some("..."), "{line}");
        }
        assert!(text.contains(" ... FAILED\n") && text.contains(" ... ignored, "));
    }
}
