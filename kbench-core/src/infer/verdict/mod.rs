//! Verdicts: what a comparison allows one to say.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::discovery::{benjamini_hochberg, discovery_level};
use super::holm::holm_levels;
use super::test::student_quantile;
use super::{Comparison, Scope, holm};

/// By which rules verdicts are given.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// What the error rate is a rate of.
    pub error_rate: ErrorRate,
    /// The error rate.
    pub significance: f64,
    /// Differences below this share are none that matter: also a certain one is called equivalent then. Where there is
    /// none, a certain difference is named however small.
    pub margin: Option<f64>,
    /// A gate's limits of changes against a baseline, as shares: samples are taken until a change is on one side of each.
    pub limits: [Option<f64>; 2],
}

/// What the error rate of a report is a rate of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorRate {
    /// The expected share of false ones among the differences that are named (Benjamini-Hochberg).
    #[default]
    Discovery,
    /// The chance that any difference is false (Holm).
    Family,
}

/// Below this share a difference does not pay for a second implementation: take the simpler.
pub const NEGLIGIBLE: f64 = 0.05;

/// The margin of a report about a few comparisons, and of changes against a baseline.
pub const NARROW_MARGIN: f64 = 0.01;

/// The margin of a suite.
const SUITE_MARGIN: f64 = 0.02;

/// A report with as many comparisons is that of a suite.
const SUITE: usize = 10;

impl Default for Rules {
    fn default() -> Self {
        let (error_rate, margin) = (ErrorRate::default(), None);
        Rules { error_rate, significance: 0.05, margin, limits: [None; 2] }
    }
}

impl Rules {
    /// The rules of a report with as many comparisons in its family: from ten on there is a margin.
    pub fn among(self, comparisons: usize) -> Self {
        let usual = (comparisons >= SUITE).then_some(SUITE_MARGIN);
        Rules { margin: self.margin.or(usual), ..self }
    }

    /// The rules of changes against a baseline. They may fail a gate, so the chance of any false one is what counts; and
    /// limits of a gate may be narrower than the margin, so a certain change is named however small.
    pub fn of_changes(self) -> Self {
        Rules { error_rate: ErrorRate::Family, margin: None, ..self }
    }

    /// Differences below this share count as equivalent.
    pub fn margin(self) -> f64 {
        self.margin.unwrap_or(NARROW_MARGIN)
    }
}

/// What can be said of a row against its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It takes less time.
    Faster,
    /// It takes more time.
    Slower,
    /// It takes the same time, within the margin.
    Equivalent,
    /// It takes the same time within 5 %, which is more than the margin.
    Near,
    /// None of these can be said.
    Inconclusive,
}

/// A judgement with its reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What is said.
    pub judgement: Judgement,
    /// Placement was not sampled: another launch may say otherwise.
    pub provisional: bool,
}

impl Judgement {
    /// All of them.
    pub const ALL: [Judgement; 5] = [
        Judgement::Faster,
        Judgement::Slower,
        Judgement::Equivalent,
        Judgement::Near,
        Judgement::Inconclusive,
    ];

    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Judgement::Faster => "faster",
            Judgement::Slower => "slower",
            Judgement::Equivalent => "equivalent",
            Judgement::Near => "equal within 5 %",
            Judgement::Inconclusive => "inconclusive",
        }
    }

    /// The judgement of a verdict in words, whatever reservation it has; none of other words.
    pub fn of(verdict: &str) -> Option<Self> {
        Judgement::ALL.into_iter().find(|judgement| {
            verdict.strip_suffix(judgement.word()).is_some_and(|r| r.is_empty() || r.ends_with(' '))
        })
    }

    /// Whether a difference is named.
    pub fn is_different(self) -> bool {
        matches!(self, Judgement::Faster | Judgement::Slower)
    }

    /// What is said where no difference is named, by the largest that there can be, as a logarithm.
    pub(crate) fn without_difference(furthest: f64, margin: f64) -> Self {
        match furthest {
            furthest if furthest <= margin.ln_1p() => Judgement::Equivalent,
            furthest if furthest <= NEGLIGIBLE.ln_1p() => Judgement::Near,
            _ => Judgement::Inconclusive,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.provisional {
            f.write_str("provisional ")?;
        }
        f.write_str(self.judgement.word())
    }
}

/// A comparison judged together with all others of its report.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// What is said.
    pub verdict: Verdict,
    /// What it follows from; none of a single launch among comparisons of several.
    pub grounds: Option<Grounds>,
}

/// The figures that a verdict follows from.
#[derive(Clone, Copy, Debug)]
pub struct Grounds {
    /// p, adjusted for the number of comparisons: below the error rate exactly when a difference is named.
    pub p_adjusted: f64,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Lower end of the interval of the speed-up. It excludes 1 exactly when the difference is shown.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The largest difference that there can be, as a share.
    pub at_most: f64,
    /// The smallest difference, as a share, that a run like this would find with a power of 80 % among as many.
    pub detectable: f64,
}

/// Judges all comparisons of a report together. Those of several launches are the family; where there are any, one of a
/// single launch has no verdict among them.
pub fn judge(comparisons: &[Comparison], rules: Rules) -> Vec<Judged> {
    let is_member = membership(comparisons);
    let members: Vec<Comparison> = comparisons.iter().copied().filter(is_member).collect();
    let mut judged = judge_family(&members, rules).into_iter();
    let without = Judged {
        verdict: Verdict { judgement: Judgement::Inconclusive, provisional: true },
        grounds: None,
    };
    let of = |comparison| is_member(comparison).then(|| judged.next()).flatten().unwrap_or(without);
    comparisons.iter().map(of).collect()
}

/// How many of some comparisons are judged together.
pub fn family_size(comparisons: &[Comparison]) -> usize {
    let is_member = membership(comparisons);
    comparisons.iter().filter(|comparison| is_member(comparison)).count()
}

/// Which of some comparisons are judged together: those of several launches, or all where there are none.
fn membership(comparisons: &[Comparison]) -> impl Fn(&Comparison) -> bool + Copy + use<> {
    let has_launches = comparisons.iter().any(|c| c.scope == Scope::Launches);
    move |comparison| comparison.scope == Scope::Launches || !has_launches
}

fn judge_family(members: &[Comparison], rules: Rules) -> Vec<Judged> {
    // Dividing by the share of its look makes each p one that holds whenever the cell was stopped. What is not named
    // whatever its p is does not count as found, or the rate would not be that of the differences that are named.
    let p = |comparison: &Comparison| match is_named(comparison, rules) {
        true => (comparison.test.p / comparison.share).min(1.0),
        false => 1.0,
    };
    let p: Vec<f64> = members.iter().map(p).collect();
    let (adjusted, levels) = match rules.error_rate {
        ErrorRate::Discovery => {
            let level = discovery_level(&p, p.len(), rules.significance);
            (benjamini_hochberg(&p), vec![level; p.len()])
        }
        ErrorRate::Family => (holm(&p), holm_levels(&p, rules.significance)),
    };
    let figures = adjusted.into_iter().zip(levels);
    let members = members.iter().zip(figures);
    members.map(|(member, figures)| judge_one(member, figures, rules)).collect()
}

/// Whether a difference would be named if it was certain.
fn is_named(comparison: &Comparison, rules: Rules) -> bool {
    let is_there = comparison.test.difference.abs() > comparison.floor;
    is_there && !(rules.margin.is_some() && is_equivalent(comparison, rules))
}

fn judge_one(comparison: &Comparison, (p_adjusted, level): (f64, f64), rules: Rules) -> Judged {
    let Comparison { test, share, floor, .. } = *comparison;
    // The interval decides, so that it never contradicts the verdict; it is no narrower than what the clock may have caused.
    let confidence = 1.0 - level * share;
    let half = no_narrower(test.half_width(confidence), floor);
    let is_shown = test.difference.abs() > half && is_named(comparison, rules);
    let furthest = furthest(comparison, rules);
    let judgement = match is_shown {
        true if test.difference > 0.0 => Judgement::Faster,
        true => Judgement::Slower,
        false => Judgement::without_difference(furthest, rules.margin()),
    };
    let grounds = Grounds {
        p_adjusted,
        confidence,
        low: (test.difference - half).exp(),
        high: (test.difference + half).exp(),
        at_most: furthest.exp_m1(),
        detectable: test.detectable(level * share).max(floor).exp_m1(),
    };
    let provisional = comparison.scope == Scope::Segments;
    Judged { verdict: Verdict { judgement, provisional }, grounds: Some(grounds) }
}

/// The largest difference that there can be, as a logarithm: the further end of the interval of twice the error rate.
fn furthest(comparison: &Comparison, rules: Rules) -> f64 {
    let Comparison { test, share, floor, .. } = comparison;
    let half = student_quantile(1.0 - rules.significance * share, test.df) * test.error;
    test.difference.abs() + no_narrower(half, *floor)
}

/// Half of an interval, no narrower than what the clock may have caused; of an error that is not known, without end.
fn no_narrower(half: f64, floor: f64) -> f64 {
    if half.is_nan() { f64::INFINITY } else { half.max(floor) }
}

/// Two one-sided tests (Schuirmann 1987): the interval of twice the error rate must lie within the margin.
pub(super) fn is_equivalent(comparison: &Comparison, rules: Rules) -> bool {
    furthest(comparison, rules) <= rules.margin().ln_1p()
}

#[cfg(test)]
mod tests;
