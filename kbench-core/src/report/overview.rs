//! Many kernels at a glance: headings for their families, and at the end what to take of each.

use super::kernel_table::COLUMNS;
use super::remarks::wrapped_at;
use super::table::{LONGEST_CELL, shortened};
use super::{KernelReport, Report, Style};

/// A report with fewer kernels is an overview by itself.
const MANY: usize = 6;

/// The family of a kernel: the module below its crate, or the crate.
pub(super) fn family(kernel: &str) -> &str {
    let mut parts = kernel.split("::");
    let (first, second, third) = (parts.next(), parts.next(), parts.next());
    third.and(second).or(first).unwrap_or_default()
}

/// The line above the first kernel of a family, where there are several.
pub(super) fn heading(report: &Report, position: usize, style: Style) -> String {
    let of = |position: usize| Some(family(&report.kernels.get(position)?.kernel));
    let Some(own) = of(position) else { return String::new() };
    let is_first = position.checked_sub(1).and_then(of) != Some(own);
    if !is_first || report.kernels.iter().all(|other| family(&other.kernel) == own) {
        return String::new();
    }
    let rule = "─".repeat(COLUMNS.saturating_sub(own.chars().count() + 4));
    format!("\n{}\n", style.strong(&format!("── {own} {rule}")))
}

/// What to take of every kernel, by family; nothing when there are few.
pub(super) fn overview(report: &Report, style: Style) -> String {
    let kernels: Vec<&KernelReport> =
        report.kernels.iter().filter(|kernel| kernel.recommendation.is_some()).collect();
    if kernels.len() < MANY {
        return String::new();
    }
    let name = |kernel: &KernelReport| {
        let name = kernel.kernel.rsplit("::").next().unwrap_or_default();
        shortened(format!("{name} {}", kernel.element), LONGEST_CELL / 2)
    };
    let width = kernels.iter().map(|kernel| name(kernel).chars().count()).max().unwrap_or(0);
    let mut text = format!("\n{}\n", style.strong("what to take"));
    let mut last = "";
    for kernel in kernels {
        let own = family(&kernel.kernel);
        if own != last {
            text += &format!("  {own}\n");
            last = own;
        }
        let advice = kernel.recommendation.as_deref().unwrap_or_default();
        let line = format!("{:width$}  {advice}", name(kernel));
        text += &(wrapped_at(&line, 4, width + 6) + "\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_the_module_below_the_crate() {
        assert_eq!(family("kernels::matmul::single::matmul"), "matmul");
        assert_eq!(family("kernels::loss::mse"), "loss");
        assert_eq!(family("demo::saxpy"), "demo");
    }
}
