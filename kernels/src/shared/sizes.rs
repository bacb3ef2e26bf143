//! Products of sizes, which the lengths of slices are compared with.

/// Elements of a matrix of so many rows and columns.
///
/// # Panics
///
/// Panics where they are more than a `usize` can count. A product that wraps can be the length of a small slice, and whoever writes
/// through pointers after comparing the two would leave the slice.
#[track_caller]
pub(crate) fn area(rows: usize, columns: usize) -> usize {
    let Some(area) = rows.checked_mul(columns) else {
        panic!("sizes do not fit: nothing has {rows} × {columns} elements");
    };
    area
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_a_product() {
        assert_eq!(area(1 << 31, 1 << 32), 1 << 63);
        assert_eq!(area(0, usize::MAX), 0);
    }

    #[test]
    #[should_panic(expected = "sizes do not fit: nothing has 4294967296 × 4294967296 elements")]
    fn an_area_that_wraps_is_refused() {
        area(1 << 32, 1 << 32);
    }
}
