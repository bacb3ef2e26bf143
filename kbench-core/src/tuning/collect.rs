//! From the crossovers of a report to thresholds.

use super::{TunedThreshold, date};
use crate::crossover::{Claim, Crossover, Outcome, Suggestion, Winner};
use crate::report::Report;

/// What a report says about thresholds.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// Those that were measured, each with the claim that it answers.
    pub thresholds: Vec<(TunedThreshold, Claim)>,
    /// Functions whose threshold could not be measured, with the reason.
    pub undecided: Vec<String>,
}

/// The threshold of every variant that claims a number. A function has one threshold: where it was measured along several
/// ways, or for several element types, their geometric mean, with an interval around all of them.
pub fn collect(report: &Report) -> Collected {
    let mut collected = Collected::default();
    let mut groups: Vec<Vec<&Crossover>> = Vec::new();
    let tunable =
        |found: &&Crossover| matches!(found.source.claim, Claim::Number | Claim::Tuned(_));
    for found in report.crossovers.iter().filter(tunable) {
        let key = |found: &Crossover| {
            (found.source.krate.clone(), found.source.function, found.kernel.clone())
        };
        match groups.iter_mut().find(|group| key(group[0]) == key(found)) {
            Some(group) => group.push(found),
            None => groups.push(vec![found]),
        }
    }
    for group in groups {
        let first = group[0];
        match group.iter().map(|found| value(found)).collect::<Option<Vec<_>>>() {
            Some(values) => {
                let threshold = threshold(report, first, &values, note(&group));
                collected.thresholds.push((threshold, first.source.claim));
            }
            None => collected.undecided.push(reason(&group)),
        }
    }
    collected
}

/// Why a function has no threshold.
fn reason(group: &[&Crossover]) -> String {
    let open = group.iter().find(|found| value(found).is_none()).unwrap_or(&group[0]);
    let why = match (open.outcome, open.crossings.last()) {
        (Outcome::Crosses, Some(last)) if last.winner == Winner::Base => {
            format!("the base wins from {} on", last.above.size)
        }
        (Outcome::Crosses, Some(last)) => format!(
            "it wins from {} on, where the work is no more than before; let `work` count all of {}",
            last.above.size,
            open.along.join(", ")
        ),
        _ => "from where on it wins was not decided; try --thorough".to_owned(),
    };
    format!("{} of {}: {why}", open.variant, open.kernel)
}

/// The threshold along one way; none when it is not decided. Where the variant always wins, or never, the end of what was
/// measured is as good a threshold as any.
fn value(found: &Crossover) -> Option<Suggestion> {
    match found.outcome {
        Outcome::Crosses => found.suggestion.clone(),
        Outcome::AlwaysFaster => {
            let from = found.from.work as u64;
            Some(Suggestion { value: from, low: 0, high: from })
        }
        Outcome::AlwaysSlower => {
            let beyond = found.to.work as u64 + 1;
            Some(Suggestion { value: beyond, low: found.to.work as u64, high: beyond })
        }
        Outcome::SometimesFaster | Outcome::SometimesSlower | Outcome::Undecided => None,
    }
}

fn threshold(
    report: &Report,
    found: &Crossover,
    values: &[Suggestion],
    note: String,
) -> TunedThreshold {
    let logarithms = values.iter().map(|suggestion| (suggestion.value.max(1) as f64).ln());
    let mean = (logarithms.sum::<f64>() / values.len() as f64).exp();
    let ends = |end: fn(&Suggestion) -> u64| values.iter().map(end);
    let environment = &report.environment;
    TunedThreshold {
        krate: found.source.krate.clone(),
        function: found.source.function.to_owned(),
        kernel: found.kernel.clone(),
        base: found.base.to_owned(),
        machine: environment.kind(),
        value: if values.len() == 1 { values[0].value } else { mean.round() as u64 },
        low: ends(|suggestion| suggestion.low).min().unwrap_or(0),
        high: ends(|suggestion| suggestion.high).max().unwrap_or(0),
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
