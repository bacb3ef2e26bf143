//! Putting measured thresholds into the text of a tuning file, without touching what else is in it.
//!
//! The text is cut at the headers of tables. A table `[[threshold]]` ends with its last key, so that a comment in front
//! of the next header stays where it is; everything that is no such table is copied as it came.

use std::fmt;

use toml::de::DeTable;

use super::{FORMAT, TunedThreshold, TuningError};
use crate::settings::{self, is_same_apart_from};

/// How a new file begins.
const COMMENT: &str = "# Thresholds that `--tune` measured; `threshold = tuned(...)` and \
                       `kbench::dispatch!` take them at compile time.";

/// The text of a tuning file with new thresholds in it. `existing` is empty when there is no file yet.
///
/// A threshold replaces that of the same crate, function and kind of machine, with all that was in its table; of several
/// new ones for the same, the last counts. The others are appended.
pub fn merge(existing: &str, new: &[TunedThreshold]) -> Result<String, TuningError> {
    check_format(existing)?;
    let before = tables(existing)?;
    let new = last_of_each(new)?;
    let (existing, mut merged) = match existing.trim().is_empty() {
        true => ("", format!("{COMMENT}\nformat = {FORMAT}\n")),
        false => (existing, String::new()),
    };
    let mut written = vec![false; new.len()];
    for part in parts(existing) {
        let successor = new.iter().position(|threshold| part.is_of(threshold));
        match successor {
            None => merged.push_str(&part.text),
            // Had the file two such tables, the second goes without a successor.
            Some(index) if written[index] => {}
            Some(index) => {
                merged.push_str(&new[index].to_string());
                written[index] = true;
            }
        }
    }
    for (threshold, _) in new.iter().zip(written).filter(|(_, written)| !written) {
        let blank_line = if merged.ends_with('\n') { "\n" } else { "\n\n" };
        merged.push_str(blank_line);
        merged.push_str(&threshold.to_string());
    }
    // The text is cut by lines, which is not all of TOML: this is how it is known that nothing else was touched.
    let is_kept = |after: DeTable<'_>| is_same_apart_from("threshold", &after, &before);
    match existing.is_empty() || tables(&merged).is_ok_and(is_kept) {
        true => Ok(merged),
        false => {
            let line = existing.lines().position(|line| line.contains("threshold"));
            Err(TuningError::Entangled { line: line.map_or(1, |line| line + 1) })
        }
    }
}

/// What the file says.
fn tables(text: &str) -> Result<DeTable<'_>, TuningError> {
    settings::tables(text).map_err(|mistake| {
        let (line, column) = mistake.place(text);
        TuningError::Malformed { line, column, reason: mistake.reason }
    })
}

/// Refuses what this version might misunderstand.
fn check_format(text: &str) -> Result<(), TuningError> {
    let top_level = text.lines().enumerate().take_while(|(_, line)| !is_header(line));
    for (index, line) in top_level {
        let Some(("format", value)) = key_and_value(line) else { continue };
        let digits = value.split('#').next().unwrap_or_default().trim().replace('_', "");
        match digits.parse() {
            Ok(found) if found > FORMAT => {
                return Err(TuningError::NewerFormat { line: index + 1, found });
            }
            Ok(_) => {}
            Err(_) => {
                let text = line.trim().to_owned();
                return Err(TuningError::MalformedFormat { line: index + 1, text });
            }
        }
    }
    Ok(())
}

/// One threshold for every function and machine. Two kernels cannot share a function's name: whoever reads the file
/// would take the threshold of one for that of the other.
fn last_of_each(new: &[TunedThreshold]) -> Result<Vec<&TunedThreshold>, TuningError> {
    let mut last: Vec<&TunedThreshold> = Vec::new();
    for threshold in new {
        match last.iter_mut().find(|earlier| key(earlier) == key(threshold)) {
            None => last.push(threshold),
            Some(earlier) if earlier.kernel == threshold.kernel => *earlier = threshold,
            Some(earlier) => {
                return Err(TuningError::Ambiguous {
                    krate: threshold.krate.clone(),
                    function: threshold.function.clone(),
                    first: earlier.kernel.clone(),
                    second: threshold.kernel.clone(),
                });
            }
        }
    }
    Ok(last)
}

/// What makes two tables be about the same.
fn key(threshold: &TunedThreshold) -> [&str; 3] {
    [&threshold.krate, &threshold.function, &threshold.machine]
}

/// A piece of the file.
struct Part {
    text: String,
    /// Crate, function and machine, when it is the table of a threshold that says so.
    key: Option<[String; 3]>,
}

impl Part {
    fn is_of(&self, threshold: &TunedThreshold) -> bool {
        self.key.as_ref().is_some_and(|own| own.iter().eq(key(threshold)))
    }
}

/// The text in pieces, which together are all of it.
fn parts(text: &str) -> Vec<Part> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut parts = Vec::new();
    let mut rest = &lines[..];
    while let Some(first) = rest.first() {
        let next = rest[1..].iter().position(|line| is_header(line)).map_or(rest.len(), |i| i + 1);
        let (section, others) = rest.split_at(next);
        let end = if is_threshold_header(first) { end_of_table(section) } else { 0 };
        let (table, other) = section.split_at(end);
        parts.push(Part { text: table.concat(), key: key_of_table(table) });
        parts.push(Part { text: other.concat(), key: None });
        rest = others;
    }
    parts
}

/// The number of lines up to the last key.
fn end_of_table(section: &[&str]) -> usize {
    let says_nothing = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    section.iter().rposition(|line| !says_nothing(line)).map_or(0, |last| last + 1)
}

fn key_of_table(table: &[&str]) -> Option<[String; 3]> {
    let value_of = |name: &str| {
        let mut values = table.iter().filter_map(|line| key_and_value(line));
        values.find(|(key, _)| *key == name).and_then(|(_, value)| unquoted(value))
    };
    Some([value_of("crate")?, value_of("function")?, value_of("machine")?])
}

fn is_header(line: &str) -> bool {
    line.trim_start().starts_with('[')
}

fn is_threshold_header(line: &str) -> bool {
    let name = line.trim_start().strip_prefix("[[").and_then(|line| line.split_once("]]"));
    name.is_some_and(|(name, _)| name.trim() == "threshold")
}

fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    Some((key.trim(), value.trim()))
}

/// The text of a quoted string; a comment may follow it.
fn unquoted(value: &str) -> Option<String> {
    let mut characters = value.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            c => text.push(c),
        }
    }
}

/// The table as the file has it.
impl fmt::Display for TunedThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[[threshold]]")?;
        writeln!(f, "crate = {}", quoted(&self.krate))?;
        writeln!(f, "function = {}", quoted(&self.function))?;
        writeln!(f, "kernel = {}", quoted(&self.kernel))?;
        writeln!(f, "base = {}", quoted(&self.base))?;
        writeln!(f, "machine = {}", quoted(&self.machine))?;
        writeln!(f, "value = {}", self.value)?;
        writeln!(f, "low = {}", self.low)?;
        writeln!(f, "high = {}", self.high)?;
        writeln!(f, "code = {}", quoted(&self.code))?;
        writeln!(f, "measured = {}", quoted(&self.measured))?;
        writeln!(f, "how = {}", quoted(&self.how))
    }
}

/// The text as a string of the file, which has the escapes `\"` and `\\` and no others: a control character becomes a
/// blank.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(function: &str, machine: &str, value: u64) -> TunedThreshold {
        TunedThreshold {
            krate: "kernels".into(),
            function: function.into(),
            kernel: "kernels::elementwise::saxpy".into(),
            base: "saxpy".into(),
            machine: machine.into(),
            value,
            low: value - 1,
            high: value + 1,
            code: "1f3a9c0d2b4e5f60".into(),
            measured: "2026-11-15".into(),
            how: "kbench 0.1.0, 15 launches, seed 1".into(),
        }
    }

    fn merged(existing: &str, new: &[TunedThreshold]) -> String {
        merge(existing, new).unwrap()
    }

    #[test]
    fn a_new_file_explains_itself_and_names_its_format() {
        let text = merged("", &[threshold("saxpy_rayon", "a", 100)]);
        let expected = "\
# Thresholds that `--tune` measured; `threshold = tuned(...)` and `kbench::dispatch!` take them at compile time.
format = 1

[[threshold]]
crate = \"kernels\"
function = \"saxpy_rayon\"
kernel = \"kernels::elementwise::saxpy\"
base = \"saxpy\"
machine = \"a\"
value = 100
low = 99
high = 101
code = \"1f3a9c0d2b4e5f60\"
measured = \"2026-11-15\"
how = \"kbench 0.1.0, 15 launches, seed 1\"
";
        assert_eq!(text, expected);
        assert_eq!(merged(" \n", &[threshold("saxpy_rayon", "a", 100)]), expected);
    }

    #[test]
    fn merging_the_same_again_changes_nothing() {
        let new = [threshold("saxpy_rayon", "a", 100), threshold("add_rayon", "a", 7)];
        for existing in ["", "[gate]\nlimit = 3", "# Words.\r\n[[ threshold ]]\r\nvalue = 3"] {
            let once = merged(existing, &new);
            assert!(once.contains(existing.trim()), "{once}");
            assert_eq!(merged(&once, &new), once);
        }
    }

    #[test]
    fn what_is_about_something_else_stays_as_it_is() {
        let ours = threshold("saxpy_rayon", "a", 100).to_string();
        let others = [threshold("add_rayon", "a", 5), threshold("saxpy_rayon", "b", 6)];
        let others = others.map(|other| other.to_string());
        let around = |table: &str| {
            format!(
                "# By hand.\nformat = 1 # the first\n\n[gate]\nlimits = [\n  [1, 2],\n]\n{}\n{table}\n\
                 # About the next table.\n{}\n[kernel.x]\ncrate = \"kernels\"",
                others[0], others[1],
            )
        };
        let text = merged(&around(&ours), &[threshold("saxpy_rayon", "a", 200)]);
        assert_eq!(text, around(&threshold("saxpy_rayon", "a", 200).to_string()));
        assert_eq!(merged(&text, &[]), text);
    }

    #[test]
    fn a_table_that_is_there_twice_is_replaced_by_one() {
        let old = threshold("f", "a", 100).to_string();
        let text =
            merged(&format!("{old}\n{old}"), &[threshold("f", "a", 5), threshold("f", "a", 7)]);
        assert_eq!(text, format!("{}\n", threshold("f", "a", 7)));
    }

    #[test]
    fn names_with_quotes_are_found_again() {
        let odd = |value| threshold("f", "a \"fast\" \\ machine # 1 = 1", value);
        let first = merged("", &[odd(100)]);
        assert!(first.contains(r#"machine = "a \"fast\" \\ machine # 1 = 1""#), "{first}");
        assert_eq!(merged(&first, &[odd(200)]), merged("", &[odd(200)]));
        assert!(merged("", &[threshold("f", "a\nb", 1)]).contains("\"a b\""));
    }

    #[test]
    fn a_file_that_might_be_misunderstood_is_refused() {
        let refused = |text| merge(text, &[]).unwrap_err();
        assert_eq!(refused("\nformat = 2\n"), TuningError::NewerFormat { line: 2, found: 2 });
        let text = "format = \"one\"".to_owned();
        assert_eq!(
            refused("# 1\n format = \"one\""),
            TuningError::MalformedFormat { line: 2, text }
        );
        assert!(merge("[other]\nformat = 7\n", &[]).is_ok(), "the format of another table");
    }

    #[test]
    fn a_file_that_would_be_spoilt_is_left_alone() {
        let ours = threshold("f", "a", 1);
        let malformed = merge("[gate]\nlimit = = 3\n", &[]).unwrap_err().to_string();
        assert!(malformed.starts_with("line 2, column 9 of the tuning file"), "{malformed}");
        let inside = format!("x = \"\"\"\n{ours}\"\"\"\n");
        for text in ["a = 1\nthreshold = 3\n", "\n[threshold]\nx = 1\n", &inside] {
            let error = merge(text, &[TunedThreshold { value: 2, ..ours.clone() }]).unwrap_err();
            assert_eq!(error, TuningError::Entangled { line: 2 }, "{text}");
        }
    }

    #[test]
    fn two_kernels_cannot_share_the_name_of_a_function() {
        let other = TunedThreshold { kernel: "kernels::other".into(), ..threshold("f", "a", 1) };
        let error = merge("", &[threshold("f", "a", 1), other]).unwrap_err().to_string();
        assert!(error.contains("rename one of the functions"), "{error}");
        assert!(error.contains("`kernels::other`"), "{error}");
    }
}
