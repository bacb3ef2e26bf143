//! Filters on runs that are kept: a report has names where a plan has entries, and the same flags select by them.

use std::collections::HashSet;

use crate::plan::Selection;
use crate::report::{Report, RowReport};

/// Whether flags select a row of a run that is kept.
pub(super) fn is_chosen(selection: &Selection, row: &RowReport) -> bool {
    let Selection { filters, skip, exact, kernels, variants, backends, types, sizes, .. } =
        selection;
    let named = |filter: &String| {
        if *exact { row.name == *filter } else { row.name.contains(filter.as_str()) }
    };
    let (axes, values): (Vec<&str>, Vec<usize>) =
        row.axes.iter().map(|(axis, value)| (axis.as_str(), *value)).unzip();
    meets(filters, named)
        && !skip.iter().any(named)
        && meets(kernels, |name| is_part(&row.kernel, name))
        && meets(variants, |name| row.variant == *name)
        && meets(backends, |backend| row.backend == backend.name())
        && meets(types, |name| row.element == *name)
        && meets(sizes, |size| size.matches(&axes, &values, row.label.as_deref()))
}

/// Whether one of some conditions is met, if there are any.
fn meets<T>(conditions: &[T], is_met: impl FnMut(&T) -> bool) -> bool {
    conditions.is_empty() || conditions.iter().any(is_met)
}

/// Whether a name is that of a kernel or of a module around it, with or without what is around that.
fn is_part(kernel: &str, name: &str) -> bool {
    format!("::{kernel}::").contains(&format!("::{name}::"))
}

/// Leaves in a report what flags select.
pub(super) fn choose(report: &mut Report, selection: &Selection) {
    let before = report.rows.len();
    report.rows.retain(|row| is_chosen(selection, row));
    report.searched.retain(|row| is_chosen(selection, row));
    report.filtered_out += before - report.rows.len();
    let variants: HashSet<[&str; 3]> = report
        .rows
        .iter()
        .map(|row| [row.kernel.as_str(), row.element.as_str(), row.variant.as_str()])
        .collect();
    let kernels: HashSet<[&str; 2]> =
        variants.iter().map(|[kernel, element, _]| [*kernel, *element]).collect();
    report.kernels.retain(|of| kernels.contains(&[of.kernel.as_str(), of.element.as_str()]));
    macro_rules! retain_variants {
        ($list:expr) => {
            $list.retain(|of| variants.contains(&[&*of.kernel, &*of.element, &*of.variant]))
        };
    }
    retain_variants!(report.crossovers);
    retain_variants!(report.scaling);
    retain_variants!(report.growth);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::read_document;

    fn report() -> Report {
        let text = include_str!("../store/fixtures/schema-1.json");
        read_document(text).expect("a run")
    }

    fn chosen(selection: &Selection) -> Vec<String> {
        let mut report = report();
        choose(&mut report, selection);
        let rows: HashSet<String> = report.rows.iter().map(|row| row.kernel.clone()).collect();
        for kernel in report.kernels.iter().map(|kernel| &kernel.kernel) {
            assert!(rows.contains(kernel), "{kernel} has no row");
        }
        report.rows.into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn every_flag_that_selects_rows_of_a_plan_selects_rows_of_a_run() {
        let all = report().rows;
        let first = &all[0];
        let (axis, value) = first.axes.iter().next().expect("an axis");
        let size = format!("{axis}={value}").parse().expect("a condition");
        let own = |text: &str| vec![text.to_owned()];
        type Holds = fn(&RowReport, &RowReport) -> bool;
        let cases: [(Selection, Holds); 6] = [
            (Selection { kernels: own(&first.kernel), ..Selection::default() }, |row, first| {
                row.kernel == first.kernel
            }),
            (Selection { variants: own(&first.variant), ..Selection::default() }, |row, first| {
                row.variant == first.variant
            }),
            (Selection { skip: own(&first.variant), ..Selection::default() }, |row, first| {
                !row.name.contains(&first.variant)
            }),
            (
                Selection { filters: own(&first.name), exact: true, ..Selection::default() },
                |row, first| row.name == first.name,
            ),
            (Selection { sizes: vec![size], ..Selection::default() }, |row, first| {
                first.axes.iter().next() == row.axes.iter().next()
            }),
            (Selection { types: own("f63"), ..Selection::default() }, |_, _| false),
        ];
        for (selection, holds) in cases {
            let expected: Vec<String> =
                all.iter().filter(|row| holds(row, first)).map(|row| row.name.clone()).collect();
            assert_eq!(chosen(&selection), expected, "{selection:?}");
        }
    }

    #[test]
    fn a_kernel_is_named_by_itself_its_path_or_a_module_around_it() {
        for name in ["saxpy", "vectors::saxpy", "mine", "mine::vectors", "vectors"] {
            assert!(is_part("mine::vectors::saxpy", name), "{name}");
        }
        for name in ["sax", "vector", "ine::vectors"] {
            assert!(!is_part("mine::vectors::saxpy", name), "{name}");
        }
    }
}
