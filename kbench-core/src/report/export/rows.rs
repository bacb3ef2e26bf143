//! Which rows are exported, and what they are called.
//!
//! A name is `kernel/variant/type/axis=value,axis=value` as everywhere in kbench; where the variant alone does not tell how
//! it ran, threads and mode follow it, as in `saxpy/saxpy_rayon,threads=2/f32/n=1024`. It depends on its row alone, so that
//! the same row has the same name in every run. What is not a letter, a digit or one of `_:-` is percent-encoded: no reader
//! finds a blank, a quote, a slash or markup where it expects a name, and different rows keep different names.
//!
//! Rows of sizes that nobody listed, measured to find a crossover, are not exported to tools that follow a name over time:
//! other runs search elsewhere, and one search may measure a row twice.

use std::collections::HashMap;
use std::fmt;

use crate::hash::fnv64;
use crate::report::{Report, RowReport, Status};

/// Bytes of one part of a name; four of them are less than any reader's limit (Bencher's is 1024).
const LONGEST_PART: usize = 200;

/// What a row is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    /// The kernel's path.
    pub(super) kernel: String,
    /// The variant, and how it ran where that is not plain.
    pub(super) implementation: String,
    /// Element type.
    pub(super) element: String,
    /// The size.
    pub(super) size: String,
}

impl Name {
    fn of(row: &RowReport) -> Self {
        let mut implementation = part(&row.variant, "");
        for (key, value) in particulars(row) {
            implementation += &format!(",{key}={}", part(&value, ""));
        }
        Name {
            kernel: part(&row.kernel, ""),
            implementation,
            element: part(&row.element, ""),
            size: part(&row.size, "=,"),
        }
    }

    /// The name below its kernel.
    pub(super) fn below_kernel(&self) -> String {
        format!("{}/{}/{}", self.implementation, self.element, self.size)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kernel, self.below_kernel())
    }
}

/// How a row ran, as far as its variant does not say it: threads of parallel variants, modes other than warm, and the
/// machine in a report that was merged.
fn particulars(row: &RowReport) -> Vec<(&'static str, String)> {
    let has_threads = row.backend == "parallel" || row.threads != 1;
    let parts = [
        has_threads.then(|| ("threads", row.threads.to_string())),
        (row.mode != "warm").then(|| ("mode", row.mode.clone())),
        row.machine.clone().map(|machine| ("machine", machine)),
    ];
    parts.into_iter().flatten().collect()
}

/// Text as a part of a name: plain characters as they are, and with them those that are given.
pub(super) fn part(text: &str, given: &str) -> String {
    let mut encoded = String::new();
    for character in text.chars() {
        let is_plain = character.is_ascii_alphanumeric() || "_:-".contains(character);
        if is_plain || given.contains(character) {
            encoded.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                encoded += &format!("%{byte:02X}");
            }
        }
    }
    match encoded.is_empty() {
        true => "%".to_owned(),
        false => shortened(encoded, LONGEST_PART),
    }
}

/// ASCII text of at most so many bytes; a hash at its end tells it from others that begin alike.
pub(super) fn shortened(text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let hash = format!("-{:016x}", fnv64(text.as_bytes()));
    text[..limit - hash.len()].to_owned() + &hash
}

/// A row and its name.
#[derive(Clone, Debug)]
pub(super) struct Named<'a> {
    pub(super) name: Name,
    pub(super) row: &'a RowReport,
}

/// The rows that were asked for.
pub(super) fn listed(report: &Report) -> Vec<Named<'_>> {
    named(report.rows.iter())
}

/// The rows that were asked for, and those that a search of crossovers found to fail.
pub(super) fn judged(report: &Report) -> Vec<Named<'_>> {
    let is_failed = |row: &&RowReport| matches!(row.status, Status::Failed(_));
    named(report.rows.iter().chain(report.searched.iter().filter(is_failed)))
}

/// A row that was told before is told again under another name: readers keep one value for each.
fn named<'a>(rows: impl Iterator<Item = &'a RowReport>) -> Vec<Named<'a>> {
    let mut told: HashMap<Name, usize> = HashMap::new();
    let name = |row: &'a RowReport| {
        let mut name = Name::of(row);
        let times = told.entry(name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            name.implementation += &format!(",again={times}");
        }
        Named { name, row }
    };
    rows.map(name).collect()
}

/// A row that has a time.
pub(super) struct Timed<'a> {
    pub(super) name: Name,
    pub(super) row: &'a RowReport,
    /// Nanoseconds of one call.
    pub(super) time: f64,
    /// Its 95 % interval, where it has ends.
    pub(super) interval: Option<(f64, f64)>,
    /// Calls per sample.
    pub(super) calls: u64,
    /// Nanoseconds of one call in every sample; at least one.
    pub(super) samples: Vec<f64>,
}

/// The rows that were asked for and have a time.
pub(super) fn timed(report: &Report) -> Vec<Timed<'_>> {
    listed(report).into_iter().filter_map(Timed::of).collect()
}

impl<'a> Timed<'a> {
    pub(super) fn of(Named { name, row }: Named<'a>) -> Option<Self> {
        let is_time = |time: &f64| time.is_finite() && *time > 0.0;
        let time = row.time_ns.filter(is_time).filter(|_| row.status.has_figures())?;
        let ends = row.time_low_ns.zip(row.time_high_ns);
        let interval = ends.filter(|(low, high)| low.is_finite() && high.is_finite());
        let all = row.raw.samples.iter().flatten().flatten().copied();
        let mut samples: Vec<f64> = all.filter(|sample| sample.is_finite()).collect();
        if samples.is_empty() {
            samples.push(time);
        }
        Some(Timed { name, row, time, interval, calls: row.calls.unwrap_or(1).max(1), samples })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::row::tests::row;

    #[test]
    fn a_name_tells_how_its_row_ran() {
        let name = |row: &RowReport| Name::of(row).to_string();
        let serial = row("plain", 8);
        assert_eq!(name(&serial), serial.name);
        let parallel = RowReport { backend: "parallel".into(), threads: 2, ..serial.clone() };
        assert_eq!(name(&parallel), "crate::kernel/plain,threads=2/f32/n=8");
        let cold = RowReport { mode: "cold".into(), machine: Some("1f".into()), ..serial };
        assert_eq!(name(&cold), "crate::kernel/plain,mode=cold,machine=1f/f32/n=8");
    }

    #[test]
    fn whatever_the_text_its_part_is_plain_and_its_own() {
        let texts = ["", "a b", "a_b", "a%20b", "../..", "a\nb", "<script>", "\"'`|,=", "🚀"];
        let parts: Vec<String> = texts.iter().map(|text| part(text, "")).collect();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_:-%".contains(c);
        assert!(parts.iter().all(|part| !part.is_empty() && part.chars().all(is_plain)));
        for (index, part) in parts.iter().enumerate() {
            assert!(!parts[..index].contains(part), "{part}");
        }
        let long = [part(&"x".repeat(500), ""), part(&"x".repeat(501), "")];
        assert!(long[0].len() == LONGEST_PART && long[0] != long[1], "{long:?}");
    }

    #[test]
    fn no_name_is_given_twice() {
        let rows = [row("a", 1), row("a", 1), row("a", 2)];
        let names: Vec<String> = named(rows.iter()).iter().map(|n| n.name.to_string()).collect();
        assert_eq!(names[1], "crate::kernel/a,again=2/f32/n=1");
        assert!(names[0] != names[1] && names[1] != names[2]);
    }

    #[test]
    fn what_failed_or_was_skipped_has_no_time() {
        let of = |status: Status, time: Option<f64>| {
            let row = RowReport { status, time_ns: time, ..row("a", 1) };
            Timed::of(Named { name: Name::of(&row), row: &row }).map(|timed| timed.samples)
        };
        assert_eq!(of(Status::Ok, Some(2.5)), Some(vec![2.5]));
        assert_eq!(of(Status::Failed("wrong".into()), Some(2.5)), None);
        assert_eq!(of(Status::Skipped("no device".into()), Some(2.5)), None);
        assert_eq!(of(Status::Ok, None), None);
        assert_eq!(of(Status::Ok, Some(f64::INFINITY)), None);
    }
}
