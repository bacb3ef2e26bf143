//! The table of all rows, and the command that makes them again.

use std::fmt::Write;

use super::super::row::UNCHECKED;
use super::super::{Report, RowReport, Status, units};
use super::text::{amount, count, escape, grouped, scaled};
use super::throughput::Rate;
use crate::crossover::Origin;
use crate::infer::Judgement;

/// A column: its title, the figure of the data by which it is sorted, and whether it is a number.
struct Column {
    title: &'static str,
    key: &'static str,
    is_number: bool,
}

const fn column(title: &'static str, key: &'static str, is_number: bool) -> Column {
    Column { title, key, is_number }
}

/// All columns, in order; a change comes only with a baseline.
const COLUMNS: [Column; 12] = [
    column("row", "name", false),
    column("threads", "threads", true),
    column("mode", "mode", false),
    column("work", "work", true),
    column("time", "time_ns", true),
    column("±95 %", "", true),
    column("speed-up", "speedup", true),
    column("interval", "", true),
    column("adj. p", "p_adjusted", true),
    column("verdict", "verdict", false),
    column("rate", "flops_per_s", true),
    column("error", "error", true),
];

const CHANGE: Column = column("change", "change", true);

/// The section.
pub(super) fn section(report: &Report) -> String {
    let rows = || report.rows.iter().chain(&report.searched);
    let has_change = report.baseline.is_some();
    let columns = COLUMNS.iter().chain(has_change.then_some(&CHANGE));
    let head: String = columns.map(heading).collect();
    let mut lines = String::new();
    rows().for_each(|row| line(&mut lines, row, has_change));
    let all = rows().count();
    let searched = match report.searched.len() {
        0 => String::new(),
        searched => {
            format!(", {} of them at sizes that the search of crossovers added", grouped(searched))
        }
    };
    let caption = format!("{}{searched}", count(all, "row", "rows"));
    format!(
        r#"<section id="rows" class="part"><h2>All rows</h2>{}<div class="scroll tall" role="region" aria-label="All rows" tabindex="0"><table id="table"><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div></section>"#,
        controls(all)
    )
}

fn heading(column: &Column) -> String {
    let class = if column.is_number { r#" class="num""# } else { "" };
    let Column { title, key, .. } = column;
    match *key {
        "" => format!(r#"<th scope="col"{class}>{title}"#),
        key => format!(r#"<th scope="col"{class} data-key="{key}">{title}"#),
    }
}

/// Filters; they need the script, and are hidden without it.
fn controls(all: usize) -> String {
    let options = |words: &[&str]| -> String {
        words.iter().map(|word| format!("<option>{word}</option>")).collect()
    };
    format!(
        r#"<form class="controls" hidden role="search" aria-label="filter rows"><label>name <input type="search" id="filter" autocomplete="off" spellcheck="false"></label> <label>status <select id="status"><option value="">any</option>{}</select></label> <label>verdict <select id="judged"><option value="">any</option>{}</select></label> <output id="shown" aria-live="polite">{} shown</output> <button type="button" id="download">download as JSON</button></form>"#,
        options(&["ok", "failed", "skipped", "unstable"]),
        options(&Judgement::ALL.map(Judgement::word)),
        count(all, "row", "rows")
    )
}

fn line(lines: &mut String, row: &RowReport, has_change: bool) {
    let found = &row.comparison;
    let text = |value: Option<String>| value.unwrap_or_default();
    let half = row.time_ns.zip(row.time_low_ns.zip(row.time_high_ns));
    let ends = found.speedup_low.zip(found.speedup_high);
    let interval = ends.map(|(low, high)| units::interval(low, high));
    let rate = [Rate::Flops, Rate::Bytes, Rate::Items]
        .into_iter()
        .find_map(|rate| Some(scaled(rate.figure(row)?, rate.unit())));
    let _ = write!(
        lines,
        r#"<tr><th scope="row">{}<td class="num">{}<td>{}<td class="num">{}"#,
        full_name(row),
        row.threads,
        escape(&row.mode),
        text(row.work.map(amount)),
    );
    let numbers = [
        text(row.time_ns.map(units::time)),
        text(half.map(|(time, (low, high))| units::half_width(time, low, high))),
        text(found.speedup.map(|s| format!("{}×", units::ratio(s)))),
        text(interval),
        text(found.p_adjusted.map(units::probability)),
    ];
    // A reason takes the room of the figures that there are not.
    if row.status.has_figures() {
        for number in numbers {
            let _ = write!(lines, r#"<td class="num">{}"#, escape(&number));
        }
    }
    let _ = write!(
        lines,
        r#"{}<td class="num">{}<td class="num">{}"#,
        verdict(row),
        text(rate),
        text(row.check.error.map(units::error))
    );
    if has_change {
        let _ = write!(lines, r#"<td class="num">{}"#, text(row.change.change.map(units::percent)));
    }
    lines.push_str("</tr>\n");
}

/// The name with its kernel emphasised, and where and why it was measured when that is not plain.
fn full_name(row: &RowReport) -> String {
    let searched = match row.origin {
        Origin::Searched => " <small>searched</small>",
        Origin::Listed => "",
    };
    let machine = row.machine.as_ref().map(|key| format!(" <small>on {}</small>", escape(key)));
    let notes = format!("{searched}{}", machine.unwrap_or_default());
    let parts = row.name.split_once('/').and_then(|(kernel, rest)| {
        let (path, kernel) = kernel.rsplit_once("::")?;
        Some((path, kernel, rest))
    });
    match parts.map(|(path, kernel, rest)| [path, kernel, rest].map(escape)) {
        Some([path, kernel, rest]) => format!("{path}::<b>{kernel}</b>/{rest}{notes}"),
        None => format!("{}{notes}", escape(&row.name)),
    }
}

fn verdict(row: &RowReport) -> String {
    let span = if row.status.has_figures() { "" } else { r#" colspan="6""# };
    let reservation =
        row.reservation().map_or_else(String::new, |r| format!(" <small>{r}</small>"));
    let full = || row.verdict_in_full().unwrap_or_default();
    let (tone, words) = match (&row.status, row.judgement()) {
        (Status::Failed(_), _) => ("bad", row.status.to_string()),
        (Status::Skipped(_), _) => ("quiet", row.status.to_string()),
        (Status::Unchecked(_), _) => ("bad", UNCHECKED.to_owned()),
        (Status::Ok, Some(Judgement::Faster)) => ("good", format!("▲ {}", full())),
        (Status::Ok, Some(Judgement::Slower)) => ("warn", format!("▼ {}", full())),
        (Status::Ok, None) if row.is_base => ("quiet", "base".to_owned()),
        (Status::Ok, _) => ("quiet", full()),
    };
    format!(r#"<td{span} class="{tone}">{}{reservation}"#, escape(&words))
}

/// The command that makes the run again.
pub(super) fn command(report: &Report) -> String {
    let words: Vec<String> = report.command.iter().map(|word| quoted(word)).collect();
    format!(
        r#"<section id="command" class="part"><h2>Measure it again</h2><p class="read">The command of this run; with the same seed ({}) all data and the order of measuring are the same.</p><pre tabindex="0"><code id="again">{}</code></pre><p class="controls" hidden><button type="button" id="copy">copy</button></p></section>"#,
        report.seed,
        escape(&words.join(" "))
    )
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_as_a_shell_wants_it() {
        assert_eq!(quoted("--threads"), "--threads");
        assert_eq!(quoted("dim>=64"), "'dim>=64'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
