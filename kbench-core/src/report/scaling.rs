//! How parallel variants scale with threads.

use serde::{Deserialize, Serialize};

use super::sentences;
use crate::infer::{Agreement, Interval, Law, Observations, ScalingFit, compare, fit_scaling};
use crate::kernel::Backend;
use crate::measure::{Look, Pass};
use crate::order;
use crate::plan::Cell;

/// A parallel variant at one size with several thread counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScalingReport {
    /// `module::path::kernel`.
    pub kernel: String,
    /// Element type.
    #[serde(rename = "type")]
    pub element: String,
    /// The variant.
    pub variant: String,
    /// `axis=value,axis=value`.
    pub size: String,
    /// The smallest thread count, which the others are compared with.
    pub first: usize,
    /// Speed-up and efficiency of every further count.
    pub counts: Vec<ThreadsReport>,
    /// How much longer it takes with one thread than the base, which is serial, as a share.
    pub overhead: Option<Interval>,
    /// The law that describes it, where there are enough counts.
    pub fit: Option<FitReport>,
    /// The same in words.
    pub words: String,
}

/// A thread count against the smallest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadsReport {
    /// The count.
    pub threads: usize,
    /// Time with the smallest count over time with this one.
    pub speedup: Interval,
    /// Speed-up over what so many times the threads could give.
    pub efficiency: Interval,
}

/// A law of scaling.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FitReport {
    /// `amdahl` or `usl`.
    pub law: String,
    /// The serial fraction.
    pub contention: Interval,
    /// The cost of keeping threads coherent.
    pub coherency: Option<Interval>,
    /// Whether the law describes the figures: `within noise`, `close` or `departs`.
    pub agreement: String,
    /// Largest distance of a figure from the law, as a share.
    #[serde(deserialize_with = "crate::infer::upper_end")]
    pub worst_residual: f64,
    /// The thread count of that figure.
    pub worst_residual_at: usize,
}

/// Every parallel variant that was measured with several thread counts. Counts beyond the `cores` of the machine are shown,
/// but no law is fitted to them: threads that wait for each other's core follow none.
pub fn scaling_reports(pass: &Pass, cores: usize) -> Vec<ScalingReport> {
    let mut reports = Vec::new();
    for (index, cell) in pass.plan.cells.iter().enumerate() {
        let groups = groups(cell);
        if groups.is_empty() || pass.measured.rows.is_empty() {
            continue;
        }
        let observations = Observations::of(&pass.measured.measurement, index);
        let failed = |row: usize| pass.measured.rows[index][row].failure.is_some();
        for mut group in groups {
            group.retain(|(_, row)| !failed(*row) && !observations.times(*row).is_empty());
            let look = pass.measured.look(index, group.last().map_or(0, |(_, row)| *row));
            let seen = Seen { cell, observations: &observations, look, cores };
            let base = cell.base.filter(|base| !failed(*base));
            reports.extend(seen.report(&group, base));
        }
    }
    reports
}

/// The rows of each variant that has several thread counts, by count.
fn groups(cell: &Cell) -> Vec<Vec<(usize, usize)>> {
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    for (row, planned) in cell.rows.iter().enumerate() {
        let Some(threads) = planned.threads else { continue };
        let is_same = |group: &&mut Vec<(usize, usize)>| {
            std::ptr::eq(cell.rows[group[0].1].variant, planned.variant)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push((threads, row)),
            None => groups.push(vec![(threads, row)]),
        }
    }
    groups.iter_mut().for_each(|group| order::sort(group));
    groups
}

/// What was seen of a cell.
struct Seen<'a> {
    cell: &'a Cell,
    observations: &'a Observations,
    look: Look,
    cores: usize,
}

impl Seen<'_> {
    fn report(&self, group: &[(usize, usize)], base: Option<usize>) -> Option<ScalingReport> {
        let (&(first, first_row), others) = group.split_first()?;
        let cell = self.cell;
        let is_serial = |row: &usize| cell.rows[*row].variant.backend == Backend::Serial;
        let counts: Vec<ThreadsReport> =
            others.iter().filter_map(|other| self.count(first, first_row, *other)).collect();
        let serial = base.filter(is_serial).filter(|_| first == 1);
        let mut report = ScalingReport {
            kernel: cell.kernel.path(),
            element: cell.kernel.element.to_owned(),
            variant: cell.rows[first_row].variant.name.to_owned(),
            size: cell.size.name(cell.kernel.axes),
            first,
            counts,
            overhead: serial.and_then(|serial| self.overhead(serial, first_row)),
            fit: self.fit(group),
            words: String::new(),
        };
        report.words = sentences::scaling(&report);
        Some(report).filter(|report| !report.counts.is_empty())
    }

    fn count(
        &self,
        first: usize,
        first_row: usize,
        (threads, row): (usize, usize),
    ) -> Option<ThreadsReport> {
        let found = compare(self.observations, first_row, row, self.look)?;
        let speedup = Interval { value: found.speedup, low: found.low, high: found.high };
        let scaled = |factor: f64| Interval {
            value: speedup.value * factor,
            low: speedup.low * factor,
            high: speedup.high * factor,
        };
        Some(ThreadsReport { threads, efficiency: scaled(first as f64 / threads as f64), speedup })
    }

    /// How much longer one thread takes than the serial base.
    fn overhead(&self, serial: usize, row: usize) -> Option<Interval> {
        let found = compare(self.observations, serial, row, self.look)?;
        let longer = |speedup: f64| 1.0 / speedup - 1.0;
        let (value, low, high) = (longer(found.speedup), longer(found.high), longer(found.low));
        Some(Interval { value, low, high })
    }

    fn fit(&self, group: &[(usize, usize)]) -> Option<FitReport> {
        let group: Vec<_> = group.iter().filter(|(threads, _)| *threads <= self.cores).collect();
        let (first, others) = group.split_first()?;
        let threads: Vec<usize> = group.iter().map(|(threads, _)| *threads).collect();
        let launches = |(_, row): &&&(usize, usize)| -> Vec<f64> {
            let differences = self.observations.differences(first.1, *row);
            differences.iter().map(|launch| launch.value).collect()
        };
        let speedups: Vec<Vec<f64>> = others.iter().map(|other| launches(&other)).collect();
        fit_scaling(&threads, &speedups).map(fit_report)
    }
}

fn fit_report(fit: ScalingFit) -> FitReport {
    FitReport {
        law: match fit.law {
            Law::Amdahl => "amdahl",
            Law::Universal => "usl",
        }
        .to_owned(),
        contention: fit.contention,
        coherency: fit.coherency,
        agreement: match fit.agreement {
            Agreement::WithinNoise => "within noise",
            Agreement::Close => "close",
            Agreement::Departs => "departs",
        }
        .to_owned(),
        worst_residual: fit.worst_residual,
        worst_residual_at: fit.worst_residual_at,
    }
}
