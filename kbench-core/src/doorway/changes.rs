//! A run with changes that are drawn from bytes.
//!
//! Bytes that are turned into JSON by chance are hardly ever a run. Bytes that say which value of a run becomes what are
//! nearly always almost one.

use serde_json::{Value, json};

use super::RUN;

/// Bytes of one change.
const CHANGE: usize = 4;

/// Changes beyond these are left out: each walks through the document.
const MOST_CHANGES: usize = 16;

/// Elements of a list and characters of a text: more would be about time and memory, and not about forms.
const MOST_ELEMENTS: usize = 24;
const MOST_CHARACTERS: usize = 4000;

/// Strings that somebody might find funny.
const TEXTS: [&str; 10] = [
    "",
    "../../x",
    "a\"b'c<script>alert(1)</script>",
    "\u{1b}[2J\u{7}\0",
    "line\nbreak\r\t",
    "=1+2",
    "\u{202e}gnp.exe",
    "🚀",
    "n=",
    "slice:1/99999999999",
];

/// The run with all changes of some bytes.
pub(super) fn changed(bytes: &[u8]) -> String {
    let mut document: Value = serde_json::from_str(RUN).unwrap_or_default();
    for change in bytes.chunks_exact(CHANGE).take(MOST_CHANGES) {
        let count = size(&document);
        let mut index = usize::from(u16::from_le_bytes([change[0], change[1]])) % count;
        if let Some(value) = nth(&mut document, &mut index) {
            change_one(value, change[2], change[3]);
        }
    }
    document.to_string()
}

/// How many values there are, those inside of others included.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(size).sum(),
        Value::Object(values) => values.values().map(size).sum(),
        _ => 0,
    }
}

/// The value of a number, from outside to inside.
fn nth<'v>(value: &'v mut Value, index: &mut usize) -> Option<&'v mut Value> {
    if *index == 0 {
        return Some(value);
    }
    *index -= 1;
    match value {
        Value::Array(values) => values.iter_mut().find_map(|value| nth(value, index)),
        Value::Object(values) => values.values_mut().find_map(|value| nth(value, index)),
        _ => None,
    }
}

fn change_one(value: &mut Value, kind: u8, how: u8) {
    let text = TEXTS[usize::from(how) % TEXTS.len()];
    *value = match (value.take(), kind % 12) {
        (Value::Array(mut values), 0 | 1) => {
            let times = usize::from(how % 8);
            values = (0..times).flat_map(|_| values.clone()).take(MOST_ELEMENTS).collect();
            Value::Array(values)
        }
        (Value::Array(mut values), 2 | 3) => {
            values.truncate(usize::from(how) % values.len().max(1));
            Value::Array(values)
        }
        (Value::Array(mut values), _) => {
            values.reverse();
            Value::Array(values)
        }
        (Value::Object(mut values), 0..=2) => {
            let key = values.keys().nth(usize::from(how) % values.len().max(1)).cloned();
            key.and_then(|key| values.remove(&key));
            Value::Object(values)
        }
        (Value::String(own), 0..=2) => json!(format!("{own}{text}")),
        (Value::String(own), 3) => {
            let times = MOST_CHARACTERS / own.len().max(1);
            json!(own.repeat(times.min(usize::from(how))))
        }
        (Value::Number(own), 0..=3) => {
            let factor = 10f64.powi(i32::from(how) - 128);
            json!(own.as_f64().map(|number| number * factor))
        }
        (Value::Number(own), 4) => json!(own.as_f64().map(|number| -number)),
        (_, 5) => json!(0),
        (_, 6) => json!(how),
        (_, 7) => json!([1e308, -1e308, 5e-324, -1.0][usize::from(how) % 4]),
        (_, 8) => json!([u64::MAX, 1 << 53, 1 << 32, 1][usize::from(how) % 4]),
        (_, 9) => [json!(null), json!(true), json!([]), json!({})][usize::from(how) % 4].clone(),
        _ => json!(text),
    };
}
