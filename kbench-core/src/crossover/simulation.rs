//! Whole searches on simulated machines whose crossovers are known, with fixed seeds.

use super::*;
use crate::fixtures::{right, variant_of_double};
use crate::infer::Rules;
use crate::kernel::{Backend, Threshold, VariantEntry};
use crate::measure::{Judge, Launch, Look, Measured, Measurement, Pass, RowMeasured};
use crate::plan::{AxisOverride, Cell, Plan, Selection};
use crate::registry::Registry;
use crate::value::SplitMix;
use crate::worker::{Block, Sample};

const LAUNCHES: usize = 12;
const BLOCKS: usize = 8;

/// The sizes that the kernel lists: the crossovers below are all between 1024 and 65 536.
const LISTED: [usize; 4] = [64, 1024, 65_536, 1 << 20];

/// A machine on which base and variant take times that are known.
struct Machine {
    draw: SplitMix,
    base: fn(f64) -> f64,
    variant: fn(f64) -> f64,
    /// A serial variant between them.
    rival: Option<fn(f64) -> f64>,
    /// Standard deviation of the log-ratio between launches.
    noise: f64,
    rounds: u32,
}

impl Machine {
    /// Roughly normal: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.draw.unit()).sum::<f64>() - 6.0
    }

    fn measure(&mut self, plan: Plan) -> Pass {
        let launches = (0..LAUNCHES)
            .map(|_| Launch { cells: plan.cells.iter().map(|cell| self.blocks(cell)).collect() });
        let measurement = Measurement { launches: launches.collect() };
        let rows = plan.cells.iter().map(|c| vec![RowMeasured::default(); c.rows.len()]);
        let measured = Measured {
            measurement,
            rows: rows.collect(),
            looks: plan.cells.iter().map(|c| vec![Some(Look::ONLY); c.rows.len()]).collect(),
            ..Measured::default()
        };
        Pass { plan, checked: Vec::new(), measured }
    }

    fn blocks(&mut self, cell: &Cell) -> Vec<Block> {
        let n = cell.size.values[0] as f64;
        let placed = (self.noise * self.normal()).exp();
        let rival = self.rival.map(|rival| rival(n));
        let times: Vec<f64> = [Some((self.base)(n)), rival, Some((self.variant)(n) * placed)]
            .into_iter()
            .flatten()
            .collect();
        let order: Vec<usize> = (0..times.len()).chain((0..times.len()).rev()).collect();
        let mut block = || {
            let mut sample = |row: usize| {
                let nanoseconds = times[row] * (0.01 * self.normal()).exp();
                Sample { row, nanoseconds, chain: 5.0, sweep: None, crew: None, device: None }
            };
            Block {
                samples: order.iter().map(|row| sample(*row)).collect(),
                requeued: false,
                throttled: false,
            }
        };
        (0..BLOCKS).map(|_| block()).collect()
    }
}

impl Prober for Machine {
    fn room(&self) -> usize {
        usize::MAX
    }

    fn probe(&mut self, cells: Vec<Cell>, _: u32, _: &dyn Judge) -> Option<Pass> {
        self.rounds += 1;
        Some(self.measure(Plan { cells, ..Plan::default() }))
    }

    fn go_on(&mut self, _: &mut Pass, _: &dyn Judge) {}
}

fn plan(threshold: Option<Threshold>) -> Plan {
    let base = variant_of_double("double", 1, right);
    let entry = variant_of_double("twin", 2, right);
    let twin: &'static VariantEntry =
        Box::leak(Box::new(VariantEntry { threshold, ..clone_of(entry) }));
    let registry = Registry::of([base, twin]).expect("fine");
    let sizes = AxisOverride { axis: "n".into(), values: LISTED.to_vec() };
    let selection = Selection { axes: vec![sizes], ..Selection::default() };
    Plan::new(&registry, &selection, &[], &[]).expect("a plan")
}

fn clone_of(entry: &'static VariantEntry) -> VariantEntry {
    VariantEntry {
        kernel: entry.kernel,
        implementation: crate::kernel::Implementation::Host(right),
        ..*entry
    }
}

struct Model {
    base: fn(f64) -> f64,
    variant: fn(f64) -> f64,
}

/// b·n against a + b·n / 2: equal at n = 8000.
const AFFINE: Model = Model { base: |n| n, variant: |n| 4000.0 + n / 2.0 };

/// The base has a step at 5000, where its data leaves a cache: up to there it wins, and from there on it loses.
const STEP: Model =
    Model { base: |n| if n < 5000.0 { n } else { 1.3 * n }, variant: |n| 1000.0 + 0.9 * n };

fn searched(seed: u64, model: &Model, noise: f64, threshold: Option<Threshold>) -> Crossover {
    let Model { base, variant } = *model;
    let draw = SplitMix(seed);
    let mut machine = Machine { draw, base, variant, rival: None, noise, rounds: 0 };
    let mut first = machine.measure(plan(threshold));
    let found = search(&mut first, Search { tolerance: 0.1 }, Rules::default(), &mut machine);
    assert!(machine.rounds <= super::evidence::MOST_ROUNDS + 1);
    found.crossovers.into_iter().next().expect("one variant")
}

/// Searches whose only bracket holds the truth, of a hundred, and the median width in octaves.
fn hits(model: &Model, noise: f64, truth: f64) -> (usize, f64) {
    let mut hits = 0;
    let mut widths = Vec::new();
    for seed in 0..100 {
        let found = searched(seed, model, noise, None);
        if let [crossing] = found.crossings.as_slice() {
            let is_inside = crossing.below.work <= truth && truth <= crossing.above.work;
            hits += usize::from(is_inside && crossing.winner == Winner::Variant);
            widths.push(crossing.octaves);
        }
    }
    widths.sort_by(f64::total_cmp);
    (hits, widths[widths.len() / 2])
}

#[test]
fn the_bracket_holds_the_crossover_of_two_cost_models_and_is_narrow() {
    for (noise, narrow) in [(0.002, 0.15), (0.01, 0.25), (0.03, 0.6)] {
        let (hits, width) = hits(&AFFINE, noise, 8000.0);
        assert!(hits >= 95, "{noise}: {hits} of 100");
        assert!(width <= narrow, "{noise}: {width} octaves");
    }
}

#[test]
fn a_step_of_a_cache_is_a_crossover_as_good_as_any() {
    for noise in [0.002, 0.03] {
        let (hits, width) = hits(&STEP, noise, 5000.0);
        assert!(hits >= 95 && width <= 0.15, "{noise}: {hits} of 100, {width} octaves");
    }
}

#[test]
fn every_change_of_the_winner_is_found() {
    // The variant wins from 1000 to 50 000 only.
    let model =
        Model { base: |n| n, variant: |n| if n < 50_000.0 { 500.0 + n / 2.0 } else { 1.5 * n } };
    let found = searched(1, &model, 0.002, None);
    let winners: Vec<Winner> = found.crossings.iter().map(|crossing| crossing.winner).collect();
    assert_eq!(winners, [Winner::Variant, Winner::Base], "{found:#?}");
    assert_eq!(found.suggestion, None, "there is no size from which on it wins");
    let places: Vec<(f64, f64)> =
        found.crossings.iter().map(|c| (c.below.work, c.above.work)).collect();
    assert!(places[0].0 <= 1000.0 && 1000.0 <= places[0].1, "{places:?}");
    assert!(places[1].0 <= 50_000.0 && 50_000.0 <= places[1].1, "{places:?}");
}

#[test]
fn no_crossover_is_said_as_such() {
    let outcome = |base, variant| searched(1, &Model { base, variant }, 0.01, None).outcome;
    assert_eq!(outcome(|n| n, |n| 0.5 * n), Outcome::AlwaysFaster);
    assert_eq!(outcome(|n| n, |n| 1.5 * n), Outcome::AlwaysSlower);
    assert_eq!(outcome(|n| n, |n| n), Outcome::Undecided);
}

#[test]
fn a_threshold_is_judged_by_what_it_costs() {
    let judged = |threshold| {
        let found = searched(3, &AFFINE, 0.005, Some(Threshold::Work(threshold)));
        let judged = found.threshold.expect("a claim");
        let suggestion = found.suggestion.expect("a value to write");
        assert_eq!(suggestion.value, 8192, "the power of two next to 8000");
        (judged.verdict, judged.costs.first().map(|cost| cost.place.work), judged)
    };
    let (right, cost, places) = judged(8192);
    assert_eq!((right, cost), (ThresholdVerdict::Right, None), "{places:#?}");
    let works = [places.below, places.at, places.above].map(|p| p.map(|p| p.place.work));
    assert!(works[0].is_some_and(|work| work < 8192.0) && works[1] == Some(8192.0), "{works:?}");
    assert!(works[2].is_some_and(|work| (9000.0..20_000.0).contains(&work)), "{works:?}");
    let (too_low, cost, _) = judged(2048);
    // At 2048 the variant takes 4000 + 1024 instead of 2048.
    assert_eq!((too_low, cost), (ThresholdVerdict::TooLow, Some(2048.0)));
    let (too_high, cost, _) = judged(32_768);
    assert_eq!((too_high, cost), (ThresholdVerdict::TooHigh, Some(16_384.0)));
}

#[test]
fn a_threshold_beyond_all_sizes_is_not_called_right() {
    let model = Model { base: |n| n, variant: |n| 1.5 * n };
    let found = searched(5, &model, 0.005, Some(Threshold::Work(1 << 30)));
    assert_eq!(found.threshold.map(|t| t.verdict), Some(ThresholdVerdict::Undecided));
}

#[test]
fn a_threshold_that_noise_hides_is_not_judged() {
    let found = searched(5, &AFFINE, 0.2, Some(Threshold::Work(8192)));
    assert_eq!(found.threshold.map(|t| t.verdict), Some(ThresholdVerdict::Undecided));
}

/// A parallel variant that beats the base from 5333 on, and a serial one that is twice as fast as the base from 16 000 on.
#[test]
fn a_parallel_variant_is_compared_with_the_fastest_serial_one() {
    let entries = [variant_of_double("double", 1, right), variant_of_double("vector", 2, right)];
    let parallel: &'static VariantEntry = Box::leak(Box::new(VariantEntry {
        backend: Backend::Parallel,
        threshold: Some(Threshold::Work(5000)),
        ..clone_of(variant_of_double("rayon", 3, right))
    }));
    let registry = Registry::of([entries[0], entries[1], parallel]).expect("fine");
    let sizes = AxisOverride { axis: "n".into(), values: LISTED.to_vec() };
    let selection = Selection { axes: vec![sizes], ..Selection::default() };
    let plan = Plan::new(&registry, &selection, &[], &[]).expect("a plan");
    let mut machine = Machine {
        draw: SplitMix(1),
        base: |n| n,
        rival: Some(|n| n / 2.0),
        variant: |n| 4000.0 + n / 4.0,
        noise: 0.003,
        rounds: 0,
    };
    let mut first = machine.measure(plan);
    let found = search(&mut first, Search { tolerance: 0.1 }, Rules::default(), &mut machine);
    let of = |variant: &str| found.crossovers.iter().find(|found| found.variant == variant);
    let rayon = of("rayon").expect("two variants");
    assert_eq!(rayon.base, "vector");
    let crossing = &rayon.crossings[0];
    assert!(crossing.below.work < 16_000.0 && 16_000.0 < crossing.above.work, "{crossing:?}");
    let threshold = rayon.threshold.as_ref().expect("a claim");
    assert_eq!(threshold.verdict, ThresholdVerdict::TooLow, "against the base it would be right");
    assert_eq!(of("vector").map(|found| found.base.as_str()), Some("double"));
}
