//! Verdicts: what a comparison allows one to say.

use std::fmt;

use super::welch::Welch;
use super::{Observations, Scope, holm};

/// By which rules verdicts are given.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Chance of any false difference in a report.
    pub significance: f64,
    /// Differences below this share are none that matter.
    pub margin: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { significance: 0.05, margin: 0.01 }
    }
}

/// A row compared with its base.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Time of the base over time of the row.
    pub speedup: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The test on logarithms of times; positive when the row is faster.
    pub welch: Welch,
    /// What the observations are repetitions of.
    pub scope: Scope,
}

/// Compares a row with its base; `None` with too few observations.
pub fn compare(base: &Observations, row: &Observations) -> Option<Comparison> {
    let welch = Welch::test(&row.logarithms, &base.logarithms)?;
    let (low, high) = welch.interval(0.95);
    Some(Comparison {
        speedup: welch.difference.exp(),
        low: low.exp(),
        high: high.exp(),
        welch,
        scope: row.scope,
    })
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
    let p: Vec<f64> = comparisons.iter().map(|c| c.welch.p).collect();
    let level = rules.significance / comparisons.len().max(1) as f64;
    comparisons
        .iter()
        .zip(holm(&p))
        .map(|(comparison, p_adjusted)| Judged {
            p_adjusted,
            detectable: comparison.welch.detectable(level).exp_m1(),
            verdict: Verdict {
                judgement: judge_one(comparison, p_adjusted, rules),
                provisional: comparison.scope == Scope::Segments,
            },
        })
        .collect()
}

fn judge_one(comparison: &Comparison, adjusted_p: f64, rules: Rules) -> Judgement {
    if adjusted_p < rules.significance && comparison.low > 1.0 {
        return Judgement::Faster;
    }
    if adjusted_p < rules.significance && comparison.high < 1.0 {
        return Judgement::Slower;
    }
    // Two one-sided tests: the interval of twice the error rate must lie within the margin.
    let (low, high) = comparison.welch.interval(1.0 - 2.0 * rules.significance);
    let margin = rules.margin.ln_1p();
    if -margin < low && high < margin { Judgement::Equivalent } else { Judgement::Inconclusive }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observations(center: f64, spread: f64) -> Observations {
        let steps = [-1.5, -0.5, 0.5, 1.5, -1.0, 1.0, 0.0, 0.2, -0.2, 0.0];
        let logarithms = steps.iter().map(|s| center.ln() + s * spread).collect();
        Observations { scope: Scope::Segments, logarithms, samples: 20 }
    }

    fn word(base: (f64, f64), row: (f64, f64)) -> String {
        let comparison = compare(&observations(base.0, base.1), &observations(row.0, row.1));
        judge(&[comparison.expect("enough")], Rules::default())[0].verdict.to_string()
    }

    #[test]
    fn the_four_words_mean_what_they_say() {
        assert_eq!(word((100.0, 0.01), (50.0, 0.01)), "provisional faster");
        assert_eq!(word((100.0, 0.01), (150.0, 0.01)), "provisional slower");
        assert_eq!(word((100.0, 0.002), (100.0, 0.002)), "provisional equivalent");
        assert_eq!(word((100.0, 0.2), (101.0, 0.2)), "provisional inconclusive");
    }

    #[test]
    fn a_speedup_is_base_over_row() {
        let comparison =
            compare(&observations(100.0, 0.01), &observations(25.0, 0.01)).expect("enough");
        assert!((comparison.speedup - 4.0).abs() < 1e-9);
        assert!(comparison.low < 4.0 && 4.0 < comparison.high);
        assert!(comparison.welch.t > 0.0);
    }

    #[test]
    fn many_comparisons_raise_the_bar() {
        let weak = compare(&observations(100.0, 0.02), &observations(102.0, 0.02)).expect("enough");
        assert!(weak.welch.p < 0.05, "{}", weak.welch.p);
        let alone = judge(&[weak], Rules::default())[0].verdict.judgement;
        let crowd = judge(&[weak; 50], Rules::default())[0].verdict.judgement;
        assert_eq!((alone, crowd), (Judgement::Slower, Judgement::Inconclusive));
    }

    #[test]
    fn what_could_have_been_seen_grows_with_the_number_of_comparisons() {
        let comparison =
            compare(&observations(100.0, 0.02), &observations(100.0, 0.02)).expect("enough");
        let alone = judge(&[comparison], Rules::default())[0].detectable;
        let crowd = judge(&[comparison; 50], Rules::default())[0].detectable;
        assert!(0.0 < alone && alone < crowd && crowd < 3.0 * alone, "{alone} {crowd}");
    }
}
