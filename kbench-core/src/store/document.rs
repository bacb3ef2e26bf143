//! Reading a run document, also one that an older kbench wrote.
//!
//! Each version of the document has a step that makes the next one of it, on plain JSON; an old document takes all steps
//! from its own version on. `docs/run-format.md` tells what changed between versions.
//!
//! Anybody may have written a document, and what it says is shown on terminals: characters that these obey come in as
//! numbers ([`visible`](crate::visible)).

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::calendar::timestamp;
use crate::report::{Report, SCHEMA};
use crate::visible::{in_lines, is_obeyed, on_one_line};

/// Why a text is no run document that can be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is no JSON, or only a part of it.
    #[error("it is no JSON, or was cut off: {0}")]
    Text(#[source] serde_json::Error),
    /// It is JSON, but not a run.
    #[error(
        "it is no run document of kbench: it has no number `schema`; `--export json=PATH` writes one"
    )]
    Foreign,
    /// A newer kbench wrote it.
    #[error(
        "it has schema {found}, and this kbench knows schemas up to {SCHEMA}; read it with the kbench that wrote it, or a newer one"
    )]
    Newer {
        /// The version of the document.
        found: u64,
    },
    /// Something in it is not as it should be.
    #[error("it is a run document, but damaged: {0}")]
    Damaged(#[source] serde_json::Error),
}

/// The run that a document holds.
pub fn read_document(text: &str) -> Result<Report, DocumentError> {
    // The schema alone comes first: a newer document need not look like one of ours otherwise. Nothing else of it is kept,
    // for as plain JSON a document takes several times the memory of the run that it holds.
    let head: Head = serde_json::from_str(text).map_err(|error| match error.is_data() {
        true => DocumentError::Foreign,
        false => DocumentError::Text(error),
    })?;
    let found = head.schema.ok_or(DocumentError::Foreign)?;
    let made_visible = || -> Result<(Value, bool), DocumentError> {
        let mut value: Value = text.parse().map_err(DocumentError::Text)?;
        let is_changed = make_visible(&mut value, false);
        Ok((value, is_changed))
    };
    let as_it_is = || serde_json::from_str(text).map_err(DocumentError::Damaged);
    match usize::try_from(found) {
        Ok(SCHEMA_NOW) if is_plain(text) => as_it_is(),
        Ok(SCHEMA_NOW) => match made_visible()? {
            (value, true) => rewritten(&value),
            // The text itself tells where it is damaged.
            (_, false) => as_it_is(),
        },
        Ok(version @ 1..SCHEMA_NOW) => {
            let (mut value, _) = made_visible()?;
            if let Some(document) = value.as_object_mut() {
                UPGRADES[version - 1..].iter().for_each(|upgrade| upgrade(document));
            }
            rewritten(&value)
        }
        Ok(0) => Err(DocumentError::Foreign),
        _ => Err(DocumentError::Newer { found }),
    }
}

/// The run of a document that was changed after it was read.
///
/// It is written and read as text: `serde_json::from_value` would compile every type of a report a second time. Errors name
/// no line and no column, because the user has never seen this text.
fn rewritten(document: &Value) -> Result<Report, DocumentError> {
    serde_json::from_str(&document.to_string()).map_err(|error| {
        let text = error.to_string();
        let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
        DocumentError::Damaged(serde::de::Error::custom(reason))
    })
}

/// What every version of a document has.
#[derive(Deserialize)]
struct Head {
    schema: Option<u64>,
}

/// Whether no text of a document can hold a character that terminals obey: as an escape, or as it is, which JSON forbids for
/// those below the blank.
fn is_plain(text: &str) -> bool {
    !text.contains(|character| character == '\\' || character > '~' && is_obeyed(character))
}

/// Fields with sentences, which may have several lines; everything else is a name.
const SENTENCES: [&str; 9] = [
    "status",
    "remarks",
    "warnings",
    "findings",
    "recommendation",
    "reason",
    "words",
    "counters",
    "failed_at",
];

/// Makes all text visible; gives whether there was any to make so.
fn make_visible(value: &mut Value, is_sentence: bool) -> bool {
    let shown = |text: &str| match is_sentence {
        true => in_lines(text).into_owned(),
        false => on_one_line(text).into_owned(),
    };
    match value {
        Value::String(text) if text.contains(is_obeyed) => {
            let shown = shown(text);
            std::mem::replace(text, shown) != *text
        }
        Value::Array(values) => {
            values.iter_mut().fold(false, |is, value| make_visible(value, is_sentence) | is)
        }
        Value::Object(fields) => {
            let mut is_changed = false;
            if fields.keys().any(|key| key.contains(is_obeyed)) {
                for (key, value) in std::mem::take(fields) {
                    fields.insert(on_one_line(&key).into_owned(), value);
                }
                is_changed = true;
            }
            for (key, value) in fields {
                is_changed |= make_visible(value, SENTENCES.contains(&key.as_str()));
            }
            is_changed
        }
        _ => false,
    }
}

const SCHEMA_NOW: usize = SCHEMA as usize;

/// What makes a document of the next version, by its own version less one.
const UPGRADES: [fn(&mut Map<String, Value>); SCHEMA_NOW - 1] = [from_1_to_2];

/// Runs had no name, machines no key, and growth gave sizes and work under the same names, of which only work survives.
fn from_1_to_2(document: &mut Map<String, Value>) {
    let started = document.get("started").and_then(Value::as_u64).unwrap_or(0);
    let mut kernels: Vec<Value> = Vec::new();
    for row in document.get("rows").and_then(Value::as_array).into_iter().flatten() {
        if let Some(kernel) = row.get("kernel").filter(|kernel| kernels.last() != Some(kernel)) {
            kernels.push(kernel.clone());
        }
    }
    for growth in document.get_mut("growth").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(growth) = growth.as_object_mut() else { continue };
        for (size, work) in [("from_size", "from"), ("to_size", "to")] {
            let work = growth.get(work).cloned().unwrap_or_default();
            growth.insert(size.into(), json!(format!("work={work}")));
        }
    }
    for (object, field, value) in [
        ("environment", "machine", json!(UNKNOWN_MACHINE)),
        ("plan", "kernels", Value::Array(kernels)),
    ] {
        if let Some(object) = document.get_mut(object).and_then(Value::as_object_mut) {
            object.insert(field.into(), value);
        }
    }
    for (field, value) in [
        ("schema", json!(2)),
        ("run", json!(format!("{}-00000000", timestamp(started)))),
        ("parts", json!([])),
        ("missing", json!([])),
    ] {
        document.insert(field.into(), value);
    }
}

/// The key of a machine that nobody noted.
const UNKNOWN_MACHINE: &str = "unknown";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Status, json as write};

    const FIRST: &str = include_str!("fixtures/schema-1.json");

    #[test]
    fn a_document_of_the_first_version_is_read() {
        let report = read_document(FIRST).expect("readable");
        assert_eq!((report.schema, report.rows.len(), report.searched.len()), (2, 12, 2));
        assert_eq!(report.plan.kernels, ["kernels::elementwise::saxpy::saxpy"]);
        assert!(report.rows.iter().any(|row| matches!(row.status, Status::Skipped(_))));
        let timed = report.rows.iter().find(|row| row.time_ns.is_some()).expect("figures");
        assert_eq!(timed.raw.samples.len(), 2);
        assert!(report.growth[0].from_size.starts_with("work=1024"));
        assert!(report.scaling[0].overhead.is_some() && !report.crossovers.is_empty());
        assert!(report.run.starts_with("2026-11-"));
    }

    #[test]
    fn what_is_written_is_read_back_to_the_last_digit() {
        let report = read_document(FIRST).expect("readable");
        let text = write(&report).expect("written");
        let again = write(&read_document(&text).expect("readable")).expect("written");
        assert_eq!(text, again);
    }

    #[test]
    fn what_a_terminal_would_obey_is_read_as_a_number() {
        let mut report = read_document(FIRST).expect("readable");
        report.rows[0].variant = "a\u{1b}[2J\nb".into();
        report.rows[0].status = Status::Failed("left: 1\nright:\u{7} 2".into());
        report.rows[0].axes = [("\u{202e}n".to_owned(), 1)].into();
        let read = read_document(&write(&report).expect("written")).expect("readable");
        assert_eq!(read.rows[0].variant, "a\\u{1b}[2J\\nb");
        assert_eq!(read.rows[0].status, Status::Failed("left: 1\nright:\\u{7} 2".into()));
        assert_eq!(read.rows[0].axes.keys().collect::<Vec<_>>(), ["\\u{202e}n"]);
    }

    #[test]
    fn damage_has_a_line_and_a_column_of_the_text_that_was_given() {
        let written = write(&read_document(FIRST).expect("readable")).expect("written");
        for (from, to) in [("\"launches\": 2", "\"launches\": \"two\""), ("\"run\"", "\"rum\"")] {
            assert!(written.contains(from));
            let error = read_document(&written.replace(from, to)).expect_err(to).to_string();
            assert!(error.contains("damaged") && error.contains(" at line "), "{error}");
        }
        let older = FIRST.replacen("\"is_base\":", "\"is_basis\":", 1);
        let error = read_document(&older).expect_err("damaged").to_string();
        assert!(error.ends_with("damaged: missing field `is_base`"), "{error}");
        let error = read_document(&written[..written.len() / 2]).expect_err("cut off").to_string();
        assert!(error.contains("cut off") && error.contains(" at line "), "{error}");
    }

    #[test]
    fn whatever_else_a_file_holds_is_told_apart() {
        let error = |text: &str| read_document(text).expect_err(text).to_string();
        assert!(error("").contains("cut off"));
        assert!(error(&FIRST[..FIRST.len() / 2]).contains("cut off"));
        for foreign in ["[]", "3", "{}", "{\"schema\":\"1\"}", "{\"schema\":0}"] {
            assert!(error(foreign).contains("no run document"), "{foreign}");
        }
        assert!(error("{\"schema\":3}").contains("schema 3, and this kbench knows"));
        assert!(error("{\"schema\":99999999999}").contains("newer one"));
        assert!(error("{\"schema\":2}").contains("damaged"));
        assert!(error("{\"schema\":1}").contains("damaged"));
        assert!(error("{\"schema\":1,\"growth\":[1],\"plan\":2,\"rows\":3}").contains("damaged"));
    }
}
