//! Speed-up of parallel variants by threads, beside what so many threads could give, and the law that describes it.

use super::chart::{Chart, Label, shortened};
use super::scale::{Tick, is_drawable};
use super::series::MARKERS;
use crate::order;
use crate::report::index::grouped;
use crate::report::kernel_table::bare_size;
use crate::report::remarks::wrapped;
use crate::report::style::Tone;
use crate::report::{FitReport, RowReport, ScalingReport, Style, units};

/// With fewer counts beyond the first the table says it all.
const FEWEST_COUNTS: usize = 2;

/// More curves cannot be told from each other, for all begin at one point.
const MOST: usize = 4;

/// What so many threads could give.
const IDEAL: char = '/';

/// The chart of a kernel's parallel variants; none without several thread counts.
pub(super) fn scaling(
    found: &[&ScalingReport],
    kernel: &RowReport,
    style: Style,
) -> Option<String> {
    let is_shown = |found: &&ScalingReport| found.counts.len() >= FEWEST_COUNTS && found.first > 0;
    let found: Vec<&ScalingReport> = found.iter().copied().filter(is_shown).collect();
    let first = found.first()?.first;
    let (drawn, left_out) =
        choice(found.into_iter().filter(|found| found.first == first).collect());
    let threads: Vec<f64> =
        drawn.iter().flat_map(|found| points(found)).map(|point| point.0).collect();
    let most = threads.iter().copied().fold(0.0, f64::max);
    let speedups = drawn.iter().flat_map(|found| points(found)).map(|point| point.1);
    let ratios: Vec<f64> = speedups.chain([1.0, most / first as f64]).collect();
    let mut labels: Vec<Label> =
        drawn.iter().zip(MARKERS).map(|(found, marker)| label(found, marker)).collect();
    labels = shortened(labels, &kernel.kernel);
    labels.push(Label { marker: IDEAL, text: "ideal".into(), figure: most / first as f64 });
    let mut chart = Chart::over(&threads, &ratios, labels)?.with_ticks(ticks(&threads));
    for (found, marker) in drawn.iter().zip(MARKERS) {
        draw(&mut chart, found, marker);
    }
    chart.curve(IDEAL, |threads| threads / first as f64);
    let against = if first == 1 { "one thread".to_owned() } else { format!("{first} threads") };
    let title = format!("{}  {}: speed-up over {against}", kernel.kernel, kernel.element);
    let mut text = format!("\n{}\n{}", style.strong(&title), chart.render("threads", &[], style));
    for note in notes(&drawn, left_out).into_iter().chain(chart.bar_note()) {
        text += &(wrapped(&note) + "\n");
    }
    Some(text)
}

/// Every variant at its largest size first, then at its smallest, then at those between; and how many are too many.
fn choice(found: Vec<&ScalingReport>) -> (Vec<&ScalingReport>, usize) {
    let mut ranked: Vec<(usize, usize)> = Vec::new();
    for sizes in grouped(0..found.len(), |index| &found[*index].variant) {
        for (earlier, index) in sizes.iter().enumerate() {
            let rank = match (sizes.len() - earlier - 1, earlier) {
                (0, _) => 0,
                (_, 0) => 1,
                (later, _) => 1 + later,
            };
            ranked.push((rank, *index));
        }
    }
    order::sort(&mut ranked);
    let left_out = ranked.len().saturating_sub(MOST);
    (ranked.into_iter().take(MOST).map(|(_, index)| found[index]).collect(), left_out)
}

/// Threads and speed-up, the first count included.
fn points(found: &ScalingReport) -> Vec<(f64, f64)> {
    let counts = found.counts.iter().map(|count| (count.threads as f64, count.speedup.value));
    let all = [(found.first as f64, 1.0)].into_iter().chain(counts);
    all.filter(|(threads, speedup)| is_drawable(*threads) && is_drawable(*speedup)).collect()
}

fn label(found: &ScalingReport, marker: char) -> Label {
    let figure = points(found).last().map_or(1.0, |point| point.1);
    Label { marker, text: format!("{} {}", found.variant, bare_size(&found.size)), figure }
}

fn draw(chart: &mut Chart, found: &ScalingReport, marker: char) {
    for point in points(found) {
        chart.marker(point, marker, Tone::Plain);
    }
    for count in &found.counts {
        let (low, high) = (count.speedup.low, count.speedup.high);
        if is_drawable(count.speedup.value) && !low.is_nan() && !high.is_nan() {
            chart.interval((count.threads as f64, count.speedup.value), low, high);
        }
    }
    if let Some(fit) = &found.fit {
        chart.curve('·', |threads| law(fit, threads) / law(fit, found.first as f64));
    }
}

/// What the law says that so many threads give (Gunther 1993; without coherency, Amdahl 1967).
fn law(FitReport { contention, coherency, .. }: &FitReport, threads: f64) -> f64 {
    let coherency = coherency.map_or(0.0, |coherency| coherency.value);
    threads / (1.0 + (threads - 1.0) * (contention.value + coherency * threads))
}

/// Every measured count.
fn ticks(threads: &[f64]) -> Vec<Tick> {
    let mut counts = threads.to_vec();
    counts.sort_by(f64::total_cmp);
    counts.dedup();
    counts.into_iter().map(|figure| Tick { figure, label: figure.to_string() }).collect()
}

/// What the dots are, and what is not drawn.
fn notes(drawn: &[&ScalingReport], left_out: usize) -> Vec<String> {
    let fits: Vec<String> = drawn
        .iter()
        .zip(MARKERS)
        .filter_map(|(found, marker)| Some(format!("{marker} {}", fit_words(found.fit.as_ref()?))))
        .collect();
    let mut notes = Vec::new();
    if !fits.is_empty() {
        notes.push(format!("dots are laws with a serial part of: {}", fits.join(", ")));
    }
    match left_out {
        0 => {}
        1 => notes.push("not drawn: one more size".to_owned()),
        count => notes.push(format!("not drawn: {count} more sizes")),
    }
    notes
}

fn fit_words(fit: &FitReport) -> String {
    let coherency = fit.coherency.map_or_else(String::new, |coherency| {
        format!(" with a coherency of {}", units::percent(coherency.value))
    });
    let departs = if fit.agreement == "departs" { " (does not fit)" } else { "" };
    format!("{}{coherency}{departs}", units::percent(fit.contention.value))
}
