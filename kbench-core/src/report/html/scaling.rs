//! Thread scaling: speed-up over the smallest thread count, the ideal, and the law that describes it.

use super::super::index::Index;
use super::super::kernel_table::bare_size;
use super::super::{FitReport, RowReport, ScalingReport, units};
use super::plot::{ACROSS, Axis, Plot, Ranged, UPWARD};
use super::scale::{Scale, Spread};
use super::series::{COLOURS, Subject};
use super::speedup::factor;
use super::text::{cut, short_size, speedup, tick};

/// How to read these plots.
pub(super) const READING: &str = "The dashed diagonal is the ideal: twice the threads, twice as fast. Bars are 95 % \
    intervals; the thin curve is the fitted law of the largest size, where there are enough thread counts.";

/// More sizes than these are not told apart on one plot.
const MOST_SIZES: usize = 5;

/// One plot for every parallel variant.
pub(super) fn plots(subject: &Subject<'_>) -> Vec<String> {
    let found = Index::new(subject.scaling.iter().copied(), |found| found.variant.as_str());
    let rows = Index::new(subject.listed.iter().copied(), |row| row.size.as_str());
    let scales = |variant: &&&str| !found.of(variant).is_empty();
    let plot = |variant: &&str| self::plot(subject, variant, &chosen(found.of(variant)), &rows);
    subject.variants.iter().filter(scales).map(plot).collect()
}

/// What the laws say, in sentences.
pub(super) fn laws(subject: &Subject<'_>) -> Vec<String> {
    subject.scaling.iter().map(|found| found.words.clone()).filter(|w| !w.is_empty()).collect()
}

/// The first, the last, and some between.
fn chosen<'a>(all: &[&'a ScalingReport]) -> Vec<&'a ScalingReport> {
    if all.len() <= MOST_SIZES {
        return all.to_vec();
    }
    let step = (all.len() - 1) as f64 / (MOST_SIZES - 1) as f64;
    (0..MOST_SIZES).map(|i| all[(i as f64 * step).round() as usize]).collect()
}

/// Rows by their size.
type Rows<'a> = Index<'a, &'a str, RowReport>;

fn plot(subject: &Subject<'_>, variant: &str, sizes: &[&ScalingReport], rows: &Rows<'_>) -> String {
    let counts = || sizes.iter().flat_map(|found| &found.counts);
    let first = sizes.iter().map(|found| found.first).min().unwrap_or(1) as f64;
    let most = counts().map(|count| count.threads).max().unwrap_or(1) as f64;
    let x = Scale::over(Spread::Octaves, [first, most], ACROSS).with_margin(0.06);
    let figures = counts().flat_map(|count| [count.speedup.value, count.speedup.value / 1.2]);
    let y = Scale::over(Spread::Octaves, figures.chain([1.0, most / first]), UPWARD);
    let x = Axis::new(x, "threads", 6, tick);
    let y = Axis::new(y.with_margin(0.04), "speed-up", 6, factor);
    let title = format!("Thread scaling of {variant}: {}", subject.title());
    let words: Vec<&str> = sizes.iter().map(|found| found.words.as_str()).collect();
    let mut plot = Plot::new(title, words.join(". "), x, y);
    plot.caption(&cut(variant, 32));
    plot.line([(first, 1.0), (most, most / first)], "ideal");
    if let Some(cores) = subject.place().0.cores_physical.filter(|cores| *cores > 1) {
        plot.vertical(cores as f64, "cache", "cores", &format!("{cores} physical cores"));
    }
    for (index, found) in sizes.iter().enumerate() {
        // Sizes stand side by side, so that their bars do not hide each other.
        let middle = (sizes.len() - 1) as f64 / 2.0;
        let aside = (most / first).powf(0.008 * (index as f64 - middle));
        line(&mut plot, found, &size(rows, found), (index, aside));
    }
    let largest = sizes.last().and_then(|found| Some((found, found.fit.as_ref()?)));
    if let Some((found, fit)) = largest {
        let start = found.first as f64;
        let at = |step: usize| start * (most / start).powf(step as f64 / 32.0);
        let law = (0..=32).map(at).map(|threads| (threads, law(fit, start, threads)));
        plot.line(law, "fit");
    }
    plot.render()
}

/// What a size is called where there is little room.
fn size(rows: &Rows<'_>, found: &ScalingReport) -> String {
    let row = rows.of(&found.size.as_str()).first();
    cut(&row.map_or_else(|| bare_size(&found.size), |row| short_size(row)), 7)
}

fn line(plot: &mut Plot, found: &ScalingReport, size: &str, (index, aside): (usize, f64)) {
    let class = format!("s{}", index % COLOURS);
    let first = found.first as f64;
    let points = found.counts.iter().map(|count| (count.threads as f64, count.speedup.value));
    plot.line([(first, 1.0)].into_iter().chain(points.map(|(x, y)| (x * aside, y))), &class);
    for count in &found.counts {
        let (x, found_speedup) = (count.threads as f64 * aside, count.speedup);
        let (low, high) = (found_speedup.low, found_speedup.high);
        plot.whisker(Ranged { x, low, high }, &class);
        let tip = format!(
            "{} · {} threads · {} · efficiency {}",
            found.size,
            count.threads,
            speedup(found_speedup.value, Some(low), Some(high)),
            units::percent(count.efficiency.value)
        );
        plot.mark((x, found_speedup.value), index, &class, &tip);
    }
    if let Some(last) = found.counts.last() {
        plot.label(last.speedup.value, size, &class);
    }
}

/// Speed-up over the first count: Gunther's Universal Scalability Law, or Amdahl's without coherency.
fn law(fit: &FitReport, first: f64, threads: f64) -> f64 {
    let (contention, coherency) = (fit.contention.value, fit.coherency.map_or(0.0, |c| c.value));
    let capacity = |p: f64| p / (1.0 + contention * (p - 1.0) + coherency * p * (p - 1.0));
    capacity(threads) / capacity(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::Interval;

    #[test]
    fn a_law_without_a_cost_is_the_ideal() {
        let nothing = Interval { value: 0.0, low: 0.0, high: 0.0 };
        let mut fit = FitReport {
            law: "usl".into(),
            contention: nothing,
            coherency: Some(nothing),
            agreement: "close".into(),
            worst_residual: 0.0,
            worst_residual_at: 2,
        };
        assert_eq!(law(&fit, 1.0, 8.0), 8.0);
        assert_eq!(law(&fit, 2.0, 8.0), 4.0);
        fit.contention.value = 1.0;
        assert_eq!(law(&fit, 1.0, 8.0), 1.0);
    }
}
