//! Throughput against work: how much is done per second, where caches end, and what the device could do.

use super::super::{RowReport, units};
use super::plot::{ACROSS, Axis, Plot, UPWARD};
use super::scale::{Scale, Spread};
use super::series::{Series, Side, Subject};
use super::text::{amount, scaled, tick, variant};

/// How to read these plots.
pub(super) const READING: &str = "Higher is better; a level line means that time grows as work does. Dotted lines are \
    where the data of one call leaves a cache, solid ones what the device was measured to be capable of.";

/// The rate that the author asked for first: arithmetic, else memory, else work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rate {
    Flops,
    Bytes,
    Items,
}

impl Rate {
    /// The one that the rows of a kernel have.
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a RowReport> + Clone) -> Option<Self> {
        let has = |rate: &Rate| rows.clone().any(|row| rate.figure(row).is_some());
        [Rate::Flops, Rate::Bytes, Rate::Items].into_iter().find(has)
    }

    pub(super) fn figure(self, row: &RowReport) -> Option<f64> {
        match self {
            Rate::Flops => row.flops_per_s,
            Rate::Bytes => row.bytes_per_s,
            Rate::Items => row.items_per_s,
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Rate::Flops => "FLOP/s",
            Rate::Bytes => "B/s",
            Rate::Items => "items/s",
        }
    }
}

/// One plot for the processor and one for the device, as far as there are figures.
pub(super) fn plots(subject: &Subject<'_>, series: &[Series<'_>]) -> Vec<String> {
    let Some(rate) = Rate::of(subject.rows()) else { return Vec::new() };
    let drawing = Drawing { subject, series, rate };
    let sides = [Side::Processor, Side::Device];
    let has = |side: &Side| drawing.points(*side).next().is_some();
    let sides: Vec<Side> = sides.into_iter().filter(has).collect();
    sides.iter().map(|side| drawing.plot(*side, sides.len() > 1)).collect()
}

struct Drawing<'a> {
    subject: &'a Subject<'a>,
    series: &'a [Series<'a>],
    rate: Rate,
}

impl Drawing<'_> {
    fn points(&self, side: Side) -> impl Iterator<Item = (f64, f64)> + '_ {
        let rows = self.series.iter().filter(move |s| s.side == side).flat_map(|s| &s.rows);
        rows.filter_map(|row| Some((row.work?, self.rate.figure(row)?)))
    }

    fn plot(&self, side: Side, is_one_of_many: bool) -> String {
        let Drawing { subject, series, rate } = self;
        let work = self.points(Side::Processor).chain(self.points(Side::Device)).map(|p| p.0);
        let x = Scale::over(Spread::Octaves, work, ACROSS).with_margin(0.02);
        let ceilings = self.ceilings(side);
        let figures = self.points(side).map(|point| point.1).chain(ceilings.iter().map(|c| c.1));
        let y = Scale::over(Spread::Decades, figures, UPWARD).with_margin(0.05);
        let x = Axis::new(x, "work", 7, amount);
        let y = Axis::new(y, rate.unit(), 5, tick);
        let title = format!("Throughput against work: {}, {}", subject.title(), side.words());
        let mut plot = Plot::new(title, self.description(side), x, y);
        if is_one_of_many {
            plot.caption(side.words());
        }
        for (name, bytes) in self.caches(side) {
            if let Some(at) = self.work_of_bytes(side, bytes) {
                let tip = format!("{name}: {}", units::bytes(bytes as u64));
                plot.vertical(at, "cache", name, &tip);
            }
        }
        for (name, ceiling) in &ceilings {
            plot.horizontal(*ceiling, "roof", name);
        }
        for line in series.iter().filter(|series| series.side == side) {
            let class = line.class();
            let point = |row: &&RowReport| Some((row.work?, rate.figure(row)?));
            plot.line(line.rows.iter().filter_map(point), &class);
            for row in &line.rows {
                if let Some(place) = point(row) {
                    plot.mark(place, line.variant, &class, &self.tip(row));
                }
            }
        }
        plot.render()
    }

    fn tip(&self, row: &RowReport) -> String {
        let figure = self.rate.figure(row).map(|rate| scaled(rate, self.rate.unit()));
        let share = row.ceiling_share.map(|share| {
            let name = row.device.ceiling.as_deref().unwrap_or("ceiling");
            format!(" · {} of the {name} ceiling", units::percent(share))
        });
        let (figure, share) = (figure.unwrap_or_default(), share.unwrap_or_default());
        format!("{} · {} · {figure}{share}", variant(row), row.size)
    }

    fn caches(&self, side: Side) -> Vec<(&'static str, f64)> {
        let (environment, device) = self.subject.place();
        let caches = environment.caches;
        let of_device = device.and_then(|device| Some(device.ceilings.as_ref()?.l2_bytes));
        let known = match side {
            Side::Processor => vec![("L1", caches.l1d), ("L2", caches.l2), ("L3", caches.l3)],
            Side::Device | Side::Transfers => vec![("L2", of_device)],
        };
        known.into_iter().filter_map(|(name, bytes)| Some((name, bytes? as f64))).collect()
    }

    /// The work at which one call touches so many bytes, between measured sizes.
    fn work_of_bytes(&self, side: Side, bytes: f64) -> Option<f64> {
        let line = self.series.iter().filter(|series| series.side == side);
        let line = line.max_by_key(|series| series.rows.len())?;
        let known = |row: &&RowReport| Some((row.work?, row.bytes_per_s? * row.time_ns? / 1e9));
        let known: Vec<(f64, f64)> = line.rows.iter().filter_map(known).collect();
        let between = known.windows(2).find(|p| p[0].1 <= bytes && bytes <= p[1].1)?;
        let [(work, least), (more, most)] = [between[0], between[1]];
        let share = (bytes / least).ln() / (most / least).ln();
        Some(work * (more / work).powf(if share.is_finite() { share } else { 0.0 }))
    }

    /// What the device was measured to be capable of, where that binds this kernel.
    fn ceilings(&self, side: Side) -> Vec<(&'static str, f64)> {
        let (_, device) = self.subject.place();
        let measured = device.and_then(|device| device.ceilings.as_ref());
        let Some(ceilings) = measured.filter(|_| side == Side::Device) else { return Vec::new() };
        match self.rate {
            Rate::Bytes => vec![
                ("memory ceiling", ceilings.memory_bytes_per_s),
                ("L2 ceiling", ceilings.l2_bytes_per_s),
            ],
            Rate::Flops => {
                let rate = ceilings.rate(&self.subject.element.to_lowercase());
                rate.map(|rate| ("matrix ceiling", rate)).into_iter().collect()
            }
            Rate::Items => Vec::new(),
        }
    }

    fn description(&self, side: Side) -> String {
        let here = self.series.iter().filter(|series| series.side == side && series.is_main);
        let last = here.filter_map(|series| Some(self.tip(series.rows.last()?)));
        format!("At the largest sizes: {}.", last.collect::<Vec<_>>().join("; "))
    }
}
