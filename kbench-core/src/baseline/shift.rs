//! Crossovers then and now.

use crate::crossover::{Crossover, Outcome, Winner};
use crate::report::ShiftReport;

/// Every crossover that one of two runs shows along the same way, where both looked for it.
pub(super) fn shifts(then: &[Crossover], now: &[Crossover]) -> Vec<ShiftReport> {
    let same = |a: &Crossover, b: &Crossover| {
        a.kernel == b.kernel
            && a.element == b.element
            && (&a.variant, &a.base) == (&b.variant, &b.base)
            && (a.threads, a.mode) == (b.threads, b.mode)
            && a.held == b.held
    };
    let pairs = now.iter().filter_map(|now| Some((then.iter().find(|then| same(then, now))?, now)));
    pairs.filter_map(|(then, now)| shift(then, now)).collect()
}

fn shift(then: &Crossover, now: &Crossover) -> Option<ShiftReport> {
    let (before, after) = (bracket(then), bracket(now));
    if before.is_none() && after.is_none() {
        return None;
    }
    let octaves = before.zip(after).map(|([then_low, then_high], [now_low, now_high])| {
        let later = (now_low / then_high).log2().max(0.0);
        let sooner = (then_low / now_high).log2().max(0.0);
        later - sooner
    });
    let held: Vec<String> =
        now.held.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    Some(ShiftReport {
        kernel: now.kernel.clone(),
        element: now.element.clone(),
        variant: now.variant.clone(),
        held: held.join(","),
        then: before,
        now: after,
        wins_everywhere: now.outcome == Outcome::AlwaysFaster,
        octaves,
    })
}

/// The work in which the variant takes over from its base, where it does so exactly once.
fn bracket(found: &Crossover) -> Option<[f64; 2]> {
    match found.crossings.as_slice() {
        [one] if one.winner == Winner::Variant => Some([one.below.work, one.above.work]),
        _ => None,
    }
}
