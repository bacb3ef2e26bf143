//! Reading a run document, also one that an older kbench wrote.
//!
//! Each version of the document has a step that makes the next one of it, on plain JSON; an old document takes all steps
//! from its own version on. `docs/run-format.md` tells what changed between versions.

use serde_json::{Map, Value, json};

use crate::calendar::timestamp;
use crate::report::{Report, SCHEMA};

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
    // The schema alone comes first: a newer document need not look like one of ours otherwise.
    let value: Value = serde_json::from_str(text).map_err(DocumentError::Text)?;
    let found = value.get("schema").and_then(Value::as_u64).ok_or(DocumentError::Foreign)?;
    match usize::try_from(found) {
        Ok(SCHEMA_NOW) => serde_json::from_str(text).map_err(DocumentError::Damaged),
        Ok(version @ 1..SCHEMA_NOW) => {
            let mut value = value;
            if let Some(document) = value.as_object_mut() {
                UPGRADES[version - 1..].iter().for_each(|upgrade| upgrade(document));
            }
            serde_json::from_value(value).map_err(DocumentError::Damaged)
        }
        Ok(0) => Err(DocumentError::Foreign),
        _ => Err(DocumentError::Newer { found }),
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
