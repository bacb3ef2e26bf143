//! Reading `kbench.toml` value by value. An error has the line and column of what is wrong.
//!
//! Deriving serde's traits for these few tables would take the compiler longer than all that is written here.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A value with its place in the text.
pub(crate) type Setting<'a> = Spanned<DeValue<'a>>;

/// A mistake in the text of a file.
#[derive(Debug)]
pub(crate) struct Mistake {
    /// Its bytes.
    span: Range<usize>,
    /// What is wrong there.
    pub(crate) reason: String,
}

impl Mistake {
    pub(crate) fn at<T>(place: &Spanned<T>, reason: impl fmt::Display) -> Self {
        Mistake { span: place.span(), reason: reason.to_string() }
    }

    /// Line and column in the text, which count from 1.
    pub(crate) fn place(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.span.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// The same with the line of the text that it is in.
    pub(crate) fn within(self, text: &str) -> SettingsError {
        let (line, column) = self.place(text);
        let content = text.lines().nth(line - 1).unwrap_or_default().to_owned();
        let rest = (content.chars().count() + 1).saturating_sub(column);
        let width = text.get(self.span).map_or(0, |marked| marked.chars().count());
        SettingsError { line, column, content, width: width.min(rest).max(1), reason: self.reason }
    }
}

/// Why a file of settings cannot be read, with the line that is wrong.
#[derive(Debug)]
pub struct SettingsError {
    line: usize,
    column: usize,
    content: String,
    /// Characters that are wrong, at least one.
    width: usize,
    reason: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SettingsError { line, column, content, width, reason } = self;
        let margin = " ".repeat(line.to_string().len());
        writeln!(f, "TOML parse error at line {line}, column {column}")?;
        writeln!(f, "{margin} |\n{line} | {content}")?;
        writeln!(f, "{margin} | {}{}", " ".repeat(column - 1), "^".repeat(*width))?;
        f.write_str(reason)
    }
}

impl std::error::Error for SettingsError {}

/// The tables of a file.
pub(crate) fn tables(text: &str) -> Result<DeTable<'_>, Mistake> {
    let tables = DeTable::parse(text).map_err(|error| Mistake {
        span: error.span().unwrap_or_default(),
        reason: error.message().to_owned(),
    })?;
    Ok(tables.into_inner())
}

/// A key that means nothing, among those that do.
pub(crate) fn unknown(key: &Spanned<DeString<'_>>, known: &[&str]) -> Mistake {
    let known: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
    let known = known.join(", ");
    Mistake::at(key, format!("unknown field `{}`, expected one of {known}", key.get_ref()))
}

/// What a table must have.
pub(crate) fn required<'t, 'a>(
    table: &'t Setting<'a>,
    key: &str,
) -> Result<&'t Setting<'a>, Mistake> {
    let missing = || Mistake::at(table, format!("missing field `{key}`"));
    self::table(table)?.get(key).ok_or_else(missing)
}

pub(crate) fn table<'t, 'a>(setting: &'t Setting<'a>) -> Result<&'t DeTable<'a>, Mistake> {
    setting.get_ref().as_table().ok_or_else(|| is_not(setting, "a table"))
}

pub(crate) fn list<'t, 'a>(setting: &'t Setting<'a>) -> Result<&'t [Setting<'a>], Mistake> {
    let list = setting.get_ref().as_array().ok_or_else(|| is_not(setting, "an array"))?;
    Ok(list.as_ref())
}

pub(crate) fn text<'t>(setting: &'t Setting<'_>) -> Result<&'t str, Mistake> {
    setting.get_ref().as_str().ok_or_else(|| is_not(setting, "a string"))
}

pub(crate) fn flag(setting: &Setting<'_>) -> Result<bool, Mistake> {
    setting.get_ref().as_bool().ok_or_else(|| is_not(setting, "true or false"))
}

/// A number with or without a fraction.
pub(crate) fn number(setting: &Setting<'_>) -> Result<f64, Mistake> {
    let number = match setting.get_ref() {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number as f64)
        }
        _ => return Err(is_not(setting, "a number")),
    };
    number.ok_or_else(|| Mistake::at(setting, "the number is too large"))
}

fn is_not(setting: &Setting<'_>, expected: &str) -> Mistake {
    let found = setting.get_ref().type_str();
    Mistake::at(setting, format!("invalid type: {found}, expected {expected}"))
}

/// Whether two files say the same, wherever in a text they say it, apart from one key.
pub(crate) fn is_same_apart_from(key: &str, one: &DeTable<'_>, other: &DeTable<'_>) -> bool {
    let len = |table: &DeTable<'_>| table.len() - usize::from(table.contains_key(key));
    let mut others = one.iter().filter(|(own, _)| own.get_ref() != key);
    len(one) == len(other) && others.all(|(key, value)| is_in(other, key, value))
}

fn is_in(table: &DeTable<'_>, key: &Spanned<DeString<'_>>, value: &Setting<'_>) -> bool {
    table.get(key.as_ref().as_ref()).is_some_and(|there| is_same(value, there))
}

/// Numbers are compared as they are written.
fn is_same(one: &Setting<'_>, other: &Setting<'_>) -> bool {
    match (one.get_ref(), other.get_ref()) {
        (DeValue::Table(one), DeValue::Table(other)) => {
            one.len() == other.len() && one.iter().all(|(key, value)| is_in(other, key, value))
        }
        (DeValue::Array(one), DeValue::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other.iter()).all(|(a, b)| is_same(a, b))
        }
        (DeValue::String(one), DeValue::String(other)) => one == other,
        (DeValue::Integer(one), DeValue::Integer(other)) => {
            (one.radix(), one.as_str()) == (other.radix(), other.as_str())
        }
        (DeValue::Float(one), DeValue::Float(other)) => one.as_str() == other.as_str(),
        (DeValue::Boolean(one), DeValue::Boolean(other)) => one == other,
        (DeValue::Datetime(one), DeValue::Datetime(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_shown_where_it_is() {
        let shown = |file: &str| {
            let read = tables(file).and_then(|tables| text(&tables["é"]).map(str::to_owned));
            read.expect_err(file).within(file).to_string()
        };
        assert_eq!(
            shown("# one\n\"é\" = 31 # no text\n"),
            "TOML parse error at line 2, column 7\n  |\n2 | \"é\" = 31 # no text\n  |       ^^\n\
             invalid type: integer, expected a string"
        );
        let bare_key = shown("é = 1");
        assert!(bare_key.contains("line 1, column 1"), "{bare_key}");
        let at_the_end = shown("\n[table");
        assert!(at_the_end.contains("at line 2, column "), "{at_the_end}");
        let whole_list = shown("\"é\" = [\n1,\n]");
        assert!(whole_list.contains("\n  |       ^\n"), "{whole_list}");
    }

    #[test]
    fn a_number_may_be_whole_and_no_larger_than_fits() {
        let file = "a = 1\nb = 0x1_0\nc = -2.5e0\nd = inf\ne = 99999999999999999999\nf = '1'";
        let tables = tables(file).expect("TOML");
        let numbers = ["a", "b", "c", "d"].map(|key| number(&tables[key]).expect("a number"));
        assert_eq!(numbers, [1.0, 16.0, -2.5, f64::INFINITY]);
        for (key, reason) in [("e", "too large"), ("f", "string, expected a number")] {
            let mistake = number(&tables[key]).expect_err(reason);
            assert!(mistake.reason.contains(reason), "{mistake:?}");
        }
    }

    #[test]
    fn files_are_the_same_when_they_say_the_same() {
        let first = "a = [1, 2.5, nan]\nb.c = 'x'\nb.d = true\ne = 2026-11-17";
        let is_same = |other: &str| {
            let read = |text| tables(text).expect("TOML");
            is_same_apart_from("our", &read(first), &read(other))
        };
        assert!(is_same("# x\ne = 2026-11-17\na = [1,2.5,nan]\n[b]\nd = true\nc = \"x\""));
        assert!(is_same(&format!("our = 3\n{first}")));
        assert!(!is_same(&format!("her = 3\n{first}")));
        for (from, to) in
            [("nan", "inf"), (", nan", ""), ("'x'", "'y'"), ("b.c", "b.f"), ("e =", "our =")]
        {
            assert!(!is_same(&first.replace(from, to)), "{from} {to}");
        }
    }
}
