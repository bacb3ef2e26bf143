//! Lists of what there is, from constants alone.

use std::collections::HashSet;
use std::fmt::Write;

use crate::plan::{Plan, Row};

/// How much a list says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFormat {
    /// Names alone, for programs.
    Terse,
    /// Names and their number.
    Counted,
}

/// What nextest and cargo read: `name: benchmark`, one a line.
pub fn list(plan: &Plan, format: ListFormat) -> String {
    let mut text = String::new();
    let mut count = 0;
    let mut last: Option<String> = None;
    for (cell, row) in plan.rows() {
        let name = cell.row_name(row);
        // Thread counts make several rows of one name.
        if last.as_ref() != Some(&name) {
            let _ = writeln!(text, "{name}: benchmark");
            count += 1;
            last = Some(name);
        }
    }
    if format == ListFormat::Counted {
        let _ = writeln!(text, "\n0 tests, {count} benchmarks");
    }
    text
}

/// Kernels with their element types and variants.
pub fn list_kernels(plan: &Plan) -> String {
    let mut text = String::new();
    let mut seen: HashSet<String> = HashSet::new();
    for cell in &plan.cells {
        let name = format!("{} {}", cell.kernel.path(), cell.kernel.element);
        if seen.insert(name.clone()) {
            let _ = writeln!(text, "{name}: {}", variants(&cell.rows).join(", "));
        }
    }
    text
}

/// The variants of some rows, each once.
fn variants(rows: &[Row]) -> Vec<String> {
    // The rows of a variant follow each other.
    let variants = rows.chunk_by(|a, b| std::ptr::eq(a.variant, b.variant));
    let name = |rows: &[Row]| {
        let variant = rows[0].variant;
        let threshold = variant.threshold.map(|t| format!(", threshold {t}")).unwrap_or_default();
        format!("{} ({}{threshold})", variant.name, variant.backend.name())
    };
    variants.map(name).collect()
}

/// Kernels with their sizes.
pub fn list_sizes(plan: &Plan) -> String {
    let mut text = String::new();
    let mut seen: HashSet<String> = HashSet::new();
    for cell in &plan.cells {
        let name = format!("{} {}", cell.kernel.path(), cell.size.name(cell.kernel.axes));
        if seen.insert(name.clone()) {
            let label = cell.size.label.map(|label| format!(" ({label})")).unwrap_or_default();
            let _ = writeln!(text, "{name}{label}");
        }
    }
    text
}
