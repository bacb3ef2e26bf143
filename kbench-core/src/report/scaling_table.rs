//! Speed-up and efficiency by thread count.

use super::kernel_table::bare_size;
use super::table::{Align, Cell, Table};
use super::{ScalingReport, Style, sentences, units};

/// One line for every variant, size and thread count beyond the smallest.
pub(super) fn scaling_table(found: &[&ScalingReport], style: Style) -> String {
    let mut table = Table::new(vec![
        ("size", Align::Right),
        ("variant", Align::Left),
        ("threads", Align::Right),
        ("scaling", Align::Right),
        ("95 % interval", Align::Left),
        ("efficiency", Align::Right),
        ("overhead of 1 thread", Align::Left),
    ]);
    for ScalingReport { variant, size, counts, overhead, .. } in found {
        for (i, count) in counts.iter().enumerate() {
            let first = |text: String| if i == 0 { text } else { String::new() };
            let [value, low, high] =
                [count.speedup.value, count.speedup.low, count.speedup.high].map(units::ratio);
            let line = [
                first(bare_size(size)),
                first((*variant).to_owned()),
                count.threads.to_string(),
                format!("{value}×"),
                format!("[{low}, {high}]"),
                units::percent(count.efficiency.value),
                first(overhead.map(sentences::shares).unwrap_or_default()),
            ];
            table.push(line.map(Cell::new).into());
        }
    }
    table.render(style)
}
