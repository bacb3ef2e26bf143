//! kbench's run document, beside what is true.

use std::collections::BTreeMap;

use campaign::truth::{self, Cell, Kernel};
use serde::Deserialize;

use crate::record::{Comparison, Crossover, Row};

/// The kernel with crossovers.
const AFFINE: &str = "affine";

/// What a run says, with the truth.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Document {
    /// Bases and variants.
    pub(crate) rows: Vec<Row>,
    /// Every crossover that there is.
    pub(crate) crossovers: Vec<Crossover>,
}

/// What is needed of the document.
#[derive(Deserialize)]
struct Report {
    rows: Vec<ReportRow>,
    #[serde(default)]
    crossovers: Vec<ReportCrossover>,
}

#[derive(Deserialize)]
struct ReportRow {
    kernel: String,
    variant: String,
    axes: BTreeMap<String, u64>,
    launches: u64,
    speedup_low: Option<f64>,
    speedup_high: Option<f64>,
    verdict: Option<String>,
}

#[derive(Deserialize)]
struct ReportCrossover {
    kernel: String,
    held: BTreeMap<String, u64>,
    crossings: Vec<Crossing>,
}

#[derive(Deserialize)]
struct Crossing {
    below: Place,
    above: Place,
}

#[derive(Deserialize)]
struct Place {
    work: f64,
}

/// Reads the document of a suite.
pub(crate) fn read(suite: u64, text: &str) -> Result<Document, String> {
    let report: Report =
        serde_json::from_str(text).map_err(|error| format!("no run document: {error}"))?;
    let rows = report.rows.iter().map(|row| read_row(suite, row)).collect::<Result<Vec<_>, _>>()?;
    let crossovers = crossovers(suite, &rows, &report.crossovers);
    Ok(Document { rows, crossovers })
}

/// The last part of `module::path::kernel`.
fn name(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

fn read_row(suite: u64, row: &ReportRow) -> Result<Row, String> {
    let kernel = name(&row.kernel);
    let unknown = || format!("`{}/{}` is no row of a suite", row.kernel, row.variant);
    let variant = match row.variant.strip_prefix(kernel) {
        Some("") => 0,
        Some(rest) => rest.strip_prefix('_').and_then(|n| n.parse().ok()).ok_or_else(unknown)?,
        None => return Err(unknown()),
    };
    let id = *row.axes.get("id").ok_or_else(unknown)?;
    let drawn = Kernel::ALL.into_iter().find(|known| known.name() == kernel);
    let (effect, truth) = match (drawn, row.axes.get("n")) {
        (Some(kernel), _) => {
            let cell = Cell { kernel, suite, id };
            let [base, own] = [0, variant].map(|variant| cell.amount(variant) as f64);
            (Some(cell.effect(variant)), base / own)
        }
        (None, Some(&n)) if kernel == AFFINE => (None, affine_speedup(suite, id, n as usize)),
        _ => return Err(unknown()),
    };
    let comparison = Comparison {
        effect,
        truth,
        low: row.speedup_low,
        high: row.speedup_high,
        verdict: row.verdict.clone(),
    };
    Ok(Row {
        kernel: kernel.to_owned(),
        id,
        variant,
        launches: row.launches,
        comparison: (variant != 0).then_some(comparison),
    })
}

fn affine_speedup(suite: u64, id: u64, n: usize) -> f64 {
    let crossover = truth::crossover(suite, id);
    truth::affine_base(n) as f64 / truth::affine_variant(n, crossover) as f64
}

/// One for every pair of cost models that has rows, also where nothing was found.
fn crossovers(suite: u64, rows: &[Row], found: &[ReportCrossover]) -> Vec<Crossover> {
    let mut ids: Vec<u64> =
        rows.iter().filter(|row| row.kernel == AFFINE).map(|row| row.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let crossover = |id: u64| {
        let is_it =
            |of: &&ReportCrossover| name(&of.kernel) == AFFINE && of.held.get("id") == Some(&id);
        let crossings = found.iter().filter(is_it).flat_map(|of| &of.crossings);
        let brackets = crossings.map(|crossing| (crossing.below.work, crossing.above.work));
        Crossover { id, truth: truth::crossover(suite, id) as f64, brackets: brackets.collect() }
    };
    ids.into_iter().map(crossover).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"rows": [
        {"kernel": "subject_suite::memory", "variant": "memory", "axes": {"id": 3, "suite": 7},
         "launches": 6, "speedup_low": null, "speedup_high": null, "verdict": null},
        {"kernel": "subject_suite::memory", "variant": "memory_2", "axes": {"id": 3, "suite": 7},
         "launches": 5, "speedup_low": 0.9, "speedup_high": 1.1, "verdict": "inconclusive"},
        {"kernel": "subject_suite::affine", "variant": "affine_1",
         "axes": {"n": 1024, "id": 2, "suite": 7},
         "launches": 4, "speedup_low": 0.9, "speedup_high": null, "verdict": "slower"}],
      "crossovers": [
        {"kernel": "subject_suite::memory", "held": {"suite": 7, "id": 2}, "crossings": [
            {"below": {"work": 1}, "above": {"work": 2}}]},
        {"kernel": "subject_suite::affine", "held": {"suite": 7, "id": 2}, "crossings": [
            {"below": {"work": 512.0}, "above": {"work": 1024}}]}]}"#;

    #[test]
    fn rows_and_crossovers_get_the_truth_of_their_numbers() {
        let Document { rows, crossovers } = read(7, DOCUMENT).expect("a document");
        assert_eq!((rows[0].variant, rows[0].launches), (0, 6));
        assert_eq!(rows[0].comparison, None);
        let cell = Cell { kernel: Kernel::Memory, suite: 7, id: 3 };
        let memory = rows[1].comparison.as_ref().expect("a comparison");
        assert_eq!(memory.effect, Some(cell.effect(2)));
        assert_eq!(memory.truth, cell.amount(0) as f64 / cell.amount(2) as f64);
        assert_eq!((memory.low, memory.high), (Some(0.9), Some(1.1)));
        let at = truth::crossover(7, 2);
        let affine = rows[2].comparison.as_ref().expect("a comparison");
        assert_eq!(affine.effect, None);
        assert_eq!(affine.truth, 256.0 / ((1024 + at) / 8) as f64);
        let found = Crossover { id: 2, truth: at as f64, brackets: vec![(512.0, 1024.0)] };
        assert_eq!(crossovers, [found]);
    }

    #[test]
    fn a_crossover_that_was_not_searched_for_is_there_without_a_bracket() {
        let text = DOCUMENT.replace(r#""crossovers""#, r#""nothing""#);
        let Document { crossovers, .. } = read(7, &text).expect("a document");
        assert_eq!((crossovers.len(), crossovers[0].brackets.len()), (1, 0));
    }

    #[test]
    fn rows_of_other_programs_are_errors() {
        for (from, to) in [("memory_2", "memory_two"), ("::affine", "::saxpy"), ("\"n\"", "\"m\"")]
        {
            let error = read(7, &DOCUMENT.replace(from, to)).expect_err(to);
            assert!(error.ends_with("is no row of a suite"), "{error}");
        }
        assert!(read(7, "").expect_err("nothing").starts_with("no run document"));
    }
}
