//! What was found about a kernel as a whole, below its table.

use super::crossover_table::crossover_table;
use super::index::{Index, grouped};
use super::remarks::{remarks, wrapped};
use super::scaling_table::scaling_table;
use super::sentences::transfers;
use super::shown::{as_shown, by_size};
use super::{KernelReport, Report, RowReport, ScalingReport, Status, Style};
use crate::crossover::Crossover;
use crate::order;

/// What a report says of kernels as a whole.
pub(super) struct Findings<'a> {
    crossovers: Index<'a, Key<'a>, Crossover>,
    scaling: Index<'a, Key<'a>, ScalingReport>,
    /// Rows that failed at sizes that nobody listed.
    failed: Index<'a, Key<'a>, RowReport>,
}

/// A kernel and its element type.
type Key<'a> = (&'a String, &'a String);

impl<'a> Findings<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        let is_failed = |row: &&RowReport| matches!(row.status, Status::Failed(_));
        let failed = report.searched.iter().filter(is_failed);
        Findings {
            crossovers: Index::new(&report.crossovers, |found| (&found.kernel, &found.element)),
            scaling: Index::new(&report.scaling, |found| (&found.kernel, &found.element)),
            failed: Index::new(failed, |row| (&row.kernel, &row.element)),
        }
    }

    /// Who wins where, what that says of thresholds and targets, and what to take of a kernel with these rows.
    pub(super) fn text(&self, kernel: &KernelReport, rows: &[RowReport], style: Style) -> String {
        let key = (&kernel.kernel, &kernel.element);
        let mut text = crossovers(self.crossovers.of(&key), rows, style);
        let scaling = self.scaling.of(&key);
        if let Some(first) = scaling.first() {
            let threads = if first.first == 1 { "thread" } else { "threads" };
            let first = first.first;
            text += &format!("  scaling, against the same variant with {first} {threads}\n");
            text += &scaling_table(scaling, style);
        }
        let failed: Vec<RowReport> = self.failed.of(&key).iter().copied().cloned().collect();
        if !failed.is_empty() {
            text += &remarks(&failed, &[rows, &failed].concat(), style);
        }
        let lines = kernel.findings.iter().chain(&kernel.recommendation);
        text + &lines.map(|line| wrapped(&format!("→ {line}")) + "\n").collect::<String>()
    }
}

/// Tables of the variants that have several crossovers.
fn crossovers(here: &[&Crossover], rows: &[RowReport], style: Style) -> String {
    let mut tables = String::new();
    let mut groups = grouped(here.iter().copied(), |found| (&found.variant, found.mode));
    groups.retain(|found| found.len() > 1);
    if groups.is_empty() {
        return tables;
    }
    order::sort_by_key(&mut groups, |found| (&found[0].variant, found[0].mode));
    let rows = by_size(rows);
    for found in groups {
        let axes = found[0].along.join(", ");
        let transfers = transfers(found[0]).map_or_else(String::new, |words| format!(", {words}"));
        let variant = &found[0].variant;
        tables += &format!("  crossovers of {variant} along {axes}{transfers}\n");
        let shown: Vec<Crossover> = found.iter().map(|found| as_shown(found, &rows)).collect();
        tables += &crossover_table(&shown, style);
    }
    tables
}
