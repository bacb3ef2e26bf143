//! Compact JSON, and the same with a line for every element.
//!
//! All types of a report are written by one serializer, into a `dyn Write`: serde_json can indent by itself, but then every
//! type is compiled a second time.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::Error;

/// JSON on one line.
pub(in crate::report) fn compact(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    write(value, &mut text)?;
    String::from_utf8(text).map_err(Error::custom)
}

/// JSON with a line for every element, as `serde_json::to_string_pretty` writes it, and an end of the last line.
pub(super) fn indented(value: &impl Serialize) -> serde_json::Result<String> {
    let mut indenter = Indenter { previous: b' ', ..Indenter::default() };
    write(value, &mut indenter)?;
    indenter.text.push(b'\n');
    String::from_utf8(indenter.text).map_err(Error::custom)
}

fn write(value: &impl Serialize, to: &mut dyn Write) -> serde_json::Result<()> {
    serde_json::to_writer(to, value)
}

/// Indents what is written to it on one line.
#[derive(Default)]
struct Indenter {
    text: Vec<u8>,
    depth: usize,
    /// The last byte outside of a string.
    previous: u8,
    is_quoted: bool,
    is_escaped: bool,
}

impl Indenter {
    fn put(&mut self, byte: u8) {
        if self.is_quoted {
            self.is_quoted = self.is_escaped || byte != b'"';
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            self.text.push(byte);
            return;
        }
        let (opens, closes) = (matches!(byte, b'[' | b'{'), matches!(byte, b']' | b'}'));
        self.depth -= usize::from(closes);
        // Empty lists and objects stay on their line.
        if matches!(self.previous, b'[' | b'{') != closes || self.previous == b',' {
            self.text.push(b'\n');
            self.text.extend(std::iter::repeat_n(b' ', 2 * self.depth));
        } else if self.previous == b':' {
            self.text.push(b' ');
        }
        self.text.push(byte);
        self.depth += usize::from(opens);
        self.is_quoted = byte == b'"';
        self.previous = byte;
    }
}

impl Write for Indenter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        bytes.iter().for_each(|byte| self.put(*byte));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::awkward;
    use super::*;

    fn agrees(value: &Value) {
        let pretty = serde_json::to_string_pretty(value).expect("text");
        assert_eq!(indented(value).expect("text"), pretty + "\n");
        assert_eq!(compact(value).expect("text"), value.to_string());
    }

    #[test]
    fn every_kind_of_value_is_indented_as_by_serde_json() {
        for value in [
            json!(null),
            json!(-1.5e300),
            json!(""),
            json!([]),
            json!({}),
            json!([[]]),
            json!([{}, [], {}]),
            json!({ "a": {}, "b": [], "c": { "d": [[1, 2], [true, null]] } }),
            json!([1, [2, [3, [4, { "five": [5] }]]], "six"]),
        ] {
            agrees(&value);
        }
    }

    #[test]
    fn what_is_within_a_string_stays_as_it_is() {
        for text in ["[{]},: ", "\"", "\\", "\\\"", "\\\\\"[", "\n\t\u{1}", "é😀{", "\"{\":[\""]
        {
            agrees(&json!(text));
            agrees(&json!({ text: [text, { text: text }], "b": text }));
        }
    }

    #[test]
    fn a_report_is_indented_as_by_serde_json() {
        let report = awkward();
        let pretty = serde_json::to_string_pretty(&report).expect("text");
        assert_eq!(indented(&report).expect("text"), pretty + "\n");
    }
}
