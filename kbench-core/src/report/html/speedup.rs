//! Speed-up against work: the winner at each size, how certain it is, and what the author claims.

use std::collections::HashSet;

use super::super::index::with_several;
use super::super::{RowReport, units};
use super::plot::{ACROSS, Axis, Plot, Ranged, UPWARD};
use super::scale::{Scale, Spread};
use super::series::{COLOURS, Series, Side, Subject};
use super::text::{amount, speedup, tick, variant};
use crate::crossover::{Crossover, Winner};
use crate::order;

/// How to read these plots.
pub(super) const READING: &str = "Above 1× a variant beats the base. The band is the interval by which it is judged; where it \
    touches 1× no winner is shown. The shaded bracket is where the winner changes, the dashed line the author's threshold.";

/// With more lines than these, ends of lines with fewer threads have no label.
const MOST_LABELS: usize = 8;

/// Intervals are shown up to this factor beyond the figures; what reaches further is cut off at the frame.
const FURTHEST: f64 = 4.0;

/// One plot for every side on which something is compared, all with the same axes.
pub(super) fn plots(subject: &Subject<'_>, series: &[Series<'_>]) -> Vec<String> {
    let compared: Vec<&Series<'_>> = series
        .iter()
        .filter(|s| s.rows.iter().any(|row| row.comparison.speedup.is_some()))
        .collect();
    let sides: Vec<Side> = order::distinct(compared.iter().map(|series| series.side));
    let drawing = Drawing { subject, series: &compared, is_one_of_many: sides.len() > 1 };
    sides.into_iter().map(|side| drawing.plot(side)).collect()
}

struct Drawing<'a> {
    subject: &'a Subject<'a>,
    series: &'a [&'a Series<'a>],
    is_one_of_many: bool,
}

impl Drawing<'_> {
    fn rows(&self) -> impl Iterator<Item = &RowReport> {
        self.series.iter().flat_map(|series| series.rows.iter().copied())
    }

    fn axes(&self) -> (Axis, Axis) {
        let work = self.rows().filter_map(|row| row.work);
        let x = Scale::over(Spread::Octaves, work, ACROSS).with_margin(0.02);
        let figures = || self.rows().filter_map(|row| row.comparison.speedup);
        let (least, most) =
            figures().fold((1.0_f64, 1.0_f64), |(low, high), f| (low.min(f), high.max(f)));
        let ends = self.rows().flat_map(|row| {
            [row.comparison.speedup_low, row.comparison.speedup_high].into_iter().flatten()
        });
        let ends = ends.map(|end| end.clamp(least / FURTHEST, most * FURTHEST));
        let y = Scale::over(Spread::Octaves, figures().chain(ends).chain([1.0]), UPWARD);
        let x = Axis::new(x, "work", 7, amount);
        (x, Axis::new(y.with_margin(0.04), "speed-up", 6, factor))
    }

    fn plot(&self, side: Side) -> String {
        let (x, y) = self.axes();
        let title = format!("Speed-up against work: {}, {}", self.subject.title(), side.words());
        let mut plot = Plot::new(title, self.description(side), x, y);
        if self.is_one_of_many {
            plot.caption(side.words());
        }
        let here: Vec<&&Series<'_>> = self.series.iter().filter(|s| s.side == side).collect();
        for series in here.iter().filter(|series| series.is_main) {
            let ranges: Vec<Ranged> = series.rows.iter().filter_map(|row| range(row)).collect();
            plot.band(&ranges, &series.class());
        }
        plot.horizontal(1.0, "one", "");
        for found in self.crossovers(side) {
            self.claims(&mut plot, found);
        }
        // Where many lines end, only those that matter are named.
        let is_crowded = here.len() > MOST_LABELS;
        let several = with_several(here.iter().map(|s| (s.variant, (s.threads, &s.held))));
        for series in &here {
            let is_one_of_many = several.contains(&series.variant);
            self.line(&mut plot, series, is_one_of_many && (series.is_main || !is_crowded));
        }
        plot.render()
    }

    fn line(&self, plot: &mut Plot, series: &Series<'_>, is_labelled: bool) {
        let class = series.class();
        let point = |row: &&RowReport| Some((row.work?, row.comparison.speedup?));
        plot.line(series.rows.iter().filter_map(point), &class);
        for row in &series.rows {
            if let Some(place) = point(row) {
                plot.mark(place, series.variant, &class, &tip(row));
            }
        }
        let last = series.rows.iter().rev().find_map(point);
        if let Some((_, y)) = last.filter(|_| is_labelled) {
            let threads = match self.subject.most_threads(self.subject.variants[series.variant]) {
                1 => String::new(),
                _ => format!("{} thr", series.threads),
            };
            let text = if series.held.is_empty() { threads } else { series.held.clone() };
            plot.label(y, &super::text::cut(&text, 7), &class);
        }
    }

    /// Crossovers of main lines on a side.
    fn crossovers(&self, side: Side) -> Vec<&Crossover> {
        let main = self.series.iter().filter(|series| series.side == side && series.is_main);
        let main: HashSet<(&str, usize, &str)> =
            main.map(|s| (self.subject.variants[s.variant], s.threads, s.mode)).collect();
        let is_drawn = |found: &&&Crossover| {
            main.contains(&(found.variant.as_str(), found.threads, found.mode.name()))
        };
        self.subject.crossovers.iter().filter(is_drawn).copied().collect()
    }

    /// The brackets and the threshold of a crossover.
    fn claims(&self, plot: &mut Plot, found: &Crossover) {
        let position = self.subject.position(&found.variant);
        let class = format!("s{}", position % COLOURS);
        for crossing in &found.crossings {
            let (below, above) = (&crossing.below, &crossing.above);
            let (winner, loser) = match crossing.winner {
                Winner::Variant => (&found.variant, &found.base),
                Winner::Base => (&found.base, &found.variant),
            };
            let tip = format!(
                "crossover: {loser} wins up to {}, {winner} from {} on, {} octaves apart",
                below.size,
                above.size,
                units::digits(crossing.octaves)
            );
            plot.bracket((below.work, above.work), 1.0, &class, &tip);
        }
        let Some(threshold) = &found.threshold else { return };
        let at = claimed_work(&threshold.claim)
            .or_else(|| threshold.at.as_ref().map(|place| place.place.work));
        if let Some(at) = at {
            let tip = format!(
                "threshold {} of {}: {}",
                threshold.claim,
                found.variant,
                threshold.verdict.words()
            );
            plot.vertical(at, &format!("claim p {class}"), "threshold", &tip);
        }
    }

    /// What is to be seen, for those who do not see it.
    fn description(&self, side: Side) -> String {
        let largest = |series: &&&Series<'_>| {
            let row = series.rows.iter().rev().find(|row| row.comparison.speedup.is_some())?;
            Some(tip(row))
        };
        let here = self.series.iter().filter(|s| s.side == side && s.is_main);
        let lines: Vec<String> = here.clone().filter_map(|series| largest(&series)).collect();
        format!("At the largest sizes: {}.", lines.join("; "))
    }
}

fn range(row: &RowReport) -> Option<Ranged> {
    let comparison = &row.comparison;
    Some(Ranged { x: row.work?, low: comparison.speedup_low?, high: comparison.speedup_high? })
}

fn tip(row: &RowReport) -> String {
    let found = &row.comparison;
    let figure = found.speedup.map(|s| speedup(s, found.speedup_low, found.speedup_high));
    let verdict = found.verdict.as_deref().unwrap_or_default();
    let figure = figure.unwrap_or_default();
    format!("{} · {} · {figure} {verdict}", variant(row), row.size).trim_end().to_owned()
}

/// A round factor: `4×`, `½×`, `1.1×`.
pub(super) fn factor(figure: f64) -> String {
    match figure {
        0.5 => "½×".to_owned(),
        0.25 => "¼×".to_owned(),
        0.125 => "⅛×".to_owned(),
        f if f.log2().fract() != 0.0 => format!("{}×", tick(f)),
        f if f >= 1.0 => format!("{}×", amount(f)),
        f => format!("1/{}×", amount(1.0 / f)),
    }
}

/// The number in a claim such as `100_000 (default)` or `1 << 16`; none when it is a condition on axes.
fn claimed_work(claim: &str) -> Option<f64> {
    let claim = claim.split(" (").next().unwrap_or_default().replace('_', "");
    let whole = |text: &str| text.trim().parse::<u64>().ok();
    match claim.split_once("<<") {
        Some((value, shift)) => {
            whole(value)?.checked_shl(u32::try_from(whole(shift)?).ok()?).map(|work| work as f64)
        }
        None => whole(&claim).map(|work| work as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_is_a_number_has_a_place() {
        assert_eq!(claimed_work("100000 (default)"), Some(100_000.0));
        assert_eq!(claimed_work("1 << 16"), Some(65_536.0));
        assert_eq!(claimed_work("65_536"), Some(65_536.0));
        assert_eq!(claimed_work("rows * dim >= 16384"), None);
        assert_eq!(claimed_work("1 << 99999999999"), None);
    }

    #[test]
    fn factors_are_written_as_one_says_them() {
        assert_eq!([4.0, 1.0, 0.5, 0.0625].map(factor), ["4×", "1×", "½×", "1/16×"]);
        assert_eq!([0.9, 1.1].map(factor), ["0.9×", "1.1×"]);
    }
}
