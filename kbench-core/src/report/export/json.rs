//! JSON: the versioned run document, and its rows as lines for other programs.

use super::indented::{compact, indented};
use crate::report::Report;

/// The run document, indented.
pub fn json(report: &Report) -> serde_json::Result<String> {
    indented(report)
}

/// The same on one line, for files that nobody reads as they are.
pub fn json_compact(report: &Report) -> serde_json::Result<String> {
    Ok(compact(report)? + "\n")
}

/// One line of JSON for every row, then one for the run without its rows.
pub fn json_rows(report: &Report) -> serde_json::Result<String> {
    let mut text = String::new();
    for row in report.rows.iter().chain(&report.searched) {
        text += &line("row", &compact(row)?);
    }
    text += &line("run", &compact(&report.without_rows())?);
    Ok(text)
}

/// An object with a first field that says what it is, as cargo's own messages have one.
fn line(reason: &str, object: &str) -> String {
    let fields = object.strip_prefix('{').unwrap_or(object);
    format!("{{\"reason\":\"{reason}\",{fields}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tests::fixture;
    use super::*;

    #[test]
    fn a_line_is_its_reason_and_then_the_row_or_the_run() {
        let report = fixture();
        let text = json_rows(&report).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        let (run, rows) = lines.split_last().expect("lines");
        assert_eq!(rows.len(), report.rows.len() + report.searched.len());
        for (line, row) in rows.iter().zip(report.rows.iter().chain(&report.searched)) {
            assert!(line.starts_with(r#"{"reason":"row","name":""#), "{line}");
            let line: Value = line.parse().expect("JSON");
            assert_eq!(line["name"], row.name.as_str());
        }
        assert!(run.starts_with(r#"{"reason":"run","schema":"#), "{run}");
        assert_eq!(run.parse::<Value>().expect("JSON")["run"], report.run.as_str());
    }
}
