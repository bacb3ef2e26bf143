//! What is planned for a group: how many launches, and how many blocks of every cell in each.

use std::time::{Duration, Instant};

use super::effort::FEWEST_BLOCKS;
use super::group::Group;
use super::roster::RosterCell;
use super::schedule::{Costs, FEWEST_LAUNCHES, START_SHARE, interim_looks, launches};
use super::{Isolation, Outlook, Spread};
use crate::order;

/// Seconds that the sentinels of one sample take, roughly; the first launch shows how wrong that is.
const SENTINEL_SECONDS: f64 = 0.15e-3;

/// Part of a block's time that goes into the first, untimed calls of a launch: one sample of every row instead of two.
pub(super) const WARM_UP_BLOCKS: f64 = 0.5;

/// What is planned for a group.
pub(super) struct Timetable {
    pub(super) begun: Instant,
    /// When it must end.
    pub(super) end: Instant,
    /// Blocks that every cell should get in all.
    pub(super) blocks: Vec<f64>,
    /// Whether the time ends before every cell has the blocks that it should have; then launches are as long as they
    /// may be.
    pub(super) is_bound: bool,
    /// Blocks that every cell has got.
    pub(super) taken: Vec<f64>,
    /// How many launches there are to be.
    pub(super) launches: u32,
    /// How many there may be: one for every block.
    pub(super) most: u32,
    /// How many there have been.
    pub(super) done: u32,
    /// After how many of them the figures are looked at.
    pub(super) looks: Vec<u32>,
}

impl Timetable {
    /// Seconds of a launch when all are alike.
    pub(super) fn slot(&self) -> f64 {
        (self.end - self.begun).as_secs_f64() / f64::from(self.launches)
    }

    /// Moves everything by time that is not spent measuring.
    pub(super) fn postpone(&mut self, time: Duration) {
        self.begun += time;
        self.end += time;
    }

    pub(super) fn launches_left(&self) -> f64 {
        f64::from(self.launches.saturating_sub(self.done).max(1))
    }

    /// Blocks that a cell should still get; fewer than none when it got more than its own.
    fn owed(&self, position: usize) -> f64 {
        self.blocks[position] - self.taken[position]
    }
}

/// How many launches there may be: one for every block of the cell that has most.
fn most_launches(blocks: &[f64]) -> u32 {
    blocks.iter().copied().fold(1.0, f64::max) as u32
}

impl Group<'_> {
    /// Shortens samples when the fewest blocks or launches would not fit in the time.
    pub(super) fn fit(&mut self, share: Duration) {
        let pass = self.pass_seconds();
        let needed = if self.assignment.launcher.is_fresh() {
            f64::from(self.assignment.effort.launches.unwrap_or(FEWEST_LAUNCHES))
                * (self.start_seconds() + (1.0 + WARM_UP_BLOCKS) * pass)
        } else {
            f64::from(FEWEST_BLOCKS) * pass
        };
        let factor = share.as_secs_f64() / needed;
        if factor >= 1.0 {
            return;
        }
        for RosterCell { cell, rows } in &self.roster.cells {
            for row in rows {
                let calibration = &mut self.measured.rows[*cell][*row].calibration;
                *calibration = calibration.map(|calibration| calibration.shortened(factor));
            }
        }
    }

    pub(super) fn timetable(&self, share: Duration) -> Timetable {
        let share = share.as_secs_f64();
        let blocks = self.wanted_blocks();
        let wanted = self.seconds_of(&blocks);
        let costs = self.costs();
        let most = most_launches(&blocks);
        let count = match self.assignment.effort.launches {
            _ if !self.assignment.launcher.is_fresh() => 1,
            Some(count) => count.min(costs.fit(share)).max(1),
            None => launches(share.min((1.0 + START_SHARE) * wanted), costs, None).min(most),
        };
        let begun = Instant::now();
        let mut timetable = Timetable {
            begun,
            end: begun + Duration::from_secs_f64(share),
            taken: vec![0.0; blocks.len()],
            is_bound: false,
            blocks: Vec::new(),
            launches: count,
            most,
            done: 0,
            looks: interim_looks(count),
        };
        self.scale(&mut timetable, blocks);
        timetable
    }

    /// Blocks that every cell should get, time permitting. A calibration that was disturbed takes calls for longer than
    /// they are; the launches since then know better, as far as all cells of the group together tell.
    fn wanted_blocks(&self) -> Vec<f64> {
        let of_cell = |position| {
            let samples = self.calibrations(position).map(|row| row.sample_time());
            let correction = self.correction().min(1.0);
            samples.max().map_or(0.0, |slowest| {
                f64::from(self.assignment.effort.blocks(slowest.mul_f64(correction)))
            })
        };
        (0..self.roster.cells.len()).map(of_cell).collect()
    }

    /// Plans as many of the wanted blocks as there is time for.
    fn scale(&self, timetable: &mut Timetable, wanted: Vec<f64>) {
        let costs = self.costs();
        let starts = f64::from(timetable.launches) * (costs.start + costs.warm_up);
        let available = (timetable.end - timetable.begun).as_secs_f64() - starts;
        let scale = (available / self.seconds_of(&wanted)).clamp(0.0, 1.0);
        timetable.is_bound = scale < 1.0;
        timetable.blocks = wanted.into_iter().map(|blocks| blocks * scale).collect();
    }

    /// Seconds of so many blocks of every cell.
    fn seconds_of(&self, blocks: &[f64]) -> f64 {
        blocks.iter().enumerate().map(|(p, blocks)| blocks * self.block_seconds(p)).sum()
    }

    /// Blocks of every cell in the next launch: its own, and for open cells what others left.
    pub(super) fn next_blocks(&self, timetable: &Timetable) -> Vec<f64> {
        let positions = 0..self.roster.cells.len();
        let with = |outlook| positions.clone().filter(move |p| self.outlooks[*p] == outlook);
        let left: f64 =
            with(Outlook::Decided).map(|p| timetable.owed(p) * self.block_seconds(p)).sum();
        let pass: f64 = with(Outlook::Open).map(|p| self.block_seconds(p)).sum();
        let gain = if pass > 0.0 { left.max(0.0) / pass } else { 0.0 };
        let blocks = |position: usize| {
            let gain = if self.outlooks[position] == Outlook::Open { gain } else { 0.0 };
            ((timetable.owed(position) + gain) / timetable.launches_left()).max(1.0)
        };
        positions.clone().map(blocks).collect()
    }

    /// Decides once more how many blocks and launches there are, now that times and variances are known.
    pub(super) fn plan_anew(&self, timetable: &mut Timetable) {
        let wanted = self.wanted_blocks();
        timetable.most = most_launches(&wanted);
        // As if there were time for all of them: how many launches they are worth does not depend on what fits.
        timetable.blocks.clone_from(&wanted);
        if self.assignment.effort.launches.is_none() {
            self.choose_launches(timetable);
        }
        self.scale(timetable, wanted);
    }

    fn choose_launches(&self, timetable: &mut Timetable) {
        let open: Vec<usize> = self.open_cells().collect();
        let measurement = &self.measured.measurement;
        let found = self.assignment.judge.spreads(measurement, &self.standing(&open));
        let mut spreads: Vec<Spread> = found.into_iter().flatten().collect();
        order::sort_by(&mut spreads, |a, b| {
            (a.launches / a.blocks).total_cmp(&(b.launches / b.blocks))
        });
        let passed = timetable.begun.elapsed().as_secs_f64();
        let planned = passed + timetable.launches_left() * self.launch_seconds(timetable);
        let seconds = planned.min((timetable.end - timetable.begun).as_secs_f64());
        let middle = spreads.get(spreads.len() / 2).copied();
        let best = launches(seconds, self.costs(), middle).min(timetable.most);
        timetable.launches = best.max(timetable.done + 1);
        timetable.looks = interim_looks(timetable.launches);
    }

    /// Seconds that a launch usually takes besides measuring: the median, for one that is slow says little of the next.
    pub(super) fn start_seconds(&self) -> f64 {
        middle(&self.starts).unwrap_or(0.0)
    }

    /// How much longer blocks take than calibration predicts, usually.
    pub(super) fn correction(&self) -> f64 {
        middle(&self.paces).unwrap_or(1.0)
    }

    /// Seconds of one block of a cell.
    pub(super) fn block_seconds(&self, position: usize) -> f64 {
        let rows = self.calibrations(position);
        let samples: f64 =
            rows.map(|row| 2.0 * (row.sample_cost().as_secs_f64() + SENTINEL_SECONDS)).sum();
        samples * self.correction()
    }

    /// Seconds of one block of every open cell.
    fn pass_seconds(&self) -> f64 {
        self.open_cells().map(|position| self.block_seconds(position)).sum()
    }

    /// Seconds of the next launch, as planned.
    pub(super) fn launch_seconds(&self, timetable: &Timetable) -> f64 {
        let blocks = self.next_blocks(timetable);
        let seconds = |p: usize| (blocks[p] + WARM_UP_BLOCKS) * self.block_seconds(p);
        self.start_seconds() + self.open_cells().map(seconds).sum::<f64>()
    }

    pub(super) fn costs(&self) -> Costs {
        let pass = self.pass_seconds();
        let positions = 0..self.roster.cells.len();
        let processes = positions.map(|position| self.processes(position)).max().unwrap_or(1);
        Costs {
            start: self.start_seconds() * processes as f64,
            warm_up: WARM_UP_BLOCKS * pass,
            pass,
        }
    }

    /// Processes of one launch that visit a cell: isolated rows have one each.
    pub(super) fn processes(&self, position: usize) -> usize {
        match self.assignment.isolation {
            Isolation::Shared => 1,
            Isolation::Isolated => self.live_cell(position).rows.len().max(1),
        }
    }
}

/// The median, or the upper one of two.
fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_is_spent_aside_changes_nothing_but_the_hour() {
        let begun = Instant::now();
        let mut timetable = Timetable {
            begun,
            end: begun + Duration::from_secs(10),
            blocks: Vec::new(),
            is_bound: false,
            taken: Vec::new(),
            launches: 5,
            most: 5,
            done: 0,
            looks: Vec::new(),
        };
        timetable.postpone(Duration::from_secs(100));
        assert_eq!((timetable.slot(), timetable.end - begun), (2.0, Duration::from_secs(110)));
    }
}
