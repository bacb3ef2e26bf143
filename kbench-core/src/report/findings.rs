//! What was found about a kernel as a whole, below its table.

use super::crossover_table::crossover_table;
use super::remarks::{remarks, wrapped};
use super::scaling_table::scaling_table;
use super::sentences::transfers;
use super::{KernelReport, Report, RowReport, ScalingReport, Status, Style};
use crate::crossover::Crossover;
use crate::kernel::Mode;

/// Who wins where, what that says of thresholds and targets, and what to take.
pub(super) fn findings(report: &Report, kernel: &KernelReport, style: Style) -> String {
    let is_here = |c: &&Crossover| c.kernel == kernel.kernel && c.element == kernel.element;
    let here: Vec<&Crossover> = report.crossovers.iter().filter(is_here).collect();
    let mut tables = String::new();
    let mut variants: Vec<(&str, Mode)> =
        here.iter().map(|f| (f.variant.as_str(), f.mode)).collect();
    variants.sort_unstable();
    variants.dedup();
    for (variant, mode) in variants {
        let is_of = |found: &&Crossover| (found.variant.as_str(), found.mode) == (variant, mode);
        let found: Vec<&Crossover> = here.iter().copied().filter(is_of).collect();
        if found.len() < 2 {
            continue;
        }
        let axes = found[0].along.join(", ");
        let transfers = transfers(mode).map_or_else(String::new, |words| format!(", {words}"));
        tables += &format!("  crossovers of {variant} along {axes}{transfers}\n");
        tables += &crossover_table(&found, style);
    }
    let is_here = |s: &&ScalingReport| s.kernel == kernel.kernel && s.element == kernel.element;
    let scaling: Vec<&ScalingReport> = report.scaling.iter().filter(is_here).collect();
    if let Some(first) = scaling.first() {
        let threads = if first.first == 1 { "thread" } else { "threads" };
        tables += &format!("  scaling, against the same variant with {} {threads}\n", first.first);
        tables += &scaling_table(&scaling, style);
    }
    tables += &searched_failures(report, kernel, style);
    let lines = kernel.findings.iter().chain(&kernel.recommendation);
    tables + &lines.map(|line| wrapped(&format!("→ {line}")) + "\n").collect::<String>()
}

/// What went wrong at sizes that nobody listed.
fn searched_failures(report: &Report, kernel: &KernelReport, style: Style) -> String {
    let is_here = |row: &&RowReport| row.kernel == kernel.kernel && row.element == kernel.element;
    let is_failed = |row: &&RowReport| matches!(row.status, Status::Failed(_));
    let failed: Vec<RowReport> =
        report.searched.iter().filter(is_here).filter(is_failed).cloned().collect();
    let listed = report.rows.iter().filter(is_here).cloned();
    let all: Vec<RowReport> = listed.chain(failed.iter().cloned()).collect();
    remarks(&failed, &all, style)
}
