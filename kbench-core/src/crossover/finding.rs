//! What a search found, as plain figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::contest::Contest;
use super::evidence::{Bracket, Evidence, Origin, Winner};
use super::place::{Place, place};
use super::threshold::ThresholdFinding;
use crate::infer::Scope;
use crate::kernel::{Backend, Mode, Threshold, Tuned, VariantEntry};
use crate::plan::work_of;

fn yes() -> bool {
    true
}

/// A variant against the one that it would replace, along one way through the sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Crossover {
    /// `module::path::kernel`.
    pub kernel: String,
    /// Element type.
    #[serde(rename = "type")]
    pub element: String,
    /// The variant.
    pub variant: String,
    /// What it is compared with.
    pub base: String,
    /// Threads that the variant may use.
    pub threads: usize,
    /// How its calls are timed.
    pub mode: Mode,
    /// Whether the variant's calls are made on a device. A document without it has cold calls on devices alone.
    #[serde(default = "yes")]
    pub is_on_device: bool,
    /// Axes that grow along the way.
    pub along: Vec<String>,
    /// Values of the others.
    pub held: BTreeMap<String, usize>,
    /// The smallest size with figures.
    pub from: Place,
    /// The largest.
    pub to: Place,
    /// How it came out.
    pub outcome: Outcome,
    /// Every change of the winner, in the order of sizes.
    pub crossings: Vec<Crossing>,
    /// The claim of the variant's author.
    pub threshold: Option<ThresholdFinding>,
    /// The value to write as its threshold, when the variant wins from somewhere on.
    pub suggestion: Option<Suggestion>,
    /// A size at which one of both failed, which ended the search.
    pub failed_at: Option<String>,
    /// What was measured, size by size.
    pub evidence: Vec<EvidenceReport>,
    /// Whether placement was not sampled: another launch may say otherwise.
    pub provisional: bool,
    /// The variant's function, for whoever feeds the answer back into its code.
    #[serde(skip)]
    pub source: Source,
}

/// The annotated function of a variant; nobody's in a crossover that was read from a file.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Its crate.
    pub krate: String,
    /// Its name.
    pub function: &'static str,
    /// The hash of its code.
    pub code: &'static str,
    /// What it claims.
    pub claim: Claim,
}

/// The form of a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// There is none.
    #[default]
    None,
    /// A number.
    Number(u64),
    /// A number that is taken from the tuning file.
    Tuned(Tuned),
    /// A condition on the axes, which no number can replace.
    Condition,
}

impl Claim {
    /// The number that is claimed.
    pub fn number(self) -> Option<u64> {
        match self {
            Claim::Number(work) => Some(work),
            Claim::Tuned(tuned) => Some(tuned.work),
            Claim::None | Claim::Condition => None,
        }
    }
}

impl Source {
    fn of(variant: &VariantEntry) -> Self {
        let krate = variant.module.split("::").next().unwrap_or_default().to_owned();
        let claim = match variant.threshold {
            None => Claim::None,
            Some(Threshold::Work(work)) => Claim::Number(work),
            Some(Threshold::Tuned(tuned)) => Claim::Tuned(tuned),
            Some(Threshold::When(_)) => Claim::Condition,
        };
        Source { krate, function: variant.function, code: variant.code, claim }
    }
}

/// How a search came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The winner changes.
    Crosses,
    /// The variant wins at every size.
    AlwaysFaster,
    /// The base wins at every size.
    AlwaysSlower,
    /// The variant wins at some sizes, and no winner is shown at the others.
    SometimesFaster,
    /// The base wins at some sizes, and no winner is shown at the others.
    SometimesSlower,
    /// No winner is shown anywhere.
    Undecided,
}

/// A bracket in which the winner changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Crossing {
    /// The last size at which the former winner is shown to win.
    pub below: Place,
    /// The first size at which the other is.
    pub above: Place,
    /// Who wins from there on.
    pub winner: Winner,
    /// Where the times are equal, by interpolation within the bracket: a guess.
    pub estimate: Place,
    /// How far the two sizes are apart.
    pub octaves: f64,
    /// Why it is not narrower.
    pub limit: Limit,
}

/// Why a bracket is not narrower than it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// It is as narrow as was asked for.
    Tolerance,
    /// No size between can be measured.
    Neighbours,
    /// No winner is shown at the sizes between.
    Undecided,
    /// There was no time, or there were enough rounds.
    Time,
}

/// A threshold to write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The value, as round as the bracket allows.
    pub value: u64,
    /// Above this work the variant may win: up to here the base is shown to.
    pub low: u64,
    /// From this work on the variant is shown to win.
    pub high: u64,
}

/// What was measured at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvidenceReport {
    /// The size.
    #[serde(flatten)]
    pub place: Place,
    /// Why it was measured.
    pub origin: Origin,
    /// Time of the base over that of the variant.
    #[serde(deserialize_with = "crate::infer::upper_end")]
    pub speedup: f64,
    /// Lower end of its 95 % interval.
    pub speedup_low: f64,
    /// Upper end.
    #[serde(deserialize_with = "crate::infer::upper_end")]
    pub speedup_high: f64,
    /// Probability of such a difference between equals.
    pub p: f64,
    /// Who wins, where that is shown.
    pub winner: Option<Winner>,
}

impl Contest {
    /// Everything that is known of it; none without any evidence.
    pub(super) fn finding(&self, tolerance: f64) -> Option<Crossover> {
        let (first, last) = (self.evidence.first()?, self.evidence.last()?);
        let place = |known: &Evidence| place(self.kernel, &known.size, known.work);
        let moving = self.curve.moving();
        let crossings: Vec<Crossing> =
            self.brackets().into_iter().map(|b| self.crossing(b, tolerance)).collect();
        Some(Crossover {
            kernel: self.kernel.path(),
            element: self.kernel.element.to_owned(),
            variant: self.variant.variant.name.to_owned(),
            base: self.opponent.variant.name.to_owned(),
            threads: match self.variant.variant.backend {
                Backend::Parallel => {
                    self.variant.threads.unwrap_or_else(rayon::current_num_threads)
                }
                Backend::Serial | Backend::Cuda => 1,
            },
            mode: self.variant.mode,
            is_on_device: self.variant.variant.implementation.is_device(),
            along: moving.iter().map(|axis| self.kernel.axes[*axis].to_owned()).collect(),
            held: first.size.values_of(self.kernel.axes, &|axis| !moving.contains(&axis)),
            from: place(first),
            to: place(last),
            outcome: outcome(&self.winners()),
            suggestion: suggestion(&crossings).filter(|_| self.broken.is_none()),
            crossings,
            threshold: self.judge_threshold().filter(|_| self.broken.is_none()),
            failed_at: self.broken.as_ref().map(|size| size.name(self.kernel.axes)),
            evidence: self.evidence_reports(),
            source: Source::of(self.variant.variant),
            provisional: self.evidence.iter().any(|e| e.comparison.scope == Scope::Segments),
        })
    }

    fn evidence_reports(&self) -> Vec<EvidenceReport> {
        let report = |(known, winner): (&Evidence, Option<Winner>)| EvidenceReport {
            place: place(self.kernel, &known.size, known.work),
            origin: known.origin,
            speedup: known.comparison.speedup,
            speedup_low: known.comparison.low,
            speedup_high: known.comparison.high,
            p: known.comparison.test.p,
            winner,
        };
        self.evidence.iter().zip(self.winners()).map(report).collect()
    }

    fn crossing(&self, bracket: Bracket, tolerance: f64) -> Crossing {
        let known = &self.evidence[bracket.below..=bracket.above];
        let (below, above) = (&known[0], &known[known.len() - 1]);
        let octaves = above.position - below.position;
        let estimate = zero(known);
        let estimate = self.curve.near(estimate).size;
        let work = work_of(self.kernel, &estimate).unwrap_or(f64::NAN);
        let gaps = self.gaps_of(bracket, tolerance);
        let limit = match known.len() > 2 {
            _ if self.has_more(&gaps) => Limit::Time,
            true => Limit::Undecided,
            false if gaps.is_empty() => Limit::Tolerance,
            false => Limit::Neighbours,
        };
        Crossing {
            below: place(self.kernel, &below.size, below.work),
            above: place(self.kernel, &above.size, above.work),
            winner: if above.comparison.test.difference > 0.0 {
                Winner::Variant
            } else {
                Winner::Base
            },
            estimate: place(self.kernel, &estimate, work),
            octaves,
            limit,
        }
    }
}

/// How a search with these winners, size by size, came out.
pub(crate) fn outcome(winners: &[Option<Winner>]) -> Outcome {
    let all = |who: Winner| winners.iter().all(|winner| *winner == Some(who));
    let any = |who: Winner| winners.contains(&Some(who));
    match (any(Winner::Variant), any(Winner::Base)) {
        (true, true) => Outcome::Crosses,
        (true, false) if all(Winner::Variant) => Outcome::AlwaysFaster,
        (true, false) => Outcome::SometimesFaster,
        (false, true) if all(Winner::Base) => Outcome::AlwaysSlower,
        (false, true) => Outcome::SometimesSlower,
        (false, false) => Outcome::Undecided,
    }
}

/// Where a line through the log-ratios is zero, by weighted least squares, within the bracket.
fn zero(known: &[Evidence]) -> f64 {
    let (first, last) = (known[0].position, known[known.len() - 1].position);
    // What is known best is not what is nearest to a straight line: no size counts for much more than the others.
    let weight = |e: &Evidence| 1.0 / (e.comparison.test.error.powi(2) + 0.03_f64.powi(2));
    let sum = |value: &dyn Fn(&Evidence) -> f64| -> f64 {
        known.iter().map(|e| weight(e) * value(e)).sum::<f64>()
    };
    let total = sum(&|_| 1.0);
    let (x, y) = (sum(&|e| e.position) / total, sum(&|e| e.comparison.test.difference) / total);
    let spread = sum(&|e| (e.position - x).powi(2));
    let slope = sum(&|e| (e.position - x) * (e.comparison.test.difference - y)) / spread;
    let zero = x - y / slope;
    if zero.is_finite() { zero.clamp(first, last) } else { (first + last) / 2.0 }
}

/// The value to write: that of the last change after which the variant wins.
fn suggestion(crossings: &[Crossing]) -> Option<Suggestion> {
    let Crossing { below, above, winner, estimate, .. } = crossings.last()?;
    // Work may be any number; a threshold is a whole one between the two.
    let (low, high) = (whole(below.work)?, whole(above.work)?);
    if *winner != Winner::Variant || low >= high {
        return None;
    }
    let estimate = if estimate.work.is_finite() { estimate.work } else { high as f64 };
    let value = rounded(estimate.clamp(low as f64 + 1.0, high as f64), low, high);
    Some(Suggestion { value, low, high })
}

/// An amount of work as a whole number, if it is one that fits.
pub(crate) fn whole(work: f64) -> Option<u64> {
    (0.0..9e15).contains(&work).then_some(work as u64)
}

/// A power of two this close to where the times are equal, in octaves, is as good.
const NEAR_POWER: f64 = 0.125;

/// A value above `low` and up to `high`: a power of two if one is near, else with as few digits as will do.
fn rounded(value: f64, low: u64, high: u64) -> u64 {
    let is_inside = |value: &u64| low < *value && *value <= high;
    let power = value.log2().round();
    if (power - value.log2()).abs() <= NEAR_POWER && is_inside(&(power.exp2() as u64)) {
        return power.exp2() as u64;
    }
    let digits = value.log10().floor() as i32;
    (1..=digits)
        .rev()
        .map(|zeros| {
            let unit = 10_f64.powi(zeros);
            ((value / unit).round() * unit) as u64
        })
        .find(is_inside)
        .unwrap_or((value.round() as u64).clamp(low + 1, high))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A crossing between two amounts of work.
    pub(crate) fn crossing(below: u64, above: u64, winner: Winner) -> Crossing {
        let place = |work: u64| Place { size: format!("n={work}"), work: work as f64 };
        let estimate = place(above);
        let limit = Limit::Tolerance;
        Crossing { below: place(below), above: place(above), winner, estimate, octaves: 0.1, limit }
    }

    /// A search along `n` from 10 to 1000 that came out in some way.
    pub(crate) fn found(outcome: Outcome, crossings: Vec<Crossing>) -> Crossover {
        let place = |work: u64| Place { size: format!("n={work}"), work: work as f64 };
        Crossover {
            kernel: "demo::saxpy".into(),
            element: "f32".into(),
            variant: "rayon".into(),
            base: "saxpy".into(),
            threads: 2,
            mode: Mode::Warm,
            is_on_device: false,
            along: vec!["n".into()],
            held: BTreeMap::new(),
            from: place(10),
            to: place(1000),
            outcome,
            suggestion: suggestion(&crossings),
            crossings,
            threshold: None,
            failed_at: None,
            evidence: Vec::new(),
            provisional: false,
            source: Source {
                krate: "demo".into(),
                function: "saxpy_rayon",
                code: "0",
                claim: Claim::Number(64),
            },
        }
    }

    #[test]
    fn a_value_to_write_is_as_round_as_its_bracket_allows() {
        assert_eq!(rounded(62_000.0, 50_000, 70_000), 65_536);
        assert_eq!(rounded(55_000.0, 50_000, 70_000), 60_000, "2^16 is too far away");
        assert_eq!(rounded(45_300.0, 44_000, 47_000), 45_000);
        assert_eq!(rounded(45_300.0, 45_200, 45_400), 45_300);
        assert_eq!(rounded(3.7, 2, 4), 4);
        assert_eq!(rounded(5.0, 4, 5), 5);
    }

    #[test]
    fn work_that_is_no_whole_number_gives_no_value_to_write_and_no_panic() {
        let crossing = |below: f64, above: f64| {
            let place = |work| Place { size: String::new(), work };
            let (below, above, estimate) = (place(below), place(above), place(f64::NAN));
            let limit = Limit::Tolerance;
            Crossing { below, above, winner: Winner::Variant, estimate, octaves: 0.1, limit }
        };
        for (below, above) in [(0.001, 0.002), (f64::NAN, 5.0), (3.0, f64::INFINITY), (7.0, 7.0)] {
            assert_eq!(suggestion(&[crossing(below, above)]), None, "{below} {above}");
        }
        let found = suggestion(&[crossing(100.5, 200.0)]);
        assert_eq!(found, Some(Suggestion { value: 200, low: 100, high: 200 }));
    }

    #[test]
    fn an_outcome_says_no_more_than_is_shown() {
        use Winner::{Base, Variant};
        assert_eq!(outcome(&[Some(Base), None, Some(Variant)]), Outcome::Crosses);
        assert_eq!(outcome(&[Some(Variant), Some(Variant)]), Outcome::AlwaysFaster);
        assert_eq!(outcome(&[None, Some(Variant)]), Outcome::SometimesFaster);
        assert_eq!(outcome(&[Some(Base), None]), Outcome::SometimesSlower);
        assert_eq!(outcome(&[None]), Outcome::Undecided);
    }
}
