//! Verdicts: what a comparison allows one to say.

use std::fmt;

use super::{Comparison, Scope, holm};

/// By which rules verdicts are given.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Chance of any false difference in a report.
    pub significance: f64,
    /// Differences below this share are none that matter.
    pub margin: f64,
    /// A gate's limits of changes against a baseline, as shares: samples are taken until a change is on one side of each.
    pub limits: [Option<f64>; 2],
}

/// Below this share a difference does not pay for a second implementation: take the simpler.
pub const NEGLIGIBLE: f64 = 0.05;

impl Default for Rules {
    fn default() -> Self {
        Rules { significance: 0.05, margin: 0.01, limits: [None; 2] }
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
    /// Neither can be said.
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
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Judgement::Faster => "faster",
            Judgement::Slower => "slower",
            Judgement::Equivalent => "equivalent",
            Judgement::Inconclusive => "inconclusive",
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
    /// p, adjusted for the number of comparisons.
    pub p_adjusted: f64,
    /// The smallest difference, as a share, that a run like this would find with a power of 80 % among as many.
    pub detectable: f64,
    /// What is said.
    pub verdict: Verdict,
}

/// Judges all comparisons of a report together.
pub fn judge(comparisons: &[Comparison], rules: Rules) -> Vec<Judged> {
    // Dividing by the share of its look makes each p one that holds whenever the cell was stopped.
    let p: Vec<f64> = comparisons.iter().map(|c| (c.test.p / c.share).min(1.0)).collect();
    let level = rules.significance / comparisons.len().max(1) as f64;
    comparisons
        .iter()
        .zip(holm(&p))
        .map(|(comparison, p_adjusted)| Judged {
            p_adjusted,
            detectable: comparison
                .test
                .detectable(level * comparison.share)
                .max(comparison.floor)
                .exp_m1(),
            verdict: Verdict {
                judgement: judge_one(comparison, p_adjusted, rules),
                provisional: comparison.scope == Scope::Segments,
            },
        })
        .collect()
}

fn judge_one(comparison: &Comparison, adjusted_p: f64, rules: Rules) -> Judgement {
    let is_there = comparison.test.difference.abs() > comparison.floor;
    if is_there && adjusted_p < rules.significance && comparison.low > 1.0 {
        return Judgement::Faster;
    }
    if is_there && adjusted_p < rules.significance && comparison.high < 1.0 {
        return Judgement::Slower;
    }
    if is_equivalent(comparison, rules) { Judgement::Equivalent } else { Judgement::Inconclusive }
}

/// Two one-sided tests (Schuirmann 1987): the interval of twice the error rate must lie within the margin.
pub(super) fn is_equivalent(comparison: &Comparison, rules: Rules) -> bool {
    let (low, high) = comparison.test.interval(1.0 - 2.0 * rules.significance * comparison.share);
    let margin = rules.margin.ln_1p();
    -margin < low && high < margin
}

#[cfg(test)]
mod tests {
    use super::super::test::Test;
    use super::*;

    /// A comparison of ten segments whose log-ratios have the given centre and spread.
    fn comparison(ratio: f64, spread: f64) -> Comparison {
        let steps = [-1.5, -0.5, 0.5, 1.5, -1.0, 1.0, 0.0, 0.2, -0.2, 0.0];
        let segment = |step: &f64| super::super::Repetition {
            value: ratio.ln() + step * spread,
            variance: None,
            count: 1,
        };
        let differences: Vec<_> = steps.iter().map(segment).collect();
        let test = Test::paired(&differences).expect("enough");
        let (low, high) = test.interval(0.95);
        Comparison {
            speedup: test.difference.exp(),
            low: low.exp(),
            high: high.exp(),
            test,
            welch: None,
            hedges_g: None,
            spread,
            scope: Scope::Segments,
            share: 1.0,
            floor: 0.0,
        }
    }

    fn word(ratio: f64, spread: f64) -> String {
        judge(&[comparison(ratio, spread)], Rules::default())[0].verdict.to_string()
    }

    #[test]
    fn the_four_words_mean_what_they_say() {
        assert_eq!(word(2.0, 0.01), "provisional faster");
        assert_eq!(word(0.7, 0.01), "provisional slower");
        assert_eq!(word(1.0, 0.002), "provisional equivalent");
        assert_eq!(word(1.01, 0.2), "provisional inconclusive");
        let launches = Comparison { scope: Scope::Launches, ..comparison(2.0, 0.01) };
        assert_eq!(judge(&[launches], Rules::default())[0].verdict.to_string(), "faster");
    }

    /// With nine degrees of freedom the 90 % interval is 1.833113 standard errors to either side, and the margin is
    /// ln 1.01 = 0.009950.
    #[test]
    fn equivalence_begins_where_the_interval_fits_into_the_margin() {
        let of = |difference: f64, error: f64| {
            let test = Test { difference, error, t: 0.0, df: 9.0, p: 0.5 };
            is_equivalent(&Comparison { test, ..comparison(1.0, 0.01) }, Rules::default())
        };
        assert!(of(0.0, 0.00542) && !of(0.0, 0.00544));
        assert!(of(0.005, 0.0026) && !of(0.005, 0.0028), "both ends count");
        assert!(of(-0.005, 0.0026) && !of(-0.005, 0.0028));
    }

    #[test]
    fn what_the_clock_may_have_caused_is_no_difference() {
        let tiny = comparison(1.0001, 1e-7);
        let judged = |floor| judge(&[Comparison { floor, ..tiny }], Rules::default())[0].verdict;
        assert_eq!(judged(0.0).judgement, Judgement::Faster);
        assert_eq!(judged(2e-4).judgement, Judgement::Equivalent);
    }

    #[test]
    fn many_comparisons_raise_the_bar() {
        let weak = comparison(0.98, 0.02);
        assert!(weak.test.p < 0.05, "{}", weak.test.p);
        let alone = judge(&[weak], Rules::default())[0].verdict.judgement;
        let crowd = judge(&[weak; 50], Rules::default())[0].verdict.judgement;
        assert_eq!((alone, crowd), (Judgement::Slower, Judgement::Inconclusive));
    }

    #[test]
    fn an_early_look_raises_the_bar() {
        let weak = comparison(0.98, 0.02);
        let early = Comparison { share: 0.02, ..weak };
        let words = judge(&[weak, early], Rules { significance: 0.2, ..Rules::default() });
        assert!(words[0].p_adjusted < words[1].p_adjusted);
        assert_eq!(words[0].verdict.judgement, Judgement::Slower);
    }

    #[test]
    fn what_could_have_been_seen_grows_with_the_number_of_comparisons() {
        let found = comparison(1.0, 0.02);
        let alone = judge(&[found], Rules::default())[0].detectable;
        let crowd = judge(&[found; 50], Rules::default())[0].detectable;
        assert!(0.0 < alone && alone < crowd && crowd < 3.0 * alone, "{alone} {crowd}");
    }
}
