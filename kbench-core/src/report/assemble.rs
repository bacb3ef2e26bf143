//! From findings to rows.

use super::changes::add_changes;
use super::device::{add_ceiling, add_device};
use super::key;
use super::row::Doubt;
use super::targets::judge_targets;
use super::{
    ChangeReport, CheckReport, ComparisonReport, CrossoverContext, DeviceRow, RawSamples,
    RowReport, ScalingContext, Status, units,
};
use crate::check::{CheckedRow, Circumstance, Mutations, Standing, Wrong};
use crate::crossover::Origin;
use crate::cuda::Ceilings;
use crate::infer::{
    Comparison, Contention, Estimate, Judged, Judgement, Modes, Noise, Noises, Observations, Rival,
    Rules, Side, class, compare_among, family_size, judge, standings, trend,
};
use crate::kernel::guard;
use crate::measure::{Measured, Pass, RowMeasured};
use crate::plan::Cell;
use crate::suite::DEFAULT_SEED;
use crate::visible::in_lines;
use crate::worker::Sample;

const TOO_FEW: &str = "too few samples for a comparison; raise --budget or select less";
const NO_FIGURES: &str = "not compared: its base has no figures";
const NO_BASE: &str = "not compared: its base is not selected";
const NO_TIME: &str = "takes no time: an empty loop is as long, so the compiler has removed the work, or there is none";
const LOADED: &str = "the machine was busy nearly all the time: times are those of a busy machine";
const UNSTABLE_TIME: &str =
    "the time is unstable: its standard deviation between launches, or parts of one, is over 20 %";
const UNSTABLE_RATIO: &str = "unstable: the speed-up's standard deviation between launches, or parts of one, is over 20 %; do not rely on it";
const DISAGREEMENT: &str =
    "its speed-up is not the ratio of its own time and the base's: launches differ, or blocks do";

/// A row that is compared with its base.
pub(super) struct Compared {
    /// Its position in the report.
    pub(super) row: usize,
    pub(super) comparison: Comparison,
    /// The base's own time over its own, at least and at most.
    ratio_of_times: (f64, f64),
}

/// Brings together what plan, check and measurement found, and judges all comparisons together.
pub fn assemble(
    pass: &Pass,
    noises: &Noises,
    rules: Rules,
    (origin, ceilings): (Origin, Option<&Ceilings>),
) -> Vec<RowReport> {
    let Pass { plan, checked, measured } = pass;
    let mut rows = Vec::new();
    let mut compared: Vec<Compared> = Vec::new();
    for (index, cell) in plan.cells.iter().enumerate() {
        let known = measured.rows.get(index);
        let sight = known.map(|rows| Sight::of(measured, cell, index, rows));
        for (row, raw) in raw(measured, index, cell.rows.len()).into_iter().enumerate() {
            let known = known.map(|rows| &rows[row]);
            let finding = Finding { cell, row, checked: &checked[index][row], known };
            let mut report = finding.report();
            report.raw = raw;
            report.origin = origin;
            if let Some(known) = known.filter(|_| cell.rows[row].variant.implementation.is_device())
            {
                add_device(&mut report, cell.rows[row].mode, known, measured, (index, row));
            }
            if let Some(sight) = &sight
                && let Some(own) = sight.estimates[row]
            {
                finding.add_figures(&mut report, &sight.observed, &own, measured.empty_turn);
                let against = sight.against_base(row, noises.of_row(&cell.rows[row]));
                let time = against.as_ref().ok().and_then(|against| against.time);
                finding.add_rates(&mut report, &time.map_or(own, |time| own.at(time)), ceilings);
                match against {
                    Ok(Against { comparison, ratio_of_times, .. }) => {
                        compared.push(Compared { row: rows.len(), comparison, ratio_of_times });
                    }
                    Err(reason) => report.remarks.extend(reason.map(str::to_owned)),
                }
            }
            rows.push(report);
        }
    }
    let found: Vec<Comparison> = compared.iter().map(|known| known.comparison).collect();
    let rules = rules.among(family_size(&found));
    let judged = judge(&found, rules);
    for (known, judged) in compared.iter().zip(&judged) {
        add_verdict(&mut rows[known.row], known, judged);
        let speedup = known.comparison.speedup;
        rows[known.row].class = plan.has_yardstick.then(|| class(speedup).to_owned());
    }
    let judgements = compared.iter().zip(&judged);
    let judgements: Vec<(usize, Judgement)> =
        judgements.map(|(known, judged)| (known.row, judged.verdict.judgement)).collect();
    rank(pass, rules, &mut rows, &judgements);
    if !measured.rows.is_empty() {
        add_changes(pass, rules, &mut rows);
    }
    // Targets are about the sizes that their author listed.
    if origin == Origin::Listed && !measured.rows.is_empty() {
        judge_targets(pass, &mut rows, &compared);
    }
    rows
}

/// What was observed of one cell.
struct Sight<'a> {
    measured: &'a Measured,
    cell: &'a Cell,
    index: usize,
    observed: Observations,
    /// The times of its rows, each by itself; none of rows that failed.
    estimates: Vec<Option<Estimate>>,
}

/// A row against its base.
struct Against {
    comparison: Comparison,
    /// The base's own time over the row's own, at least and at most.
    ratio_of_times: (f64, f64),
    /// The time that follows from the base's and the speed-up; none where the rows were not measured beside each other.
    time: Option<f64>,
}

impl<'a> Sight<'a> {
    fn of(measured: &'a Measured, cell: &'a Cell, index: usize, known: &[RowMeasured]) -> Self {
        let observed = Observations::of(&measured.measurement, index);
        let estimate = |row: usize| {
            Estimate::of(&observed.times(row)).filter(|_| known[row].failure.is_none())
        };
        let estimates = (0..cell.rows.len()).map(estimate).collect();
        Sight { measured, cell, index, observed, estimates }
    }

    /// A row against its base, or why it is not compared, if there is something to say.
    fn against_base(
        &self,
        row: usize,
        noise: Option<&Noise>,
    ) -> Result<Against, Option<&'static str>> {
        let Sight { measured, cell, index, observed, estimates } = self;
        let base = cell.base_of(row).ok_or(Some(NO_BASE))?;
        if base == row || measured.rows[*index][base].failure.is_some() {
            return Err(None);
        }
        let (own, of_base) = estimates[row].zip(estimates[base]).ok_or(Some(NO_FIGURES))?;
        let look = measured.look(*index, row);
        let comparison = compare_among(observed, (base, row), look, noise);
        let comparison = comparison.ok_or(Some(TOO_FEW))?;
        let floor = measured.clock_share(*index, [base, row]);
        let is_beside = observed.are_beside(base, row);
        Ok(Against {
            comparison: Comparison { floor, ..comparison },
            ratio_of_times: ratio_of_times(&of_base, &own),
            time: is_beside.then_some(of_base.time / comparison.speedup),
        })
    }
}

/// The ratio of two times, at least and at most: as far as their own launches tell, which may be one.
fn ratio_of_times(base: &Estimate, own: &Estimate) -> (f64, f64) {
    let half = |of: &Estimate| Some((of.high / of.time).ln()).filter(|half| half.is_finite());
    let half = half(base).unwrap_or(0.0).hypot(half(own).unwrap_or(0.0));
    let ratio = base.time / own.time;
    (ratio * (-half).exp(), ratio * half.exp())
}

/// How many comparisons of some rows were judged together.
pub fn family_of(rows: &[RowReport]) -> usize {
    let verdicts = || rows.iter().filter_map(|row| row.comparison.verdict.as_deref());
    let is_of_launches = |verdict: &&str| !verdict.starts_with("provisional ");
    match verdicts().filter(is_of_launches).count() {
        0 => verdicts().count(),
        count => count,
    }
}

/// Notes on a row what it is to its base.
fn add_verdict(row: &mut RowReport, known: &Compared, judged: &Judged) {
    let Compared { comparison, ratio_of_times, .. } = known;
    row.comparison = comparison_report(comparison, judged);
    if comparison.is_unstable() {
        row.unstable = true;
        row.remarks.push(UNSTABLE_RATIO.into());
    }
    let (least, most) = *ratio_of_times;
    let is_outside = judged.grounds.is_some_and(|g| most < g.low || g.high < least);
    if is_outside && row.doubt.is_none() {
        row.doubt = Some(Doubt::Disagreement);
        row.remarks.push(DISAGREEMENT.into());
    }
}

/// Notes on every row that its variant is first judged by where it stands in its cell; `judgements` are by positions in the
/// report, in rising order.
fn rank(pass: &Pass, rules: Rules, rows: &mut [RowReport], judgements: &[(usize, Judgement)]) {
    let Pass { plan, measured, .. } = pass;
    let mut cells: Vec<(usize, Contention)> = Vec::new();
    let mut first = 0;
    for (index, cell) in plan.cells.iter().enumerate().take(measured.rows.len()) {
        let rival = |row: usize| {
            let position = judgements.binary_search_by_key(&(first + row), |(row, _)| *row);
            let side = match position {
                Ok(position) => Side::Judged(judgements[position].1),
                Err(_) if cell.is_base(row) => Side::Base,
                Err(_) => Side::Unjudged,
            };
            // What may be wrong is no best variant.
            let report = rows.get(first + row).filter(|row| row.status == Status::Ok)?;
            let clock = measured.clock_share(index, [row, row]);
            Some(Rival { row, time: report.time_ns?, side, clock })
        };
        let primary = (0..cell.rows.len()).filter(|row| cell.is_primary(*row));
        let rivals: Vec<Rival> = primary.filter_map(rival).collect();
        if !rivals.is_empty() {
            let observed = Observations::of(&measured.measurement, index);
            let contention = Contention::of(&observed, &|row| measured.look(index, row), rivals);
            cells.extend(contention.map(|contention| (first, contention)));
        }
        first += cell.rows.len();
    }
    let (firsts, cells): (Vec<usize>, Vec<Contention>) = cells.into_iter().unzip();
    for ((first, cell), standings) in firsts.into_iter().zip(&cells).zip(standings(&cells, rules)) {
        for (rival, standing) in cell.rivals().iter().zip(standings) {
            rows[first + rival.row].best_share = Some(standing.share);
            rows[first + rival.row].rank = Some(standing.rank);
        }
    }
}

/// What the stages found about one row.
struct Finding<'a> {
    cell: &'a Cell,
    row: usize,
    checked: &'a CheckedRow,
    known: Option<&'a RowMeasured>,
}

impl Finding<'_> {
    /// The row without figures of time.
    fn report(&self) -> RowReport {
        let Finding { cell, known, .. } = self;
        let row = &cell.rows[self.row];
        let (kernel, variant) = (cell.kernel, row.variant);
        let check = self.checked.check.as_ref();
        RowReport {
            name: cell.row_name(row),
            kernel: kernel.path(),
            variant: variant.name.to_owned(),
            is_base: cell.is_base(self.row),
            backend: variant.backend.name().to_owned(),
            element: kernel.element.to_owned(),
            size: cell.size.name(kernel.axes),
            label: cell.size.label.map(str::to_owned),
            axes: cell.size.values_of(kernel.axes, &|_| true),
            work: cell.work().ok().filter(|work| work.is_finite()),
            threads: key::threads(row),
            mode: row.mode.name().to_owned(),
            status: self.status(),
            time_ns: None,
            time_low_ns: None,
            time_high_ns: None,
            comparison: ComparisonReport::default(),
            change: ChangeReport::default(),
            bytes_per_s: None,
            flops_per_s: None,
            items_per_s: None,
            ceiling_share: None,
            check: self.check(),
            threshold: variant.threshold.map(|threshold| threshold.to_string()),
            expectations: Vec::new(),
            best_share: None,
            rank: None,
            class: None,
            origin: Origin::Listed,
            crossover: CrossoverContext::default(),
            scaling: ScalingContext::default(),
            unstable: false,
            doubt: None,
            remarks: check
                .iter()
                .flat_map(|check| check.remarks.iter().map(ToString::to_string))
                .chain(known.and_then(|known| known.remark.clone()))
                .chain(variant.threshold.and_then(|threshold| threshold.doubt()))
                .map(|remark| in_lines(&remark).into_owned())
                .collect(),
            calls: known.and_then(|known| Some(known.calibration?.calls.total())),
            overhead_share: known.and_then(|known| Some(known.calibration?.overhead_share())),
            launches: 0,
            blocks: 0,
            contaminated: 0,
            memory: known.and_then(|known| known.allocations).into(),
            counters: known.and_then(|known| known.counters).unwrap_or_default(),
            device: DeviceRow::default(),
            machine: None,
            raw: RawSamples::default(),
        }
    }

    /// Whether it has figures. A reason may quote a panic's text, which is anything.
    fn status(&self) -> Status {
        let shown = |reason: &str| in_lines(reason).into_owned();
        match (&self.checked.standing, self.known) {
            (Standing::Skipped(reason), _) => Status::Skipped(shown(reason)),
            (Standing::Wrong(wrong), _) => {
                Status::Failed(shown(&format!("{wrong}{}", self.repetition(wrong))))
            }
            (Standing::Admitted, Some(RowMeasured { failure: Some(failure), .. })) => {
                let size = self.cell.size.name(self.cell.kernel.axes);
                Status::Failed(shown(&format!("{failure} (at {size})")))
            }
            (
                Standing::Admitted,
                Some(
                    RowMeasured { declined: Some(reason), .. }
                    | RowMeasured { skipped: Some(reason), .. },
                ),
            ) => Status::Skipped(shown(reason)),
            (Standing::Admitted, _) => {
                let unchecked = self.checked.check.as_ref().and_then(|c| c.unchecked.as_deref());
                unchecked.map_or(Status::Ok, |reason| Status::Unchecked(shown(reason)))
            }
        }
    }

    /// The command that repeats a failure on data of a regime.
    fn repetition(&self, wrong: &Wrong) -> String {
        let Circumstance::Regime(regime) = wrong.circumstance else { return String::new() };
        let (kernel, variant) = (self.cell.kernel.path(), self.cell.rows[self.row].variant.name);
        let seed = match wrong.seed {
            DEFAULT_SEED => String::new(),
            seed => format!(" --seed {seed}"),
        };
        format!(
            "; again by `--test --kernel {kernel} --variant {variant} --regimes {}{seed}`; data that never occurs is left out \
             with `regimes = ...`",
            regime.name()
        )
    }

    fn check(&self) -> CheckReport {
        let check = self.checked.check.as_ref();
        let errors = check.and_then(|check| check.errors.as_ref());
        let worst = errors.and_then(|errors| errors.worst.as_ref());
        CheckReport {
            error: errors.map(|errors| errors.norm),
            error_max: errors.map(|errors| errors.maximum),
            worst: worst.map(|worst| format!("{}[{}]", worst.output, worst.index)),
            tolerance: errors.map(|errors| errors.tolerance),
            reference: self.cell.kernel.reference.map(str::to_owned),
            checked: check.map(|check| check.coverage.to_string()).filter(|text| !text.is_empty()),
            mutation_score: check.and_then(|check| check.mutations.as_ref()).map(Mutations::score),
        }
    }

    /// Everything that follows from the samples of this row alone.
    fn add_figures(
        &self,
        report: &mut RowReport,
        observed: &Observations,
        estimate: &Estimate,
        empty_turn: f64,
    ) {
        report.launches = report.raw.samples.iter().filter(|blocks| !blocks.is_empty()).count();
        report.blocks = observed.blocks;
        report.contaminated = observed.contaminated;
        if estimate.is_optimised_away(empty_turn) {
            report.remarks.push(NO_TIME.into());
        }
        if estimate.is_unstable() {
            report.remarks.push(UNSTABLE_TIME.into());
        }
        if let Some(modes) = Modes::of(&observed.samples(self.row)) {
            report.doubt = Some(Doubt::Bimodal);
            report.remarks.push(bimodal(modes));
        }
        // Against the sentinel: a machine that gets slower for everybody is no trend of this row.
        if let Some(moved) = trend(&observed.anchored(self.row)) {
            report.unstable = true;
            report.remarks.push(format!(
                "unstable: moved by {:+.1} % over the launches, which is hardly chance",
                100.0 * moved
            ));
        }
        if observed.is_loaded {
            report.remarks.push(LOADED.into());
        }
    }

    /// The time, and what it means per second.
    fn add_rates(&self, report: &mut RowReport, estimate: &Estimate, ceilings: Option<&Ceilings>) {
        report.time_ns = Some(estimate.time);
        report.time_low_ns = estimate.low.is_finite().then_some(estimate.low);
        report.time_high_ns = estimate.high.is_finite().then_some(estimate.high);
        let (definition, size) = (self.cell.kernel.definition, &self.cell.size.values);
        let variant = self.cell.rows[self.row].variant;
        let own = |figure: Option<fn(&[usize]) -> f64>| {
            figure.and_then(|figure| guard(|| figure(size)).ok())
        };
        // Who says that there is none of something has no rate of it.
        let some = |amount: &f64| *amount > 0.0;
        let flops = own(variant.flops).or_else(|| guard(|| definition.flops(size)).ok().flatten());
        let flops = flops.filter(some);
        let bytes = own(variant.bytes)
            .or_else(|| guard(|| definition.bytes(size)).ok().flatten())
            .or_else(|| self.default_bytes());
        let bytes = bytes.filter(some);
        let per_second = |amount: f64| amount * 1e9 / estimate.time;
        report.flops_per_s = flops.map(per_second);
        report.bytes_per_s = bytes.map(per_second);
        report.items_per_s = report.work.map(per_second);
        if let Some(ceilings) = ceilings.filter(|_| variant.implementation.is_device()) {
            let mode = self.cell.rows[self.row].mode;
            add_ceiling(report, mode, ceilings, (bytes, flops));
        }
    }

    /// Every operand once, and the return value.
    fn default_bytes(&self) -> Option<f64> {
        let known = self.known?;
        Some(known.bytes? + known.calibration?.returned_bytes as f64)
    }
}

/// That the samples of a row fall into two groups.
fn bimodal(Modes { slower_share, factor, mean }: Modes) -> String {
    format!(
        "bimodal: {} of its samples take {} times as long as the others; their mean is {}",
        units::percent(slower_share),
        units::ratio(factor),
        units::time(mean)
    )
}

fn comparison_report(comparison: &Comparison, judged: &Judged) -> ComparisonReport {
    let Comparison { test, welch, .. } = comparison;
    let grounds = judged.grounds;
    ComparisonReport {
        speedup: Some(comparison.speedup),
        speedup_low: grounds.map(|grounds| grounds.low),
        speedup_high: grounds.map(|grounds| grounds.high),
        speedup_confidence: grounds.map(|grounds| grounds.confidence),
        p: Some(test.p),
        p_adjusted: grounds.map(|grounds| grounds.p_adjusted),
        verdict: Some(judged.verdict.to_string()),
        at_most: grounds.map(|grounds| grounds.at_most),
        t: Some(test.t),
        df: Some(test.df),
        welch_t: welch.map(|welch| welch.t),
        welch_df: welch.map(|welch| welch.df),
        welch_p: welch.map(|welch| welch.p),
        hedges_g: comparison.hedges_g,
        detectable: grounds.map(|grounds| grounds.detectable),
    }
}

/// The samples of every row of a cell and the sentinels beside them: launch by launch, block by block. Launches that did not
/// visit the cell are left out: a run of many cells has many launches, and each visits a few of them.
fn raw(measured: &Measured, cell: usize, rows: usize) -> Vec<RawSamples> {
    let mut found: Vec<Vec<Vec<Vec<&Sample>>>> = vec![Vec::new(); rows];
    let launches = measured.measurement.launches.iter();
    let visits = launches.filter_map(|launch| launch.cells.get(cell));
    for blocks in visits.filter(|blocks| !blocks.is_empty()) {
        found.iter_mut().for_each(|launches| launches.push(Vec::new()));
        for block in blocks {
            let mut by_row: Vec<Vec<&Sample>> = vec![Vec::new(); rows];
            // Beyond the last row are those of an older program.
            for sample in block.samples.iter().filter(|sample| sample.row < rows) {
                by_row[sample.row].push(sample);
            }
            for (launches, samples) in found.iter_mut().zip(by_row) {
                if let Some(launch) = launches.last_mut().filter(|_| !samples.is_empty()) {
                    launch.push(samples);
                }
            }
        }
    }
    found.iter().map(|launches| raw_of(launches)).collect()
}

/// The figures of a row's samples.
fn raw_of(launches: &[Vec<Vec<&Sample>>]) -> RawSamples {
    let of = |figure: fn(&Sample) -> Option<f64>| -> Vec<Vec<Vec<f64>>> {
        let of_block = |block: &Vec<&Sample>| -> Vec<f64> {
            let mut figures: Vec<f64> = block.iter().filter_map(|sample| figure(sample)).collect();
            figures.shrink_to_fit();
            figures
        };
        let of_launch = |blocks: &Vec<Vec<&Sample>>| -> Vec<Vec<f64>> {
            blocks.iter().map(of_block).filter(|block| !block.is_empty()).collect()
        };
        let figures: Vec<Vec<Vec<f64>>> = launches.iter().map(of_launch).collect();
        if figures.iter().all(Vec::is_empty) { Vec::new() } else { figures }
    };
    RawSamples {
        samples: of(|sample| Some(seven_digits(sample.nanoseconds))),
        chains: of(|sample| Some(seven_digits(sample.chain))),
        sweeps: of(|sample| sample.sweep.map(seven_digits)),
        clocks: of(|sample| Some(sample.device?.clock_mhz?.round())),
        temperatures: of(|sample| Some(f64::from(sample.device?.temperature?))),
        powers: of(|sample| Some(sample.device?.power?.round())),
        throttles: of(|sample| Some(sample.device?.throttling?.bits() as f64)),
    }
}

/// More digits than a clock has, and half as much to store.
fn seven_digits(value: f64) -> f64 {
    let scale = 10_f64.powf(6.0 - value.log10().floor());
    // No clock has ticks so short or so long that a power of ten cannot tell them.
    match scale.is_normal() && value > 0.0 {
        true => (value * scale).round() / scale,
        false => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Coverage, check_plan};
    use crate::fixtures::{base, right, variant_of_double};
    use crate::kernel::VariantEntry;
    use crate::measure::{Assignment, Effort, Isolation, measure_plan};
    use crate::plan::{Plan, Selection};
    use crate::registry::Registry;
    use crate::worker::{DeviceRequest, SameProcess, USUAL_TIMEOUT, WorkerChecks};

    /// All rows of a short run with as many samples of each.
    fn rows(entries: &[&'static VariantEntry], samples: u32) -> Vec<RowReport> {
        let registry = Registry::of(entries.iter().copied()).expect("fine");
        let plan = Plan::new(&registry, &Selection::default(), &[], &[]).expect("a plan");
        let device = DeviceRequest::default();
        let launcher = SameProcess(&registry);
        let timeout = USUAL_TIMEOUT;
        let mut checks =
            WorkerChecks { launcher: &launcher, device: device.clone(), timeout, regimes: None };
        let checked = check_plan(&plan, Coverage::EverySize, 1, &Ok(()), &mut checks, &mut ());
        let effort = Effort { samples: Some(samples), ..Effort::quick() };
        let assignment = Assignment {
            past: &[],
            plan: &plan,
            checked: &checked,
            effort: &effort,
            time: effort.budget.time(),
            reserve: std::time::Duration::ZERO,
            seed: 1,
            order_seed: 1,
            isolation: Isolation::Shared,
            inspect: false,
            inspect_device: true,
            device: &device,
            timeout,
            launcher: &launcher,
            judge: &Rules::default(),
        };
        let measured = measure_plan(&assignment, &mut (), &mut |_| {});
        let pass = Pass { plan, checked, measured };
        assemble(&pass, &Noises::default(), Rules::default(), (Origin::Listed, None))
    }

    #[test]
    fn who_moves_nothing_has_no_throughput() {
        let still: &VariantEntry = Box::leak(Box::new(VariantEntry {
            bytes: Some(|_| 0.0),
            flops: Some(|_| 0.0),
            ..*variant_of_double("still", 2, right)
        }));
        for row in rows(&[base(), still], 2) {
            assert!(row.time_ns.is_some() && row.flops_per_s.is_none(), "{}", row.name);
            assert_eq!(row.bytes_per_s.is_some(), row.variant == "double", "{}", row.name);
        }
    }

    #[test]
    fn times_beside_each_other_have_the_ratio_of_their_speedup() {
        let rows = rows(&[base(), variant_of_double("twin", 2, right)], 40);
        for cell in rows.chunk_by(|a, b| a.size == b.size) {
            let [base, twin] = cell else { panic!("two rows") };
            let (then, now) = (base.time_ns.expect("a time"), twin.time_ns.expect("a time"));
            let speedup = twin.comparison.speedup.expect("a speed-up");
            assert!((then / now / speedup - 1.0).abs() < 1e-12, "{then} {now} {speedup}");
            let share = base.best_share.expect("a share").min(twin.best_share.expect("a share"));
            assert!(share == 1.0 || (share - speedup.min(1.0 / speedup)).abs() < 1e-9, "{share}");
        }
    }

    #[test]
    fn a_ratio_of_times_outside_of_the_interval_is_told() {
        use crate::infer::{Scope, Test};
        let test = Test { difference: 0.1, error: 0.01, t: 10.0, df: 9.0, p: 3.6e-6 };
        let comparison = Comparison {
            speedup: test.difference.exp(),
            low: 1.08,
            high: 1.13,
            test,
            welch: None,
            hedges_g: None,
            spread: 0.0,
            scope: Scope::Launches,
            share: 1.0,
            floor: 0.0,
        };
        let judged = judge(&[comparison], Rules::default())[0];
        for (ratio_of_times, doubt) in [
            ((1.10, 1.10), None),
            ((1.02, 1.09), None),
            ((1.05, 1.05), Some(Doubt::Disagreement)),
            ((1.16, 1.2), Some(Doubt::Disagreement)),
        ] {
            let mut row = super::super::row::tests::row("one", 1);
            add_verdict(&mut row, &Compared { row: 0, comparison, ratio_of_times }, &judged);
            assert_eq!((row.doubt, row.remarks.len()), (doubt, usize::from(doubt.is_some())));
            assert_eq!(row.comparison.verdict.as_deref(), Some("faster"));
            assert!(row.comparison.speedup_low > Some(1.0), "{:?}", row.comparison);
        }
    }

    #[test]
    fn raw_samples_keep_seven_digits() {
        assert_eq!(seven_digits(123_456.789_123), 123_456.8);
        assert_eq!(seven_digits(0.001_234_567_891), 0.001_234_568);
        assert_eq!(seven_digits(0.0), 0.0);
    }
}
