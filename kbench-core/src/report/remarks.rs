//! What else is to be known of rows, as lines below a table.

use super::kernel_table::{COLUMNS, short_size};
use super::{RowReport, Status, Style};

/// Remarks and reasons of some of all rows of a kernel, each once with the rows that it is about.
pub(super) fn remarks(rows: &[RowReport], all: &[RowReport], style: Style) -> String {
    let mut groups: Vec<(String, Vec<&RowReport>)> = Vec::new();
    for row in rows {
        let remarks = match &row.status {
            Status::Skipped(reason) => vec![format!("skipped: {reason}")],
            Status::Failed(reason) => vec![format!("FAILED: {reason}")],
            Status::Ok => row.remarks.clone(),
        };
        for remark in remarks {
            match groups.iter_mut().find(|(known, _)| *known == remark) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((remark, vec![row])),
            }
        }
    }
    let mut text = String::new();
    for (remark, about) in groups {
        let lines = wrapped(&format!("{}: {remark}", summary(&subjects(all, &about))));
        text += &if remark.starts_with("FAILED") { style.bad(&lines) } else { lines };
        text.push('\n');
    }
    text
}

/// The variants that some rows are about: by name alone when all their rows are among them, else with sizes.
fn subjects(all: &[RowReport], about: &[&RowReport]) -> Vec<String> {
    let count = |rows: &mut dyn Iterator<Item = &RowReport>, variant: &str| {
        rows.filter(|row| row.variant == variant).count()
    };
    let mode = |row: &RowReport| match row.mode.as_str() {
        "warm" => String::new(),
        mode => format!(" {mode}"),
    };
    let mut names = Vec::new();
    for row in about {
        let everywhere =
            count(&mut all.iter(), &row.variant) == count(&mut about.iter().copied(), &row.variant);
        let name = if everywhere {
            row.variant.clone()
        } else {
            format!("{}{} at {}", row.variant, mode(row), short_size(row))
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Text in lines of at most 100 columns, indented, and further from the second on.
pub(super) fn wrapped(text: &str) -> String {
    wrapped_at(text, 2, 5)
}

/// The same with the first line and all others indented by so much, at least by one.
pub(super) fn wrapped_at(text: &str, first: usize, others: usize) -> String {
    let indented = |columns: usize| " ".repeat(columns.max(1) - 1);
    let mut lines = vec![indented(first)];
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            lines.push(indented(others));
        }
        for word in line.split(' ') {
            let last = lines.len() - 1;
            let fits = lines[last].chars().count() + 1 + word.chars().count() <= COLUMNS;
            if fits || lines[last].trim().is_empty() {
                lines[last] += &format!(" {word}");
            } else {
                lines.push(format!("{} {word}", indented(others)));
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
