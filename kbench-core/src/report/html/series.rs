//! The rows of one kernel and element type, arranged for plots: what belongs on one line, and which lines belong together.

use super::super::{DeviceReport, KernelReport, Report, RowReport, ScalingReport};
use crate::crossover::Crossover;
use crate::environment::Environment;
use crate::kernel::Mode;
use crate::order;

/// Everything that a report says of one kernel and element type.
pub(super) struct Subject<'a> {
    pub(super) report: &'a Report,
    /// Its number on the page.
    pub(super) number: usize,
    pub(super) kernel: &'a str,
    pub(super) element: &'a str,
    /// Rows of sizes that were listed.
    pub(super) listed: Vec<&'a RowReport>,
    /// Rows of sizes that the search of crossovers added.
    pub(super) searched: Vec<&'a RowReport>,
    pub(super) summary: Option<&'a KernelReport>,
    pub(super) crossovers: Vec<&'a Crossover>,
    pub(super) scaling: Vec<&'a ScalingReport>,
    /// The variants in the order of their rows; the position of one is its colour and shape everywhere.
    pub(super) variants: Vec<&'a str>,
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
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for (row, is_listed) in
        report.rows.iter().map(|row| (row, true)).chain(report.searched.iter().map(|r| (r, false)))
    {
        let key = (row.kernel.as_str(), row.element.as_str());
        let number = *known.entry(key).or_insert_with(|| {
            subjects.push(Subject::new(report, subjects.len(), key));
            subjects.len() - 1
        });
        let subject = &mut subjects[number];
        if is_listed { &mut subject.listed } else { &mut subject.searched }.push(row);
        if !subject.variants.contains(&row.variant.as_str()) {
            subject.variants.push(&row.variant);
        }
    }
    subjects
}

impl<'a> Subject<'a> {
    fn new(report: &'a Report, number: usize, (kernel, element): (&'a str, &'a str)) -> Self {
        let is_here = |of: &str, element_of: &str| of == kernel && element_of == element;
        Subject {
            report,
            number,
            kernel,
            element,
            listed: Vec::new(),
            searched: Vec::new(),
            summary: report.kernels.iter().find(|k| is_here(&k.kernel, &k.element)),
            crossovers: report
                .crossovers
                .iter()
                .filter(|c| is_here(&c.kernel, &c.element))
                .collect(),
            scaling: report.scaling.iter().filter(|s| is_here(&s.kernel, &s.element)).collect(),
            variants: Vec::new(),
        }
    }

    /// All rows, listed ones first.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'a RowReport> + Clone + '_ {
        self.listed.iter().chain(&self.searched).copied()
    }

    /// The rows of its sizes, by growing work.
    pub(super) fn cells(&self) -> Vec<Vec<&'a RowReport>> {
        let mut cells: Vec<Vec<&'a RowReport>> = Vec::new();
        for row in &self.listed {
            match cells.iter_mut().find(|cell| cell[0].size == row.size) {
                Some(cell) => cell.push(row),
                None => cells.push(vec![row]),
            }
        }
        let work = |cell: &[&RowReport]| cell[0].work.unwrap_or(0.0);
        order::sort_by(&mut cells, |a, b| work(a).total_cmp(&work(b)));
        cells
    }

    /// The position of a variant.
    pub(super) fn position(&self, variant: &str) -> usize {
        self.variants.iter().position(|known| *known == variant).unwrap_or(0)
    }

    /// The most threads that a variant was measured with.
    pub(super) fn most_threads(&self, variant: &str) -> usize {
        let own = self.rows().filter(|row| row.variant == variant && row.time_ns.is_some());
        own.map(|row| row.threads).max().unwrap_or(1)
    }

    /// Its rows with figures, as lines.
    pub(super) fn series(&self) -> Vec<Series<'a>> {
        let held = order::distinct(self.crossovers.iter().flat_map(|found| found.held.keys()));
        let mut series: Vec<Series<'a>> = Vec::new();
        for row in self.rows().filter(|row| row.status.has_figures() && row.work.is_some()) {
            let values = held.iter().filter_map(|axis| Some((axis, row.axes.get(*axis)?)));
            let values: Vec<String> = values.map(|(axis, v)| format!("{axis}={v}")).collect();
            let (variant, held) = (self.position(&row.variant), values.join(","));
            let is_same = |known: &&mut Series<'_>| {
                (known.variant, known.threads, known.mode, known.held.as_str())
                    == (variant, row.threads, row.mode.as_str(), held.as_str())
                    && known.rows[0].machine == row.machine
            };
            match series.iter_mut().find(is_same) {
                Some(known) => known.rows.push(row),
                None => series.push(Series {
                    side: Side::of(row),
                    variant,
                    is_main: self.is_main(row),
                    threads: row.threads,
                    mode: &row.mode,
                    held,
                    rows: vec![row],
                }),
            }
        }
        let work = |row: &RowReport| row.work.unwrap_or(0.0);
        for line in &mut series {
            order::sort_by(&mut line.rows, |a, b| work(a).total_cmp(&work(b)));
        }
        series
    }

    /// Whether its variant is judged by a row: with most threads, and in the first mode that it was measured in. Times with
    /// transfers stand beside those without them.
    pub(super) fn is_main(&self, row: &RowReport) -> bool {
        let place = |row: &RowReport| {
            Mode::OF_DEVICE.iter().position(|mode| mode.name() == row.mode).map_or(0, |at| at + 1)
        };
        let is_own = |other: &&RowReport| other.variant == row.variant && other.time_ns.is_some();
        let mut own = self.rows().filter(is_own);
        let is_first_mode = own.all(|other| place(row) <= place(other));
        (is_first_mode || row.mode == Mode::EndToEnd.name())
            && row.threads == self.most_threads(&row.variant)
    }

    /// Where its rows were measured.
    pub(super) fn place(&self) -> (&'a Environment, Option<&'a DeviceReport>) {
        let machine = self.listed.first().and_then(|row| row.machine.as_ref());
        let part = self.report.parts.iter().find(|part| Some(&part.machine) == machine);
        match part {
            Some(part) => (&part.environment, part.device.as_ref()),
            None => (&self.report.environment, self.report.device.as_ref()),
        }
    }

    /// Its name in titles.
    pub(super) fn title(&self) -> String {
        format!("{} {}", super::text::last_segment(self.kernel), self.element)
    }
}
