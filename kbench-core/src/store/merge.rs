//! Runs of several machines as one report.
//!
//! `--partition` never splits a kernel, so all comparisons of a kernel come from one machine and stay as they are. What is
//! new is that there are more of them: each part has adjusted its probabilities for its own comparisons, and among k parts
//! they are multiplied by k (Bonferroni), so that the error rate of the whole report is still what was
//! asked for.

use crate::hash::fnv64;
use crate::infer::{ErrorRate, Judgement, student_quantile};
use crate::order;
use crate::plan::Partition;
use crate::report::{
    ComparisonReport, PartReport, PlanReport, Report, RowReport, kernel_reports, rank_again,
};

/// Why runs do not make one report.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to merge.
    #[error(
        "there is no run to merge; name run documents, as `--export json=PATH` writes them, or a folder of them"
    )]
    Nothing,
    /// A kernel was measured twice on one machine.
    #[error(
        "`{row}` is in the runs {first} and {second}, both of machine {machine}: one of them is a repetition; leave it out"
    )]
    Twice {
        /// The kernel with its element type.
        row: String,
        /// One run.
        first: String,
        /// The other.
        second: String,
        /// The machine.
        machine: String,
    },
    /// A part is itself merged.
    #[error("run {run} is merged already; name the runs that it was merged from")]
    Merged {
        /// The run.
        run: String,
    },
}

/// Shares that are looked for, at most: a file may claim any number.
const MOST_SHARES: usize = 10_000;

/// One report of several, which knows where each row is from, and what is missing.
pub fn merge(mut parts: Vec<Report>) -> Result<Report, MergeError> {
    // In whatever order files were named, the report is the same.
    order::sort_by(&mut parts, |a, b| (share(a), &a.run).cmp(&(share(b), &b.run)));
    if let Some(merged) = parts.iter().find(|part| !part.parts.is_empty()) {
        return Err(MergeError::Merged { run: merged.run.clone() });
    }
    refuse_repetitions(&parts)?;
    let missing = missing(&parts);
    let warnings = warnings(&parts, &missing);
    let about: Vec<PartReport> = parts.iter().map(part).collect();
    let names: Vec<&str> = parts.iter().map(|part| part.run.as_str()).collect();
    let run = format!("merged-{:016x}", fnv64(names.join(" ").as_bytes()));
    let count = parts.len() as f64;
    let filtered_out = filtered_out(&parts);
    let significance = parts.iter().map(|part| part.plan.significance).fold(1.0, f64::min);
    let is_of_discoveries = |part: &Report| part.plan.error_rate == ErrorRate::Discovery;
    let error_rate = match parts.iter().any(is_of_discoveries) {
        true => ErrorRate::Discovery,
        false => ErrorRate::Family,
    };
    for part in &mut parts {
        adjust(part, count, significance);
    }
    let mut parts = parts.into_iter();
    let mut merged = parts.next().ok_or(MergeError::Nothing)?;
    mark(&mut merged);
    for mut part in parts {
        mark(&mut part);
        absorb(&mut merged, part);
    }
    merged.plan.partition = None;
    merged.plan.error_rate = error_rate;
    Ok(Report { run, warnings, parts: about, missing, filtered_out, executable: None, ..merged })
}

/// Rows that no part was to measure: what one left out to another is not filtered out.
fn filtered_out(parts: &[Report]) -> usize {
    let count = |parts: &[Report]| {
        order::distinct(parts.iter().flat_map(|part| part.rows.iter().map(RowReport::key))).len()
    };
    let all = count(parts);
    let left =
        |part: &Report| part.filtered_out.saturating_sub(all - count(std::slice::from_ref(part)));
    parts.iter().map(left).min().unwrap_or(0)
}

/// The number of a part's share, for an order that people expect.
fn share(report: &Report) -> u64 {
    let partition = report.plan.partition.as_ref().and_then(|text| text.parse::<Partition>().ok());
    partition.map_or(0, Partition::share)
}

fn refuse_repetitions(parts: &[Report]) -> Result<(), MergeError> {
    // A kernel is never split, and what is said of it as a whole is said once.
    let kernels = order::distinct(parts.iter().enumerate().flat_map(|(number, part)| {
        let machine = part.environment.machine.as_str();
        part.rows.iter().map(move |row| ([&row.kernel, &row.element, machine], number))
    }));
    let repeated = kernels.windows(2).find(|pair| pair[0].0 == pair[1].0);
    repeated.map_or(Ok(()), |pair| {
        let ([kernel, element, machine], first) = pair[0];
        Err(MergeError::Twice {
            row: format!("{kernel} {element}"),
            first: parts[first].run.clone(),
            second: parts[pair[1].1].run.clone(),
            machine: machine.to_owned(),
        })
    })
}

/// Kernels that some part was to measure a share of, and that no part has.
fn missing(parts: &[Report]) -> Vec<String> {
    let rows = parts.iter().flat_map(|part| &part.rows);
    let there = order::distinct(rows.map(|row| &row.kernel));
    let wanted = parts.iter().flat_map(|part| &part.plan.kernels);
    order::distinct(wanted.filter(|kernel| !there.contains(kernel)).cloned())
}

fn warnings(parts: &[Report], missing: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let shares: Vec<Partition> =
        parts.iter().filter_map(|part| part.plan.partition.as_ref()?.parse().ok()).collect();
    if let Some(first) = shares.first() {
        let absent: Vec<String> = first
            .all()
            .take(MOST_SHARES)
            .filter(|share| !shares.contains(share))
            .map(|share| share.to_string())
            .collect();
        if !absent.is_empty() {
            found.push(format!("parts are missing: there is no run of {}", absent.join(", ")));
        }
    }
    if !missing.is_empty() {
        found.push(format!("kernels are missing: {}", missing.join(", ")));
    }
    let mut differ = |what: &str, of: fn(&Report) -> Option<String>| {
        let values = order::distinct(parts.iter().filter_map(of));
        if values.len() > 1 {
            found.push(format!("parts differ in their {what}: {}", values.join(", ")));
        }
    };
    differ("commit", |part| part.environment.git_commit.as_ref().map(|c| format!("{c:.12}")));
    differ("version of kbench", |part| Some(part.environment.kbench.clone()));
    differ("compiler", |part| Some(part.environment.rustc.clone()));
    differ("baseline", |part| {
        Some(format!("{} ({:?})", part.baseline.as_ref()?.name, part.baseline.as_ref()?.method))
    });
    differ("seed", |part| Some(part.seed.to_string()));
    for part in parts {
        let machine = &part.environment.machine;
        found.extend(part.warnings.iter().map(|warning| format!("{machine}: {warning}")));
    }
    found
}

fn part(report: &Report) -> PartReport {
    PartReport {
        run: report.run.clone(),
        machine: report.environment.machine.clone(),
        started: report.started,
        partition: report.plan.partition.clone(),
        environment: report.environment.clone(),
        device: report.device.clone(),
        warnings: report.warnings.clone(),
        rows: report.rows.len(),
    }
}

/// Writes on every row where it is from.
fn mark(part: &mut Report) {
    let machine = &part.environment.machine;
    for row in part.rows.iter_mut().chain(&mut part.searched) {
        row.machine = Some(machine.clone());
    }
}

/// Takes over what another part found.
fn absorb(merged: &mut Report, part: Report) {
    merged.started = merged.started.min(part.started);
    merged.launches = merged.launches.max(part.launches);
    merged.seconds.checking += part.seconds.checking;
    merged.seconds.measuring += part.seconds.measuring;
    merged.seconds.inside += part.seconds.inside;
    merged.seconds.searching += part.seconds.searching;
    merged.seconds.lost += part.seconds.lost;
    merged.seconds.budget += part.seconds.budget;
    let measuring = merged.seconds.measuring;
    merged.seconds.inside_share = (measuring > 0.0).then_some(merged.seconds.inside / measuring);
    let shares = [merged.contaminated_share, part.contaminated_share];
    merged.contaminated_share = shares.into_iter().flatten().reduce(f64::max);
    merged.device = merged.device.take().or(part.device);
    for worker in part.workers {
        if !merged.workers.contains(&worker) {
            merged.workers.push(worker);
        }
    }
    merged.rows.extend(part.rows);
    merged.kernels.extend(part.kernels);
    merged.crossovers.extend(part.crossovers);
    merged.scaling.extend(part.scaling);
    merged.growth.extend(part.growth);
    merged.searched.extend(part.searched);
    for kernel in part.plan.kernels {
        if !merged.plan.kernels.contains(&kernel) {
            merged.plan.kernels.push(kernel);
        }
    }
    match (&mut merged.baseline, part.baseline) {
        (Some(own), Some(other)) => {
            own.gone.extend(other.gone);
            own.fresh.extend(other.fresh);
            own.shifts.extend(other.shifts);
        }
        (own, other) => *own = own.take().or(other),
    }
}

/// Adjusts what a part says for the number of parts: probabilities, intervals, verdicts, and what follows from verdicts.
fn adjust(part: &mut Report, parts: f64, significance: f64) {
    if parts < 2.0 {
        return;
    }
    let PlanReport { error_rate, margin, .. } = part.plan;
    for rows in [&mut part.rows, &mut part.searched] {
        // By the false-discovery rate the level of all is in proportion to how many differences there are.
        let found = |rows: &[RowReport], most: f64| {
            let is_found = |row: &&RowReport| row.comparison.p_adjusted.is_some_and(|p| p <= most);
            rows.iter().filter(is_found).count().max(1) as f64
        };
        let share = match error_rate {
            ErrorRate::Discovery => found(rows, significance / parts) / found(rows, significance),
            ErrorRate::Family => 1.0,
        };
        for row in rows.iter_mut() {
            let found = &mut row.comparison;
            let furthest = found.at_most.map_or(f64::INFINITY, f64::ln_1p);
            let without = Judgement::without_difference(furthest, margin);
            widen(found, share / parts);
            if stricter(&mut found.p_adjusted, &mut found.verdict, parts, significance, without) {
                found.speedup_low = found.speedup_low.map(|low| low.min(1.0));
                found.speedup_high = found.speedup_high.map(|high| high.max(1.0));
            }
            let (p, verdict) = (&mut row.change.change_p_adjusted, &mut row.change.change_verdict);
            stricter(p, verdict, parts, significance, Judgement::Inconclusive);
        }
        rank_again(rows);
    }
    let Report { rows, searched, crossovers, scaling, growth, kernels, .. } = part;
    *kernels = kernel_reports(rows, searched, crossovers, scaling, growth);
}

/// Raises a probability, and says whether it withdraws a difference that is not shown any more.
fn stricter(
    p: &mut Option<f64>,
    verdict: &mut Option<String>,
    parts: f64,
    significance: f64,
    without: Judgement,
) -> bool {
    *p = p.map(|p| (p * parts).min(1.0));
    let Some(text) = verdict.as_mut().filter(|_| p.is_none_or(|p| p > significance)) else {
        return false;
    };
    let named = Judgement::of(text).filter(|judgement| judgement.is_different());
    if let Some(reservation) = named.and_then(|named| text.strip_suffix(named.word())) {
        *text = format!("{reservation}{}", without.word());
    }
    named.is_some()
}

/// Widens the interval of a speed-up to a share of the error rate that it has.
fn widen(found: &mut ComparisonReport, share: f64) {
    let ComparisonReport { speedup, speedup_low, speedup_high, speedup_confidence, df, .. } = found;
    if let (Some(speedup), Some(low), Some(high), Some(confidence), Some(df)) =
        (*speedup, *speedup_low, *speedup_high, *speedup_confidence, *df)
    {
        let among = 1.0 - (1.0 - confidence) * share;
        let quantile = |confidence: f64| student_quantile(0.5 + confidence / 2.0, df);
        let factor = quantile(among) / quantile(confidence);
        let end = |end: f64| speedup * (end / speedup).powf(factor);
        (*speedup_low, *speedup_high) = (Some(end(low)), Some(end(high)));
        *speedup_confidence = Some(among);
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_document;
    use super::*;

    /// The run of the fixture as a part: of one kernel, on one machine.
    fn part_of(run: &str, machine: &str, kernel: &str, partition: Option<&str>) -> Report {
        let mut report = read_document(include_str!("fixtures/schema-1.json")).expect("readable");
        report.run = run.into();
        report.environment.machine = machine.into();
        report.plan.partition = partition.map(Into::into);
        report.plan.kernels = ["a::one", "a::two", "a::three"].map(Into::into).into();
        for row in report.rows.iter_mut().chain(&mut report.searched) {
            row.name = row.name.replace(&row.kernel, kernel);
            row.kernel = kernel.into();
        }
        report.kernels.iter_mut().for_each(|own| own.kernel = kernel.into());
        report
    }

    #[test]
    fn rows_know_their_machine_and_missing_parts_are_named() {
        let parts = [
            part_of("r2", "mb", "a::two", Some("slice:2/3")),
            part_of("r1", "ma", "a::one", Some("slice:1/3")),
        ];
        let rows: usize = parts.iter().map(|part| part.rows.len()).sum();
        let merged = merge(parts.to_vec()).expect("merged");
        assert_eq!(merged.rows.len(), rows);
        for row in &merged.rows {
            let machine = if row.kernel == "a::one" { "ma" } else { "mb" };
            assert_eq!(row.machine.as_deref(), Some(machine));
        }
        assert_eq!(merged.missing, ["a::three"]);
        assert!(merged.warnings[0].contains("no run of slice:3/3"), "{:?}", merged.warnings);
        assert!(merged.warnings[1].contains("a::three"), "{:?}", merged.warnings);
        let about: Vec<(&str, usize)> =
            merged.parts.iter().map(|part| (part.run.as_str(), part.rows)).collect();
        assert_eq!(about, [("r1", rows / 2), ("r2", rows / 2)]);
        let [first, second] = parts;
        let again = merge(vec![second, first]).expect("merged");
        assert_eq!(
            (again.run, again.rows[0].name.clone()),
            (merged.run, merged.rows[0].name.clone())
        );
        assert!(matches!(merge(vec![again_merged(merged.parts)]), Err(MergeError::Merged { .. })));
    }

    fn again_merged(parts: Vec<PartReport>) -> Report {
        Report { parts, ..part_of("r", "m", "a::one", None) }
    }

    #[test]
    fn a_repetition_is_refused_and_another_machine_is_none() {
        let part = |run, machine| part_of(run, machine, "a::one", None);
        let error = merge(vec![part("r1", "ma"), part("r2", "ma")]).expect_err("twice").to_string();
        assert!(error.contains("runs r1 and r2") && error.contains("machine ma"), "{error}");
        assert!(merge(vec![part("r1", "ma"), part("r1", "ma")]).is_err(), "the same file twice");
        let merged = merge(vec![part("r1", "ma"), part("r2", "mb")]).expect("two machines");
        assert_eq!(merged.parts.len(), 2);
        assert!(matches!(merge(Vec::new()), Err(MergeError::Nothing)));
    }

    #[test]
    fn verdicts_hold_among_all_comparisons_of_the_whole() {
        let mut parts = [("r1", "ma", "a::one"), ("r2", "mb", "a::two")]
            .map(|(run, machine, kernel)| part_of(run, machine, kernel, None));
        for part in &mut parts {
            for (row, p) in part.rows.iter_mut().zip([0.03, 0.001]) {
                row.comparison.p_adjusted = Some(p);
                row.comparison.verdict = Some("provisional faster".into());
            }
        }
        let merged = merge(parts.to_vec()).expect("merged");
        let found: Vec<_> = merged.rows[..2].iter().map(|row| row.comparison.clone()).collect();
        assert_eq!(found[0].p_adjusted, Some(0.06));
        assert_eq!(found[0].verdict.as_deref(), Some("provisional inconclusive"));
        assert_eq!(found[1].p_adjusted, Some(0.002));
        assert_eq!(found[1].verdict.as_deref(), Some("provisional faster"));
    }
}
