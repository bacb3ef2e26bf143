//! Scores as Markdown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use campaign::Workload;
use campaign::statistics::Rate;

use crate::experiment::{Choice, Effect, Experiment, Load, Null, Tool};
use crate::record::Record;
use crate::score::{Reach, Score, reach};

/// Lower ends of the bands of stolen time, in cores: hardly any, some, and so much that there is not much left of two.
const THEFT: [f64; 3] = [0.0, 0.05, 0.5];

/// A tool as it was used, whatever its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Method {
    tool: Tool,
    null: Null,
    cells: u64,
}

/// The scores of one section: by method, then by budget.
type Scores = BTreeMap<Method, BTreeMap<Duration, Score>>;

/// All tables of some records.
pub(crate) fn table(records: &[Record]) -> String {
    let effects = effects(records);
    let mut text = format!("{} comparisons\n", records.len());
    text += "\n## in short: the same function, quiet, the longest budget\n\n";
    text += &summary(records);
    text += &by_theft(records);
    text += &pooled(records);
    for ((workload, load), scores) in sections(records) {
        let _ = writeln!(text, "\n## {}, {}\n", workload.name(), load.name());
        text += &figures(&scores, &effects);
        text += &reaches(&scores);
    }
    text
}

/// The sizes of all differences that there were.
fn effects(records: &[Record]) -> BTreeSet<Effect> {
    let sizes = records.iter().map(|record| record.experiment.effect.size());
    sizes.filter(|effect| *effect != Effect::ZERO).collect()
}

/// One row for every tool, over all workloads, where all tools are asked alike.
fn summary(records: &[Record]) -> String {
    let header = summary_header(records);
    let mut text = row(&header) + &row(&vec!["---".to_owned(); header.len()]);
    for cells in summary_rows(records, |_| true) {
        text += &row(&cells);
    }
    text
}

/// The same for every band of stolen time; nothing where the system does not tell.
fn by_theft(records: &[Record]) -> String {
    let mut header = vec!["stolen cores".to_owned()];
    header.extend(summary_header(records));
    let mut rows = Vec::new();
    for (index, low) in THEFT.iter().enumerate() {
        let high = THEFT.get(index + 1).copied().unwrap_or(f64::INFINITY);
        let name =
            if high.is_finite() { format!("{low} to {high}") } else { format!("over {low}") };
        let is_in = |record: &Record| record.stolen.is_some_and(|s| (*low..high).contains(&s));
        for mut cells in summary_rows(records, is_in) {
            cells.insert(0, name.clone());
            rows.push(row(&cells));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let head = row(&header) + &row(&vec!["---".to_owned(); header.len()]);
    format!(
        "\n## the same, by the time that a hypervisor kept for itself\n\n{head}{}",
        rows.concat()
    )
}

fn summary_header(records: &[Record]) -> Vec<String> {
    let mut header = vec!["tool".to_owned(), "equal, called different".to_owned()];
    header.extend(effects(records).iter().map(|effect| format!("{effect} found")));
    header.extend(["wrong signs", "mean error, %", "seconds"].map(str::to_owned));
    header
}

/// The cells of every tool, from those records that are wanted.
fn summary_rows(records: &[Record], is_wanted: impl Fn(&Record) -> bool) -> Vec<Vec<String>> {
    let longest = records.iter().map(|record| record.experiment.budget).max();
    let mut tools: BTreeMap<Tool, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| is_wanted(record)) {
        let Experiment { tool, null, cells, load, budget, .. } = record.experiment;
        if (null, cells, load, Some(budget)) == (Null::Same, 1, Load::Quiet, longest) {
            tools.entry(tool).or_default().push(record);
        }
    }
    let effects = effects(records);
    let cells = |(tool, records): (Tool, Vec<&Record>)| {
        let score = Score::of(&records);
        let power = |effect| score.power.get(effect).copied().unwrap_or_default();
        let mut cells = vec![tool.name().to_owned(), with_share(score.false_positives)];
        cells.extend(effects.iter().map(|effect| power(effect).to_string()));
        cells.push(score.wrong_signs.to_string());
        cells.extend([number(score.error), number(score.seconds)]);
        cells
    };
    tools.into_iter().map(cells).collect()
}

/// False positives over all workloads: what a promise about equal functions is judged by.
fn pooled(records: &[Record]) -> String {
    let mut groups: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
    for record in records {
        let experiment = record.experiment;
        let method =
            Method { tool: experiment.tool, null: experiment.null, cells: experiment.cells };
        let group = groups.entry((method, experiment.load, experiment.budget)).or_default();
        group.push(record);
    }
    let header = ["tool", "null", "cells", "load", "budget, s", "false positives [95 %]"];
    let mut text = "\n## equal functions, all workloads\n\n".to_owned();
    text += &(row(&header.map(str::to_owned)) + &row(&["---"; 6].map(str::to_owned)));
    for ((method, load, budget), records) in groups {
        let rate = Score::of(&records).false_positives;
        if rate.of > 0 {
            text += &row(&[
                method.tool.name().to_owned(),
                method.null.name().to_owned(),
                method.cells.to_string(),
                load.name().to_owned(),
                budget.as_secs_f64().to_string(),
                with_interval(rate),
            ]);
        }
    }
    text
}

fn sections(records: &[Record]) -> BTreeMap<(Workload, Load), Scores> {
    let mut groups: BTreeMap<_, BTreeMap<Method, BTreeMap<Duration, Vec<&Record>>>> =
        BTreeMap::new();
    for record in records {
        let experiment = record.experiment;
        let (tool, null, cells) = (experiment.tool, experiment.null, experiment.cells);
        let section = groups.entry((experiment.workload, experiment.load)).or_default();
        let method = section.entry(Method { tool, null, cells }).or_default();
        method.entry(experiment.budget).or_default().push(record);
    }
    let scored = |budgets: BTreeMap<Duration, Vec<&Record>>| {
        budgets.into_iter().map(|(budget, records)| (budget, Score::of(&records))).collect()
    };
    groups
        .into_iter()
        .map(|(section, methods)| {
            let scores = methods.into_iter().map(|(method, budgets)| (method, scored(budgets)));
            (section, scores.collect())
        })
        .collect()
}

/// One row for every method and budget.
fn figures(scores: &Scores, effects: &BTreeSet<Effect>) -> String {
    let mut header: Vec<String> =
        ["tool", "null", "cells", "budget, s", "false positives [95 %]"].map(str::to_owned).into();
    header.extend(effects.iter().map(|effect| format!("power {effect}")));
    let rest = ["wrong signs", "coverage", "half width, %", "mean error, %", "errors", "seconds"];
    header.extend(rest.map(str::to_owned));
    let mut text = row(&header) + &row(&vec!["---".to_owned(); header.len()]);
    for (method, budgets) in scores {
        for (budget, score) in budgets {
            let mut cells = vec![
                method.tool.name().to_owned(),
                method.null.name().to_owned(),
                method.cells.to_string(),
                budget.as_secs_f64().to_string(),
                with_interval(score.false_positives),
            ];
            cells.extend(
                effects.iter().map(|e| score.power.get(e).copied().unwrap_or_default().to_string()),
            );
            cells.extend([
                score.wrong_signs.to_string(),
                with_share(score.coverage),
                number(score.half_width),
                number(score.error),
                score.failures.to_string(),
                number(score.seconds),
            ]);
            text += &row(&cells);
        }
    }
    text
}

/// How long each method takes to find 1 %.
fn reaches(scores: &Scores) -> String {
    let found: Vec<(&Method, Reach)> = scores
        .iter()
        .filter_map(|(method, budgets)| {
            Some((method, reach(&budgets.values().collect::<Vec<_>>())?))
        })
        .collect();
    if found.is_empty() {
        return String::new();
    }
    let header = ["tool", "null", "cells", "seconds to 90 % power at 1 %"].map(str::to_owned);
    let mut text = "\n".to_owned() + &row(&header) + &row(&["---"; 4].map(str::to_owned));
    for (method, reach) in found {
        let seconds = match reach {
            Reach::AtMost(seconds) => format!("at most {seconds:.2}"),
            Reach::About(seconds) => format!("{seconds:.2}"),
            Reach::Never => "-".to_owned(),
        };
        let (tool, null) = (method.tool.name().to_owned(), method.null.name().to_owned());
        text += &row(&[tool, null, method.cells.to_string(), seconds]);
    }
    text
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}

/// `3/60 = 5.0 %`
fn with_share(rate: Rate) -> String {
    match rate.share() {
        Some(share) => format!("{rate} = {:.1} %", 100.0 * share),
        None => "-".to_owned(),
    }
}

/// `3/60 = 5.0 % [1.0, 13.9]`
fn with_interval(rate: Rate) -> String {
    if rate.of == 0 {
        return "-".to_owned();
    }
    let (low, high) = rate.interval();
    format!("{} [{:.1}, {:.1}]", with_share(rate), 100.0 * low, 100.0 * high)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::record::tests::record;
    use crate::tool::{Answer, Interval, Verdict};

    fn found(percent: f64, budget: u64, verdict: Verdict) -> Record {
        let truth = record(percent).truth;
        let interval = Some(Interval { low: truth - 0.001, high: truth + 0.001 });
        let answer = Answer { estimate: truth + 0.0005, interval, verdict };
        let mut record = record(percent).answered(Ok(answer));
        record.experiment.budget = Duration::from_secs(budget);
        record.wall = budget as f64;
        record
    }

    #[test]
    fn a_handful_of_records_makes_a_table() {
        let records = [
            found(0.0, 1, Verdict::Same),
            found(0.0, 1, Verdict::DifferentFaster),
            found(1.0, 1, Verdict::DifferentSlower),
            found(-1.0, 1, Verdict::Inconclusive),
            found(1.0, 4, Verdict::DifferentSlower),
            record(1.0).answered(Err("no luck".to_owned())),
        ];
        let expected = "\
6 comparisons

## in short: the same function, quiet, the longest budget

| tool | equal, called different | 1 % found | wrong signs | mean error, % | seconds |
| --- | --- | --- | --- | --- | --- |
| kbench | - | 1/1 | 0/1 | 0.05 | 4.00 |

## equal functions, all workloads

| tool | null | cells | load | budget, s | false positives [95 %] |
| --- | --- | --- | --- | --- | --- |
| kbench | same | 1 | quiet | 1 | 1/2 = 50.0 % [1.3, 98.7] |

## chain, quiet

| tool | null | cells | budget, s | false positives [95 %] | power 1 % | wrong signs | coverage | half width, % | mean error, % | errors | seconds |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| kbench | same | 1 | 1 | 1/2 = 50.0 % [1.3, 98.7] | 1/2 | 0/2 | 4/4 = 100.0 % | 0.10 | 0.05 | 0/4 | 1.00 |
| kbench | same | 1 | 2 | - | 0/1 | 0/1 | - | - | - | 1/1 | 2.00 |
| kbench | same | 1 | 4 | - | 1/1 | 0/1 | 1/1 = 100.0 % | 0.10 | 0.05 | 0/1 | 4.00 |

| tool | null | cells | seconds to 90 % power at 1 % |
| --- | --- | --- | --- |
| kbench | same | 1 | 3.73 |
";
        assert_eq!(table(&records), expected);
    }

    #[test]
    fn stolen_time_has_bands_and_unknown_time_has_none() {
        let stolen = |stolen| Record { stolen, ..found(1.0, 1, Verdict::DifferentSlower) };
        let records = [Some(0.0), Some(0.049), Some(0.05), Some(1.5), None].map(stolen);
        let text = by_theft(&records);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("kbench")).collect();
        assert_eq!(rows.len(), 3, "{text}");
        for (row, start) in rows.iter().zip([
            "| 0 to 0.05 | kbench | - | 2/2 |",
            "| 0.05 to 0.5 | kbench | - | 1/1 |",
            "| over 0.5 | kbench | - | 1/1 |",
        ]) {
            assert!(row.starts_with(start), "{text}");
        }
        assert_eq!(by_theft(&[stolen(None)]), "");
    }

    #[test]
    fn the_published_tables_are_those_of_the_published_results() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let results = root.join("results/2026-11-18.jsonl");
        let records = crate::record::read(&results).expect("the published results");
        let document = root.join("../docs/statistics.md");
        let published = std::fs::read_to_string(document).expect("the document");
        let text = table(&records).replace("\n## ", "\n#### ");
        let (count, tables) = text.split_once('\n').expect("lines");
        assert!(published.contains(count), "{count}");
        assert!(published.contains(tables.trim()), "{tables}");
        let readme = std::fs::read_to_string(root.join("../README.md")).expect("the README");
        assert!(readme.contains(&summary(&records)), "{}", summary(&records));
    }
}
