//! A run against its baseline, on a terminal: what changed, worst first, and how many rows did not.

use std::fmt::Write;

use super::index::grouped;
use super::remarks::wrapped;
use super::style::Tone;
use super::table::{Align, Cell, Table};
use super::{BaselineReport, Method, Report, RowReport, Style, units};
use crate::calendar::date_and_time;
use crate::order;

/// Rows that are shown at most; all are in the files.
const MOST_ROWS: usize = 40;

/// Everything that is known of changes; nothing without a baseline.
pub(super) fn changes(report: &Report, style: Style) -> String {
    let Some(baseline) = &report.baseline else { return String::new() };
    let compared: Vec<&RowReport> =
        report.rows.iter().filter(|row| row.change.change.is_some()).collect();
    let mut shown: Vec<&RowReport> =
        compared.iter().copied().filter(|row| tone(row) != Tone::Plain).collect();
    let change = |row: &RowReport| row.change.change.unwrap_or(0.0);
    order::sort_by(&mut shown, |a, b| change(b).total_cmp(&change(a)));
    let mut text = format!("\n{}\n", style.strong(&title(baseline)));
    let _ = writeln!(text, "{}", wrapped(&how(baseline)));
    if !shown.is_empty() {
        text += &table(&shown[..shown.len().min(MOST_ROWS)], style);
    }
    if shown.len() > MOST_ROWS {
        let _ = writeln!(text, "  … and {} more", shown.len() - MOST_ROWS);
    }
    let _ = writeln!(text, "{}", wrapped(&counts(&compared, baseline)));
    text
}

fn title(baseline: &BaselineReport) -> String {
    let commit = baseline.git_commit.as_ref();
    let commit = commit.map_or_else(String::new, |commit| format!(", commit {commit:.7}"));
    format!("against `{}`  {}{commit}", baseline.name, date_and_time(baseline.started))
}

fn how(baseline: &BaselineReport) -> String {
    let reason = baseline.reason.as_deref().unwrap_or("its executable is not there");
    match baseline.method {
        Method::Interleaved if baseline.reason.is_some() => {
            format!("nothing is compared: {reason}")
        }
        Method::Interleaved => "its executable was measured in turns with this one".to_owned(),
        Method::History => format!("by what earlier runs of this machine let one expect: {reason}"),
    }
}

fn table(rows: &[&RowReport], style: Style) -> String {
    let mut table = Table::new(vec![
        ("row", Align::Left),
        ("then", Align::Right),
        ("now", Align::Right),
        ("change", Align::Right),
        ("interval", Align::Left),
        ("verdict", Align::Left),
    ]);
    for row in rows {
        let time = |time: Option<f64>| time.map(units::time).unwrap_or_default();
        let share =
            |share: Option<f64>| share.map_or_else(|| "?".to_owned(), units::signed_percent);
        let change = &row.change;
        let interval = format!("{} to {}", share(change.change_low), share(change.change_high));
        let verdict = change.change_verdict.clone().unwrap_or_default();
        table.push(vec![
            Cell::new(short_name(row)),
            Cell::new(time(change.baseline_time_ns)),
            Cell::new(time(row.time_ns)),
            Cell::toned(share(change.change), tone(row)),
            Cell::new(interval),
            Cell::toned(verdict, tone(row)),
        ]);
    }
    table.render(style)
}

/// The key without the modules that lead to the kernel.
fn short_name(row: &RowReport) -> String {
    let key = row.key().to_string();
    let modules = row.kernel.len() - row.kernel.rsplit("::").next().map_or(0, str::len);
    key.get(modules..).unwrap_or(&key).to_owned()
}

fn tone(row: &RowReport) -> Tone {
    match row.change.change_verdict.as_deref() {
        Some(verdict) if verdict.ends_with("slower") => Tone::Bad,
        Some(verdict) if verdict.ends_with("faster") => Tone::Good,
        _ => Tone::Plain,
    }
}

/// How many rows of which verdict, and which rows only one of both runs has.
fn counts(rows: &[&RowReport], baseline: &BaselineReport) -> String {
    let verdicts = rows.iter().filter_map(|row| row.change.change_verdict.as_ref());
    let verdicts = grouped(verdicts, |verdict| *verdict);
    let mut parts: Vec<(String, usize)> =
        verdicts.iter().map(|same| (same[0].clone(), same.len())).collect();
    order::sort_by_key(&mut parts, |(_, count)| std::cmp::Reverse(*count));
    parts.extend([
        ("new".to_owned(), baseline.fresh.len()),
        ("gone".to_owned(), baseline.gone.len()),
    ]);
    let told = parts.iter().filter(|(_, count)| *count > 0);
    let told: Vec<String> = told.map(|(verdict, count)| format!("{count} {verdict}")).collect();
    if told.is_empty() { "no row is in both".to_owned() } else { told.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::super::{ChangeReport, Method};
    use super::*;
    use crate::store::read_document;

    #[test]
    fn what_changed_comes_worst_first_and_the_rest_is_counted() {
        let fixture = include_str!("../store/fixtures/schema-1.json");
        let mut report = read_document(fixture).expect("readable");
        assert_eq!(changes(&report, Style::PLAIN), "");
        let changed = |variant: &str, change: f64, verdict: &str| RowReport {
            change: ChangeReport {
                baseline_time_ns: Some(100.0),
                change: Some(change),
                change_low: Some(change - 0.001),
                change_verdict: Some(verdict.into()),
                ..ChangeReport::default()
            },
            time_ns: Some(100.0 * (1.0 + change)),
            ..row(variant, 8)
        };
        report.rows = vec![
            changed("better", -0.5, "faster"),
            changed("same", 0.0001, "equivalent"),
            changed("worse", 0.03, "slower"),
        ];
        report.baseline = Some(BaselineReport {
            name: "main".into(),
            run: "run".into(),
            started: 86_400,
            git_commit: Some("0123456789".into()),
            method: Method::Interleaved,
            reason: None,
            gone: vec!["a".into()],
            fresh: Vec::new(),
            shifts: Vec::new(),
        });
        let text = changes(&report, Style::PLAIN);
        let expected = "
against `main`  1970-01-02 00:00 UTC, commit 0123456
  its executable was measured in turns with this one
  row                    then      now  change  interval      verdict
  kernel/worse/f32/n=8   100 ns   103 ns  +3.0 %  +2.9 % to ?   slower
  kernel/better/f32/n=8  100 ns  50.0 ns   -50 %  -50 % to ?    faster
  1 faster, 1 equivalent, 1 slower, 1 gone
";
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeeze(&text), squeeze(expected), "{text}");
    }
}
