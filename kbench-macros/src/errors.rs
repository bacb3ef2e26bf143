//! All mistakes of one attribute, so that they are reported together.

use std::fmt::Display;

use proc_macro2::Span;
use quote::ToTokens;
use syn::Error;

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Adds a mistake at the given tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    /// Adds a mistake at a span.
    pub(crate) fn at_span(&mut self, span: Span, message: impl Display) {
        self.push(Error::new(span, message));
    }

    /// Adds a mistake.
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Whether there are none yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The mistakes as one error.
    pub(crate) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Names in quotes, separated by commas.
pub(crate) fn quoted(names: impl IntoIterator<Item = impl Display>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// ", did you mean `sizes`?" when one of the names is near enough to be what was meant.
pub(crate) fn suggestion(written: &str, names: &[&str]) -> String {
    names
        .iter()
        .map(|name| (distance(written, name), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3))
        .map(|(_, name)| format!(", did you mean `{name}`?"))
        .unwrap_or_default()
}

/// Levenshtein's edit distance, one row of the table at a time.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_insertions_deletions_and_replacements() {
        assert_eq!(distance("sizes", "sizes"), 0);
        assert_eq!(distance("size", "sizes"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "work"), 4);
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        let names = ["sizes", "inputs", "threshold"];
        assert_eq!(suggestion("input", &names), ", did you mean `inputs`?");
        assert_eq!(suggestion("treshhold", &names), ", did you mean `threshold`?");
        assert_eq!(suggestion("colour", &names), "");
    }
}
