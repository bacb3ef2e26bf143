//! A series of figures on a few characters.

/// From the lowest to the highest.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// From this ratio of the largest to the smallest on, logarithms tell more.
const WIDE: f64 = 10.0;

/// One block for every value, the highest for the largest: by its logarithm where the largest is ten times the smallest
/// or more and none is negative. A value that is not finite leaves a blank, and values that are all equal are of middle
/// height.
pub fn sparkline(values: &[f64]) -> String {
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        let finite = values.filter(|value| value.is_finite());
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    };
    let (low, high) = ends(&mut values.iter().copied());
    let is_wide = low > 0.0 && high / low >= WIDE;
    let height = |value: f64| if is_wide { value.ln() } else { value };
    let (low, high) = (height(low), height(high));
    let block = |value: &f64| match value.is_finite() {
        true if high > low => {
            // Halves first, for the whole range may be more than a number can hold.
            let share = (height(*value) / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
            BLOCKS[(share * (BLOCKS.len() - 1) as f64).round() as usize]
        }
        true => BLOCKS[BLOCKS.len() / 2 - 1],
        false => ' ',
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_follow_values_and_logarithms_of_a_wide_range() {
        assert_eq!(sparkline(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[1.0, 10.0, 100.0, 1e7]), "▁▂▃█");
        assert_eq!(sparkline(&[-1.0, 0.0, 6.0]), "▁▂█");
    }

    #[test]
    fn what_is_no_figure_leaves_a_blank_and_nothing_panics() {
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[f64::NAN]), " ");
        assert_eq!(sparkline(&[3.0, f64::INFINITY, 3.0]), "▄ ▄");
        assert_eq!(sparkline(&[0.0, 1e300]), "▁█");
        assert_eq!(sparkline(&[f64::MIN, 0.0, f64::MAX]), "▁▅█");
        assert_eq!(sparkline(&[f64::MIN_POSITIVE, 1.0, f64::MAX]), "▁▄█");
    }
}
