//! Text from elsewhere, so that it is shown and never obeyed.
//!
//! A kernel's panic, a file that anybody may have written, a folder's name: all of them end up on somebody's terminal. A
//! terminal obeys control characters, and a browser those that change the direction of writing; both are written as
//! numbers instead, as Rust writes them (`\u{1b}`). Every form of a report has rules of its own besides.

use std::borrow::Cow;

/// Whether a character does something instead of being seen.
pub fn is_obeyed(character: char) -> bool {
    // Marks, overrides and isolates of direction, separators of lines and paragraphs, and the mark of byte order.
    character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

/// A name: what is obeyed is written as a number, line ends with it.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    replaced(text, is_obeyed)
}

/// Sentences: line ends stay, and tabs are blanks.
pub fn in_lines(text: &str) -> Cow<'_, str> {
    let text = match text.contains(['\t', '\r']) {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\t', " ")),
        false => Cow::Borrowed(text),
    };
    match text.contains(|c| is_obeyed(c) && c != '\n') {
        true => Cow::Owned(replaced(&text, |c| is_obeyed(c) && c != '\n').into_owned()),
        false => text,
    }
}

fn replaced(text: &str, is_meant: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_meant) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_meant(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_as_a_number() {
        assert_eq!(on_one_line("a\u{1b}[2Jb\n\u{9b}"), "a\\u{1b}[2Jb\\n\\u{9b}");
        assert_eq!(on_one_line("gnp.\u{202e}exe\0"), "gnp.\\u{202e}exe\\u{0}");
        assert_eq!(in_lines("left: 1\r\n\tright: 2\r\u{7}"), "left: 1\n right: 2\\r\\u{7}");
    }

    #[test]
    fn plain_text_costs_nothing_and_twice_is_once() {
        for text in ["saxpy_rayon", "<script>", "🚀 é", "=1+2"] {
            assert!(matches!(on_one_line(text), Cow::Borrowed(same) if same == text));
            assert!(matches!(in_lines(text), Cow::Borrowed(same) if same == text));
        }
        let once = on_one_line("\u{1b}\u{202e}\n");
        assert_eq!(on_one_line(&once), once);
    }
}
