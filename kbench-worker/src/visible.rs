//! Text from elsewhere, so that it is shown and never obeyed.
//!
//! A kernel's panic, a file that anybody may have written, a folder's name: all of them end up on somebody's terminal. A
//! terminal obeys control characters, a browser those that change the direction of writing, and a reader does not see those
//! without a shape; all are written as numbers instead, as Rust writes them (`\u{1b}`). A CI service obeys commands in what a
//! job prints. Every form of a report has rules of its own besides.

use std::borrow::Cow;

/// Whether a character does something instead of being seen, or is not seen at all.
pub fn is_obeyed(character: char) -> bool {
    // Separators of lines and paragraphs, anchors of annotations, and what Unicode calls default ignorable: joiners, marks of
    // direction, tags, blanks without width. U+FE0F alone may be among them, for it gives symbols their colour.
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0e}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// What CI services obey anywhere in a line: GitHub and Azure, and TeamCity.
const COMMANDS: [&str; 3] = ["##[", "##vso[", "##teamcity["];

/// What is printed, so that no line of it is a command to the CI service that it is printed for. The character that would make
/// it one is written as a number: `\u{23}` and `\u{3a}`, or as JSON has it.
pub fn without_commands(text: &str, is_json: bool) -> Cow<'_, str> {
    let is_command = |line: &str| line.trim_start().starts_with("::");
    let mut shown = Cow::Borrowed(text);
    let number = if is_json { "#\\u0023" } else { "#\\u{23}" };
    for command in COMMANDS.iter().filter(|command| text.contains(**command)) {
        shown = Cow::Owned(shown.replace(command, &command.replacen("##", number, 1)));
    }
    if shown.lines().any(is_command) {
        let line = |line: &str| match is_command(line) {
            true => line.replacen("::", "\\u{3a}:", 1),
            false => line.to_owned(),
        };
        shown = Cow::Owned(shown.split_inclusive('\n').map(line).collect());
    }
    shown
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
    fn what_has_no_shape_is_written_as_a_number() {
        assert_eq!(on_one_line("sa\u{200b}xpy"), "sa\\u{200b}xpy");
        assert_eq!(on_one_line("a\u{e0041}\u{e007f}"), "a\\u{e0041}\\u{e007f}");
        assert_eq!(in_lines("a\u{2060}\u{ad}\u{3164}"), "a\\u{2060}\\u{ad}\\u{3164}");
        assert_eq!(on_one_line("⚠\u{fe0f}"), "⚠\u{fe0f}");
    }

    #[test]
    fn a_line_that_is_printed_is_no_command() {
        for (text, shown) in [
            ("::warning file=a::b", "\\u{3a}:warning file=a::b"),
            ("a\n \t::error::b\nc::d", "a\n \t\\u{3a}:error::b\nc::d"),
            ("a ##[group]b", "a #\\u{23}[group]b"),
            ("##vso[task.x]\n##teamcity[y]", "#\\u{23}vso[task.x]\n#\\u{23}teamcity[y]"),
        ] {
            assert_eq!(without_commands(text, false), shown);
        }
        assert_eq!(without_commands("{\"a\":\"##[b]\"}", true), "{\"a\":\"#\\u0023[b]\"}");
        for text in ["kernels::matmul", "#[inline]", "## title", "a\n  b::c\n"] {
            assert!(matches!(without_commands(text, false), Cow::Borrowed(same) if same == text));
        }
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
