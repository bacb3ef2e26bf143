//! The rows of one kernel and element type, arranged for plots: what belongs on one line, and which lines belong together.

use std::collections::HashMap;

use super::super::index::{Index, grouped};
use super::super::{DeviceReport, KernelReport, PartReport, Report, RowReport, ScalingReport};
use crate::crossover::Crossover;
use crate::environment::Environment;
use crate::kernel::Mode;
use crate::order;

/// Everything that a report says of one kernel and element type.
pub(super) struct Subject<'a> {
    report: &'a Report,
    /// The part of a merged report that its first row is from.
    part: Option<&'a PartReport>,
    /// Its number on the page.
    pub(super) number: usize,
    pub(super) kernel: &'a str,
    pub(super) element: &'a str,
    /// Rows of sizes that were listed.
    pub(super) listed: Vec<&'a RowReport>,
    /// Rows of sizes that the search of crossovers added.
    pub(super) searched: Vec<&'a RowReport>,
    /// The listed rows that follow the first one without a row of another kernel or machine between them.
    pub(super) first: &'a [RowReport],
    pub(super) summary: Option<&'a KernelReport>,
    pub(super) crossovers: Vec<&'a Crossover>,
    pub(super) scaling: Vec<&'a ScalingReport>,
    /// The variants in the order of their rows; the position of one is its colour and shape everywhere.
    pub(super) variants: Vec<&'a str>,
    /// The same by name.
    known: HashMap<&'a str, Variant>,
}

/// What the rows of one variant say together.
struct Variant {
    position: usize,
    /// The most threads of its rows with a time, and the place of their first mode.
    timed: Option<(usize, usize)>,
}

/// Where the time of a row is spent: what is to be compared is drawn together, and what is not, apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// On the processor.
    Processor,
    /// On a device, data already there.
    Device,
    /// On a device, data brought there and back.
    Transfers,
}

impl Side {
    pub(super) fn of(row: &RowReport) -> Self {
        match (row.backend.as_str(), row.mode.as_str()) {
            (_, "end-to-end") => Side::Transfers,
            ("cuda", _) => Side::Device,
            _ => Side::Processor,
        }
    }

    /// What a plot of this side is called.
    pub(super) fn words(self) -> &'static str {
        match self {
            Side::Processor => "processor",
            Side::Device => "device, kernel only",
            Side::Transfers => "device, with transfers",
        }
    }
}

/// The rows of one line, by growing work.
pub(super) struct Series<'a> {
    pub(super) side: Side,
    /// Position of its variant.
    pub(super) variant: usize,
    /// Whether it is the one that its variant is judged by: most threads, first mode.
    pub(super) is_main: bool,
    pub(super) threads: usize,
    pub(super) mode: &'a str,
    /// Values of the axes that do not grow along the line, in words.
    pub(super) held: String,
    pub(super) rows: Vec<&'a RowReport>,
}

impl Series<'_> {
    /// Classes of its marks: colour, weight and dashes.
    pub(super) fn class(&self) -> String {
        let weight = if self.is_main { "" } else { " minor" };
        let dashes = match self.mode {
            "cold" => " cold",
            "graph" => " graph",
            _ => "",
        };
        format!("s{}{weight}{dashes}", self.variant % COLOURS)
    }
}

/// Colours of the style sheet; shapes repeat at another pace, so that no two of many variants are alike.
pub(super) const COLOURS: usize = 8;

/// Every kernel and element type of a report, in the order of its rows.
pub(super) fn subjects(report: &Report) -> Vec<Subject<'_>> {
    let kernels = Index::new(&report.kernels, |found| (&*found.kernel, &*found.element));
    let crossovers = Index::new(&report.crossovers, |found| (&*found.kernel, &*found.element));
    let scaling = Index::new(&report.scaling, |found| (&*found.kernel, &*found.element));
    let parts = Index::new(&report.parts, |part| part.machine.as_str());
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    let mut numbers = HashMap::new();
    for (all, is_listed) in [(&report.rows, true), (&report.searched, false)] {
        for rows in all.chunk_by(RowReport::is_of_same_kernel) {
            let key = (rows[0].kernel.as_str(), rows[0].element.as_str());
            let machine = rows[0].machine.as_deref().filter(|_| is_listed);
            let number = *numbers.entry(key).or_insert_with(|| {
                subjects.push(Subject {
                    report,
                    part: machine.and_then(|machine| parts.of(&machine).first().copied()),
                    number: subjects.len(),
                    kernel: key.0,
                    element: key.1,
                    listed: Vec::new(),
                    searched: Vec::new(),
                    first: if is_listed { rows } else { &[] },
                    summary: kernels.of(&key).first().copied(),
                    crossovers: crossovers.of(&key).to_vec(),
                    scaling: scaling.of(&key).to_vec(),
                    variants: Vec::new(),
                    known: HashMap::new(),
                });
                subjects.len() - 1
            });
            let subject = &mut subjects[number];
            if is_listed { &mut subject.listed } else { &mut subject.searched }.extend(rows);
            rows.iter().for_each(|row| subject.note_variant(row));
        }
    }
    subjects
}

/// The place of a row's mode among those of a device; the first for rows on a processor.
fn place_of_mode(row: &RowReport) -> usize {
    Mode::OF_DEVICE.iter().position(|mode| mode.name() == row.mode).map_or(0, |at| at + 1)
}

impl<'a> Subject<'a> {
    /// Notes what a row says of its variant.
    fn note_variant(&mut self, row: &'a RowReport) {
        let position = self.variants.len();
        let variant = self.known.entry(&row.variant).or_insert_with(|| {
            self.variants.push(&row.variant);
            Variant { position, timed: None }
        });
        if row.time_ns.is_some() {
            let own = (row.threads, place_of_mode(row));
            let (threads, mode) = variant.timed.unwrap_or(own);
            variant.timed = Some((threads.max(own.0), mode.min(own.1)));
        }
    }

    /// All rows, listed ones first.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'a RowReport> + Clone + '_ {
        self.listed.iter().chain(&self.searched).copied()
    }

    /// The rows of its sizes, by growing work.
    pub(super) fn cells(&self) -> Vec<Vec<&'a RowReport>> {
        let mut cells = grouped(self.listed.iter().copied(), |row| row.size.as_str());
        let work = |cell: &[&RowReport]| cell[0].work.unwrap_or(0.0);
        order::sort_by(&mut cells, |a, b| work(a).total_cmp(&work(b)));
        cells
    }

    /// The position of a variant.
    pub(super) fn position(&self, variant: &str) -> usize {
        self.known.get(variant).map_or(0, |known| known.position)
    }

    /// The most threads that a variant was measured with.
    pub(super) fn most_threads(&self, variant: &str) -> usize {
        self.known.get(variant).and_then(|known| known.timed).map_or(1, |(threads, _)| threads)
    }

    /// Its rows with figures, as lines.
    pub(super) fn series(&self) -> Vec<Series<'a>> {
        let held = order::distinct(self.crossovers.iter().flat_map(|found| found.held.keys()));
        let held = |row: &RowReport| {
            let values = held.iter().filter_map(|axis| Some((axis, row.axes.get(*axis)?)));
            let values: Vec<String> = values.map(|(axis, v)| format!("{axis}={v}")).collect();
            values.join(",")
        };
        let drawn = self.rows().filter(|row| row.status.has_figures() && row.work.is_some());
        let lines = grouped(drawn, |row| {
            let RowReport { variant, threads, mode, machine, .. } = *row;
            (variant, threads, mode, machine, held(row))
        });
        let work = |row: &RowReport| row.work.unwrap_or(0.0);
        let series = |mut rows: Vec<&'a RowReport>| {
            let first = rows[0];
            order::sort_by(&mut rows, |a, b| work(a).total_cmp(&work(b)));
            Series {
                side: Side::of(first),
                variant: self.position(&first.variant),
                is_main: self.is_main(first),
                threads: first.threads,
                mode: &first.mode,
                held: held(first),
                rows,
            }
        };
        lines.into_iter().map(series).collect()
    }

    /// Whether its variant is judged by a row: with most threads, and in the first mode that it was measured in. Times with
    /// transfers stand beside those without them.
    pub(super) fn is_main(&self, row: &RowReport) -> bool {
        let timed = self.known.get(row.variant.as_str()).and_then(|known| known.timed);
        let is_first_mode = timed.is_none_or(|(_, mode)| place_of_mode(row) <= mode);
        (is_first_mode || row.mode == Mode::EndToEnd.name())
            && row.threads == self.most_threads(&row.variant)
    }

    /// Where its rows were measured.
    pub(super) fn place(&self) -> (&'a Environment, Option<&'a DeviceReport>) {
        match self.part {
            Some(part) => (&part.environment, part.device.as_ref()),
            None => (&self.report.environment, self.report.device.as_ref()),
        }
    }

    /// Its name in titles.
    pub(super) fn title(&self) -> String {
        format!("{} {}", super::text::last_segment(self.kernel), self.element)
    }
}
