//! Scales: where a figure stands on an axis, and which figures are written beside it.

/// How figures are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are, and ticks are powers of two.
    Octaves,
    /// The same with powers of ten.
    Decades,
}

/// From figures to places on an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    spread: Spread,
    /// The ends in the domain in which distances are equal.
    low: f64,
    high: f64,
    /// The places of the ends.
    from: f64,
    to: f64,
}

/// Half of what a range without extent is given on either side.
const LEAST_HALF: f64 = 0.5;

impl Scale {
    /// A scale that has room for some figures; those that have no place on it do not count. Without any it spans one unit.
    pub(super) fn over(
        spread: Spread,
        figures: impl IntoIterator<Item = f64>,
        (from, to): (f64, f64),
    ) -> Self {
        let known = figures.into_iter().filter_map(|figure| spread.position(figure));
        let (low, high) = known
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), position| {
                (low.min(position), high.max(position))
            });
        let (low, high) = if low <= high { (low, high) } else { (0.0, 0.0) };
        let least = match spread {
            Spread::Linear => LEAST_HALF * low.abs().max(f64::MIN_POSITIVE.sqrt()),
            Spread::Octaves | Spread::Decades => LEAST_HALF,
        };
        let widened = high - low < 1e-9 * (1.0 + low.abs());
        let (low, high) = if widened { (low - least, high + least) } else { (low, high) };
        Scale { spread, low, high, from, to }
    }

    /// The same with some room beyond both ends, as a share of its length.
    pub(super) fn with_margin(self, share: f64) -> Self {
        let margin = share * (self.high - self.low);
        Scale { low: self.low - margin, high: self.high + margin, ..self }
    }

    /// Where a figure is; at the nearest end when it is beyond, none when it has no place at all.
    pub(super) fn place(&self, figure: f64) -> Option<f64> {
        let position = match figure {
            f if f == f64::INFINITY => self.high,
            f if f == f64::NEG_INFINITY => self.low,
            // An interval may begin at nothing.
            f if f == 0.0 && self.spread != Spread::Linear => self.low,
            f => self.spread.position(f)?,
        };
        let share = (position.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        Some(self.from + share * (self.to - self.from))
    }

    /// Whether a figure is on the scale and not beyond it.
    pub(super) fn has(&self, figure: f64) -> bool {
        self.spread.position(figure).is_some_and(|p| (self.low..=self.high).contains(&p))
    }

    /// The figure at a share of the way from the lower to the upper end.
    pub(super) fn at(&self, share: f64) -> f64 {
        let position = self.low + share * (self.high - self.low);
        match self.spread {
            Spread::Linear => position,
            Spread::Octaves => position.exp2(),
            Spread::Decades => 10_f64.powf(position),
        }
    }

    /// Round figures on the scale, at most so many and one more.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.max(1) as f64;
        let length = self.high - self.low;
        match self.spread {
            Spread::Linear => {
                let rough = length / most;
                let unit = 10_f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * unit);
                let step = step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * unit);
                self.multiples(step)
            }
            // Over a short range, figures that are round as they are serve better than powers.
            Spread::Octaves if length < 1.5 => self.plain().ticks(4),
            Spread::Octaves => {
                let step = (length / most).ceil().max(1.0);
                self.multiples(step).into_iter().map(f64::exp2).collect()
            }
            Spread::Decades if length < 0.8 => self.plain().ticks(4),
            Spread::Decades if length < 2.0 => {
                let first = self.low.floor() as i32;
                let decades = (first..=first + 2).map(|power| 10_f64.powi(power));
                let figures = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|n| n * decade));
                figures.filter(|figure| self.has(*figure)).collect()
            }
            Spread::Decades => {
                let step = (length / most).ceil().max(1.0);
                self.multiples(step).into_iter().map(|power| 10_f64.powf(power)).collect()
            }
        }
    }

    /// The same range with equal differences equally far apart.
    fn plain(&self) -> Self {
        Scale { spread: Spread::Linear, low: self.at(0.0), high: self.at(1.0), ..*self }
    }

    fn multiples(&self, step: f64) -> Vec<f64> {
        let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
        if !(first..=first + 100.0).contains(&last) {
            return Vec::new();
        }
        (0..=(last - first) as usize).map(|number| (first + number as f64) * step).collect()
    }
}

impl Spread {
    /// Where a figure is in the domain in which distances are equal.
    fn position(self, figure: f64) -> Option<f64> {
        let position = match self {
            Spread::Linear => figure,
            Spread::Octaves => figure.log2(),
            Spread::Decades => figure.log10(),
        };
        position.is_finite().then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_between_the_ends_whatever_they_are() {
        let strange = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 5e-324, 3.0];
        for spread in [Spread::Linear, Spread::Octaves, Spread::Decades] {
            for figures in [vec![], vec![4.0], vec![0.0], vec![1.0, 1024.0], strange.to_vec()] {
                let scale = Scale::over(spread, figures, (10.0, 110.0));
                let places = strange.iter().filter_map(|figure| scale.place(*figure));
                assert!(places.into_iter().all(|p| (10.0..=110.0).contains(&p)), "{scale:?}");
                assert!(scale.ticks(5).iter().all(|tick| tick.is_finite()), "{scale:?}");
                assert!(scale.ticks(5).len() <= 8, "{scale:?}");
            }
        }
    }

    #[test]
    fn ticks_are_round_and_on_the_scale() {
        let octaves = Scale::over(Spread::Octaves, [1000.0, 1e6], (0.0, 1.0));
        assert_eq!(octaves.ticks(5), [1024.0, 4096.0, 16384.0, 65536.0, 262_144.0].to_vec());
        let decades = Scale::over(Spread::Decades, [3.0, 40_000.0], (0.0, 1.0));
        assert_eq!(decades.ticks(6), [10.0, 100.0, 1000.0, 10_000.0]);
        let short = Scale::over(Spread::Decades, [3.0, 30.0], (0.0, 1.0));
        assert_eq!(short.ticks(6), [5.0, 10.0, 20.0]);
        let shorter = Scale::over(Spread::Octaves, [0.91, 1.25], (0.0, 1.0));
        assert_eq!(shorter.ticks(6), [1.0, 1.1, 1.2].map(|tick: f64| (10.0 * tick) * 0.1).to_vec());
        let linear = Scale::over(Spread::Linear, [0.0, 97.0], (0.0, 1.0));
        assert_eq!(linear.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
    }

    #[test]
    fn equal_ratios_are_equally_far_apart() {
        let scale = Scale::over(Spread::Octaves, [1.0, 16.0], (0.0, 100.0));
        let places: Vec<_> = [1.0, 2.0, 4.0, 8.0, 16.0].map(|f| scale.place(f)).to_vec();
        assert_eq!(places, [0.0, 25.0, 50.0, 75.0, 100.0].map(Some).to_vec());
        assert!((scale.at(0.5) - 4.0).abs() < 1e-12);
    }
}
