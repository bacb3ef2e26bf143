//! Findings as plain sentences.

use std::collections::{BTreeMap, HashSet};

use super::index::{grouped, repeated};
use super::shown::undecided;
use super::{
    FitReport, GrowthReport, PlanReport, RowReport, ScalingReport, TargetReport, VariantSummary,
    units,
};
use crate::crossover::{
    Claim, Crossing, Crossover, Limit, Outcome, Suggestion, ThresholdFinding, ThresholdPlace,
    ThresholdVerdict, Winner,
};
use crate::infer::{Attainment, ErrorRate, Interval, NEGLIGIBLE};
use crate::kernel::Mode;

/// What the error rate of a report promises of its verdicts.
pub(super) fn error_rate(plan: &PlanReport) -> String {
    let PlanReport { error_rate, significance, .. } = plan;
    let rate = units::percent(*significance).replace(".0 ", " ");
    let held = units::percent(1.0 - significance);
    match error_rate {
        ErrorRate::Discovery => format!(
            "of the differences named, at most {rate} are expected to be false; of their intervals, {held} are expected to hold"
        ),
        ErrorRate::Family => {
            format!("the chance that any of the differences named is false is at most {rate}")
        }
    }
}

/// Who wins where, and what that says of the threshold.
pub(super) fn crossover(found: &Crossover, is_one_of_many: bool) -> Vec<String> {
    let at = if is_one_of_many { format!("at {}: ", axes(&found.held)) } else { String::new() };
    let at = transfers(found).map_or(at.clone(), |words| format!("{at}{words}: "));
    let reservation = if found.provisional { " (provisional)" } else { "" };
    if let Some(size) = &found.failed_at {
        let Crossover { variant, base, .. } = found;
        return vec![format!(
            "{at}no crossover of {variant} and {base}: one of them fails at {size}"
        )];
    }
    let mut sentences = vec![format!("{at}{}{}{reservation}", who_wins(found), besides(found))];
    if let Some(threshold) = &found.threshold {
        sentences.push(format!("{at}{}", self::threshold(found, threshold)));
    }
    sentences
}

/// Whether the time of a row on a device includes that of its transfers; none for rows on a processor.
pub(super) fn transfers(found: &Crossover) -> Option<&'static str> {
    match found.mode {
        _ if !found.is_on_device => None,
        Mode::Warm => None,
        Mode::Hot | Mode::Cold | Mode::Graph => Some("without transfers"),
        Mode::EndToEnd => Some("with transfers"),
    }
}

fn who_wins(found: &Crossover) -> String {
    let Crossover { variant, base, from, to, crossings, .. } = found;
    let everywhere = format!("at every size from {} to {}", from.size, to.size);
    let ends = found.evidence.iter().flat_map(|known| [known.speedup_low, known.speedup_high]);
    let furthest = ends.map(|end| end.ln().abs()).fold(0.0, f64::max);
    if furthest < NEGLIGIBLE && found.crossings.is_empty() && !found.evidence.is_empty() {
        let share = units::percent(furthest.exp_m1());
        return format!("{variant} and {base} are within {share} of each other {everywhere}");
    }
    match found.outcome {
        Outcome::Crosses => match crossings.as_slice() {
            [only] => one_crossing(found, only),
            several => several_crossings(found, several),
        },
        Outcome::AlwaysFaster => format!("{variant} beats {base} {everywhere}: no crossover"),
        Outcome::AlwaysSlower => format!("{base} beats {variant} {everywhere}: no crossover"),
        Outcome::SometimesFaster | Outcome::SometimesSlower => {
            let (winner, loser, who) = match found.outcome {
                Outcome::SometimesFaster => (variant, base, Winner::Variant),
                _ => (base, variant, Winner::Base),
            };
            let won: Vec<&str> = found
                .evidence
                .iter()
                .filter(|known| known.winner == Some(who))
                .map(|known| known.place.size.as_str())
                .collect();
            let places = match won.as_slice() {
                [] | [_] => format!("at {}", won.concat()),
                [first, .., last] => {
                    format!("at {} of {} sizes, {first} to {last}", won.len(), found.evidence.len())
                }
            };
            format!("{winner} beats {loser} {places}; elsewhere no winner is shown: no crossover")
        }
        Outcome::Undecided => {
            format!("no winner is shown between {variant} and {base} {everywhere}")
        }
    }
}

/// The sizes outside of all crossings at which no winner is shown, where the winner changes at others.
fn besides(found: &Crossover) -> String {
    let sizes = undecided(found);
    match sizes.as_slice() {
        _ if found.crossings.is_empty() => String::new(),
        [] => String::new(),
        [one] => format!("; at {one} no winner is shown"),
        [one, two] => format!("; at {one} and {two} no winner is shown"),
        [one, .., last] => {
            format!("; at {} sizes, {one} to {last}, no winner is shown", sizes.len())
        }
    }
}

fn one_crossing(found: &Crossover, crossing: &Crossing) -> String {
    let Crossing { below, above, octaves, limit, .. } = crossing;
    let (winner, loser) = names(found, crossing.winner);
    let why = match limit {
        Limit::Tolerance => String::new(),
        Limit::Time => ", for want of time".to_owned(),
        Limit::Neighbours => ", and no size between can be measured".to_owned(),
        Limit::Undecided => ", and between them no winner is shown".to_owned(),
    };
    format!(
        "{winner} wins from {} on, {loser} up to {} ({octaves:.2} octaves apart{why})",
        above.size, below.size
    )
}

fn several_crossings(found: &Crossover, crossings: &[Crossing]) -> String {
    // A document may say that there is a crossing, and have none.
    let first = crossings
        .first()
        .map(|first| format!("{} wins up to {}", names(found, first.winner).1, first.below.size));
    let mut parts = Vec::from_iter(first);
    for (i, crossing) in crossings.iter().enumerate() {
        let winner = names(found, crossing.winner).0;
        parts.push(match crossings.get(i + 1) {
            Some(next) => format!("{winner} from {} to {}", crossing.above.size, next.below.size),
            None => format!("{winner} from {} on", crossing.above.size),
        });
    }
    format!("the winner changes {} times: {}", crossings.len(), parts.join(", "))
}

/// The winner's name and the other's.
fn names(found: &Crossover, winner: Winner) -> (&str, &str) {
    match winner {
        Winner::Variant => (&found.variant, &found.base),
        Winner::Base => (&found.base, &found.variant),
    }
}

/// Whether a claim holds, what it costs where it does not, and what to write instead.
pub(super) fn threshold(found: &Crossover, threshold: &ThresholdFinding) -> String {
    let ThresholdFinding { claim, verdict, costs, .. } = threshold;
    let name = format!("threshold {claim} of {}", found.variant);
    let worst = costs.first();
    let side = costs.iter().filter(|place| Some(place.claimed) == worst.map(|w| w.claimed)).count();
    let cost =
        |place: &ThresholdPlace| format!("{} at {}", units::percent(place.cost), place.place.size);
    let others = match side {
        0 | 1 => String::new(),
        count => format!(", the worst of {count} sizes"),
    };
    let wrong = |what: &str| {
        let cost = worst.map_or_else(String::new, cost);
        format!("{name} is {}: it {what} {cost}{others}{}", verdict.words(), instead(found))
    };
    match verdict {
        ThresholdVerdict::Right => {
            format!("{name} is right: it costs less than 5 % at every measured size")
        }
        ThresholdVerdict::TooLow => wrong("costs"),
        ThresholdVerdict::TooHigh => wrong("gives away"),
        ThresholdVerdict::Undecided => {
            let risk = threshold.risk.as_ref().map_or_else(String::new, |place| {
                let most = units::percent(place.cost_high);
                format!(": it may cost up to {most} at {}", place.place.size)
            });
            let why = match threshold.at {
                Some(_) => risk,
                None => format!(": no size up to {} is large enough to try it", found.to.size),
            };
            format!("{name} is undecided{why}{}", instead(found))
        }
    }
}

/// Whether the number that is claimed is one of those that may be right.
fn is_within(found: &Crossover, low: u64, high: u64) -> bool {
    found.source.claim.number().is_some_and(|number| low < number && number <= high)
}

/// What to write instead of a threshold.
fn instead(found: &Crossover) -> String {
    match (&found.suggestion, found.outcome) {
        (Some(Suggestion { value, .. }), _) if found.crossings.len() > 1 => {
            format!("; no number is right everywhere, and {} comes closest", units::literal(*value))
        }
        (Some(Suggestion { low, high, .. }), _) if is_within(found, *low, *high) => {
            format!("; the crossover is between {low} and {high}")
        }
        (Some(Suggestion { value, low, high }), _) if found.source.claim == Claim::Condition => {
            let value = units::literal(*value);
            format!("; let it hold from a work of {value} on (between {low} and {high})")
        }
        (Some(Suggestion { value, low, high }), _) => {
            format!("; write {} (between {low} and {high})", units::literal(*value))
        }
        (None, Outcome::AlwaysSlower) => {
            format!("; no threshold is right, for it wins at no size up to {}", found.to.size)
        }
        (None, Outcome::AlwaysFaster) => {
            format!("; it wins from {} on", found.from.size)
        }
        (None, _) => String::new(),
    }
}

/// Thresholds that were not judged.
pub(super) fn untried(rows: &[RowReport], crossovers: &[Crossover]) -> Vec<String> {
    let judged: HashSet<&String> = crossovers.iter().map(|found| &found.variant).collect();
    let mut sentences: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    for row in rows.iter().filter(|row| row.time_ns.is_some() && !judged.contains(&row.variant)) {
        let Some(threshold) = &row.threshold else { continue };
        let sentence = format!(
            "threshold {threshold} of {} is not judged: that takes the base, two sizes with figures, and the search",
            row.variant
        );
        if seen.insert(sentence.clone()) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// The targets of a kernel's variants, each once.
pub(super) fn targets(rows: &[RowReport]) -> Vec<String> {
    let all = rows.iter().flat_map(|row| row.expectations.iter().map(move |target| (row, target)));
    let groups = grouped(all, |(row, found)| (&row.variant, &found.target));
    groups.iter().map(|found| target(found)).collect()
}

/// One target of a variant, wherever it was judged.
fn target(found: &[(&RowReport, &TargetReport)]) -> String {
    let (variant, text) = (&found[0].0.variant, &found[0].1.target);
    let of = |wanted: Attainment| found.iter().filter(move |(_, t)| t.verdict == wanted);
    let mut parts = Vec::new();
    match of(Attainment::Met).count() {
        0 => {}
        met if met == found.len() => parts.push("met".to_owned()),
        met => parts.push(format!("met at {met} of {} sizes", found.len())),
    }
    for verdict in [Attainment::Missed, Attainment::Undecided] {
        let count = of(verdict).count();
        if let Some((row, target)) = of(verdict).next() {
            let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            let size = super::kernel_table::short_size(row);
            parts.push(format!("{} at {size}{more}: {}", verdict.word(), target.reason));
        }
    }
    format!("target `{text}` of {variant}: {}", parts.join("; "))
}

/// How a variant scales with threads, and the law that describes it.
pub(super) fn scaling(found: &ScalingReport) -> String {
    let ScalingReport { variant, size, first, counts, overhead, fit, .. } = found;
    let against = if *first == 1 { "one".to_owned() } else { first.to_string() };
    let most = counts.last().map_or_else(String::new, |most| {
        format!(
            "{}× with {} threads against {against}, {} of what they could give",
            units::ratio(most.speedup.value),
            most.threads,
            units::percent(most.efficiency.value)
        )
    });
    let mut text = format!("{variant} at {size}: {most}");
    if let Some(overhead) = overhead {
        text += &format!("; with one thread it takes {} longer than the base", shares(*overhead));
    }
    if let Some(fit) = fit {
        text += &format!("; {}", fitted(fit));
    }
    text
}

/// The law that describes how a variant scales, where there is one.
pub(super) fn law(found: &ScalingReport) -> Option<String> {
    let fit = found.fit.as_ref()?;
    Some(format!("scaling of {} at {}: {}", found.variant, found.size, fitted(fit)))
}

fn fitted(fit: &FitReport) -> String {
    let FitReport { contention, coherency, worst_residual, worst_residual_at, .. } = fit;
    let name = if fit.law == "usl" { "the universal law" } else { "Amdahl's law" };
    let mut text = format!("{name} has a serial part of {}", shares(*contention));
    if let Some(coherency) = coherency {
        text += &format!(" and a coherency of {}", shares(*coherency));
    }
    if fit.agreement == "departs" {
        text += &format!(
            ", but does not describe it: {} off with {worst_residual_at} threads",
            units::percent(*worst_residual)
        );
    }
    text
}

/// A share with its interval: `12 % [10, 14]`.
pub(super) fn shares(Interval { value, low, high }: Interval) -> String {
    let shown = |percent: f64| match percent {
        percent if percent.abs() >= 99.5 => format!("{percent:.0}"),
        percent if percent.abs() >= 0.95 => format!("{percent:.1}"),
        percent => format!("{percent:.3}"),
    };
    let digits = |share: f64| units::within_reason(100.0 * share, shown);
    format!("{} % [{}, {}]", digits(value), digits(low), digits(high))
}

/// Exponents of all variants, and the knees of each.
pub(super) fn growth<'a>(found: impl Iterator<Item = &'a GrowthReport>) -> Vec<String> {
    let found: Vec<&GrowthReport> = found.collect();
    let several = repeated(found.iter().map(|report| (&report.variant, report.threads)));
    let name = |report: &GrowthReport| {
        let name = with_threads(&report.variant, report.threads);
        match several.contains(&(&report.variant, report.threads)) {
            true => format!("{name} at {}", axes(&report.held)),
            false => name,
        }
    };
    let exponent = |report: &&GrowthReport| {
        let Interval { value, low, high } = report.growth.exponent;
        format!("{} {value:.2} [{low:.2}, {high:.2}]", name(report))
    };
    let exponents: Vec<String> = found.iter().map(exponent).collect();
    let mut sentences = Vec::new();
    if !exponents.is_empty() {
        sentences.push(format!("time grows with work to the power of: {}", exponents.join(", ")));
    }
    for report in &found {
        for knee in &report.growth.knees {
            let cache = match &knee.cache {
                Some(cache) => format!(", where its data leaves the {cache} cache"),
                None => String::new(),
            };
            sentences.push(format!(
                "{} bends between work {} and {}{cache}: from a power of {:.2} to {:.2}",
                name(report),
                units::literal(knee.from as u64),
                units::literal(knee.to as u64),
                knee.before,
                knee.after
            ));
        }
    }
    sentences
}

/// Who is best how often, and how much faster over all sizes.
pub(super) fn wins(variants: &[VariantSummary]) -> Option<String> {
    let sizes = variants.iter().map(|variant| variant.sizes).max().filter(|sizes| *sizes > 1)?;
    let several = repeated(variants.iter().map(|variant| &variant.variant));
    let part = |variant: &VariantSummary| {
        let threads = several.contains(&variant.variant).then_some(variant.threads);
        let name = with_threads(&variant.variant, threads);
        let shared = match variant.shared_wins {
            0 => String::new(),
            shared => format!(" and shares {shared}"),
        };
        let mean =
            variant.mean_speedup.zip(variant.mean_speedup_low).zip(variant.mean_speedup_high);
        let mean = mean.map_or_else(String::new, |((mean, low), high)| {
            let [mean, low, high] = [mean, low, high].map(units::ratio);
            format!(", {mean}× [{low}, {high}] on average")
        });
        format!("{name} wins {}{shared}{mean}", variant.wins)
    };
    let parts: Vec<String> = variants.iter().map(part).collect();
    (variants.len() > 1).then(|| format!("of {sizes} sizes: {}", parts.join("; ")))
}

/// `dim=1024,rows=16`.
pub(super) fn axes(held: &BTreeMap<String, usize>) -> String {
    let pairs: Vec<String> = held.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    pairs.join(",")
}

/// A variant with its thread count, where it has several.
fn with_threads(variant: &str, threads: Option<usize>) -> String {
    match threads {
        Some(1) => format!("{variant} (1 thread)"),
        Some(threads) => format!("{variant} ({threads} threads)"),
        None => variant.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossover::tests::{crossing, found};

    fn said(outcome: Outcome, crossings: Vec<Crossing>) -> String {
        crossover(&found(outcome, crossings), false).join("; ")
    }

    #[test]
    fn a_document_that_has_no_crossing_is_no_panic() {
        assert_eq!(said(Outcome::Crosses, Vec::new()), "the winner changes 0 times: ");
    }

    #[test]
    fn every_outcome_has_its_sentence() {
        use Winner::{Base, Variant};
        assert_eq!(
            said(Outcome::Crosses, vec![crossing(90, 110, Variant)]),
            "rayon wins from n=110 on, saxpy up to n=90 (0.10 octaves apart)"
        );
        let changes = vec![crossing(90, 110, Variant), crossing(500, 600, Base)];
        assert_eq!(
            said(Outcome::Crosses, changes),
            "the winner changes 2 times: saxpy wins up to n=90, rayon from n=110 to n=500, \
             saxpy from n=600 on"
        );
        let always = said(Outcome::AlwaysSlower, Vec::new());
        assert_eq!(always, "saxpy beats rayon at every size from n=10 to n=1000: no crossover");
        assert!(said(Outcome::Undecided, Vec::new()).starts_with("no winner is shown between"));
    }

    #[test]
    fn shares_have_digits_where_they_matter() {
        let of = |value| shares(Interval { value, low: value / 2.0, high: 2.0 * value });
        assert_eq!(of(0.1), "10.0 % [5.0, 20.0]");
        assert_eq!(of(0.000_4), "0.040 % [0.020, 0.080]");
    }
}
