//! Indenting JSON that was written on one line.
//!
//! serde_json can do so while it writes, but then every type of the report is compiled a second time.

/// The same JSON with a line for every element, as `serde_json::to_string_pretty` writes it, and an end of the last line.
pub(super) fn indented(compact: &str) -> String {
    // Samples take most of a large document: its text is not moved to a larger place while it grows.
    let mut length = 1;
    indent(compact, |part| length += part.len());
    let mut text = String::with_capacity(length);
    indent(compact, |part| text += part);
    text + "\n"
}

/// Gives the parts of the indented text.
fn indent(compact: &str, mut put: impl FnMut(&str)) {
    let (mut depth, mut previous) = (0, ' ');
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (place, c) in compact.char_indices() {
        let part = &compact[place..place + c.len_utf8()];
        if is_quoted {
            is_quoted = is_escaped || c != '"';
            is_escaped = c == '\\' && !is_escaped;
            put(part);
            continue;
        }
        let (opens, closes) = (matches!(c, '[' | '{'), matches!(c, ']' | '}'));
        depth -= usize::from(closes);
        // Empty lists and objects stay on their line.
        if matches!(previous, '[' | '{') != closes || previous == ',' {
            put("\n");
            (0..depth).for_each(|_| put("  "));
        } else if previous == ':' {
            put(" ");
        }
        put(part);
        depth += usize::from(opens);
        is_quoted = c == '"';
        previous = c;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::awkward;
    use super::*;

    fn agrees(value: &Value) {
        let pretty = serde_json::to_string_pretty(value).expect("text");
        assert_eq!(indented(&value.to_string()), pretty + "\n");
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
        assert_eq!(indented(&serde_json::to_string(&report).expect("text")), pretty + "\n");
    }
}
