//! The report on a terminal: warnings first, then one table for every kernel, then what went wrong.

use std::fmt::Write;

use super::table::{Align, Cell, Table};
use super::{Report, RowReport, Status, Style, units};

/// Tables stay within this many columns; only names of variants are shortened for it.
const COLUMNS: usize = 100;
/// A variant's name is not shortened below this.
const SHORTEST_NAME: usize = 12;

/// The whole report as text.
pub fn terminal(report: &Report, style: Style) -> String {
    let mut text = head(report, style);
    for rows in report.rows.chunk_by(|a, b| a.kernel == b.kernel && a.element == b.element) {
        text += &kernel(rows, style);
    }
    text += &foot(report, style);
    text
}

fn head(report: &Report, style: Style) -> String {
    let environment = &report.environment;
    let mut text = String::new();
    for warning in &report.warnings {
        let _ = writeln!(text, "{}", style.warning(&format!("warning: {warning}")));
    }
    let cores = if environment.cores == 1 { "core" } else { "cores" };
    let _ = writeln!(
        text,
        "kbench {} · {} · {} {cores} · {} · seed {}",
        environment.kbench,
        environment.cpu,
        environment.cores,
        environment.rustc.split(" (").next().unwrap_or_default(),
        report.seed
    );
    text
}

fn kernel(rows: &[RowReport], style: Style) -> String {
    let mut text = format!("\n{}\n", style.strong(&format!("{}  {}", rows[0].kernel, rows[0].element)));
    let table = table(rows, style, usize::MAX);
    let widest = table.lines().map(visible_width).max().unwrap_or(0);
    if widest <= COLUMNS {
        text += &table;
    } else {
        let longest = rows.iter().map(|row| row.variant.chars().count()).max().unwrap_or(0);
        let limit = longest.saturating_sub(widest - COLUMNS).max(SHORTEST_NAME);
        text += &self::table(rows, style, limit);
    }
    text += &legend(rows);
    text += &check_line(rows);
    text += &remarks(rows, style);
    text
}

fn table(rows: &[RowReport], style: Style, name_limit: usize) -> String {
    let all_provisional = rows
        .iter()
        .filter_map(|row| row.comparison.verdict.as_deref())
        .all(|verdict| verdict.starts_with("provisional "));
    let verdict_title = if all_provisional { "provisional" } else { "verdict" };
    let mut axes = rows[0].axes.keys();
    let size_title = axes.next().copied().filter(|_| axes.next().is_none()).unwrap_or("size");
    let mut table = Table::new(vec![
        (size_title, Align::Right),
        ("variant", Align::Left),
        ("threads", Align::Right),
        ("time", Align::Right),
        ("±95 %", Align::Right),
        ("speed-up", Align::Right),
        ("95 % interval", Align::Left),
        ("adj. p", Align::Right),
        (throughput_unit(&rows[0]), Align::Right),
        (verdict_title, Align::Left),
    ]);
    let several_threads = rows.iter().any(|row| row.threads != rows[0].threads && row.backend == "parallel")
        && rows.iter().filter(|row| row.backend == "parallel").any(|row| {
            rows.iter().any(|other| other.variant == row.variant && other.threads != row.threads)
        });
    let mut last_size = "";
    for row in rows {
        let size = if row.size == last_size { String::new() } else { short_size(row) };
        last_size = &row.size;
        table.push(line(row, size, several_threads, all_provisional, style, name_limit));
    }
    table.render()
}

fn line(
    row: &RowReport,
    size: String,
    several_threads: bool,
    all_provisional: bool,
    style: Style,
    name_limit: usize,
) -> Vec<Cell> {
    let comparison = &row.comparison;
    let ends = row.time_low_ns.zip(row.time_high_ns);
    let half = row.time_ns.zip(ends).map(|(time, (low, high))| units::half_width(time, low, high));
    let interval = comparison
        .speedup_low
        .zip(comparison.speedup_high)
        .map(|(low, high)| format!("[{}, {}]", units::digits(low), units::digits(high)));
    let threads = (several_threads && row.backend == "parallel").then(|| row.threads.to_string());
    let text = |value: Option<String>| Cell::new(value.unwrap_or_default());
    vec![
        Cell::new(size),
        Cell::new(shorten(row.variant, name_limit)),
        text(threads),
        text(row.time_ns.map(units::time)),
        text(half),
        text(comparison.speedup.map(|s| format!("{}×", units::digits(s)))),
        text(interval),
        text(comparison.p_adjusted.map(units::probability)),
        text(throughput(row)),
        verdict(row, all_provisional, style),
    ]
}

fn verdict(row: &RowReport, all_provisional: bool, style: Style) -> Cell {
    match (&row.status, &row.comparison.verdict) {
        (Status::Failed(_), _) => Cell::painted("FAILED", move |text| style.bad(text)),
        (Status::Skipped(_), _) => Cell::new("skipped"),
        (Status::Ok, None) if row.is_base => Cell::new("base"),
        (Status::Ok, None) => Cell::new(""),
        (Status::Ok, Some(words)) => {
            let words = match words.strip_prefix("provisional ") {
                Some(bare) if all_provisional => bare.to_owned(),
                _ => words.clone(),
            };
            if words.ends_with("faster") {
                Cell::painted(words, move |text| style.good(text))
            } else if words.ends_with("slower") {
                Cell::painted(words, move |text| style.bad(text))
            } else {
                Cell::new(words)
            }
        }
    }
}

/// The rate that the author asked for first: arithmetic, else memory, else work; in units of 10⁹ per second.
fn throughput(row: &RowReport) -> Option<String> {
    let rate = row.flops_per_s.or(row.bytes_per_s).or(row.items_per_s)?;
    Some(units::digits(rate / 1e9))
}

fn throughput_unit(row: &RowReport) -> &'static str {
    match (row.flops_per_s, row.bytes_per_s) {
        (Some(_), _) => "GFLOP/s",
        (None, Some(_)) => "GB/s",
        (None, None) => "G/s",
    }
}

/// `64×1024`.
fn short_size(row: &RowReport) -> String {
    let values: Vec<&str> =
        row.size.split(',').map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value)).collect();
    values.join("×")
}

fn shorten(name: &str, limit: usize) -> String {
    if name.chars().count() <= limit {
        return name.to_owned();
    }
    name.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

fn visible_width(line: &str) -> usize {
    let mut width = 0;
    let mut escape = false;
    for c in line.chars() {
        match c {
            '\x1b' => escape = true,
            'm' if escape => escape = false,
            _ if !escape => width += 1,
            _ => {}
        }
    }
    width
}

/// What the sizes mean: the axes when there are several, and the labels.
fn legend(rows: &[RowReport]) -> String {
    let axes: Vec<&str> =
        rows[0].size.split(',').filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
    let mut labels: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{} {}", row.label?, short_size(row))))
        .collect();
    labels.dedup();
    let mut parts = Vec::new();
    if axes.len() > 1 {
        parts.push(format!("size is {}", axes.join("×")));
    }
    if !labels.is_empty() {
        parts.push(labels.join(", "));
    }
    if parts.is_empty() { String::new() } else { format!("  {}\n", parts.join(": ")) }
}

/// What the results were compared with, and the one that was furthest off.
fn check_line(rows: &[RowReport]) -> String {
    let checked = rows.iter().filter(|row| row.status == Status::Ok);
    let worst = checked.filter_map(|row| Some((row.check.error?, row))).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((error, row)) = worst else { return String::new() };
    let against = row.check.reference.map_or("the base".to_owned(), |name| format!("`{name}`"));
    format!(
        "  checked against {against}: worst relative error {} ({}), tolerance {}\n",
        units::error(error),
        row.variant,
        units::error(row.check.tolerance.unwrap_or(0.0))
    )
}

/// Remarks and reasons, each once with the rows that it is about.
fn remarks(rows: &[RowReport], style: Style) -> String {
    let mut groups: Vec<(String, Vec<&RowReport>)> = Vec::new();
    for row in rows {
        let remarks = match &row.status {
            Status::Skipped(reason) => vec![format!("skipped: {reason}")],
            Status::Failed(reason) => vec![format!("FAILED: {reason}")],
            Status::Ok => row.remarks.clone(),
        };
        for remark in remarks {
            match groups.iter_mut().find(|(known, _)| *known == remark) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((remark, vec![row])),
            }
        }
    }
    let mut text = String::new();
    for (remark, about) in groups {
        let line = format!("{}: {remark}", summary(&subjects(rows, &about)));
        let line = if remark.starts_with("FAILED") { style.bad(&line) } else { line };
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// The variants that some rows are about: by name alone when all their rows are among them, else with sizes.
fn subjects(all: &[RowReport], about: &[&RowReport]) -> Vec<String> {
    let count = |rows: &mut dyn Iterator<Item = &RowReport>, variant: &str| {
        rows.filter(|row| row.variant == variant).count()
    };
    let mut names = Vec::new();
    for row in about {
        let everywhere = count(&mut all.iter(), row.variant)
            == count(&mut about.iter().copied(), row.variant);
        let name = if everywhere { row.variant.to_owned() } else { format!("{} at {}", row.variant, row.size) };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The first names of a list, and how many more there are.
fn summary(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one}, {two}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}

fn foot(report: &Report, style: Style) -> String {
    let count = |wanted: fn(&Status) -> bool| report.rows.iter().filter(|r| wanted(&r.status)).count();
    let measured = count(|status| *status == Status::Ok);
    let failed = count(|status| matches!(status, Status::Failed(_)));
    let skipped = count(|status| matches!(status, Status::Skipped(_)));
    let mut text = String::from("\n");
    let inconclusive: Vec<f64> = report
        .rows
        .iter()
        .filter(|row| row.comparison.verdict.as_deref().is_some_and(|v| v.ends_with("inconclusive")))
        .filter_map(|row| row.comparison.detectable)
        .collect();
    if !inconclusive.is_empty() {
        let worst = inconclusive.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "{} inconclusive: differences below {:.1} % could not have been seen; give it more time with --thorough or --budget",
            inconclusive.len(),
            100.0 * worst
        );
    }
    if report.launches == 1 && measured > 0 {
        let _ = writeln!(
            text,
            "one launch: verdicts are provisional, because another placement in memory may shift them by a few percent"
        );
    }
    let failures = if failed > 0 { style.bad(&format!("{failed} failed")) } else { "0 failed".into() };
    let _ = writeln!(
        text,
        "{measured} measured, {failures}, {skipped} skipped, {} filtered out; checked in {}, measured in {} of {}",
        report.filtered_out,
        units::seconds(report.seconds.checking),
        units::seconds(report.seconds.measuring),
        units::seconds(report.seconds.budget),
    );
    text
}
