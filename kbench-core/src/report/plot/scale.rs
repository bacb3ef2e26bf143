//! Logarithmic scales, and what is written beside them.

use crate::report::units;

/// From a figure to a cell, by its logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    cells: usize,
}

/// A figure that is named beside a scale.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) figure: f64,
    pub(super) label: String,
}

/// Cells between two ticks of a vertical scale, at least.
const ROWS_APART: f64 = 1.9;

/// Columns between two ticks of a horizontal scale, at least.
const COLUMNS_APART: f64 = 9.0;

/// Up to so many octaves, powers of two are too few ticks.
const FEW_OCTAVES: f64 = 2.0;

impl Scale {
    /// A scale over all figures that have a logarithm; none when there is none.
    pub(super) fn over(figures: impl IntoIterator<Item = f64>, cells: usize) -> Option<Self> {
        let figures = figures.into_iter().filter(|figure| is_drawable(*figure));
        let (low, high) = figures
            .map(f64::log2)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        // A single figure is in the middle of an octave.
        let half = if high > low { 0.0 } else { 0.5 };
        (low <= high).then_some(Scale { low: low - half, high: high + half, cells: cells.max(2) })
    }

    /// Cells from the low end, for a figure on the scale; what lies beyond an end is at that end.
    pub(super) fn cell(&self, figure: f64) -> usize {
        let logarithm = if figure > 0.0 { figure.log2() } else { f64::NEG_INFINITY };
        ((logarithm.clamp(self.low, self.high) - self.low) * self.per_octave()).round() as usize
    }

    /// The figure in the middle of a cell.
    pub(super) fn figure(&self, cell: usize) -> f64 {
        (self.low + cell as f64 / self.per_octave()).exp2()
    }

    /// Whether a figure lies on the scale.
    pub(super) fn covers(&self, figure: f64) -> bool {
        is_drawable(figure) && (self.low..=self.high).contains(&figure.log2())
    }

    fn per_octave(&self) -> f64 {
        (self.cells - 1) as f64 / (self.high - self.low)
    }

    /// Powers of two with blanks between them, or both ends where there are no two powers.
    pub(super) fn works(&self) -> Vec<Tick> {
        let ticks = self.powers(COLUMNS_APART, work);
        if ticks.len() > 1 {
            return ticks;
        }
        let end = |logarithm: f64| {
            let figure = logarithm.exp2();
            Tick { figure, label: units::digits(figure) }
        };
        [self.low, self.high].map(end).into()
    }

    /// Powers of two, or round numbers where those are too few.
    pub(super) fn speedups(&self) -> Vec<Tick> {
        if self.high - self.low > FEW_OCTAVES {
            return self.powers(ROWS_APART, |power| ratio(f64::from(power).exp2()));
        }
        let (low, high) = (self.low.exp2(), self.high.exp2());
        let is_wide = |step: &f64| (high / (high - step)).log2() * self.per_octave() >= ROWS_APART;
        let step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].into_iter().find(is_wide).unwrap_or(1.0);
        let multiples = (low / step).ceil() as usize..=(high / step).floor() as usize;
        let tick = |multiple: usize| {
            let figure = multiple as f64 * step;
            Tick { figure, label: ratio(figure) }
        };
        multiples.map(tick).collect()
    }

    /// Every so many powers of two, 2⁰ always among those that could be.
    fn powers(&self, apart: f64, label: impl Fn(i32) -> String) -> Vec<Tick> {
        let step = (apart / self.per_octave()).ceil().max(1.0);
        let (first, last) = ((self.low / step).ceil() as i32, (self.high / step).floor() as i32);
        let tick = |multiple: i32| {
            let power = multiple * step as i32;
            Tick { figure: f64::from(power).exp2(), label: label(power) }
        };
        (first..=last).map(tick).collect()
    }
}

/// Whether a figure has a place on a logarithmic scale.
pub(super) fn is_drawable(figure: f64) -> bool {
    figure.is_finite() && figure > 0.0
}

/// A power of two as an amount of work, in units of 1024: `64k`, `1M`.
fn work(power: i32) -> String {
    const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    match usize::try_from(power / 10).ok().and_then(|unit| UNITS.get(unit)) {
        Some(unit) if power >= 0 => format!("{}{unit}", 1 << (power % 10)),
        _ => format!("2^{power}"),
    }
}

/// `×0.25`, `×1`, `×16`.
fn ratio(figure: f64) -> String {
    match figure {
        small if small < 0.001 => format!("×{small:.0e}"),
        large if large >= 9.5e5 => format!("×{large:.0e}"),
        figure => {
            let digits = format!("{figure:.4}");
            format!("×{}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> String {
        ticks.iter().map(|tick| tick.label.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_and_have_room() {
        let scale = |low: f64, high: f64, cells| Scale::over([low, high], cells).expect("figures");
        assert_eq!(labels(&scale(4096.0, 16_777_216.0, 60).works()), "4k 16k 64k 256k 1M 4M 16M");
        assert_eq!(labels(&scale(1.0, 3e9, 40).works()), "1 256 64k 16M");
        assert_eq!(labels(&scale(1000.0, 1020.0, 40).works()), "1000 1020");
        assert_eq!(labels(&scale(0.3, 20.0, 14).speedups()), "×0.5 ×1 ×2 ×4 ×8 ×16");
        assert_eq!(labels(&scale(0.01, 4000.0, 14).speedups()), "×0.0156 ×0.125 ×1 ×8 ×64 ×512");
        assert_eq!(labels(&scale(0.9, 1.1, 14).speedups()), "×0.9 ×0.95 ×1 ×1.05 ×1.1");
    }

    #[test]
    fn figures_without_a_logarithm_have_no_scale_and_those_beyond_it_are_at_its_ends() {
        assert!(Scale::over([f64::NAN, 0.0, -1.0, f64::INFINITY], 10).is_none());
        let scale = Scale::over([1.0, f64::NAN, 8.0], 7).expect("two figures");
        let cells = [0.0, -3.0, 1.0, 2.0, 8.0, 9.0, f64::INFINITY].map(|figure| scale.cell(figure));
        assert_eq!(cells, [0, 0, 0, 2, 6, 6, 6]);
        assert!(scale.covers(8.0) && !scale.covers(8.1) && !scale.covers(f64::NAN));
        assert!((scale.figure(2) - 2.0).abs() < 1e-12);
        assert_eq!(Scale::over([5.0], 3).expect("one").cell(5.0), 1);
    }
}
