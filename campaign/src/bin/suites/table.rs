//! Scores as Markdown.

use campaign::statistics::Rate;

use crate::record::Record;
use crate::score::{Group, Score};

const COLUMNS: [&str; 20] = [
    "rows",
    "s per row",
    "flags",
    "suites",
    "failed",
    "2 % found",
    "5 % found",
    "20 % found",
    "2 %, within the margin",
    "5 and 20 %, called equal",
    "wrong signs",
    "equal: equivalent",
    "equal: within 5 % or better",
    "equal: inconclusive",
    "equal: different",
    "false discoveries: mean, 95 % of suites",
    "coverage",
    "crossovers",
    "seconds",
    "under 5 launches",
];

/// The table of some records: a line for every group of rows, time per row and set of flags.
pub(crate) fn table(records: &[Record]) -> String {
    let mut kinds: Vec<(f64, &str)> =
        records.iter().map(|record| (record.per_row, record.flags.as_str())).collect();
    kinds.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    kinds.dedup();
    let mut text = line(&COLUMNS.map(str::to_owned)) + &line(&COLUMNS.map(|_| "---".to_owned()));
    for group in Group::ALL {
        for &(per_row, flags) in &kinds {
            let is_of = |record: &&Record| record.per_row == per_row && record.flags == flags;
            let of: Vec<&Record> = records.iter().filter(is_of).collect();
            let score = Score::of(group, &of);
            text += &line(&cells(group, per_row, flags, &score));
        }
    }
    text
}

fn cells(group: Group, per_row: f64, flags: &str, score: &Score) -> [String; COLUMNS.len()] {
    let [two, five, twenty] = score.found.map(share);
    let discoveries = [score.false_discoveries, score.false_discoveries_95].map(percent).join(", ");
    [
        group.name().to_owned(),
        per_row.to_string(),
        flags.to_owned(),
        score.failed.of.to_string(),
        score.failed.count.to_string(),
        two,
        five,
        twenty,
        share(score.within_margin),
        share(score.called_equal),
        score.wrong_signs.to_string(),
        share(score.equivalent),
        share(score.equal_within_5),
        share(score.inconclusive),
        share(score.different),
        discoveries,
        share(score.coverage),
        share(score.crossovers),
        score.seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.1}")),
        share(score.few_launches),
    ]
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// `3/60 = 5.0 %`
fn share(rate: Rate) -> String {
    rate.share()
        .map_or_else(|| rate.to_string(), |share| format!("{rate} = {}", percent(Some(share))))
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Crossover;
    use crate::score::tests::{record, row};

    #[test]
    fn known_records_give_known_figures() {
        let rows = vec![
            row("arithmetic", 2, "slower"),
            row("memory", -5, "faster"),
            row("memory", 0, "equal within 5 %"),
            row("memory", 0, "slower"),
            row("parallel_memory", 20, "provisional slower"),
        ];
        let crossovers = vec![Crossover { id: 1, truth: 300.0, brackets: vec![(256.0, 320.0)] }];
        let good = Record { crossovers, ..record(rows) };
        let failed = Record { error: Some("exit 1".into()), seconds: 1.0, ..record(Vec::new()) };
        let other = Record { per_row: 0.1, flags: "--x".into(), ..record(Vec::new()) };
        let text = table(&[good, failed, other]);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines[1],
            "| serial | 0.2 |  | 2 | 1 | 1/1 = 100.0 % | 1/1 = 100.0 % | - | 0/1 = 0.0 % | \
             0/1 = 0.0 % | 0/2 | 0/2 = 0.0 % | 1/2 = 50.0 % | 0/2 = 0.0 % | 1/2 = 50.0 % | \
             33.3 %, 33.3 % | 4/4 = 100.0 % | 1/1 = 100.0 % | 1.5 | 0/4 = 0.0 % |"
        );
        assert_eq!(
            lines[3],
            "| parallel | 0.2 |  | 2 | 1 | - | - | 0/1 = 0.0 % | - | 0/1 = 0.0 % | 0/1 | - | - | - | \
             - | 0.0 %, 0.0 % | 1/1 = 100.0 % | - | 1.5 | 0/1 = 0.0 % |"
        );
        assert!(lines[0].starts_with("| serial | 0.1 | --x | 1 | 0 | - |"), "{text}");
        assert_eq!(lines.len(), 6);
    }
}
