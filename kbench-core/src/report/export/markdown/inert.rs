//! Text from elsewhere in GitHub's Markdown, so that it is shown and does nothing: no markup, no columns, no links, no
//! mentions of people or issues.

use crate::visible::is_obeyed;

/// A name or another machine's words, as code. Within code nothing is followed; what would end it is written as
/// references in an HTML element of the same look.
pub(crate) fn code(text: &str) -> String {
    let text: String = text.chars().map(shown).collect();
    let text = text.trim();
    if text.is_empty() {
        return "`(empty)`".to_owned();
    }
    if !text.contains(['`', '|', '\\', '<', '>', '&']) {
        return format!("`{text}`");
    }
    // Numbers of characters are never taken for structure (CommonMark, "entity and numeric character references").
    let is_plain = |c: char| c.is_alphanumeric() || c == ' ' || !c.is_ascii();
    let reference =
        |c: char| if is_plain(c) { c.to_string() } else { format!("&#{};", u32::from(c)) };
    format!("<code>{}</code>", text.chars().map(reference).collect::<String>())
}

/// A sentence. Punctuation that means something is escaped; what GitHub makes links of is broken by something invisible.
pub(crate) fn prose(text: &str) -> String {
    let mut inert = String::new();
    for character in text.chars().map(shown) {
        match character {
            '&' => inert += "&amp;",
            '<' => inert += "&lt;",
            '>' => inert += "&gt;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                inert.push('\\');
                inert.push(character);
            }
            // A person or an issue may follow.
            '@' | '#' => inert += &format!("{character}\u{200b}"),
            _ => inert.push(character),
        }
    }
    inert.replace("://", ":&#47;&#47;").replace("www.", "www&#46;")
}

/// A character on the same line.
fn shown(character: char) -> char {
    if is_obeyed(character) || character.is_whitespace() { ' ' } else { character }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_plain_where_it_can_be() {
        assert_eq!(code("saxpy_rayon"), "`saxpy_rayon`");
        assert_eq!(code("a|b`c"), "<code>a&#124;b&#96;c</code>");
        assert_eq!(code("<script>"), "<code>&#60;script&#62;</code>");
        assert_eq!([code("a\n# b"), code("\n")], ["`a # b`", "`(empty)`"]);
    }

    #[test]
    fn sentences_have_no_markup_and_no_links() {
        assert_eq!(prose("take a_b: 1.5× [1, 2]"), "take a\\_b: 1.5× \\[1, 2\\]");
        assert_eq!(prose("<b>&\n|"), "&lt;b&gt;&amp; \\|");
        assert_eq!(prose("@you #1"), "@\u{200b}you #\u{200b}1");
        assert_eq!(prose("https://a www.b"), "https:&#47;&#47;a www&#46;b");
    }
}
