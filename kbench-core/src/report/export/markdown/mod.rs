//! Markdown for people: a pull request, a job's summary, a file in the repository.
//!
//! The verdict comes first, then where it was measured, what changed since the baseline (worst first), and a table for
//! every kernel with what was found about it. With many kernels their tables are folded, below what to take of each. Text
//! that may come from elsewhere is made inert ([`inert`]).
//!
//! Rows that were listed are in it. Of those that a search of crossovers measured it has what failed; what they say about
//! the crossover is among the findings.

mod changes;
mod inert;
mod kernel;

use std::fmt::Write;

use crate::calendar::date_and_time;
use crate::report::index::Index;
use crate::report::{PartReport, Report, RowReport, Status, WorkerReport};
pub(crate) use inert::{code, prose};

/// From this many kernels on their tables are folded.
const MANY: usize = 6;

/// The report as GitHub's Markdown.
pub(super) fn markdown(report: &Report) -> String {
    let mut text = format!("**{}**\n\n{}", verdict(report), environment(report));
    for warning in &report.warnings {
        let _ = writeln!(text, "- ⚠ {}", prose(warning));
    }
    if !report.missing.is_empty() {
        let kernels: Vec<String> = report.missing.iter().map(|kernel| code(kernel)).collect();
        let _ = writeln!(text, "- ⚠ in no part of the run: {}", kernels.join(", "));
    }
    text += &changes::changes(report);
    let kernels: Vec<&[RowReport]> = report.rows.chunk_by(RowReport::is_of_same_kernel).collect();
    let failed = report.searched.iter().filter(|row| matches!(row.status, Status::Failed(_)));
    let failed = Index::new(failed, |row| (&row.kernel, &row.element, &row.machine));
    for (position, rows) in kernels.iter().enumerate() {
        let key = (&rows[0].kernel, &rows[0].element, &rows[0].machine);
        let found = report.kernels.get(position);
        text += &kernel::kernel(found, rows, failed.of(&key), kernels.len() >= MANY);
    }
    text + &foot(report)
}

/// Everything in one sentence.
fn verdict(report: &Report) -> String {
    let failed = report.failed().count();
    let checks = match failed {
        0 => "every check passed".to_owned(),
        failed => format!("{failed} FAILED"),
    };
    let changes = report.baseline.as_ref().map(|baseline| {
        let words = report.rows.iter().filter_map(|row| row.change.change_verdict.as_deref());
        format!("since {}: {}", prose(&baseline.name), counted(words))
    });
    let words = report.rows.iter().filter_map(|row| row.comparison.verdict.as_deref());
    let comparisons = match words.clone().count() {
        0 => None,
        _ => Some(format!("against their bases: {}", counted(words))),
    };
    let parts: Vec<String> = [Some(checks), changes, comparisons].into_iter().flatten().collect();
    format!("kbench: {}", parts.join("; "))
}

/// `3 faster, 1 slower`: how many of each judgement, whatever reservation it has.
fn counted<'a>(verdicts: impl Iterator<Item = &'a str> + Clone) -> String {
    let judgements = ["slower", "faster", "equivalent", "equal within 5 %", "inconclusive"];
    let count = |word: &&str| verdicts.clone().filter(|verdict| verdict.ends_with(word)).count();
    let counts = judgements.iter().map(|word| (count(word), word)).filter(|(count, _)| *count > 0);
    let words: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    if words.is_empty() { "nothing to compare".to_owned() } else { words.join(", ") }
}

/// Where, when and with what.
fn environment(report: &Report) -> String {
    let environment = &report.environment;
    let rustc = environment.rustc.split(" (").next().unwrap_or_default();
    let commit =
        environment.git_commit.as_ref().map(|hash| format!("commit {}", code(&short(hash))));
    let parts = [
        Some(format!("kbench {}", prose(&environment.kbench))),
        Some(prose(&environment.cpu)),
        Some(format!("{} cores", environment.cores)),
        environment.os.as_deref().map(prose),
        Some(prose(rustc)),
        commit,
        Some(date_and_time(report.started)),
        Some(format!("seed {}", report.seed)),
    ];
    let mut text = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ") + "\n";
    if let Some(device) = &report.device {
        let _ = writeln!(text, "<br>{}", prose(&device.line()));
    }
    for line in report.workers.iter().filter_map(WorkerReport::line) {
        let _ = writeln!(text, "<br>{}", prose(&line));
    }
    for PartReport { run, environment, rows, .. } in &report.parts {
        let (run, cpu) = (code(run), prose(&environment.cpu));
        let _ = writeln!(text, "<br>{run}: {rows} rows on {cpu}, {} cores", environment.cores);
    }
    text + "\n"
}

fn short(hash: &str) -> String {
    hash.chars().take(7).collect()
}

fn foot(report: &Report) -> String {
    let count = |is: fn(&Status) -> bool| report.rows.iter().filter(|r| is(&r.status)).count();
    let command: Vec<&str> = report.command.iter().map(String::as_str).collect();
    format!(
        "\n{} rows measured or checked, {} failed, {} skipped, {} filtered out. Run {} by {}\n",
        count(Status::has_figures),
        report.failed().count(),
        count(|status| matches!(status, Status::Skipped(_))),
        report.filtered_out,
        code(&report.run),
        code(&command.join(" ")),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{awkward, fixture};
    use super::*;
    use crate::report::{BaselineReport, Method};

    #[test]
    fn the_verdict_comes_first_and_every_row_has_a_line() {
        let text = markdown(&fixture());
        let first = text.lines().next().expect("a line");
        assert!(
            first.starts_with("**kbench: every check passed; against their bases: "),
            "{first}"
        );
        let row = "| n=1024 | `saxpy_rayon` 2 threads |";
        assert_eq!(text.lines().filter(|line| line.starts_with(row)).count(), 1, "{text}");
        assert!(text.contains("⚠ few cores"), "{text}");
        assert!(text.contains("`saxpy_cuda`: skipped: `no CUDA driver"), "{text}");
    }

    #[test]
    fn changes_are_told_worst_first() {
        let mut report = fixture();
        for (row, change) in report.rows.iter_mut().zip([0.02, 0.5, -0.3]) {
            row.change.change = Some(change);
            row.change.change_low = Some(change - 0.01);
            row.change.change_high = Some(change + 0.01);
            row.change.baseline_time_ns = Some(100.0);
            let word = if change > 0.1 { "slower" } else { "advisory faster" };
            row.change.change_verdict = Some(word.into());
        }
        report.baseline = Some(BaselineReport {
            name: "main".into(),
            run: "then".into(),
            started: 0,
            git_commit: None,
            method: Method::Interleaved,
            reason: None,
            gone: Vec::new(),
            fresh: Vec::new(),
            shifts: Vec::new(),
        });
        let text = markdown(&report);
        assert!(
            text.lines().next().is_some_and(|line| line.contains("since main: 1 slower, 2 faster"))
        );
        let places = ["+50 %", "+2.0 %", "-30 %"].map(|change| text.find(change).expect(change));
        assert!(places[0] < places[1] && places[1] < places[2], "{text}");
    }

    #[test]
    fn failures_are_in_the_verdict_and_have_no_time() {
        let text = markdown(&awkward());
        assert!(text.lines().next().is_some_and(|line| line.contains(" FAILED")), "{text}");
        let is_failed = |line: &&str| line.starts_with('|') && line.contains("| **FAILED** |");
        let failed: Vec<&str> = text.lines().filter(is_failed).collect();
        assert!(!failed.is_empty(), "{text}");
        for line in failed {
            // From the end: error, throughput, verdict, speed-up, time.
            let cells: Vec<&str> = line.rsplit('|').map(str::trim).collect();
            assert_eq!([cells[2], cells[4], cells[5]], ["", "", ""], "{line}");
        }
    }
}
