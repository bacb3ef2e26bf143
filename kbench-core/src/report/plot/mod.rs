//! Charts on a terminal: speed-up by work, with thresholds and crossovers, and scaling by threads.
//!
//! Characters are those that every monospaced font has at the width of a letter, so that a chart keeps its shape in a
//! log file or an issue; Braille patterns draw finer lines, but few fonts have them, and a browser takes them from another
//! one of another width. Curves are told apart by their markers and by the names at their ends; colour only repeats the
//! verdict.

mod canvas;
mod chart;
mod scale;
mod scaling;
mod series;
mod sparkline;
mod speedup;

pub use sparkline::sparkline;

use super::index::Index;
use super::remarks::wrapped;
use super::{Report, RowReport, Style};

/// Names of kernels without a chart; more are only counted.
const MOST_NAMES: usize = 5;

/// Charts of every kernel and element type that was compared at two sizes or more.
pub fn plot(report: &Report, style: Style) -> String {
    let mut text = String::new();
    let mut without = Vec::new();
    let crossovers = Index::new(&report.crossovers, |found| (&found.kernel, &found.element));
    let scaling = Index::new(&report.scaling, |found| (&found.kernel, &found.element));
    let searched = Index::new(&report.searched, |row| (&row.kernel, &row.element, &row.machine));
    for rows in report.rows.chunk_by(RowReport::is_of_same_kernel) {
        let RowReport { kernel, element, machine, .. } = &rows[0];
        let key = (kernel, element);
        let more = searched.of(&(kernel, element, machine));
        match speedup::speedup(rows, more, crossovers.of(&key), style) {
            Some(chart) => text += &chart,
            None => without.push(format!("{} {}", short(&rows[0].kernel), rows[0].element)),
        }
        text += &scaling::scaling(scaling.of(&key), &rows[0], style).unwrap_or_default();
    }
    text + &without_chart(&without)
}

/// The kernel without its path.
fn short(kernel: &str) -> &str {
    kernel.rsplit("::").next().unwrap_or(kernel)
}

/// One line for all kernels that have no chart.
fn without_chart(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    match names {
        [] => String::new(),
        _ => {
            let line = format!("no chart, for want of two sizes that compare: {shown}{more}");
            format!("\n{}\n", wrapped(&line))
        }
    }
}

#[cfg(test)]
mod tests;
