//! Rows over stored runs, on a terminal: a line each, and what changed when.

use std::fmt::Write;

use super::plot::sparkline;
use super::remarks::wrapped_at;
use super::style::Tone;
use super::table::{Align, Cell, Table};
use super::{Style, Trend, TrendPoint, units};
use crate::calendar::date;

/// Runs that a line shows; older ones are left out.
const SHOWN_RUNS: usize = 40;

/// Trends as a table for every kernel, and a sentence for every change.
pub fn history(trends: &[Trend], style: Style) -> String {
    let mut text = String::new();
    let of_kernel = |trend: &Trend| trend.name.split('/').next().unwrap_or_default().to_owned();
    for trends in trends.chunk_by(|a, b| of_kernel(a) == of_kernel(b)) {
        let _ = writeln!(text, "\n{}", style.strong(&of_kernel(&trends[0])));
        text += &table(trends, style);
        for sentence in trends.iter().flat_map(changes) {
            let _ = writeln!(text, "{}", wrapped_at(&sentence, 2, 4));
        }
    }
    text
}

fn table(trends: &[Trend], style: Style) -> String {
    let mut table = Table::new(vec![
        ("row", Align::Left),
        ("runs", Align::Right),
        ("trend", Align::Left),
        ("first", Align::Right),
        ("last", Align::Right),
        ("change", Align::Right),
    ]);
    for trend in trends {
        let times: Vec<f64> = trend.points.iter().map(|point| point.time_ns).collect();
        let recent = &times[times.len().saturating_sub(SHOWN_RUNS)..];
        let (Some(first), Some(last)) = (times.first(), times.last()) else { continue };
        let change = last / first - 1.0;
        let tone = match trend.changes.last() {
            Some(_) if change > 0.0 => Tone::Bad,
            Some(_) => Tone::Good,
            None => Tone::Plain,
        };
        table.push(vec![
            Cell::new(short_name(trend)),
            Cell::new(times.len().to_string()),
            Cell::new(sparkline(recent)),
            Cell::new(units::time(*first)),
            Cell::new(units::time(*last)),
            Cell::toned(units::signed_percent(change), tone),
        ]);
    }
    table.render(style)
}

/// Variant, type and size, with threads and mode where they tell rows apart.
fn short_name(trend: &Trend) -> String {
    let mut name =
        trend.name.split_once('/').map_or(trend.name.as_str(), |(_, rest)| rest).to_owned();
    if trend.threads != 1 {
        name += &format!(" ({} threads)", trend.threads);
    }
    if trend.mode != "warm" {
        name += &format!(" ({})", trend.mode);
    }
    name
}

/// One sentence for every new level.
fn changes(trend: &Trend) -> Vec<String> {
    let ends = trend.changes.iter().copied().skip(1).chain([trend.points.len()]);
    let begins = [0].into_iter().chain(trend.changes.iter().copied());
    let stretches = begins.zip(trend.changes.iter().copied().zip(ends));
    let sentence = |(before, (at, end)): (usize, (usize, usize))| {
        let change = mean(&trend.points[at..end]) / mean(&trend.points[before..at]) - 1.0;
        let TrendPoint { run, started, git_commit, .. } = &trend.points[at];
        let commit = git_commit.as_ref().map_or_else(String::new, |c| format!(", commit {c:.7}"));
        let (name, change) = (short_name(trend), units::signed_percent(change));
        format!("{name}: {change} from {}{commit} on (run {run})", date(*started))
    };
    stretches.map(sentence).collect()
}

/// The geometric mean of the times.
fn mean(points: &[TrendPoint]) -> f64 {
    let sum: f64 = points.iter().map(|point| point.time_ns.ln()).sum();
    (sum / points.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_with_its_run_its_commit_and_how_much_it_is() {
        let point = |(i, time_ns): (u64, f64)| TrendPoint {
            run: format!("run{i}"),
            started: i * 86_400,
            git_commit: Some("0123456789abcdef".into()),
            time_ns,
            low_ns: None,
            high_ns: None,
        };
        let times = [100.0; 4].into_iter().chain([110.0; 4]);
        let trend = Trend {
            name: "a::b/c/f32/n=4".into(),
            threads: 2,
            mode: "warm".into(),
            points: (0..).zip(times).map(point).collect(),
            changes: vec![4],
        };
        let text = history(&[trend], Style::PLAIN);
        assert!(text.contains("c/f32/n=4 (2 threads)     8  ▁▁▁▁████"), "{text}");
        let told = "c/f32/n=4 (2 threads): +10 % from 1970-01-05, commit 0123456 on (run run4)";
        assert!(text.contains(told), "{text}");
    }
}
