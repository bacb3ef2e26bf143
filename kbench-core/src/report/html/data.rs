//! The figures as JSON within the page: what the table is sorted and filtered by, and what can be saved.

use serde_json::{Number, Value, json};

use super::super::export::compact;
use super::super::{RawSamples, Report, RowReport};
use crate::visible::is_obeyed;

/// Figures of a row that are kept, under their names in the run document. Raw samples are not among them: a page would grow
/// by all of them.
const COLUMNS: [&str; 38] = [
    "name",
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
    "at_most",
    "bytes_per_s",
    "flops_per_s",
    "items_per_s",
    "ceiling_share",
    "error",
    "error_max",
    "tolerance",
    "origin",
    "unstable",
    "doubt",
    "launches",
    "best_share",
    "rank",
    "change",
    "change_low",
    "change_high",
    "change_verdict",
    "machine",
];

/// The data as a script element that no browser runs: the names of the columns once, then the rows.
pub(super) fn script(report: &Report) -> String {
    let mut rows: Vec<Vec<Value>> =
        report.rows.iter().chain(&report.searched).map(figures).collect();
    let is_used = |column: usize| rows.iter().any(|row| !row[column].is_null());
    let used: Vec<bool> = (0..COLUMNS.len()).map(is_used).collect();
    for row in &mut rows {
        let mut column = used.iter();
        row.retain(|_| column.next() == Some(&true));
    }
    let columns: Vec<&str> =
        COLUMNS.iter().zip(&used).filter(|(_, used)| **used).map(|(column, _)| *column).collect();
    let data = json!({
        "about": "rows of a kbench run to six digits, without samples; `--export json=PATH` writes all",
        "schema": report.schema,
        "run": report.run,
        "started": report.started,
        "command": report.command,
        "seed": report.seed,
        "columns": columns,
        "rows": rows,
    });
    format!(r#"<script type="application/json" id="data">{}</script>"#, inert(&data.to_string()))
}

/// JSON that holds no tag, and nothing that a browser obeys: these are written as their numbers, which JSON reads as the
/// same.
fn inert(json: &str) -> String {
    let mut inert = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            c if "<>".contains(c) || is_obeyed(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    inert += &format!("\\u{unit:04x}");
                }
            }
            c => inert.push(c),
        }
    }
    inert
}

fn figures(row: &RowReport) -> Vec<Value> {
    // The samples are most of a row, and not wanted.
    let row = RowReport { raw: RawSamples::default(), ..row.clone() };
    // Text is read back: `serde_json::to_value` would compile every type of a row a second time.
    let written = compact(&row).and_then(|text| text.parse());
    let mut fields: Value = written.unwrap_or_default();
    COLUMNS
        .iter()
        .map(|column| rounded(fields.get_mut(*column).map_or(Value::Null, Value::take)))
        .collect()
}

/// Six significant digits: more than any measurement has.
fn rounded(value: Value) -> Value {
    let short = |number: &Number| {
        let figure = number.as_f64().filter(|_| number.is_f64())?;
        let figure: f64 = format!("{figure:.5e}").parse().ok()?;
        if figure.fract() == 0.0 && figure.abs() < 1e15 {
            return Some(Number::from(figure as i64));
        }
        Number::from_f64(figure)
    };
    match value {
        Value::Number(number) => Value::Number(short(&number).unwrap_or(number)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    fn column(name: &str) -> usize {
        COLUMNS.iter().position(|column| *column == name).expect("a column")
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let mut row = row("one", 1);
        row.name = "</script><script>alert(1)</script><!--\u{202e}\u{9b}\n".into();
        let text = inert(&json!(figures(&row)).to_string());
        assert!(!text.contains(['<', '>', '\u{202e}', '\u{9b}']), "{text}");
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back[column("name")], json!(row.name));
    }

    #[test]
    fn figures_are_short_and_have_the_names_of_the_run_document() {
        let mut row = row("one", 1);
        row.time_ns = Some(123.456_789_123);
        let kept = figures(&row);
        assert_eq!(kept[column("time_ns")], json!(123.457));
        assert_eq!(kept[column("work")], json!(1));
        let Ok(Value::Object(document)) = serde_json::to_value(&row) else { panic!("no object") };
        for column in COLUMNS {
            assert!(document.contains_key(column), "{column}");
        }
    }
}
