//! A cell while it is measured: what is known of it, and what is planned for it.

use super::roster::RosterCell;
use super::schedule::{Costs, Demand, Share};
use super::{Assignment, Outlook, RowMeasured, Spread};
use crate::worker::RowCalibration;

/// Seconds that the sentinels of one sample take, roughly; the first launch shows how wrong that is.
const SENTINEL_SECONDS: f64 = 0.15e-3;

/// A cell while it is measured.
#[derive(Clone, Debug)]
pub(crate) struct CellRun {
    /// The cell with the rows that it was calibrated with.
    pub(super) roster: RosterCell,
    /// Bytes of its data.
    pub(super) bytes: usize,
    /// What can be said of it.
    pub(super) outlook: Outlook,
    /// Rows that need no more samples.
    pub(super) left: Vec<usize>,
    /// Launches that it has had.
    pub(super) done: u32,
    /// Mirrored blocks that it has had.
    pub(super) taken: f64,
    /// What it gets from now on.
    pub(super) share: Share,
    /// Part of a launch that it has saved up, where it is not part of every round.
    pub(super) credit: f64,
    /// Where its variance comes from, once that is known.
    pub(super) spread: Option<Spread>,
    /// Whether its figures were looked at before the end.
    pub(super) was_looked_at: bool,
    /// How workers that had its data ended before their time, when it is not known what they were calling.
    pub(super) losses: Vec<String>,
    /// Why it can have no more launches.
    pub(super) ended: Option<String>,
    /// Seconds that its launches took before anything was called.
    pub(super) starts: Vec<f64>,
    /// Times of its calls in each launch against those of calibration.
    pub(super) paces: Vec<f64>,
}

impl CellRun {
    /// A cell that was just calibrated.
    pub(super) fn new(roster: RosterCell, bytes: usize, start: f64) -> Self {
        CellRun {
            roster,
            bytes,
            outlook: Outlook::Open,
            left: Vec::new(),
            done: 0,
            taken: 0.0,
            share: Share::default(),
            credit: 0.0,
            spread: None,
            was_looked_at: false,
            losses: Vec::new(),
            ended: None,
            starts: vec![start],
            paces: Vec::new(),
        }
    }

    /// The same with those of its rows that are still measured.
    pub(super) fn live(&self, known: &[RowMeasured]) -> RosterCell {
        let rows = self.live_rows(known).collect();
        RosterCell { cell: self.roster.cell, rows }
    }

    fn live_rows<'a>(&'a self, known: &'a [RowMeasured]) -> impl Iterator<Item = usize> + 'a {
        let is_live = |row: &usize| known[*row].is_live() && !self.left.contains(row);
        self.roster.rows.iter().copied().filter(is_live)
    }

    /// Whether it may have more launches.
    pub(super) fn is_open(&self, known: &[RowMeasured]) -> bool {
        let is_decided = self.outlook == Outlook::Decided;
        !is_decided && self.ended.is_none() && self.calibrations(known).next().is_some()
    }

    /// Calibrations of the rows that are still measured.
    fn calibrations<'a>(
        &'a self,
        known: &'a [RowMeasured],
    ) -> impl Iterator<Item = RowCalibration> + 'a {
        self.live_rows(known).filter_map(|row| known[row].calibration)
    }

    /// Seconds of one mirrored block, when the run is so many times as slow as calibration predicts.
    pub(super) fn block_seconds(&self, known: &[RowMeasured], correction: f64) -> f64 {
        let pace = middle(&self.paces).unwrap_or(1.0);
        let sample = |row: RowCalibration| pace * row.sample_cost().as_secs_f64();
        let samples = self.calibrations(known).map(|row| 2.0 * (sample(row) + SENTINEL_SECONDS));
        correction * samples.sum::<f64>()
    }

    /// Seconds of the untimed calls before the first block of a launch.
    fn warm_up_seconds(&self, known: &[RowMeasured]) -> f64 {
        let pace = middle(&self.paces).unwrap_or(1.0);
        let rows: Vec<RowCalibration> = self.calibrations(known).collect();
        // Where all calls are long, there are none.
        if rows.iter().all(RowCalibration::is_long) {
            return 0.0;
        }
        pace * rows.iter().map(|row| row.warm_up().sample_cost().as_secs_f64()).sum::<f64>()
    }

    /// What a launch costs, when every one of so many rows has a process of its own.
    pub(super) fn costs(&self, known: &[RowMeasured], correction: f64, processes: usize) -> Costs {
        Costs {
            start: middle(&self.starts).unwrap_or(0.0) * processes as f64,
            warm_up: correction * self.warm_up_seconds(known),
            block: self.block_seconds(known, correction),
        }
    }

    /// What is to be planned for it.
    pub(super) fn demand(
        &self,
        known: &[RowMeasured],
        costs: Costs,
        Assignment { effort, launcher, .. }: &Assignment<'_>,
    ) -> Demand {
        let pace = middle(&self.paces).unwrap_or(1.0);
        let slowest = self.calibrations(known).map(|row| row.sample_time()).max();
        let blocks = slowest.map_or(0, |slowest| effort.blocks(slowest.mul_f64(pace)));
        // A number of samples, or of launches, that the user has set is what the user wants.
        let fixed = if launcher.is_fresh() { effort.launches } else { Some(1) };
        let is_set = effort.samples.is_some() || fixed.is_some();
        let is_bounded = is_set || self.outlook == Outlook::Settled;
        Demand {
            costs,
            rows: self.calibrations(known).count(),
            done: self.done,
            taken: self.taken,
            wanted: is_bounded.then_some(f64::from(blocks)),
            fixed,
            spread: self.spread,
        }
    }
}

/// The median, or the upper one of two; of a few values, one that is far off does not matter.
pub(super) fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
