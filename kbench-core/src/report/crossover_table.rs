//! Crossovers along one axis for several values of the others.

use super::Style;
use super::sentences::axes;
use super::table::{Align, Cell, Table};
use crate::crossover::{Crossing, Crossover, Outcome, ThresholdVerdict, Winner};
use crate::order;

/// One line for every combination of the axes that are held.
pub(super) fn crossover_table(found: &[Crossover], style: Style) -> String {
    let opponents = order::distinct(found.iter().map(|found| found.base.as_str()));
    let opponent = match opponents.as_slice() {
        [only] => format!("{only} wins"),
        // Which one, the sentences say.
        _ => "other wins".to_owned(),
    };
    let mut table = Table::new(vec![
        ("at", Align::Left),
        (&opponent, Align::Left),
        ("variant wins", Align::Left),
        ("octaves", Align::Right),
        ("threshold", Align::Left),
    ]);
    for crossover in found {
        let verdict = crossover.threshold.as_ref().map(|threshold| threshold.verdict);
        let verdict = verdict.map_or("", ThresholdVerdict::words);
        let (base, variant, octaves) = bounds(crossover);
        table.push(
            [axes(&crossover.held), base, variant, octaves, verdict.into()].map(Cell::new).into(),
        );
    }
    table.render(style)
}

fn bounds(crossover: &Crossover) -> (String, String, String) {
    let everywhere = || "everywhere".to_owned();
    match (crossover.outcome, crossover.crossings.as_slice()) {
        (_, [Crossing { below, above, winner: Winner::Variant, octaves, .. }]) => {
            let (base, variant) =
                (format!("up to {}", below.size), format!("from {} on", above.size));
            (base, variant, format!("{octaves:.2}"))
        }
        (_, [Crossing { below, above, octaves, .. }]) => {
            let (variant, base) =
                (format!("up to {}", below.size), format!("from {} on", above.size));
            (base, variant, format!("{octaves:.2}"))
        }
        (_, [_, ..]) => ("changes several times".into(), String::new(), String::new()),
        (Outcome::AlwaysFaster, []) => (String::new(), everywhere(), String::new()),
        (Outcome::AlwaysSlower, []) => (everywhere(), String::new(), String::new()),
        (_, []) => ("no crossover shown".into(), String::new(), String::new()),
    }
}
