//! How far kbench is from those who took the same times otherwise.

use crate::record::{Taken, Times};

/// Above this, in microseconds, a departure is a share; below, a time.
const LONG: f64 = 20.0;

/// What kbench's times are held against, by mode: a name, and whose time it is.
const JUDGES: [(&str, &str, Judge); 3] = [
    ("cold", "`ncu`", |times| times.ncu_us),
    ("hot", "C++ loop", |times| times.cpp.map(|taken| taken.us)),
    ("graph", "C++ graph", |times| times.cpp.map(|taken| taken.us)),
];

type Judge = fn(&Times) -> Option<f64>;

/// Those who took times in several processes.
const WITNESSES: [(&str, Witness); 2] =
    [("kbench", |times| times.kbench), ("C++", |times| times.cpp)];

type Witness = fn(&Times) -> Option<Taken>;

fn ours(times: &Times) -> Option<f64> {
    times.kbench.map(|taken| taken.us)
}

/// A row for each kernel and size, two columns for each mode.
pub(crate) fn table(times: &[Times]) -> String {
    let mut head = String::from("| kernel | size |");
    for (mode, name, _) in JUDGES {
        head += &format!(" {mode}, kbench | {name} |");
    }
    let mut table = format!("{head}\n|---|---|{}\n", "---|---|".repeat(JUDGES.len()));
    let mut cases: Vec<(&str, &str)> =
        times.iter().map(|times| (times.kernel.as_str(), times.size.as_str())).collect();
    cases.dedup();
    for (kernel, size) in cases {
        table += &format!("| {kernel} | {} |", size.replace(',', ", "));
        for (mode, _, judge) in JUDGES {
            let found =
                times.iter().find(|t| t.kernel == kernel && t.size == size && t.mode == mode);
            for value in [found.and_then(ours), found.and_then(judge)] {
                table += &value.map_or_else(|| " |".to_owned(), |us| format!(" {us:.2} |"));
            }
        }
        table.push('\n');
    }
    table
}

/// The largest departures from every judge, a line for each mode.
pub(crate) fn departures(times: &[Times]) -> String {
    let mut lines = String::new();
    for (mode, name, judge) in JUDGES {
        let pairs: Vec<(&Times, f64, f64)> = times
            .iter()
            .filter(|times| times.mode == mode)
            .filter_map(|times| Some((times, ours(times)?, judge(times)?)))
            .collect();
        let worst = |is_long: bool, far: fn(f64, f64) -> f64, unit: &str| {
            let among = pairs.iter().filter(|(_, _, theirs)| (*theirs > LONG) == is_long);
            let worst = among
                .map(|(times, ours, theirs)| (far(*ours, *theirs), times))
                .max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
            worst.map_or_else(
                || "nothing".to_owned(),
                |(far, times)| format!("{far:+.2} {unit} ({} {})", times.kernel, times.size),
            )
        };
        let share = |ours: f64, theirs: f64| 100.0 * (ours / theirs - 1.0);
        let difference = |ours: f64, theirs: f64| ours - theirs;
        lines += &format!(
            "{mode} against {name}, {} cases: above {LONG} µs at most {}, below {} or {}\n",
            pairs.len(),
            worst(true, share, "%"),
            worst(false, difference, "µs"),
            worst(false, share, "%")
        );
    }
    lines
}

/// How far processes are apart at most, a line for each witness.
pub(crate) fn spreads(times: &[Times]) -> String {
    let mut lines = String::new();
    for (name, witness) in WITNESSES {
        let widest = times
            .iter()
            .filter_map(|times| {
                witness(times).map(|Taken { least, most, .. }| (most / least, times))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((ratio, Times { kernel, size, mode, .. })) = widest {
            lines += &format!(
                "{name}: the slowest process takes up to {:.1} % longer than the fastest ({mode}, {kernel} {size})\n",
                100.0 * (ratio - 1.0)
            );
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(size: &str, mode: &str, kbench: Option<f64>, other: f64) -> Times {
        Times {
            kernel: "saxpy".into(),
            size: size.into(),
            mode: mode.into(),
            kbench: kbench.map(|us| Taken { us, least: us - 0.1, most: us + 0.1, calls: 8 }),
            cpp: Some(Taken { us: other, least: other - 0.1, most: other, calls: 8 }),
            ncu_us: (mode == "cold").then_some(other),
            ..Times::default()
        }
    }

    #[test]
    fn the_largest_departures_are_named_whatever_their_sign() {
        let times = [
            times("n=1,m=2", "cold", Some(2.5), 2.25),
            times("n=1,m=2", "hot", Some(1.5), 2.0),
            times("n=1,m=2", "graph", None, 1.0),
            times("n=9,m=2", "cold", Some(49.5), 50.0),
            times("n=9,m=2", "hot", Some(50.5), 50.0),
        ];
        let table = table(&times);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        let expected = [
            "| saxpy | n=1, m=2 | 2.50 | 2.25 | 1.50 | 2.00 | | 1.00 |",
            "| saxpy | n=9, m=2 | 49.50 | 50.00 | 50.50 | 50.00 | | |",
        ];
        assert_eq!(rows, expected);
        let expected = "\
cold against `ncu`, 2 cases: above 20 µs at most -1.00 % (saxpy n=9,m=2), below +0.25 µs (saxpy n=1,m=2) or +11.11 % (saxpy n=1,m=2)
hot against C++ loop, 2 cases: above 20 µs at most +1.00 % (saxpy n=9,m=2), below -0.50 µs (saxpy n=1,m=2) or -25.00 % (saxpy n=1,m=2)
graph against C++ graph, 0 cases: above 20 µs at most nothing, below nothing or nothing
";
        assert_eq!(departures(&times), expected);
        let expected = "\
kbench: the slowest process takes up to 14.3 % longer than the fastest (hot, saxpy n=1,m=2)
C++: the slowest process takes up to 11.1 % longer than the fastest (graph, saxpy n=1,m=2)
";
        assert_eq!(spreads(&times), expected);
    }

    #[test]
    fn the_published_table_is_what_was_recorded() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let recorded = root.join("results/gpu-yardstick-2026-11-16.csv");
        let recorded = crate::record::read(&recorded).expect("the record");
        let document = root.join("../docs/gpu.md");
        let document = std::fs::read_to_string(document).expect("the document");
        let table = table(&recorded);
        assert!(document.contains(&table), "docs/gpu.md should have this table:\n{table}");
    }
}
