//! How times grow with work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::crossover::ways;
use crate::environment::Caches;
use crate::infer::{Growth, GrowthPoint, Mean, Observations, growth};
use crate::measure::Pass;
use crate::plan::{Cell, Row, Size};

/// How the time of one variant grows along one way through the sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrowthReport {
    /// `module::path::kernel`.
    pub kernel: String,
    /// Element type.
    #[serde(rename = "type")]
    pub element: String,
    /// The variant.
    pub variant: String,
    /// Threads of its own pool.
    pub threads: Option<usize>,
    /// Values of the axes that stay the same.
    pub held: BTreeMap<String, usize>,
    /// The smallest size.
    pub from_size: String,
    /// The largest.
    pub to_size: String,
    /// Exponents, and where they change.
    #[serde(flatten)]
    pub growth: Growth,
}

/// Every variant along every way that has at least three sizes.
pub fn growth_reports(pass: &Pass, caches: Caches) -> Vec<GrowthReport> {
    if pass.measured.rows.is_empty() {
        return Vec::new();
    }
    let named = [("L1", caches.l1d), ("L2", caches.l2), ("L3", caches.l3)];
    let caches: Vec<(&'static str, u64)> =
        named.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))).collect();
    let mut reports = Vec::new();
    let mut start = 0;
    for cells in pass.plan.cells.chunk_by(|a, b| std::ptr::eq(a.kernel, b.kernel)) {
        for sizes in ways(cells[0].kernel, cells, pass.plan.along.as_deref()) {
            let on_way: Vec<usize> =
                sizes.iter().filter_map(|size| index_of(cells, size)).map(|i| start + i).collect();
            let seen = |cell: &usize| Observations::of(&pass.measured.measurement, *cell);
            let observations: Vec<Observations> = on_way.iter().map(seen).collect();
            for row in rows(cells) {
                // A device has caches of its own.
                let is_device = row.variant.implementation.is_device();
                let caches = if is_device { &[] } else { caches.as_slice() };
                let way = Way { pass, observations: &observations, cells: &on_way, caches };
                reports.extend(way.report(&row));
            }
        }
        start += cells.len();
    }
    reports
}

fn index_of(cells: &[Cell], size: &Size) -> Option<usize> {
    cells.iter().position(|cell| cell.size == *size)
}

/// The rows of some cells, each once.
fn rows(cells: &[Cell]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let primary = |cell: &'_ Cell| -> Vec<Row> {
        (0..cell.rows.len()).filter(|row| cell.is_primary(*row)).map(|row| cell.rows[row]).collect()
    };
    for row in &cells.iter().flat_map(primary).collect::<Vec<_>>() {
        if rows.iter().all(|known| !known.is(row)) {
            rows.push(*row);
        }
    }
    rows
}

/// A way through some cells of a pass.
struct Way<'a> {
    pass: &'a Pass,
    cells: &'a [usize],
    /// What was seen of each of them.
    observations: &'a [Observations],
    caches: &'a [(&'static str, u64)],
}

impl Way<'_> {
    fn report(&self, row: &Row) -> Option<GrowthReport> {
        let cells = self.cells.iter().zip(self.observations);
        let points: Vec<(usize, GrowthPoint)> =
            cells.filter_map(|(cell, seen)| Some((*cell, self.point(*cell, seen, row)?))).collect();
        let (first, last) = (points.first()?.0, points.last()?.0);
        let points: Vec<GrowthPoint> = points.into_iter().map(|(_, point)| point).collect();
        let growth = growth(&points, self.caches)?;
        let cells = &self.pass.plan.cells;
        let (kernel, size) =
            (cells[first].kernel, |cell: usize| cells[cell].size.name(cells[cell].kernel.axes));
        Some(GrowthReport {
            kernel: kernel.path(),
            element: kernel.element.to_owned(),
            variant: row.variant.name.to_owned(),
            threads: row.threads,
            held: self.held(),
            from_size: size(first),
            to_size: size(last),
            growth,
        })
    }

    fn held(&self) -> BTreeMap<String, usize> {
        let sizes: Vec<&Size> = self.cells.iter().map(|c| &self.pass.plan.cells[*c].size).collect();
        let axes = self.pass.plan.cells[self.cells[0]].kernel.axes;
        let first = sizes[0];
        first.values_of(axes, &|axis| sizes.iter().all(|s| s.values[axis] == first.values[axis]))
    }

    fn point(&self, index: usize, seen: &Observations, row: &Row) -> Option<GrowthPoint> {
        let Pass { plan, measured, .. } = self.pass;
        let cell = &plan.cells[index];
        let position = cell.rows.iter().position(|known| known.is(row))?;
        let known = &measured.rows[index][position];
        if known.failure.is_some() {
            return None;
        }
        let time = Mean::of(&seen.times(position))?;
        let work = cell.work().ok().filter(|work| work.is_finite() && *work > 0.0)?;
        Some(GrowthPoint { work, time, bytes: known.bytes })
    }
}
