//! From the crossovers of a report to thresholds.

use super::TunedThreshold;
use crate::calendar::date;
use crate::crossover::{Claim, Crossover, Outcome, Suggestion, Winner, whole};
use crate::kernel::Mode;
use crate::kernel::Tuned;
use crate::report::Report;

/// What a report says about thresholds.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// Those that were measured, each with the claim that it answers.
    pub thresholds: Vec<(TunedThreshold, Claim)>,
    /// Functions whose threshold could not be measured, with the reason.
    pub undecided: Vec<String>,
}

/// The threshold of every variant that claims a number about the kernel's own function. A function has one threshold: where
/// it was measured along several ways, or for several element types, their geometric mean, with an interval around all.
pub fn collect(report: &Report) -> Collected {
    let mut collected = Collected::default();
    let mut groups: Vec<Vec<&Crossover>> = Vec::new();
    let is_number = |found: &&Crossover| {
        let is_claimed = found.threshold.is_some() || found.failed_at.is_some();
        let is_meant = found.mode != Mode::EndToEnd;
        found.source.claim.number().is_some() && is_claimed && is_meant
    };
    for found in report.crossovers.iter().filter(is_number) {
        let key = |found: &Crossover| {
            (found.source.krate.clone(), found.source.function, found.kernel.clone())
        };
        match groups.iter_mut().find(|group| key(group[0]) == key(found)) {
            Some(group) => group.push(found),
            None => groups.push(vec![found]),
        }
    }
    for group in groups {
        match together(&group) {
            Some(value) => {
                let threshold = threshold(report, group[0], &value, note(&group));
                collected.thresholds.push((threshold, group[0].source.claim));
            }
            None => collected.undecided.push(reason(&group)),
        }
    }
    collected
}

/// The threshold along all ways; none when one of them has none, or when the variant never wins along some and does along
/// others, which no number can say.
fn together(group: &[&Crossover]) -> Option<Suggestion> {
    let values: Vec<Suggestion> = group.iter().map(|found| value(found)).collect::<Option<_>>()?;
    let nevers = values.iter().filter(|suggestion| suggestion.value == Tuned::NEVER).count();
    if nevers > 0 {
        return values.into_iter().next().filter(|_| nevers == group.len());
    }
    let logarithms = values.iter().map(|suggestion| (suggestion.value.max(1) as f64).ln());
    let mean = (logarithms.sum::<f64>() / values.len() as f64).exp();
    Some(Suggestion {
        value: if values.len() == 1 { values[0].value } else { mean.round() as u64 },
        low: values.iter().map(|suggestion| suggestion.low).min()?,
        high: values.iter().map(|suggestion| suggestion.high).max()?,
    })
}

/// Why a function has no threshold.
fn reason(group: &[&Crossover]) -> String {
    let is_never = |found: &&&Crossover| found.outcome == Outcome::AlwaysSlower;
    let open = group.iter().find(|found| value(found).is_none());
    let open = open.or(group.iter().find(is_never)).unwrap_or(&group[0]);
    let why = match (open.outcome, open.crossings.last()) {
        _ if open.failed_at.is_some() => {
            format!("it or its base fails at {}", open.failed_at.as_deref().unwrap_or_default())
        }
        (Outcome::Crosses, Some(last)) if last.winner == Winner::Base => {
            format!("the base wins from {} on", last.above.size)
        }
        (Outcome::Crosses, Some(last)) if is_vague(open) => format!(
            "all that is known is that it begins to win between {} and {}; try --thorough",
            last.below.size, last.above.size
        ),
        (Outcome::Crosses, Some(last)) if whole(last.above.work) == whole(last.below.work) => {
            format!(
                "from {} on it wins, and in whole numbers the work is the same as before; let \
                 `work` count all of {}",
                last.above.size,
                open.along.join(", ")
            )
        }
        (Outcome::AlwaysSlower, _) => format!(
            "at {} it never wins, and elsewhere it does; write a condition instead of a number",
            open.to.size
        ),
        _ => "from where on it wins was not decided; try --thorough".to_owned(),
    };
    format!("{} of {}: {why}", open.variant, open.kernel)
}

/// A crossover that is known no better than this, in octaves, is no threshold.
const VAGUE: f64 = 1.5;

fn is_vague(found: &Crossover) -> bool {
    found.crossings.last().is_some_and(|last| last.octaves > VAGUE)
}

/// The threshold along one way; none when it is not decided. Where the variant always wins, the smallest size that was
/// measured is as good as any; where it never does, nothing is known of larger ones, and the base stays.
fn value(found: &Crossover) -> Option<Suggestion> {
    match found.outcome {
        _ if found.failed_at.is_some() => None,
        Outcome::Crosses => found.suggestion.clone().filter(|_| !is_vague(found)),
        Outcome::AlwaysFaster => {
            let from = whole(found.from.work)?;
            Some(Suggestion { value: from, low: 0, high: from })
        }
        Outcome::AlwaysSlower => {
            Some(Suggestion { value: Tuned::NEVER, low: whole(found.to.work)?, high: Tuned::NEVER })
        }
        Outcome::SometimesFaster | Outcome::SometimesSlower | Outcome::Undecided => None,
    }
}

fn threshold(
    report: &Report,
    found: &Crossover,
    value: &Suggestion,
    note: String,
) -> TunedThreshold {
    let environment = &report.environment;
    TunedThreshold {
        krate: found.source.krate.clone(),
        function: found.source.function.to_owned(),
        kernel: found.kernel.clone(),
        base: found.base.to_owned(),
        machine: environment.kind(),
        value: value.value,
        low: value.low,
        high: value.high,
        code: found.source.code.to_owned(),
        measured: date(report.started),
        how: format!(
            "kbench {}, {} launches, {} threads, seed {}{note}",
            environment.kbench, report.launches, found.threads, report.seed
        ),
    }
}

fn note(group: &[&Crossover]) -> String {
    let mut notes = Vec::new();
    if group.iter().any(|found| found.provisional) {
        notes.push("provisional".to_owned());
    }
    if group.len() > 1 {
        notes.push(format!("mean of {} crossovers", group.len()));
    }
    if let Some(found) = group.iter().find(|found| found.outcome == Outcome::AlwaysSlower) {
        notes.push(format!("never won up to {}", found.to.size));
    }
    if let Some(found) = group.iter().find(|found| found.outcome == Outcome::AlwaysFaster) {
        notes.push(format!("always won from {} on", found.from.size));
    }
    notes.iter().map(|note| format!("; {note}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossover::tests::{crossing, found};

    fn value_of(group: &[&Crossover]) -> Option<(u64, u64, u64)> {
        let value = together(group)?;
        Some((value.value, value.low, value.high))
    }

    #[test]
    fn a_crossover_is_a_threshold_and_several_are_their_mean() {
        let one = found(Outcome::Crosses, vec![crossing(90, 110, Winner::Variant)]);
        let two = found(Outcome::Crosses, vec![crossing(390, 400, Winner::Variant)]);
        assert_eq!(value_of(&[&one]), Some((100, 90, 110)));
        let (mean, low, high) = value_of(&[&one, &two]).expect("a mean");
        assert!((190..210).contains(&mean) && (low, high) == (90, 400), "{mean} {low} {high}");
    }

    #[test]
    fn one_that_always_wins_begins_at_the_smallest_size_and_one_that_never_does_never() {
        let always = found(Outcome::AlwaysFaster, Vec::new());
        let never = found(Outcome::AlwaysSlower, Vec::new());
        assert_eq!(value_of(&[&always]), Some((10, 0, 10)));
        assert_eq!(value_of(&[&never]), Some((Tuned::NEVER, 1000, Tuned::NEVER)));
        assert_eq!(value_of(&[&always, &never]), None, "no number says both");
        assert!(reason(&[&always, &never]).contains("at n=1000 it never wins"));
    }

    #[test]
    fn a_function_that_fails_along_one_way_is_tuned_along_none() {
        let fine = found(Outcome::Crosses, vec![crossing(90, 110, Winner::Variant)]);
        let broken = Crossover { failed_at: Some("n=77".into()), ..fine.clone() };
        assert_eq!(value_of(&[&fine, &broken]), None);
        assert!(reason(&[&fine, &broken]).contains("fails at n=77"));
    }

    #[test]
    fn what_is_not_decided_is_not_tuned_and_the_reason_is_told() {
        let lost = found(Outcome::Crosses, vec![crossing(90, 110, Winner::Base)]);
        assert_eq!(value_of(&[&lost]), None);
        assert!(reason(&[&lost]).contains("the base wins from n=110 on"));
        let flat = found(Outcome::Crosses, vec![crossing(100, 100, Winner::Variant)]);
        assert!(reason(&[&flat]).contains("let `work` count all of n"), "{}", reason(&[&flat]));
        let open = found(Outcome::Undecided, Vec::new());
        assert!(value_of(&[&open]).is_none() && reason(&[&open]).contains("--thorough"));
    }
}
