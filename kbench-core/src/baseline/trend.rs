//! Rows over the stored runs of one machine.
//!
//! What a machine is like on a day is taken out as far as its sentinels feel it: the figure of a run is the time against
//! the sentinel's, brought back to nanoseconds by what is usual over all runs. Levels are looked for in its logarithms.

use super::{Machine, differences, values};
use crate::infer::{LevelRules, levels};
use crate::order;
use crate::report::{Report, RowKey, RowReport, Trend, TrendPoint};

/// A row in one run, with the logarithm of its anchored time.
struct Point {
    anchored: f64,
    shown: TrendPoint,
}

/// Rows over runs, oldest first; runs of other machines than `here` do not count.
#[derive(Default)]
pub struct Trends {
    points: Vec<(RowKey, Point)>,
    /// Runs that count.
    pub runs: usize,
    /// Runs of other machines.
    pub foreign: usize,
}

impl Trends {
    /// Takes in the rows that are wanted of the next run, if it is of the machine.
    pub fn add(
        &mut self,
        run: &Report,
        here: &Machine<'_>,
        is_wanted: impl Fn(&RowReport) -> bool,
    ) {
        if !differences(&Machine::of(run), here).is_empty() {
            self.foreign += 1;
            return;
        }
        self.runs += 1;
        let anchored = values(run);
        for row in run.rows.iter().filter(|row| is_wanted(row)) {
            let key = row.key();
            let time = row.time_ns.filter(is_time);
            if let (Some(anchored), Some(time_ns)) = (anchored.get(&key), time) {
                let point = Point { anchored: *anchored, shown: point(run, row, time_ns) };
                self.points.push((key, point));
            }
        }
    }

    /// The trends of all rows, in the order of their names.
    pub fn all(&self) -> Vec<Trend> {
        let mut points: Vec<&(RowKey, Point)> = self.points.iter().collect();
        order::sort_by(&mut points, |a, b| a.0.cmp(&b.0));
        let trends = points.chunk_by(|a, b| a.0 == b.0).map(trend);
        // Against a sentinel that is nonsense, a time may be, too.
        trends.filter(|trend| trend.points.iter().all(|point| is_time(&point.time_ns))).collect()
    }
}

/// Whether a figure can be the time of a call: a stored run may hold any.
fn is_time(nanoseconds: &f64) -> bool {
    nanoseconds.is_normal() && *nanoseconds > 0.0
}

fn point(run: &Report, row: &RowReport, time_ns: f64) -> TrendPoint {
    TrendPoint {
        run: run.run.clone(),
        started: run.started,
        git_commit: run.environment.git_commit.clone(),
        time_ns,
        low_ns: row.time_low_ns,
        high_ns: row.time_high_ns,
    }
}

/// The trend of a row, from its points.
fn trend(row: &[&(RowKey, Point)]) -> Trend {
    let key = &row[0].0;
    let points = || row.iter().map(|(_, point)| point);
    let anchored: Vec<f64> = points().map(|point| point.anchored).collect();
    // The logarithm of the usual sentinel, as far as all runs tell.
    let usual = points().map(|point| point.shown.time_ns.ln() - point.anchored).sum::<f64>()
        / row.len() as f64;
    let shown = |point: &Point| {
        let factor = (point.anchored + usual).exp() / point.shown.time_ns;
        TrendPoint {
            time_ns: point.shown.time_ns * factor,
            low_ns: point.shown.low_ns.map(|low| low * factor),
            high_ns: point.shown.high_ns.map(|high| high * factor),
            ..point.shown.clone()
        }
    };
    Trend {
        name: key.name.clone(),
        threads: key.threads,
        mode: key.mode.clone(),
        points: points().map(shown).collect(),
        changes: levels(&anchored, LevelRules::default()),
    }
}
