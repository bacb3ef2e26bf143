//! CSV: the columns that programs rely on first, then what else there is.

use crate::crossover::ThresholdVerdict;
use crate::infer::{Attainment, Rank};
use crate::report::{Report, RowReport};

/// Columns in order; the first 23 are a contract.
const COLUMNS: [&str; 82] = [
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
];

/// The report as comma-separated values (RFC 4180).
pub fn csv(report: &Report) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for row in report.rows.iter().chain(&report.searched) {
        let fields: Vec<String> = fields(row).iter().map(|field| quote(field)).collect();
        text += &(fields.join(",") + "\n");
    }
    text
}

fn fields(row: &RowReport) -> [String; 82] {
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let whole = |value: Option<u64>| value.map(|v| v.to_string()).unwrap_or_default();
    let (comparison, change, check) = (&row.comparison, &row.change, &row.check);
    let (crossover, scaling, device) = (&row.crossover, &row.scaling, &row.device);
    let targets = |verdict: Attainment| {
        let targets = row.expectations.iter().filter(|target| target.verdict == verdict);
        targets.map(|target| target.target.as_str()).collect::<Vec<_>>().join("; ")
    };
    [
        row.kernel.clone(),
        row.variant.to_owned(),
        row.backend.to_owned(),
        row.element.to_owned(),
        row.size.clone(),
        number(row.work),
        row.threads.to_string(),
        row.mode.to_owned(),
        row.status.to_string(),
        number(row.time_ns),
        number(row.time_low_ns),
        number(row.time_high_ns),
        number(comparison.speedup),
        number(comparison.speedup_low),
        number(comparison.speedup_high),
        number(comparison.p),
        number(comparison.p_adjusted),
        comparison.verdict.clone().unwrap_or_default(),
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
        row.label.clone().unwrap_or_default(),
        check.worst.clone().unwrap_or_default(),
        row.launches.to_string(),
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
        row.unstable.to_string(),
        row.origin.word().to_owned(),
        number(row.best_share),
        row.rank.map_or("", Rank::word).to_owned(),
        row.class.clone().unwrap_or_default(),
        row.threshold.clone().unwrap_or_default(),
        crossover.threshold_verdict.map_or("", ThresholdVerdict::words).to_owned(),
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
        device.throttle_reasons.clone().unwrap_or_default(),
        whole(device.throttled_blocks.map(|blocks| blocks as u64)),
        device.ceiling.clone().unwrap_or_default(),
        number(device.intensity),
        number(change.baseline_time_ns),
        number(change.change),
        number(change.change_low),
        number(change.change_high),
        number(change.change_p),
        number(change.change_p_adjusted),
        change.change_verdict.clone().unwrap_or_default(),
        number(change.change_detectable),
        number(change.memory_change),
        row.machine.clone().unwrap_or_default(),
    ]
}

/// Quotes where the format needs it, and disarms text that a spreadsheet would take for a formula.
fn quote(field: &str) -> String {
    let is_number = field.parse::<f64>().is_ok();
    let field = if field.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number {
        format!("'{field}")
    } else {
        field.to_owned()
    };
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn awkward_text_is_quoted_and_formulas_are_disarmed() {
        assert_eq!(quote("rows=1,dim=2"), "\"rows=1,dim=2\"");
        assert_eq!(quote("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(quote("=cmd()"), "'=cmd()");
        assert_eq!(quote("-1.5e-7"), "-1.5e-7");
    }

    #[test]
    fn the_contract_comes_first() {
        let contract = "kernel,variant,backend,type,size,work,threads,mode,status,time_ns,time_low_ns,\
            time_high_ns,speedup,speedup_low,speedup_high,p,p_adjusted,verdict,bytes_per_s,flops_per_s,\
            ceiling_share,error,tolerance";
        assert!(COLUMNS.join(",").starts_with(contract));
    }
}
