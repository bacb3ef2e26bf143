//! The table of one kernel: sizes down, figures across.

use std::collections::{HashMap, HashSet};

use super::row::UNCHECKED;
use super::style::Tone;
use super::table::{Align, Cell, LONGEST_CELL, Table};
use super::{RowReport, Status, Style, units};
use crate::infer::Judgement;
use crate::kernel::Mode;

/// Tables stay within this many columns; only names of variants are shortened for it.
pub(super) const COLUMNS: usize = 100;
/// A variant's name is not shortened below this.
const SHORTEST_NAME: usize = 12;

/// Rows of one kernel and element type, with what they have in common.
pub(super) struct KernelTable<'a> {
    rows: Vec<&'a RowReport>,
    /// Every verdict is provisional, so the title says it once.
    all_provisional: bool,
    /// Some variant has several thread counts, so there is a column for them.
    several_threads: bool,
    /// Some row is under a ceiling, so there is a column for its share.
    has_ceilings: bool,
    throughput: Throughput,
    /// The base was named: how close others come to it matters more than who is best.
    has_yardstick: bool,
}

/// Room for words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// Verdicts say how large a difference can be.
    Full,
    /// They do not.
    Scarce,
}

/// The rate that the author asked for first: arithmetic, else memory, else work.
#[derive(Clone, Copy)]
enum Throughput {
    Flops,
    Bytes,
    Items,
}

impl Throughput {
    fn of(rows: &[RowReport]) -> Self {
        if rows.iter().any(|row| row.flops_per_s.is_some()) {
            Throughput::Flops
        } else if rows.iter().any(|row| row.bytes_per_s.is_some()) {
            Throughput::Bytes
        } else {
            Throughput::Items
        }
    }

    fn title(self) -> &'static str {
        match self {
            Throughput::Flops => "GFLOP/s",
            Throughput::Bytes => "GB/s",
            Throughput::Items => "G/s",
        }
    }

    fn rate(self, row: &RowReport) -> Option<f64> {
        match self {
            Throughput::Flops => row.flops_per_s,
            Throughput::Bytes => row.bytes_per_s,
            Throughput::Items => row.items_per_s,
        }
    }
}

impl<'a> KernelTable<'a> {
    pub(super) fn new(rows: &'a [RowReport]) -> Self {
        let verdicts: Vec<&str> =
            rows.iter().filter_map(|row| row.comparison.verdict.as_deref()).collect();
        KernelTable {
            rows: shown(rows),
            all_provisional: !verdicts.is_empty()
                && verdicts.iter().all(|verdict| verdict.starts_with("provisional ")),
            several_threads: several_threads(rows),
            has_ceilings: rows.iter().any(|row| row.ceiling_share.is_some()),
            throughput: Throughput::of(rows),
            has_yardstick: rows.iter().any(|row| row.class.is_some()),
        }
    }

    /// The lines; when they are too wide, columns move together, and then names of variants are cut.
    pub(super) fn render(&self, style: Style) -> String {
        let table = self.table(usize::MAX, Room::Full);
        if table.width() <= COLUMNS {
            return table.render(style);
        }
        let excess = self.table(usize::MAX, Room::Scarce).dense().width().saturating_sub(COLUMNS);
        let name = |row: &RowReport| name(row, None, usize::MAX).chars().count();
        let longest = self.rows.iter().copied().map(name).max().unwrap_or(0).min(LONGEST_CELL);
        let limit = longest.saturating_sub(excess).max(SHORTEST_NAME);
        self.table(limit, Room::Scarce).dense().render(style)
    }

    fn table(&self, name_limit: usize, room: Room) -> Table<'_> {
        let mut axes = self.rows[0].axes.keys();
        let size = axes.next().filter(|_| axes.next().is_none()).map_or("size", String::as_str);
        let mut table = Table::new(vec![
            (size, Align::Right),
            ("variant", Align::Left),
            ("threads", Align::Right),
            ("time", Align::Right),
            ("±95 %", Align::Right),
            ("speed-up", Align::Right),
            ("interval", Align::Left),
            ("adj. p", Align::Right),
            (if self.has_yardstick { "" } else { "best" }, Align::Right),
            ("class", Align::Left),
            (self.throughput.title(), Align::Right),
            (if self.has_ceilings { "ceiling" } else { "" }, Align::Right),
            (if self.all_provisional { "provisional" } else { "verdict" }, Align::Left),
        ]);
        let mut last = None;
        for &row in &self.rows {
            let above = last.replace(row).filter(|above: &&RowReport| above.size == row.size);
            let size = if above.is_some() { String::new() } else { short_size(row) };
            table.push(self.line(row, size, name(row, above, name_limit), room));
        }
        table
    }

    fn line(&self, row: &RowReport, size: String, name: String, room: Room) -> Vec<Cell> {
        let comparison = &row.comparison;
        let ends = row.time_low_ns.zip(row.time_high_ns);
        let half =
            row.time_ns.zip(ends).map(|(time, (low, high))| units::half_width(time, low, high));
        let interval = comparison
            .speedup_low
            .zip(comparison.speedup_high)
            .map(|(low, high)| units::interval(low, high));
        let threads = self.several_threads && row.backend == "parallel";
        let text = |value: Option<String>| Cell::new(value.unwrap_or_default());
        vec![
            Cell::new(size),
            Cell::new(name),
            text(threads.then(|| row.threads.to_string())),
            text(row.time_ns.map(units::time)),
            text(half),
            text(comparison.speedup.map(|s| format!("{}×", units::ratio(s)))),
            text(interval),
            text(comparison.p_adjusted.map(units::probability)),
            text(best(row).filter(|_| !self.has_yardstick)),
            text(row.class.clone()),
            text(self.throughput.rate(row).map(|rate| units::digits(rate / 1e9))),
            text(row.ceiling_share.map(|share| format!("{:.0} %", 100.0 * share))),
            self.verdict(row, room),
        ]
    }

    fn verdict(&self, row: &RowReport, room: Room) -> Cell {
        let mark = match row.reservation() {
            _ if row.unstable => " (?)",
            Some(_) => " (≠)",
            None => "",
        };
        let words = match room {
            Room::Full => row.verdict_in_full(),
            Room::Scarce => row.comparison.verdict.clone(),
        };
        match (&row.status, words) {
            (Status::Failed(_), _) => Cell::toned("FAILED", Tone::Bad),
            (Status::Skipped(_), _) => Cell::new("skipped"),
            (Status::Unchecked(_), _) => Cell::toned(UNCHECKED, Tone::Bad),
            (Status::Ok, None) if row.is_base => Cell::new(format!("base{mark}")),
            (Status::Ok, None) => Cell::new(""),
            (Status::Ok, Some(words)) => {
                let bare = words.strip_prefix("provisional ").filter(|_| self.all_provisional);
                let tone = match row.judgement() {
                    _ if !mark.is_empty() => Tone::Plain,
                    Some(Judgement::Faster) => Tone::Good,
                    Some(Judgement::Slower) => Tone::Bad,
                    _ => Tone::Plain,
                };
                Cell::toned(format!("{}{mark}", bare.unwrap_or(&words)), tone)
            }
        }
    }
}

/// All rows but those of variants that are skipped at every size, whose reason is below the table; all when none would be left.
fn shown(rows: &[RowReport]) -> Vec<&RowReport> {
    let is_skipped = |row: &&RowReport| matches!(row.status, Status::Skipped(_));
    let present: HashSet<&str> =
        rows.iter().filter(|row| !is_skipped(row)).map(|row| row.variant.as_str()).collect();
    let is_shown = |row: &&RowReport| present.is_empty() || present.contains(row.variant.as_str());
    rows.iter().filter(is_shown).collect()
}

/// The best time of the cell over that of the row, where there is a choice.
fn best(row: &RowReport) -> Option<String> {
    let share = row.best_share.filter(|_| row.rank.is_some())?;
    Some(format!("{:.0} %", 100.0 * share))
}

fn several_threads(rows: &[RowReport]) -> bool {
    let mut threads: HashMap<&str, usize> = HashMap::new();
    rows.iter()
        .any(|row| *threads.entry(row.variant.as_str()).or_insert(row.threads) != row.threads)
}

/// `64×1024`.
pub(super) fn short_size(row: &RowReport) -> String {
    bare_size(&row.size)
}

/// `64×1024` for `rows=64,dim=1024`.
pub(super) fn bare_size(size: &str) -> String {
    let value = |pair: &'_ str| pair.split_once('=').map_or(pair, |(_, value)| value).to_owned();
    size.split(',').map(value).collect::<Vec<_>>().join("×")
}

/// The variant, with its mode where it is on a device; below the same variant, the mode alone.
fn name(row: &RowReport, above: Option<&RowReport>, limit: usize) -> String {
    let is_same = above.is_some_and(|above| above.variant == row.variant && above.mode != row.mode);
    match row.mode == Mode::Warm.name() {
        true => shorten(row, limit),
        false if is_same => format!("  {}", row.mode),
        false => {
            let room = limit.saturating_sub(row.mode.len() + 1).max(SHORTEST_NAME);
            format!("{} {}", shorten(row, room), row.mode)
        }
    }
}

/// A variant's name within so many columns: without the kernel's name in front, which the title has, and then without its end.
fn shorten(row: &RowReport, limit: usize) -> String {
    let name = &row.variant;
    if name.chars().count() <= limit {
        return name.to_owned();
    }
    let kernel = row.kernel.rsplit("::").next().unwrap_or_default();
    let rest = name.strip_prefix(kernel).filter(|rest| rest.starts_with('_'));
    let name = rest.map_or_else(|| name.to_owned(), |rest| format!("…{rest}"));
    if name.chars().count() <= limit {
        return name;
    }
    name.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_long_name_loses_the_kernel_in_front_before_it_loses_its_end() {
        let named = |kernel: &str, variant| RowReport { kernel: kernel.into(), ..row(variant, 1) };
        let tiled = named("kernels::attention::attention", "attention_cuda_tiled");
        assert_eq!(shorten(&tiled, 20), "attention_cuda_tiled");
        assert_eq!(shorten(&tiled, 12), "…_cuda_tiled");
        assert_eq!(shorten(&tiled, 9), "…_cuda_t…");
        let base = named("kernels::attention::attention", "attention");
        assert_eq!(shorten(&base, 6), "atten…");
        assert_eq!(shorten(&named("demo::sum", "summation"), 6), "summa…");
    }

    #[test]
    fn a_variant_that_is_skipped_everywhere_takes_no_lines() {
        let skipped = |variant| RowReport {
            status: Status::Skipped("no CUDA driver".into()),
            ..row(variant, 1)
        };
        let rendered = |rows: &[RowReport]| KernelTable::new(rows).render(Style::PLAIN);
        let some = [row("double", 1), row("partly", 1), skipped("double_cuda"), skipped("partly")];
        let text = rendered(&some);
        assert!(text.contains("double") && !text.contains("double_cuda"), "{text}");
        assert_eq!(text.matches("partly").count(), 2, "{text}");
        assert!(rendered(&some[2..]).contains("double_cuda"), "all are skipped, and so are shown");
    }

    #[test]
    fn an_interval_from_too_few_launches_is_short() {
        let mut wide = row("double", 1);
        (wide.time_ns, wide.time_low_ns, wide.time_high_ns) = (Some(1.0), Some(1e-33), Some(1e33));
        wide.comparison.speedup = Some(1.5);
        (wide.comparison.speedup_low, wide.comparison.speedup_high) = (Some(1e-33), Some(1e33));
        let text = KernelTable::new(&[wide]).render(Style::PLAIN);
        assert!(text.contains("±>1000 %") && text.contains("[<1e-6, >1e6]"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }

    #[test]
    fn a_verdict_says_what_it_leaves_open_where_there_is_room() {
        let open = |variant: &str| {
            let mut open = RowReport { time_ns: Some(1.0), ..row(variant, 1) };
            open.comparison.verdict = Some("inconclusive".into());
            open.comparison.at_most = Some(0.123);
            open
        };
        let text = KernelTable::new(&[open("short")]).render(Style::PLAIN);
        assert!(text.contains("inconclusive, at most 12 %"), "{text}");
        let mut long = open(&"long".repeat(30));
        (long.time_low_ns, long.time_high_ns) = (Some(0.9), Some(1.1));
        long.comparison.speedup = Some(1.0);
        (long.comparison.speedup_low, long.comparison.speedup_high) = (Some(0.9), Some(1.1));
        let text = KernelTable::new(&[long]).render(Style::PLAIN);
        assert!(text.contains("inconclusive") && !text.contains("at most"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        let doubtful = RowReport { doubt: Some(super::super::Doubt::Bimodal), ..open("two") };
        let text = KernelTable::new(&[doubtful]).render(Style::PLAIN);
        assert!(text.contains("at most 12 % (≠)"), "{text}");
    }

    #[test]
    fn a_row_that_failed_is_marked_in_its_line() {
        let failed = RowReport { status: Status::Failed("an error".into()), ..row("wrong", 1) };
        let text = KernelTable::new(&[row("right", 1), failed]).render(Style::PLAIN);
        let is_marked = |variant| {
            let line = text.lines().find(|line| line.contains(variant)).expect("a line");
            line.trim_end().ends_with("FAILED")
        };
        assert!(is_marked("wrong") && !is_marked("right"), "{text}");
    }
}
