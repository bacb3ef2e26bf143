//! The whole of inference on simulated runs, with fixed seeds: looks, weights, gate and verdict together.

use super::{Judgement, Observations, Rules, compare, judge};
use crate::fixtures::{right, variant_of_double};
use crate::measure::{Family, Judge, Launch, Look, Measurement, OpenCell, Outlook};
use crate::plan::{Cell, Plan, Selection};
use crate::registry::Registry;
use crate::value::SplitMix;
use crate::worker::{Block, Sample};

const LAUNCHES: usize = 15;
const LOOKS: [usize; 3] = [6, 9, 12];
const BLOCKS: usize = 8;
const RUNS: usize = 400;

/// How much a busy machine slows the chain: blocks like that do not count.
const SEEN: f64 = 0.25;

/// The same where blocks still count.
const UNSEEN: f64 = 0.15;

/// A machine with moods: it drifts, is busy now and then, and hits single samples.
struct Machine {
    draw: SplitMix,
    pace: f64,
    busy: bool,
    load: f64,
}

impl Machine {
    fn new(seed: u64, load: f64) -> Self {
        Machine { draw: SplitMix(seed), pace: 0.0, busy: false, load }
    }

    /// Roughly normal: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.draw.unit()).sum::<f64>() - 6.0
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.draw.unit() < probability
    }

    /// Nanoseconds of something that takes `time` on the quiet machine; a busy one is harder on `sensitive` work.
    fn takes(&mut self, time: f64, sensitive: f64) -> f64 {
        let noise = 0.003 * self.normal();
        let hit = if self.chance(0.05) { self.draw.unit() } else { 0.0 };
        let load = if self.busy { self.load * sensitive } else { 0.0 };
        time * (self.pace + load + noise + hit).exp()
    }

    fn block(&mut self, row_time: f64) -> Block {
        self.pace += 0.01 * self.normal();
        self.busy = if self.busy { !self.chance(0.3) } else { self.chance(0.06) };
        let order = if self.chance(0.5) { [0, 1, 1, 0] } else { [1, 0, 0, 1] };
        let mut sample = |row: usize| {
            // The second row suffers twice as much from load: a difference of the machine, not of the code.
            let (time, sensitive) = if row == 0 { (1000.0, 1.0) } else { (row_time, 2.0) };
            let nanoseconds = self.takes(time, sensitive);
            Sample {
                row,
                nanoseconds,
                chain: self.takes(50_000.0, 1.0),
                sweep: None,
                crew: None,
                device: None,
            }
        };
        Block { samples: order.map(&mut sample).to_vec(), requeued: false, throttled: false }
    }

    /// A launch; placement moves the ratio of the rows a little.
    fn launch(&mut self, row_time: f64) -> Launch {
        self.pace = 0.02 * self.normal();
        let placed = row_time * (0.001 * self.normal()).exp();
        Launch { cells: vec![(0..BLOCKS).map(|_| self.block(placed)).collect()] }
    }
}

/// A cell with a base and one more row.
fn cell() -> Cell {
    let entries = [variant_of_double("double", 1, right), variant_of_double("twin", 2, right)];
    let registry = Registry::of(entries).expect("fine");
    let mut plan = Plan::new(&registry, &Selection::default(), &[], &[]).expect("a plan");
    plan.cells.swap_remove(0)
}

/// A row that failed after a few launches can never be known well; nothing may wait for it, or for the base.
#[test]
fn rows_that_failed_do_not_keep_a_cell_open() {
    let cell = cell();
    let mut machine = Machine::new(7, SEEN);
    let launches = (0..9).map(|_| machine.launch(500.0)).collect();
    let mut measurement = Measurement { launches };
    // A third row, measured twice with results that differ, and gone.
    for (launch, factor) in measurement.launches.iter_mut().zip([1.0, 1.2]) {
        for block in &mut launch.cells[0] {
            let bases = block.samples.iter().filter(|sample| sample.row == 0);
            let slow = |s: &Sample| Sample { row: 2, nanoseconds: factor * s.nanoseconds, ..*s };
            let more: Vec<Sample> = bases.map(slow).collect();
            block.samples.extend(more);
        }
    }
    let look = Look { interim: 3, is_last: false };
    let outlook = |rows: Vec<usize>| {
        Rules::default().outlooks(
            &measurement,
            &[OpenCell { index: 0, cell: &cell, rows }],
            look,
            ALONE,
        )
    };
    let (decided, settled, open) = (Outlook::Decided, Outlook::Settled, Outlook::Open);
    assert_eq!(outlook(vec![0, 1, 2]), [[open, decided, decided]], "its former self is unclear");
    assert_eq!(outlook(vec![0, 1]), [[decided, decided]]);
    assert_eq!(outlook(vec![1, 2]), [[settled, settled]], "without a base nothing is compared");
}

/// A report with one comparison.
const ALONE: Family = Family { comparisons: 1, decided: 0 };

struct Outcome {
    judgement: Judgement,
    covered: bool,
    launches: usize,
}

/// One run with looks, stopped as soon as it is decided.
fn run(seed: u64, cell: &Cell, truth: f64, load: f64) -> Outcome {
    let rules = Rules::default();
    let mut machine = Machine::new(seed, load);
    let mut measurement = Measurement::default();
    let open = [OpenCell { index: 0, cell, rows: vec![0, 1] }];
    let mut look = Look { interim: LOOKS.len() as u32, is_last: true };
    while measurement.launches.len() < LAUNCHES {
        measurement.launches.push(machine.launch(1000.0 / truth));
        if LOOKS.contains(&measurement.launches.len()) {
            let interim = Look { is_last: false, ..look };
            let outlooks = rules.outlooks(&measurement, &open, interim, ALONE);
            if outlooks == [[Outlook::Decided; 2]] {
                look = interim;
                break;
            }
        }
    }
    let observations = Observations::of(&measurement, 0);
    let comparison = compare(&observations, 0, 1, look).expect("enough");
    Outcome {
        judgement: judge(&[comparison], rules)[0].verdict.judgement,
        covered: comparison.low <= truth && truth <= comparison.high,
        launches: measurement.launches.len(),
    }
}

fn runs(truth: f64, load: f64) -> Vec<Outcome> {
    let cell = cell();
    (0..RUNS as u64).map(|seed| run(seed, &cell, truth, load)).collect()
}

fn share(outcomes: &[Outcome], what: impl Fn(&Outcome) -> bool) -> f64 {
    outcomes.iter().filter(|outcome| what(outcome)).count() as f64 / outcomes.len() as f64
}

#[test]
fn equal_rows_are_called_different_in_at_most_one_run_of_twenty() {
    // A load that is not seen costs sensitivity (of 1 %, two thirds are found), and no false differences.
    for load in [SEEN, UNSEEN] {
        let outcomes = runs(1.0, load);
        let is_different =
            |o: &Outcome| matches!(o.judgement, Judgement::Faster | Judgement::Slower);
        let different = share(&outcomes, is_different);
        assert!(different <= 0.05, "{load}: {different}");
        let covered = share(&outcomes, |outcome| outcome.covered);
        assert!(covered >= 0.95, "{load}: {covered}");
    }
    let outcomes = runs(1.0, SEEN);
    let equivalent = share(&outcomes, |outcome| outcome.judgement == Judgement::Equivalent);
    assert!(equivalent > 0.9, "{equivalent}");
}

#[test]
fn one_percent_is_found_nearly_always_and_never_with_the_wrong_sign() {
    for truth in [1.01, 1.0 / 1.01] {
        let right = if truth > 1.0 { Judgement::Faster } else { Judgement::Slower };
        let outcomes = runs(truth, SEEN);
        let found = share(&outcomes, |outcome| outcome.judgement == right);
        assert!(found > 0.98, "{truth}: {found}");
        let covered = share(&outcomes, |outcome| outcome.covered);
        assert!(covered >= 0.95, "{truth}: {covered}");
    }
}

#[test]
fn large_differences_stop_early_and_their_intervals_still_cover() {
    let outcomes = runs(1.5, SEEN);
    assert_eq!(share(&outcomes, |outcome| outcome.judgement == Judgement::Faster), 1.0);
    assert!(share(&outcomes, |outcome| outcome.launches == LOOKS[0]) > 0.95);
    let covered = share(&outcomes, |outcome| outcome.covered);
    assert!(covered >= 0.95, "{covered}");
}
