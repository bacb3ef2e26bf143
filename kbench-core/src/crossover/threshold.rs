//! Whether a claim holds: `threshold = 1 << 16` says that a variant beats its base from there on.
//!
//! A claim is wrong where it costs something. *Too low*: at some size from the threshold on the variant is shown to be
//! slower by more than what is negligible. *Too high*: at some size below it is shown to be faster by more. *Right*: at no
//! size that was measured can either be so. Otherwise the figures do not decide.

use serde::{Deserialize, Serialize};

use super::contest::Contest;
use super::evidence::Evidence;
use super::place::{Place, place};
use crate::infer::NEGLIGIBLE;
use crate::kernel::Threshold;
use crate::order;

/// A size that is at least this much larger than the first one claimed is above it, in octaves.
const ABOVE: f64 = 0.5;

/// What is said of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdVerdict {
    /// Nowhere does it cost more than what is negligible.
    Right,
    /// The variant is claimed to win where it loses.
    TooLow,
    /// The variant wins where nobody claims it.
    TooHigh,
    /// Neither can be said.
    Undecided,
}

impl ThresholdVerdict {
    /// The words in reports.
    pub fn words(self) -> &'static str {
        match self {
            ThresholdVerdict::Right => "right",
            ThresholdVerdict::TooLow => "too low",
            ThresholdVerdict::TooHigh => "too high",
            ThresholdVerdict::Undecided => "undecided",
        }
    }
}

/// A claim, judged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThresholdFinding {
    /// The claim as its author wrote it.
    pub claim: String,
    /// Whether it holds.
    pub verdict: ThresholdVerdict,
    /// The largest measured size below the threshold.
    pub below: Option<ThresholdPlace>,
    /// The smallest measured size for which the claim is made.
    pub at: Option<ThresholdPlace>,
    /// The smallest that is about an octave larger.
    pub above: Option<ThresholdPlace>,
    /// Where it is wrong by more than what is negligible: first where the variant is wrongly claimed to win, the worst
    /// first.
    pub costs: Vec<ThresholdPlace>,
    /// Where it may be wrong most, by the figures.
    pub risk: Option<ThresholdPlace>,
}

/// A measured size beside a threshold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThresholdPlace {
    /// The size.
    #[serde(flatten)]
    pub place: Place,
    /// Whether the variant is claimed to win here.
    pub claimed: bool,
    /// Time of the base over that of the variant.
    #[serde(deserialize_with = "crate::infer::upper_end")]
    pub speedup: f64,
    /// Lower end of its interval, adjusted for the number of sizes.
    pub speedup_low: f64,
    /// Upper end.
    #[serde(deserialize_with = "crate::infer::upper_end")]
    pub speedup_high: f64,
    /// What following the claim costs here, as a share of the better time; negative when it gains.
    #[serde(deserialize_with = "crate::infer::upper_end")]
    pub cost: f64,
    /// What it costs at most, by the interval.
    #[serde(deserialize_with = "crate::infer::upper_end")]
    pub cost_high: f64,
}

impl Contest {
    /// The claim of the variant's author, judged by the evidence; none without a claim or evidence.
    pub(super) fn judge_threshold(&self) -> Option<ThresholdFinding> {
        let threshold = self.claim()?;
        let judged: Vec<(f64, bool, ThresholdPlace)> =
            self.evidence.iter().map(|known| self.beside(known, threshold)).collect();
        let mut costs: Vec<ThresholdPlace> = Vec::new();
        let (mut too_low, mut too_high, mut is_sure) = (false, false, true);
        for (_, claimed, place) in &judged {
            let loss = if *claimed { 1.0 / place.speedup_high } else { place.speedup_low };
            if loss > 1.0 + NEGLIGIBLE {
                *(if *claimed { &mut too_low } else { &mut too_high }) = true;
                costs.push(place.clone());
            }
            is_sure &= place.cost_high < NEGLIGIBLE;
        }
        let risk = judged.iter().map(|(_, _, place)| place);
        let risk = risk.max_by(|a, b| a.cost_high.total_cmp(&b.cost_high)).cloned();
        order::sort_by(&mut costs, |a, b| b.cost.total_cmp(&a.cost));
        // A claim to win nowhere is tried at every size.
        let is_tried = threshold.is_never() || judged.iter().any(|(_, claimed, _)| *claimed);
        let verdict = match (too_low, too_high) {
            (true, _) => ThresholdVerdict::TooLow,
            (false, true) => ThresholdVerdict::TooHigh,
            (false, false) if is_sure && is_tried => ThresholdVerdict::Right,
            (false, false) => ThresholdVerdict::Undecided,
        };
        order::sort_by_key(&mut costs, |place| place.claimed != too_low);
        let at = judged.iter().position(|(_, claimed, _)| *claimed);
        let below = at.map_or(judged.len(), |at| at).checked_sub(1);
        let above = at.and_then(|at| {
            let is_above =
                |(position, ..): &(f64, bool, ThresholdPlace)| *position > judged[at].0 + ABOVE;
            judged.iter().position(is_above)
        });
        let place = |index: Option<usize>| Some(judged.get(index?)?.2.clone());
        Some(ThresholdFinding {
            claim: threshold.to_string(),
            verdict,
            below: place(below),
            at: place(at),
            above: place(above),
            costs,
            risk,
        })
        .filter(|_| !judged.is_empty())
    }

    /// A size with what the claim costs there: its position, whether the claim is made, and the figures.
    fn beside(&self, known: &Evidence, threshold: Threshold) -> (f64, bool, ThresholdPlace) {
        let claimed = threshold.holds(known.work, &known.size.values);
        let comparison = &known.comparison;
        let (low, high) = comparison.interval_among(self.evidence.len());
        let slower = if claimed { 1.0 / comparison.speedup } else { comparison.speedup };
        let place = ThresholdPlace {
            claimed,
            place: place(self.kernel, &known.size, known.work),
            speedup: comparison.speedup,
            speedup_low: low,
            speedup_high: high,
            cost: slower - 1.0,
            cost_high: if claimed { 1.0 / low } else { high } - 1.0,
        };
        (known.position, claimed, place)
    }
}
