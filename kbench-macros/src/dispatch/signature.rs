//! The signature of a dispatching function: passed on as it is, but for what its body has to know.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use super::mistakes::Mistakes;
use super::tokens::{Angles, as_group, is_mark, is_word, position, split_at_commas, ungrouped};

pub(super) struct Signature {
    /// Everything in front of the body.
    pub(super) tokens: Vec<TokenTree>,
    /// Whether it says itself how it is to be inlined.
    pub(super) has_inline: bool,
    pub(super) is_unsafe: bool,
    /// The names of the parameters.
    pub(super) arguments: Vec<Ident>,
    pub(super) body: Group,
}

impl Signature {
    /// Takes the function apart; gives none when it is too far from being one.
    pub(super) fn parse(input: TokenStream, mistakes: &mut Mistakes) -> Option<Self> {
        let mut tokens: Vec<TokenTree> = input.into_iter().collect();
        let Some(keyword) = tokens.iter().position(|tree| is_word(tree, "fn")) else {
            let text =
                "expected a function, such as `pub fn saxpy_auto(...) { match x.len() { ... } }`";
            mistakes.at_tokens(&tokens, Span::call_site(), text);
            return None;
        };
        let list = after(&tokens, keyword, Delimiter::Parenthesis);
        let Some(body) = list.and_then(|list| after(&tokens, list, Delimiter::Brace)) else {
            let text =
                "this function has no body: a dispatcher's is one `match` on the amount of work";
            mistakes.at(tokens[keyword].span(), text);
            return None;
        };
        if let Some(more) = tokens.get(body + 1) {
            mistakes.at(more.span(), "one `dispatch!` makes one function: write another for this");
        }
        let qualifiers = ungrouped(tokens[..keyword].iter().cloned().collect());
        if let Some(word) = qualifiers.iter().find(|tree| is_word(tree, "async")) {
            mistakes.at(word.span(), "a dispatcher cannot be `async`: it calls a variant");
        }
        Some(Signature {
            has_inline: has_inline(&qualifiers),
            is_unsafe: qualifiers.iter().any(|tree| is_word(tree, "unsafe")),
            arguments: arguments(as_group(&tokens[list?], Delimiter::Parenthesis)?, mistakes),
            body: as_group(&tokens[body], Delimiter::Brace)?.clone(),
            tokens: {
                tokens.truncate(body);
                tokens
            },
        })
    }
}

/// The position of the first group after a token.
fn after(tokens: &[TokenTree], from: usize, delimiter: Delimiter) -> Option<usize> {
    let is_wanted = |tree: &TokenTree| as_group(tree, delimiter).is_some();
    position(&tokens[from + 1..], Angles::Everywhere, is_wanted).map(|position| from + 1 + position)
}

fn has_inline(qualifiers: &[TokenTree]) -> bool {
    let attributes = qualifiers.iter().filter_map(|tree| as_group(tree, Delimiter::Bracket));
    let mut paths = attributes.filter_map(|group| ungrouped(group.stream()).into_iter().next());
    paths.any(|first| is_word(&first, "inline"))
}

/// The names of the parameters, by which they are passed on.
fn arguments(list: &Group, mistakes: &mut Mistakes) -> Vec<Ident> {
    let tokens = ungrouped(list.stream());
    let mut names = Vec::new();
    for parameter in split_at_commas(&tokens, Angles::Everywhere) {
        let colon = position(parameter, Angles::Everywhere, |tree| is_mark(tree, ':'))
            .unwrap_or(parameter.len());
        let pattern = &parameter[..colon];
        if let Some(receiver) = pattern.iter().find(|tree| is_word(tree, "self")) {
            mistakes.at(receiver.span(), "a dispatcher is a free function: it cannot take `self`");
            continue;
        }
        match pattern {
            [TokenTree::Ident(name)] if name.to_string() != "_" => names.push(name.clone()),
            _ => mistakes.at_tokens(
                pattern,
                list.span(),
                "a parameter of a dispatcher is a name alone, by which it is passed on",
            ),
        }
    }
    names
}
