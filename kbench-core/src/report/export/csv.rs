//! CSV: the columns that programs rely on first, then what else there is.

use std::fmt;

use crate::crossover::ThresholdVerdict;
use crate::infer::{Attainment, Rank};
use crate::report::{Doubt, Report, RowReport};

/// Columns in order; the first 23 are a contract.
const COLUMNS: [&str; 85] = [
    "kernel",
    "variant",
    "backend",
    "type",
    "size",
    "work",
    "threads",
    "mode",
    "status",
    "time_ns",
    "time_low_ns",
    "time_high_ns",
    "speedup",
    "speedup_low",
    "speedup_high",
    "p",
    "p_adjusted",
    "verdict",
    "bytes_per_s",
    "flops_per_s",
    "ceiling_share",
    "error",
    "tolerance",
    "error_max",
    "items_per_s",
    "t",
    "df",
    "hedges_g",
    "detectable",
    "label",
    "error_at",
    "launches",
    "welch_t",
    "welch_df",
    "welch_p",
    "allocations",
    "allocated_bytes",
    "allocated_peak_bytes",
    "cycles",
    "instructions",
    "cache_misses",
    "branch_misses",
    "unstable",
    "origin",
    "best_share",
    "rank",
    "class",
    "threshold",
    "threshold_verdict",
    "threshold_value",
    "crossover_low",
    "crossover_high",
    "targets_met",
    "targets_missed",
    "targets_undecided",
    "scaling",
    "scaling_low",
    "scaling_high",
    "efficiency",
    "h2d_ns",
    "h2d_pinned_ns",
    "d2h_ns",
    "d2h_pinned_ns",
    "device_peak_bytes",
    "host_time_ns",
    "sm_clock_mhz",
    "temperature_celsius",
    "power_watts",
    "throttle_reasons",
    "throttled_blocks",
    "ceiling",
    "intensity",
    "baseline_time_ns",
    "change",
    "change_low",
    "change_high",
    "change_p",
    "change_p_adjusted",
    "change_verdict",
    "change_detectable",
    "memory_change",
    "machine",
    "speedup_confidence",
    "at_most",
    "doubt",
];

/// The report as comma-separated values (RFC 4180).
pub fn csv(report: &Report) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for row in report.rows.iter().chain(&report.searched) {
        let fields = fields(row).map(|field| field.to_string());
        text += &(fields.join(",") + "\n");
    }
    text
}

fn fields(row: &RowReport) -> [Field; 85] {
    let number = |value: Option<f64>| Field::figure(value);
    let whole = |value: Option<u64>| Field::figure(value);
    let text = |text: &Option<String>| Field::text(text.as_deref().unwrap_or_default());
    let (comparison, change, check) = (&row.comparison, &row.change, &row.check);
    let (crossover, scaling, device) = (&row.crossover, &row.scaling, &row.device);
    let targets = |verdict: Attainment| {
        let targets = row.expectations.iter().filter(|target| target.verdict == verdict);
        Field::Text(targets.map(|target| target.target.as_str()).collect::<Vec<_>>().join("; "))
    };
    [
        Field::text(&row.kernel),
        Field::text(&row.variant),
        Field::text(&row.backend),
        Field::text(&row.element),
        Field::text(&row.size),
        number(row.work),
        Field::figure(Some(row.threads)),
        Field::text(&row.mode),
        Field::Text(row.status.to_string()),
        number(row.time_ns),
        number(row.time_low_ns),
        number(row.time_high_ns),
        number(comparison.speedup),
        number(comparison.speedup_low),
        number(comparison.speedup_high),
        number(comparison.p),
        number(comparison.p_adjusted),
        text(&comparison.verdict),
        number(row.bytes_per_s),
        number(row.flops_per_s),
        number(row.ceiling_share),
        number(check.error),
        number(check.tolerance),
        number(check.error_max),
        number(row.items_per_s),
        number(comparison.t),
        number(comparison.df),
        number(comparison.hedges_g),
        number(comparison.detectable),
        text(&row.label),
        text(&check.worst),
        Field::figure(Some(row.launches)),
        number(comparison.welch_t),
        number(comparison.welch_df),
        number(comparison.welch_p),
        whole(row.memory.allocations),
        whole(row.memory.allocated_bytes),
        whole(row.memory.allocated_peak_bytes),
        number(row.counters.cycles),
        number(row.counters.instructions),
        number(row.counters.cache_misses),
        number(row.counters.branch_misses),
        Field::Text(row.unstable.to_string()),
        Field::text(row.origin.word()),
        number(row.best_share),
        Field::text(row.rank.map_or("", Rank::word)),
        text(&row.class),
        text(&row.threshold),
        Field::text(crossover.threshold_verdict.map_or("", ThresholdVerdict::words)),
        whole(crossover.threshold_value),
        number(crossover.crossover_low),
        number(crossover.crossover_high),
        targets(Attainment::Met),
        targets(Attainment::Missed),
        targets(Attainment::Undecided),
        number(scaling.scaling),
        number(scaling.scaling_low),
        number(scaling.scaling_high),
        number(scaling.efficiency),
        number(device.h2d_ns),
        number(device.h2d_pinned_ns),
        number(device.d2h_ns),
        number(device.d2h_pinned_ns),
        whole(device.device_peak_bytes),
        number(device.host_time_ns),
        number(device.sm_clock_mhz),
        whole(device.temperature_celsius.map(u64::from)),
        number(device.power_watts),
        text(&device.throttle_reasons),
        whole(device.throttled_blocks.map(|blocks| blocks as u64)),
        text(&device.ceiling),
        number(device.intensity),
        number(change.baseline_time_ns),
        number(change.change),
        number(change.change_low),
        number(change.change_high),
        number(change.change_p),
        number(change.change_p_adjusted),
        text(&change.change_verdict),
        number(change.change_detectable),
        number(change.memory_change),
        text(&row.machine),
        number(comparison.speedup_confidence),
        number(comparison.at_most),
        Field::text(row.doubt.map_or("", Doubt::word)),
    ]
}

/// One value of a row.
enum Field {
    /// Somebody's words.
    Text(String),
    /// A number, or nothing.
    Figure(String),
}

impl Field {
    fn text(text: &str) -> Self {
        Field::Text(text.to_owned())
    }

    fn figure(number: Option<impl ToString>) -> Self {
        Field::Figure(number.map(|number| number.to_string()).unwrap_or_default())
    }
}

/// Numbers as they are. Text that a spreadsheet would take for a formula gets an apostrophe in front (OWASP, "CSV
/// injection"), and quotes where the format needs them.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Field::Figure(number) => return f.write_str(number),
            Field::Text(text) => text,
        };
        let is_formula =
            text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
        let guard = if is_formula { "'" } else { "" };
        match text.contains([',', '"', '\n', '\r']) {
            true => write!(f, "\"{guard}{}\"", text.replace('"', "\"\"")),
            false => write!(f, "{guard}{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, to_value};

    use super::super::tests::fixture;
    use super::*;
    use crate::report::row::tests::row;

    #[test]
    fn awkward_text_is_quoted_and_formulas_are_disarmed() {
        let text = |text: &str| Field::text(text).to_string();
        assert_eq!(text("rows=1,dim=2"), "\"rows=1,dim=2\"");
        assert_eq!(text("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!([text("=cmd()"), text("-1"), text("@x")], ["'=cmd()", "'-1", "'@x"]);
        assert_eq!(text("+a,b"), "\"'+a,b\"");
        assert_eq!(Field::figure(Some(-1.5e-7)).to_string(), "-0.00000015");
        assert_eq!(Field::figure(None::<f64>).to_string(), "");
    }

    #[test]
    fn the_contract_comes_first() {
        let contract = "kernel,variant,backend,type,size,work,threads,mode,status,time_ns,time_low_ns,\
            time_high_ns,speedup,speedup_low,speedup_high,p,p_adjusted,verdict,bytes_per_s,flops_per_s,\
            ceiling_share,error,tolerance";
        assert!(COLUMNS.join(",").starts_with(contract));
    }

    /// A row with a figure or a text of its own in every column that takes one.
    fn distinct() -> RowReport {
        let mut known = to_value(row("plain", 8)).expect("JSON");
        for (index, column) in COLUMNS.into_iter().enumerate() {
            let figure = Value::from(1000 + index);
            let with = |value: Value| {
                let mut changed = known.clone();
                changed[column] = value;
                from_value::<RowReport>(changed.clone()).is_ok().then_some(changed)
            };
            let changed = with(figure).or_else(|| with(format!("text{index}").into()));
            known = changed.unwrap_or(known);
        }
        from_value(known).expect("a row")
    }

    /// JSON has the same names for figures, and cannot confuse them.
    #[test]
    fn every_value_stands_below_its_title() {
        let row = distinct();
        let json = to_value(&row).expect("JSON");
        let text = csv(&Report { rows: vec![row], searched: Vec::new(), ..fixture() });
        let mut lines = text.lines().map(|line| line.split(','));
        let (titles, values) = (lines.next().expect("titles"), lines.next().expect("values"));
        let mut compared = 0;
        for (title, value) in titles.zip(values) {
            let expected = match &json[title] {
                Value::Number(number) => number.as_f64().expect("a figure").to_string(),
                Value::String(text) => text.clone(),
                _ => continue,
            };
            assert_eq!(value, expected, "{title}");
            compared += 1;
        }
        assert!(compared > 70, "{compared}");
    }
}
