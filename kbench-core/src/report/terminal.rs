//! The report on a terminal: warnings first, then one table for every kernel by family, then what to take of each.

use std::fmt::Write;

use super::change_table::changes;
use super::device;
use super::findings::Findings;
use super::index::last_of_variants;
use super::kernel_table::{COLUMNS, KernelTable, short_size};
use super::overview::{heading, overview};
use super::remarks::{remarks, wrapped, wrapped_at};
use super::sentences::error_rate;
use super::table::shortened;
use super::{
    MemoryReport, PartReport, Report, RowReport, Seconds, Status, Style, WorkerReport, units,
};
use crate::environment::Environment;
use crate::gauge::CounterFigures;
use crate::infer::Judgement;

/// The whole report as text.
pub fn terminal(report: &Report, style: Style) -> String {
    let mut text = head(report, style);
    let findings = Findings::of(report);
    let kernels = report.rows.chunk_by(RowReport::is_of_same_kernel);
    for (position, (rows, summary)) in kernels.zip(&report.kernels).enumerate() {
        text += &heading(report, position, style);
        text += &kernel(rows, style);
        text += &findings.text(summary, rows, style);
    }
    text += &overview(report, style);
    text += &changes(report, style);
    text += &foot(report, style);
    text
}

fn head(report: &Report, style: Style) -> String {
    let environment = &report.environment;
    let mut text = String::new();
    for warning in &report.warnings {
        let warning = wrapped_at(&format!("warning: {warning}"), 0, 5);
        let _ = writeln!(text, "{}", style.warning(&warning));
    }
    if !report.parts.is_empty() {
        return text + &parts(report);
    }
    let _ = writeln!(
        text,
        "kbench {} · {} · {} · {} · seed {}",
        environment.kbench,
        environment.cpu,
        cores(environment.cores as f64),
        environment.rustc.split(" (").next().unwrap_or_default(),
        report.seed
    );
    if let Some(line) = machine(environment) {
        let _ = writeln!(text, "{line}");
    }
    if let Some(device) = &report.device {
        let _ = writeln!(text, "{}", device.line());
    }
    if report.plan.has_substitutes {
        text += "speed-ups are against the first selected variant: a kernel's own function is not selected\n";
    }
    if report.plan.is_brief {
        text += "element types after the first have one size, because there is no GPU; --all-types measures all\n";
    }
    for line in report.workers.iter().filter_map(WorkerReport::line) {
        let _ = writeln!(text, "{}", wrapped_at(&line, 0, 2));
    }
    text
}

/// The machines of a report that was merged.
fn parts(report: &Report) -> String {
    let mut text = format!("merged from {} runs\n", report.parts.len());
    for part in &report.parts {
        let PartReport { machine, run, partition, environment, device, rows, .. } = part;
        let share = partition.as_ref().map_or_else(String::new, |share| format!(" · {share}"));
        let cores = cores(environment.cores as f64);
        let _ =
            writeln!(text, "{machine}  {} · {cores} · {rows} rows{share} · {run}", environment.cpu);
        if let Some(device) = device {
            let _ = writeln!(text, "{}{}", " ".repeat(machine.chars().count() + 2), device.line());
        }
    }
    text
}

/// What is particular about the machine and the build, as far as it fits on one line.
fn machine(environment: &Environment) -> Option<String> {
    let parts = [
        environment.os.as_deref().map(short_release),
        environment.hypervisor.filter(|is_virtual| *is_virtual).map(|_| "virtual machine".into()),
        environment.container.map(|container| container.name().into()),
        environment.quota.map(|quota| format!("quota {}", cores((quota * 100.0).round() / 100.0))),
        environment.governor.as_ref().map(|governor| format!("governor {governor}")),
        environment.target_cpu.as_ref().map(|cpu| format!("target-cpu {cpu}")),
        environment.git_commit.as_ref().map(|hash| format!("commit {hash:.7}")),
    ];
    let mut line = String::new();
    for part in parts.into_iter().flatten() {
        let longer = if line.is_empty() { part } else { format!("{line} · {part}") };
        if longer.chars().count() <= COLUMNS {
            line = longer;
        }
    }
    (!line.is_empty()).then_some(line)
}

fn cores(number: f64) -> String {
    format!("{number} {}", if number == 1.0 { "core" } else { "cores" })
}

/// A kernel without what follows its first two numbers: `Linux 6.1`.
fn short_release(os: &str) -> String {
    os.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

/// Columns that are left for the element type beside the name of a kernel.
const ROOM_BESIDE_NAME: usize = 12;

/// Seconds that rows which failed have to take before it is worth a word.
const SHOWN_LOSS: f64 = 0.5;

fn kernel(rows: &[RowReport], style: Style) -> String {
    let machine = rows[0].machine.as_ref();
    let machine = machine.map_or_else(String::new, |machine| format!("  on {machine}"));
    let name = shortened(rows[0].kernel.clone(), COLUMNS - ROOM_BESIDE_NAME);
    let title = style.strong(&format!("{name}  {}{machine}", rows[0].element));
    let table = KernelTable::new(rows).render(style);
    let device: Vec<String> = device::lines(rows).iter().map(|l| wrapped(l) + "\n").collect();
    let notes = [legend(rows), check_line(rows), counts(rows), device.concat()].concat();
    let notes = notes + &remarks(rows, rows, style);
    format!("\n{title}\n{table}{notes}")
}

/// What the sizes mean: the axes when there are several, and the labels.
fn legend(rows: &[RowReport]) -> String {
    let axes: Vec<&str> =
        rows[0].size.split(',').filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
    let mut labels: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{} {}", row.label.as_ref()?, short_size(row))))
        .collect();
    labels.dedup();
    let mut parts = Vec::new();
    if axes.len() > 1 {
        parts.push(format!("size is {}", axes.join("×")));
    }
    if !labels.is_empty() {
        parts.push(labels.join(", "));
    }
    if parts.is_empty() { String::new() } else { wrapped(&parts.join(": ")) + "\n" }
}

/// What the results were compared with, and the one that was furthest off.
fn check_line(rows: &[RowReport]) -> String {
    let checked = rows.iter().filter(|row| row.status == Status::Ok);
    let worst =
        checked.filter_map(|row| Some((row.check.error?, row))).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((error, row)) = worst else { return String::new() };
    let against =
        row.check.reference.as_ref().map_or("the base".to_owned(), |name| format!("`{name}`"));
    let mut line = format!(
        "PASS against {against}: relative error {} (norm, {}), {} (one element), tolerance {}",
        units::error(error),
        row.variant,
        units::error(row.check.error_max.unwrap_or(0.0)),
        units::error(row.check.tolerance.unwrap_or(0.0))
    );
    let least = rows.iter().filter_map(|row| row.check.mutation_score).min_by(f64::total_cmp);
    if let Some(least) = least.filter(|least| *least < 0.995) {
        line += &format!(", notices {} of mistakes", units::percent(least));
    }
    wrapped(&line) + "\n"
}

/// What one call allocates and executes, where it was counted: once for every variant, at its largest size.
fn counts(rows: &[RowReport]) -> String {
    let mut text = String::new();
    for row in last_of_variants(rows, |_| true) {
        let mut parts = Vec::new();
        let MemoryReport { allocations, allocated_bytes, allocated_peak_bytes } = row.memory;
        if let Some(((count, bytes), peak)) =
            allocations.zip(allocated_bytes).zip(allocated_peak_bytes)
        {
            parts.push(format!("{count} allocations, {bytes} bytes, peak {peak} bytes"));
        }
        let counters = row.counters;
        let figures = [
            ("cycles", counters.cycles),
            ("instructions", counters.instructions),
            ("cache misses", counters.cache_misses),
            ("branch misses", counters.branch_misses),
        ];
        let shown = |(name, figure): (&str, Option<f64>)| {
            Some(format!("{} {name}", units::digits(figure?)))
        };
        parts.extend(figures.into_iter().filter_map(shown));
        if !parts.is_empty() {
            let line =
                format!("{} at {}: {} per call", row.variant, short_size(row), parts.join(", "));
            text += &(wrapped(&line) + "\n");
        }
    }
    text
}

/// What differences could have been seen, how many of those that are named may be false, and how many comparisons saw
/// neither one nor none.
fn sensitivity_lines(report: &Report) -> String {
    let comparisons = || report.rows.iter().map(|row| &row.comparison);
    let mut seen: Vec<f64> = comparisons().filter_map(|comparison| comparison.detectable).collect();
    seen.sort_by(f64::total_cmp);
    let Some(most) = seen.last() else { return String::new() };
    let percent = |share: f64| match share {
        share if share > 1.0 => "over 100".to_owned(),
        share => units::digits(100.0 * share),
    };
    let (usual, most) = (percent(seen[(seen.len() - 1) / 2]), percent(*most));
    let worst = match usual == most {
        true => String::new(),
        false => format!(" ({most} % in the worst comparison)"),
    };
    let mut text = format!("a difference of {usual} %{worst} is found in four runs out of five\n");
    let _ = writeln!(text, "{}", wrapped_at(&error_rate(&report.plan), 0, 5));
    let with = |is: &dyn Fn(&RowReport) -> bool| report.rows.iter().filter(|row| is(row)).count();
    let is_open = |row: &RowReport| row.judgement() == Some(Judgement::Inconclusive);
    let open = with(&is_open);
    if open > 0 {
        let _ = writeln!(text, "{open} inconclusive: {}", remedy(&report.seconds));
    }
    // Where all are, the line about launches says so.
    let is_alone = |row: &RowReport| is_open(row) && row.comparison.p_adjusted.is_none();
    let alone = with(&is_alone);
    if alone > 0 {
        let _ = writeln!(
            text,
            "{alone} of them have one launch only, and so no verdict among those of several"
        );
    }
    text
}

/// What would decide more comparisons: more time for each row alone does not help where the time for all of them was spent.
fn remedy(seconds: &Seconds) -> &'static str {
    /// Of the budget; a run that stops for another reason has more left than this.
    const SPENT: f64 = 0.95;
    match seconds.measuring >= SPENT * seconds.budget {
        true => "try --thorough, a longer --budget, or select less (--kernel, --size, --type)",
        false => "try --thorough or --measurement-time",
    }
}

/// How many processes measured, and how busy the machine was meanwhile.
fn launches_lines(report: &Report) -> String {
    let of_rows = report.rows.iter().map(|row| row.launches).filter(|launches| *launches > 0);
    let fewest = of_rows.clone().min().unwrap_or(0);
    let mut text = match of_rows.max().unwrap_or(0) {
        1 => {
            "one launch: verdicts are provisional, for another placement in memory may shift them\n"
                .to_owned()
        }
        most if most == fewest => format!("{most} launches of every row\n"),
        most => format!("{fewest} to {most} launches of a row\n"),
    };
    let busy = (100.0 * report.contaminated_share.unwrap_or(0.0)).round();
    if busy > 0.0 {
        let _ = writeln!(
            text,
            "{busy} % of the blocks were taken on a busy machine and do not count, unless there are few others"
        );
    }
    text
}

/// Why something that was asked for could not be counted.
fn counting_lines(report: &Report) -> String {
    let Some(counters) = &report.counters else { return String::new() };
    let mut text = String::new();
    if report.rows.iter().all(|row| row.memory.allocations.is_none()) {
        text += "no allocations were counted: install the allocator that counts them with\n     \
                 #[global_allocator] static ALLOCATOR: kbench::Allocator = kbench::Allocator::system();\n";
    }
    if report.rows.iter().all(|row| row.counters == CounterFigures::default()) {
        text += &(wrapped(&format!("no processor events were counted: {counters}")) + "\n");
    }
    text
}

fn foot(report: &Report, style: Style) -> String {
    let count =
        |wanted: fn(&Status) -> bool| report.rows.iter().filter(|r| wanted(&r.status)).count();
    let measured = count(Status::has_figures);
    let failed = report.failed().count();
    let skipped = count(|status| matches!(status, Status::Skipped(_)));
    let mut text = String::from("\n") + &sensitivity_lines(report);
    if measured > 0 {
        text += &launches_lines(report);
        text += &counting_lines(report);
    }
    let overhead = report.rows.iter().filter_map(|row| row.overhead_share).fold(0.0, f64::max);
    if measured > 0 && overhead > 0.0 {
        let inside = report.seconds.inside_share.unwrap_or(0.0);
        let _ = writeln!(
            text,
            "{:.0} % of the time was spent inside kernels and sentinels; the clock is at most {:.3} % of a sample",
            100.0 * inside,
            100.0 * overhead
        );
    }
    let failures =
        if failed > 0 { style.bad(&format!("{failed} failed")) } else { "0 failed".into() };
    let lost = match report.seconds.lost {
        lost if lost >= SHOWN_LOSS => format!(", lost {}", units::seconds(lost)),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "{measured} measured, {failures}, {skipped} skipped, {} filtered out; checked {}, measured {} of {}{lost}",
        report.filtered_out,
        units::seconds(report.seconds.checking),
        units::seconds(report.seconds.measuring),
        units::seconds(report.seconds.budget),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Container;

    fn silent() -> Environment {
        Environment {
            governor: None,
            quota: None,
            container: None,
            hypervisor: None,
            os: None,
            target_cpu: None,
            git_commit: None,
            ..Environment::read()
        }
    }

    #[test]
    fn what_is_open_is_decided_by_what_was_short() {
        let short = Seconds { measuring: 119.9, budget: 120.0, ..Seconds::default() };
        assert!(remedy(&short).contains("--budget"));
        let plenty = Seconds { measuring: 30.0, ..short };
        assert!(remedy(&plenty).contains("--measurement-time"));
    }

    #[test]
    fn the_machine_is_described_by_what_is_particular_about_it() {
        assert_eq!(machine(&silent()), None);
        let plain = Environment { hypervisor: Some(false), os: Some("Linux 7".into()), ..silent() };
        assert_eq!(machine(&plain).as_deref(), Some("Linux 7"));
        let full = Environment {
            governor: Some("powersave".into()),
            quota: Some(1.5),
            container: Some(Container::Docker),
            hypervisor: Some(true),
            os: Some("Linux 6.1.0-13-amd64".into()),
            target_cpu: Some("native".into()),
            git_commit: Some("1a2b3c4d5e".into()),
            ..silent()
        };
        assert_eq!(
            machine(&full).as_deref(),
            Some(
                "Linux 6.1 · virtual machine · Docker · quota 1.5 cores · governor powersave · target-cpu native"
            )
        );
        let shorter = Environment { target_cpu: None, ..full };
        assert_eq!(
            machine(&shorter).as_deref(),
            Some(
                "Linux 6.1 · virtual machine · Docker · quota 1.5 cores · governor powersave · commit 1a2b3c4"
            )
        );
    }
}
