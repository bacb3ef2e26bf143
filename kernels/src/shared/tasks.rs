//! How work is cut into tasks for all cores.

/// Elements of a task that does little with each of them: long enough to hide what a task costs, short enough to stay in
/// a core's cache.
pub const GRAIN: usize = 1 << 14;

/// Rows that make a task of about [`GRAIN`] elements, at least one.
pub fn rows_per_task(elements_of_row: usize) -> usize {
    (GRAIN / elements_of_row.max(1)).max(1)
}
