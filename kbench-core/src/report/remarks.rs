//! What else is to be known of rows, as lines below a table.

use std::collections::{HashMap, HashSet};

use super::kernel_table::{COLUMNS, short_size};
use super::table::shortened;
use super::{RowReport, Status, Style};

/// Remarks and reasons of some of all rows of a kernel, each once with the rows that it is about.
pub(super) fn remarks(rows: &[RowReport], all: &[RowReport], style: Style) -> String {
    let mut groups: Vec<(String, Vec<&RowReport>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for row in rows {
        let remarks = match &row.status {
            Status::Skipped(reason) => vec![format!("skipped: {reason}")],
            Status::Failed(reason) => vec![format!("FAILED: {reason}")],
            Status::Unchecked(_) => [vec![row.status.to_string()], row.remarks.clone()].concat(),
            Status::Ok => row.remarks.clone(),
        };
        for remark in remarks {
            match known.get(&remark) {
                Some(group) => groups[*group].1.push(row),
                None => {
                    known.insert(remark.clone(), groups.len());
                    groups.push((remark, vec![row]));
                }
            }
        }
    }
    let everywhere = counts(all);
    let mut text = String::new();
    for (remark, about) in groups {
        let lines = wrapped(&format!("{}: {remark}", summary(&subjects(&everywhere, &about))));
        text += &if remark.starts_with("FAILED") { style.bad(&lines) } else { lines };
        text.push('\n');
    }
    text
}

/// How many rows every variant has.
fn counts<'a>(rows: impl IntoIterator<Item = &'a RowReport>) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    for row in rows {
        *counts.entry(row.variant.as_str()).or_default() += 1;
    }
    counts
}

/// The variants that some rows are about: by name alone when all their rows are among them, else with sizes.
fn subjects(everywhere: &HashMap<&str, usize>, about: &[&RowReport]) -> Vec<String> {
    let mode = |row: &RowReport| match row.mode.as_str() {
        "warm" => String::new(),
        mode => format!(" {mode}"),
    };
    let here = counts(about.iter().copied());
    let mut seen = HashSet::new();
    let name = |row: &&RowReport| {
        let variant = row.variant.as_str();
        match here.get(variant) == everywhere.get(variant) {
            true => variant.to_owned(),
            false => format!("{variant}{} at {}", mode(row), short_size(row)),
        }
    };
    about.iter().map(name).filter(|name| seen.insert(name.clone())).collect()
}

/// Text in lines of at most 100 columns, indented, and further from the second on; longer words lose their middle.
pub(super) fn wrapped(text: &str) -> String {
    wrapped_at(text, 2, 5)
}

/// The same with the first line and all others indented by so much.
pub(super) fn wrapped_at(text: &str, first: usize, others: usize) -> String {
    let mut lines = vec![" ".repeat(first)];
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            lines.push(" ".repeat(others));
        }
        for (position, word) in line.split(' ').enumerate() {
            let word = shortened(word.to_owned(), COLUMNS - others.min(COLUMNS / 2));
            let last = lines.len() - 1;
            let gap = if position == 0 { "" } else { " " };
            let columns = lines[last].chars().count() + gap.len() + word.chars().count();
            if columns <= COLUMNS || lines[last].trim().is_empty() {
                lines[last] += &format!("{gap}{word}");
            } else {
                lines.push(" ".repeat(others) + &word);
            }
        }
    }
    lines.join("\n")
}

/// The first names of a list, and how many more there are.
fn summary(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one}, {two}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_filled_to_the_last_column_and_longer_words_lose_their_middle() {
        let full = format!("{} {}", "a".repeat(49), "b".repeat(50));
        assert_eq!(wrapped_at(&full, 0, 5), full);
        let over = format!("{full} c\nnext");
        assert_eq!(wrapped_at(&over, 0, 5), format!("{full}\n     c\n     next"));
        let lines = wrapped(&format!("{full} {}", "d".repeat(4096)));
        assert!(lines.lines().all(|line| line.chars().count() <= COLUMNS), "{lines}");
        assert_eq!(lines.lines().nth(1).map(|line| line.trim_start().len()), Some(50));
    }
}
